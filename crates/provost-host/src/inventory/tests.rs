use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime};

use super::*;

fn path(text: &str) -> RepoPath {
    RepoPath::try_from(text).unwrap()
}

/// Moves the modification time of a file into the past; its change time stays now.
fn age(file: &Path, seconds: u64) {
    let file = fs::File::options().write(true).open(file).unwrap();
    let time = SystemTime::now() - Duration::from_secs(seconds);
    file.set_modified(time).unwrap();
}

/// The files below `root`, read with the cache, which is updated.
fn files_of(root: &Path, cache: Option<&mut Cache>) -> Result<Files, InventoryError> {
    let inventory = take(root, cache.as_deref())?;
    if let Some(cache) = cache {
        cache.keep(&inventory).unwrap();
    }
    Ok(inventory.into_files())
}

#[test]
fn every_file_is_listed_and_no_link_followed() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("root");
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::create_dir_all(root.join("a/.git")).unwrap();
    fs::write(root.join(".git/config"), "x").unwrap();
    fs::write(root.join("a/.git/config"), "x").unwrap();
    fs::write(root.join("a/b/file"), "hello").unwrap();
    fs::write(root.join("empty"), "").unwrap();
    fs::write(root.join("large"), vec![7; 3 * BUFFER]).unwrap();
    symlink("a/b/file", root.join("link")).unwrap();
    symlink("/", root.join("out")).unwrap();
    let fifo = root.join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let files = files_of(&root, None).unwrap();
    let names: Vec<&str> = files.keys().map(RepoPath::as_str).collect();
    let want = [
        "a/.git/config",
        "a/b/file",
        "empty",
        "fifo",
        "large",
        "link",
        "out",
    ];
    assert_eq!(names, want);
    let digest = |bytes: &[u8]| -> Sha { Sha256::digest(bytes).into() };
    assert_eq!(files[&path("a/b/file")], digest(b"hello"));
    assert_eq!(files[&path("empty")], digest(b""));
    assert_eq!(files[&path("large")], digest(&vec![7; 3 * BUFFER]));
    assert_ne!(files[&path("link")], digest(b"hello"));
}

#[test]
fn more_bytes_than_are_read_are_refused_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    let file = fs::File::create(scratch.path().join("hole")).unwrap();
    file.set_len(MOST_BYTES + 1).unwrap();
    let error = files_of(scratch.path(), None).unwrap_err();
    assert!(matches!(error, InventoryError::TooLarge(_)), "{error}");
}

#[test]
fn what_cannot_be_listed_stops_the_inventory() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a\nb"), "").unwrap();
    let error = files_of(root.path(), None).unwrap_err();
    assert!(matches!(error, InventoryError::Name { .. }), "{error}");
    let nowhere = root.path().join("nowhere");
    let error = files_of(&nowhere, None).unwrap_err();
    assert!(matches!(error, InventoryError::Open { .. }), "{error}");
    if !rustix::process::geteuid().is_root() {
        let closed = tempfile::tempdir().unwrap();
        let file = closed.path().join("file");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o0)).unwrap();
        let error = files_of(closed.path(), None).unwrap_err();
        assert!(
            matches!(error, InventoryError::Unreadable { .. }),
            "{error}"
        );
    }
}

#[test]
fn a_change_whose_times_were_set_back_is_seen_through_the_cache() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("root");
    fs::create_dir_all(&root).unwrap();
    let file = root.join("file");
    fs::write(&file, "one").unwrap();
    age(&file, 100);
    let place = outer.path().join("cache");
    let mut cache = Cache::open(&place);
    let first = files_of(&root, Some(&mut cache)).unwrap();
    // The change time is too close to the reading, so nothing may be remembered of it.
    assert!(cache.known().is_empty());
    // As if the reading had begun long after the change.
    let stat = Stamp::of(&rustix::fs::stat(&file).unwrap());
    let row = Row {
        path: path("file"),
        stat,
        sha: first[&path("file")],
        read: true,
    };
    cache.replace(&[row], stamp::now() + 10_000_000_000);
    cache.save().unwrap();
    let mut cache = Cache::open(&place);
    assert_eq!(cache.known().len(), 1);
    assert_eq!(files_of(&root, Some(&mut cache)).unwrap(), first);
    let times = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, "two").unwrap();
    let handle = fs::File::options().write(true).open(&file).unwrap();
    handle.set_modified(times).unwrap();
    let second = files_of(&root, Some(&mut cache)).unwrap();
    assert_ne!(second, first);
    assert_eq!(second, files_of(&root, None).unwrap());
}

#[test]
fn what_the_cache_knows_is_not_read_again_and_a_damaged_cache_is_none() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("root");
    fs::create_dir_all(&root).unwrap();
    let file = root.join("file");
    fs::write(&file, "one").unwrap();
    let place = outer.path().join("cache");
    let mut cache = Cache::open(&place);
    let row = Row {
        path: path("file"),
        stat: Stamp::of(&rustix::fs::stat(&file).unwrap()),
        // Not the digest of its bytes, so that it can only come from the cache.
        sha: [9; 32],
        read: true,
    };
    cache.replace(&[row], i128::MAX);
    cache.save().unwrap();
    let mut cache = Cache::open(&place);
    assert_eq!(
        files_of(&root, Some(&mut cache)).unwrap()[&path("file")],
        [9; 32]
    );
    let mut bytes = fs::read(&place).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&place, bytes).unwrap();
    let mut cache = Cache::open(&place);
    assert!(cache.known().is_empty());
    assert_ne!(
        files_of(&root, Some(&mut cache)).unwrap()[&path("file")],
        [9; 32]
    );
}
