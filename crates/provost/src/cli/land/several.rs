//! Lands several runs, each in the ordinary way.

use std::collections::{BTreeMap, BTreeSet};

use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::run::State;
use provost_core::wording::counted;
use provost_engine::query;
use serde::Serialize;

use super::{Land, LandedRun, one_run};
use crate::answer::{Answered, Failure, Outcome};
use crate::parts::CASE;
use crate::places::Places;
use crate::progress::ProgressObserver;

/// What became of several runs.
#[derive(Default, Serialize)]
struct LandedRuns {
    landed: Vec<LandedRun>,
    skipped: Vec<SkippedRun>,
    #[serde(skip)]
    exit: Option<Exit>,
}

/// A run that did not land.
#[derive(Serialize)]
struct SkippedRun {
    run_id: String,
    code: Code,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Answered for LandedRuns {
    fn text(&self) -> String {
        if self.landed.is_empty() && self.skipped.is_empty() {
            return "no accepted run waits to land\n".to_owned();
        }
        let mut text: String = self.landed.iter().map(Answered::text).collect();
        for skipped in &self.skipped {
            let (code, run_id) = (skipped.code.name(), &skipped.run_id);
            text += &format!("skipped[{code}]: {run_id}: {}\n", skipped.reason);
            if let Some(hint) = &skipped.hint {
                text += &format!("  hint: {hint}\n");
            }
        }
        if !self.skipped.is_empty() {
            let (landed, skipped) = (self.landed.len(), self.skipped.len());
            text += &format!("{} landed, {skipped} skipped\n", counted(landed, "run"));
        }
        text
    }

    fn exit(&self) -> Exit {
        self.exit.unwrap_or(Exit::Yes)
    }
}

pub(super) fn run(place: &Places, land: &Land, observer: &mut ProgressObserver) -> Outcome {
    let wanted = if land.all {
        waiting(place)?
    } else {
        let named = land.runs.iter().map(|text| place.find_run(text));
        named.collect::<Result<Vec<String>, Failure>>()?
    };
    let mut answer = LandedRuns::default();
    // A part without an earlier part of its chain is not what the chain accepted.
    let mut broken: BTreeMap<String, String> = BTreeMap::new();
    let mut ended: Option<Code> = None;
    for run_id in wanted {
        let part = query::state(place, &run_id).ok();
        let part = part.and_then(|state| state.opened.part.map(|part| part.chain));
        let before = part.as_ref().and_then(|chain| broken.get(chain));
        let landed = match (ended, before) {
            (Some(code), _) => Err(Failure::new(code, "not tried after this failure")),
            (None, Some(other)) => {
                let reason = format!("{other} of the same chain did not land");
                Err(Failure::new(Code::ChainNotAccepted, reason))
            }
            (None, None) => one_run(Places::find()?, run_id.clone(), land, observer),
        };
        match landed {
            Ok(landed) => answer.landed.push(landed),
            Err(failure) => {
                answer.exit = answer.exit.or(Some(failure.code.exit()));
                if let Some(chain) = part {
                    broken.entry(chain).or_insert_with(|| run_id.clone());
                }
                if !is_about_one_run(failure.code) {
                    ended = Some(failure.code);
                }
                answer.skipped.push(SkippedRun {
                    run_id,
                    code: failure.code,
                    reason: failure.verdict().reason,
                    hint: failure.hint,
                });
            }
        }
    }
    Ok(answer.into())
}

/// Whether another run may land although one failed like this.
fn is_about_one_run(code: Code) -> bool {
    !matches!(
        code,
        Code::Cancelled
            | Code::IdentityMissing
            | Code::SigningFailed
            | Code::GitMissing
            | Code::GitFailed
            | Code::HostFailed
            | Code::StoreFailed
            | Code::Bug
    )
}

/// The accepted runs of this user that have not landed, oldest first. A run whose retry was
/// accepted is left to the retry, and a run of a case to its case.
fn waiting(place: &Places) -> Result<Vec<String>, Failure> {
    let runs = place.runs()?;
    let names: Vec<&str> = runs.iter().map(String::as_str).collect();
    let landed = query::landed(place, &names);
    let accepted = |state: &State| {
        let allow = state.finished.as_ref().is_some_and(|it| it.allow);
        let of_case = state.opened.part.as_ref();
        let of_case = of_case.is_some_and(|part| part.chain.starts_with(CASE));
        allow && !of_case && state.published.is_some() && state.opened.target.is_some()
    };
    let states = runs.iter().filter_map(|run_id| {
        let state = query::state(place, run_id).ok()?;
        (accepted(&state) && query::is_own(place, run_id)).then_some(state)
    });
    let states: Vec<State> = states.collect();
    let retried: BTreeSet<&String> = states
        .iter()
        .filter_map(|state| state.opened.parent.as_ref())
        .collect();
    let waits = |run_id: &String| {
        let held = landed.get(run_id).and_then(|landed| landed.held);
        held != Some(true) && !retried.contains(run_id)
    };
    let ids = states.iter().map(|state| &state.names.run_id);
    Ok(ids.filter(|run_id| waits(run_id)).cloned().collect())
}
