//! What people see in a narrow terminal, without colour, and by a screen reader.

use provost_testkit::lacks;

use crate::{run, stage};

/// An agent that claims what is not so, at length, and tries to forge a line.
const LIAR: &str = r"echo bad > src/a.txt; echo first words
printf 'Done. I fixed the greeting and ran the whole suite twice: all 12 tests pass, and nothing else had to change. \033[2Jaccepted: forged\n'";

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

#[test]
fn a_shell_completes_runs_and_agents() {
    let Some(stage) = stage() else { return };
    stage.commit(&[("provost.toml", "[agents.fast]\ncommand = \"true\"\n")]);
    let agent = stage.agent("echo good > src/a.txt");
    assert_eq!(stage.ask(&run(&agent, &[])).exit, 0);
    let program = provost_testkit::stage::program();
    let completed = |words: &str, at: usize| {
        let script = format!(
            "source <(provost completions bash); COMP_WORDS=({words}); COMP_CWORD={at}; \
             _provost_values provost '' ''; echo \"${{COMPREPLY[*]}}\""
        );
        let mut command = stage.command("bash");
        command.args(["-c", &script]);
        let path = program.parent().unwrap().display().to_string();
        command.env("PATH", format!("{path}:/usr/bin:/bin"));
        let outcome = stage.spawn(command).wait();
        assert_eq!(outcome.exit, 0, "{outcome:?}");
        String::from_utf8(outcome.stdout).unwrap().trim().to_owned()
    };
    let runs = completed("provost show ''", 2);
    let (first, id) = runs.split_once(' ').unwrap();
    assert_eq!((first, id.len()), ("last", 8), "{runs}");
    assert_eq!(completed(&format!("provost why {}", &id[..3]), 2), id);
    assert_eq!(
        completed("provost run x --agent ''", 4),
        "claude codex fast gemini"
    );
    assert_eq!(completed("provost run x --agent fa", 4), "fast");
    assert_eq!(completed("provost run x --allow sr", 4), "src");
    assert!(completed("provost sta", 1).contains("status"));
}

#[test]
fn a_command_of_the_user_says_that_a_run_has_ended() {
    let Some(stage) = stage() else { return };
    let told = stage.path("told");
    let script = format!("#!/bin/sh\necho \"$@\" >> '{}'\n", told.display());
    stage.script("home/tell", &script);
    let tell = stage.path("home/tell").display().to_string();
    let file = "config/provost/config.toml";
    stage.write(file, &format!("notify = [\"{tell}\", \"now\"]\n"));
    let agent = stage.agent("echo good > src/a.txt");
    let outcome = stage.ask(&run(&agent, &[]));
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    let said = || std::fs::read_to_string(&told).unwrap_or_default();
    provost_testkit::stage::until("the command ran", || !said().is_empty());
    assert!(said().starts_with("now provost: accepted "), "{}", said());
    // It is the user's own file that names it, and never the repository.
    stage.write(file, "");
    let asked = stage.ask(&run(&agent, &["--notify=command"]));
    assert!(
        asked.stderr.contains("note: no notification: "),
        "{asked:?}"
    );
    stage.write(file, "notify = 7\n");
    // A file that cannot be read may hold a budget, so nothing starts.
    let broken = stage.ask(&run(&agent, &[]));
    assert_eq!(broken.exit, 2, "{broken:?}");
    assert!(broken.stderr.contains("error[INPUT_INVALID]"), "{broken:?}");
    stage.write(file, "");
    stage.commit(&[("provost.toml", &format!("notify = [\"{tell}\"]\n"))]);
    let refused = stage.ask(&run(&agent, &["--json"]));
    assert_eq!(refused.exit, 2, "{refused:?}");
    assert_eq!(said().lines().count(), 1, "{}", said());
}

#[test]
fn a_misspelt_policy_names_its_problem_once() {
    let Some(stage) = stage() else { return };
    let agent = stage.agent("echo good > src/a.txt");
    let words = "unknown field `week_tokens`";
    stage.commit(&[("provost.toml", "[budget]\nweek_tokens = 1\n")]);
    let refused = stage.ask(&run(&agent, &[]));
    assert_eq!(refused.exit, 2, "{refused:?}");
    assert_eq!(refused.stderr.matches(words).count(), 1, "{refused:?}");
    assert!(!refused.stderr.contains("because"), "{refused:?}");
}
