//! What is said before a run begins, and around the first one.

use std::fs;

use crate::desk::{Desk, GOOD, greeting};

#[test]
fn what_cannot_become_a_run_is_refused_before_one_is_opened() {
    let desk = Desk::new();
    let run = |more: &[&str]| {
        let mut words = greeting("Greet", "true").to_vec();
        words.extend(more);
        desk.provost(&words)
    };
    let cases = [
        (desk.provost(&["run", "Greet"]), "--allow <PATH>"),
        (
            desk.provost(&["run", "Greet", "--allow", "src"]),
            "--accept <CMD>",
        ),
        (
            desk.provost(&greeting(" ", "true")),
            "say what is to be done",
        ),
        (run(&["--target", "mian"]), "there is no branch `mian`"),
        (run(&["--target", "../x y"]), "there is no branch `../x y`"),
    ];
    for (said, want) in cases {
        assert_eq!(said.exit, 2, "{want}: {said:?}");
        assert_eq!(said.err.matches("error").count(), 1, "{said:?}");
        assert!(said.err.contains(want), "{want}: {said:?}");
    }
    desk.git(&["checkout", "--quiet", "--detach"]);
    let said = run(&[]);
    assert_eq!(said.exit, 2, "{said:?}");
    assert!(said.err.contains("--target"), "{said:?}");
    assert!(!desk.has_runs());
}

#[test]
fn a_flag_that_breaks_a_rule_is_named_with_what_to_write_instead() {
    let desk = Desk::new();
    let inside = desk.at("repository/src").display().to_string();
    let cases: &[(&str, &str, &str, &str)] = &[
        ("--allow", "*.py", "holds a wildcard", "--allow src"),
        ("--allow", "src/*.py", "holds a wildcard", "--allow src"),
        ("--allow", "/etc", "is absolute", "from the top"),
        ("--allow", &inside, "is absolute", "hint: --allow src"),
        ("--allow", ".", "is the whole repository", "--allow src"),
        ("--allow", "../x", "`..`", "--allow src"),
        ("--forbid", "a\\b", "backslash", "--forbid src"),
        ("--permit-oracle", "*", "wildcard", "--permit-oracle src"),
        ("--allow-binary", "*", "wildcard", "--allow-binary src"),
        ("--accept", "cd x && y", "a shell would", "sh check.sh"),
        ("--accept", "", "there is no command", "sh check.sh"),
        ("--timeout", "200h", "between 1 second and 7 days", "--help"),
    ];
    for (flag, value, problem, instead) in cases {
        let mut words = greeting("Greet", "true").to_vec();
        words.extend([flag, value]);
        let said = desk.provost(&words);
        assert_eq!(said.exit, 2, "{value}: {said:?}");
        assert!(
            said.err
                .starts_with(&format!("error[USAGE_ERROR]: `{flag}"))
        );
        for want in [problem, instead] {
            assert!(said.err.contains(want), "{want}: {said:?}");
        }
        assert!(!said.err.contains("/allowed_paths"), "{said:?}");
    }
    let mut words = greeting("Greet", "true").to_vec();
    words.extend(["--allow", "*", "--forbid", "/", "--json"]);
    let said = desk.provost(&words);
    assert!(said.out.contains("`--allow '*'`: "), "{said:?}");
    assert!(said.out.contains("also `--forbid /`: "), "{said:?}");
    assert!(!desk.has_runs());
}

#[test]
fn a_file_that_is_no_contract_is_named_with_field_and_page() {
    let desk = Desk::new();
    let cases = [
        ("[]", 1, "the document is a list; object is asked for"),
        ("{}", 1, "  /task_id: is missing"),
        (
            "{\"task_id\": 7}",
            1,
            "  /task_id: is a number; string is asked for",
        ),
        ("{", 2, "`c.json`: line 1, column 1: "),
    ];
    for (text, exit, want) in cases {
        desk.write("c.json", text);
        let said = desk.provost(&["run", "-f", "c.json", "--agent-cmd", "true"]);
        assert_eq!(said.exit, exit, "{said:?}");
        assert!(said.err.contains(want), "{want}: {said:?}");
        let hint = "hint: `provost explain contract`";
        assert!(said.err.contains(hint), "{said:?}");
    }
    let page = desk.provost(&["explain", "contract"]);
    assert!(
        page.out.contains("\"allowed_paths\": [\"src/greet.py\"]"),
        "{page:?}"
    );
}

