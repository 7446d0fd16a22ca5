//! Cached checkouts are pristine, shared, and removed only when they have no holder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use provost_core::object::Oid;
use provost_host::git::Repository;
use provost_host::workspace::{Lowers, Wanted, WorkspaceError};

use crate::scratch::{Scratch, git};

struct Ground {
    scratch: Scratch,
    repo: Repository,
    lowers: Lowers,
    trees: Vec<Oid>,
}

/// A repository with three trees.
fn ground() -> Ground {
    let scratch = Scratch::new();
    let mut trees = Vec::new();
    for number in 0..3 {
        scratch.file("number", number.to_string());
        scratch.file("dir/big", "x".repeat(100_000));
        let commit = scratch.commit();
        trees.push(scratch.open().commit_tree(&commit).unwrap());
    }
    Ground {
        repo: scratch.open(),
        lowers: Lowers::new(&scratch.cache()),
        scratch,
        trees,
    }
}

impl Ground {
    /// What lies beside the checkouts, except locks.
    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names
            .filter(|name| name.strip_suffix(".lock").is_none())
            .collect();
        names.sort();
        names
    }

    fn root(&self) -> PathBuf {
        self.scratch.cache().join("lower")
    }

    fn place(&self, at: usize) -> PathBuf {
        self.root().join(self.trees[at].as_str())
    }
}

fn wait() {
    // The clock of a file system ticks every few milliseconds.
    std::thread::sleep(Duration::from_millis(12));
}

/// Every checkout is wanted; only the room decides.
const WANTED: Wanted<'_> = &|_, _| true;

#[test]
fn a_checkout_is_made_once_and_shared() {
    let ground = ground();
    let first = ground.lowers.hold(&ground.repo, &ground.trees[0]).unwrap();
    let text = fs::read_to_string(first.files().join("number")).unwrap();
    assert_eq!(text, "0");
    assert!(!first.files().join(".git").exists());
    let made = fs::metadata(first.files()).unwrap().modified().unwrap();
    let second = ground.lowers.hold(&ground.repo, &ground.trees[0]).unwrap();
    assert_eq!(first.files(), second.files());
    let again = fs::metadata(second.files()).unwrap().modified().unwrap();
    assert_eq!(made, again);
    assert_eq!(ground.entries(), [ground.trees[0].as_str()]);
}

#[test]
fn many_at_once_use_one_checkout() {
    let ground = ground();
    let outer = ground.scratch.outer();
    std::thread::scope(|scope| {
        let hold = || {
            let repo = Repository::discover_with(&ground.scratch.root(), outer).unwrap();
            let lower = ground.lowers.hold(&repo, &ground.trees[1]).unwrap();
            fs::read_to_string(lower.files().join("number")).unwrap()
        };
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(hold)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), "1");
        }
    });
    assert_eq!(ground.entries(), [ground.trees[1].as_str()]);
}

#[test]
fn a_modified_checkout_is_made_anew() {
    type Touch = fn(&Path);
    let touches: [(&str, Touch); 8] = [
        ("written", |place| {
            fs::write(place.join("tree/number"), "7").unwrap();
        }),
        ("added", |place| {
            fs::write(place.join("tree/dir/evil"), "7").unwrap();
        }),
        ("removed", |place| {
            fs::remove_file(place.join("tree/dir/big")).unwrap();
        }),
        ("all removed", |place| {
            fs::remove_dir_all(place.join("tree")).unwrap();
        }),
        ("manifest cut", |place| {
            fs::write(place.join("manifest"), "").unwrap();
        }),
        ("manifest gone", |place| {
            fs::remove_file(place.join("manifest")).unwrap();
        }),
        ("lock gone", |place| {
            fs::remove_file(place.join("lock")).unwrap();
        }),
        ("a file", |place| {
            fs::remove_dir_all(place).unwrap();
            fs::write(place, "").unwrap();
        }),
    ];
    for (name, touch) in touches {
        let ground = ground();
        drop(ground.lowers.hold(&ground.repo, &ground.trees[2]).unwrap());
        wait();
        touch(&ground.place(2));
        let lower = ground.lowers.hold(&ground.repo, &ground.trees[2]).unwrap();
        let read = |path: &str| fs::read_to_string(lower.files().join(path));
        assert_eq!(read("number").unwrap(), "2", "{name}");
        assert_eq!(read("dir/big").unwrap().len(), 100_000, "{name}");
        assert!(read("dir/evil").is_err(), "{name}");
        assert_eq!(ground.entries(), [ground.trees[2].as_str()], "{name}");
    }
}

#[test]
fn a_bad_checkout_in_use_is_set_aside_and_removed_later() {
    let ground = ground();
    let user = ground.lowers.hold(&ground.repo, &ground.trees[0]).unwrap();
    wait();
    fs::write(user.files().join("dir/evil"), "7").unwrap();
    let fresh = ground.lowers.hold(&ground.repo, &ground.trees[0]).unwrap();
    assert!(!fresh.files().join("dir/evil").exists());
    assert_eq!(ground.entries().len(), 2);
    drop(user);
    ground.lowers.collect(u64::MAX, WANTED).unwrap();
    assert_eq!(ground.entries(), [ground.trees[0].as_str()]);
}

