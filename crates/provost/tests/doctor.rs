//! `provost doctor` on this machine, and on one that is made to lack something.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::process::{Command, Output};

    use serde_json::Value;

    fn doctor(top: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_provost"));
        command.args(["doctor", "--json"]).args(words);
        settled(&mut command, top);
        command
    }

    fn settled(command: &mut Command, top: &Path) {
        command
            .current_dir(top)
            .env("HOME", top)
            .env("XDG_CACHE_HOME", top.join("cache"))
            .env("PROVOST_KEYS", top.join("keys"))
            .env_remove("PROVOST_ROOT");
    }

    fn answer(output: &Output) -> Value {
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }

    /// What `box --json` says beside the output of its command.
    fn aside(output: &Output) -> Value {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|_| panic!("{output:?}"))
    }

    fn row<'a>(answer: &'a Value, name: &str) -> &'a Value {
        let rows = answer["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name);
        row.unwrap_or_else(|| panic!("no row `{name}` in {answer}"))
    }

    #[test]
    fn every_row_says_how_it_stands_and_what_was_found() {
        let top = tempfile::tempdir().unwrap();
        let output = doctor(top.path(), &[]).output().unwrap();
        let answer = answer(&output);
        for row in answer["rows"].as_array().unwrap() {
            assert!(!row["name"].as_str().unwrap().is_empty(), "{row}");
            assert!(!row["found"].as_str().unwrap().is_empty(), "{row}");
            let state = row["state"].as_str().unwrap();
            let states = ["ok", "missing", "not_enforced", "not_tried", "hole"];
            assert!(states.contains(&state), "{row}");
            assert!(state != "missing" || row["remedy"].is_string(), "{row}");
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
            "box of tier `landlock`",
            "seccomp",
            "box",
            "keys",
        ] {
            row(&answer, name);
        }
        let missing = |row: &Value| row["state"] == "missing";
        let ready = !answer["rows"].as_array().unwrap().iter().any(missing);
        assert_eq!(answer["ready"], ready);
        assert_eq!(output.status.code(), Some(if ready { 0 } else { 4 }));
        // Looking changes nothing.
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_box_is_attacked_and_its_limits_are_named() {
        let top = tempfile::tempdir().unwrap();
        let answer = answer(&doctor(top.path(), &[]).output().unwrap());
        let test = row(&answer, "box self-test");
        assert_eq!(test["state"], "ok", "{test}");
        assert!(test["found"].as_str().unwrap().contains("probes"), "{test}");
        for name in [
            "process limit",
            "memory limit",
            "disk limit",
            "progress limit",
        ] {
            assert_eq!(row(&answer, name)["state"], "ok", "{name}");
        }
    }

    #[test]
    fn only_fix_makes_directories_and_closes_them() {
        let top = tempfile::tempdir().unwrap();
        let keys = top.path().join("keys");
        fs::create_dir(&keys).unwrap();
        fs::set_permissions(&keys, fs::Permissions::from_mode(0o755)).unwrap();
        let before = doctor(top.path(), &[]).output().unwrap();
        assert_eq!(before.status.code(), Some(4), "{before:?}");
        assert_eq!(row(&answer(&before), "keys")["state"], "missing");
        assert!(!top.path().join("cache").exists());

        let after = doctor(top.path(), &["--fix"]).output().unwrap();
        assert!(after.status.success(), "{after:?}");
        assert_eq!(row(&answer(&after), "keys")["state"], "ok");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&keys), 0o700);
        assert_eq!(mode(&top.path().join("cache/provost")), 0o700);
    }

    #[test]
    fn keys_inside_a_repository_are_not_accepted() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join(".git")).unwrap();
        let output = doctor(top.path(), &[]).output().unwrap();
        let answer = answer(&output);
        assert_eq!(row(&answer, "keys")["state"], "missing", "{answer}");
        assert_eq!(output.status.code(), Some(4));
    }

    /// Runs this program where no user namespace can be made.
    fn without_user_namespaces(top: &Path, words: &[&str]) -> Output {
        let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
        let mut command_line = Command::new("unshare");
        command_line
            .args(["--user", "--map-root-user", "sh", "-c", script])
            .arg(env!("CARGO_BIN_EXE_provost"))
            .args(words);
        settled(&mut command_line, top);
        command_line.output().unwrap()
    }

    #[test]
    fn a_machine_without_user_namespaces_is_told_what_is_in_the_way() {
        let top = tempfile::tempdir().unwrap();
        let output = without_user_namespaces(top.path(), &["doctor", "--json"]);
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        let answer = answer(&output);
        let user = row(&answer, "user namespace");
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
        assert_eq!(row(&answer, "mount namespace")["state"], "not_tried");
        assert_eq!(row(&answer, "box")["state"], "not_tried");
        assert_eq!(row(&answer, "box of tier `landlock`")["state"], "ok");
        let missing = |row: &&Value| row["state"] == "missing";
        let rows = answer["rows"].as_array().unwrap();
        assert_eq!(
            rows.iter().filter(missing).count(),
            1,
            "one thing is missing"
        );

        // Whoever asks for a box is told the same.
        let output = without_user_namespaces(top.path(), &["box", "--json", "--", "true"]);
        let refusal = aside(&output);
        assert_eq!(refusal["details"]["hint"], user["remedy"], "{refusal}");
    }

    #[test]
    fn no_weaker_box_is_taken_by_itself() {
        let top = tempfile::tempdir().unwrap();
        let output = without_user_namespaces(top.path(), &["box", "--json", "--", "true"]);
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert_eq!(aside(&output)["code"], "SANDBOX_UNAVAILABLE", "{output:?}");
        let asked = ["box", "--json", "--tier", "landlock", "--", "true"];
        let output = without_user_namespaces(top.path(), &asked);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("does not stop"), "{said}");
    }

    #[test]
    fn a_machine_without_boxes_gets_no_half_demo() {
        let top = tempfile::tempdir().unwrap();
        let output = without_user_namespaces(top.path(), &["demo", "--json"]);
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        let verdict = answer(&output);
        assert_eq!(verdict["code"], "SANDBOX_UNAVAILABLE", "{verdict}");
        assert!(verdict["details"]["hint"].is_string(), "{verdict}");
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
    }
}
