//! Attacks the store with real processes: many at once, and killed at any moment.
//!
//! A child is this test binary again; an environment variable names its part.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the functions around the tests are tests as well"
)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use provost_core::lease::{Acquired, LeaseRequest, Owner};
use provost_core::record::{Event, Head, Level};
use provost_core::scope::Scope;
use provost_store::ledger::{self, FileLedger};
use provost_store::lock::DriverLock;
use provost_store::registry::SqliteRegistry;
use rustix::fs::{FlockOperation, flock};
use serde_json::{Map, Value};

/// Names the directory of a child; not set in a parent.
const PLACE: &str = "PROVOST_TEST_PLACE";

const PROCESSES: u32 = 16;
const GRANTS: usize = 25;
const KILLS: u64 = 24;

/// Scopes, each with the leaves of a small tree that it covers.
const SCOPES: [(&str, &[&str]); 5] = [
    ("a", &["a-b", "a-c"]),
    ("a/b", &["a-b"]),
    ("a/c", &["a-c"]),
    ("d", &["d-e", "d-f"]),
    ("d/e", &["d-e"]),
];

fn child(part: &str, place: &Path, number: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([part, "--exact", "--nocapture", "--test-threads=1"])
        .env(PLACE, place)
        .env("PROVOST_TEST_NUMBER", number.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The directory and the number of this child; `None` in a parent.
fn part() -> Option<(PathBuf, u32)> {
    let place = std::env::var_os(PLACE)?;
    let number = std::env::var("PROVOST_TEST_NUMBER")
        .unwrap()
        .parse()
        .unwrap();
    Some((place.into(), number))
}

fn owner(pid: u32) -> Owner {
    Owner {
        host: "host".into(),
        boot: "boot".into(),
        pid_namespace: "pid:[1]".into(),
        pid,
        started: 1,
    }
}

fn request(number: u32, entry: &str) -> LeaseRequest {
    LeaseRequest {
        run_id: format!("run-{number}"),
        scope: Scope::parse(&[entry]).unwrap(),
        owner: owner(number),
        now: 0,
        expires_at: 1_000_000,
    }
}

fn everybody_lives(_: &Owner) -> bool {
    true
}

/// Enters a leaf as its only user, or fails the child; a lock of the kernel decides.
fn enter(place: &Path, leaf: &str, fence: u64) -> File {
    let path = place.join(leaf);
    let mut file = File::options()
        .create(true)
        .read(true)
        .append(true)
        .open(path)
        .unwrap();
    flock(&file, FlockOperation::NonBlockingLockExclusive).expect("two holders of one path");
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    let last = text.lines().last().map_or(0, |line| line.parse().unwrap());
    assert!(fence > last, "fence {fence} came after {last}");
    writeln!(file, "{fence}").unwrap();
    file
}

#[test]
fn part_of_a_leaseholder() {
    let Some((place, number)) = part() else {
        return;
    };
    let path = place.join("registry.db");
    let mut registry = SqliteRegistry::open(&path).unwrap();
    let mut granted = 0;
    for turn in number as usize.. {
        let (entry, leaves) = SCOPES[turn * 7 % SCOPES.len()];
        // Some turns close and reopen the database while the others work.
        if turn % 9 == 0 {
            drop(registry);
            registry = SqliteRegistry::open(&path).unwrap();
        }
        let answer = registry.acquire(&request(number, entry), &everybody_lives);
        let Acquired::Granted(lease) = answer.unwrap() else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let entered: Vec<File> = leaves
            .iter()
            .map(|leaf| enter(&place, leaf, lease.fence))
            .collect();
        println!("fence {}", lease.fence);
        assert!(
            registry
                .renew(&lease.run_id, lease.fence, 2_000_000)
                .unwrap()
        );
        drop(entered);
        registry.release(&lease.run_id).unwrap();
        granted += 1;
        if granted == GRANTS {
            return;
        }
    }
}

#[test]
fn no_two_of_many_processes_ever_hold_the_same_path() {
    let scratch = tempfile::tempdir().unwrap();
    let children: Vec<Child> = (1..=PROCESSES)
        .map(|number| child("part_of_a_leaseholder", scratch.path(), number))
        .collect();
    let mut fences = BTreeSet::new();
    let mut count = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "a leaseholder saw a conflict");
        let text = String::from_utf8(output.stdout).unwrap();
        let own: Vec<u64> = text
            .lines()
            .filter_map(|line| line.split("fence ").nth(1))
            .map(|fence| fence.parse().unwrap())
            .collect();
        assert!(own.is_sorted_by(|a, b| a < b), "{own:?}");
        count += own.len();
        fences.extend(own);
    }
    assert_eq!(count, GRANTS * PROCESSES as usize);
    assert_eq!(fences.len(), count, "a fence was given out twice");
    let mut registry = SqliteRegistry::open(&scratch.path().join("registry.db")).unwrap();
    assert_eq!(registry.leases().unwrap(), []);
    assert_eq!(registry.damage().unwrap(), None);
}

