//! The user's own clean-up beside runs: nothing that a ref leads to is ever gone.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::stage::{Ask, Stage};

/// How long the clean-up works beside runs.
const LONG: Duration = Duration::from_secs(7);

/// A clean-up that repeats until this is dropped.
struct Loop(std::process::Child, PathBuf);

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.1);
        let _ = self.0.wait();
    }
}

/// Cleans up again and again, until the file `go` is gone.
fn clean_up(stage: &Stage, script: &str) -> Loop {
    stage.write("go", "");
    let text = format!("while [ -e ../go ]; do {script}; done");
    let child = Command::new("sh")
        .args(["-c", &text])
        .current_dir(stage.path("repo"))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", stage.path("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Loop(child, stage.path("go"))
}

/// Everything that a ref leads to is there, and git's own clean-up says so.
fn is_whole(stage: &Stage) {
    for words in [
        &["fsck", "--full", "--no-dangling"][..],
        &["gc", "-q", "--prune=now"],
        &["fsck", "--full", "--no-dangling"],
    ] {
        let mut command = stage.command("git");
        command.args(words);
        let done = stage.spawn(command).wait();
        assert_eq!(done.exit, 0, "{words:?}: {done:?}");
    }
    let kept = std::fs::read_dir(stage.path("repo/.git/objects/pack")).unwrap();
    let names = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let held: Vec<String> = names
        .filter(|name| name.rsplit('.').next() == Some("keep"))
        .collect();
    assert!(held.is_empty(), "{held:?}");
}

fn nothing_is_lost_beside(script: &str) {
    let stage = Stage::new();
    let began = Instant::now();
    let looping = clean_up(&stage, script);
    let mut accepted = Vec::new();
    let mut number = 0;
    while began.elapsed() < LONG {
        number += 1;
        let agent = format!("echo good {number} > src/a.txt; echo {number} > src/new.txt");
        let outcome = stage.run(&agent, &Ask::default());
        match outcome.code() {
            "OK" => accepted.push(outcome.text("tree").to_owned()),
            // Refused in words, and no ref leads to what is gone.
            "GIT_FAILED" => {
                let reason = outcome.json["verdict"]["reason"].as_str();
                assert!(reason.is_some_and(|it| !it.is_empty()), "{outcome:?}");
            }
            _ => panic!("{outcome:?}"),
        }
    }
    drop(looping);
    assert!(
        accepted.len() * 2 > number,
        "{} of {number}",
        accepted.len()
    );
    is_whole(&stage);
    for tree in accepted {
        assert_eq!(stage.git(&["cat-file", "-t", &tree]), "tree");
        stage.git(&["ls-tree", "-r", &tree]);
    }
}

#[test]
fn no_ref_leads_nowhere_while_git_cleans_up_beside_runs() {
    nothing_is_lost_beside("git gc -q --prune=now");
}

#[test]
fn no_ref_leads_nowhere_while_objects_are_pruned_and_packed_beside_runs() {
    nothing_is_lost_beside("git prune --expire=now; git repack -a -d -q");
}

#[test]
fn gc_takes_away_refs_that_lead_to_what_is_gone_and_git_works_again() {
    let stage = Stage::new();
    let good = stage.run("echo good > src/a.txt", &Ask::default());
    let lost = stage.run("echo good and lost > src/a.txt", &Ask::default());
    assert_eq!((good.code(), lost.code()), ("OK", "OK"));
    // As an older version left it: the blob, or the commit, was pruned under its ref.
    let commit = lost.text("commit").to_owned();
    let blob = stage.git(&["rev-parse", &format!("{commit}:src/a.txt")]);
    stage.git(&["update-ref", "refs/provost/captured/run_old/1", &commit]);
    stage.git(&["repack", "-a", "-d", "-q", "-k"]);
    let packs = stage.path("repo/.git/objects/pack");
    let moved = stage.path("packs");
    std::fs::rename(&packs, &moved).unwrap();
    std::fs::create_dir(&packs).unwrap();
    for pack in std::fs::read_dir(&moved).unwrap() {
        let path = pack.unwrap().path();
        if path.extension().is_some_and(|it| it == "pack") {
            let mut command = stage.command("git");
            command.args(["unpack-objects", "-q"]);
            command.stdin(std::fs::File::open(path).unwrap());
            assert!(command.status().unwrap().success());
        }
    }
    let object = format!("repo/.git/objects/{}/{}", &blob[..2], &blob[2..]);
    std::fs::remove_file(stage.path(&object)).unwrap();
    let mut command = stage.command("git");
    command.args(["gc", "-q", "--prune=now"]);
    assert_ne!(stage.spawn(command).wait().exit, 0, "it is broken");

    let said = stage.ask(&["gc", "--dry-run", "--json"]);
    let refs = said.json["dangling"].as_array().unwrap().clone();
    assert!(refs.len() >= 2, "{said:?}");
    let swept = stage.ask(&["gc", "--json"]);
    assert_eq!(swept.exit, 0, "{swept:?}");
    assert_eq!(
        swept.json["dangling"].as_array().unwrap(),
        &refs,
        "{swept:?}"
    );
    is_whole(&stage);
    let branch = format!(
        "refs/heads/{}",
        good.text("branch").trim_start_matches("refs/heads/")
    );
    assert_eq!(stage.git(&["rev-parse", &branch]), good.text("commit"));
    let again = stage.ask(&["gc", "--json"]);
    assert_eq!(again.json["dangling"], serde_json::json!([]), "{again:?}");
}
