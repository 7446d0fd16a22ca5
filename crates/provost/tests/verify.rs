//! Verifies bundles with the real binary, where there is neither repository nor registry.

#[cfg(test)]
#[path = "../../provost-engine/tests/bundle/course.rs"]
mod course;
#[cfg(test)]
#[expect(dead_code, reason = "the tests of the core use the rest")]
#[path = "../../provost-engine/tests/bundle/sample.rs"]
mod sample;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;

    use provost_testkit::stage::{Outcome, Stage, only_home};
    use serde_json::Value;

    use crate::sample::{Draft, key};

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

    /// An empty directory, a bundle beside it, and no keys.
    fn stage() -> Stage {
        let stage = Stage::empty();
        for (name, bytes) in Draft::new("run_00000001").seal(&key(1)) {
            let name = std::str::from_utf8(name.as_bytes()).unwrap();
            stage.put(&format!("bundle/{name}"), &bytes);
        }
        stage
    }

    /// A call without any home; there are keys, and no programs.
    fn run(stage: &Stage, arguments: &[&str]) -> Outcome {
        let mut command = stage.provost(arguments);
        only_home(&mut command, None);
        command.env_remove("PATH");
        command.env("PROVOST_KEYS", stage.path("keys"));
        stage.spawn(command).wait()
    }

    fn trust(stage: &Stage, seed: u8) {
        let line = key(seed).public().to_string();
        let outcome = run(stage, &["key", "trust", &line, "--name", "ada"]);
        assert_eq!(outcome.exit, 0, "{outcome:?}");
    }

    fn verify(stage: &Stage, more: &[&str]) -> (i32, String) {
        let outcome = run(stage, &[&["verify", "../bundle"], more].concat());
        (outcome.exit, short(outcome.out()))
    }

    #[test]
    fn a_bundle_is_verified_by_itself() {
        let stage = stage();
        trust(&stage, 1);
        let (exit, text) = verify(&stage, &[]);
        assert_eq!(exit, 0);
        insta::assert_snapshot!(text, @r"
        ✓ intact: yes, no byte differs from what was sealed
        ✓ complete: yes, the run is sealed and nothing is missing
        ✓ authentic: yes, signed by ed25519:iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w= ada
        run run_00000001: accepted (OK), tree 71e061~
        ");
        let (exit, text) = verify(&stage, &["--json"]);
        assert_eq!(exit, 0);
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["allow"], true);
        assert_eq!(answer["details"]["state"], "sealed");
        for question in ["intact", "complete", "authentic"] {
            assert_eq!(answer["details"][question], "yes");
        }
        assert_eq!(fs::read_dir(stage.path("repo")).unwrap().count(), 0);
    }

    #[test]
    fn what_does_not_hold_is_shown_in_its_place() {
        let stage = stage();
        trust(&stage, 1);
        fs::write(stage.path("bundle/tests/stdout.log"), "2 passed\n").unwrap();
        fs::write(stage.path("bundle/note\x1b[2J.txt"), "").unwrap();
        fs::remove_file(stage.path("bundle/meta.json")).unwrap();
        let (exit, text) = verify(&stage, &[]);
        assert_eq!(exit, 5);
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
        let (exit, text) = verify(&stage, &["--json"]);
        assert_eq!(exit, 5);
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["code"], "EVIDENCE_ALTERED");
    }

    #[test]
    fn the_key_decides_the_exit() {
        let stage = stage();
        let (mine, other) = (key(1).public().to_string(), key(2).public().to_string());
        let (exit, text) = verify(&stage, &[]);
        assert_eq!(exit, 1, "no key is trusted");
        insta::assert_snapshot!(text, @r"
        ? intact: unknown, every file fits a statement whose signature cannot be checked here
        ✓ complete: yes, the run is sealed and nothing is missing
        ✗ authentic: no, signed by a key that is not trusted here
          attestation.dsse.json: is signed by a key that is not trusted here: 34750f~
        error[KEY_UNKNOWN]: the key that signed it is not one that is trusted
        hint: if you trust its signer: provost key trust PUBKEY
        ");
        assert_eq!(verify(&stage, &["--key", &mine]).0, 0);
        assert_eq!(verify(&stage, &["--key", &other]).0, 5);
        let file = stage.path("ada.pub");
        fs::write(&file, format!("{mine} ada\n")).unwrap();
        assert_eq!(verify(&stage, &["--key", file.to_str().unwrap()]).0, 0);
        trust(&stage, 1);
        assert_eq!(verify(&stage, &["--key", &other]).0, 5);
        assert_eq!(verify(&stage, &["--key", "ed25519:AAAA"]).0, 2);
        fs::remove_file(stage.path("bundle/attestation.dsse.json")).unwrap();
        assert_eq!(verify(&stage, &[]).0, 5);
    }

    #[test]
    fn a_run_that_is_still_active_cannot_be_judged_yet() {
        let stage = stage();
        for name in ["manifest.json", "attestation.dsse.json"] {
            fs::remove_file(stage.path("bundle").join(name)).unwrap();
        }
        let ledger = fs::read_to_string(stage.path("bundle/events.jsonl")).unwrap();
        let first = ledger.lines().next().unwrap().to_owned() + "\n";
        fs::write(stage.path("bundle/events.jsonl"), first).unwrap();
        let (exit, text) = verify(&stage, &[]);
        assert_eq!(exit, 3);
        insta::assert_snapshot!(text, @r"
        ✓ intact: yes, no byte of the ledger differs so far
        ? complete: unknown, the run has not ended yet
        ? authentic: unknown, a run is signed when it ends
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
                let stage = stage();
                trust(&stage, 1);
                let path = stage.path("bundle").join(name);
                let moved = stage.path("moved");
                if path.exists() {
                    fs::rename(&path, &moved).unwrap();
                }
                if link {
                    symlink(&moved, &path).unwrap();
                } else {
                    fifo(&path);
                }
                let (exit, text) = verify(&stage, &[]);
                assert_eq!(exit, 5, "{name}: {text}");
                assert!(text.contains(&format!("  {name}: ")), "{text}");
            }
        }
        let stage = stage();
        trust(&stage, 1);
        let strange = stage
            .path("bundle/")
            .join(std::ffi::OsStr::from_bytes(b"\xff\n"));
        fs::write(strange, "").unwrap();
        let (exit, text) = verify(&stage, &[]);
        assert_eq!(exit, 5);
        assert!(
            text.contains("  \\xff\\x0a: has a name no evidence has\n"),
            "{text}"
        );
    }

    #[test]
    fn what_is_no_bundle_is_refused() {
        let stage = stage();
        let exit = |arguments: &[&str]| run(&stage, arguments).exit;
        assert_eq!(exit(&["verify", "../none"]), 2);
        assert_eq!(exit(&["verify", "../bundle/patch.diff"]), 2);
        assert_eq!(exit(&["verify", "."]), 5);
        assert_eq!(exit(&["verify"]), 2);
    }

    #[test]
    fn keys_are_made_shown_and_trusted() {
        let stage = stage();
        assert!(
            run(&stage, &["key", "show"])
                .out()
                .starts_with("no key yet")
        );
        let made = run(&stage, &["key", "new", "--name", "laptop of Ada", "--json"]);
        assert_eq!(made.exit, 0, "{made:?}");
        let line = format!("{} laptop of Ada", made.json["key"].as_str().unwrap());
        assert!(run(&stage, &["key", "show"]).out().starts_with(&line));
        assert_eq!(run(&stage, &["key", "new"]).exit, 2, "never replaced");
        trust(&stage, 2);
        let shown = run(&stage, &["key", "show"]).out().to_owned();
        assert!(
            shown.contains(&format!("trusted: {} ada\n", key(2).public())),
            "{shown}"
        );
        assert_eq!(run(&stage, &["key", "trust", "nonsense"]).exit, 2);

        let secret = stage.path("keys/signing.key");
        assert!(!shown.contains(fs::read_to_string(&secret).unwrap().trim()));
        let directory = stage.path("keys");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let refused = run(&stage, &["verify", "../bundle"]);
        assert_eq!(refused.exit, 4);
        let words = refused.stderr;
        assert!(
            words.contains("error[KEY_UNSAFE]") && words.contains("chmod 700"),
            "{words}"
        );
    }

    #[test]
    fn keys_are_not_made_in_the_repository() {
        let stage = stage();
        fs::create_dir(stage.path(".git")).unwrap();
        let refused = run(&stage, &["key", "new"]);
        assert_eq!(refused.exit, 4, "{refused:?}");
        assert!(!stage.path("keys").exists());
    }
}
