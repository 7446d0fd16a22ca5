use std::time::Instant;

use super::*;
use crate::Repository;

#[test]
fn a_call_that_takes_too_long_is_killed_with_its_children() {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "sleep 600 & sleep 600"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0);
    let start = Instant::now();
    let limit = Duration::from_millis(200);
    let mut running = Running::start(command, "sleep".to_owned(), limit).unwrap();
    // The pipe ends only when both `sleep` processes are dead.
    drain(running.child.stdout.take(), 10);
    let result = running.finish();
    assert!(
        matches!(result, Err(GitError::TimedOut { .. })),
        "{result:?}"
    );
    assert!(start.elapsed() < Duration::from_mins(1));
}

#[test]
fn a_git_inside_the_repository_is_not_used() {
    let found = Git::find(&[]).unwrap();
    let place = found.program().parent().unwrap().to_owned();
    let other = Git::find(std::slice::from_ref(&place));
    assert!(other.is_err() || other.is_ok_and(|git| !git.program().starts_with(&place)));
    assert!(found.version().unwrap() >= Version::LEAST);
}

/// A git that does what `script` says.
fn fake(directory: &Path, script: &str) -> Git {
    let program = directory.join("git");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    Git {
        program,
        limit: Duration::from_millis(300),
    }
}

#[test]
fn a_git_that_hangs_or_crashes_is_reported_as_such() {
    let oid = "1".repeat(40);
    let cases = [
        ("hangs", "sleep 600", "took longer than 300ms"),
        ("crashes", "kill -SEGV $$", "failed (signal: 11"),
        ("is broken", "exit 127", "failed (exit status: 127)"),
        ("knows no such commit", "exit 1", "names no commit"),
    ];
    for (name, script, want) in cases {
        let scratch = tempfile::tempdir().unwrap();
        std::process::Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(scratch.path())
            .status()
            .unwrap();
        let mut repo = Repository::discover(scratch.path()).unwrap();
        std::fs::write(
            scratch.path().join(".git/refs/heads/main"),
            format!("{oid}\n"),
        )
        .unwrap();
        repo.git = fake(scratch.path(), script);
        for rev in ["main", oid.as_str()] {
            let start = Instant::now();
            let error = repo.resolve(rev).unwrap_err().to_string();
            assert!(start.elapsed() < Duration::from_mins(1), "{name}");
            let named = name.starts_with("knows") && rev != "main";
            let want = if named { "without an answer" } else { want };
            assert!(error.contains(want), "{name}: {rev}: {error}");
        }
    }
}
