//! Parts of split contracts and of cases: they land together accepted, or not at all.
//!
//! # Invariants
//!
//! - The first event of a run names the chain it is a part of. A run of an earlier build does not;
//!   it is looked up in the chains.
//! - A chain is trusted only if this user's secret vouches for its last event, and thereby for all
//!   events and for the document whose digest the first one names. Otherwise nothing lands.

use std::fs;
use std::path::Path;

use provost_core::bundle::layout::LEDGER;
use provost_core::code::Code;
use provost_core::json;
use provost_core::path::is_segment;
use provost_core::record::{Head, Record};
use provost_core::run::State;
use provost_core::run::fact::Part;
use provost_engine::case;
use provost_engine::chain::{self, Document, Standing};
use provost_engine::query::{ChainSummary, RunArchive as _};

use crate::answer::Failure;
use crate::places::{self, Places};
use crate::{history, input, stores};

pub const DOCUMENT: &str = "chain.json";

/// A chain that this user ran.
struct Known {
    state: chain::State,
    document: Document,
}

/// Refuses to land a run that is a part, unless its chain accepted exactly this result.
pub fn require_accepted(place: &Places, run: &State) -> Result<(), Failure> {
    let Some(part) = part_of(place, run)? else {
        return refuse_taken(place, run);
    };
    let (run_id, id) = (&run.names.run_id, &part.chain);
    if is_case(id) {
        return require_whole(place, run_id, id);
    }
    let known = read(place, id)?;
    let records = place.records(run_id)?;
    let head = records.last().map_or("", |last| last.hash.as_str());
    let Some(captured) = &run.captured else {
        // A run without a result has nothing to land, and the landing says so.
        return Ok(());
    };
    let why = match &known {
        None => Some("has left no record".to_owned()),
        Some(known) => known
            .state
            .withholds(&part.node, run_id, head, &captured.tree),
    };
    let Some(why) = why else {
        return Ok(());
    };
    let reason = format!("it is a part of {id}, which {why}");
    Err(Failure::new(Code::ChainNotAccepted, reason).hint(continued(place, id, known.as_ref())))
}

/// Refuses to land work that was judged by itself and is the result of a part, while the case of
/// that part may still land the whole.
fn refuse_taken(place: &Places, run: &State) -> Result<(), Failure> {
    let revision = run.opened.work.as_ref().and_then(|it| it.revision.as_ref());
    let Some(revision) = revision else {
        return Ok(());
    };
    for id in place.cases()? {
        // A case that cannot be read lands nothing, and withholds nothing.
        let Ok(state) = case_state(place, &id) else {
            continue;
        };
        let refused = state.finished.as_ref().is_some_and(|it| !it.allow);
        if state.landed.is_some() || refused || !state.has_result(&revision.commit) {
            continue;
        }
        let reason = format!(
            "commit {} is the result of a part of {id}, which lands as a whole",
            revision.commit.short()
        );
        return Err(Failure::new(Code::ChainNotAccepted, reason).hint(format!(
            "provost show {id}; `provost cancel {id}` gives its parts free"
        )));
    }
    Ok(())
}

/// Why `run` does not land alone: it is a part whose chain was not accepted with it.
pub fn withheld(place: &Places, run: &State) -> Option<String> {
    let failure = require_accepted(place, run).err()?;
    let hint = failure.hint.unwrap_or_default();
    (failure.code == Code::ChainNotAccepted).then(|| format!("{}; {hint}", failure.reason))
}

/// Refuses to retry a part by itself: it would land without the others.
pub fn refuse_retry(place: &Places, run: &State) -> Result<(), Failure> {
    let Some(part) = part_of(place, run)? else {
        return Ok(());
    };
    let id = &part.chain;
    let node = &part.node;
    if is_case(id) {
        let reason = format!("it belongs to {id}, and only its case continues it");
        return Err(Failure::new(Code::ChainNotAccepted, reason)
            .hint(format!("provost retry {id} tries again what was refused")));
    }
    let known = read(place, id)?;
    let reason = format!("it is the part `{node}` of {id}, and only its chain retries it");
    Err(Failure::new(Code::ChainNotAccepted, reason).hint(continued(place, id, known.as_ref())))
}

fn is_case(id: &str) -> bool {
    id.starts_with(CASE)
}

/// The prefix of the names of cases.
pub const CASE: &str = "case_";

/// Refuses to land a run of a case unless it judged the whole, and the case accepted that.
fn require_whole(place: &Places, run_id: &str, id: &str) -> Result<(), Failure> {
    let state = case_state(place, id)?;
    if state.accepted().is_some_and(|end| end.run_id == run_id) {
        return Ok(());
    }
    let reason = format!("it is a part of {id}, which lands as a whole");
    Err(Failure::new(Code::ChainNotAccepted, reason).hint(format!("provost land {id}")))
}

/// The state of the case `id`, which this user began.
pub fn case_state(place: &Places, id: &str) -> Result<case::State, Failure> {
    let records = case_records(place, id)?;
    let directory = place.run(id);
    let altered = |words: String| Failure::new(Code::EvidenceAltered, words).about(&directory);
    let state = case::State::fold(&records).map_err(|error| altered(error.to_string()))?;
    state.ok_or_else(|| Failure::new(Code::NotFound, format!("{id} never began")))
}

