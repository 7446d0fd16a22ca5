//! Reads refs from the files that git keeps them in, where these are plain, and adds new ones.
//!
//! Starting git takes longer than starting a sandbox, and most questions about refs are answered by
//! one small file.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use provost_core::object::{ObjectFormat, Oid};
use provost_fs::atomic;

use super::refs::check;

/// The files are less plain than this module reads; git must answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AskGit;

/// Result of making a ref.
#[derive(Debug)]
pub(super) enum Made {
    /// The ref was created and synced.
    New,
    /// The ref existed with the same object, and is synced.
    Same,
    /// The ref exists, but syncing failed.
    Unsynced(io::Error),
}

/// The longest configuration that is read, in bytes.
const LONGEST_CONFIG: u64 = 1 << 20;

/// The longest list of packed refs that is read, in bytes.
const LONGEST_LIST: u64 = 4 << 20;

/// How long to wait for a lock on a new ref; `git pack-refs` holds one for moments.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest file of one ref, in bytes.
const LONGEST_REF: u64 = 4096;

/// Whether the repository names objects by SHA-1 and keeps refs in files.
///
/// Both hold unless the section `extensions` says otherwise. Git reads that section only in this
/// file, not in an included one.
pub(super) fn is_plain(common_dir: &Path) -> bool {
    let Ok(Some(text)) = read(&common_dir.join("config"), LONGEST_CONFIG) else {
        return false;
    };
    !text
        .to_ascii_lowercase()
        .windows(10)
        .any(|word| word == b"extensions")
}

/// Whether a settings file certainly lacks `name`: its last word is nowhere in the file, and
/// nothing is included. Apart from letter case, a setting's name can be written in one way only.
pub(super) fn lacks(file: &Path, name: &str) -> bool {
    let Ok(Some(text)) = read(file, LONGEST_CONFIG) else {
        return false;
    };
    let text = text.to_ascii_lowercase();
    let word = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
    !word.is_empty() && !has(word.as_bytes()) && !has(b"include")
}

/// The branch that `HEAD` names.
pub(super) fn head(git_dir: &Path) -> Result<String, AskGit> {
    let text = read(&git_dir.join("HEAD"), LONGEST_REF)?.ok_or(AskGit)?;
    let text = String::from_utf8(text).map_err(|_| AskGit)?;
    let branch = text.strip_prefix("ref: ").ok_or(AskGit)?;
    let branch = branch.strip_suffix('\n').ok_or(AskGit)?;
    check(branch, &["refs/heads/"]).map_err(|_| AskGit)?;
    Ok(branch.to_owned())
}

/// The object of the ref `name`, if the ref exists; all checkouts share it.
pub(super) fn value(common_dir: &Path, name: &str) -> Result<Option<Oid>, AskGit> {
    let shared = ["refs/heads/", "refs/provost/"];
    if !shared.iter().any(|prefix| name.starts_with(prefix)) {
        return Err(AskGit);
    }
    // In this order, as git does: a ref stays loose until the packed list is written.
    if let Some(text) = read(&common_dir.join(name), LONGEST_REF)? {
        return oid(text.strip_suffix(b"\n").ok_or(AskGit)?).map(Some);
    }
    let list = read(&common_dir.join("packed-refs"), LONGEST_LIST)?.unwrap_or_default();
    let line = list.split(|byte| *byte == b'\n').find_map(|line| {
        let end = line.strip_suffix(name.as_bytes())?;
        end.strip_suffix(b" ")
    });
    line.map(oid).transpose()
}

