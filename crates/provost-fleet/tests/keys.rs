//! `provost-fleet keys` changes lines of `provost.toml`, and nothing else in it.

use std::fs;
use std::process::{Command, Output};

const KEY: &str = "ed25519:O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik=";

#[test]
fn a_key_is_added_and_removed_without_touching_the_rest() {
    let scratch = tempfile::tempdir().unwrap();
    let policy = scratch.path().join("provost.toml");
    let start = "# ours\n[approve]\npaths = [\"src\"]\n";
    fs::write(&policy, start).unwrap();
    let keys = |words: &[&str]| -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_provost-fleet"));
        program
            .arg("keys")
            .args(words)
            .current_dir(scratch.path())
            .output()
            .unwrap()
    };
    for (role, name) in [
        ("workers", "alpha"),
        ("workers", "beta"),
        ("landers", "alpha"),
    ] {
        let done = keys(&["enroll", role, name, KEY, "--repository", "demo"]);
        assert!(done.status.success(), "{done:?}");
    }
    let text = fs::read_to_string(&policy).unwrap();
    assert!(
        text.starts_with(start) && text.matches("[fleet]").count() == 1,
        "{text}"
    );
    assert!(keys(&["revoke", "workers", "alpha"]).status.success());
    let listed = String::from_utf8(keys(&["list"]).stdout).unwrap();
    let rows: Vec<&str> = listed.lines().collect();
    let want = [
        "repository demo".to_owned(),
        format!("workers beta {KEY}"),
        format!("landers alpha {KEY}"),
    ];
    assert_eq!(rows, want);
    let missing = keys(&["revoke", "workers", "alpha"]);
    assert_eq!(missing.status.code(), Some(2));
    let wrong = keys(&["enroll", "workers", "gamma", "no-key"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("error[INPUT_INVALID]"));
}