#[test]
fn the_minimal_example_of_the_page_is_a_contract_that_runs() {
    let Some(desk) = Desk::with_a_box() else {
        return;
    };
    let example = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    ));
    fs::create_dir(desk.at("repository/tests")).unwrap();
    desk.write("tests/test_greet.py", "import unittest\n");
    desk.git(&["add", "."]);
    desk.git(&["commit", "--quiet", "--message=Test"]);
    // What is JSON is YAML too.
    for name in ["home/contract.json", "home/contract.yaml"] {
        let file = desk.at(name);
        fs::write(&file, example).unwrap();
        let file = file.to_str().unwrap();
        let said = desk.provost(&["run", "-f", file, "--agent-cmd", "true"]);
        assert!(said.out.contains("refused[EMPTY_DIFF]"), "{said:?}");
        let ending = file.rsplit('.').next().unwrap();
        what_was_written_is_sealed(&desk, &format!("contract.source.{ending}"), example);
    }
    let toml = desk.at("home/contract.toml");
    fs::write(&toml, example).unwrap();
    let said = desk.provost(&["run", "-f", toml.to_str().unwrap(), "--agent-cmd", "true"]);
    assert!(said.err.contains("contract.toml"), "{said:?}");
}

#[test]
fn a_failure_shows_the_end_of_its_output() {
    let Some(desk) = Desk::with_a_box() else {
        return;
    };
    let cases = [
        (
            "nosuch --flag",
            "the agent `nosuch --flag` cannot be started",
            "| cannot start `nosuch`: No such file",
        ),
        (
            "sh -c 'echo one; echo two >&2; exit 3'",
            "the agent ended with status 3",
            "| two",
        ),
        (
            "sh -c 'echo bye > src/greet'",
            "`grep -q hello src/greet` failed with status 1",
            "still red",
        ),
        ("sh -c 'seq 100'", "the agent changed nothing", "| 91\n"),
    ];
    for (agent, reason, line) in cases {
        let said = desk.provost(&greeting("Greet", agent));
        assert_eq!(said.exit, 1, "{agent}: {said:?}");
        assert!(said.out.contains(reason), "{agent}: {said:?}");
        assert!(said.out.contains(line), "{agent}: {said:?}");
        assert!(!said.out.contains("| 90\n"), "{agent}: {said:?}");
    }
    let shown = desk.provost(&["show"]);
    assert!(shown.out.contains("| 100\n"), "{shown:?}");
}

#[test]
fn a_landed_run_says_so_and_leaves_nothing_to_clean_up() {
    let Some(desk) = Desk::with_a_box() else {
        return;
    };
    let said = desk.provost(&greeting("Greet\n\nAs one does.", GOOD));
    assert_eq!(said.exit, 0, "{said:?}");
    assert!(
        desk.provost(&["runs"])
            .out
            .ends_with("ACCEPTED            Greet\n")
    );
    assert_eq!(desk.provost(&["salvage", "list"]).out.lines().count(), 2);
    assert_eq!(
        desk.git(&["branch", "--list", "provost/*"]).lines().count(),
        1
    );

    assert_eq!(desk.provost(&["land", "last"]).exit, 0);
    let shown = desk.provost(&["show"]);
    assert!(shown.out.contains("  landed   main, commit "), "{shown:?}");
    assert!(!shown.out.contains("next:"), "{shown:?}");
    assert!(
        desk.provost(&["runs"])
            .out
            .ends_with("LANDED              Greet\n")
    );
    assert_eq!(desk.provost(&["salvage", "list"]).out, "nothing is kept\n");
    assert_eq!(desk.git(&["branch", "--list", "provost/*"]), "");
    let message = desk.git(&["log", "-1", "--format=%B"]);
    assert_eq!(message.matches("Greet").count(), 1, "{message}");
    assert!(
        message.contains("\n\nAs one does.\n\nProvost-Run: "),
        "{message}"
    );
    let again = desk.provost(&["land", "last"]);
    assert_eq!(again.exit, 0, "{again:?}");
    assert_eq!(desk.provost(&["verify"]).exit, 0);
    let restored = desk.provost(&["salvage", "restore", "last"]);
    assert_eq!(restored.exit, 2, "{restored:?}");
    assert!(restored.err.contains("has landed"), "{restored:?}");

    // Whoever takes the landing back can land again.
    desk.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let shown = desk.provost(&["show"]);
    let words = "; the branch does not hold it any more\nnext: provost land run_";
    assert!(shown.out.contains(words), "{shown:?}");
    let runs = desk.provost(&["runs"]);
    assert!(runs.out.contains("  ACCEPTED "), "{runs:?}");
    assert_eq!(desk.provost(&["salvage", "list"]).out.lines().count(), 2);
    let restored = desk.provost(&["salvage", "restore", "last"]);
    assert_eq!(restored.exit, 0, "{restored:?}");
    assert_eq!(desk.provost(&["land", "last"]).exit, 0);
}