/// Makes the ref `name`, which must not exist, whole or not at all.
///
/// No other program writes this name, so no lock file is made that a killed process would leave.
/// A lock that another process holds is waited for; after that git decides. The ref gets no reflog,
/// because it has no history. Moving an existing ref is left to git.
pub(super) fn create(common_dir: &Path, name: &str, oid: &Oid) -> Result<Made, AskGit> {
    let path = common_dir.join(name);
    let parent = path.parent().ok_or(AskGit)?;
    let made = make_directories(parent).map_err(|_| AskGit)?;
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    let until = Instant::now() + PATIENCE;
    while Path::new(&lock).symlink_metadata().is_ok() {
        if Instant::now() >= until {
            return Err(AskGit);
        }
        sleep(Duration::from_millis(10));
    }
    let is_there = value(common_dir, name)?;
    if is_there.as_ref() == Some(oid) {
        // Its maker may have died before it was on disk; a packed ref has no file.
        let synced = match File::open(&path) {
            Ok(file) => file
                .sync_all()
                .and_then(|()| atomic::sync_directory(parent)),
            Err(_) => Ok(()),
        };
        return Ok(synced.map_or_else(Made::Unsynced, |()| Made::Same));
    }
    if is_there.is_some() || is_in_the_way(common_dir, name)? {
        return Err(AskGit);
    }
    // Without a name until it is whole, so that nothing is left if this process dies.
    atomic::link_unnamed(&path, format!("{oid}\n").as_bytes(), 0o666).map_err(|_| AskGit)?;
    let mut directories = [parent]
        .into_iter()
        .chain(made.iter().map(PathBuf::as_path));
    let synced = directories
        .try_for_each(atomic::sync_directory)
        .or_else(|error| {
            // `git pack-refs` removes empty directories, after it has written the ref to disk.
            let packed = error.kind() == ErrorKind::NotFound
                && value(common_dir, name).is_ok_and(|found| found.as_ref() == Some(oid));
            if packed { Ok(()) } else { Err(error) }
        });
    Ok(synced.map_or_else(Made::Unsynced, |()| Made::New))
}

/// Makes a directory and its parents, and returns every directory that got a new entry.
fn make_directories(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let missing: Vec<&Path> = directory
        .ancestors()
        .take_while(|it| !it.is_dir())
        .collect();
    fs::create_dir_all(directory)?;
    let holders = missing.iter().filter_map(|it| it.parent());
    Ok(holders.map(Path::to_owned).collect())
}

/// Whether a packed ref has the name of a directory above `name`, or lies below `name`.
fn is_in_the_way(common_dir: &Path, name: &str) -> Result<bool, AskGit> {
    let list = read(&common_dir.join("packed-refs"), LONGEST_LIST)?.unwrap_or_default();
    let is_part = |long: &[u8], short: &[u8]| {
        let rest = long.strip_prefix(short);
        rest.is_some_and(|rest| rest.first() == Some(&b'/'))
    };
    Ok(list.split(|byte| *byte == b'\n').any(|line| {
        let packed = line.splitn(2, |byte| *byte == b' ').nth(1);
        packed.is_some_and(|packed| {
            is_part(packed, name.as_bytes()) || is_part(name.as_bytes(), packed)
        })
    }))
}

fn oid(text: &[u8]) -> Result<Oid, AskGit> {
    let text = std::str::from_utf8(text).map_err(|_| AskGit)?;
    let oid = Oid::try_from(text).ok();
    oid.filter(|oid| oid.format() == ObjectFormat::Sha1)
        .ok_or(AskGit)
}

