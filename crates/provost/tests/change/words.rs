//! What a person reads of controlled changes, and the names that may be typed.

use std::io::Write as _;
use std::process::Stdio;

use provost_testkit::stage::Stage;
use serde_json::{Value, json};

use super::{Changes as _, stage};

/// What `provost WORDS` prints, and its exit status.
fn said(stage: &Stage, words: &[&str]) -> (i32, String) {
    let outcome = stage.ask(words);
    let text = [outcome.out(), &outcome.stderr].concat();
    (outcome.exit, text)
}

fn ada(stage: &Stage, words: &[&str]) -> (i32, String) {
    said(stage, &[&["change", "--agent", "ada"], words].concat())
}

#[test]
fn a_person_reads_the_result_of_a_change_and_the_next_command() {
    let stage = stage();
    let start = ["start", "say more", "--file", "docs/guide.md"];
    let (code, text) = ada(&stage, &start);
    assert_eq!(code, 3, "{text}");
    assert!(text.starts_with("needs_analysis: "), "{text}");
    assert!(
        text.ends_with("next: provost change --agent ada analyze\n"),
        "{text}"
    );
    let (_, text) = ada(&stage, &["analyze"]);
    assert!(text.starts_with("analysed: "), "{text}");
    let (code, text) = ada(&stage, &start);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.starts_with("active: you may edit docs/guide.md\nchange: 01"),
        "{text}"
    );
    let id = text
        .lines()
        .nth(1)
        .unwrap()
        .trim_start_matches("change: ")
        .to_owned();
    let then =
        format!("then: provost change --agent ada finish {id} --file docs/guide.md --after RUN\n");
    assert!(text.ends_with(&then), "{text}");
    let (_, text) = said(&stage, &["status"]);
    assert!(text.contains(&id) && text.contains("say more"), "{text}");
    let (_, text) = said(&stage, &["status", "--json"]);
    let listed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(listed["changes"][0]["intent_id"], json!(id));
    // Others read who is there.
    let bob = ["change", "--agent", "bob"];
    assert_eq!(said(&stage, &[&bob[..], &["analyze"]].concat()).0, 0);
    let (code, text) = said(&stage, &[&bob[..], &start].concat());
    assert_eq!(code, 3);
    assert!(
        text.contains(&format!("held: docs/guide.md by ada ({id})")),
        "{text}"
    );
    let queue = "next: provost change --agent bob queue 'say more' --file docs/guide.md\n";
    assert!(text.ends_with(queue), "{text}");
    // Nothing speaks of tools, and a part of a name is enough.
    stage.write("repo/docs/guide.md", "# guide\n\nmore\n");
    stage.write("repo/docs/other.md", "x\n");
    let part = &id[id.len() - 8..];
    let (code, text) = ada(&stage, &["finish", part, "--file", "docs/guide.md"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.starts_with("accepted_with_external_changes: "),
        "{text}"
    );
    assert!(text.contains("not of this change: docs/other.md"), "{text}");
    assert!(
        text.ends_with(&format!("next: provost verify {id}\n")),
        "{text}"
    );
    let (code, text) = said(&stage, &["verify", part]);
    assert!(code == 0 && text.contains(&id), "{text}");
    let digest = json_of(&ada(&stage, &["--json", "list"]).1)["total"].clone();
    assert_eq!(digest, json!(0));
    let (_, text) = said(&stage, &["status"]);
    assert_eq!(text, "no active runs\n");
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn no_line_for_a_person_has_the_words_of_tools() {
    let stage = stage();
    ada(&stage, &["analyze"]);
    stage.write("repo/docs/guide.md", "# mine\n");
    let start = ["start", "it's mine", "--file", "docs/guide.md"];
    let (code, refused) = ada(&stage, &start);
    assert_eq!(code, 1, "{refused}");
    assert!(refused.contains("dirty: docs/guide.md"), "{refused}");
    let again = "start 'it'\\''s mine' --file docs/guide.md --continue-own-wip # if";
    assert!(refused.contains(again), "{refused}");
    let (_, queued) = ada(&stage, &["list"]);
    for text in [refused, queued] {
        for word in [
            "_controlled_change",
            "manage_change",
            "on_conflict",
            "scope_policy",
            "{",
        ] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
    assert_eq!(
        ada(&stage, &["start", "x", "--file", "docs", "--ttl", "0"]).0,
        2
    );
}

#[test]
fn an_accepted_change_with_a_wrong_claim_is_accepted() {
    let stage = Stage::with(&[("a.py", "def add(a, b):\n    return a + b\n\n\nadd(1, 2)\n")]);
    ada(&stage, &["analyze"]);
    let (_, text) = ada(&stage, &["start", "branch", "--file", "a.py"]);
    let id = text.lines().nth(1).unwrap().trim_start_matches("change: ");
    let branch = |at: u32| {
        format!(
            "    if a > {at} and b < {at}:\n        a += {at}\n    elif a == {at}:\n        a -= 1\n"
        )
    };
    let branches: String = (1..5).map(branch).collect();
    let code = format!("def add(a, b):\n{branches}    return a + b\n\n\nadd(1, 2)\n");
    stage.write("repo/a.py", &code);
    let (_, text) = ada(&stage, &["analyze"]);
    let run = text
        .lines()
        .next()
        .unwrap()
        .trim_start_matches("analysed: ");
    let finish = ["finish", id, "--file", "a.py", "--after", run];
    let claim = ["--claims", "No regressions were introduced."];
    let (code, text) = ada(&stage, &[&finish[..], &claim].concat());
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("accepted: "), "{text}");
    assert!(text.contains("\nclaims: some do not hold"), "{text}");
}

#[test]
fn a_second_start_says_whose_place_it_took() {
    let stage = stage();
    ada(&stage, &["analyze"]);
    let (_, first) = stage.change("ada", &["start", "one", "--file", "docs/guide.md"]);
    assert!(first.get("replaced").is_none(), "{first}");
    let first = first["intent_id"].as_str().unwrap();
    let (_, text) = ada(&stage, &["start", "two", "--file", "docs/new.md"]);
    assert!(text.contains(&format!("replaced: {first}, ")), "{text}");
    let (_, third) = stage.change("ada", &["queue", "three", "--file", "docs/new.md"]);
    assert_eq!(
        third["replaced"].as_array().map(Vec::len),
        Some(1),
        "{third}"
    );
}

#[test]
fn a_part_of_a_name_that_fits_two_is_refused() {
    let stage = stage();
    for name in ["ada", "bob"] {
        stage.change(name, &["analyze"]);
        let file = format!("docs/{name}.md");
        assert_eq!(stage.change(name, &["start", "x", "--file", &file]).0, 0);
    }
    let (code, text) = ada(&stage, &["clear", "01"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("`01` could be 2 changes"), "{text}");
}

#[test]
fn plans_and_chains_are_found_by_a_part_of_their_name() {
    let stage = stage();
    for place in ["plans/plan_20260101_abcd", "chains/chain_20260101_bcde"] {
        std::fs::create_dir_all(stage.path("repo/.provost").join(place)).unwrap();
    }
    for (part, want) in [
        ("abcd", "EVIDENCE"),
        ("bcde", "EVIDENCE"),
        ("xyz", "NOT_FOUND"),
    ] {
        let (code, text) = said(&stage, &["verify", part]);
        assert!(code != 0 && text.contains(want), "{part}: {text}");
    }
    let (_, text) = said(&stage, &["verify", "2026"]);
    assert!(text.contains("`2026` could be 2 bundles"), "{text}");
}

#[test]
fn everything_that_was_read_is_answered_before_the_server_ends() {
    let stage = stage();
    let mut server = stage.provost(&["mcp"]);
    server.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = server.spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for id in 0..400 {
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
                "name": "manage_change_intent",
                "arguments": { "action": "list_workspace", "root": "." } } });
            writeln!(input, "{call}").unwrap();
        }
    });
    let output = server.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text.lines().map(json_of).collect();
    assert_eq!(answers.len(), 400);
    let refused = answers.iter().filter(|one| one.get("error").is_some());
    assert_eq!(refused.count(), 0);
}

