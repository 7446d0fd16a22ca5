//! Wrong command lines, and commands that stand in for others.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::stage::{Person as _, stage, with_sandbox};

#[test]
fn a_wrong_command_line_is_refused_like_anything_else() {
    let stage = stage();
    for words in [
        &["rnu"][..],
        &["run", "x", "--allw", "y"],
        &["check", "scop"],
        &["show", "--x"],
    ] {
        let said = stage.typed(words);
        assert_eq!(said.exit, 2, "{said:?}");
        assert!(said.stderr.starts_with("error[USAGE_ERROR]: "), "{said:?}");
        assert!(
            said.stderr.contains("\nhint: ") && said.stderr.contains(" --help\n"),
            "{said:?}"
        );
        let mut words = words.to_vec();
        words.push("--json");
        let said = stage.typed(&words);
        let json: serde_json::Value = serde_json::from_str(said.out()).unwrap();
        assert_eq!(json["code"], "USAGE_ERROR", "{said:?}");
        assert!(json["details"]["hint"].is_string(), "{said:?}");
    }
    let bare = stage.typed(&[]);
    assert_eq!(bare.exit, 2);
    let help = stage.typed(&["--help"]);
    assert_eq!(
        (help.exit, help.out().trim_end()),
        (0, bare.stderr.trim_end())
    );
    assert_eq!(stage.typed(&["help"]).exit, 0);
    let said = stage.typed(&["key", "trust", "zzz"]);
    assert_eq!(said.exit, 2, "{said:?}");
    assert!(
        said.stderr
            .contains("`zzz` is neither a public key nor a file"),
        "{said:?}"
    );
}

#[test]
fn a_sandbox_ends_as_its_command_does() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    let cases: &[(&[&str], i32)] = &[
        (&["true"], 0),
        (&["false"], 1),
        (&["sh", "-c", "exit 42"], 42),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["nosuch"], 127),
        (&["/etc/hostname"], 127),
        (&["/usr"], 126),
    ];
    for (command, want) in cases {
        let mut words = vec!["sandbox", "--"];
        words.extend(*command);
        let said = stage.typed(&words);
        assert_eq!(said.exit, *want, "{command:?}: {said:?}");
    }
    let late = stage.typed(&["sandbox", "--timeout", "1s", "--", "sleep", "20"]);
    assert_eq!(late.exit, 124, "{late:?}");
    let json = stage.typed(&["sandbox", "--json", "--", "nosuch"]);
    let last = json.stderr.lines().last().unwrap();
    assert!(last.contains("\"status\":127"), "{json:?}");
    let json = stage.typed(&["sandbox", "--json", "--", "echo", "mine"]);
    assert_eq!(json.out(), "mine\n", "stdout is the command's alone");
    let last: serde_json::Value =
        serde_json::from_str(json.stderr.lines().last().unwrap()).unwrap();
    assert_eq!(last["status"], 0, "{json:?}");
}

#[test]
fn a_link_does_not_permit_what_was_not_named() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    fs::create_dir(stage.path("outside")).unwrap();
    symlink(stage.path("outside"), stage.path("repo/src/out")).unwrap();
    for path in ["src/out", "./src/../src/out", "src/out/."] {
        for flag in ["--allow", "--read"] {
            let said = stage.typed(&["sandbox", flag, path, "--", "true"]);
            assert_eq!(said.exit, 2, "{path}: {said:?}");
            assert!(said.stderr.contains("symbolic link"), "{path}: {said:?}");
        }
    }
    for path in ["src", "./src/../src", "."] {
        let said = stage.typed(&["sandbox", "--allow", path, "--", "true"]);
        assert_eq!(said.exit, 0, "{path}: {said:?}");
    }
}

#[test]
fn streams_are_private_and_swept_away_if_their_sandbox_was_killed() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    let place = stage.path("temporary");
    fs::create_dir(&place).unwrap();
    let sandboxed = |words: &[&str]| {
        let mut command = stage.call(&["sandbox", "--"]);
        command.args(words).env("TMPDIR", &place);
        stage.spawn(command)
    };
    let killed = sandboxed(&["sleep", "60"]);
    let began = std::time::Instant::now();
    let directory = loop {
        let entries = fs::read_dir(&place).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        if let Some(path) = paths.find(|path| path.join("stderr").exists()) {
            break path;
        }
        assert!(began.elapsed().as_secs() < 60, "nothing in {place:?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    killed.signal(Signal::KILL);
    killed.wait();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&directory), 0o700);
    for name in ["stdout", "stderr"] {
        assert_eq!(mode(&directory.join(name)), 0o600, "{name}");
    }
    let hour = std::time::Duration::from_hours(1);
    let long_ago = std::time::SystemTime::now() - hour;
    let opened = fs::File::open(&directory).unwrap();
    opened.set_modified(long_ago).unwrap();
    drop(opened);
    assert_eq!(sandboxed(&["true"]).wait().exit, 0);
    assert!(!directory.exists());
}

