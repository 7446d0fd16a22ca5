//! `provost init` on real repositories.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::{Command, Output};

    use serde_json::Value;
    use tempfile::TempDir;

    /// A directory for a repository, with a home and a cache beside it.
    struct Ground {
        top: TempDir,
    }

    impl Ground {
        fn new() -> Self {
            let top = tempfile::tempdir().unwrap();
            for name in ["repository", "home", "bin"] {
                fs::create_dir(top.path().join(name)).unwrap();
            }
            Self { top }
        }

        fn repository(&self) -> std::path::PathBuf {
            self.top.path().join("repository")
        }

        fn call(&self, program: &str, words: &[&str]) -> Output {
            Command::new(program)
                .args(words)
                .current_dir(self.repository())
                .env("HOME", self.top.path().join("home"))
                .env("PATH", self.path())
                .env("XDG_CACHE_HOME", self.top.path().join("cache"))
                .env("PROVOST_KEYS", self.top.path().join("keys"))
                .env_remove("PROVOST_ROOT")
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_AUTHOR_NAME", "Somebody")
                .env("GIT_AUTHOR_EMAIL", "somebody@localhost")
                .env("GIT_COMMITTER_NAME", "Somebody")
                .env("GIT_COMMITTER_EMAIL", "somebody@localhost")
                .output()
                .unwrap()
        }

        /// PATH with a directory of the test's own at its end.
        fn path(&self) -> String {
            let path = std::env::var("PATH").unwrap();
            format!("{path}:{}", self.top.path().join("bin").display())
        }

        /// Makes sure that a program can be found.
        fn install(&self, program: &str) {
            fs::write(self.top.path().join("bin").join(program), "").unwrap();
        }

        fn git(&self, words: &[&str]) -> String {
            let output = self.call("git", words);
            assert!(output.status.success(), "git {words:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        }

        fn init(&self) -> Output {
            self.call(env!("CARGO_BIN_EXE_provost"), &["init", "--json"])
        }
    }

    fn answer(output: &Output) -> Value {
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
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
        let ground = Ground::new();
        ground.git(&["init", "--quiet"]);
        let first = ground.init();
        assert!(first.status.success(), "{first:?}");
        assert_eq!(states(&answer(&first)), ["made", "made", "made"]);
        let policy = fs::read(ground.repository().join("provost.toml")).unwrap();
        let exclude = fs::read(ground.repository().join(".git/info/exclude")).unwrap();

        let second = ground.init();
        assert!(second.status.success(), "{second:?}");
        assert_eq!(states(&answer(&second)), ["there", "there", "there"]);
        let same = |name: &str, before: &[u8]| {
            assert_eq!(fs::read(ground.repository().join(name)).unwrap(), before);
        };
        same("provost.toml", &policy);
        same(".git/info/exclude", &exclude);
        // The runtime root is hidden from git, the policy is for the user to commit.
        assert_eq!(ground.git(&["status", "--porcelain"]), "?? provost.toml\n");
    }

    #[test]
    fn the_next_steps_can_be_pasted_and_lead_to_an_accepted_run() {
        let ground = Ground::new();
        ground.git(&["init", "--quiet", "--initial-branch=main"]);
        fs::write(ground.repository().join("README"), "hello\n").unwrap();
        let output = ground.init();
        let steps = answer(&output)["next"].as_array().unwrap().clone();
        assert_eq!(steps.len(), 2, "commit, then run: {steps:?}");
        for step in steps {
            let step = step.as_str().unwrap();
            let output = ground.call("sh", &["-c", step]);
            assert!(output.status.success(), "{step}: {output:?}");
        }
        let branches = ground.git(&["branch", "--list", "provost/*"]);
        assert_eq!(branches.lines().count(), 1, "{branches}");
        let steps = answer(&ground.init())["next"].clone();
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
            let ground = Ground::new();
            ground.git(&["init", "--quiet"]);
            let path = ground.repository().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            let program = accept.split(' ').next().unwrap();
            ground.install(program);
            let answer = answer(&ground.init());
            assert_eq!(answer["project"]["kind"], kind);
            assert_eq!(answer["project"]["accept"], accept);
            let last = answer["next"].as_array().unwrap().last().unwrap();
            assert!(last.as_str().unwrap().contains(accept), "{last}");
            let policy = fs::read_to_string(ground.repository().join("provost.toml")).unwrap();
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
            let ground = Ground::new();
            ground.git(&["init", "--quiet"]);
            let policy = ground.repository().join("provost.toml");
            fs::write(&policy, text).unwrap();
            let output = ground.init();
            assert_eq!(output.status.code(), Some(status), "{name}: {output:?}");
            assert_eq!(states(&answer(&output))[2], state, "{name}");
            assert_eq!(fs::read_to_string(&policy).unwrap(), text, "{name}");
        }
    }

    #[test]
    fn a_link_in_place_of_a_policy_is_not_followed() {
        let ground = Ground::new();
        ground.git(&["init", "--quiet"]);
        let target = ground.top.path().join("elsewhere");
        std::os::unix::fs::symlink(&target, ground.repository().join("provost.toml")).unwrap();
        let output = ground.init();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(!target.exists());
    }

    #[test]
    fn only_a_checkout_can_be_made_ready() {
        let nothing = Ground::new();
        let bare = Ground::new();
        bare.git(&["init", "--quiet", "--bare"]);
        for (name, ground) in [("no repository", nothing), ("a bare one", bare)] {
            let output = ground.init();
            assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
            assert_eq!(answer(&output)["code"], "NOT_A_REPOSITORY", "{name}");
            let made = |at: &Path| at.join("provost.toml").exists() || at.join(".provost").exists();
            assert!(!made(&ground.repository()), "{name}");
            assert!(!ground.top.path().join("cache").exists(), "{name}");
        }
    }
}
