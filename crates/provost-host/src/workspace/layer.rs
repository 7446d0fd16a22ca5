//! Keeps what preparation steps made, for many sandboxes to read.
//!
//! A layer contains the outputs of its step, by number. Its key is a digest of the inputs of the
//! step; its digest covers its content.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use provost_core::object::sha256;
use provost_core::path::{RawPath, RepoPath};
use rayon::prelude::*;
use rustix::fs::{AtFlags, CWD, FileType, Mode, RenameFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::directory_cache::{self, Collected, DirectoryCache, HeldDirectory, Wanted};
use super::{WorkspaceError, make_private, system};
use crate::cache;
use provost_fs::beneath::Beneath;

const MOST: usize = 2_000_000;

#[derive(Debug, Clone)]
pub struct Layers {
    directories: DirectoryCache,
}

/// A layer that stays unchanged while this value lives.
#[derive(Debug)]
pub struct Layer {
    held: HeldDirectory,
}

impl Layer {
    /// The directory of the output `number` of its step.
    pub fn output(&self, number: usize) -> PathBuf {
        self.held.files().join(number.to_string())
    }

    /// SHA-256 of its content.
    pub fn digest(&self) -> &str {
        &self.held.manifest.note
    }

    /// Size of its content.
    pub fn bytes(&self) -> u64 {
        self.held.manifest.bytes
    }

    /// Whether it was made for this holder.
    pub fn is_new(&self) -> bool {
        self.held.is_new
    }

    /// Whether it was made again, because the cached one had been modified.
    pub fn is_fixed(&self) -> bool {
        self.held.was_damaged
    }
}

impl Layers {
    /// The layers below the directory `cache`.
    pub fn new(cache: &Path) -> Self {
        Self {
            directories: DirectoryCache::new(cache.join(cache::LAYERS)),
        }
    }

    /// The layer `key`. If it is missing or was modified, `fill` makes it in an empty directory and
    /// closes it.
    pub fn hold<E: From<WorkspaceError>>(
        &self,
        key: &str,
        fill: &mut dyn FnMut(&Path) -> Result<(), E>,
    ) -> Result<Layer, E> {
        let held = self.directories.hold(key, fill)?;
        Ok(Layer { held })
    }

    /// Removes layers without a holder: those not `wanted`, then the least recently used ones until
    /// the rest fits into `room` bytes. Unfinished and discarded ones are removed too.
    pub fn collect(&self, room: u64, wanted: Wanted<'_>) -> Result<Collected, WorkspaceError> {
        self.directories.collect(room, wanted)
    }

    /// What [`Self::collect`] would remove.
    pub fn collectable(&self, room: u64, wanted: Wanted<'_>) -> Result<Collected, WorkspaceError> {
        self.directories.collectable(room, wanted)
    }
}

/// Moves the directories of `outputs` into the layer that is made in `begun`, and closes it. Each
/// output is a root and a path below it, which code in a sandbox could choose.
pub(crate) fn close(
    begun: &Path,
    key: &str,
    outputs: &[(PathBuf, RepoPath)],
) -> Result<(), WorkspaceError> {
    let files = begun.join(directory_cache::FILES);
    make_private(&files)?;
    for (number, (root, path)) in outputs.iter().enumerate() {
        let to = files.join(number.to_string());
        take(root, path, &to).map_err(system("take the output", &root.join(path.as_str())))?;
    }
    let (paths, digest) = contents(&files).map_err(system("read the layer", &files))?;
    for scrap in begun.read_dir().map_err(system("list", begun))?.flatten() {
        if scrap.file_name() != directory_cache::FILES {
            super::remove(begun, &scrap.path())?;
        }
    }
    directory_cache::finish(begun, (key, &digest), paths.iter())
}

/// Moves the directory `path` below `root` to `to`, through no symbolic link.
pub(super) fn take(root: &Path, path: &RepoPath, to: &Path) -> io::Result<()> {
    let text = path.as_str();
    let (above, name) = text.rsplit_once('/').unwrap_or(("", text));
    let above = Beneath::new(root)?.directory(above.as_bytes())?;
    let found = rustix::fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        return Err(Errno::NOTDIR.into());
    }
    rustix::fs::renameat_with(&above, name, CWD, to, RenameFlags::NOREPLACE)?;
    Ok(())
}

