//! Boards whose bytes are not what they were.

use std::fs;
use std::io::Write as _;

use crate::desk::Desk;

/// A board with three records.
fn begun() -> Desk {
    let desk = Desk::new();
    desk.granted(&["assign", &desk.assignment(1, "src"), "--owner", "ada"]);
    desk.granted(&["heartbeat", "T-1"]);
    desk.granted(&["lock", "T-1", "docs"]);
    desk
}

#[test]
fn an_altered_board_is_refused_by_every_command_and_repaired_by_none() {
    let desk = begun();
    let text = fs::read_to_string(desk.records()).unwrap();
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
        fs::write(desk.records(), &bytes).unwrap();
        for words in commands {
            let said = desk.board(words);
            assert_eq!(said.exit, 5, "{name} {words:?}: {said:?}");
            assert_eq!(said.json["code"], "EVIDENCE_ALTERED", "{name} {words:?}");
            assert_eq!(fs::read_to_string(desk.records()).unwrap(), bytes, "{name}");
        }
    }
}

#[test]
fn a_torn_last_line_never_happened() {
    let desk = begun();
    let whole = fs::read(desk.records()).unwrap();
    let before = desk.shown();
    desk.granted(&["heartbeat", "T-1"]);
    let longer = fs::read(desk.records()).unwrap();
    for cut in [1, 40, longer.len() - whole.len() - 1] {
        let torn = &longer[..whole.len() + cut];
        fs::write(desk.records(), torn).unwrap();
        assert_eq!(desk.shown(), before, "{cut}");
        assert_eq!(
            fs::read(desk.records()).unwrap(),
            torn,
            "readers never repair"
        );
        assert_eq!(desk.granted(&["heartbeat", "T-1"])["details"]["version"], 4);
        assert_eq!(desk.granted(&["reconcile"])["allow"], true);
    }
}

#[test]
fn what_is_no_file_is_not_taken_for_a_board() {
    let desk = begun();
    fs::remove_file(desk.records()).unwrap();
    fs::create_dir(desk.records()).unwrap();
    for words in [&["show"][..], &["heartbeat", "T-1"]] {
        let said = desk.board(words);
        assert_eq!(said.exit, 4, "{words:?}: {said:?}");
        assert_eq!(said.json["code"], "STORE_FAILED", "{words:?}");
    }
}

#[test]
fn an_altered_hand_off_is_not_passed_on() {
    let desk = begun();
    let made = desk.granted(&["handoff"]);
    let file = format!("{}/handoff.json", made["directory"].as_str().unwrap());
    let mut handoff = fs::OpenOptions::new().append(true).open(file).unwrap();
    handoff.write_all(b"\n").unwrap();
    let said = desk.board(&["handoff"]);
    assert_eq!(said.exit, 5, "{said:?}");
}
