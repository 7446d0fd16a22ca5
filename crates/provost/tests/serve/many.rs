//! A repository with many runs, some of which grow.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use provost_core::record::{self, Head};
use provost_testkit::stage::{Ask, Stage};

use crate::server::Server;

/// How many sealed runs there are, and how many ledgers that grow; more by these variables.
fn count(name: &str, least: usize) -> usize {
    let set = std::env::var(name).ok().and_then(|it| it.parse().ok());
    set.unwrap_or(least)
}

/// Copies of `run`, each a run of its own with a chain that holds: its directory, and the lines of
/// its ledger.
fn copy(stage: &Stage, run: &str, number: usize) -> (PathBuf, Vec<String>) {
    let id = format!("run_20200101_000000_000_{number:012x}");
    let bytes = fs::read(stage.evidence(run, "events.jsonl")).unwrap();
    let chain = record::read(&bytes, Head::genesis()).unwrap();
    let mut head = Head::genesis();
    let records = chain.records.into_iter().map(|record| {
        let mut event = record.event;
        event.run_id.clone_from(&id);
        head.append(event).line()
    });
    let lines = records.collect();
    let directory = stage.evidence(&id, "");
    fs::create_dir_all(&directory).unwrap();
    (directory, lines)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// How long a page takes, after the first answer.
fn page(server: &Server, cookie: &str, path: &str) -> Duration {
    let took = |_| {
        let since = Instant::now();
        let answer = server.get(path, cookie);
        assert_eq!(answer.status, 200, "{answer:?}");
        since.elapsed()
    };
    took(0);
    median((0..9).map(took).collect())
}

#[test]
fn many_runs_slow_no_page_down_and_a_change_is_seen_at_once() {
    let Some(stage) = Stage::with_sandbox() else {
        return;
    };
    let outcome = stage.run("echo good > src/a.txt", &Ask::default());
    let run = outcome.text("run_id").to_owned();
    let (sealed, live) = (
        count("PROVOST_SERVE_RUNS", 400),
        count("PROVOST_SERVE_LIVE", 40),
    );
    let seal = fs::read(stage.evidence(&run, "attestation.dsse.json")).unwrap();
    let make = |numbers: std::ops::Range<usize>| {
        for number in numbers {
            let (directory, lines) = copy(&stage, &run, number);
            fs::write(directory.join("events.jsonl"), lines.concat()).unwrap();
            fs::write(directory.join("attestation.dsse.json"), &seal).unwrap();
        }
    };
    let full = 60;
    make(0..full);
    let server = Server::start(&stage);
    let cookie = server.enter();
    let few = page(&server, &cookie, "/runs");
    make(full..sealed);
    let mut growing: Vec<_> = (sealed..sealed + live)
        .map(|number| {
            let (directory, mut lines) = copy(&stage, &run, number);
            let rest = lines.split_off(3);
            fs::write(directory.join("events.jsonl"), lines.concat()).unwrap();
            (directory.join("events.jsonl"), rest.into_iter())
        })
        .collect();
    let many = page(&server, &cookie, "/runs");
    let older = server.get(&format!("/runs?from={}", sealed - 50), &cookie);
    assert!(older.body.contains("Newer runs"), "{}", older.body);
    let found = server.get("/runs?q=000000000007", &cookie).body;
    assert!(
        found.contains("run_20200101_000000_000_000000000007"),
        "{found}"
    );

    let mut events = BufReader::new(server.stream("/live", &cookie));
    let mut waits = Vec::new();
    std::thread::sleep(Duration::from_millis(300));
    for round in 0..20 {
        let at = round % growing.len();
        let (path, rest) = &mut growing[at];
        let mut ledger = OpenOptions::new().append(true).open(path).unwrap();
        ledger.write_all(rest.next().unwrap().as_bytes()).unwrap();
        let since = Instant::now();
        let mut event = String::new();
        while !event.starts_with("event: changed") {
            event.clear();
            events.read_line(&mut event).unwrap();
        }
        waits.push(since.elapsed());
        std::thread::sleep(Duration::from_millis(60));
    }
    waits.sort();
    let late = waits[waits.len() * 95 / 100];
    let memory = server.memory_kib();
    println!("{sealed} sealed, {live} growing: page {few:?} and {many:?}, event p95 {late:?}");
    println!("memory {memory} KiB");
    assert!(
        many <= few * 3,
        "{few:?} with {full} runs, {many:?} with {sealed}"
    );
    assert!(late <= Duration::from_millis(500), "{waits:?}");
    assert!(memory <= 150 * 1024, "{memory} KiB");
}
