//! Processes that die at a board: at random moments, and at every record and file.

use std::fs;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::Value;

use provost_testkit::stage::Stage;

use crate::stage::Board as _;

/// What `kill -9` ends a process with, as a shell says it.
const KILLED: i32 = 128 + 9;

/// A small generator: only the moments need to differ. `PROVOST_TEST_SEED` sets the seed.
struct Moments(u64);

impl Moments {
    fn new() -> Self {
        let given = std::env::var("PROVOST_TEST_SEED").ok();
        let seed = given.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            u64::from(now.subsec_nanos())
        });
        println!("PROVOST_TEST_SEED={seed}");
        Self(seed | 1)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) % most
    }
}

/// The hand-off, without what depends on the moment.
fn handed_off(stage: &Stage) -> Value {
    let made = stage.granted(&["handoff"]);
    let file = format!("{}/handoff.json", made["directory"].as_str().unwrap());
    let mut handoff: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    handoff["x_board"].as_object_mut().unwrap().remove("head");
    handoff
}

/// Whichever process died, the board is whole and accepts the next command.
fn check_whole(stage: &Stage, name: &str) {
    assert_eq!(stage.granted(&["reconcile"])["allow"], true, "{name}");
    let shown = stage.shown();
    let text = fs::read_to_string(stage.records()).unwrap_or_default();
    let whole = text.matches('\n').count();
    assert_eq!(shown["version"], whole, "{name}");
    for lock in shown["locks"].as_array().unwrap() {
        let row = shown["rows"].as_array().unwrap().iter();
        let mut holder = row.filter(|row| row["task_id"] == lock["task_id"]);
        let status = &holder.next().unwrap()["status"];
        assert!(
            status == "in_progress" || status == "blocked",
            "{name}: {lock}"
        );
    }
}

#[test]
fn a_board_survives_processes_that_are_killed_at_any_moment() {
    let stage = Stage::with(&[]);
    let start = |words: &[&str]| stage.spawn(stage.call(&[&["board"], words].concat()));
    let mut moments = Moments::new();
    let (mut survivors, mut all) = (0_u32, 0_u32);
    let keeper = stage.assignment(100, "keeper");
    stage.granted(&["assign", &keeper, "--owner", "ada"]);
    for round in 0..12_u32 {
        // How long a command takes now says when it is worth killing.
        let begin = Instant::now();
        stage.granted(&["heartbeat", "T-100"]);
        let usual = u64::try_from(begin.elapsed().as_micros()).unwrap();
        let numbers: Vec<u32> = (0..5).map(|part| round * 5 + part).collect();
        let files: Vec<String> = numbers
            .iter()
            // Two of them want one place.
            .map(|number| stage.assignment(*number, &format!("src/{}", number / 2)))
            .collect();
        let mut children: Vec<_> = files
            .iter()
            .map(|file| start(&["assign", file, "--owner", "ada"]))
            .collect();
        children.push(start(&["heartbeat", "T-100"]));
        children.push(start(&["handoff"]));
        children.push(start(&["tick"]));
        for child in &children {
            thread::sleep(Duration::from_micros(moments.below(usual)));
            child.signal(Signal::KILL);
        }
        for child in children {
            survivors += u32::from(child.wait().exit != KILLED);
            all += 1;
        }
        check_whole(&stage, &format!("round {round}"));
        let before = handed_off(&stage);
        assert_eq!(handed_off(&stage), before, "round {round}");
    }
    let version = stage.shown()["version"].clone();
    println!("{survivors} of {all} finished, version {version}");
}

/// The deaths at exactly one point need points in the program.
#[cfg(feature = "failpoints")]
mod points {
    use serde_json::json;

    use super::{KILLED, check_whole, handed_off};
    use provost_testkit::stage::Stage;

    use crate::stage::Board as _;

    /// A course that makes every kind of record; times are said, so that it always ends the same.
    fn course(stage: &Stage) -> Vec<Vec<String>> {
        let words = |line: String| line.split(' ').map(str::to_owned).collect();
        let delta = json!({ "task_id": "T-2", "status": "canceled", "owner": "bob",
            "reason": "not wanted", "delta_id": "d1" });
        let stream = json!({ "base_version": 6, "deltas": [delta] });
        let stream = stage.file("stream.json", stream.to_string());
        let (one, two) = (stage.assignment(1, "src/a"), stage.assignment(2, "src/b"));
        let lines = [
            format!("assign {one} --owner ada --now 2026-01-01T00:01:00Z"),
            format!("assign {two} --owner bob --now 2026-01-01T00:00:00Z"),
            "lock T-1 docs".to_owned(),
            "release T-1 docs".to_owned(),
            "tick --now 2026-01-01T00:01:30Z".to_owned(),
            format!("worklog T-1 --append {}", stage.log(1, 1, None)),
            format!("apply {stream} --now 2026-01-01T00:02:00Z"),
            "heartbeat T-1 --now 2026-01-01T00:03:00Z".to_owned(),
            format!("result {}", stage.result(1, "src/a", "done")),
        ];
        lines.into_iter().map(words).collect()
    }

    /// Does the course; the command number `dying` dies at `point` and is then given again.
    fn walk(stage: &Stage, dying: Option<usize>, point: &str) {
        for (number, words) in course(stage).iter().enumerate() {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if dying == Some(number) {
                let mut command = stage.call(&["board"]);
                command.args(&words);
                command.env("FAILPOINTS", format!("{point}=return"));
                let exit = stage.spawn(command).wait().exit;
                assert_eq!(exit, KILLED, "{point} {words:?}");
                check_whole(stage, &format!("{point} {words:?}"));
            }
            stage.granted(&words);
        }
    }

    #[test]
    fn a_death_at_any_record_changes_no_decision() {
        let stage = Stage::with(&[]);
        walk(&stage, None, "");
        let (shown, handoff) = (stage.shown(), handed_off(&stage));
        assert_eq!(shown["version"], 9);
        for point in ["before-record", "after-record"] {
            for number in 0..9 {
                let name = format!("{point} {number}");
                let stage = Stage::with(&[]);
                walk(&stage, Some(number), point);
                let mut mine = stage.shown();
                // A sign of life that is given again is one more.
                let more = u64::from(point == "after-record" && number == 7);
                assert_eq!(mine["version"], 9 + more, "{name}");
                mine["version"] = shown["version"].clone();
                assert_eq!(mine, shown, "{name}");
                let mut mine = handed_off(&stage);
                mine["x_board"] = handoff["x_board"].clone();
                assert_eq!(mine, handoff, "{name}");
            }
        }
    }

    #[test]
    fn a_hand_off_is_there_whole_or_not_at_all() {
        let stage = Stage::with(&[]);
        stage.granted(&["assign", &stage.assignment(1, "src"), "--owner", "ada"]);
        stage.granted(&["worklog", "T-1", "--append", &stage.log(1, 1, None)]);
        for count in 0..10 {
            let mut command = stage.call(&["board", "handoff", "--out", "out"]);
            command.env("FAILPOINTS", format!("after-file={count}*off->return"));
            if stage.spawn(command).wait().exit == 0 {
                assert!(count >= 3, "hardly anything was tried");
                assert!(stage.path("repo/out/handoff.json").exists());
                return;
            }
            assert!(!stage.path("repo/out").exists(), "{count}");
            let made = stage.granted(&["handoff"]);
            assert_eq!(stage.granted(&["handoff"]), made);
        }
        panic!("no end");
    }
}