/// The events of the case `id`; events that another user wrote, or that were changed since, are
/// refused.
pub fn case_records(place: &Places, id: &str) -> Result<Vec<Record>, Failure> {
    own_records(place, id, &place.run(id))
}

/// The command that continues the chain `id`.
fn continued(place: &Places, id: &str, known: Option<&Known>) -> String {
    let Some(known) = known else {
        return "run `provost chain` with the file of that chain and its base".to_owned();
    };
    let file = place.chains().join(id).join(DOCUMENT);
    format!(
        "provost chain -f '{}' --base {} --again, with the agent, reviewer and credentials of the \
         first call; all parts land, or none",
        file.display(),
        known.state.base_commit
    )
}

/// The chain and the node that `run` is, if it is a part.
fn part_of(place: &Places, run: &State) -> Result<Option<Part>, Failure> {
    if let Some(part) = &run.opened.part {
        return Ok(Some(part.clone()));
    }
    let run_id = run.names.run_id.as_str();
    let Ok(entries) = fs::read_dir(place.chains()) else {
        return Ok(None);
    };
    for entry in entries.flatten() {
        let bytes = fs::read(entry.path().join(LEDGER)).unwrap_or_default();
        let mut places = bytes.windows(run_id.len());
        if !places.any(|it| it == run_id.as_bytes()) {
            continue;
        }
        let chain = entry.file_name().to_string_lossy().into_owned();
        let Some(known) = read(place, &chain)?.filter(|it| it.document.parent.is_some()) else {
            continue;
        };
        let mut nodes = known.state.nodes.into_iter();
        let found = nodes.find(|(_, standing)| match standing {
            Standing::Ended(end) => end.run_id == run_id,
            Standing::Running { run_id: id } | Standing::Left { run_id: id } => id == run_id,
            Standing::NotRun(_) => false,
        });
        if let Some((node, _)) = found {
            return Ok(Some(Part { chain, node }));
        }
    }
    Ok(None)
}

/// The chains of this user that a process drives.
pub fn active(place: &Places) -> Vec<ChainSummary> {
    let ids = places::named(&place.chains(), "chain_").unwrap_or_default();
    let summary = |id: &String| {
        if !history::has_driver(&place.chains().join(id)) {
            return None;
        }
        let known = read(place, id).ok()??;
        let nodes = known.document.nodes.iter().map(|node| node.id.clone());
        Some(ChainSummary::of(id, nodes, &known.state))
    };
    ids.iter().filter_map(summary).collect()
}

/// The chain `id` with its document, if it exists.
fn read(place: &Places, id: &str) -> Result<Option<Known>, Failure> {
    let records = records(place, id)?;
    let directory = place.chains().join(id);
    let altered = |words: String| Failure::new(Code::EvidenceAltered, words).about(&directory);
    let state = chain::State::fold(&records).map_err(|error| altered(error.to_string()))?;
    let Some(state) = state else {
        return Ok(None);
    };
    let document = input::read(&directory.join(DOCUMENT), json::LARGEST)?;
    let document = json::parse(&document).map_err(|error| altered(error.to_string()))?;
    let document = Document::from_value(&document).map_err(|error| altered(error.to_string()))?;
    let digest = document.digest();
    if digest != state.chain_sha256 || chain::id(&digest, &state.base_commit) != id {
        return Err(altered(format!(
            "`{DOCUMENT}` is not what {id} was begun with"
        )));
    }
    Ok(Some(Known { state, document }))
}

/// The events of the chain `id`, none if there is no such chain; events that another user wrote, or
/// that were changed since, are refused.
pub fn records(place: &Places, id: &str) -> Result<Vec<Record>, Failure> {
    own_records(place, id, &place.chains().join(id))
}

/// The events of the chain or case `id` in `directory`, if this user wrote them.
fn own_records(place: &Places, id: &str, directory: &Path) -> Result<Vec<Record>, Failure> {
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|it| it.is_symlink());
    if !is_segment(id) || directory.parent().is_some_and(is_link) || is_link(directory) {
        let reason = format!("is a symbolic link, and {id} is not yours");
        return Err(Failure::new(Code::RootUnsafe, reason).about(directory));
    }
    let path = directory.join(LEDGER);
    if path.symlink_metadata().is_err() {
        return Ok(Vec::new());
    }
    let records = stores::read_ledger(&path, Head::genesis())?;
    let secret = place.known_secret().filter(|_| !place.is_foreign());
    let of_this = records.iter().all(|record| record.event.run_id == id);
    let is_own = |last: &Record| secret.is_some_and(|secret| of_this && last.is_by(secret));
    if records.last().is_none_or(is_own) {
        return Ok(records);
    }
    let reason = format!("{id} was not begun by you on this machine");
    let shown = directory.display();
    Err(Failure::new(Code::RunForeign, reason).hint(format!(
        "`provost verify {id}` checks it; mv '{shown}' elsewhere to start again"
    )))
}
