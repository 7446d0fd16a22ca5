//! `provost verify` on bundles whose files are anything but what they should be.

use std::fs;
use std::path::Path;

use provost_core::code::Code;

use crate::files::{unreadable, wrong};
use crate::sample::{Draft, key};
use provost_testkit::stage::Stage;

use crate::stage::{Refusal as _, Watched as _, stage};

/// Files of a bundle that are read in different ways.
const ATTACKED: &[&str] = &[
    "attestation.dsse.json",
    "contract.json",
    "events.jsonl",
    "git/objects.pack",
    "manifest.json",
    "patch.diff",
];

fn write_bundle(place: &Path) {
    for (name, bytes) in Draft::new("run_00000001").seal(&key(1)) {
        let path = place.join(std::str::from_utf8(name.as_bytes()).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// What `verify` says of the bundle at `place`.
fn judge(stage: &Stage, place: &Path, what: &str) -> (i32, Code) {
    let argv = ["--json", "verify", place.to_str().unwrap()];
    stage.call(&argv, what).verdict(what)
}

fn is_refusal((exit, code): (i32, Code)) -> bool {
    // Without its seal a bundle may look like a run that is still active.
    exit == 5 || (exit, code) == (3, Code::RunUnfinished)
}

#[test]
fn a_bundle_with_a_bad_file_is_not_believed() {
    let stage = stage();
    let bundle = stage.path("bundle");
    write_bundle(&bundle);
    let sound = judge(&stage, &bundle, "the sound bundle");
    assert_eq!(
        sound,
        (1, Code::KeyUnknown),
        "the sample's key is not trusted"
    );
    let files = wrong(&stage.path("home"));
    for name in ATTACKED {
        let file = bundle.join(name);
        let good = fs::read(&file).unwrap();
        for (kind, bad) in &files {
            fs::remove_file(&file).unwrap();
            fs::hard_link(bad, &file).unwrap();
            let what = format!("{kind} as {name}");
            let got = judge(&stage, &bundle, &what);
            assert!(is_refusal(got), "{what}: {got:?}");
        }
        fs::remove_file(&file).unwrap();
        fs::write(&file, good).unwrap();
    }
    assert_eq!(judge(&stage, &bundle, "the bundle again"), sound);
}

#[test]
fn a_bundle_with_something_else_in_place_of_a_file_is_not_believed() {
    let stage = stage();
    let bundle = stage.path("bundle");
    write_bundle(&bundle);
    for name in ATTACKED {
        let file = bundle.join(name);
        let good = stage.path("good");
        fs::rename(&file, &good).unwrap();
        for (kind, _) in unreadable(&fresh(&stage)) {
            let bad = stage.path("bad").join(match kind {
                "loop" => "loop_a",
                other => other,
            });
            if bad.symlink_metadata().is_err() {
                continue;
            }
            fs::rename(&bad, &file).unwrap();
            let what = format!("a {kind} as {name}");
            let got = judge(&stage, &bundle, &what);
            assert!(is_refusal(got), "{what}: {got:?}");
            fs::rename(&file, &bad).unwrap();
        }
        let got = judge(&stage, &bundle, &format!("without {name}"));
        assert!(is_refusal(got), "without {name}: {got:?}");
        fs::rename(&good, &file).unwrap();
    }
}

/// An empty directory for bad things.
fn fresh(stage: &Stage) -> std::path::PathBuf {
    let place = stage.path("bad");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir(&place).unwrap();
    place
}

#[test]
fn what_is_no_bundle_is_not_believed() {
    let stage = stage();
    fs::create_dir(stage.path("empty")).unwrap();
    let cases = [
        ("empty", &[5, 2][..]),
        ("repo", &[5, 2]),
        ("nowhere", &[2]),
        ("repo/check.sh", &[2]),
    ];
    for (name, exits) in cases {
        let (exit, code) = judge(&stage, &stage.path(name), name);
        assert!(exits.contains(&exit), "{name}: {exit} {code}");
    }
}

#[test]
fn a_bundle_with_very_many_files_is_refused_in_time() {
    let stage = stage();
    let bundle = stage.path("bundle");
    write_bundle(&bundle);
    for number in 0..20_000 {
        fs::write(bundle.join(format!("x{number}")), "").unwrap();
    }
    let got = judge(&stage, &bundle, "20 000 files");
    assert!(is_refusal(got), "{got:?}");
    fs::remove_dir_all(&bundle).unwrap();
    write_bundle(&bundle);
    let mut deep = bundle.clone();
    for _ in 0..500 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("x"), "").unwrap();
    let got = judge(&stage, &bundle, "500 levels");
    assert!(is_refusal(got), "{got:?}");
}
