mod glance;
mod intents;
mod model;

use std::fs::File;
use std::time::Instant;

use rustix::fs::{FileType, Mode};

use super::*;

fn owner(pid: u32, boot: &str) -> Owner {
    Owner {
        host: "host".into(),
        boot: boot.into(),
        pid_namespace: "pid:[1]".into(),
        pid,
        started: 1,
    }
}

fn request(run_id: &str, entries: &[&str], now: i64) -> LeaseRequest {
    LeaseRequest {
        run_id: run_id.into(),
        scope: Scope::parse(entries).unwrap(),
        owner: owner(1, "boot"),
        now,
        expires_at: now + 100,
    }
}

fn everybody_lives(_: &Owner) -> bool {
    true
}

fn fence(acquired: Acquired) -> u64 {
    match acquired {
        Acquired::Granted(lease) => lease.fence,
        Acquired::Held(holders) => panic!("held by {holders:?}"),
    }
}

struct Scratch {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("registry.db");
        Self {
            _directory: directory,
            path,
        }
    }

    fn open(&self) -> SqliteRegistry {
        SqliteRegistry::open(&self.path).unwrap()
    }

    fn sql(&self, script: &str) {
        Connection::open(&self.path)
            .unwrap()
            .execute_batch(script)
            .unwrap();
    }
}

#[test]
fn a_lease_is_seen_by_others_and_ends_by_release() {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.open(), scratch.open());
    let first = request("a", &["src", "doc"], 0);
    let granted = fence(one.acquire(&first, &everybody_lives).unwrap());
    assert_eq!(two.leases().unwrap(), [first.granted(granted)]);

    let second = request("b", &["src/x", "web"], 1);
    let Acquired::Held(holders) = two.acquire(&second, &everybody_lives).unwrap() else {
        panic!("two runs share a path");
    };
    assert_eq!(holders.len(), 1);
    assert_eq!(holders[0].run_id, "a");
    assert_eq!(holders[0].paths, Scope::parse(&["src"]).unwrap().entries());

    one.release("a").unwrap();
    one.release("a").unwrap();
    assert!(fence(two.acquire(&second, &everybody_lives).unwrap()) > granted);
    assert_eq!(one.leases().unwrap().len(), 1);
}

#[test]
fn a_lost_lease_cannot_be_renewed() {
    let scratch = Scratch::new();
    let mut registry = scratch.open();
    let old = fence(
        registry
            .acquire(&request("a", &["src"], 0), &everybody_lives)
            .unwrap(),
    );
    assert!(registry.renew("a", old, 500).unwrap());
    assert!(
        registry.renew("a", old, 300).unwrap(),
        "an earlier end is no end"
    );
    assert_eq!(registry.leases().unwrap()[0].expires_at, 500);
    assert!(!registry.renew("a", old + 1, 600).unwrap());
    assert!(!registry.renew("b", old, 600).unwrap());
    assert!(!registry.renew("a", u64::from(u32::MAX), 600).unwrap());
    assert!(registry.renew("a", u64::MAX, 600).is_err());

    let taken = registry.acquire(&request("b", &["src"], 500), &everybody_lives);
    assert!(fence(taken.unwrap()) > old);
    assert!(!registry.renew("a", old, 900).unwrap());
}

#[test]
fn a_fence_never_comes_back_after_a_power_failure() {
    let scratch = Scratch::new();
    let ask = |run: &str, boot: &str| {
        let mut request = request(run, &[run], 0);
        request.owner = owner(1, boot);
        fence(scratch.open().acquire(&request, &everybody_lives).unwrap())
    };
    let first = ask("a", "boot 1");
    let saved = std::fs::read(&scratch.path).unwrap();
    let last = (0..5)
        .map(|run| ask(&format!("b{run}"), "boot 1"))
        .max()
        .unwrap();
    assert_eq!(last, first + 5, "no number is skipped without need");

    // The machine starts again with everything undone that was not synced.
    std::fs::write(&scratch.path, saved).unwrap();
    assert_eq!(scratch.open().leases().unwrap().len(), 1);
    assert!(ask("c", "boot 2") > last);
}

