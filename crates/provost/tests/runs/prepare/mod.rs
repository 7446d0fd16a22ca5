//! Runs whose dependencies are prepared.

mod ecosystems;
mod environments;
mod inside;
mod samples;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::stage::{Ask, Outcome, Stage, is_root, lacks};

/// A step that makes `deps/made` of a lock file, and says so.
const POLICY: &str = "[[prepare]]\nname = \"deps\"\nrun = \"sh deps.sh\"\n\
    inputs = [\"package-lock.json\"]\noutputs = [\"deps\"]\n";

const BASE: &[(&str, &str)] = &[
    ("provost.toml", POLICY),
    (
        "deps.sh",
        "mkdir deps && cat package-lock.json src/a.txt > deps/made",
    ),
    ("package-lock.json", "one\n"),
    (
        "check.sh",
        "grep -q good src/a.txt && grep -qf package-lock.json deps/made\n",
    ),
    (".gitignore", "/deps/\n/target/\n"),
];

fn stage() -> Stage {
    let stage = Stage::new();
    stage.commit(BASE);
    stage
}

/// The layers that an answer names: which were made, and their keys.
fn layers(answer: &Value) -> Vec<(bool, String)> {
    let layers = answer["layers"].as_array().unwrap();
    let row = |layer: &Value| {
        let key = layer["key"].as_str().unwrap();
        (!layer["made"].is_null(), key.to_owned())
    };
    layers.iter().map(row).collect()
}

fn accepted(stage: &Stage, name: &str, script: &str, ask: &Ask<'_>) -> Outcome {
    let outcome = stage.run(script, ask);
    assert_eq!(
        (outcome.code(), outcome.exit),
        ("OK", 0),
        "{name}: {outcome:?}"
    );
    let verified = stage.verify(outcome.text("run_id"));
    assert_eq!(verified.exit, 0, "{name}: {verified:?}");
    outcome
}

#[test]
fn a_layer_is_made_once_and_every_sandbox_reads_it() {
    let ordinary = || {
        let stage = Stage::of_nobody();
        stage.commit(BASE);
        stage.copy_binary();
        stage
    };
    let other = is_root() && !lacks("setpriv");
    for stage in [Some(stage()), other.then(ordinary)].into_iter().flatten() {
        let before = stage.surroundings();
        let script = "grep -q one deps/made && ! echo x > deps/y && ! rm -r deps 2>/dev/null &&
            echo good > src/a.txt && git status --porcelain";
        let first = accepted(&stage, "first", script, &Ask::default());
        let [(was_made, _)] = &layers(&first.json)[..] else {
            panic!("{first:?}")
        };
        assert!(
            was_made,
            "the first run made the layer that it was judged with"
        );
        let run = first.text("run_id");
        let ledger = fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
        assert!(ledger.contains("LAYERS_READY"), "{ledger}");
        assert!(stage.evidence(run, "prepare").is_dir());
        stage.assert_clean(&before, "first");

        let second = accepted(&stage, "second", script, &Ask::default());
        let [(was_made, key)] = &layers(&second.json)[..] else {
            panic!("{second:?}")
        };
        assert!(!was_made, "the second run prepares nothing");
        assert!(!stage.evidence(second.text("run_id"), "prepare").exists());
        let asked = stage.ask(&["prepare", "--json"]);
        assert_eq!(layers(&asked.json), [(false, key.clone())]);

        stage.commit(&[("package-lock.json", "two\n")]);
        let asked = stage.ask(&["prepare", "--json"]);
        let [(was_made, changed)] = &layers(&asked.json)[..] else {
            panic!("{asked:?}")
        };
        assert!(
            *was_made && changed != key,
            "a changed lock file prepares again"
        );
        let asked = stage.ask(&["gc", "--json"]);
        assert_eq!(asked.json["layers"], json!(0), "they are new: {asked:?}");
        let asked = stage.ask(&["gc", "--caches", "--json"]);
        assert_eq!(asked.json["layers"], json!(2), "{asked:?}");
    }
}

/// Where the layer `key` is.
fn layer(stage: &Stage, key: &str) -> PathBuf {
    let caches = fs::read_dir(stage.path("cache/provost")).unwrap().flatten();
    let mut places = caches.map(|cache| cache.path().join("layer").join(key));
    places.find(|place| place.exists()).unwrap()
}

#[test]
fn a_step_that_is_added_leaves_the_layers_before_it_as_they_are() {
    let stage = stage();
    let first = layers(&stage.ask(&["prepare", "--json"]).json);
    let policy = format!(
        "{POLICY}[[prepare]]\nname = \"more\"\nrun = \"cp -r deps more\"\n\
         inputs = [\"src\"]\noutputs = [\"more\"]\n"
    );
    stage.commit(&[("provost.toml", &policy)]);
    let asked = stage.ask(&["prepare"]);
    assert!(asked.stderr.contains("preparing dependencies"), "{asked:?}");
    let second = layers(&stage.ask(&["prepare", "--json"]).json);
    assert_eq!(second.len(), 2);
    assert_eq!(second[0].1, first[0].1, "the first step has not changed");
}