/// The bytes of a regular file, if it exists.
fn read(path: &Path, longest: u64) -> Result<Option<Vec<u8>>, AskGit> {
    match fs::symlink_metadata(path) {
        Ok(data) if data.is_file() && data.len() <= longest => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Ok(_) | Err(_) => return Err(AskGit),
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|_| AskGit)?;
    let read = file.take(longest + 1).read_to_end(&mut bytes);
    read.map_err(|_| AskGit)?;
    // The file may have grown since its size was read.
    let fits = bytes.len() as u64 <= longest;
    if fits { Ok(Some(bytes)) } else { Err(AskGit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        place
    }

    #[test]
    fn a_repository_with_extensions_is_not_plain() {
        let plain = |config: &str| is_plain(directory(&[("config", config)]).path());
        assert!(plain("[core]\n\tbare = false\n"));
        assert!(!plain("[extensions]\n\tobjectFormat = sha256\n"));
        assert!(!plain("[Extensions]\n\trefStorage = reftable\n"));
        assert!(
            !is_plain(directory(&[]).path()),
            "a missing configuration is not plain"
        );
    }

    #[test]
    fn a_setting_is_surely_missing_only_where_its_word_and_includes_are() {
        let lacks = |config: &str| {
            let place = directory(&[("config", config)]);
            super::lacks(&place.path().join("config"), "core.excludesFile")
        };
        assert!(lacks("[core]\n\tbare = false\n") && lacks(""));
        assert!(!lacks("[core]\n\tEXCLUDESFILE = /a\n"));
        assert!(!lacks("[Include]\n\tpath = other\n"));
        let place = directory(&[]);
        assert!(!super::lacks(
            &place.path().join("config"),
            "core.excludesFile"
        ));
    }

    #[test]
    fn head_is_read_when_it_names_a_branch() {
        let head = |text: &str| head(directory(&[("HEAD", text)]).path());
        assert_eq!(head("ref: refs/heads/a/b\n").unwrap(), "refs/heads/a/b");
        for odd in [
            A,
            "ref: refs/tags/x\n",
            "ref: refs/heads/../x\n",
            "ref: refs/heads/x",
            "",
        ] {
            assert_eq!(head(odd), Err(AskGit), "{odd}");
        }
    }

    #[test]
    fn a_new_ref_is_made_and_nothing_in_its_way_is_touched() {
        let list = format!("{B} refs/provost/old\n{B} refs/provost/a/b/c\n{B} refs/provost/k\n");
        let files = [
            ("packed-refs", list.as_str()),
            ("refs/provost/file", &format!("{B}\n")),
            ("refs/provost/same", &format!("{A}\n")),
            ("refs/provost/directory/x", &format!("{B}\n")),
            ("refs/provost/locked.lock", ""),
        ];
        let place = directory(&files);
        let oid = Oid::try_from(A).unwrap();
        let cases = [
            ("new", true),
            ("runs/deep/1", true),
            ("same", true),
            ("old", false),
            ("a/b", false),
            ("k/below", false),
            ("kk/below", true),
            ("file", false),
            ("file/below", false),
            ("directory", false),
            ("locked", false),
        ];
        for (name, want) in cases {
            let name = format!("refs/provost/{name}");
            let made = create(place.path(), &name, &oid);
            let made = matches!(made, Ok(Made::New | Made::Same));
            assert_eq!(made, want, "{name}");
            let found = fs::read_to_string(place.path().join(&name)).ok();
            let is_ours = found.is_some_and(|text| text == format!("{A}\n"));
            assert_eq!(is_ours, want, "{name}");
        }
        assert!(place.path().join("refs/provost/locked.lock").exists());
    }

    #[test]
    fn a_lock_that_is_held_for_a_moment_is_waited_for() {
        let place = directory(&[("refs/provost/new.lock", "")]);
        let lock = place.path().join("refs/provost/new.lock");
        let other = std::thread::spawn(move || {
            sleep(Duration::from_millis(100));
            fs::remove_file(lock)
        });
        let made = create(place.path(), "refs/provost/new", &Oid::try_from(A).unwrap());
        assert!(matches!(made, Ok(Made::New)));
        other.join().unwrap().unwrap();
    }

    #[test]
    fn a_loose_ref_goes_before_a_packed_one() {
        let list = format!("# pack-refs with: peeled\n{B} refs/heads/main\n{B} refs/heads/old\n");
        let loose = format!("{A}\n");
        let files = [
            ("refs/heads/main", loose.as_str()),
            ("refs/heads/link", "ref: refs/heads/main\n"),
            ("refs/heads/cut", "aaaa"),
            ("packed-refs", list.as_str()),
        ];
        let place = directory(&files);
        let value = |name: &str| {
            let value = value(place.path(), &format!("refs/{name}"));
            value.map(|value| value.map(|oid| oid.to_string()))
        };
        assert_eq!(value("heads/main"), Ok(Some(A.to_owned())));
        assert_eq!(value("heads/old"), Ok(Some(B.to_owned())));
        assert_eq!(
            value("heads/ld"),
            Ok(None),
            "the end of a name is another name"
        );
        assert_eq!(
            value("heads"),
            Err(AskGit),
            "not a place that all checkouts share"
        );
        for odd in ["heads/link", "heads/cut", "bisect/bad"] {
            assert_eq!(value(odd), Err(AskGit), "{odd}");
        }
    }
}
