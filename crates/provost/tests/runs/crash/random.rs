//! Deaths at random moments. The seed is printed; `PROVOST_TEST_SEED` sets it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use super::{SLOW, at_work, salvaged, settle};
use crate::scene::{Ask, Running, Scene, until};

/// The latest moment of a death, in milliseconds; a run that is fixed takes longer.
const LATEST: u64 = 1200;
const LATEST_MENDED: u64 = 2400;

/// Fails first, and fixes that when it is told.
const MENDS: &str = "for i in $(seq 10); do echo $i > src/f$i; sleep 0.02; done
    if test -z \"$PROVOST_EVIDENCE\"; then echo bad > src/a.txt; else echo good > src/a.txt; fi";

/// Looks a while, and lets everything pass.
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
    fn scene(self) -> Scene {
        let scene = Scene::new();
        if self == Self::Overlays {
            scene.commit(&[("provost.toml", "[workspace]\nkind = \"overlay\"\n")]);
        }
        scene
    }

    fn latest(self) -> u64 {
        match self {
            Self::Copies | Self::Overlays => LATEST,
            Self::Fixed => LATEST_MENDED,
        }
    }

    fn start(self, scene: &Scene) -> Running {
        if self != Self::Fixed {
            return scene.start(SLOW, &Ask::default());
        }
        scene.write("agent/reviewer.sh", LOOKS);
        let reviewer = format!("sh {}", scene.path("agent/reviewer.sh").display());
        let ask = Ask {
            more: &["--retries", "1", "--review-cmd", &reviewer],
            ..Ask::default()
        };
        scene.start(MENDS, &ask)
    }
}

/// Ten deaths at random moments.
fn ten(test: &str, part: u64, ground: Ground) {
    let mut moments = Moments::new(part);
    for number in 0..10 {
        let moment = moments.next(ground.latest());
        let name = format!("{test}: {number}, after {moment:?}");
        let scene = ground.scene();
        let before = scene.surroundings();
        let running = ground.start(&scene);
        std::thread::sleep(moment);
        running.signal(Signal::KILL);
        let outcome = running.wait();
        let code = settle(&scene, &before, &name);
        println!("{name}: exit {}, then {code:?}", outcome.exit);
        // No run at all is right only when nothing was begun.
        let begun = scene.last_run().is_some();
        match code {
            Some(code) => assert_eq!(code, "OK", "{name}"),
            None => assert!(!begun || outcome.exit != 0, "{name}"),
        }
    }
}

/// Ten deaths a test, so that they can go on side by side.
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
fn a_run_that_never_began_stops_nobody() {
    let scene = Scene::new();
    let before = scene.surroundings();
    let (running, run) = at_work(
        &scene,
        "echo started; sleep 1; echo good > src/a.txt",
        "started",
    );
    running.signal(Signal::KILL);
    running.wait();
    for (name, file) in [("0", "driver.lock"), ("1", "events.jsonl")] {
        let never = format!("repo/.provost/runs/run_20200101_000000_00000000000{name}");
        scene.write(&format!("{never}/{file}"), "");
    }
    settle(&scene, &before, "never");
    let shown = scene.ask(&["show", &run, "--json"]);
    assert_eq!(shown.code(), "OK", "{shown:?}");
}

/// Half the work is on disk when the driver dies: that half is kept, and all of it is done again.
#[test]
fn work_is_salvaged_from_an_agent_that_dies_with_its_driver() {
    let scene = Scene::new();
    let before = scene.surroundings();
    let script = "if test -e ~/second; then echo good > src/a.txt; exit; fi
        touch ~/second; echo half > src/half.txt; echo half > docs/half.md
        mkdir target; echo x > target/ignored; echo started; sleep 1000";
    let (running, _) = at_work(&scene, script, "started");
    running.signal(Signal::KILL);
    running.wait();
    assert_eq!(settle(&scene, &before, "salvage").as_deref(), Some("OK"));

    let tree = salvaged(&scene, 1).unwrap();
    let names = scene.git(&["ls-tree", "-r", "--name-only", &tree]);
    for name in ["src/half.txt", "docs/half.md"] {
        assert!(names.lines().any(|one| one == name), "{names}");
    }
    let shown = scene.ask(&["show", "--json"]);
    assert_eq!(shown.json["attempts"], 2, "{shown:?}");
    assert_eq!(
        shown.json["changed_files"],
        serde_json::json!(["src/a.txt"])
    );
    let list = scene.ask(&["salvage", "list"]);
    assert!(String::from_utf8_lossy(&list.stdout).contains("refs/provost/salvage/"));
}

/// An agent that takes its driver down every time is not tried for ever.
#[test]
fn an_agent_that_is_lost_again_and_again_is_given_up() {
    let scene = Scene::new();
    let before = scene.surroundings();
    let script = "echo x >> ~/attempts; echo started; sleep 1000";
    let (mut running, run) = at_work(&scene, script, "started");
    for attempt in 1..=3 {
        until("the agent works", || {
            scene.printed_in(&run).matches("started").count() == attempt
        });
        running.signal(Signal::KILL);
        running.wait();
        scene.await_silence("lost");
        running = scene.spawn(scene.provost(&["resume", &run, "--json"]));
    }
    let outcome = running.wait();
    assert_eq!(
        outcome.json[0]["verdict"]["code"], "AGENT_LOST",
        "{outcome:?}"
    );
    assert_eq!(outcome.exit, 1);
    scene.assert_clean(&before, "lost");
}

/// A base that this file system cannot hold: what was made of it so far is removed.
#[test]
fn a_workspace_that_cannot_be_made_leaves_nothing() {
    let scene = Scene::new();
    let blob = scene.git(&["rev-parse", "HEAD:check.sh"]);
    let name = "n".repeat(300);
    scene.git(&["config", "core.protectHFS", "false"]);
    let entry = format!("100644,{blob},z/{name}");
    scene.git(&["update-index", "--add", "--cacheinfo", &entry]);
    scene.git(&["commit", "-q", "-m", "a name too long for a file"]);
    let before = scene.surroundings();
    let outcome = scene.run("echo good > src/a.txt", &Ask::default());
    assert_eq!(
        (outcome.exit, outcome.code()),
        (4, "HOST_FAILED"),
        "{outcome:?}"
    );
    scene.assert_clean(&before, "too long");
    assert_eq!(
        salvaged(&scene, 1),
        None,
        "no agent worked, so there is no work"
    );
}
