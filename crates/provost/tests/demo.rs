//! `provost demo` from beginning to end, and what it leaves behind.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::{Command, Output};
    use std::time::{Duration, Instant};

    use serde_json::Value;
    use tempfile::TempDir;

    /// A user with something to lose.
    struct User {
        top: TempDir,
    }

    impl User {
        fn new() -> Self {
            let top = tempfile::tempdir().unwrap();
            for name in ["home/.ssh", "home/.config/provost/keys", "tmp", "work"] {
                fs::create_dir_all(top.path().join(name)).unwrap();
            }
            fs::write(top.path().join("home/.ssh/id_ed25519"), "mine\n").unwrap();
            fs::write(top.path().join("home/.config/provost/keys/trusted"), "").unwrap();
            Self { top }
        }

        fn demo(&self, words: &[&str]) -> Output {
            let at = |name: &str| self.top.path().join(name);
            Command::new(env!("CARGO_BIN_EXE_provost"))
                .arg("demo")
                .args(words)
                .current_dir(at("work"))
                .env("HOME", at("home"))
                .env("TMPDIR", at("tmp"))
                .env_remove("XDG_CACHE_HOME")
                .env_remove("XDG_CONFIG_HOME")
                .env_remove("PROVOST_ROOT")
                .env_remove("PROVOST_KEYS")
                .output()
                .unwrap()
        }

        /// Every path below `name`, sorted.
        fn paths(&self, name: &str) -> Vec<String> {
            let top = self.top.path().join(name);
            let mut open = vec![top.clone()];
            let mut found = Vec::new();
            while let Some(directory) = open.pop() {
                for entry in fs::read_dir(directory).unwrap() {
                    let path = entry.unwrap().path();
                    found.push(path.strip_prefix(&top).unwrap().display().to_string());
                    if path.is_dir() {
                        open.push(path);
                    }
                }
            }
            found.sort();
            found
        }
    }

    const ACTS: [&str; 9] = [
        "honest",
        "out_of_scope",
        "false_claim",
        "reaching_out",
        "hanging",
        "mended",
        "tampering",
        "landing",
        "moved",
    ];

    #[test]
    fn every_act_goes_as_it_must_and_what_is_kept_can_be_looked_at() {
        let user = User::new();
        let began = Instant::now();
        let output = user.demo(&["--json", "--keep"]);
        assert!(output.status.success(), "{output:?}");
        // Far more than it takes, and still within a nap.
        assert!(began.elapsed() < Duration::from_mins(1));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let acts = answer["acts"].as_array().unwrap();
        let names: Vec<&str> = acts
            .iter()
            .map(|act| act["act"].as_str().unwrap())
            .collect();
        assert_eq!(names, ACTS);
        for act in acts {
            assert!(act["expected"].is_object(), "{act}");
            assert_eq!(act["expected"], act["got"], "{act}");
            assert_eq!(act["held"], true, "{act}");
        }
        let kept = Path::new(answer["directory"].as_str().unwrap());
        assert!(kept.join("repository/src/slug.sh").is_file());
        assert_eq!(fs::read_dir(kept.join("runtime/runs")).unwrap().count(), 6);
    }

    #[test]
    fn a_user_keeps_everything_and_finds_nothing_new() {
        let user = User::new();
        let before = (user.paths("home"), user.paths("work"));
        let output = user.demo(&[]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!((user.paths("home"), user.paths("work")), before);
        assert_eq!(user.paths("tmp"), [""; 0]);

        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains('\x1b'), "colours without a terminal: {text}");
        assert!(!text.contains("mine"), "{text}");
        assert_eq!(text.matches("\n✓  ").count(), ACTS.len(), "{text}");
        for word in [
            "accepted",
            "DIFF_REFUSED",
            "ACCEPTANCE_FAILED",
            "contained",
            "AGENT_TIMEOUT",
            "REVIEW_REFUSED",
            "on the merge",
        ] {
            assert!(text.contains(word), "`{word}` in {text}");
        }
    }
}
