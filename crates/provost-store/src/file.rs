//! Opens the files of the store, and nothing but regular files.
//!
//! A path may lead to a FIFO that blocks, a link that leads elsewhere or a directory. Every file is
//! opened without following a link and without waiting, and used only if it is regular. Descriptors
//! close on exec, so no child inherits a lock.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use provost_fs::atomic;
pub(crate) use provost_fs::atomic::directory_of;
use rustix::fs::{FileType, Mode, OFlags, Stat};

use crate::error::StoreError;

/// Opens the regular file at `path` with these `flags`; a new file is private to its user.
pub(crate) fn open(path: &Path, flags: OFlags) -> Result<(File, Stat), StoreError> {
    // Checked before opening, because the error from opening a link or a directory is misleading.
    if let Ok(stat) = rustix::fs::lstat(path) {
        require_regular(path, &stat)?;
    }
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let descriptor = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(StoreError::io("open", path))?;
    let file = File::from(descriptor);
    let stat = rustix::fs::fstat(&file).map_err(StoreError::io("look at", path))?;
    require_regular(path, &stat)?;
    Ok((file, stat))
}

pub(crate) fn require_regular(path: &Path, stat: &Stat) -> Result<(), StoreError> {
    let found = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something unknown",
    };
    Err(StoreError::NotRegular {
        path: path.to_owned(),
        found,
    })
}

/// Whether both describe the same file.
pub(crate) fn same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// Makes `directory` and its parents where missing; what was made survives a crash.
pub(crate) fn make_directories(directory: &Path) -> Result<(), StoreError> {
    atomic::make_directories(directory).map_err(StoreError::io("make", directory))
}

/// Makes the entry `path` of its directory survive a crash.
pub(crate) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    let directory = directory_of(path);
    atomic::sync_directory(directory).map_err(StoreError::io("sync", directory))
}

/// `path` with the links of its directory resolved; the last component is left as it is.
pub(crate) fn resolve_directory(path: &Path) -> Result<PathBuf, StoreError> {
    let missing = || io::Error::from(io::ErrorKind::InvalidFilename);
    let name = path
        .file_name()
        .ok_or_else(|| StoreError::io("open", path)(missing()))?;
    let directory = directory_of(path)
        .canonicalize()
        .map_err(StoreError::io("find the directory of", path))?;
    Ok(directory.join(name))
}

/// Refuses a directory on a file system that other machines write as well.
pub(crate) fn refuse_network(path: &Path) -> Result<(), StoreError> {
    let directory = directory_of(path);
    let facts = rustix::fs::statfs(directory).map_err(StoreError::io("look at", directory))?;
    // The kernel keeps 32 bits; the field is wider and signed on some machines.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "file system numbers have 32 bits"
    )]
    let number = facts.f_type as u32;
    if remote_file_system(number).is_some() {
        return Err(StoreError::Network {
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// Network file systems, by their number in `statfs`.
const REMOTE: [(u32, &str); 9] = [
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
    (0x7375_7245, "coda"),
    (0x564c, "ncp"),
];

/// The name of the file system with this number, if other machines write it as well.
pub fn remote_file_system(number: u32) -> Option<&'static str> {
    let found = REMOTE.iter().find(|(remote, _)| *remote == number);
    found.map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_a_regular_file_is_opened() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        std::fs::write(at("file"), "x").unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        symlink(at("file"), at("link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();

        let check = |path: &Path| match open(path, OFlags::RDWR) {
            Ok(_) => "opened".to_owned(),
            Err(StoreError::NotRegular { found, .. }) => found.to_owned(),
            Err(StoreError::Io { source, .. }) => source.kind().to_string(),
            Err(other) => other.to_string(),
        };
        let cases = [
            ("file", "opened"),
            ("directory", "a directory"),
            ("link", "a symbolic link"),
            ("fifo", "a FIFO"),
            ("socket", "a socket"),
            ("nothing", "entity not found"),
        ];
        for (name, want) in cases {
            assert_eq!(check(&at(name)), want, "{name}");
        }
        assert_eq!(check(Path::new("/dev/null")), "a device");
    }

    #[test]
    fn network_file_systems_are_known_by_number() {
        assert_eq!(remote_file_system(0x6969), Some("nfs"));
        assert_eq!(remote_file_system(0x0102_1997), Some("9p"));
        assert_eq!(remote_file_system(0xef53), None, "ext4");
        assert_eq!(remote_file_system(0x0102_1994), None, "tmpfs");
    }
}
