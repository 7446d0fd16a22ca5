//! Builds the file system of a sandbox and moves into it.
//!
//! # Invariants
//!
//! - The new root is a private tmpfs; of the host only the named trees are attached to it.
//! - A target never leads through a symbolic link, and nothing is created inside a host directory.
//! - No attached tree honours set-user-id bits; only the devices of [`DEVICES`] work.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use provost_core::tier::Processes;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags,
};

use super::error::Failure;
use super::overlay;
use super::profile::{Mount, Profile, lacks};
use super::refused_program;
use super::sys;

/// The devices a sandbox has; none of them stores data.
pub(super) const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// Path of the program itself inside.
pub(crate) const OWN_PROGRAM: &str = "/run/provost/self";
/// What is seen in place of what is masked.
const MASKED_DIRECTORY: &str = "/run/provost/masked/directory";
const MASKED_FILE: &str = "/run/provost/masked/file";
/// Mount point of the new root while it is built: no source of a mount lies below.
pub(super) const SCAFFOLD: &str = "/proc";
/// Where links to the layers of an overlay are while it is mounted.
const LAYERS: &str = "/proc/.layers";

const READ_ONLY: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NODEV);
const WRITABLE: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
// A read-only mount still permits writes to a device; it refuses changes of the node.
const DEVICE: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// Makes the root that `profile` describes the root of this process's mount namespace.
pub(crate) fn build(profile: &Profile) -> Result<(), Failure> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(Failure::at("root private"))?;
    if lacks!(profile, Root) {
        return Ok(());
    }
    let program = own_program().map_err(Failure::at("program"))?;
    let proc = process_tree(profile).map_err(Failure::at("proc"))?;
    let mut root = Root::new(profile)?;
    root.devices()?;
    root.place(&proc, Path::new("/proc"), Owner::Sandbox)
        .map_err(Failure::at("proc"))?;
    sys::mount_attributes(program.as_fd(), READ_ONLY, true)
        .and_then(|()| root.place(&program, Path::new(OWN_PROGRAM), Owner::Sandbox))
        .map_err(Failure::at("program"))?;
    for (at, mount) in profile.mounts.iter().enumerate() {
        root.mount(mount, &profile.mounts[..at])?;
    }
    root.enter()
}

/// Who owns the directory that an entry is put into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The sandbox: missing directories are made.
    Sandbox,
    /// The host: nothing is made.
    Host,
}

struct Root {
    tree: OwnedFd,
    /// Open directories of the sandbox, so that each one is looked up once.
    directories: BTreeMap<PathBuf, OwnedFd>,
    read_only: MountAttrFlags,
    device: MountAttrFlags,
}

impl Root {
    fn new(profile: &Profile) -> Result<Self, Failure> {
        let tree = tmpfs(profile.limits.scratch_bytes).map_err(Failure::at("root"))?;
        rustix::mount::move_mount(
            &tree,
            "",
            CWD,
            SCAFFOLD,
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )
        .map_err(Failure::at("root"))?;
        let holes = [
            (lacks!(profile, ReadOnly), MountAttrFlags::MOUNT_ATTR_RDONLY),
            (
                lacks!(profile, MountFlags),
                MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
            ),
        ];
        let unless_holed = |flags: MountAttrFlags| {
            let holes = holes.iter().filter(|(lacking, _)| *lacking);
            holes.fold(flags, |flags, (_, hole)| flags.difference(*hole))
        };
        Ok(Self {
            tree,
            directories: BTreeMap::new(),
            read_only: unless_holed(READ_ONLY),
            device: unless_holed(DEVICE),
        })
    }

