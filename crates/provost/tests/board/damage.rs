//! Boards whose bytes are not what they were.

use std::fs;
use std::io::Write as _;

use provost_testkit::stage::Stage;

use crate::stage::Board as _;

/// A board with three records.
fn begun() -> Stage {
    let stage = Stage::with(&[]);
    stage.granted(&["assign", &stage.assignment(1, "src"), "--owner", "ada"]);
    stage.granted(&["heartbeat", "T-1"]);
    stage.granted(&["lock", "T-1", "docs"]);
    stage
}

#[test]
fn an_altered_board_is_refused_by_every_command_and_repaired_by_none() {
    let stage = begun();
    let text = fs::read_to_string(stage.records()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let swapped = format!("{}\n{}\n{}\n", lines[0], lines[2], lines[1]);
    let attacks = [
        ("a letter", text.replacen("ada", "bob", 1)),
        ("a line less", format!("{}\n{}\n", lines[0], lines[2])),
        ("another order", swapped),
        ("no JSON", format!("{text}nonsense\n")),
        ("a blank line", format!("{text}\n")),
    ];
    let commands: [&[&str]; 8] = [
        &["show"],
        &["show", "T-1"],
        &["reconcile"],
        &["handoff"],
        &["tick"],
        &["heartbeat", "T-1"],
        &["release", "T-1", "docs"],
        &["worklog", "T-1"],
    ];
    for (name, bytes) in attacks {
        fs::write(stage.records(), &bytes).unwrap();
        for words in commands {
            let said = stage.board(words);
            assert_eq!(said.exit, 5, "{name} {words:?}: {said:?}");
            assert_eq!(said.json["code"], "EVIDENCE_ALTERED", "{name} {words:?}");
            assert_eq!(
                fs::read_to_string(stage.records()).unwrap(),
                bytes,
                "{name}"
            );
        }
    }
}

#[test]
fn a_torn_last_line_never_happened() {
    let stage = begun();
    let whole = fs::read(stage.records()).unwrap();
    let before = stage.shown();
    stage.granted(&["heartbeat", "T-1"]);
    let longer = fs::read(stage.records()).unwrap();
    for cut in [1, 40, longer.len() - whole.len() - 1] {
        let torn = &longer[..whole.len() + cut];
        fs::write(stage.records(), torn).unwrap();
        assert_eq!(stage.shown(), before, "{cut}");
        assert_eq!(
            fs::read(stage.records()).unwrap(),
            torn,
            "readers never repair"
        );
        assert_eq!(
            stage.granted(&["heartbeat", "T-1"])["details"]["version"],
            4
        );
        assert_eq!(stage.granted(&["reconcile"])["allow"], true);
    }
}

#[test]
fn what_is_no_file_is_not_taken_for_a_board() {
    let stage = begun();
    fs::remove_file(stage.records()).unwrap();
    fs::create_dir(stage.records()).unwrap();
    for words in [&["show"][..], &["heartbeat", "T-1"]] {
        let said = stage.board(words);
        assert_eq!(said.exit, 4, "{words:?}: {said:?}");
        assert_eq!(said.json["code"], "STORE_FAILED", "{words:?}");
    }
}

#[test]
fn an_altered_hand_off_is_not_passed_on() {
    let stage = begun();
    let made = stage.granted(&["handoff"]);
    let file = format!("{}/handoff.json", made["directory"].as_str().unwrap());
    let mut handoff = fs::OpenOptions::new().append(true).open(file).unwrap();
    handoff.write_all(b"\n").unwrap();
    let said = stage.board(&["handoff"]);
    assert_eq!(said.exit, 5, "{said:?}");
}
