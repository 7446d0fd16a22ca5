//! What is said before a run begins, and around the first one.

use std::fs;

use provost_testkit::stage::{Stage, only_home};

use crate::stage::{GOOD, Person as _, greeting, stage, with_sandbox};

#[test]
fn what_cannot_become_a_run_is_refused_before_one_is_opened() {
    let stage = stage();
    let run = |more: &[&str]| {
        let mut words = greeting("Greet", "true").to_vec();
        words.extend(more);
        stage.typed(&words)
    };
    let cases = [
        (stage.typed(&["run", "Greet"]), "--allow"),
        (stage.typed(&["run", "Greet", "--allow", "src"]), "--accept"),
        (
            stage.typed(&greeting(" ", "true")),
            "say what is to be done",
        ),
        (run(&["--target", "mian"]), "there is no branch `mian`"),
        (run(&["--target", "../x y"]), "there is no branch `../x y`"),
    ];
    for (said, want) in cases {
        assert_eq!(said.exit, 2, "{want}: {said:?}");
        assert_eq!(said.stderr.matches("error").count(), 1, "{said:?}");
        assert!(said.stderr.contains(want), "{want}: {said:?}");
    }
    stage.git(&["checkout", "--quiet", "--detach"]);
    let said = run(&[]);
    assert_eq!(said.exit, 2, "{said:?}");
    assert!(said.stderr.contains("--target"), "{said:?}");
    assert!(!stage.path("repo/.provost/runs").exists());
}

#[test]
fn a_flag_that_breaks_a_rule_is_named_with_what_to_write_instead() {
    let stage = stage();
    let inside = stage.path("repo/src").display().to_string();
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
        let said = stage.typed(&words);
        assert_eq!(said.exit, 2, "{value}: {said:?}");
        assert!(
            said.stderr
                .starts_with(&format!("error[USAGE_ERROR]: `{flag}"))
        );
        for want in [problem, instead] {
            assert!(said.stderr.contains(want), "{want}: {said:?}");
        }
        assert!(!said.stderr.contains("/allowed_paths"), "{said:?}");
    }
    let mut words = greeting("Greet", "true").to_vec();
    words.extend(["--allow", "*", "--forbid", "/", "--json"]);
    let said = stage.typed(&words);
    assert!(said.out().contains("`--allow '*'`: "), "{said:?}");
    assert!(said.out().contains("also `--forbid /`: "), "{said:?}");
    assert!(!stage.path("repo/.provost/runs").exists());
}

#[test]
fn a_file_that_is_no_contract_is_named_with_field_and_page() {
    let stage = stage();
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
        stage.write("repo/c.json", text);
        let said = stage.typed(&["run", "-f", "c.json", "--agent-cmd", "true"]);
        assert_eq!(said.exit, exit, "{said:?}");
        assert!(said.stderr.contains(want), "{want}: {said:?}");
        let hint = "hint: `provost explain contract`";
        assert!(said.stderr.contains(hint), "{said:?}");
    }
    let page = stage.typed(&["explain", "contract"]);
    assert!(
        page.out().contains("\"allowed_paths\": [\"src/greet.py\"]"),
        "{page:?}"
    );
}

#[test]
fn the_minimal_example_of_the_page_is_a_contract_that_runs() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    let example = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    ));
    stage.commit(&[("tests/test_greet.py", "import unittest\n")]);
    // What is JSON is YAML too.
    for name in ["home/contract.json", "home/contract.yaml"] {
        let file = stage.path(name);
        fs::write(&file, example).unwrap();
        let file = file.to_str().unwrap();
        let said = stage.typed(&["run", "-f", file, "--agent-cmd", "true"]);
        assert!(said.out().contains("refused[EMPTY_DIFF]"), "{said:?}");
        let ending = file.rsplit('.').next().unwrap();
        what_was_written_is_sealed(&stage, &format!("contract.source.{ending}"), example);
    }
    let toml = stage.path("home/contract.toml");
    fs::write(&toml, example).unwrap();
    let said = stage.typed(&["run", "-f", toml.to_str().unwrap(), "--agent-cmd", "true"]);
    assert!(said.stderr.contains("contract.toml"), "{said:?}");
}

#[test]
fn a_failure_shows_the_end_of_its_output() {
    let Some(stage) = with_sandbox() else {
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
        (
            "sh -c 'seq 100'",
            "the agent made no changes; it said: \"100\"",
            "| 91\n",
        ),
    ];
    for (agent, reason, line) in cases {
        let said = stage.typed(&greeting("Greet", agent));
        assert_eq!(said.exit, 1, "{agent}: {said:?}");
        assert!(said.out().contains(reason), "{agent}: {said:?}");
        assert!(said.out().contains(line), "{agent}: {said:?}");
        assert!(!said.out().contains("| 90\n"), "{agent}: {said:?}");
    }
    let shown = stage.typed(&["show"]);
    assert!(shown.out().contains("| 100\n"), "{shown:?}");
}

