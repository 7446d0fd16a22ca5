//! `provost demo` from beginning to end, and what it leaves behind.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use provost_testkit::stage::{Outcome, Stage, only_home};

    /// A user with something to lose.
    fn user() -> Stage {
        let stage = Stage::empty();
        fs::create_dir(stage.path("tmp")).unwrap();
        stage.write("home/.ssh/id_ed25519", "mine\n");
        stage.write("home/.config/provost/keys/trusted", "");
        stage
    }

    fn demo(stage: &Stage, words: &[&str]) -> Outcome {
        let mut command = stage.provost(&["demo"]);
        only_home(&mut command, Some(&stage.path("home")));
        command.args(words).env("TMPDIR", stage.path("tmp"));
        stage.spawn(command).wait()
    }

    const ACTS: [&str; 9] = [
        "honest",
        "out_of_scope",
        "false_claim",
        "reaching_out",
        "hanging",
        "fixed",
        "tampering",
        "landing",
        "moved",
    ];

    #[test]
    fn every_act_ends_as_it_must_and_what_is_kept_can_be_read() {
        let user = user();
        let began = Instant::now();
        let output = demo(&user, &["--json", "--keep"]);
        assert_eq!(output.exit, 0, "{output:?}");
        // Far more than it takes.
        assert!(began.elapsed() < Duration::from_mins(1));
        let answer = output.json;
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
        let user = user();
        let before = (user.paths("home"), user.paths("repo"));
        let output = demo(&user, &[]);
        assert_eq!(output.exit, 0, "{output:?}");
        assert_eq!((user.paths("home"), user.paths("repo")), before);
        assert_eq!(user.paths("tmp"), [""; 0]);

        let text = output.out();
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
