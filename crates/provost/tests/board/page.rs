//! Types what the page about boards shows into the real program.
//!
//! In a `console` block a line with `$ ` is a command, run in a fresh repository beside the files of
//! `docs/examples/board`. What it shows must be the lines below it; `…` stands for the rest of one.

use std::fs;
use std::path::Path;

use provost_testkit::stage::Stage;

const PAGE: &str = include_str!("../../../../docs/board.md");

#[test]
fn the_console_blocks_of_the_page_do_what_they_show() {
    let stage = Stage::with(&[]);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/board");
    for entry in fs::read_dir(examples).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), stage.path("repo").join(entry.file_name())).unwrap();
    }
    let mut count = 0;
    for block in PAGE.split("\n```console\n").skip(1) {
        let block = block.split("\n```").next().unwrap();
        for step in format!("\n{block}").split("\n$ ").skip(1) {
            let mut lines = step.lines();
            let command = lines.next().unwrap();
            let words = command.strip_prefix("provost ").unwrap();
            let words: Vec<&str> = words.split(' ').collect();
            let outcome = stage.ask(&words);
            let shown = [outcome.out(), &outcome.stderr].concat();
            let shown: Vec<&str> = shown.lines().collect();
            let wanted: Vec<&str> = lines.collect();
            assert_eq!(shown.len(), wanted.len(), "{command}: {shown:#?}");
            for (shown, wanted) in shown.iter().zip(wanted) {
                let fits = match wanted.split_once('…') {
                    Some((beginning, _)) => shown.starts_with(beginning),
                    None => *shown == wanted,
                };
                assert!(fits, "{command}: `{shown}` is not `{wanted}`");
            }
            count += 1;
        }
    }
    assert!(count >= 8, "the page lost its example");
}
