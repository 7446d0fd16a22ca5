//! Every command that reads a file, against every kind of bad file.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use rustix::fs::{CWD, FileType, Mode};

use provost_testkit::stage::{Stage, is_root, program};

use crate::stage::{Refusal as _, Watched as _, assert_same, stage};

/// A command that reads the file it is given as its last argument.
struct Reading {
    argv: &'static [&'static str],
    /// What it says of a file that can be read and holds the wrong thing.
    wrong: &'static [(i32, Code)],
}

const INVALID: (i32, Code) = (2, Code::InputInvalid);
const TOO_LARGE: (i32, Code) = (2, Code::InputTooLarge);
const UNREADABLE: (i32, Code) = (2, Code::InputUnreadable);

/// What a check of a contract says of any payload that it cannot read, however large.
const REFUSED: &[(i32, Code)] = &[(1, Code::SchemaInvalid), (1, Code::MissingRequiredInput)];

const READINGS: &[Reading] = &[
    Reading {
        argv: &["check", "scope", "--file"],
        // A payload that does not parse is an answer: no.
        wrong: &[(1, Code::InputInvalid), (1, Code::ScopeInvalid), TOO_LARGE],
    },
    Reading {
        argv: &["run", "--agent-cmd", "true", "-f"],
        wrong: &[INVALID, (1, Code::ContractInvalid), TOO_LARGE],
    },
    Reading {
        argv: &[
            "check",
            "diff",
            "--base=HEAD",
            "--worktree=.",
            "--allow=src",
            "--before",
        ],
        wrong: &[INVALID, TOO_LARGE],
    },
    Reading {
        argv: &["key", "trust"],
        wrong: &[(2, Code::UsageError), TOO_LARGE],
    },
    Reading {
        argv: &["verify", "../repo", "--key"],
        wrong: &[(2, Code::UsageError), TOO_LARGE],
    },
    Reading {
        argv: &["check", "assignment"],
        wrong: REFUSED,
    },
    Reading {
        argv: &["check", "result", "--strict"],
        wrong: REFUSED,
    },
    Reading {
        argv: &["check", "lock-lifecycle"],
        wrong: REFUSED,
    },
    Reading {
        argv: &["check", "worklog", "--outcome", "done", "--lines"],
        wrong: REFUSED,
    },
];

/// The largest document that is read, less a little.
const NEARLY: usize = 16 * 1024 * 1024 - 64;

