//! `provost init` on real repositories.

#[cfg(test)]
mod tests {
    use std::fs;

    use provost_testkit::stage::{Outcome, PATH, Stage, program};
    use serde_json::Value;

    /// What `provost init` answers, with a directory of the test's own at the end of PATH.
    fn init(stage: &Stage) -> Outcome {
        let mut command = stage.provost(&["init", "--json"]);
        command.env("PATH", format!("{PATH}:{}", stage.path("bin").display()));
        stage.spawn(command).wait()
    }

    /// A directory that is a repository, and no more.
    fn stage() -> Stage {
        Stage::with(&[])
    }

    fn states(answer: &Value) -> Vec<&str> {
        let places = answer["places"].as_array().unwrap();
        places
            .iter()
            .map(|place| place["state"].as_str().unwrap())
            .collect()
    }

    #[test]
    fn a_second_call_changes_nothing() {
        let stage = stage();
        let first = init(&stage);
        assert!(first.exit == 0, "{first:?}");
        assert_eq!(states(&first.json), ["made", "made", "made"]);
        let policy = fs::read(stage.path("repo/provost.toml")).unwrap();
        let exclude = fs::read(stage.path("repo/.git/info/exclude")).unwrap();

        let second = init(&stage);
        assert!(second.exit == 0, "{second:?}");
        assert_eq!(states(&second.json), ["there", "there", "there"]);
        let same = |name: &str, before: &[u8]| {
            assert_eq!(fs::read(stage.path("repo").join(name)).unwrap(), before);
        };
        same("provost.toml", &policy);
        same(".git/info/exclude", &exclude);
        // The runtime root is hidden from git, the policy is for the user to commit.
        assert_eq!(stage.git(&["status", "--porcelain"]), "?? provost.toml");
    }

    #[test]
    fn the_next_steps_can_be_pasted_and_lead_to_an_accepted_run() {
        let stage = stage();
        stage.write("repo/README", "hello\n");
        let output = init(&stage);
        let steps = output.json["next"].as_array().unwrap().clone();
        assert_eq!(steps.len(), 2, "commit, then run: {steps:?}");
        for step in steps {
            let step = step.as_str().unwrap();
            let mut command = stage.command("sh");
            let beside = program().parent().unwrap().display().to_string();
            command
                .args(["-c", step])
                .env("PATH", format!("{beside}:{PATH}"));
            let outcome = stage.spawn(command).wait();
            assert_eq!(outcome.exit, 0, "{step}: {outcome:?}");
        }
        let branches = stage.git(&["branch", "--list", "provost/*"]);
        assert_eq!(branches.lines().count(), 1, "{branches}");
        let steps = init(&stage).json["next"].clone();
        assert_eq!(steps.as_array().unwrap().len(), 1, "committed: {steps}");
    }

    #[test]
    fn the_kind_of_project_decides_what_a_run_takes() {
        let cases = [
            ("Cargo.toml", "", "rust", "cargo test"),
            (
                "package.json",
                r#"{"scripts":{"test":"x"}}"#,
                "node",
                "npm test",
            ),
            (
                "pyproject.toml",
                "[tool.pytest]",
                "python",
                "python3 -m pytest -q",
            ),
            ("go.mod", "", "go", "go test ./..."),
            ("Makefile", "test:\n", "make", "make test"),
            (
                "tests/test_a.py",
                "",
                "python",
                "python3 -m unittest discover -s tests",
            ),
        ];
        for (file, text, kind, accept) in cases {
            let stage = stage();
            stage.write(&format!("repo/{file}"), text);
            let answer = init(&stage).json;
            assert_eq!(answer["project"]["kinds"][0]["kind"], kind);
            assert_eq!(answer["project"]["accept"][0], accept);
            assert_eq!(answer["tried"]["state"], "not_tried", "there is no commit");
            let last = answer["next"].as_array().unwrap().last().unwrap();
            assert!(last.as_str().unwrap().contains(accept), "{last}");
            let policy = fs::read_to_string(stage.path("repo/provost.toml")).unwrap();
            assert!(
                policy.contains(&format!("\naccept = [\"{accept}\"]")),
                "{policy}"
            );
        }
    }

