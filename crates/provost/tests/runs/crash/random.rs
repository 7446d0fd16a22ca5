//! Deaths at random moments. The seed is printed; `PROVOST_TEST_SEED` sets it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use super::{SLOW, at_work, salvaged, settle};
use crate::stage::{Ask, Running, Stage, until};

/// The latest moment of a death, in milliseconds; a run that is fixed takes longer.
const LATEST: u64 = 1200;
const LATEST_MENDED: u64 = 2400;

/// Fails first, and fixes that in the next attempt.
const MENDS: &str = "for i in $(seq 10); do echo $i > src/f$i; sleep 0.02; done
    if test -z \"$PROVOST_EVIDENCE\"; then echo bad > src/a.txt; else echo good > src/a.txt; fi";

/// Reads for a while, and lets everything pass.
const LOOKS: &str = r#"sleep 0.2; printf '{"verdict":"PASS","summary":"s","violations":[],' > $PROVOST_RESULT
    printf '"findings":[]}' >> $PROVOST_RESULT"#;

/// A small generator: only the moments need to differ.
struct Moments(u64);

impl Moments {
    fn new(part: u64) -> Self {
        let given = std::env::var("PROVOST_TEST_SEED").ok();
        let seed = given.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            u64::from(now.subsec_nanos())
        });
        println!("PROVOST_TEST_SEED={seed}");
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(part))
    }

    fn next(&mut self, latest: u64) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Duration::from_millis((mixed ^ (mixed >> 31)) % latest)
    }
}

/// What the workspaces are made of, and what is done in them.
#[derive(Clone, Copy, PartialEq)]
enum Ground {
    Copies,
    Overlays,
    /// Copies, in a run that is reviewed, refused and fixed.
    Fixed,
}

impl Ground {
    fn stage(self) -> Stage {
        let stage = Stage::new();
        if self == Self::Overlays {
            stage.commit(&[("provost.toml", "[workspace]\nkind = \"overlay\"\n")]);
        }
        stage
    }

    fn latest(self) -> u64 {
        match self {
            Self::Copies | Self::Overlays => LATEST,
            Self::Fixed => LATEST_MENDED,
        }
    }

    fn start(self, stage: &Stage) -> Running {
        if self != Self::Fixed {
            return stage.start(SLOW, &Ask::default());
        }
        stage.write("agent/reviewer.sh", LOOKS);
        let reviewer = format!("sh {}", stage.path("agent/reviewer.sh").display());
        let ask = Ask {
            more: &["--retries", "1", "--review-cmd", &reviewer],
            ..Ask::default()
        };
        stage.start(MENDS, &ask)
    }
}

/// Ten deaths at random moments.
fn ten(test: &str, part: u64, ground: Ground) {
    let mut moments = Moments::new(part);
    for number in 0..10 {
        let moment = moments.next(ground.latest());
        let name = format!("{test}: {number}, after {moment:?}");
        let stage = ground.stage();
        let before = stage.surroundings();
        let running = ground.start(&stage);
        std::thread::sleep(moment);
        running.signal(Signal::KILL);
        let outcome = running.wait();
        let code = settle(&stage, &before, &name);
        println!("{name}: exit {}, then {code:?}", outcome.exit);
        // No run at all is right only when nothing was begun.
        let begun = stage.last_run().is_some();
        match code {
            Some(code) => assert_eq!(code, "OK", "{name}"),
            None => assert!(!begun || outcome.exit != 0, "{name}"),
        }
    }
}

