//! Runs whose files were cut, filled with garbage or replaced, and what every command says of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};
use serde_json::Value;

use provost_testkit::stage::{Outcome, Stage};

use crate::stage::{Refusal as _, Watched as _, good_run, stage};

/// Commands that look at what is on disk. `land` and `resume` are the ones that act on it.
const COMMANDS: &[&[&str]] = &[
    &["runs"],
    &["show", "last"],
    &["log", "last"],
    &["diff", "last"],
    &["status"],
    &["lease", "list"],
    &["salvage", "list"],
    &["land", "last"],
    &["resume"],
];

/// A repository with one accepted run, and a copy of its runtime root to spoil.
struct Spoiled {
    stage: Stage,
    run: String,
}

impl Spoiled {
    fn new() -> Option<Self> {
        let stage = stage();
        if !stage.has_sandbox() {
            return None;
        }
        let seen = stage.call(&good_run(), "a good run");
        assert_eq!(seen.exit, 0, "{seen:?}");
        let run = stage.last_run().unwrap();
        Some(Self { stage, run })
    }

    /// The directory of the run in a fresh copy of the runtime root.
    fn copy(&self) -> PathBuf {
        let root = self.stage.path("root");
        let _ = fs::remove_dir_all(&root);
        self.stage.copy("repo/.provost", "root");
        root.join("runs").join(&self.run)
    }

    fn call(&self, argv: &[&str], what: &str) -> Outcome {
        let mut command = self.stage.provost(&["--json"]);
        command.args(argv);
        command.env("PROVOST_ROOT", self.stage.path("root"));
        self.stage.spawn(command).measured(what)
    }

    /// Calls every command; each answers in JSON with one of `exits`, and `main` stays.
    fn survey(&self, what: &str, exits: &[i32]) {
        let main = self.stage.git(&["rev-parse", "main"]);
        for argv in COMMANDS {
            let what = format!("{argv:?}, {what}");
            let seen = self.call(argv, &what);
            let exit = seen.exit;
            let link = exit == 1 && seen.out().contains("ROOT_UNSAFE");
            assert!(
                exit == 0 || exits.contains(&exit) || link,
                "{what}: {seen:?}"
            );
            for line in seen.out().lines() {
                let read: Result<Value, _> = serde_json::from_str(line);
                assert!(read.is_ok(), "{what}: {line:.200}");
            }
            if exit != 0 {
                seen.verdict(&what);
            }
            if argv[0] == "land" {
                assert_ne!(exit, 0, "{what}: landed");
            }
        }
        assert_eq!(self.stage.git(&["rev-parse", "main"]), main, "{what}");
    }
}

fn fifo(path: &Path) {
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(CWD, path, FileType::Fifo, mode, 0).unwrap();
}