    #[test]
    fn a_policy_without_defaults_is_left_and_the_lines_are_shown() {
        let stage = Stage::with(&[("Cargo.toml", ""), ("src/lib.rs", "")]);
        stage.commit(&[("provost.toml", "[commands]\nallow = []\n")]);
        let answer = init(&stage).json;
        let lines = answer["suggested"].as_str().unwrap();
        assert!(
            lines.contains("[run]") && lines.contains("allow = [\"src\"]"),
            "{lines}"
        );
        stage.commit(&[("provost.toml", &format!("[commands]\nallow = []\n{lines}"))]);
        assert_eq!(init(&stage).json["suggested"], Value::Null);
    }

    #[test]
    fn an_installed_program_becomes_the_agent() {
        let stage = Stage::with(&[("Makefile", "test:\n\ttrue\n"), ("a.c", "")]);
        stage.script("bin/claude", "#!/bin/sh\necho 2.0.0\n");
        let answer = init(&stage);
        assert_eq!(answer.json["agent"], "claude", "{answer:?}");
        let next = answer.json["next"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        assert!(next.as_str().unwrap().ends_with("run 'Fix …'"), "{next}");
    }

    #[test]
    fn the_tests_are_tried_and_what_is_missing_is_said() {
        let cases = [
            ("test:\n\ttrue\n", "passed", ""),
            (
                "test:\n\techo broken; exit 3\n",
                "failed",
                "nothing is missing",
            ),
            ("test:\n\tno-such-program\n", "failed", "[[prepare]]"),
        ];
        for (makefile, state, hint) in cases {
            let stage = Stage::with(&[("Makefile", makefile), ("a.c", "")]);
            if !stage.has_sandbox() || provost_testkit::lacks(&["make"]) {
                return;
            }
            let answer = init(&stage);
            assert_eq!(answer.exit, 0, "{answer:?}");
            assert_eq!(answer.json["tried"]["state"], state, "{answer:?}");
            let said = answer.json["tried"]["hint"].as_str().unwrap_or_default();
            assert!(said.contains(hint), "{answer:?}");
            assert!(stage.path("repo/provost.toml").is_file());
            let skipped = stage.ask(&["init", "--no-try", "--json"]);
            assert_eq!(skipped.json["tried"]["reason"], "--no-try", "{skipped:?}");
        }
    }

    #[test]
    fn a_policy_that_is_there_is_never_written() {
        let cases: [(&str, &str, &str, i32); 3] = [
            (
                "one of one's own",
                "[commands]\nallow = [\"x\"]\n",
                "there",
                0,
            ),
            ("one that is broken", "surprise = 1\n", "broken", 1),
            ("one that is empty", "", "there", 0),
        ];
        for (name, text, state, status) in cases {
            let stage = stage();
            let policy = stage.path("repo/provost.toml");
            fs::write(&policy, text).unwrap();
            let output = init(&stage);
            assert_eq!(output.exit, status, "{name}: {output:?}");
            assert_eq!(states(&output.json)[2], state, "{name}");
            assert_eq!(fs::read_to_string(&policy).unwrap(), text, "{name}");
        }
    }

    #[test]
    fn a_link_in_place_of_a_policy_is_not_followed() {
        let stage = stage();
        let target = stage.path("elsewhere");
        std::os::unix::fs::symlink(&target, stage.path("repo/provost.toml")).unwrap();
        let output = init(&stage);
        assert_eq!(output.exit, 1, "{output:?}");
        assert!(!target.exists());
    }

    #[test]
    fn only_a_checkout_can_be_made_ready() {
        let nothing = Stage::empty();
        let bare = Stage::empty();
        bare.git(&["init", "--quiet", "--bare"]);
        for (name, stage) in [("no repository", nothing), ("a bare one", bare)] {
            let output = init(&stage);
            assert_eq!(output.exit, 2, "{name}: {output:?}");
            assert_eq!(output.json["code"], "NOT_A_REPOSITORY", "{name}");
            for made in ["repo/provost.toml", "repo/.provost", "cache"] {
                assert!(!stage.path(made).exists(), "{name}: {made}");
            }
        }
    }
}