/// Ten deaths a test, so that the tests can run side by side.
macro_rules! deaths {
    ($($name:ident: $part:expr, $ground:expr;)+) => {
        $(#[test] fn $name() { ten(stringify!($name), $part, $ground); })+
    };
}

deaths! {
    ten_deaths_of_a_copy: 1, Ground::Copies;
    ten_more_deaths_of_a_copy: 2, Ground::Copies;
    another_ten_deaths_of_a_copy: 3, Ground::Copies;
    a_fourth_ten_deaths_of_a_copy: 4, Ground::Copies;
    ten_deaths_of_a_run_that_is_fixed: 5, Ground::Fixed;
    ten_more_deaths_of_a_run_that_is_fixed: 6, Ground::Fixed;
    ten_deaths_of_an_overlay: 7, Ground::Overlays;
    ten_more_deaths_of_an_overlay: 8, Ground::Overlays;
    another_ten_deaths_of_an_overlay: 9, Ground::Overlays;
    the_last_ten_deaths_of_an_overlay: 10, Ground::Overlays;
}

/// A driver that dies before its first record leaves a directory, which must not stop the others.
#[test]
fn a_run_that_never_began_stops_no_other() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let (running, run) = at_work(
        &stage,
        "echo started; sleep 1; echo good > src/a.txt",
        "started",
    );
    running.signal(Signal::KILL);
    running.wait();
    for (name, file) in [("0", "driver.lock"), ("1", "events.jsonl")] {
        let never = format!("repo/.provost/runs/run_20200101_000000_00000000000{name}");
        stage.write(&format!("{never}/{file}"), "");
    }
    settle(&stage, &before, "never");
    let shown = stage.ask(&["show", &run, "--json"]);
    assert_eq!(shown.code(), "OK", "{shown:?}");
}

/// Half the work is on disk when the driver dies: that half is kept, and all of it is done again.
#[test]
fn work_is_salvaged_from_an_agent_that_dies_with_its_driver() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let script = "if test -e ~/second; then echo good > src/a.txt; exit; fi
        touch ~/second; echo half > src/half.txt; echo half > docs/half.md
        mkdir target; echo x > target/ignored; echo started; sleep 1000";
    let (running, _) = at_work(&stage, script, "started");
    running.signal(Signal::KILL);
    running.wait();
    assert_eq!(settle(&stage, &before, "salvage").as_deref(), Some("OK"));

    let tree = salvaged(&stage, 1).unwrap();
    let names = stage.git(&["ls-tree", "-r", "--name-only", &tree]);
    for name in ["src/half.txt", "docs/half.md"] {
        assert!(names.lines().any(|one| one == name), "{names}");
    }
    let shown = stage.ask(&["show", "--json"]);
    assert_eq!(shown.json["attempts"], 2, "{shown:?}");
    assert_eq!(
        shown.json["changed_files"],
        serde_json::json!(["src/a.txt"])
    );
    let list = stage.ask(&["salvage", "list"]);
    assert!(String::from_utf8_lossy(&list.stdout).contains("refs/provost/salvage/"));
}

/// An agent that takes its driver down every time is not tried for ever.
#[test]
fn an_agent_that_is_lost_again_and_again_is_given_up() {
    let stage = Stage::new();
    let before = stage.surroundings();
    let script = "echo x >> ~/attempts; echo started; sleep 1000";
    let (mut running, run) = at_work(&stage, script, "started");
    for attempt in 1..=3 {
        until("the agent works", || {
            stage.printed_in(&run).matches("started").count() == attempt
        });
        running.signal(Signal::KILL);
        running.wait();
        stage.await_silence("lost");
        running = stage.spawn(stage.provost(&["resume", &run, "--json"]));
    }
    let outcome = running.wait();
    assert_eq!(
        outcome.json[0]["verdict"]["code"], "AGENT_LOST",
        "{outcome:?}"
    );
    assert_eq!(outcome.exit, 1);
    stage.assert_clean(&before, "lost");
}

/// A base that this file system cannot hold: what was made of it so far is removed.
#[test]
fn a_workspace_that_cannot_be_made_leaves_nothing() {
    let stage = Stage::new();
    let blob = stage.git(&["rev-parse", "HEAD:check.sh"]);
    let name = "n".repeat(300);
    stage.git(&["config", "core.protectHFS", "false"]);
    let entry = format!("100644,{blob},z/{name}");
    stage.git(&["update-index", "--add", "--cacheinfo", &entry]);
    stage.git(&["commit", "-q", "-m", "a name too long for a file"]);
    let before = stage.surroundings();
    let outcome = stage.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(
        (outcome.exit, outcome.code()),
        (4, "HOST_FAILED"),
        "{outcome:?}"
    );
    stage.assert_clean(&before, "too long");
    assert_eq!(
        salvaged(&stage, 1),
        None,
        "no agent worked, so there is no work"
    );
}