#[test]
fn more_than_one_block_of_fences_can_be_taken() {
    let scratch = Scratch::new();
    scratch.open();
    scratch.sql("UPDATE fence SET next = 1024, reserved = 1025, boot = 'boot'");
    let mut registry = scratch.open();
    let mut ask = |run: &str| {
        fence(
            registry
                .acquire(&request(run, &[run], 0), &everybody_lives)
                .unwrap(),
        )
    };
    assert_eq!([ask("a"), ask("b"), ask("c")], [1024, 1025, 1026]);
}

#[test]
fn a_pin_is_kept_and_never_changed() {
    let scratch = Scratch::new();
    let mut registry = scratch.open();
    assert_eq!(registry.pinned("run_1").unwrap(), None);
    let pin = Pin {
        seq: 3,
        hash: "ab".into(),
    };
    registry.pin("run_1", &pin).unwrap();
    registry.pin("run_1", &pin).unwrap();
    let other = Pin {
        seq: 4,
        ..pin.clone()
    };
    assert!(matches!(
        registry.pin("run_1", &other),
        Err(StoreError::Pinned { .. })
    ));
    drop(registry);
    let mut registry = scratch.open();
    assert_eq!(registry.pinned("run_1").unwrap(), Some(pin));
}

#[test]
fn the_pin_after_the_seal_only_moves_forward() {
    let scratch = tempfile::tempdir().unwrap();
    let mut registry = SqliteRegistry::open(&scratch.path().join("registry.db")).unwrap();
    let pin = |seq: u64, hash: &str| Pin {
        seq,
        hash: hash.into(),
    };
    assert_eq!(registry.pinned_after("run_1").unwrap(), None);
    registry.pin("run_1", &pin(9, "sealed")).unwrap();
    for (seq, hash) in [(0, "a"), (0, "a"), (1, "b"), (5, "c")] {
        registry.pin_after("run_1", &pin(seq, hash)).unwrap();
    }
    for (seq, hash) in [(5, "x"), (4, "b"), (0, "a")] {
        assert!(
            matches!(
                registry.pin_after("run_1", &pin(seq, hash)),
                Err(StoreError::Pinned { .. })
            ),
            "{seq} {hash}"
        );
    }
    assert_eq!(registry.pinned_after("run_1").unwrap(), Some(pin(5, "c")));
    assert_eq!(registry.pinned("run_1").unwrap(), Some(pin(9, "sealed")));
    assert_eq!(registry.pinned_after("run_2").unwrap(), None);
}

type Make = fn(&Scratch);

/// Puts something at the path of the registry; it must be refused in time and left unchanged.
fn refused(name: &str, make: Make, want: &str) {
    let scratch = Scratch::new();
    make(&scratch);
    let look = || {
        let stat = std::fs::symlink_metadata(&scratch.path);
        stat.is_ok_and(|stat| stat.is_file())
            .then(|| std::fs::read(&scratch.path).unwrap())
    };
    let before = look();
    let begin = Instant::now();
    let answer = SqliteRegistry::open(&scratch.path)
        .and_then(|mut registry| registry.acquire(&request("a", &["a"], 0), &everybody_lives));
    let Err(error) = answer else {
        panic!("{name} was taken for a registry");
    };
    assert!(error.to_string().contains(want), "{name}: {error}");
    assert!(begin.elapsed().as_secs() < 5, "{name} took too long");
    assert_eq!(look(), before, "{name} was changed");
}

