//! A repository with many runs, some of which grow: made by the engine, with the real store.
//!
//! `cargo xtask soak room` has the full size, and a release build.

use std::io::{BufRead as _, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use provost_load::{GrowingRun, ManyRuns};
use provost_testkit::stage::{Ask, Stage};
use serde_json::Value;

use crate::server::Server;

/// How many sealed runs there are, and how many ledgers that grow; more by these variables.
fn count(name: &str, least: usize) -> usize {
    let set = std::env::var(name).ok().and_then(|it| it.parse().ok());
    set.unwrap_or(least)
}

/// Whether the goals are those of a release build on a machine that does nothing else.
fn is_full() -> bool {
    std::env::var_os("PROVOST_SERVE_RUNS").is_some()
}

/// A maker of runs for a stage in which a run was made already.
fn maker(stage: &Stage) -> ManyRuns {
    let secret = stage.path("state/provost/secret");
    let base = stage.git(&["rev-parse", "HEAD"]);
    ManyRuns::new(&stage.path("repo/.provost"), &secret, base.trim()).unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// How long a page takes: the median of nine.
fn page(server: &Server, cookie: &str, path: &str) -> Duration {
    let took = |_| {
        let since = Instant::now();
        let answer = server.get(path, cookie);
        assert_eq!(answer.status, 200, "{answer:?}");
        let took = since.elapsed();
        // Each page is asked for by itself: no look of an earlier one is shared.
        thread::sleep(Duration::from_millis(60));
        took
    };
    median((0..9).map(took).collect())
}

/// Loads the list until nothing is left to read.
fn settle(server: &Server, cookie: &str) -> Duration {
    let since = Instant::now();
    while server
        .get("/runs", cookie)
        .body
        .contains("still being read")
    {
        assert!(since.elapsed() < Duration::from_mins(4));
    }
    since.elapsed()
}

/// How long it takes until the stream names a run whose ledger has grown.
fn latencies(server: &Server, token: &str, probe: &mut GrowingRun, rounds: usize) -> Vec<Duration> {
    let mut events = BufReader::new(server.api_stream("/api/v1/events", token));
    let mut next = |wanted: &str| {
        let mut line = String::new();
        while !line.contains(wanted) {
            line.clear();
            events.read_line(&mut line).unwrap();
        }
    };
    next("reset");
    thread::sleep(Duration::from_millis(500));
    let mut waits = Vec::new();
    for round in 0..rounds {
        assert!(probe.grow().unwrap(), "round {round}");
        let since = Instant::now();
        next(&probe.id);
        waits.push(since.elapsed());
        // No multiple of the period of the server.
        thread::sleep(Duration::from_millis(83));
    }
    waits.sort();
    waits
}

#[test]
fn many_runs_slow_no_page_down_and_a_change_is_seen_at_once() {
    let Some(stage) = Stage::with_sandbox() else {
        return;
    };
    stage.run("echo good > src/a.txt", &Ask::default());
    let (sealed, live) = (
        count("PROVOST_SERVE_RUNS", 30),
        count("PROVOST_SERVE_LIVE", 5),
    );
    let made = Instant::now();
    let mut runs = maker(&stage);
    let ids = runs.sealed(sealed).unwrap();
    let mut growing = runs.growing(live).unwrap();
    println!(
        "{sealed} sealed and {live} growing runs made in {:?}",
        made.elapsed()
    );
    let token = stage.ask(&["serve", "token", "new", "ci", "--json"]);
    let token = token.text("token").to_owned();

    let other = Stage::new();
    let empty = Server::start(&other);
    let empty_cookie = empty.enter();
    let server = Server::start(&stage);
    let cookie = server.enter();
    println!("read in {:?}", settle(&server, &cookie));
    let found = server.get(&format!("/runs?q={}", ids[0]), &cookie).body;
    assert!(found.contains(&format!("hello from {}", ids[0])), "{found}");
    let last = server.get(&format!("/runs?from={}", sealed + live - 10), &cookie);
    assert!(last.body.contains("Newer runs") && !last.body.contains("Older runs"));

    let over = AtomicBool::new(false);
    let mut probe = growing.pop().unwrap();
    let (few, many, waits) = thread::scope(|scope| {
        scope.spawn(|| append_twice_a_second(&mut growing, &over));
        thread::sleep(Duration::from_millis(600));
        let few = page(&empty, &empty_cookie, "/runs");
        let many = page(&server, &cookie, "/runs");
        let waits = latencies(&server, &token, &mut probe, 40);
        over.store(true, Ordering::Relaxed);
        (few, many, waits)
    });
    let late = waits[waits.len() * 95 / 100];
    let memory = server.memory_kib();
    println!("empty page {few:?}, Runs {many:?}, event p95 {late:?}, memory {memory} KiB");
    drop(server);
    let again = Server::start(&stage);
    let cookie = again.enter();
    println!("read again in {:?}", settle(&again, &cookie));

    let most = if is_full() { 100 } else { 1_000 };
    // An empty page of a debug build on a busy machine says little about a full one.
    let ratio = if is_full() { 3 } else { 20 };
    assert!(many <= few * ratio, "{few:?} without a run, {many:?}");
    assert!(late <= Duration::from_millis(most), "{waits:?}");
    assert!(memory <= 150 * 1024, "{memory} KiB");
}

/// Appends an event to each ledger every half of a second, until it is over.
fn append_twice_a_second(growing: &mut [GrowingRun], over: &AtomicBool) {
    let round = Duration::from_millis(500);
    while !over.load(Ordering::Relaxed) {
        let since = Instant::now();
        for run in &mut *growing {
            run.grow().unwrap();
        }
        thread::sleep(round.saturating_sub(since.elapsed()));
    }
}

#[test]
fn a_long_transcript_and_a_large_change_are_paged_and_hostile_lines_do_no_harm() {
    let Some(stage) = Stage::with_sandbox() else {
        return;
    };
    let lines = if is_full() { 100_000 } else { 3_000 };
    let files = if is_full() { 20_000 } else { 400 };
    let longest = if is_full() { 50_000_000 } else { 2_000_000 };
    let script = format!(
        "echo good > src/a.txt\n\
         mkdir src/many; for n in $(seq {files}); do echo \"$n\" > src/many/$n.txt; done\n\
         printf '<script>alert(1)</script> \\033[2J\\033]0;x\\007 \\342\\200\\256evil\\n'\n\
         head -c {longest} /dev/zero | tr '\\0' x; echo\n\
         seq -f 'line %.0f' {lines}\n"
    );
    let more = ["--timeout", "5m"];
    let ask = Ask {
        more: &more,
        ..Ask::default()
    };
    let outcome = stage.run(&script, &ask);
    let run = outcome.text("run_id").to_owned();
    let server = Server::start(&stage);
    let cookie = server.enter();
    let token = stage.ask(&["serve", "token", "new", "ci", "--json"]);
    let token = token.text("token").to_owned();
    let all: Value =
        serde_json::from_str(&server.api("/api/v1/repositories", &token).body).unwrap();
    let repository = all["items"][0]["id"].as_str().unwrap();

    let first = server.get(&format!("/r/{repository}/{run}/transcript"), &cookie);
    assert!(first.body.contains("&lt;script&gt;alert(1)"), "{first:?}");
    for raw in ["<script>alert", "\u{1b}", "\u{202e}", "\u{7}"] {
        assert!(!first.body.contains(raw), "{raw:?}");
    }
    assert!(first.body.len() < 2_000_000, "{}", first.body.len());
    // Every line is on one of the pages, and none is on two.
    let mut seen: Vec<usize> = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let path = format!("/api/v1/runs/{repository}/{run}/transcript?cursor={cursor}");
        let page: Value = serde_json::from_str(&server.api(&path, &token).body).unwrap();
        for item in page["items"].as_array().unwrap() {
            let text = item["text"].as_str().unwrap_or_default();
            let number = text.strip_prefix("line ");
            seen.extend(number.and_then(|it| it.parse::<usize>().ok()));
        }
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
        if is_full() && cursor.len() == 4 {
            // The beginning shows the pages; a jump to the end saves thousands of them.
            cursor = (lines - 1_000).to_string();
            seen.clear();
        }
    }
    let wanted: Vec<usize> = (seen[0]..=lines).collect();
    assert_eq!(seen, wanted);

    let at = format!("/r/{repository}/{run}/change");
    let last = server
        .get(&format!("{at}?from={}", files * 7), &cookie)
        .body;
    let (_, shown) = last.split_once("Lines ").unwrap();
    let shown = shown.split('<').next().unwrap();
    let total: usize = shown.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(total >= files * 7, "{shown}");
    assert!(
        last.contains("Earlier lines") && !last.contains("Later lines"),
        "{shown}"
    );
    let memory = server.memory_kib();
    println!("{lines} lines, {files} files: memory {memory} KiB");
    assert!(memory <= 150 * 1024, "{memory} KiB");
}

/// How many seconds of CPU the children of this process took that have ended.
fn cpu_of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    // User and system time of children, in hundredths of a second.
    (ticks(13) + ticks(14)) / 100.0
}