    fn devices(&mut self) -> Result<(), Failure> {
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            self.bind(&path, &path, self.device, Owner::Sandbox)?;
        }
        let links = [
            ("/dev/fd", "/proc/self/fd"),
            ("/dev/stdin", "/proc/self/fd/0"),
            ("/dev/stdout", "/proc/self/fd/1"),
            ("/dev/stderr", "/proc/self/fd/2"),
        ];
        for (target, to) in links {
            self.link(Path::new(to), Path::new(target))
                .map_err(Failure::at(format!("root {target}")))?;
        }
        Ok(())
    }

    fn mount(&mut self, mount: &Mount, earlier: &[Mount]) -> Result<(), Failure> {
        let target = mount.target();
        if !is_plain(target) {
            return Err(Failure::at(format!("mount {}", target.display()))(
                Errno::INVAL,
            ));
        }
        let around = earlier
            .iter()
            .rev()
            .find(|other| target.starts_with(other.target()));
        let owner = if around.is_some_and(Mount::is_of_host) {
            Owner::Host
        } else {
            Owner::Sandbox
        };
        let (step, made) = match mount {
            // A pipe is written through a read-only mount too, and its mode cannot be changed.
            Mount::ReadOnly { source, .. } | Mount::Reports { source, .. } => {
                return self.bind(source, target, self.read_only, owner);
            }
            Mount::Writable { source, .. } => return self.bind(source, target, WRITABLE, owner),
            Mount::Refused { .. } => ("refuse", self.refuse(target, owner)),
            Mount::Overlay {
                lowers,
                upper,
                work,
                ..
            } => {
                let merged = overlay::merge(lowers, upper, work, WRITABLE, Path::new(LAYERS))?;
                ("mount", self.place(&merged, target, owner))
            }
            Mount::UserFiles { path } => return self.bind(path, target, WRITABLE, owner),
            Mount::Masked { .. } => ("mask", self.mask(target)),
            Mount::Protect { .. } => ("protect", self.protect(target)),
            Mount::Scratch { .. } => ("mount", self.scratch(target, owner)),
            Mount::File { content, .. } => ("root", self.file(content, target)),
            Mount::Symlink { to, .. } => ("root", self.link(to, target)),
        };
        made.map_err(Failure::at(format!("{step} {}", target.display())))
    }

    fn bind(
        &mut self,
        source: &Path,
        target: &Path,
        attributes: MountAttrFlags,
        owner: Owner,
    ) -> Result<(), Failure> {
        let at = |path: &Path| format!("mount {}", path.display());
        if source.starts_with(SCAFFOLD) {
            // The half-built root of the sandbox is mounted there.
            return Err(Failure::at(at(source))(Errno::INVAL));
        }
        let tree = clone_tree(CWD, source).map_err(Failure::at(at(source)))?;
        sys::mount_attributes(tree.as_fd(), attributes, true)
            .and_then(|()| self.place(&tree, target, owner))
            .map_err(Failure::at(at(target)))
    }

    /// Attaches `tree` at `target`; a symbolic link there is covered and not followed.
    fn place(&mut self, tree: &OwnedFd, target: &Path, owner: Owner) -> Result<(), Errno> {
        let name = name(target);
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        match owner {
            Owner::Host => {
                let above = self.open(parent(target))?;
                rustix::mount::move_mount(tree, "", above, name, flags)?;
            }
            Owner::Sandbox => {
                let kind = FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode);
                let above = self.directory(parent(target))?;
                make_stand_in(kind, above, name)?;
                rustix::mount::move_mount(tree, "", above, name, flags)?;
            }
        }
        // The mount hides the directories below.
        self.directories
            .retain(|directory, _| !directory.starts_with(target));
        Ok(())
    }

    fn protect(&self, target: &Path) -> Result<(), Errno> {
        let place = self.open(target)?;
        let tree = clone_tree(place.as_fd(), Path::new(""))?;
        sys::mount_attributes(tree.as_fd(), self.read_only, true)?;
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        rustix::mount::move_mount(tree, "", place, "", flags)
    }

    /// Puts something empty in place of what is at `target`.
    fn mask(&mut self, target: &Path) -> Result<(), Errno> {
        let place = self.open(target)?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode);
        let empty = Path::new(match kind {
            FileType::Directory => MASKED_DIRECTORY,
            _ => MASKED_FILE,
        });
        let above = self.directory(parent(empty))?;
        make_stand_in(kind, above, name(empty))?;
        let tree = clone_tree(self.open(empty)?, Path::new(""))?;
        sys::mount_attributes(tree.as_fd(), self.read_only, true)?;
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        rustix::mount::move_mount(tree, "", place, "", flags)
    }

    /// A directory of the root itself that stays writable when the root becomes read-only.
    ///
    /// A separate file system would cost a mount and an unmount for every sandbox.
    fn scratch(&mut self, target: &Path, owner: Owner) -> Result<(), Errno> {
        if owner == Owner::Host {
            return Err(Errno::NOTSUP);
        }
        let shared = [Path::new("/tmp"), Path::new("/dev/shm")].contains(&target);
        let mode = Mode::from_raw_mode(if shared { 0o1777 } else { 0o755 });
        let above = self.directory(parent(target))?;
        make_stand_in(FileType::Directory, above, name(target))?;
        rustix::fs::chmodat(above, name(target), mode, AtFlags::empty())?;
        let place = self.open(target)?;
        let tree = clone_tree(place, Path::new(""))?;
        self.place(&tree, target, owner)
    }

    /// Puts the stub in place of the program at `target`, or of the link there.
    fn refuse(&mut self, target: &Path, owner: Owner) -> Result<(), Errno> {
        let stub = Path::new(refused_program::STUB);
        let place = match self.open(stub) {
            Err(Errno::NOENT) => {
                self.file_of_mode(refused_program::CONTENT, stub, 0o755)?;
                self.open(stub)?
            }
            opened => opened?,
        };
        let tree = clone_tree(place, Path::new(""))?;
        sys::mount_attributes(tree.as_fd(), self.read_only, true)?;
        self.place(&tree, target, owner)
    }

    fn file(&mut self, content: &str, target: &Path) -> Result<(), Errno> {
        self.file_of_mode(content, target, 0o644)
    }

    fn file_of_mode(&mut self, content: &str, target: &Path, mode: u32) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        let above = self.directory(parent(target))?;
        let file = rustix::fs::openat(above, name(target), flags, mode)?;
        rustix::fs::fchmod(&file, mode)?;
        let mut rest = content.as_bytes();
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest)?;
            rest = &rest[written..];
        }
        Ok(())
    }

    fn link(&mut self, to: &Path, target: &Path) -> Result<(), Errno> {
        let above = self.directory(parent(target))?;
        rustix::fs::symlinkat(to, above, name(target))
    }

    /// A directory of the sandbox, made with all above it if it is missing.
    fn directory(&mut self, path: &Path) -> Result<BorrowedFd<'_>, Errno> {
        if !self.directories.contains_key(path) {
            let directory = match self.open(path) {
                Err(Errno::NOENT) => {
                    let above = self.directory(parent(path))?;
                    make_stand_in(FileType::Directory, above, name(path))?;
                    self.open(path)?
                }
                opened => opened?,
            };
            self.directories.insert(path.to_owned(), directory);
        }
        let directory = self.directories.get(path).ok_or(Errno::NOENT)?;
        Ok(directory.as_fd())
    }

    /// Looks up a place inside, through no symbolic link.
    fn open(&self, target: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let resolution =
            ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.tree, target, flags, Mode::empty(), resolution)
    }

    /// Pivots into the root and unmounts the host's.
    fn enter(self) -> Result<(), Failure> {
        sys::mount_attributes(self.tree.as_fd(), self.read_only, false)
            .map_err(Failure::at("root read-only"))?;
        let pivot = || {
            rustix::process::fchdir(&self.tree)?;
            rustix::process::pivot_root(".", ".")?;
            rustix::mount::unmount(".", UnmountFlags::DETACH)?;
            rustix::process::chdir("/")
        };
        pivot().map_err(Failure::at("pivot_root"))
    }
}

