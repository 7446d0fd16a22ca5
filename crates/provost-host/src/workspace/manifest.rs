//! Records the stat data of each file of a directory, to detect later modification.
//!
//! No program can set the change time of a file, so a write, replacement or rename is detected
//! without reading the file. An added or removed entry changes the times of its directory.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_fs::stamp::Stamp;
use rayon::prelude::*;
use rustix::fs::{AtFlags, Stat};

use provost_fs::beneath::Beneath;
use provost_fs::regular_file::read as read_file;

/// The largest manifest that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// Number of hexadecimal digits of the closing hash.
const SEAL: usize = 64;

/// The stamp of a file, link or directory, without the number of its device, which may change with
/// every mount.
pub(super) fn stamp_of(stat: &Stat) -> Stamp {
    Stamp {
        device: 0,
        ..Stamp::of(stat)
    }
}

/// Stat data of everything in a directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Name of the directory; one word.
    pub(crate) name: String,
    /// A note of its maker; one word or none.
    pub(crate) note: String,
    /// Size of all files together.
    pub(crate) bytes: u64,
    /// The entries of each directory, by name; the top also contains itself, as `.`.
    directories: Vec<(RawPath, Names)>,
}

type Names = Vec<(Vec<u8>, Stamp)>;

impl Manifest {
    /// Stats `paths`, which are all files (and all empty directories) below `root`, and every
    /// directory above them.
    pub(super) fn take<'a>(
        root: &Path,
        (name, note): (&str, &str),
        paths: impl Iterator<Item = &'a RawPath>,
    ) -> std::io::Result<Self> {
        let mut names: BTreeMap<RawPath, Vec<Vec<u8>>> = BTreeMap::new();
        names.insert(RawPath::new(""), vec![b".".to_vec()]);
        for path in paths {
            enter(&mut names, path.as_bytes());
        }
        let root = Beneath::new(root)?;
        let ask = |(directory, names): (RawPath, Vec<Vec<u8>>)| {
            let fd = root.directory(directory.as_bytes())?;
            let ask = |name: Vec<u8>| look(&fd, &name).map(|facts| (name, facts));
            let names = names.into_iter().map(ask);
            Ok((directory, names.collect::<rustix::io::Result<_>>()?))
        };
        let directories: Vec<(RawPath, Names)> = names
            .into_par_iter()
            .map(ask)
            .collect::<rustix::io::Result<_>>()?;
        let names = directories.iter().flat_map(|(_, names)| names);
        let sizes = names.map(|(_, facts)| facts.size);
        Ok(Self {
            name: name.to_owned(),
            note: note.to_owned(),
            bytes: sizes.fold(0, u64::saturating_add),
            directories,
        })
    }

    /// Whether everything in `root` is unchanged.
    pub(super) fn holds(&self, root: &Path) -> bool {
        let Ok(root) = Beneath::new(root) else {
            return false;
        };
        self.directories.par_iter().all(|(directory, names)| {
            let fd = root.directory(directory.as_bytes());
            let is = |fd: &OwnedFd, name, facts| look(fd, name).is_ok_and(|now| now == facts);
            fd.is_ok_and(|fd| names.iter().all(|(name, facts)| is(&fd, name, *facts)))
        })
    }

    /// Writes it to the new file `path`, and syncs that.
    pub(super) fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut bytes = format!("{} {} {}\n", self.name, self.note, self.bytes).into_bytes();
        for (directory, names) in &self.directories {
            bytes.extend_from_slice(directory.as_bytes());
            writeln!(bytes, "\0{}", names.len())?;
            for (name, facts) in names {
                let Stamp {
                    device: _,
                    mode,
                    size,
                    inode,
                    modified: (modified, modified_nanos),
                    changed: (changed, changed_nanos),
                } = facts;
                bytes.extend_from_slice(name);
                write!(bytes, "\0{mode} {size} {inode} ")?;
                writeln!(
                    bytes,
                    "{modified} {modified_nanos} {changed} {changed_nanos}"
                )?;
            }
        }
        let seal = sha256(&bytes);
        bytes.extend_from_slice(seal.as_bytes());
        let mut file = std::fs::File::create_new(path)?;
        file.write_all(&bytes)?;
        file.sync_all()
    }

    /// Reads what [`Self::write`] wrote; `None` for anything else.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let bytes = read_file(path, LARGEST).ok()??;
        let body = bytes.split_at_checked(bytes.len().checked_sub(SEAL)?)?.0;
        if sha256(body).as_bytes() != &bytes[body.len()..] {
            return None;
        }
        let mut rest = body;
        let head: Vec<&str> = line(&mut rest)?.split(' ').collect();
        let [title, note, bytes] = head[..] else {
            return None;
        };
        let mut directories = Vec::new();
        while !rest.is_empty() {
            let directory = RawPath::new(name(&mut rest)?);
            let count: usize = line(&mut rest)?.parse().ok()?;
            let mut names = Names::new();
            for _ in 0..count {
                let name = name(&mut rest)?.to_vec();
                names.push((name, facts(line(&mut rest)?)?));
            }
            directories.push((directory, names));
        }
        Some(Self {
            name: title.to_owned(),
            note: note.to_owned(),
            bytes: bytes.parse().ok()?,
            directories,
        })
    }
}

