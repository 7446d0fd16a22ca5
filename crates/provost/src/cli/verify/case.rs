//! Verifies a case: its own seal, then the bundle of every run that it names.
//!
//! The bundles lie beside the directory of the case. Each must verify by itself, end with the ledger
//! head and the tree that the case names, and the landed commit must be one of the whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use provost_core::bundle::key::PublicKey;
use provost_core::bundle::layout::LEDGER;
use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::record::{Head, Record};
use provost_core::run;
use provost_core::verdict::Verdict;
use provost_core::wording::counted;
use provost_engine::bundle::sealed;
use provost_engine::bundle::verify::{self, Pins, Report};
use provost_engine::case::{Fact, Integration, Judging, MergedPart, State};
use provost_engine::chain::{self, End};
use provost_host::bundle::Directory;
use serde::Serialize;

use crate::answer::{Answer, Failure};
use crate::parts::CASE;
use crate::stores;

/// Whether `directory` is that of a case.
pub(super) fn is_one(directory: &Path) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(CASE))
}

pub(super) fn answer(
    place: &Path,
    directory: &Directory,
    keys: &[PublicKey],
) -> Result<Answer, Failure> {
    let records = stores::read_ledger(&place.join(LEDGER), Head::genesis())?;
    let state = State::fold(&records);
    let is_open = |state: &State| state.finished.is_none();
    if matches!(&state, Ok(Some(state)) if is_open(state)) {
        let reason = "the case has not finished, and is not sealed yet";
        return Ok(Verdict::deny(Code::RunUnfinished, reason).into());
    }
    let sealed = sealed::verify(directory, keys);
    if !sealed.allow {
        return Ok(sealed.into());
    }
    let state = match state {
        Ok(Some(state)) => state,
        Ok(None) => return Ok(altered("the case never began").into()),
        Err(error) => return Ok(altered(&error.to_string()).into()),
    };
    let id = records.first().map(|first| first.event.run_id.as_str());
    if id != place.file_name().and_then(|name| name.to_str()) {
        return Ok(altered("the directory has the name of another case").into());
    }
    let runs = runs(&records);
    let mut seen = Seen::default();
    for end in &runs {
        if let Err(verdict) = compare(place, keys, &state, end, &mut seen) {
            return Ok(verdict.into());
        }
    }
    if let Err(verdict) = brought(&state, &seen) {
        return Ok(verdict.into());
    }
    let mut verdict = sealed;
    let bundles = counted(runs.len(), "bundle");
    verdict.reason += &format!("; {bundles} of its runs verify");
    Ok(shown(verdict, &state, seen))
}

/// What the verified bundles say.
#[derive(Default)]
struct Seen {
    /// The paths that each run changed.
    changed: BTreeMap<String, BTreeSet<String>>,
    landed: Option<LandedWhole>,
}

/// The landing of a case, as the bundle of the whole has it.
#[derive(Serialize)]
struct LandedWhole {
    commit: Oid,
    tree: Oid,
    /// The tree that was accepted.
    accepted_tree: Oid,
    /// Whether they are the same; otherwise the target had moved, and the merge was judged.
    is_accepted_tree: bool,
}

/// What is shown about a case that verifies.
#[derive(Serialize)]
struct VerifiedCase<'a> {
    #[serde(flatten)]
    verdict: &'a Verdict,
    /// The parts in the order of their merges, with the paths that each brought.
    brought: Vec<&'a MergedPart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    landed: Option<LandedWhole>,
}

fn shown(verdict: Verdict, state: &State, seen: Seen) -> Answer {
    let merged = state.integration.iter().flat_map(|it| &it.merged);
    let report = VerifiedCase {
        verdict: &verdict,
        brought: merged.collect(),
        landed: seen.landed,
    };
    let mut more = String::new();
    for MergedPart { part, paths, .. } in &report.brought {
        more += &format!("  {part} brought {}\n", paths.join(", "));
    }
    if let Some(landed) = &report.landed {
        let (commit, tree) = (landed.commit.short(), landed.accepted_tree.short());
        more += &if landed.is_accepted_tree {
            format!("  landed {commit}, exactly the accepted tree {tree}\n")
        } else {
            format!("  landed {commit}, a judged merge of the accepted tree {tree}\n")
        };
    }
    let json = serde_json::to_value(&report).unwrap_or_default();
    let mut answer = Answer::from(verdict);
    answer.text += &more;
    answer.json = json;
    answer
}