#[test]
fn a_branch_that_somebody_went_on_with_stays() {
    let Some(desk) = Desk::with_a_box() else {
        return;
    };
    assert_eq!(desk.provost(&greeting("Greet", GOOD)).exit, 0);
    let branch = desk.git(&["branch", "--list", "--format=%(refname)", "provost/*"]);
    let tree = desk.git(&["rev-parse", "main^{tree}"]);
    let more = desk.git(&[
        "commit-tree",
        "-m",
        "More",
        "-p",
        branch.trim(),
        tree.trim(),
    ]);
    desk.git(&["update-ref", branch.trim(), more.trim()]);
    assert_eq!(desk.provost(&["land", "last"]).exit, 0);
    assert_eq!(desk.git(&["rev-parse", branch.trim()]), more);
}

#[test]
fn who_only_reads_needs_no_home() {
    let Some(desk) = Desk::with_a_box() else {
        return;
    };
    assert_eq!(desk.provost(&greeting("Greet", GOOD)).exit, 0);
    let reading = [
        "runs",
        "show",
        "log",
        "diff",
        "status",
        "salvage list",
        "lease list",
        "explain",
    ];
    for line in reading {
        let words: Vec<&str> = line.split(' ').collect();
        let place = desk.at("repository");
        let said = desk.call(env!("CARGO_BIN_EXE_provost"), &place, true, &words);
        assert_eq!((said.exit, said.err.as_str()), (0, ""), "{line}: {said:?}");
    }
}

#[test]
fn what_the_agent_will_not_see_is_said_at_the_start() {
    let Some(desk) = Desk::with_a_box() else {
        return;
    };
    let clean = desk.provost(&greeting("Greet", GOOD));
    assert!(!clean.err.contains("note:"), "{clean:?}");
    desk.write("provost.toml", "");
    desk.write("src/greet", "hi there\n");
    let place = desk.at("repository/src");
    let mut words = greeting("Greet", GOOD).to_vec();
    words.extend(["--allow", "greet"]);
    let said = desk.call(env!("CARGO_BIN_EXE_provost"), &place, false, &words);
    for note in [
        "`src/greet`?",
        "1 uncommitted path;",
        "provost.toml is not committed",
    ] {
        assert!(said.err.contains(note), "{note}: {said:?}");
    }
    let status = desk.git(&["status", "--porcelain"]);
    assert_eq!(status, " M src/greet\n?? provost.toml\n");
}

/// The bundle that has the file `name` is whole with it, and not with another.
fn what_was_written_is_sealed(desk: &Desk, name: &str, text: &str) {
    let runs = fs::read_dir(desk.at("repository/.provost/runs")).unwrap();
    let mut runs = runs.map(|entry| entry.unwrap().path());
    let run = runs.find(|run| run.join(name).exists()).unwrap();
    assert_eq!(fs::read_to_string(run.join(name)).unwrap(), text);
    let verify = ["verify", run.to_str().unwrap()];
    let said = desk.provost(&verify);
    assert_eq!(said.exit, 0, "{said:?}");
    fs::write(run.join(name), "{}").unwrap();
    let said = desk.provost(&verify);
    assert_eq!(said.exit, 5, "{said:?}");
    let problem = "is not what the contract was read from";
    assert!(format!("{said:?}").contains(problem), "{said:?}");
    fs::remove_file(run.join(name)).unwrap();
    assert_eq!(desk.provost(&verify).exit, 5);
}