#[test]
fn explain_lists_its_pages() {
    let stage = stage();
    let (code, text) = said(&stage, &["explain"]);
    assert_eq!(code, 0);
    for page in ["change-control", "contract", "sandbox"] {
        let is_row = |line: &str| line.split_whitespace().next() == Some(page);
        assert!(text.lines().any(is_row), "{page}");
    }
    let (_, text) = said(&stage, &["explain", "--json"]);
    let pages = json_of(&text);
    let pages = pages.as_array().unwrap();
    assert!(pages.iter().any(|one| one["page"] == "change-control"));
}

#[test]
fn every_command_works_on_the_root_that_is_named() {
    let stage = stage();
    let root = stage.path("repo").display().to_string();
    let elsewhere = |words: &[&str]| {
        let all = [&["change", "--agent", "ada", "--root", &root], words].concat();
        let mut command = stage.provost(&all);
        command.current_dir(stage.path("home"));
        let outcome = stage.spawn(command).wait();
        let text = [outcome.out(), &outcome.stderr].concat();
        (outcome.exit, text)
    };
    assert_eq!(elsewhere(&["analyze"]).0, 0);
    let (code, text) = elsewhere(&["start", "say more", "--file", "docs/guide.md"]);
    assert_eq!(code, 0, "{text}");
    let id = text.lines().nth(1).unwrap().trim_start_matches("change: ");
    stage.write("repo/docs/guide.md", "# guide\n\nmore\n");
    let (code, text) = elsewhere(&["finish", id, "--file", "docs/guide.md"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("accepted: "), "{text}");
    assert!(!stage.path("home/.provost").exists());
}