#[test]
fn a_sweep_leaves_what_the_current_commit_needs_and_takes_what_was_unused_for_a_day() {
    let stage = stage();
    let old = layers(&stage.ask(&["prepare", "--json"]).json);
    stage.commit(&[("package-lock.json", "two\n")]);
    let new = layers(&stage.ask(&["prepare", "--json"]).json);
    let yesterday = SystemTime::now() - Duration::from_hours(25);
    for (_, key) in old.iter().chain(&new) {
        let lock = fs::File::open(layer(&stage, key).join("lock")).unwrap();
        lock.set_modified(yesterday).unwrap();
    }
    let said = stage.ask(&["gc", "--dry-run", "--json"]);
    assert_eq!(said.json["layers"], json!(1), "{said:?}");
    let swept = stage.ask(&["gc"]);
    assert!(
        swept.stderr.contains("sweeping prepared layers"),
        "{swept:?}"
    );
    assert!(layer(&stage, &new[0].1).exists());
    let again = layers(&stage.ask(&["prepare", "--json"]).json);
    assert_eq!(again, [(false, new[0].1.clone())]);
    let said = stage.ask(&["gc", "--json"]);
    assert_eq!(said.json["layers"], json!(0), "{said:?}");
}

#[test]
fn a_touched_layer_is_made_again() {
    let stage = stage();
    let made = stage.ask(&["prepare", "--json"]);
    let key = layers(&made.json)[0].1.clone();
    let place = layer(&stage, &key);
    fs::write(place.join("tree/0/made"), "poison\n").unwrap();
    let again = stage.ask(&["prepare"]);
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(said.contains("made again, because"), "{again:?}");
    fs::write(place.join("tree/0/made"), "poison\n").unwrap();
    let again = stage.ask(&["prepare", "--json"]);
    assert_eq!(layers(&again.json), [(true, key)]);
    let text = fs::read_to_string(place.join("tree/0/made")).unwrap();
    assert_eq!(text, "one\nbase\n");
}

#[test]
fn a_step_that_fails_ends_the_run_and_its_output_is_kept() {
    let cases = [
        ("deps.sh", "echo oh no >&2; exit 3", "failed with status 3"),
        (
            "deps.sh",
            "echo no such version; echo see the log >&2; exit 3",
            "ends: no such version",
        ),
        (
            "deps.sh",
            "echo no such version; echo see the log >&2; exit 3",
            "ends: see the log",
        ),
        ("deps.sh", "true", "take the output"),
        ("deps.sh", "ln -s /usr deps", "take the output"),
        ("deps.sh", "mkfifo deps", "take the output"),
        (
            "deps.sh",
            "mkdir deps; mkfifo deps/x",
            "no file, directory or link",
        ),
        ("deps/kept", "kept\n", "lies where a prepared output goes"),
        (
            "provost.toml",
            "[[prepare]]\nrun = \"true\"\ninputs = [\"no\"]\noutputs = [\"deps\"]\n",
            "the input `no` is not in the tree",
        ),
        (
            "provost.toml",
            "[[prepare]]\nrun = \"no-such\"\ninputs = [\"src\"]\noutputs = [\"deps\"]\n",
            "could not be started",
        ),
    ];
    for (file, text, want) in cases {
        let stage = stage();
        stage.commit(&[(".gitignore", "")]);
        stage.commit(&[(file, text)]);
        let before = stage.surroundings();
        let outcome = stage.run("echo good > src/a.txt", &Ask::default());
        assert_eq!(outcome.code(), "PREPARE_FAILED", "{want}: {outcome:?}");
        let reason = outcome.json["verdict"]["reason"].as_str().unwrap();
        assert!(reason.contains(want), "{reason}\nwanted {want}");
        let verified = stage.verify(outcome.text("run_id"));
        assert_eq!(verified.exit, 0, "{want}: {verified:?}");
        stage.assert_clean(&before, want);
        let asked = stage.ask(&["prepare", "--json"]);
        assert_eq!(
            (asked.code(), asked.exit),
            ("PREPARE_FAILED", 1),
            "{asked:?}"
        );
    }
}

