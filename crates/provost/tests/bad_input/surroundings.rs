//! Machines that lack something: a home, a cache, room on the disk, the right to write.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use provost_core::code::Code;

use provost_testkit::skip;

use provost_testkit::stage::{Stage, only_home, program};

use crate::stage::{Refusal as _, Watched as _, assert_same, good_run, stage};

#[test]
fn a_policy_that_is_garbage_is_refused_before_anything_begins() {
    let deep = format!("a = {}{}", "[".repeat(50_000), "]".repeat(50_000));
    let dotted = format!("{} = 1", vec!["a"; 50_000].join("."));
    let large = format!("# {}\n", "x".repeat(300_000));
    let cases: &[(&str, &[u8])] = &[
        ("garbage", b"\x00\x01\x02]["),
        ("not UTF-8", b"x = \"\xff\""),
        ("an unknown key", b"surprise = true"),
        ("a table twice", b"[commands]\n[commands]\n"),
        ("the wrong type", b"commands = 1"),
        ("deep", deep.as_bytes()),
        ("a long dotted key", dotted.as_bytes()),
        ("large", large.as_bytes()),
        (
            "a path that leaves",
            b"[protect]\noracle = [\"../../etc\"]\n",
        ),
        ("a command that is none", b"[commands]\nallow = [\"'\"]\n"),
    ];
    let stage = stage();
    for (name, bytes) in cases {
        fs::write(stage.path("repo/provost.toml"), bytes).unwrap();
        stage.commit(&[]);
        let got = stage.call(&good_run(), name).verdict(name);
        assert_eq!(got, (2, Code::InputInvalid), "{name}");
        assert!(!stage.path("repo/.provost").exists(), "{name}: a run began");
    }
    fs::remove_file(stage.path("repo/provost.toml")).unwrap();
    symlink("/etc/passwd", stage.path("repo/provost.toml")).unwrap();
    stage.commit(&[]);
    let got = stage.call(&good_run(), "a link").verdict("a link");
    assert_eq!(got, (2, Code::InputInvalid));
}

#[test]
fn without_a_home_or_a_cache_a_run_says_what_is_missing() {
    let stage = stage();
    let file = stage.path("home/file");
    fs::write(&file, "").unwrap();
    let bare = |what: &str| {
        let mut command = stage.provost(&good_run());
        match what {
            "no home" => {
                only_home(&mut command, None);
                command.env("PROVOST_KEYS", stage.path("config/keys"))
            }
            "an empty home" => {
                only_home(&mut command, Some(Path::new("")));
                command.env("PROVOST_KEYS", stage.path("config/keys"))
            }
            "a home that is missing" => {
                only_home(&mut command, Some(Path::new("/proc/nowhere")));
                &mut command
            }
            "a cache that is a file" => command.env("XDG_CACHE_HOME", &file),
            "a cache in proc" => command.env("XDG_CACHE_HOME", "/proc"),
            "keys that are a file" => command.env("PROVOST_KEYS", &file),
            "a root that is a file" => command.env("PROVOST_ROOT", &file),
            "no path" => command.env_remove("PATH"),
            other => panic!("{other}"),
        };
        stage.spawn(command).measured(what)
    };
    let cases = [
        "no home",
        "an empty home",
        "a home that is missing",
        "a cache that is a file",
        "a cache in proc",
        "keys that are a file",
        "a root that is a file",
        "no path",
    ];
    for what in cases {
        let seen = bare(what);
        let (exit, code) = seen.verdict(what);
        assert_eq!(exit, 4, "{what}: {code} {seen:?}");
    }
    assert_eq!(
        stage.git(&["for-each-ref", "refs/provost", "refs/heads/provost"]),
        ""
    );
}

/// Runs a script in a mount namespace of its own; `None` if this machine has none to give.
fn in_namespace(stage: &Stage, script: &str) -> Option<String> {
    let able = Command::new("unshare")
        .args(["-Urm", "mount", "-t", "tmpfs", "none", "/mnt"])
        .output();
    if !able.is_ok_and(|output| output.status.success()) {
        skip("no user and mount namespace can be made here");
        return None;
    }
    let mut command = stage.command("unshare");
    command.args(["-Urm", "sh", "-euc", script]);
    command
        .env("PROVOST", program())
        .env("STAGE", stage.path(""));
    let outcome = stage.spawn(command).wait();
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    Some(outcome.out().to_owned())
}

/// The call of a good run in a shell; prints its exit status last.
const RUN: &str = r#"run() {
    status=0
    "$PROVOST" --json run "write a file" --allow src --accept ./check.sh \
        --agent-cmd "sh -c 'echo new > src/new'" || status=$?
    echo "exit $status"
}
"#;

fn last_line<'a>(text: &'a str, word: &str) -> &'a str {
    let mut lines = text.lines().rev();
    lines
        .find_map(|line| line.strip_prefix(word))
        .unwrap_or("nothing")
}

#[test]
fn in_a_repository_that_cannot_be_written_nothing_begins() {
    let stage = stage();
    let script = format!("{RUN} mount --bind . . && mount -o remount,bind,ro . && cd . && run");
    let Some(text) = in_namespace(&stage, &script) else {
        return;
    };
    assert_eq!(last_line(&text, "exit "), "4", "{text}");
    assert!(!stage.path("repo/.provost").exists());
}

