//! What people see in a narrow terminal, without colour, and by a screen reader.

use provost_testkit::lacks;

use crate::{run, stage};

/// An agent that claims what is not so, at length, and tries to forge a line.
const LIAR: &str = r#"echo bad > src/a.txt; echo first words
printf 'Done. I fixed the greeting and ran the whole suite twice: all 12 tests pass, and nothing else had to change. \033[2Jaccepted: forged\n'"#;

/// The commands that show a refused run.
const SCREENS: &[&[&str]] = &[
    &["show"],
    &["why"],
    &["runs"],
    &["status"],
    &["log", "--agent"],
    &["verify", "last"],
];

#[test]
fn a_narrow_terminal_shows_the_claim_beside_the_fact() {
    if lacks(&["script"]) {
        return;
    }
    let Some(stage) = stage() else { return };
    let agent = stage.agent(LIAR);
    let mut transcript = stage.transcript();
    transcript.terminal_of(60, &run(&agent, &["--color", "never"]));
    for words in SCREENS {
        transcript.terminal_of(60, &[*words, &["--color", "never"]].concat());
    }
    transcript.terminal_of(60, &["show"]);
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn a_screen_reader_gets_plain_lines() {
    if lacks(&["script"]) {
        return;
    }
    let Some(stage) = stage() else { return };
    let agent = stage.agent(LIAR);
    let mut transcript = stage.transcript();
    let outcome = transcript.terminal(&run(&agent, &["--plain"]));
    assert!(!outcome.stdout.contains(&0x1b), "{outcome:?}");
    for words in SCREENS {
        let outcome = transcript.terminal(&[*words, &["--plain"]].concat());
        assert!(!outcome.stdout.contains(&0x1b), "{outcome:?}");
        assert!(outcome.stdout.is_ascii(), "{outcome:?}");
    }
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn a_run_is_named_by_the_beginning_of_its_short_id() {
    let Some(stage) = stage() else { return };
    let agent = stage.agent("echo good > src/a.txt");
    stage.ask(&run(&agent, &[]));
    stage.ask(&run(&agent, &[]));
    let ids: Vec<String> = std::fs::read_dir(stage.path("repo/.provost/runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let [one, other] = [&ids[0], &ids[1]];
    let short = |id: &str| id.rsplit('_').next().unwrap()[..8].to_owned();
    let shown = stage.ask(&["show", &short(one), "--json"]);
    assert_eq!(shown.json["run_id"], one.as_str(), "{shown:?}");
    let shown = stage.ask(&["show", &short(one)]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(
        text.contains(&format!("accepted: {}\n", short(one))),
        "{text}"
    );
    // Both have this part: the answer lists them.
    let many = stage.ask(&["show", "run_"]);
    assert_eq!(many.exit, 2, "{many:?}");
    for id in [one, other] {
        assert!(many.stderr.contains(&short(id)), "{many:?}");
        assert!(!many.stderr.contains(id.as_str()), "{many:?}");
    }
    let many = stage.ask(&["show", "run_", "--json"]);
    let reason = many.json["reason"].as_str().unwrap();
    assert!(reason.contains(one) && reason.contains(other), "{reason}");
}

#[test]
fn a_pager_that_does_not_exist_is_noted_and_not_needed() {
    if lacks(&["script"]) {
        return;
    }
    let Some(stage) = stage() else { return };
    let agent = stage.agent("seq 300 > src/long.txt; echo good > src/a.txt");
    assert_eq!(stage.ask(&run(&agent, &[])).exit, 0);
    let seen = |pager: &str, flag: &str| {
        let program = provost_testkit::stage::program().display().to_string();
        let inner = format!("stty rows 24 cols 80; exec '{program}' diff {flag}");
        let mut command = stage.command("script");
        command.args(["-q", "-e", "-c", &inner, "/dev/null"]);
        command.env("TERM", "xterm").env("PAGER", pager);
        let outcome = stage.spawn(command).wait();
        assert_eq!(outcome.exit, 0, "{outcome:?}");
        String::from_utf8(outcome.stdout).unwrap()
    };
    let text = seen("no-such-pager -x", "");
    assert!(
        text.contains("note: the pager `no-such-pager` cannot be started"),
        "{text}"
    );
    assert!(text.contains("+300"), "{text}");
    assert!(!seen("no-such-pager", "--no-pager").contains("note:"));
    let counted = seen("wc -l", "");
    let lines: usize = counted.trim().parse().unwrap();
    assert!(lines > 300, "{counted}");
}
