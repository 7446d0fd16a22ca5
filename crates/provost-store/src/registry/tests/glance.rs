//! Queries on an idle registry.

use std::fs;
use std::path::Path;

use super::*;

fn pin() -> Pin {
    Pin {
        seq: 3,
        hash: "ab".into(),
    }
}

fn seen(path: &Path) -> Option<Pin> {
    SqliteRegistry::glance(path, |registry| registry.pinned("run_1")).unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_registry_at_rest_is_read_as_it_lies_there() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a b%41?x=1#é");
    fs::create_dir(&directory).unwrap();
    let path = directory.join("registry.db");
    let mut registry = SqliteRegistry::open(&path).unwrap();
    registry.pin("run_1", &pin()).unwrap();
    drop(registry);
    let before = (fs::read(&path).unwrap(), names(&directory));
    let during = SqliteRegistry::glance(&path, |registry| {
        Ok::<_, StoreError>((registry.pinned("run_1")?, names(&directory)))
    });
    assert_eq!(during.unwrap(), (Some(pin()), before.1.clone()));
    assert_eq!((fs::read(&path).unwrap(), names(&directory)), before);
    assert_eq!(before.1, ["registry.db", "registry.lock"]);
}

#[test]
fn what_others_wrote_is_seen_while_they_have_it_open_and_after_they_died() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("registry.db");
    let mut registry = SqliteRegistry::open(&path).unwrap();
    assert_eq!(seen(&path), None);
    registry.pin("run_1", &pin()).unwrap();
    assert_eq!(seen(&path), Some(pin()));
    // State after a kill: a log that was not merged into the database.
    let left = tempfile::tempdir().unwrap();
    for name in ["registry.db", "registry.db-wal"] {
        fs::copy(scratch.path().join(name), left.path().join(name)).unwrap();
    }
    assert_eq!(seen(&left.path().join("registry.db")), Some(pin()));
    drop(registry);
    assert_eq!(seen(&path), Some(pin()));
}

#[test]
fn a_database_of_others_is_refused_like_by_an_opening() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("registry.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE pin (x)").unwrap();
    drop(other);
    let answer = SqliteRegistry::glance(&path, |registry| registry.pinned("run_1"));
    assert!(matches!(answer, Err(StoreError::Foreign { .. })));
}