#[test]
fn a_sandbox_permits_no_directory_of_the_kernel() {
    let stage = stage();
    let cases = [
        ("--allow", "/"),
        ("--read", "/"),
        ("--allow", "/proc"),
        ("--read", "/proc"),
        ("--allow", "/sys"),
        ("--allow", "/dev"),
        ("--allow", "/dev/null"),
    ];
    for (flag, path) in cases {
        for tier in ["namespaces", "landlock"] {
            let said = stage.typed(&["sandbox", "--tier", tier, flag, path, "--", "true"]);
            assert_eq!(said.exit, 2, "{flag} {path}: {said:?}");
            assert!(
                said.stderr.contains("USAGE_ERROR"),
                "{flag} {path}: {said:?}"
            );
        }
    }
}

#[test]
fn the_deeper_path_decides_whatever_the_order() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    let script = "echo x > new; echo x > src/new; true";
    let cases = [
        (["--allow", ".", "--read", "src"], [true, false]),
        (["--read", "src", "--allow", "."], [true, false]),
        (["--read", ".", "--allow", "src"], [false, true]),
        (["--allow", "src", "--read", "."], [false, true]),
    ];
    for (flags, written) in cases {
        let mut words = vec!["sandbox"];
        words.extend(flags);
        // The directory of the command is the last one that can be written.
        let script = format!("cd {} && {{ {script}; }}", stage.path("repo").display());
        words.extend(["--", "sh", "-c", &script]);
        let said = stage.typed(&words);
        assert_eq!(said.exit, 0, "{flags:?}: {said:?}");
        let new = ["repo/new", "repo/src/new"].map(|name| stage.path(name));
        let found = new.each_ref().map(|path| path.exists());
        assert_eq!(found, written, "{flags:?}: {said:?}");
        for path in new {
            let _ = fs::remove_file(path);
        }
    }
    for flags in [
        ["--tier", "landlock", "--allow", ".", "--read", "src"],
        ["--tier", "namespaces", "--allow", ".", "--read", "."],
    ] {
        let mut words = vec!["sandbox"];
        words.extend(flags);
        words.extend(["--", "true"]);
        let said = stage.typed(&words);
        assert_eq!(said.exit, 2, "{flags:?}: {said:?}");
        assert!(said.stderr.contains("USAGE_ERROR"), "{flags:?}: {said:?}");
    }
}

#[test]
fn what_steers_git_stays_unless_it_is_named() {
    let Some(stage) = with_sandbox() else {
        return;
    };
    let hook = stage.path("repo/.git/hooks/post-checkout");
    fs::create_dir_all(stage.path("repo/.git/hooks")).unwrap();
    fs::create_dir_all(stage.path("repo/.provost")).unwrap();
    let script = format!(
        "cd {}; git log -1 --format=%s; touch beside .provost/x; echo x > {}; true",
        stage.path("repo").display(),
        hook.display()
    );
    let command = ["--", "sh", "-c", &script];
    let said = stage.typed(&[&["sandbox", "--allow", "."], &command[..]].concat());
    assert_eq!(said.exit, 0, "{said:?}");
    assert!(stage.path("repo/beside").exists(), "{said:?}");
    assert!(!hook.exists(), "{said:?}");
    assert!(!stage.path("repo/.provost/x").exists(), "{said:?}");

    let said = stage.typed(
        &[
            &["sandbox", "--allow", ".git", "--allow", "."],
            &command[..],
        ]
        .concat(),
    );
    assert!(hook.exists(), "{said:?}");
    assert!(!stage.path("repo/.provost/x").exists(), "{said:?}");

    let words = [
        "sandbox", "--tier", "landlock", "--allow", ".", "--", "true",
    ];
    let said = stage.typed(&words);
    assert!(said.stderr.contains(".git` can be written"), "{said:?}");
}

#[test]
fn nothing_waits_for_a_fifo_in_the_git_directory() {
    for name in ["HEAD", "config", "packed-refs", "commondir"] {
        let stage = stage();
        let path = stage.path("repo/.git").join(name);
        let _ = fs::remove_file(&path);
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        let began = std::time::Instant::now();
        for words in [
            &["runs"][..],
            &[
                "check",
                "diff",
                "--base",
                "x",
                "--worktree",
                ".",
                "--allow",
                "a",
            ],
        ] {
            let said = stage.typed(words);
            assert!(
                ![0, 124, 70].contains(&said.exit),
                "{name} {words:?}: {said:?}"
            );
        }
        assert!(began.elapsed().as_secs() < 20, "{name}");
    }
}

#[test]
fn shells_get_something_to_complete_with() {
    let stage = stage();
    for shell in ["bash", "zsh", "fish"] {
        let said = stage.typed(&["completions", shell]);
        assert_eq!(said.exit, 0, "{shell}");
        for word in ["salvage", "older-than"] {
            assert!(said.out().contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(stage.typed(&["completions", "tcsh"]).exit, 2);
}