/// Files that can be read and hold the wrong thing.
pub(crate) fn wrong(place: &Path) -> Vec<(&'static str, PathBuf)> {
    let mut made = Vec::new();
    let mut put = |name: &'static str, bytes: &[u8]| {
        let path = place.join(name);
        fs::write(&path, bytes).unwrap();
        made.push((name, path));
    };
    put("empty", b"");
    put("blank", b" \n\t\n");
    put("null", b"null");
    put("number", b"1e400");
    put("text", b"\"x\"");
    put("list_of_numbers", b"[1,2]");
    put("list_of_lists", b"[[[\"src\"]]]");
    put("empty_object", b"{}");
    put(
        "twice",
        br#"{"task_id":"a","task_id":"b","version":1,"version":1}"#,
    );
    put("not_utf8", b"[\"\xff\xfe\"]");
    put("nul", b"[\"a\0b\"]");
    put("escaped_nul", br#"["a\u0000b"]"#);
    put("lone_surrogate", br#"["\ud800"]"#);
    put("byte_order_mark", b"\xef\xbb\xbf[\"src\"]");
    put("trailing", b"[\"src\"] x");
    put("cut", b"{\"task_id\": \"a");
    put("not_json", b"task_id: a\nallowed_paths: [src]\n");
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    put("deep", deep.as_bytes());
    let deep = format!("{}1{}", "{\"a\":".repeat(200_000), "}".repeat(200_000));
    put("deep_objects", deep.as_bytes());
    put("numbers", &list(b"0,", NEARLY));
    put("objects", &list(b"{},", NEARLY));
    put("blanks", &list(b"\" \",", NEARLY));
    put(
        "long_text",
        format!("[\"{}\"]", "/".repeat(NEARLY)).as_bytes(),
    );
    put("brackets", &vec![b'['; 100_000_000]);
    let zeros = place.join("zeros");
    File::create(&zeros).unwrap().set_len(100_000_000).unwrap();
    made.push(("zeros", zeros));
    made
}

/// A list of as many `items` as fit.
fn list(item: &[u8], length: usize) -> Vec<u8> {
    let mut text = item.repeat(length / item.len());
    text.insert(0, b'[');
    text.pop();
    text.push(b']');
    text
}

/// Things that cannot be read as a file.
pub(crate) fn unreadable(place: &Path) -> Vec<(&'static str, PathBuf)> {
    let at = |name: &str| place.join(name);
    fs::create_dir(at("directory")).unwrap();
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, at("fifo"), FileType::Fifo, mode, 0).unwrap();
    symlink("loop_b", at("loop_a")).unwrap();
    symlink("loop_a", at("loop_b")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    File::create(at("file")).unwrap().write_all(b"{}").unwrap();
    vec![
        ("directory", at("directory")),
        ("fifo", at("fifo")),
        ("loop", at("loop_a")),
        ("dangling", at("dangling")),
        ("missing", at("missing")),
        ("below_a_file", at("file/below")),
        ("device", "/dev/zero".into()),
        ("endless_device", "/dev/full".into()),
        ("long_name", at(&"n".repeat(300))),
        ("no_name", "".into()),
    ]
}

/// What a call reads from its stdin.
#[derive(Debug, Clone)]
enum Stdin {
    Null,
    Closed,
    File(PathBuf),
}

/// Calls `reading` with `file` and shows that it wrote nothing.
fn judge(stage: &Stage, reading: &Reading, name: &str, file: &Path, stdin: Stdin) -> (i32, Code) {
    let what = format!("{:?} with {name}", reading.argv);
    let listing = |place: &str| match reading.argv.first() {
        Some(&"run") => stage.listing_beside_refusals(place),
        _ => stage.listing(place),
    };
    let before = (listing("repo"), listing("config/keys"));
    let mut command = match stdin {
        Stdin::Closed => {
            let mut shell = stage.command("sh");
            shell.args(["-c", "exec \"$0\" \"$@\" <&-"]).arg(program());
            shell
        }
        Stdin::Null | Stdin::File(_) => stage.provost(&[]),
    };
    if let Stdin::File(path) = stdin {
        command.stdin(File::open(path).unwrap());
    }
    command.arg("--json").args(reading.argv).arg(file);
    let seen = stage.spawn(command).measured(&what);
    let after = (listing("repo"), listing("config/keys"));
    assert_same(&before.0, &after.0, &what);
    assert_same(&before.1, &after.1, &what);
    seen.verdict(&what)
}

#[test]
fn a_file_that_holds_the_wrong_thing_is_refused() {
    let stage = stage();
    let files = wrong(&stage.path("home"));
    for reading in READINGS {
        for (name, path) in &files {
            let got = judge(&stage, reading, name, path, Stdin::Null);
            assert!(
                reading.wrong.contains(&got),
                "{:?} with {name}: {got:?}",
                reading.argv
            );
        }
    }
}

#[test]
fn what_is_not_a_file_is_refused() {
    let stage = stage();
    let files = unreadable(&stage.path("home"));
    for reading in READINGS {
        for (name, path) in &files {
            let got = judge(&stage, reading, name, path, Stdin::Null);
            let usage = path.as_os_str().is_empty() && got == (2, Code::UsageError);
            assert!(
                got == UNREADABLE || usage,
                "{:?} with {name}: {got:?}",
                reading.argv
            );
        }
    }
}

#[test]
fn a_file_that_may_not_be_read_is_refused() {
    let mut stage = stage();
    let file = stage.path("home/secret");
    fs::write(&file, "[\"src\"]").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o000)).unwrap();
    if is_root() {
        stage.give_to_nobody();
    }
    for reading in READINGS {
        let mut argv = vec!["--json"];
        argv.extend(reading.argv);
        argv.push(file.to_str().unwrap());
        let what = format!("{argv:?}");
        let got = stage.call(&argv, &what).verdict(&what);
        assert_eq!(got, UNREADABLE, "{what}");
    }
}

#[test]
fn stdin_is_read_like_a_file() {
    let stage = stage();
    let files = wrong(&stage.path("home"));
    let dash = Path::new("-");
    // Those that read `-`; the others take it for a name.
    for reading in &READINGS[..3] {
        for (name, path) in &files {
            let got = judge(&stage, reading, name, dash, Stdin::File(path.clone()));
            assert!(
                reading.wrong.contains(&got),
                "{:?} with {name}: {got:?}",
                reading.argv
            );
        }
        for stdin in [Stdin::Closed, Stdin::Null] {
            let name = format!("{stdin:?}");
            let got = judge(&stage, reading, &name, dash, stdin);
            assert!(
                reading.wrong.contains(&got) || got == UNREADABLE,
                "{:?} with {name}: {got:?}",
                reading.argv
            );
        }
        let endless = Stdin::File("/dev/zero".into());
        let got = judge(&stage, reading, "/dev/zero", dash, endless);
        assert_eq!(got, TOO_LARGE, "{:?}", reading.argv);
        let got = judge(
            &stage,
            reading,
            "a directory",
            dash,
            Stdin::File(stage.path("home")),
        );
        assert_eq!(got, UNREADABLE, "{:?}", reading.argv);
    }
}