fn event(number: u64) -> Event {
    Event {
        ts: "2026-01-01T00:00:00.000Z".into(),
        level: Level::Info,
        event_type: "STEP_STARTED".into(),
        run_id: "run_1".into(),
        task_id: None,
        attempt: Some(1),
        payload: Map::from_iter([("number".to_owned(), Value::from(number))]),
        trace_id: "trace".into(),
    }
}

#[test]
fn part_of_a_writer() {
    let Some((place, number)) = part() else {
        return;
    };
    let lock = DriverLock::try_acquire(&place.join("driver.lock"), &owner(number)).unwrap();
    assert!(lock.is_some(), "the dead driver keeps its lock");
    let path = place.join("events.jsonl");
    let (mut ledger, _) = FileLedger::open_for_append(&path, Head::genesis()).unwrap();
    let mut registry = SqliteRegistry::open(&place.join("registry.db")).unwrap();
    // The previous writer is dead, whatever it held.
    let alive = |owner: &Owner| owner.pid == number;
    loop {
        let record = ledger.append(event(ledger.head().next)).unwrap();
        let answer = registry.acquire(&request(number, "a"), &alive).unwrap();
        let Acquired::Granted(lease) = answer else {
            panic!("a dead owner holds on: {answer:?}");
        };
        println!("acknowledged {} {}", record.seq, lease.fence);
        registry.release(&lease.run_id).unwrap();
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill_at_any_moment() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("events.jsonl");
    FileLedger::create(&path, Head::genesis()).unwrap();
    let (mut records, mut fence) = (0, 0);
    for round in 0..KILLS {
        let number = u32::try_from(round).unwrap() + 1;
        let mut writer = child("part_of_a_writer", scratch.path(), number);
        let mut output = BufReader::new(writer.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("acknowledged") {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "the writer failed");
        }
        // Irregular times, so that every part of a write is hit in some round.
        let end = Instant::now() + Duration::from_micros(round * round * 37 % 9_001);
        while Instant::now() < end {
            std::thread::sleep(Duration::from_micros(50));
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();

        let acknowledged: Vec<(usize, u64)> = (line + &rest)
            .lines()
            .filter_map(|line| line.split("acknowledged ").nth(1))
            .filter_map(|pair| pair.split_once(' '))
            .map(|(seq, fence)| (seq.parse().unwrap(), fence.parse().unwrap()))
            .collect();
        let chain = ledger::read(&path, Head::genesis()).unwrap();
        let (last, newest) = *acknowledged.last().unwrap();
        assert!(chain.records.len() > last, "record {last} is lost");
        assert!(chain.records.len() > records, "an older record is lost");
        assert!(acknowledged[0].1 > fence, "a fence came back");
        (records, fence) = (chain.records.len(), newest);

        let mut registry = SqliteRegistry::open(&scratch.path().join("registry.db")).unwrap();
        assert_eq!(registry.damage().unwrap(), None);
        assert!(registry.leases().unwrap().len() <= 1);
    }
}