/// A name, and what puts it in place of a file.
type Instead = (&'static str, fn(&Path));

/// Ways to put something else in the place of a file.
const INSTEAD: &[Instead] = &[
    ("nothing", |_| ()),
    ("an empty file", |path| fs::write(path, "").unwrap()),
    ("garbage", |path| {
        fs::write(path, b"\x00\xff{]\n\n{}\n").unwrap();
    }),
    ("one long line", |path| {
        fs::write(path, vec![b'['; 20_000_000]).unwrap();
    }),
    ("many short lines", |path| {
        fs::write(path, b"{}\n".repeat(100_000)).unwrap();
    }),
    ("only line ends", |path| {
        fs::write(path, vec![b'\n'; 1_000_000]).unwrap();
    }),
    ("a directory", |path| fs::create_dir(path).unwrap()),
    ("a fifo", fifo),
    ("a loop of links", |path| symlink(path, path).unwrap()),
    ("a link to a device", |path| {
        symlink("/dev/zero", path).unwrap();
    }),
    ("a hole of 300 MB", |path| {
        let file = fs::File::create(path).unwrap();
        file.set_len(300_000_000).unwrap();
    }),
];

fn remove(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap();
    } else {
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_file_that_is_no_ledger_is_reported_and_nothing_is_done() {
    let Some(spoiled) = Spoiled::new() else {
        return;
    };
    for (name, make) in INSTEAD {
        for sealed in [true, false] {
            let run = spoiled.copy();
            remove(&run.join("events.jsonl"));
            make(&run.join("events.jsonl"));
            if !sealed {
                remove(&run.join("attestation.dsse.json"));
            }
            let what = format!("{name} as events.jsonl, sealed: {sealed}");
            spoiled.survey(&what, &[1, 2, 3, 4, 5]);
        }
    }
}

#[test]
fn a_sealed_ledger_that_was_cut_lands_nothing() {
    let Some(spoiled) = Spoiled::new() else {
        return;
    };
    let run = spoiled.copy();
    let ledger = run.join("events.jsonl");
    let whole = fs::read(&ledger).unwrap();
    let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let ends: Vec<usize> = ends.map(|(at, _)| at).collect();
    // The cut before the last line leaves all records but the last, and so does one inside it.
    for (number, end) in ends.iter().enumerate() {
        for cut in [*end, *end / 2] {
            fs::write(&ledger, &whole[..cut]).unwrap();
            let what = format!("cut after {cut} bytes, in line {}", number + 1);
            let seen = spoiled.call(&["land", "last"], &what);
            assert_ne!(seen.exit, 0, "{what}: {seen:?}");
            seen.verdict(&what);
            let seen = spoiled.call(&["runs"], &what);
            assert_eq!(seen.exit, 0, "{what}: {seen:?}");
            let seen = spoiled.call(&["resume"], &what);
            assert_eq!((seen.exit, seen.out().trim()), (0, "[]"), "{what}");
        }
    }
    // Nothing above cut or completed what the driver had left.
    fs::write(&ledger, &whole[..whole.len() - 5]).unwrap();
    spoiled.survey("cut in the last line", &[1, 2, 3, 4, 5]);
    assert_eq!(
        fs::read(&ledger).unwrap().len(),
        whole.len() - 5,
        "readers repair nothing"
    );
}

#[test]
fn an_unsealed_ledger_that_was_cut_is_brought_to_its_seal_or_refused() {
    let Some(spoiled) = Spoiled::new() else {
        return;
    };
    let run = spoiled.copy();
    let whole = fs::read_to_string(run.join("events.jsonl")).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for keep in (0..=lines.len()).step_by(6) {
        let run = spoiled.copy();
        remove(&run.join("attestation.dsse.json"));
        fs::write(run.join("events.jsonl"), lines[..keep].concat()).unwrap();
        let what = format!("{keep} records without a seal");
        if (1..lines.len()).contains(&keep) {
            // The registry knows how the ledger ended, so this was no crash.
            let seen = spoiled.call(&["resume"], &what);
            assert_eq!(seen.exit, 5, "{what}: {seen:?}");
            fs::write(run.join("events.jsonl"), lines[..keep].concat()).unwrap();
        }
        let registry = run.ancestors().nth(2).unwrap().join("registry.db");
        fs::remove_file(&registry).unwrap();
        let seen = spoiled.call(&["resume"], &what);
        assert_eq!(seen.exit, 0, "{what}: {seen:?}");
        let again = spoiled.call(&["resume"], &what);
        assert_eq!((again.exit, again.out().trim()), (0, "[]"), "{what}");
    }
}

#[test]
fn other_files_of_a_run_may_be_anything() {
    let Some(spoiled) = Spoiled::new() else {
        return;
    };
    for file in [
        "driver.lock",
        "after.jsonl",
        "contract.json",
        "manifest.json",
    ] {
        for (name, make) in INSTEAD {
            let run = spoiled.copy();
            let place = run.join(file);
            if place.exists() {
                remove(&place);
            }
            make(&place);
            // Some of these files are not needed for landing, so only its ending is judged.
            let main = spoiled.stage.git(&["rev-parse", "main"]);
            for argv in COMMANDS {
                let what = format!("{argv:?}, {name} as {file}");
                let seen = spoiled.call(argv, &what);
                if seen.exit != 0 {
                    seen.verdict(&what);
                }
            }
            spoiled
                .stage
                .git(&["reset", "--quiet", "--hard", main.trim()]);
        }
    }
}

#[test]
fn a_file_that_is_no_registry_is_reported() {
    let Some(spoiled) = Spoiled::new() else {
        return;
    };
    for file in ["registry.db", "registry.lock", "registry.db-wal"] {
        for (name, make) in INSTEAD {
            let root = spoiled.copy().ancestors().nth(2).unwrap().to_owned();
            let place = root.join(file);
            if place.exists() {
                remove(&place);
            }
            make(&place);
            let what = format!("{name} as {file}");
            for argv in [&["lease", "list"][..], &["status"], &good_run()[1..]] {
                let what = format!("{argv:?}, {what}");
                let seen = spoiled.call(argv, &what);
                let exit = seen.exit;
                let link = exit == 1 && seen.out().contains("ROOT_UNSAFE");
                assert!(matches!(exit, 0 | 4) || link, "{what}: {seen:?}");
                if exit != 0 {
                    seen.verdict(&what);
                }
            }
        }
    }
}

#[test]
fn a_directory_of_runs_may_hold_anything() {
    let Some(spoiled) = Spoiled::new() else {
        return;
    };
    // The first one puts nothing there, so that `last` would be the good run.
    for (name, make) in &INSTEAD[1..] {
        let run = spoiled.copy();
        make(&run.with_file_name("run_99999999_odd"));
        spoiled.survey(&format!("{name} as a run"), &[1, 2, 3, 4, 5]);
    }
    let run = spoiled.copy();
    let runs = run.parent().unwrap();
    remove(runs);
    for (name, make) in INSTEAD.iter().filter(|(name, _)| *name != "a directory") {
        make(runs);
        spoiled.survey(&format!("{name} as the directory of runs"), &[2, 4]);
        if runs.symlink_metadata().is_ok() {
            remove(runs);
        }
    }
}
