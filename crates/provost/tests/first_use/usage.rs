//! Wrong command lines, and commands that stand in for others.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use crate::desk::Desk;

#[test]
fn a_wrong_command_line_is_refused_like_anything_else() {
    let desk = Desk::new();
    for words in [
        &["rnu"][..],
        &["run", "x", "--allw", "y"],
        &["check", "scop"],
        &["show", "--x"],
    ] {
        let said = desk.provost(words);
        assert_eq!(said.exit, 2, "{said:?}");
        assert!(said.err.starts_with("error[USAGE_ERROR]: "), "{said:?}");
        assert!(
            said.err.contains("\nhint: ") && said.err.contains(" --help\n"),
            "{said:?}"
        );
        let mut words = words.to_vec();
        words.push("--json");
        let said = desk.provost(&words);
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(json["code"], "USAGE_ERROR", "{said:?}");
        assert!(json["details"]["hint"].is_string(), "{said:?}");
    }
    let bare = desk.provost(&[]);
    assert_eq!(bare.exit, 2);
    let help = desk.provost(&["--help"]);
    assert_eq!((help.exit, help.out.trim_end()), (0, bare.err.trim_end()));
    assert_eq!(desk.provost(&["help"]).exit, 0);
    let said = desk.provost(&["key", "trust", "zzz"]);
    assert_eq!(said.exit, 2, "{said:?}");
    assert!(
        said.err
            .contains("`zzz` is neither a public key nor a file"),
        "{said:?}"
    );
}

#[test]
fn a_box_ends_as_its_command_does() {
    let Some(desk) = Desk::with_a_box() else {
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
        let mut words = vec!["box", "--"];
        words.extend(*command);
        let said = desk.provost(&words);
        assert_eq!(said.exit, *want, "{command:?}: {said:?}");
    }
    let late = desk.provost(&["box", "--timeout", "1s", "--", "sleep", "20"]);
    assert_eq!(late.exit, 124, "{late:?}");
    let json = desk.provost(&["box", "--json", "--", "nosuch"]);
    let last = json.err.lines().last().unwrap();
    assert!(last.contains("\"status\":127"), "{json:?}");
    let json = desk.provost(&["box", "--json", "--", "echo", "mine"]);
    assert_eq!(json.out, "mine\n", "stdout is the command's alone");
    let last: serde_json::Value = serde_json::from_str(json.err.lines().last().unwrap()).unwrap();
    assert_eq!(last["status"], 0, "{json:?}");
}

#[test]
fn a_link_does_not_open_what_nobody_named() {
    let Some(desk) = Desk::with_a_box() else {
        return;
    };
    fs::create_dir(desk.at("outside")).unwrap();
    symlink(desk.at("outside"), desk.at("repository/src/out")).unwrap();
    for path in ["src/out", "./src/../src/out", "src/out/."] {
        for flag in ["--allow", "--read"] {
            let said = desk.provost(&["box", flag, path, "--", "true"]);
            assert_eq!(said.exit, 2, "{path}: {said:?}");
            assert!(said.err.contains("symbolic link"), "{path}: {said:?}");
        }
    }
    for path in ["src", "./src/../src", "."] {
        let said = desk.provost(&["box", "--allow", path, "--", "true"]);
        assert_eq!(said.exit, 0, "{path}: {said:?}");
    }
}

#[test]
fn streams_are_private_and_swept_away_if_their_box_was_killed() {
    let Some(desk) = Desk::with_a_box() else {
        return;
    };
    let place = desk.at("temporary");
    fs::create_dir(&place).unwrap();
    let boxed = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_provost"));
        command.args(["box", "--"]).args(words);
        command.env("TMPDIR", &place).env("HOME", desk.at("home"));
        command
    };
    let mut killed = boxed(&["sleep", "60"]).spawn().unwrap();
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
    killed.kill().unwrap();
    killed.wait().unwrap();
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
    assert!(boxed(&["true"]).status().unwrap().success());
    assert!(!directory.exists());
}

#[test]
fn a_box_opens_no_machine() {
    let desk = Desk::new();
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
            let said = desk.provost(&["box", "--tier", tier, flag, path, "--", "true"]);
            assert_eq!(said.exit, 2, "{flag} {path}: {said:?}");
            assert!(said.err.contains("USAGE_ERROR"), "{flag} {path}: {said:?}");
        }
    }
}

#[test]
fn the_deeper_path_decides_whatever_the_order() {
    let Some(desk) = Desk::with_a_box() else {
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
        let mut words = vec!["box"];
        words.extend(flags);
        // The directory of the command is the last one that can be written.
        let script = format!("cd {} && {{ {script}; }}", desk.at("repository").display());
        words.extend(["--", "sh", "-c", &script]);
        let said = desk.provost(&words);
        assert_eq!(said.exit, 0, "{flags:?}: {said:?}");
        let new = ["repository/new", "repository/src/new"].map(|name| desk.at(name));
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
        let mut words = vec!["box"];
        words.extend(flags);
        words.extend(["--", "true"]);
        let said = desk.provost(&words);
        assert_eq!(said.exit, 2, "{flags:?}: {said:?}");
        assert!(said.err.contains("USAGE_ERROR"), "{flags:?}: {said:?}");
    }
}

#[test]
fn what_steers_git_stays_unless_it_is_named() {
    let Some(desk) = Desk::with_a_box() else {
        return;
    };
    let hook = desk.at("repository/.git/hooks/post-checkout");
    fs::create_dir_all(desk.at("repository/.git/hooks")).unwrap();
    fs::create_dir_all(desk.at("repository/.provost")).unwrap();
    let script = format!(
        "cd {}; git log -1 --format=%s; touch beside .provost/x; echo x > {}; true",
        desk.at("repository").display(),
        hook.display()
    );
    let command = ["--", "sh", "-c", &script];
    let said = desk.provost(&[&["box", "--allow", "."], &command[..]].concat());
    assert_eq!(said.exit, 0, "{said:?}");
    assert!(desk.at("repository/beside").exists(), "{said:?}");
    assert!(!hook.exists(), "{said:?}");
    assert!(!desk.at("repository/.provost/x").exists(), "{said:?}");

    let said = desk.provost(&[&["box", "--allow", ".git", "--allow", "."], &command[..]].concat());
    assert!(hook.exists(), "{said:?}");
    assert!(!desk.at("repository/.provost/x").exists(), "{said:?}");

    let words = ["box", "--tier", "landlock", "--allow", ".", "--", "true"];
    let said = desk.provost(&words);
    assert!(said.err.contains(".git` can be written"), "{said:?}");
}

#[test]
fn nothing_waits_for_a_fifo_in_the_git_directory() {
    for name in ["HEAD", "config", "packed-refs", "commondir"] {
        let desk = Desk::new();
        let path = desk.at("repository/.git").join(name);
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
            let said = desk.provost(words);
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
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish"] {
        let said = desk.provost(&["completions", shell]);
        assert_eq!(said.exit, 0, "{shell}");
        for word in ["salvage", "older-than"] {
            assert!(said.out.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(desk.provost(&["completions", "tcsh"]).exit, 2);
}
