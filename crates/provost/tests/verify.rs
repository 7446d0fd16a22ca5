//! Verifies bundles with the real binary, where there is neither repository nor registry.

#[cfg(test)]
#[path = "../../provost-core/tests/bundle/course.rs"]
mod course;
#[cfg(test)]
#[expect(dead_code, reason = "the lies are told in the tests of the core")]
#[path = "../../provost-core/tests/bundle/sample.rs"]
mod sample;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output};

    use serde_json::Value;

    use crate::sample::{Bundle, Draft, key};

    /// `text` with digests cut to what a page holds.
    fn short(text: &str) -> String {
        let digit = |character: char| character.is_ascii_hexdigit();
        let mut words = Vec::new();
        for word in text.split_inclusive(|character| !digit(character)) {
            let digits = word.trim_end_matches(|character| !digit(character));
            if digits.len() >= 40 {
                words.push(word.replace(digits, &format!("{}~", &digits[..6])));
            } else {
                words.push(word.to_owned());
            }
        }
        words.concat()
    }

    struct Place {
        scratch: tempfile::TempDir,
    }

    impl Place {
        /// An empty directory, a bundle beside it, and no keys.
        fn new() -> Self {
            let scratch = tempfile::tempdir().unwrap();
            fs::create_dir(scratch.path().join("empty")).unwrap();
            let place = Self { scratch };
            place.write(&Draft::new("run_00000001").seal(&key(1)));
            place
        }

        fn write(&self, bundle: &Bundle) {
            for (name, bytes) in bundle {
                let path = self.file(std::str::from_utf8(name.as_bytes()).unwrap());
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
        }

        fn file(&self, name: &str) -> PathBuf {
            self.scratch.path().join("bundle").join(name)
        }

        fn run(&self, arguments: &[&str]) -> Output {
            Command::new(env!("CARGO_BIN_EXE_provost"))
                .args(arguments)
                .current_dir(self.scratch.path().join("empty"))
                .env_clear()
                .env("PROVOST_KEYS", self.scratch.path().join("keys"))
                .output()
                .unwrap()
        }

        fn trust(&self, seed: u8) {
            let line = key(seed).public().to_string();
            let output = self.run(&["key", "trust", &line, "--name", "ada"]);
            assert_eq!(output.status.code(), Some(0), "{output:?}");
        }

        fn verify(&self, more: &[&str]) -> (Option<i32>, String) {
            let output = self.run(&[&["verify", "../bundle"], more].concat());
            let text = String::from_utf8(output.stdout).unwrap();
            (output.status.code(), short(&text))
        }
    }

    #[test]
    fn a_bundle_is_verified_by_itself() {
        let place = Place::new();
        place.trust(1);
        let (exit, text) = place.verify(&[]);
        assert_eq!(exit, Some(0));
        insta::assert_snapshot!(text, @r"
        ✓ intact: yes, no byte differs from what was sealed
        ✓ complete: yes, the run is sealed and nothing is missing
        ✓ authentic: yes, signed by ed25519:iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w= ada
        run run_00000001: accepted (OK), tree 71e061~
        ");
        let (exit, text) = place.verify(&["--json"]);
        assert_eq!(exit, Some(0));
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["allow"], true);
        assert_eq!(answer["details"]["state"], "sealed");
        for question in ["intact", "complete", "authentic"] {
            assert_eq!(answer["details"][question], "yes");
        }
        assert_eq!(
            fs::read_dir(place.scratch.path().join("empty"))
                .unwrap()
                .count(),
            0
        );
    }

    #[test]
    fn what_does_not_hold_is_shown_in_its_place() {
        let place = Place::new();
        place.trust(1);
        fs::write(place.file("tests/stdout.log"), "2 passed\n").unwrap();
        fs::write(place.file("note\x1b[2J.txt"), "").unwrap();
        fs::remove_file(place.file("meta.json")).unwrap();
        let (exit, text) = place.verify(&[]);
        assert_eq!(exit, Some(5));
        insta::assert_snapshot!(text, @r"
        ✗ intact: no, something differs from what was sealed
          reports/test_report.json commands[].stdout: names another digest of `tests/stdout.log`
          tests/stdout.log: has the digest ec5ce4~, was sealed with a92b7f~
        ✗ complete: no, the run is sealed, but files are missing or were added
          meta.json: is missing; the manifest names it
          note\x1b[2J.txt: has a name no evidence has
        ✓ authentic: yes, signed by ed25519:iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w= ada
        error[EVIDENCE_ALTERED]: the evidence was altered
        hint: provost explain EVIDENCE_ALTERED
        ");
        let (exit, text) = place.verify(&["--json"]);
        assert_eq!(exit, Some(5));
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["code"], "EVIDENCE_ALTERED");
    }

    #[test]
    fn the_key_decides_the_exit() {
        let place = Place::new();
        let (mine, other) = (key(1).public().to_string(), key(2).public().to_string());
        let (exit, text) = place.verify(&[]);
        assert_eq!(exit, Some(1), "nobody is trusted");
        insta::assert_snapshot!(text, @r"
        ? intact: cannot be told, every file fits a statement whose signature cannot be checked here
        ✓ complete: yes, the run is sealed and nothing is missing
        ✗ authentic: no, signed by a key that is not trusted here
          attestation.dsse.json: is signed by a key that is not trusted here: 34750f~
        error[KEY_UNKNOWN]: the key that signed it is not one that is trusted
        hint: provost explain KEY_UNKNOWN
        ");
        assert_eq!(place.verify(&["--key", &mine]).0, Some(0));
        assert_eq!(place.verify(&["--key", &other]).0, Some(5));
        let file = place.scratch.path().join("ada.pub");
        fs::write(&file, format!("{mine} ada\n")).unwrap();
        assert_eq!(place.verify(&["--key", file.to_str().unwrap()]).0, Some(0));
        place.trust(1);
        assert_eq!(place.verify(&["--key", &other]).0, Some(5));
        assert_eq!(place.verify(&["--key", "ed25519:AAAA"]).0, Some(2));
        fs::remove_file(place.file("attestation.dsse.json")).unwrap();
        assert_eq!(place.verify(&[]).0, Some(5));
    }

    #[test]
    fn a_run_that_goes_on_is_not_now() {
        let place = Place::new();
        for name in ["manifest.json", "attestation.dsse.json"] {
            fs::remove_file(place.file(name)).unwrap();
        }
        let ledger = fs::read_to_string(place.file("events.jsonl")).unwrap();
        let first = ledger.lines().next().unwrap().to_owned() + "\n";
        fs::write(place.file("events.jsonl"), first).unwrap();
        let (exit, text) = place.verify(&[]);
        assert_eq!(exit, Some(3));
        insta::assert_snapshot!(text, @r"
        ✓ intact: yes, no byte of the ledger differs so far
        ? complete: cannot be told, the run has not ended yet
        ? authentic: cannot be told, a run is signed when it ends
        error[RUN_UNFINISHED]: the run has not ended yet
        hint: provost explain RUN_UNFINISHED
        ");
    }

    fn fifo(path: &Path) {
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, 0o600.into(), 0).unwrap();
    }

    #[test]
    fn what_is_no_file_is_a_finding_and_never_a_wait() {
        let names = [
            "events.jsonl",
            "manifest.json",
            "attestation.dsse.json",
            "patch.diff",
            "new",
        ];
        for name in names {
            for link in [true, false] {
                let place = Place::new();
                place.trust(1);
                let path = place.file(name);
                let moved = place.scratch.path().join("moved");
                if path.exists() {
                    fs::rename(&path, &moved).unwrap();
                }
                if link {
                    symlink(&moved, &path).unwrap();
                } else {
                    fifo(&path);
                }
                let (exit, text) = place.verify(&[]);
                assert_eq!(exit, Some(5), "{name}: {text}");
                assert!(text.contains(&format!("  {name}: ")), "{text}");
            }
        }
        let place = Place::new();
        place.trust(1);
        let strange = place.file("").join(std::ffi::OsStr::from_bytes(b"\xff\n"));
        fs::write(strange, "").unwrap();
        let (exit, text) = place.verify(&[]);
        assert_eq!(exit, Some(5));
        assert!(
            text.contains("  \\xff\\x0a: has a name no evidence has\n"),
            "{text}"
        );
    }

    #[test]
    fn what_is_no_bundle_is_refused() {
        let place = Place::new();
        let exit = |arguments: &[&str]| place.run(arguments).status.code();
        assert_eq!(exit(&["verify", "../none"]), Some(2));
        assert_eq!(exit(&["verify", "../bundle/patch.diff"]), Some(2));
        assert_eq!(exit(&["verify", "."]), Some(5));
        assert_eq!(exit(&["verify"]), Some(2));
    }

    #[test]
    fn keys_are_made_shown_and_trusted() {
        let place = Place::new();
        let text = |output: Output| String::from_utf8(output.stdout).unwrap();
        assert!(text(place.run(&["key", "show"])).starts_with("no key yet"));
        let made = place.run(&["key", "new", "--name", "laptop of Ada", "--json"]);
        assert_eq!(made.status.code(), Some(0), "{made:?}");
        let made: Value = serde_json::from_str(&text(made)).unwrap();
        let line = format!("{} laptop of Ada", made["key"].as_str().unwrap());
        assert!(text(place.run(&["key", "show"])).starts_with(&line));
        assert_eq!(
            place.run(&["key", "new"]).status.code(),
            Some(2),
            "never replaced"
        );
        place.trust(2);
        let shown = text(place.run(&["key", "show"]));
        assert!(
            shown.contains(&format!("trusted: {} ada\n", key(2).public())),
            "{shown}"
        );
        assert_eq!(
            place.run(&["key", "trust", "nonsense"]).status.code(),
            Some(2)
        );

        let secret = place.scratch.path().join("keys/signing.key");
        assert!(!shown.contains(fs::read_to_string(&secret).unwrap().trim()));
        let directory = place.scratch.path().join("keys");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let refused = place.run(&["verify", "../bundle"]);
        assert_eq!(refused.status.code(), Some(4));
        let words = String::from_utf8(refused.stderr).unwrap();
        assert!(
            words.contains("error[KEY_UNSAFE]") && words.contains("chmod 700"),
            "{words}"
        );
    }

    #[test]
    fn keys_are_not_made_in_the_repository() {
        let place = Place::new();
        fs::create_dir(place.scratch.path().join(".git")).unwrap();
        let refused = place.run(&["key", "new"]);
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        assert!(!place.scratch.path().join("keys").exists());
    }
}