#[test]
fn a_landed_run_says_so_and_leaves_nothing_to_clean_up() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    let said = stage.typed(&greeting("Greet\n\nAs one does.", GOOD));
    assert_eq!(said.exit, 0, "{said:?}");
    assert!(
        stage
            .typed(&["runs"])
            .out()
            .ends_with("ACCEPTED            Greet\n")
    );
    assert_eq!(stage.typed(&["salvage", "list"]).out().lines().count(), 2);
    assert_eq!(
        stage
            .git(&["branch", "--list", "provost/*"])
            .lines()
            .count(),
        1
    );

    assert_eq!(stage.typed(&["land", "last"]).exit, 0);
    let shown = stage.typed(&["show"]);
    assert!(
        shown.out().contains("  landed   main, commit "),
        "{shown:?}"
    );
    assert!(!shown.out().contains("next:"), "{shown:?}");
    assert!(
        stage
            .typed(&["runs"])
            .out()
            .ends_with("LANDED              Greet\n")
    );
    assert_eq!(stage.typed(&["salvage", "list"]).out(), "nothing is kept\n");
    assert_eq!(stage.git(&["branch", "--list", "provost/*"]), "");
    let message = stage.git(&["log", "-1", "--format=%B"]);
    assert_eq!(message.matches("Greet").count(), 1, "{message}");
    assert!(
        message.contains("\n\nAs one does.\n\nProvost-Run: "),
        "{message}"
    );
    let again = stage.typed(&["land", "last"]);
    assert_eq!(again.exit, 0, "{again:?}");
    assert_eq!(stage.typed(&["verify"]).exit, 0);
    let restored = stage.typed(&["salvage", "restore", "last"]);
    assert_eq!(restored.exit, 2, "{restored:?}");
    assert!(restored.stderr.contains("has landed"), "{restored:?}");

    // A user who takes the landing back can land again.
    stage.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let shown = stage.typed(&["show"]);
    let words = "; the branch no longer holds it\nnext: provost land ";
    assert!(shown.out().contains(words), "{shown:?}");
    let runs = stage.typed(&["runs"]);
    assert!(runs.out().contains("  ACCEPTED "), "{runs:?}");
    assert_eq!(stage.typed(&["salvage", "list"]).out().lines().count(), 2);
    let restored = stage.typed(&["salvage", "restore", "last"]);
    assert_eq!(restored.exit, 0, "{restored:?}");
    assert_eq!(stage.typed(&["land", "last"]).exit, 0);
}

#[test]
fn a_branch_with_commits_of_the_user_stays() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    assert_eq!(stage.typed(&greeting("Greet", GOOD)).exit, 0);
    let branch = stage.git(&["branch", "--list", "--format=%(refname)", "provost/*"]);
    let tree = stage.git(&["rev-parse", "main^{tree}"]);
    let more = stage.git(&[
        "commit-tree",
        "-m",
        "More",
        "-p",
        branch.trim(),
        tree.trim(),
    ]);
    stage.git(&["update-ref", branch.trim(), more.trim()]);
    assert_eq!(stage.typed(&["land", "last"]).exit, 0);
    assert_eq!(stage.git(&["rev-parse", branch.trim()]), more);
}

#[test]
fn a_command_that_only_reads_needs_no_home() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    assert_eq!(stage.typed(&greeting("Greet", GOOD)).exit, 0);
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
        let mut command = stage.call(&words);
        only_home(&mut command, None);
        let said = stage.spawn(command).wait();
        assert_eq!(
            (said.exit, said.stderr.as_str()),
            (0, ""),
            "{line}: {said:?}"
        );
    }
}

#[test]
fn what_the_agent_will_not_see_is_said_at_the_start() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    let clean = stage.typed(&greeting("Greet", GOOD));
    assert!(!clean.stderr.contains("note:"), "{clean:?}");
    stage.write("repo/provost.toml", "");
    stage.write("repo/src/greet", "hi there\n");
    let mut words = greeting("Greet", GOOD).to_vec();
    words.extend(["--allow", "greet"]);
    let mut command = stage.call(&words);
    command.current_dir(stage.path("repo/src"));
    let said = stage.spawn(command).wait();
    for note in [
        "`src/greet`?",
        "1 uncommitted path;",
        "provost.toml is not committed",
    ] {
        assert!(said.stderr.contains(note), "{note}: {said:?}");
    }
    let status = stage.git(&["status", "--porcelain"]);
    assert_eq!(status, "M src/greet\n?? provost.toml");
}

/// The bundle that has the file `name` is whole with it, and not with another.
fn what_was_written_is_sealed(stage: &Stage, name: &str, text: &str) {
    let runs = fs::read_dir(stage.path("repo/.provost/runs")).unwrap();
    let mut runs = runs.map(|entry| entry.unwrap().path());
    let run = runs.find(|run| run.join(name).exists()).unwrap();
    assert_eq!(fs::read_to_string(run.join(name)).unwrap(), text);
    let verify = ["verify", run.to_str().unwrap()];
    let said = stage.typed(&verify);
    assert_eq!(said.exit, 0, "{said:?}");
    fs::write(run.join(name), "{}").unwrap();
    let said = stage.typed(&verify);
    assert_eq!(said.exit, 5, "{said:?}");
    let problem = "is not what the contract was read from";
    assert!(format!("{said:?}").contains(problem), "{said:?}");
    fs::remove_file(run.join(name)).unwrap();
    assert_eq!(stage.typed(&verify).exit, 5);
}