#[test]
fn a_step_reaches_nothing_that_is_not_granted() {
    if lacks("curl") {
        return;
    }
    let stage = stage();
    let policy = format!("{POLICY}net = [\"127.0.0.1:1\"]\n");
    let step = "mkdir deps; curl -sS http://tracker.example.com/ | grep NETWORK_REFUSED > deps/made
        ls /root /home > deps/homes; env > deps/env; test -s deps/made";
    stage.commit(&[("provost.toml", &policy), ("deps.sh", step)]);
    stage.agree();
    let asked = stage.ask(&["prepare", "--json"]);
    assert_eq!(asked.exit, 0, "{asked:?}");
    let fails = step.replace("test -s deps/made", "false");
    let traffic = asked.json["layers"][0]["made"]["network"].clone();
    stage.commit(&[("deps.sh", &fails), ("package-lock.json", "three\n")]);
    let failed = stage.ask(&["prepare", "--json"]);
    let want =
        "refused: tracker.example.com:80; if you trust them, add \\\"tracker.example.com:80\\\"";
    assert!(failed.json.to_string().contains(want), "{failed:?}");
    assert_eq!(traffic[0]["target"], json!("tracker.example.com:80"));
    assert_eq!(traffic[0]["allow"], json!(false));
}

/// A layer that is made with a candidate's own files serves no other tree.
#[test]
fn a_lock_file_that_the_agent_may_change_prepares_again_for_that_tree_alone() {
    let stage = stage();
    let ask = Ask {
        allow: &["src", "package-lock.json", "deps.sh"],
        more: &["--permit-oracle", "package-lock.json"],
        ..Ask::default()
    };
    let script = "echo good > src/a.txt; echo two > package-lock.json
        echo 'mkdir deps; cat package-lock.json > deps/made; echo evil >> deps/made' > deps.sh
        grep -q one deps/made";
    let outcome = accepted(&stage, "changed", script, &ask);
    let [(was_made, key)] = &layers(&outcome.json)[..] else {
        panic!("{outcome:?}")
    };
    assert!(was_made, "the candidate has other inputs");

    stage.commit(&[("package-lock.json", "two\n")]);
    let asked = stage.ask(&["prepare", "--json"]);
    let [(was_made, honest)] = &layers(&asked.json)[..] else {
        panic!("{asked:?}")
    };
    assert!(
        *was_made && honest != key,
        "the same inputs of another tree"
    );
}

/// A candidate that changes what a step runs, but none of its inputs, has the layer of its base.
#[test]
fn a_script_that_the_agent_changed_has_no_part_in_a_layer_that_others_find() {
    let stage = stage();
    let ask = Ask {
        allow: &["src", "deps.sh"],
        ..Ask::default()
    };
    let script = "echo good > src/a.txt; echo 'mkdir deps; echo evil > deps/made' > deps.sh";
    let changed = accepted(&stage, "script", script, &ask);
    // Another run finds the layer of the base, and what it holds is from the base.
    let script = "grep -q one deps/made && echo good > src/a.txt";
    let other = accepted(&stage, "other", script, &Ask::default());
    let (changed, other) = (layers(&changed.json), layers(&other.json));
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!(other, [(false, changed[0].1.clone())]);
}

#[test]
fn a_shell_enters_the_sandbox_that_judged_the_run() {
    let stage = stage();
    let outcome = accepted(&stage, "run", "echo good > src/a.txt", &Ask::default());
    let before = stage.surroundings();
    let script = "cat src/a.txt deps/made; echo x > src/new; exit 3";
    let entered = stage.ask(&["shell", "last", "--", "sh", "-c", script]);
    assert_eq!(entered.exit, 3, "{entered:?}");
    assert_eq!(entered.stdout, b"good\none\nbase\n", "{entered:?}");
    stage.assert_clean(&before, "shell");
    let verified = stage.verify(outcome.text("run_id"));
    assert_eq!(verified.exit, 0, "{verified:?}");
    let refused = stage.ask(&["shell", "last", "--json"]);
    assert_eq!(refused.code(), "USAGE_ERROR", "{refused:?}");
}

#[test]
fn a_shell_has_a_terminal_of_its_own() {
    if lacks("script") {
        return;
    }
    let stage = stage();
    accepted(&stage, "run", "echo good > src/a.txt", &Ask::default());
    let provost = stage.provost(&[]).get_program().to_owned();
    let typed = "printf 'test -t 0 && test -t 1 && echo on $((40+2)); stty size; exit 7\\n'";
    let line = format!(
        "({typed}; sleep 3) | script -qec \"stty rows 33 cols 77; {} shell last\" /dev/null",
        provost.display()
    );
    let mut command = stage.command("sh");
    command.args(["-c", &line]);
    let ended = stage.spawn(command).wait();
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(text.contains("on 42"), "{ended:?}");
    assert!(text.contains("33 77"), "{ended:?}");
    assert_eq!(ended.exit, 7, "{ended:?}");
}