/// Every path that a part brought has to be one that a run of the part changed.
fn brought(state: &State, seen: &Seen) -> Result<(), Verdict> {
    for merged in state.integration.iter().flat_map(|it| &it.merged) {
        let runs = state.runs().into_iter();
        let runs = runs.filter(|(part, _)| *part == Some(merged.part.as_str()));
        let changed: BTreeSet<&String> = runs
            .filter_map(|(_, run)| seen.changed.get(run))
            .flatten()
            .collect();
        if let Some(path) = merged.paths.iter().find(|path| !changed.contains(path)) {
            let part = &merged.part;
            let reason = format!("no run of the part `{part}` changed `{path}`");
            return Err(altered(&reason));
        }
    }
    Ok(())
}

fn altered(reason: &str) -> Verdict {
    Verdict::deny(Code::EvidenceAltered, reason)
}

/// Every run that ended and was sealed, also those that a later one replaced.
fn runs(records: &[Record]) -> Vec<End> {
    let ended = |record: &Record| {
        let of_case: Result<Fact, _> = record.event.untagged();
        if let Ok(Fact::Judged { end } | Fact::FixEnded { end }) = of_case {
            return Some(*end);
        }
        let of_part: Result<chain::Fact, _> = record.event.untagged();
        match of_part {
            Ok(chain::Fact::Ended { end, .. }) => Some(*end),
            _ => None,
        }
    };
    let runs = records.iter().filter_map(ended);
    runs.filter(|end| end.head.is_some()).collect()
}

/// Compares one run with what the case says about it.
fn compare(
    place: &Path,
    keys: &[PublicKey],
    state: &State,
    end: &End,
    seen: &mut Seen,
) -> Result<(), Verdict> {
    let run = &end.run_id;
    let beside = place.parent().unwrap_or(place).join(run);
    let missing = |_| {
        let reason = format!("the bundle {run} is not beside the case");
        Verdict::deny(Code::EvidenceIncomplete, reason)
    };
    let directory = Directory::open(&beside).map_err(missing)?;
    let report = verify::verify(&directory, keys, &Pins::default(), None);
    let verdict = report.verdict();
    if !verdict.allow {
        let reason = format!("{run}: {}", verdict.reason);
        return Err(Verdict { reason, ..verdict });
    }
    let records = stores::read_ledger(&beside.join(LEDGER), Head::genesis());
    let records = records.map_err(|error| error.verdict())?;
    let last = records.last().map(|last| &last.hash);
    if last != end.head.as_ref() || report.tree != end.tree {
        return Err(altered(&format!(
            "{run} is not the run that the case names"
        )));
    }
    let opened = run::State::fold(&records).map_err(|error| altered(&error.to_string()))?;
    let changes = opened.captured.iter().flat_map(|it| &it.changes);
    let paths = changes.map(|change| change.path.to_string()).collect();
    seen.changed.insert(run.clone(), paths);
    let is_whole = matches!(&state.judging, Some(Judging::Ended(whole)) if whole.run_id == *run);
    if !is_whole {
        return Ok(());
    }
    seen.landed = whole(state, &opened, &report)?;
    Ok(())
}

/// Compares the run that judged the whole with the merged parts and with the landing.
fn whole(
    state: &State,
    opened: &run::State,
    report: &Report,
) -> Result<Option<LandedWhole>, Verdict> {
    let work = opened.opened.work.as_ref();
    let judged = work.and_then(|work| work.revision.as_ref());
    let merged = state.integration.as_ref();
    let merged = merged.and_then(|Integration { merged, .. }| merged.last());
    if judged.map(|it| &it.commit) != merged.map(|it| &it.commit) {
        return Err(altered("the whole that was judged is not what was merged"));
    }
    let Some(commit) = &state.landed else {
        return Ok(None);
    };
    let mut landings = report.after.landings.iter();
    let landing = landings.find(|it| it.commit == *commit);
    let (Some(landing), Some(accepted)) = (landing, &report.tree) else {
        return Err(altered("the landed commit is not one of the whole"));
    };
    Ok(Some(LandedWhole {
        commit: commit.clone(),
        tree: landing.tree.clone(),
        is_accepted_tree: landing.tree == *accepted,
        accepted_tree: accepted.clone(),
    }))
}
