//! Many processes at one board.

use std::fs;
use std::thread;

use provost_testkit::stage::Stage;

use crate::stage::Board as _;

const PROCESSES: u32 = 8;

#[test]
fn nothing_is_lost_when_many_write_at_once() {
    let stage = Stage::with(&[]);
    let files: Vec<String> = (0..PROCESSES)
        .map(|number| stage.assignment(number, &format!("src/{number}")))
        .collect();
    thread::scope(|scope| {
        for (number, file) in files.iter().enumerate() {
            let stage = &stage;
            scope.spawn(move || {
                let task = format!("T-{number}");
                stage.granted(&["assign", file, "--owner", "ada"]);
                for _ in 0..8 {
                    stage.granted(&["heartbeat", &task]);
                    stage.granted(&["lock", &task, &format!("docs/{number}")]);
                    stage.granted(&["release", &task, &format!("docs/{number}")]);
                }
            });
        }
    });
    let shown = stage.granted(&["show"]);
    let rows = shown["rows"].as_array().unwrap();
    assert_eq!(rows.len(), PROCESSES as usize);
    assert!(rows.iter().all(|row| row["status"] == "in_progress"));
    assert_eq!(shown["version"], 25 * PROCESSES);
    let text = fs::read_to_string(stage.records()).unwrap();
    assert_eq!(text.lines().count(), 25 * PROCESSES as usize);
    assert_eq!(stage.granted(&["reconcile"])["allow"], true);
}

#[test]
fn of_tasks_that_want_one_place_exactly_one_begins() {
    const SPELLINGS: [&str; 4] = ["src", "src/api", "./src/api/", "src/api/v1"];
    for round in 0..4 {
        let stage = Stage::with(&[]);
        let files: Vec<String> = (0..PROCESSES)
            .map(|number| stage.assignment(number, SPELLINGS[(number % 4) as usize]))
            .collect();
        let exits: Vec<i32> = thread::scope(|scope| {
            let call = |file: &String| {
                let words = ["assign".to_owned(), file.clone()];
                let stage = &stage;
                scope.spawn(move || {
                    let said = stage.board(&[&words[0], &words[1], "--owner", "ada"]);
                    if said.exit != 0 {
                        assert_eq!(said.json["code"], "LOCK_CONFLICT", "{said:?}");
                    }
                    said.exit
                })
            };
            let running: Vec<_> = files.iter().map(call).collect();
            running.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let winners = exits.iter().filter(|exit| **exit == 0).count();
        assert_eq!(winners, 1, "round {round}: {exits:?}");
        let shown = stage.granted(&["show"]);
        assert_eq!(shown["version"], 1);
        assert_eq!(shown["locks"].as_array().unwrap().len(), 1);
    }
}