/// An empty directory or file as a mount point.
fn make_stand_in(kind: FileType, above: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    let made = if kind == FileType::Directory {
        rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o755))
    } else {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::openat(above, name, flags, Mode::from_raw_mode(0o644)).map(drop)
    };
    match made {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// The file of the running program, if it is still the one that runs.
fn own_program() -> Result<OwnedFd, Errno> {
    const LINK: &str = "/proc/self/exe";
    let path = rustix::fs::readlink(LINK, Vec::new())?;
    let tree = clone_tree(CWD, Path::new(OsStr::from_bytes(path.as_bytes())))?;
    let (running, found) = (rustix::fs::stat(LINK)?, rustix::fs::fstat(&tree)?);
    if (running.st_dev, running.st_ino) == (found.st_dev, found.st_ino) {
        Ok(tree)
    } else {
        Err(Errno::STALE)
    }
}

/// A `/proc` of the sandbox; the outer one where the kernel refuses that, or a test left it out.
fn process_tree(profile: &Profile) -> Result<OwnedFd, Errno> {
    let attributes = READ_ONLY | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    // Without a pid namespace of its own a process may not mount a new one.
    let outer = profile.processes == Processes::Outer;
    if [outer, lacks!(profile, Proc), lacks!(profile, Processes)].contains(&true) {
        let tree = clone_tree(CWD, Path::new("/proc"))?;
        sys::mount_attributes(tree.as_fd(), attributes, true)?;
        return Ok(tree);
    }
    let context = rustix::mount::fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    let writable = attributes.difference(MountAttrFlags::MOUNT_ATTR_RDONLY);
    let tree = rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, writable)?;
    limit_processes(tree.as_fd(), profile.limits.processes);
    sys::mount_attributes(tree.as_fd(), attributes, true)?;
    Ok(tree)
}

/// Limits the number of processes on kernels (6.14 on) that count them in each namespace.
///
/// The resource limit alone has no effect for a driver that runs as root.
fn limit_processes(proc: BorrowedFd<'_>, processes: u64) {
    const SMALLEST: u64 = 301;
    const LARGEST: u64 = 4 << 20;
    let text = processes.clamp(SMALLEST, LARGEST).to_string();
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::openat(proc, "sys/kernel/pid_max", flags, Mode::empty()) {
        let _ = rustix::io::write(file, text.as_bytes());
    }
}

fn tmpfs(size: u64) -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(&context, "size", size.to_string())?;
    rustix::mount::fsconfig_set_string(&context, "mode", "755")?;
    rustix::mount::fsconfig_create(&context)?;
    rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, WRITABLE)
}

/// A detached copy of the mounts at `path`.
fn clone_tree(directory: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    if path.as_os_str().is_empty() {
        flags |= OpenTreeFlags::AT_EMPTY_PATH;
    }
    rustix::mount::open_tree(directory, path, flags)
}

fn parent(target: &Path) -> &Path {
    target.parent().unwrap_or(Path::new("/"))
}

fn name(target: &Path) -> &OsStr {
    target.file_name().unwrap_or(OsStr::new("."))
}

/// Whether a target is absolute, not the root itself, and without `..`.
fn is_plain(target: &Path) -> bool {
    let mut parts = target.components();
    parts.next() == Some(Component::RootDir)
        && target != Path::new("/")
        && parts.all(|part| matches!(part, Component::Normal(_)))
}
