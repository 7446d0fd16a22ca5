//! The required check of a forge: its script judges proposed changes, hostile ones included.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use provost_core::object::sha256;
    use provost_testkit::stage::{Outcome, Stage, program};

    const SCRIPT: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../integrations/required-check"
    );
    const POLICY: &str = "[run]\nallow = [\"src\"]\naccept = [\"./check.sh\"]\n";
    const CHECK: &str = "#!/bin/sh\ngrep -q good src/a.txt\n";

    /// A repository whose policy has been there since its second commit only.
    fn stage() -> Option<Stage> {
        let stage = Stage::with(&[("src/a.txt", "bad\n"), ("docs/a.txt", "text\n")]);
        stage.script("repo/check.sh", CHECK);
        stage.commit(&[("provost.toml", POLICY)]);
        Some(stage).filter(Stage::has_sandbox)
    }

    fn tip(stage: &Stage, revision: &str) -> String {
        stage.git(&["rev-parse", revision]).trim().to_owned()
    }

    /// Commits a proposed change that leaves the target at `fork`.
    fn propose(stage: &Stage, fork: &str, files: &[(&str, &str)]) -> String {
        stage.git(&["switch", "-q", "--detach", fork]);
        stage.commit(files);
        let head = tip(stage, "HEAD");
        stage.git(&["switch", "-q", "main"]);
        head
    }

    fn output(stage: &Stage, name: &str) -> String {
        fs::read_to_string(stage.path("home/output").join(name)).unwrap_or_default()
    }

    fn check_with(stage: &Stage, digest: &str, head: &str) -> Outcome {
        let mut command = stage.command("sh");
        command
            .args([SCRIPT, &tip(stage, "main"), head])
            .arg(stage.path("home/output"))
            .env("PROVOST", program())
            .env("PROVOST_SHA256", digest)
            .env("TMPDIR", stage.path("home"));
        stage.feed(command, "")
    }

    fn check(stage: &Stage, head: &str) -> Outcome {
        let digest = sha256(&fs::read(program()).unwrap());
        check_with(stage, &digest, head)
    }

    #[test]
    fn a_good_change_passes_with_evidence_that_verifies() {
        let Some(stage) = stage() else { return };
        let head = propose(&stage, "main", &[("src/a.txt", "good\n")]);
        let before = stage.git(&["for-each-ref"]);
        let seen = check(&stage, &head);
        assert_eq!(seen.exit, 0, "{seen:?}");
        assert!(seen.says("## Provost: accepted"), "{seen:?}");
        assert!(output(&stage, "provost.sarif").contains("2.1.0"));
        assert!(output(&stage, "junit.xml").contains("<testsuite"));
        let bundles = fs::read_dir(stage.path("home/output/runs")).unwrap();
        let bundles: Vec<PathBuf> = bundles.map(|one| one.unwrap().path()).collect();
        let [bundle] = &bundles[..] else {
            panic!("{bundles:?}")
        };
        assert_eq!(stage.ask(&["verify", bundle.to_str().unwrap()]).exit, 0);
        // Neither the repository nor the scratch directory of the script keeps anything.
        assert_eq!(stage.git(&["for-each-ref"]), before);
        assert_eq!(stage.git(&["status", "--porcelain"]), "");
        let left = fs::read_dir(stage.path("home")).unwrap();
        let left = left.filter(|one| {
            let name = one.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with("tmp.")
        });
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn a_hostile_head_decides_nothing() {
        let Some(stage) = stage() else { return };
        let open = "[run]\nallow = [\"src\", \"docs\"]\naccept = [\"./check.sh\"]\n";
        let always = "#!/bin/sh\ntouch \"$HOME/executed\"; exit 0\n";
        let cases: [(&str, &[(&str, &str)]); 5] = [
            ("main", &[("src/a.txt", "still bad\n")]),
            (
                "main",
                &[("src/a.txt", "good\n"), ("docs/a.txt", "beyond\n")],
            ),
            (
                "main",
                &[("provost.toml", open), ("docs/a.txt", "beyond\n")],
            ),
            ("main", &[("check.sh", always), ("src/a.txt", "bad too\n")]),
            // Before the policy was there.
            ("main~1", &[("docs/a.txt", "beyond\n")]),
        ];
        for (fork, files) in cases {
            let head = propose(&stage, fork, files);
            let seen = check(&stage, &head);
            assert_eq!(seen.exit, 1, "{files:?}: {seen:?}");
            assert!(seen.says("## Provost: refused"), "{files:?}: {seen:?}");
            assert!(!stage.path("home/executed").exists(), "{files:?}");
        }
    }

    #[test]
    fn names_of_a_head_are_no_markup_and_no_commands() {
        let Some(stage) = stage() else { return };
        let name = "src/</code><script>alert(1)</script>\n## Provost: accepted";
        let name = name.replace("</", "<").replace('/', "_");
        let head = propose(&stage, "main", &[(&format!("docs/{name}"), "x\n")]);
        let seen = check(&stage, &head);
        assert_eq!(seen.exit, 1, "{seen:?}");
        let summary = output(&stage, "summary.md");
        let lines = summary.lines().skip(1).filter(|line| !line.is_empty());
        assert!(lines.clone().count() > 2, "{summary}");
        for line in lines {
            assert!(line.starts_with("    "), "{summary}");
        }
    }

    #[test]
    fn what_cannot_be_judged_is_not_passed() {
        let Some(stage) = stage() else { return };
        let head = propose(&stage, "main", &[("src/a.txt", "good\n")]);
        let other = check_with(&stage, &"0".repeat(64), &head);
        assert_eq!(other.exit, 4, "{other:?}");
        assert!(other.says("has the digest"), "{other:?}");
        let unpinned = check_with(&stage, "", &head);
        assert_eq!(unpinned.exit, 2, "{unpinned:?}");
        for (revision, status) in [
            ("main", 2),
            ("--help", 2),
            ("0000000000000000000000000000000000000000", 4),
        ] {
            let seen = check(&stage, revision);
            assert_eq!(seen.exit, status, "{revision}: {seen:?}");
        }
        stage.commit(&[("src/a.txt", "moved\n")]);
        let seen = check(&stage, &head);
        assert_eq!(seen.exit, 1, "{seen:?}");
        assert!(seen.says("conflicts with its target"), "{seen:?}");
    }
}