/// Makes the directory `path` below `root`, with its parents, through no symbolic link. An existing
/// one is no error.
pub(crate) fn make_place(root: &Path, path: &RepoPath) -> io::Result<()> {
    let mut here = Beneath::new(root)?;
    for part in path.as_str().split('/') {
        let directory = here.directory(b"")?;
        match rustix::fs::mkdirat(&directory, part, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => here = here.below(part.as_bytes())?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// An entry of a layer.
enum Entry {
    Directory,
    File(PathBuf),
    Link(PathBuf),
}

/// The paths of all files and empty directories below `root`, and a digest of everything.
pub(super) fn contents(root: &Path) -> io::Result<(Vec<RawPath>, String)> {
    let mut entries: Vec<(RawPath, u32, Entry)> = Vec::new();
    let mut leaves = Vec::new();
    let mut waiting = vec![(RawPath::new(""), root.to_owned())];
    while let Some((path, place)) = waiting.pop() {
        let mut is_empty = true;
        for entry in fs::read_dir(&place)? {
            let entry = entry?;
            is_empty = false;
            let below = path.join(entry.file_name().as_encoded_bytes());
            let facts = entry.metadata()?;
            let kind = facts.file_type();
            let what = if kind.is_dir() {
                waiting.push((below.clone(), entry.path()));
                Entry::Directory
            } else if kind.is_symlink() {
                leaves.push(below.clone());
                Entry::Link(fs::read_link(entry.path())?)
            } else if kind.is_file() {
                leaves.push(below.clone());
                Entry::File(entry.path())
            } else {
                let what = format!("`{below}` is no file, directory or link");
                return Err(io::Error::other(what));
            };
            entries.push((below, facts.permissions().mode() & 0o777, what));
            if entries.len() > MOST {
                return Err(io::Error::other(format!("more than {MOST} files")));
            }
        }
        if is_empty && place != root {
            leaves.push(path);
        }
    }
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    let line = |(path, mode, what): &(RawPath, u32, Entry)| -> io::Result<String> {
        Ok(match what {
            Entry::Directory => format!("directory {mode:o} {path}\n"),
            Entry::Link(to) => {
                let to = sha256(to.as_os_str().as_encoded_bytes());
                format!("link {to} {path}\n")
            }
            Entry::File(place) => format!("file {mode:o} {} {path}\n", hash(place)?),
        })
    };
    let lines: Vec<String> = entries.par_iter().map(line).collect::<io::Result<_>>()?;
    Ok((leaves, sha256(lines.concat().as_bytes())))
}

/// The digest of everything in the directory `root`, and the sum of the sizes of its files.
pub(crate) fn digest(root: &Path) -> io::Result<(String, u64)> {
    let (paths, digest) = contents(root)?;
    let size = |path: &RawPath| {
        let place = root.join(std::ffi::OsStr::from_bytes(path.as_bytes()));
        place.symlink_metadata().map_or(0, |facts| facts.len())
    };
    Ok((digest, paths.iter().map(size).sum()))
}

fn hash(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut file = fs::File::open(path)?;
    let mut chunk = vec![0; 64 << 10];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            length => hasher.update(&chunk[..length]),
        }
    }
    let hex = |byte: &u8| format!("{byte:02x}");
    Ok(hasher.finalize().iter().map(hex).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place(text: &str) -> RepoPath {
        RepoPath::try_from(text).unwrap()
    }

    /// Makes a layer of one output with these files, in a home of its own.
    fn fill(begun: &Path, files: &[(&str, &str)]) -> Result<(), WorkspaceError> {
        let home = begun.join("home");
        for (file, text) in files {
            let path = home.join("out").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        close(begun, "ab12", &[(home, place("out"))])
    }

    #[test]
    fn a_layer_is_made_once_and_again_after_it_was_modified() {
        let cache = tempfile::tempdir().unwrap();
        let layers = Layers::new(cache.path());
        let mut made = 0;
        let mut hold = |text: &str| {
            let mut fill = |begun: &Path| {
                made += 1;
                fs::create_dir_all(begun.join("home/out/empty")).unwrap();
                fill(begun, &[("a/b", text), ("c", "")])
            };
            let layer = layers.hold("ab12", &mut fill).unwrap();
            (layer, made)
        };
        let (first, made) = hold("one");
        assert_eq!((made, first.is_new(), first.bytes() >= 3), (1, true, true));
        assert!(!first.is_fixed());
        assert_eq!(fs::read(first.output(0).join("a/b")).unwrap(), b"one");
        let (second, made) = hold("one");
        assert_eq!((made, second.is_new()), (1, false));
        assert_eq!(second.digest(), first.digest());
        let empty = first.output(0).join("empty/new");
        drop((first, second));

        fs::write(empty, "poison").unwrap();
        let (third, made) = hold("two");
        assert_eq!((made, third.is_new(), third.is_fixed()), (2, true, true));
        assert!(!third.output(0).join("empty/new").exists());
        assert_eq!(
            layers.collect(0, &|_, _| false).unwrap().count,
            0,
            "it is held"
        );
        drop(third);
        assert_eq!(layers.collectable(0, &|_, _| false).unwrap().count, 1);
        assert_eq!(layers.collect(u64::MAX, &|_, _| true).unwrap().count, 0);
        assert_eq!(layers.collect(0, &|_, _| false).unwrap().count, 1);
    }

    #[test]
    fn an_output_that_is_a_link_or_missing_makes_no_layer() {
        let cache = tempfile::tempdir().unwrap();
        let layers = Layers::new(cache.path());
        for what in ["link", "missing", "file", "link above"] {
            let mut fill = |begun: &Path| {
                let home = begun.join("home");
                fs::create_dir(&home).unwrap();
                let mut path = place("out");
                match what {
                    "link" => symlink("/usr", home.join("out")).unwrap(),
                    "file" => fs::write(home.join("out"), "").unwrap(),
                    "link above" => {
                        symlink("/usr", home.join("out")).unwrap();
                        path = place("out/share");
                    }
                    _ => {}
                }
                close(begun, "ab12", &[(home, path)])
            };
            assert!(layers.hold("ab12", &mut fill).is_err(), "{what}");
        }
        assert_eq!(layers.collectable(0, &|_, _| false).unwrap().count, 0);
        assert!(!cache.path().join("layer/ab12.new").exists());
    }

    #[test]
    fn the_digest_sees_content_modes_links_and_empty_directories() {
        let digest = |change: &dyn Fn(&Path)| {
            let place = tempfile::tempdir().unwrap();
            fs::create_dir(place.path().join("a")).unwrap();
            fs::write(place.path().join("a/file"), "text").unwrap();
            symlink("file", place.path().join("a/link")).unwrap();
            change(place.path());
            contents(place.path()).unwrap().1
        };
        let changes: [&dyn Fn(&Path); 6] = [
            &|_| {},
            &|at| fs::write(at.join("a/file"), "other").unwrap(),
            &|at| {
                fs::set_permissions(at.join("a/file"), fs::Permissions::from_mode(0o755)).unwrap();
            },
            &|at| fs::create_dir(at.join("b")).unwrap(),
            &|at| fs::rename(at.join("a/file"), at.join("a/other")).unwrap(),
            &|at| {
                fs::remove_file(at.join("a/link")).unwrap();
                symlink("other", at.join("a/link")).unwrap();
            },
        ];
        let all: std::collections::BTreeSet<String> = changes.map(digest).into();
        assert_eq!(all.len(), changes.len());
        assert_eq!(digest(&|_| {}), digest(&|_| {}));
    }

    #[test]
    fn a_place_is_made_by_no_link() {
        let root = tempfile::tempdir().unwrap();
        make_place(root.path(), &place("a/b/c")).unwrap();
        make_place(root.path(), &place("a/b/c")).unwrap();
        assert!(root.path().join("a/b/c").is_dir());
        symlink("/tmp", root.path().join("out")).unwrap();
        assert!(make_place(root.path(), &place("out/x")).is_err());
        fs::write(root.path().join("file"), "").unwrap();
        assert!(make_place(root.path(), &place("file")).is_err());
    }
}
