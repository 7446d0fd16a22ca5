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
    fn the_kind_of_project_suggests_what_tests_it() {
        let cases = [
            ("Cargo.toml", "", "rust", "cargo test"),
            (
                "package.json",
                r#"{"scripts":{"test":"x"}}"#,
                "node",
                "npm test",
            ),
            ("pyproject.toml", "[tool.pytest]", "python", "pytest -q"),
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
            let program = accept.split(' ').next().unwrap();
            stage.write(&format!("bin/{program}"), "");
            let answer = init(&stage).json;
            assert_eq!(answer["project"]["kind"], kind);
            assert_eq!(answer["project"]["accept"], accept);
            let last = answer["next"].as_array().unwrap().last().unwrap();
            assert!(last.as_str().unwrap().contains(accept), "{last}");
            let policy = fs::read_to_string(stage.path("repo/provost.toml")).unwrap();
            assert!(
                policy.contains(&format!("# allow = [\"{accept}\"]")),
                "{policy}"
            );
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