#[test]
#[ignore = "takes minutes; a part of `cargo xtask soak room`"]
fn a_run_beside_a_busy_server_takes_no_more_cpu() {
    let Some(stage) = Stage::with_sandbox() else {
        return;
    };
    let script = "echo good > src/a.txt; n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done";
    let cost = || {
        let before = cpu_of_children();
        let outcome = stage.run(script, &Ask::default());
        assert_eq!(outcome.exit, 0, "{outcome:?}");
        cpu_of_children() - before
    };
    cost();
    let server = Server::start(&stage);
    let cookie = server.enter();
    let _listener = server.stream("/live", &cookie);
    let over = AtomicBool::new(false);
    let busy = AtomicBool::new(false);
    let ratios = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if busy.load(Ordering::Relaxed) {
                    assert_eq!(server.get("/runs", &cookie).status, 200);
                }
                // Twenty pages a second.
                thread::sleep(Duration::from_millis(50));
            }
        });
        let mut ratios: Vec<f64> = Vec::new();
        for pair in 0..9 {
            let mut costs = [0.0; 2];
            // The order alternates, so that what changes with time hits both.
            for turn in [pair % 2, 1 - pair % 2] {
                busy.store(turn == 1, Ordering::Relaxed);
                costs[turn] = cost();
            }
            ratios.push(costs[1] / costs[0]);
        }
        over.store(true, Ordering::Relaxed);
        ratios
    });
    let mut sorted = ratios.clone();
    sorted.sort_by(f64::total_cmp);
    println!("CPU of a run beside the load: {sorted:.2?}");
    assert!(sorted[4] <= 1.1, "{ratios:?}");
}
