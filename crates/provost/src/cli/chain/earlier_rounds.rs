//! Rounds of acceptance commands that a part of a case passed on exactly the merged tree.
//!
//! The run that judges the whole does not repeat such a round, if commands and sandbox are the same.
//! It records where the round came from. A round that is missing, was not passed or does not match
//! the digests of its ledger is no evidence, and the commands run.

use std::fs;

use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::run::fact::{EarlierRound, Ending, Side, Stream};
use provost_engine::query::{self, RunArchive as _};

use crate::answer::Failure;
use crate::parts;
use crate::places::Places;

/// The rounds on `tree` that runs of the case `id` passed.
pub(super) fn of(place: &Places, id: &str, tree: &Oid) -> Result<Vec<EarlierRound>, Failure> {
    let case = parts::case_state(place, id)?;
    let mut rounds = Vec::new();
    for (part, run_id) in case.runs() {
        if part.is_some() && place.is_sealed(run_id) {
            query::require_own(place, run_id)?;
            rounds.extend(passed(place, run_id, tree)?);
        }
    }
    Ok(rounds)
}

/// The round of the candidate of a sealed run, if that was `tree` and every command passed.
fn passed(place: &Places, run_id: &str, tree: &Oid) -> Result<Option<EarlierRound>, Failure> {
    let state = query::state(place, run_id)?;
    let round = state.tests.get(&Side::Candidate);
    let is_green = |round: &&provost_core::run::fact::TestRun| {
        let mut commands = round.commands.iter();
        round.tree == *tree
            && round.altered.is_empty()
            && commands.all(|it| it.ending == Ending::Exited(0))
    };
    let head = place.pins(run_id)?.ledger;
    Ok(round
        .filter(is_green)
        .zip(head)
        .map(|(round, head)| EarlierRound {
            run_id: run_id.to_owned(),
            ledger_head: head.hash,
            round: round.clone(),
        }))
}

/// Copies the output of `rounds` into the bundle of `run_id`.
pub(super) fn copy_logs(run_id: &str, rounds: &[EarlierRound]) -> Result<(), Failure> {
    if rounds.is_empty() {
        return Ok(());
    }
    let place = Places::find()?;
    for earlier in rounds {
        let streams = earlier.round.everything();
        for stream in streams.flat_map(|ran| [&ran.stdout, &ran.stderr]) {
            let Stream { file, .. } = stream;
            let (from, to) = (
                place.run(&earlier.run_id).join(file),
                place.run(run_id).join(file),
            );
            let failed = |error: &std::io::Error| Failure::of(Code::HostFailed, error).about(&to);
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent).map_err(|error| failed(&error))?;
            }
            // A log that is gone makes the round no evidence; the commands run again.
            match fs::copy(&from, &to) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(&error)),
            }
        }
    }
    Ok(())
}