#[test]
fn a_bundle_on_a_read_only_file_system_verifies() {
    let stage = stage();
    let script = format!(
        r#"{RUN} run
        mount --bind . . && mount -o remount,bind,ro . && cd .
        status=0
        "$PROVOST" verify || status=$?
        echo "verified $status"
        status=0
        "$PROVOST" verify .provost/runs/* || status=$?
        echo "verified $status""#
    );
    let Some(text) = in_namespace(&stage, &script) else {
        return;
    };
    assert_eq!(last_line(&text, "exit "), "0", "{text}");
    let verified: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("verified"))
        .collect();
    assert_eq!(verified, ["verified 0", "verified 0"], "{text}");
}

#[test]
fn a_root_that_is_empty_or_the_whole_file_system_is_refused() {
    let stage = stage();
    let before = stage.checkout("repo");
    for root in ["", "/", "//", "/..", "/./"] {
        let mut command = stage.provost(&good_run());
        command.env("PROVOST_ROOT", root);
        let got = stage.spawn(command).measured(root).verdict(root);
        assert_eq!(got, (2, Code::UsageError), "`{root}`");
    }
    assert_same(&before, &stage.checkout("repo"), "an empty root");
}

/// What begins nothing in a place that cannot be written, whichever it is.
#[test]
fn with_a_place_that_cannot_be_written_nothing_begins_and_nothing_is_left() {
    for place in ["root", "cache", "config/keys"] {
        let stage = stage();
        fs::create_dir_all(stage.path("root")).unwrap();
        let listing = || ["repo", "root", "cache", "config/keys"].map(|name| stage.listing(name));
        let before = listing();
        let script = format!(
            r#"{RUN} place="$STAGE/{place}"
            mount --bind "$place" "$place" && mount -o remount,bind,ro "$place"
            export PROVOST_ROOT="$STAGE/root"; run"#
        );
        let Some(text) = in_namespace(&stage, &script) else {
            return;
        };
        assert_eq!(last_line(&text, "exit "), "4", "{place}: {text}");
        let answer = text.lines().find(|line| line.starts_with('{')).unwrap();
        assert!(answer.contains(r#""code":"#), "{place}: {answer}");
        assert!(
            answer.contains("Read-only file system"),
            "{place}: {answer}"
        );
        for (before, after) in before.iter().zip(listing()) {
            assert_same(before, &after, place);
        }
    }
}

/// A run on a disk of `size`, then `resume` on a larger one.
fn on_a_small_disk(stage: &Stage, place: &str, size: &str) -> Option<String> {
    let script = format!(
        r#"{RUN}
        place="$STAGE/{place}"
        keep="$STAGE/keep"
        rm -rf "$keep" && mkdir -p "$place" && cp -a "$place" "$keep"
        mount -t tmpfs -o size={size} none "$place"
        cp -a "$keep/." "$place/" && cd "$STAGE/repo"
        run
        mount -o remount,size=256M "$place"
        status=0
        "$PROVOST" --json resume || status=$?
        echo "resumed $status"
        "$PROVOST" --json status
        "$PROVOST" --json lease list
        git -c safe.directory='*' fsck --no-dangling >&2
        git -c safe.directory='*' status --porcelain | sed 's/^/status /'"#
    );
    in_namespace(stage, &script)
}

#[test]
fn a_full_disk_ends_a_run_in_words_and_resume_ends_it_well() {
    // The keys are made first: they lie elsewhere, and a run that cannot make them never begins.
    for place in ["repo/.provost", "repo/.git", "cache"] {
        let mut ended_well = false;
        let mut failed = 0;
        for size in [
            "16k", "48k", "96k", "160k", "256k", "384k", "512k", "1M", "16M",
        ] {
            let stage = stage();
            let what = format!("{place} with {size}");
            let before = stage.checkout("repo");
            let Some(text) = small(&stage, place, size) else {
                return;
            };
            let exit = last_line(&text, "exit ");
            assert!(matches!(exit, "0" | "1" | "4"), "{what}: {text}");
            assert_eq!(last_line(&text, "resumed "), "0", "{what}: {text}");
            assert!(
                text.contains(r#"{"changes":[],"open":[]}"#),
                "{what}: {text}"
            );
            assert!(
                text.lines().any(|line| line == "[]"),
                "{what}: a lease is left: {text}"
            );
            assert_eq!(last_line(&text, "status "), "nothing", "{what}: {text}");
            assert_same(&before, &stage.checkout("repo"), &what);
            ended_well |= exit == "0";
            failed += i32::from(exit != "0");
        }
        assert!(
            ended_well && failed > 0,
            "{place}: the sizes show both ends"
        );
    }
}

/// As [`on_a_small_disk`], unless what is there already does not fit.
fn small(stage: &Stage, place: &str, size: &str) -> Option<String> {
    let needed: u64 = fs_size(&stage.path(place));
    let factor = if size.ends_with('M') {
        1 << 20
    } else {
        1 << 10
    };
    let given: u64 = size.trim_end_matches(['k', 'M']).parse::<u64>().unwrap() * factor;
    // What is there takes its room, and the run gets what is named.
    on_a_small_disk(stage, place, &format!("{}k", (needed + given) / 1024))
}

/// The room that everything below `path` takes in memory pages.
fn fs_size(path: &Path) -> u64 {
    let Ok(facts) = path.symlink_metadata() else {
        return 0;
    };
    if !facts.is_dir() {
        return facts.len().div_ceil(4096) * 4096;
    }
    let entries = fs::read_dir(path).unwrap();
    entries.map(|entry| fs_size(&entry.unwrap().path())).sum()
}

#[test]
fn a_word_that_is_no_text_is_a_wrong_word() {
    use std::os::unix::ffi::OsStrExt as _;

    let word = std::ffi::OsStr::from_bytes(b"\xff");
    let stage = stage();
    let mut command = stage.provost(&["run", "--allow", "src", "--accept", "true"]);
    command.arg(word);
    let said = stage.spawn(command).wait();
    assert_eq!(said.exit, 2, "{said:?}");
    assert!(said.stderr.contains("USAGE_ERROR"), "{said:?}");
}