fn fifo(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

#[test]
fn a_database_that_is_not_ours_is_refused_and_left_as_it_is() {
    let newer = |at: &Scratch| {
        at.open();
        at.sql("PRAGMA user_version = 99");
    };
    let older = |at: &Scratch| {
        at.open();
        at.sql("PRAGMA user_version = 0");
    };
    let cut = |at: &Scratch| {
        at.open();
        let file = File::options().write(true).open(&at.path).unwrap();
        file.set_len(5000).unwrap();
    };
    let cases: [(&str, Make, &str); 6] = [
        (
            "newer",
            newer,
            "has schema 99, this program knows up to 3; use a newer provost",
        ),
        (
            "older than the first",
            older,
            "is a database of another program",
        ),
        (
            "foreign",
            |at| at.sql("CREATE TABLE x (y)"),
            "is a database of another program",
        ),
        (
            "text",
            |at| std::fs::write(&at.path, "hello\n".repeat(99)).unwrap(),
            "cannot be used",
        ),
        (
            "zeros",
            |at| std::fs::write(&at.path, [0; 8192]).unwrap(),
            "cannot be used",
        ),
        ("cut", cut, "cannot be used"),
    ];
    for (name, make, want) in cases {
        refused(name, make, want);
    }
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let link = |at: &Scratch| {
        std::os::unix::fs::symlink(at.path.with_extension("other"), &at.path).unwrap();
    };
    let cases: [(&str, Make, &str); 5] = [
        (
            "directory",
            |at| std::fs::create_dir(&at.path).unwrap(),
            "is a directory",
        ),
        ("fifo", |at| fifo(&at.path), "is a FIFO"),
        ("link", link, "is a symbolic link"),
        (
            "fifo for a lock",
            |at| fifo(&at.path.with_extension("lock")),
            "is a FIFO",
        ),
        (
            "fifo for a log",
            |at| fifo(&at.path.with_extension("db-wal")),
            "is a FIFO",
        ),
    ];
    for (name, make, want) in cases {
        refused(name, make, want);
    }
    assert!(SqliteRegistry::open(&Scratch::new().path.join("x/registry.db")).is_err());
    assert!(SqliteRegistry::open(Path::new("/")).is_err());
}

#[test]
fn a_row_that_does_not_parse_denies_instead_of_being_skipped() {
    let damages = [
        "UPDATE lease SET scope = '[\"../x\"]'",
        "UPDATE lease SET scope = 'x'",
        "UPDATE lease SET owner = '{}'",
        "UPDATE lease SET fence = -1",
        "DELETE FROM fence",
    ];
    for damage in damages {
        let scratch = Scratch::new();
        let mut registry = scratch.open();
        fence(
            registry
                .acquire(&request("a", &["src"], 0), &everybody_lives)
                .unwrap(),
        );
        scratch.sql(damage);
        let answer = registry.acquire(&request("b", &["web"], 0), &everybody_lives);
        assert!(answer.is_err(), "{damage}: {answer:?}");
    }
}

#[test]
fn a_damaged_page_is_an_error_and_no_panic() {
    let scratch = Scratch::new();
    let mut registry = scratch.open();
    for run in 0..40 {
        let name = format!("run-{run}");
        fence(
            registry
                .acquire(&request(&name, &[&name], 0), &everybody_lives)
                .unwrap(),
        );
    }
    assert_eq!(registry.damage().unwrap(), None);
    drop(registry);
    let whole = std::fs::read(&scratch.path).unwrap();
    for place in (100..whole.len()).step_by(whole.len() / 60) {
        let mut bytes = whole.clone();
        let end = (place + 64).min(bytes.len());
        bytes[place..end].fill(0xff);
        std::fs::write(&scratch.path, &bytes).unwrap();
        let Ok(mut registry) = SqliteRegistry::open(&scratch.path) else {
            continue;
        };
        // Damage of unused bytes may go unnoticed; an existing lease must not be granted again.
        let again = registry.acquire(&request("other", &["run-7"], 1), &everybody_lives);
        assert!(!matches!(again, Ok(Acquired::Granted(_))), "byte {place}");
        let _ = registry.damage();
    }
}