/// Adds `path` to its directory, and every directory above it that is missing.
fn enter(names: &mut BTreeMap<RawPath, Vec<Vec<u8>>>, path: &[u8]) {
    let mut path = path;
    loop {
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let (directory, name) = match slash {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&path[..0], path),
        };
        let known = names.entry(RawPath::new(directory)).or_default();
        let is_first = known.is_empty();
        known.push(name.to_vec());
        if !is_first {
            return;
        }
        path = directory;
    }
}

fn look(directory: &OwnedFd, name: &[u8]) -> rustix::io::Result<Stamp> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(stamp_of(&stat))
}

fn name<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (name, others) = rest.split_at(end);
    *rest = &others[1..];
    Some(name)
}

fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (line, others) = rest.split_at(end);
    *rest = &others[1..];
    std::str::from_utf8(line).ok()
}

fn facts(line: &str) -> Option<Stamp> {
    let mut words = line.split(' ');
    let mut word = || words.next();
    let facts = Stamp {
        device: 0,
        mode: word()?.parse().ok()?,
        size: word()?.parse().ok()?,
        inode: word()?.parse().ok()?,
        modified: (word()?.parse().ok()?, word()?.parse().ok()?),
        changed: (word()?.parse().ok()?, word()?.parse().ok()?),
    };
    word().is_none().then_some(facts)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn checkout() -> (tempfile::TempDir, Manifest) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("tree");
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        for path in ["a/b/c/one", "a/two", "a/b/three\nlines", "four"] {
            fs::write(root.join(path), path).unwrap();
        }
        symlink("four", root.join("link")).unwrap();
        let paths = ["a/b/c/one", "a/two", "a/b/three\nlines", "four", "link"];
        let paths: Vec<RawPath> = paths.iter().map(|path| RawPath::new(*path)).collect();
        let manifest = Manifest::take(&root, ("4b82", "note"), paths.iter()).unwrap();
        (place, manifest)
    }

    #[test]
    fn a_manifest_comes_back_as_it_was_written_and_never_damaged() {
        let (place, manifest) = checkout();
        let path = place.path().join("manifest");
        manifest.write(&path).unwrap();
        assert_eq!(Manifest::read(&path), Some(manifest));
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            assert_eq!(Manifest::read(&path), None, "{at}");
            fs::write(&path, &bytes[..at]).unwrap();
            assert_eq!(Manifest::read(&path), None, "cut at {at}");
        }
    }

    #[test]
    fn whatever_was_touched_is_noticed() {
        type Touch = fn(&Path);
        let touches: [(&str, Touch); 9] = [
            ("written", |root| {
                fs::write(root.join("four"), "4our").unwrap();
            }),
            ("written and dated back", |root| {
                let file = fs::File::options()
                    .write(true)
                    .open(root.join("a/two"))
                    .unwrap();
                let before = file.metadata().unwrap().modified().unwrap();
                (&file).write_all(b"A").unwrap();
                file.set_modified(before).unwrap();
            }),
            ("replaced", |root| {
                fs::write(root.join("new"), "a/two").unwrap();
                fs::rename(root.join("new"), root.join("a/two")).unwrap();
            }),
            ("added", |root| {
                fs::write(root.join("a/b/c/new"), "").unwrap();
            }),
            ("added and removed", |root| {
                fs::write(root.join("a/b/new"), "").unwrap();
                fs::remove_file(root.join("a/b/new")).unwrap();
            }),
            ("removed", |root| {
                fs::remove_file(root.join("a/b/c/one")).unwrap();
            }),
            ("mode", |root| {
                fs::set_permissions(root.join("four"), fs::Permissions::from_mode(0o600)).unwrap();
            }),
            ("link", |root| {
                fs::remove_file(root.join("link")).unwrap();
                symlink("five", root.join("link")).unwrap();
            }),
            ("all", |root| fs::remove_dir_all(root).unwrap()),
        ];
        for (name, touch) in touches {
            let (place, manifest) = checkout();
            let root = place.path().join("tree");
            assert!(manifest.holds(&root), "{name}");
            // The clock of a file system ticks every few milliseconds.
            std::thread::sleep(std::time::Duration::from_millis(12));
            touch(&root);
            assert!(!manifest.holds(&root), "{name}");
        }
    }
}