#[test]
fn the_least_recently_used_goes_first_and_none_that_is_used() {
    let ground = ground();
    let hold = |at: usize| ground.lowers.hold(&ground.repo, &ground.trees[at]).unwrap();
    let user = hold(0);
    for at in [1, 2, 1] {
        wait();
        drop(hold(at));
    }
    let one = 101_000;
    assert_eq!(ground.lowers.collect(u64::MAX, WANTED).unwrap().count, 0);
    let collected = ground.lowers.collect(3 * one, WANTED).unwrap();
    assert_eq!(collected.count, 1, "{collected:?}");
    assert!(!ground.place(2).exists() && ground.place(1).exists());
    assert_eq!(ground.lowers.collect(0, WANTED).unwrap().count, 1);
    assert_eq!(ground.entries(), [ground.trees[0].as_str()]);
    drop(user);
    assert_eq!(ground.lowers.collect(0, WANTED).unwrap().count, 1);
    assert!(ground.entries().is_empty());
}

#[test]
fn an_unwanted_checkout_is_removed_whatever_room_there_is() {
    let ground = ground();
    let hold = |at: usize| ground.lowers.hold(&ground.repo, &ground.trees[at]).unwrap();
    let user = hold(0);
    drop((hold(1), hold(2)));
    let name = ground.trees[1].as_str().to_owned();
    let wanted = |tree: &str, used: SystemTime| {
        assert!(used.elapsed().unwrap() < Duration::from_mins(5));
        tree == name
    };
    let collectable = ground.lowers.collectable(u64::MAX, &wanted).unwrap();
    assert_eq!(collectable.count, 1, "one is wanted and one is used");
    assert_eq!(ground.entries().len(), 3, "nothing was removed");
    let collected = ground.lowers.collect(u64::MAX, &wanted).unwrap();
    assert_eq!(collected, collectable);
    assert!(ground.place(0).exists() && ground.place(1).exists());
    drop(user);
}

#[test]
fn what_a_killed_maker_left_is_removed() {
    let ground = ground();
    let tree = &ground.trees[0];
    let left = ground.root().join(format!("{tree}.new"));
    fs::create_dir_all(left.join("tree/half")).unwrap();
    let lower = ground.lowers.hold(&ground.repo, tree).unwrap();
    assert!(!lower.files().join("half").exists());
    fs::create_dir_all(left.join("tree/half")).unwrap();
    ground.lowers.collect(u64::MAX, WANTED).unwrap();
    assert_eq!(ground.entries(), [tree.as_str()]);
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    let ground = ground();
    let nothing = git(
        &ground.scratch.root(),
        &["hash-object", "-t", "tree", "/dev/null"],
    );
    let missing = Oid::try_from(nothing.replace('4', "5")).unwrap();
    let refused = ground.lowers.hold(&ground.repo, &missing);
    assert!(
        matches!(refused, Err(WorkspaceError::Git(_))),
        "{refused:?}"
    );
    assert!(ground.entries().is_empty());

    let blocked = Lowers::new(&ground.scratch.root().join("number"));
    let refused = blocked.hold(&ground.repo, &ground.trees[0]);
    assert!(
        matches!(refused, Err(WorkspaceError::System { .. })),
        "{refused:?}"
    );
}

/// Names the repository for the second half of the next test, which runs where the disk is full.
const FULL: &str = "PROVOST_TEST_FULL_DISK";

#[test]
fn a_full_disk_is_said_and_leaves_nothing() {
    if let Some(outer) = std::env::var_os(FULL) {
        return on_a_full_disk(Path::new(&outer));
    }
    let ground = ground();
    let script = "mount -t tmpfs -o size=64k tmpfs \"$1\" && exec \"$2\" --exact \"$3\"";
    let status = std::process::Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(ground.scratch.cache())
        .arg(std::env::current_exe().unwrap())
        .arg("lower::a_full_disk_is_said_and_leaves_nothing")
        .env(FULL, ground.scratch.outer())
        .status();
    assert!(status.unwrap().success());
}

fn on_a_full_disk(outer: &Path) {
    let repo = Repository::discover_with(&outer.join("repo"), outer).unwrap();
    let tree = repo.commit_tree(&repo.resolve("HEAD").unwrap()).unwrap();
    let cache = outer.join("cache");
    for _ in 0..2 {
        let refused = Lowers::new(&cache).hold(&repo, &tree);
        let is_full = |error: &WorkspaceError| match error {
            WorkspaceError::System { source, .. } => {
                source.kind() == std::io::ErrorKind::StorageFull
            }
            _ => false,
        };
        assert!(refused.is_err_and(|error| is_full(&error)));
        let left = fs::read_dir(cache.join("lower")).unwrap();
        let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(
            names
                .into_iter()
                .all(|name| name.strip_suffix(".lock").is_some())
        );
    }
}
