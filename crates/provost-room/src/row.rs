//! The row of one run, from its ledger.

use std::path::Path;
use std::sync::Arc;

use provost_core::bundle::layout::{AFTER, ATTESTATION, LEDGER};
use provost_core::gate::command;
use provost_core::object::Oid;
use provost_engine::bundle::after::Landing;
use provost_engine::query::{
    self, Landed, QuestionView, RunArchive as _, RunStatus, RunSummary, Stage,
};
use provost_fs::stamp::Stamp;
use provost_surface::places::Places;
use provost_web::RoomRow;

use crate::live::KnownLive;
use crate::open_ledger::OpenLedger;

/// The files of a run that its row is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamps {
    pub(crate) ledger: Option<Stamp>,
    pub(crate) after: Option<Stamp>,
    pub(crate) sealed: bool,
}

impl Stamps {
    pub(crate) fn of(directory: &Path) -> Self {
        let stamp = |name: &str| {
            let stat = rustix::fs::lstat(directory.join(name));
            stat.ok().map(|stat| Stamp::of(&stat))
        };
        Self {
            ledger: stamp(LEDGER),
            after: stamp(AFTER),
            sealed: stamp(ATTESTATION).is_some(),
        }
    }
}

/// A run as it was read last.
#[derive(Debug)]
pub(crate) struct KnownRun {
    pub(crate) stamps: Stamps,
    pub(crate) driven: bool,
    /// When the driver was looked for, in milliseconds since 1970.
    pub(crate) asked_driver: i64,
    pub(crate) base: Option<Oid>,
    pub(crate) landing: Option<Landing>,
    pub(crate) row: Arc<RoomRow>,
    /// Its ledger, as long as it can grow.
    pub(crate) open: Option<Box<OpenLedger>>,
    pub(crate) live: Option<Box<KnownLive>>,
}

impl KnownRun {
    pub(crate) fn of(
        row: RoomRow,
        base: Option<Oid>,
        landing: Option<Landing>,
        stamps: Stamps,
    ) -> Self {
        Self {
            stamps,
            driven: false,
            asked_driver: 0,
            base,
            landing,
            row: Arc::new(row),
            open: None,
            live: None,
        }
    }
}

/// A run from its files; `ledger` is what was read of it before.
pub(crate) fn read(
    place: &Places,
    run: &str,
    stamps: Stamps,
    driven: bool,
    ledger: Option<Box<OpenLedger>>,
) -> KnownRun {
    let grown = ledger.and_then(|it| it.grown(&stamps.ledger?));
    let directory = place.run(run);
    let is_link = || directory.symlink_metadata().is_ok_and(|it| it.is_symlink());
    let whole = || OpenLedger::read(directory.join(LEDGER)).filter(|_| !is_link());
    let ledger = grown
        .or_else(whole)
        .filter(|it| it.state.names.run_id == run);
    let Some(ledger) = ledger else {
        let rows = query::summaries(place, &[run.to_owned()]);
        let unread = || RunSummary::without_facts(run, RunStatus::Unreadable, None, String::new());
        let summary = rows.into_iter().next().unwrap_or_else(unread);
        return KnownRun {
            driven,
            ..KnownRun::of(bare(summary), None, None, stamps)
        };
    };
    let (row, landing) = row(place, &ledger, stamps, driven);
    let base = ledger.state.opened.base_commit.clone();
    KnownRun {
        driven,
        open: (!stamps.sealed).then(|| Box::new(ledger)),
        ..KnownRun::of(row, Some(base), landing, stamps)
    }
}

fn row(
    place: &Places,
    ledger: &OpenLedger,
    stamps: Stamps,
    driven: bool,
) -> (RoomRow, Option<Landing>) {
    let state = &ledger.state;
    let reached = match (stamps.sealed, driven) {
        (true, _) => Stage::Sealed,
        (false, true) => Stage::Running,
        (false, false) if state.is_waiting() => Stage::Waiting,
        (false, false) => Stage::Interrupted,
    };
    // The fold refuses an event of another run, so the last one speaks for all.
    let own = place.is_by_user(&ledger.last);
    let after = stamps.after.and_then(|_| place.after(&state.names.run_id));
    let landing = after.and_then(|after| Landing::recorded(&after));
    let landed = landing.clone().map(|landing| Landed {
        landing,
        held: None,
    });
    let summary = RunSummary::folded(state, reached, own, landed.as_ref());
    let waits = summary.status == RunStatus::Waiting;
    let row = RoomRow {
        question: QuestionView::of(state).filter(|_| waits).map(Arc::new),
        questions: state.open_questions().cloned().collect(),
        parent: state.opened.parent.clone(),
        agent: Some(command::line(&state.opened.agent)),
        contract_sha256: Some(state.opened.contract_sha256.clone()),
        target: state.opened.target.clone(),
        target_moved: false,
        lost: state.lost,
        part_of: state.opened.part.as_ref().map(|part| part.chain.clone()),
        summary,
    };
    (row, landing)
}

fn bare(summary: RunSummary) -> RoomRow {
    RoomRow {
        summary,
        question: None,
        questions: Vec::new(),
        parent: None,
        agent: None,
        contract_sha256: None,
        target: None,
        target_moved: false,
        lost: 0,
        part_of: None,
    }
}
