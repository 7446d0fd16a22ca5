//! Drivers that die, are cancelled, or get in each other's way.
//!
//! Whatever happens to a driver: what is not ours stays as it was, no process and no mount is left,
//! and the next `resume` brings the run to the verdict it would have had.

#[cfg(feature = "failpoints")]
mod failpoints;
mod random;
mod rivals;

use crate::stage::{Ask, Running, Stage, Surroundings, until};

/// An agent that takes a while, and always ends with the same tree.
const SLOW: &str = "for i in $(seq 20); do echo $i > src/f$i; sleep 0.02; done
    echo good > src/a.txt";

/// After a crash: resumes every run until it is sealed, and checks that nothing is left to do.
///
/// Says the code of the run, or nothing if it died before its first record.
pub(crate) fn settle(stage: &Stage, before: &Surroundings, name: &str) -> Option<String> {
    stage.await_silence(name);
    assert_eq!(
        before.differences(&stage.surroundings()),
        [""; 0],
        "{name}: changed by the crash"
    );
    check_kept(stage, name);

    let resumed = stage.ask(&["resume", "--json"]);
    assert_eq!(resumed.exit, 0, "{name}: {resumed:?}");
    stage.assert_clean(before, name);
    check_kept(stage, name);
    check_again(stage, name);

    let run = stage.last_run()?;
    let shown = stage.ask(&["show", &run, "--json"]);
    if shown.exit != 0 {
        let records = std::fs::read(stage.evidence(&run, "events.jsonl")).unwrap_or_default();
        assert!(records.is_empty(), "{name}: {shown:?}");
        return None;
    }
    check_sealed(stage, name, &run);
    Some(shown.code().to_owned())
}

/// Nothing to do, said in words, and not a byte written.
fn check_again(stage: &Stage, name: &str) {
    let before = stage.everything();
    let again = stage.ask(&["resume"]);
    assert_eq!(again.exit, 0, "{name}: {again:?}");
    assert_eq!(again.stdout, b"nothing to resume\n", "{name}: {again:?}");
    let changed = before.differences(&stage.everything());
    assert_eq!(changed, [""; 0], "{name}: a second resume writes");
}

/// Every ref of ours leads to a whole commit.
fn check_kept(stage: &Stage, name: &str) {
    let refs = stage.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/provost",
        "refs/heads",
    ]);
    for one in refs.lines() {
        let objects = stage.git(&["rev-list", "--objects", one]);
        assert!(!objects.is_empty(), "{name}: {one}");
    }
}

/// The run has its seal, and its evidence is whole.
pub(crate) fn check_sealed(stage: &Stage, name: &str, run: &str) {
    let seal = stage.evidence(run, "attestation.dsse.json");
    assert!(seal.is_file(), "{name}: {run} is not sealed");
    let verified = stage.verify(run);
    assert_eq!(verified.exit, 0, "{name}: {verified:?}");
}

/// The tree of what was salvaged from attempt `number`, if anything was.
fn salvaged(stage: &Stage, number: u32) -> Option<String> {
    let run = stage.last_run()?;
    let name = format!("refs/provost/salvage/{run}/{number}");
    let refs = stage.git(&["for-each-ref", "--format=%(tree)", &name]);
    refs.lines().next().map(str::to_owned)
}

/// Whether the agent of `run` is at work and has printed `word`.
pub(crate) fn agent_says(stage: &Stage, run: &str, word: &str) -> bool {
    let records = std::fs::read(stage.evidence(run, "events.jsonl")).unwrap_or_default();
    let works = String::from_utf8_lossy(&records).contains(r#""step":"agent""#);
    works && stage.printed_in(run).contains(word)
}

/// Starts a run and waits until its agent says `word`.
pub(crate) fn at_work(stage: &Stage, script: &str, word: &str) -> (Running, String) {
    let others = stage.runs();
    let running = stage.start(script, &Ask::default());
    let mut found = None;
    until("the agent works", || {
        found = stage.runs().difference(&others).next().cloned();
        found
            .as_ref()
            .is_some_and(|run| agent_says(stage, run, word))
    });
    (running, found.unwrap())
}
