//! `provost doctor` on this machine, and on one that is made to lack something.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use provost_testkit::stage::{Outcome, Stage, program};
    use serde_json::Value;

    fn doctor(stage: &Stage, words: &[&str]) -> Outcome {
        stage.ask(&[&["doctor", "--json"], words].concat())
    }

    /// What `sandbox --json` says beside the output of its command.
    fn aside(outcome: &Outcome) -> Value {
        let last = outcome.stderr.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|_| panic!("{outcome:?}"))
    }

    fn row<'a>(answer: &'a Value, name: &str) -> &'a Value {
        let rows = answer["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name);
        row.unwrap_or_else(|| panic!("no row `{name}` in {answer}"))
    }

    #[test]
    fn a_committed_policy_that_is_broken_is_named() {
        let stage = Stage::with(&[("provost.toml", "[run\nallow = [\"src\"]\n")]);
        let output = doctor(&stage, &[]);
        assert_eq!(output.exit, 4, "{output:?}");
        let row = row(&output.json, "provost.toml");
        assert_eq!(row["state"], "missing", "{row}");
        assert!(row["found"].as_str().unwrap().contains("line 1"), "{row}");
        stage.commit(&[("provost.toml", "[run]\nallow = [\"src\"]\n")]);
        let rows = doctor(&stage, &[]).json["rows"].clone();
        let mut rows = rows.as_array().unwrap().iter();
        assert!(rows.all(|row| row["name"] != "provost.toml"));
    }

    #[test]
    fn every_row_says_how_it_stands_and_what_was_found() {
        let stage = Stage::empty();
        let output = doctor(&stage, &[]);
        let answer = &output.json;
        for row in answer["rows"].as_array().unwrap() {
            assert!(!row["name"].as_str().unwrap().is_empty(), "{row}");
            assert!(!row["found"].as_str().unwrap().is_empty(), "{row}");
            let shown = row["state"].as_str().unwrap();
            let states = [
                "ok",
                "missing",
                "not_enforced",
                "not_tried",
                "hole",
                "sealed",
            ];
            assert!(states.contains(&shown), "{row}");
            assert!(shown != "missing" || row["remedy"].is_string(), "{row}");
        }
        for name in [
            "git",
            "kernel",
            "user namespace",
            "process namespace",
            "mount namespace",
            "network namespace",
            "own /proc",
            "file system in memory",
            "overlay in memory",
            "landlock",
            "sandbox of tier `landlock`",
            "seccomp",
            "sandbox",
            "keys",
        ] {
            row(answer, name);
        }
        let missing = |row: &Value| row["state"] == "missing";
        let ready = !answer["rows"].as_array().unwrap().iter().any(missing);
        assert_eq!(answer["ready"], ready);
        assert_eq!(output.exit, if ready { 0 } else { 4 });
        // Looking changes nothing.
        assert_eq!(stage.paths(""), ["home", "repo"]);
    }

    #[test]
    fn a_sandbox_is_attacked_and_its_limits_are_named() {
        let stage = Stage::empty();
        let answer = &doctor(&stage, &[]).json;
        let test = row(answer, "sandbox self-test");
        assert_eq!(test["state"], "ok", "{test}");
        assert!(
            test["found"].as_str().unwrap().contains("escape attempts"),
            "{test}"
        );
        for name in [
            "process limit",
            "memory limit",
            "disk limit",
            "progress limit",
        ] {
            assert_eq!(row(answer, name)["state"], "ok", "{name}");
        }
    }

    #[test]
    fn only_fix_makes_directories_and_closes_them() {
        let stage = Stage::empty();
        let keys = stage.path("config/keys");
        fs::create_dir_all(&keys).unwrap();
        fs::set_permissions(&keys, fs::Permissions::from_mode(0o755)).unwrap();
        let before = doctor(&stage, &[]);
        assert_eq!(before.exit, 4, "{before:?}");
        assert_eq!(row(&before.json, "keys")["state"], "missing");
        assert!(!stage.path("cache").exists());

        let after = doctor(&stage, &["--fix"]);
        assert_eq!(after.exit, 0, "{after:?}");
        assert_eq!(row(&after.json, "keys")["state"], "ok");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&keys), 0o700);
        assert_eq!(mode(&stage.path("cache/provost")), 0o700);
    }

    #[test]
    fn keys_inside_a_repository_are_not_accepted() {
        let stage = Stage::empty();
        fs::create_dir(stage.path(".git")).unwrap();
        let output = doctor(&stage, &[]);
        let answer = &output.json;
        assert_eq!(row(answer, "keys")["state"], "missing", "{answer}");
        assert_eq!(output.exit, 4);
    }

    /// Runs this program where no user namespace can be made.
    fn without_user_namespaces(stage: &Stage, words: &[&str]) -> Outcome {
        let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
        let mut command = stage.command("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", script]);
        command.arg(program()).args(words);
        stage.spawn(command).wait()
    }

    #[test]
    fn a_machine_without_user_namespaces_gets_the_cause_named() {
        let stage = Stage::empty();
        let output = without_user_namespaces(&stage, &["doctor", "--json"]);
        assert_eq!(output.exit, 4, "{output:?}");
        let answer = &output.json;
        let user = row(answer, "user namespace");
        assert_eq!(user["state"], "missing", "{user}");
        let found = user["found"].as_str().unwrap();
        assert!(found.contains("user.max_user_namespaces is 0"), "{found}");
        assert_eq!(user["errno"], "ENOSPC", "{user}");
        assert!(
            user["remedy"]
                .as_str()
                .unwrap()
                .contains("user.max_user_namespaces")
        );
        assert_eq!(row(answer, "mount namespace")["state"], "not_tried");
        assert_eq!(row(answer, "sandbox")["state"], "not_tried");
        assert_eq!(row(answer, "sandbox of tier `landlock`")["state"], "ok");
        let missing = |row: &&Value| row["state"] == "missing";
        let rows = answer["rows"].as_array().unwrap();
        assert_eq!(
            rows.iter().filter(missing).count(),
            1,
            "one thing is missing"
        );

        // A command that needs a sandbox gives the same answer.
        let output = without_user_namespaces(&stage, &["sandbox", "--json", "--", "true"]);
        let refusal = aside(&output);
        assert_eq!(refusal["details"]["hint"], user["remedy"], "{refusal}");
    }

    #[test]
    fn no_weaker_sandbox_is_taken_by_itself() {
        let stage = Stage::empty();
        let output = without_user_namespaces(&stage, &["sandbox", "--json", "--", "true"]);
        assert_eq!(output.exit, 4, "{output:?}");
        assert_eq!(aside(&output)["code"], "SANDBOX_UNAVAILABLE", "{output:?}");
        let asked = ["sandbox", "--json", "--tier", "landlock", "--", "true"];
        let output = without_user_namespaces(&stage, &asked);
        assert_eq!(output.exit, 0, "{output:?}");
        assert!(output.stderr.contains("does not stop"), "{output:?}");
    }

    #[test]
    fn a_machine_without_sandboxes_gets_no_half_demo() {
        let stage = Stage::empty();
        let output = without_user_namespaces(&stage, &["demo", "--json"]);
        assert_eq!(output.exit, 4, "{output:?}");
        let verdict = &output.json;
        assert_eq!(verdict["code"], "SANDBOX_UNAVAILABLE", "{verdict}");
        assert!(verdict["details"]["hint"].is_string(), "{verdict}");
        assert_eq!(stage.paths(""), ["home", "repo"]);
    }
}
