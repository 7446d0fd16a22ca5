//! The rows of sealed runs on disk, so that a server that starts does not read every ledger.
//!
//! A row counts only if the stamps of its ledger and of its second chain are the same, and the row
//! was written by this version of the program. A line that cannot be read is left out: the run is
//! read from its ledger. The file is this user's own, outside of the repository.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_core::json;
use provost_core::object::Oid;
use provost_engine::bundle::after::Landing;
use provost_engine::query::{LandingSummary, RunStatus, RunSummary};
use provost_fs::atomic::{self, Durability};
use provost_fs::stamp::{self, Stamp};
use provost_web::RoomRow;
use serde::{Deserialize, Serialize};

use crate::row::{KnownRun, Stamps};

const FILE: &str = "serve-rows.jsonl";

/// The first line of the file: rows of another version are not read.
const HEAD: &str = concat!("provost serve rows 1 ", env!("CARGO_PKG_VERSION"));

/// The largest file that is read, in bytes: some hundred thousand rows.
const LARGEST: u64 = 256 * 1024 * 1024;

/// What is kept of a sealed run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptRow {
    run_id: String,
    ledger: Stamp,
    after: Option<Stamp>,
    accepted: bool,
    code: Option<Code>,
    objective: String,
    own: bool,
    began: Option<String>,
    landing: Option<Landing>,
    parent: Option<String>,
    agent: Option<String>,
    contract_sha256: Option<String>,
    target: Option<String>,
    lost: u32,
    part_of: Option<String>,
    base: Option<Oid>,
}

impl KeptRow {
    /// The row of a sealed run whose files have not changed since `before`.
    fn of(run: &KnownRun, before: i128) -> Option<Self> {
        let RoomRow { summary, .. } = run.row.as_ref();
        let ledger = run.stamps.ledger.filter(|it| it.is_settled(before))?;
        let after = run.stamps.after;
        if !is_outcome(summary.status) {
            return None;
        }
        let settled = after.is_none_or(|it| it.is_settled(before));
        if !run.stamps.sealed || !settled {
            return None;
        }
        Some(Self {
            run_id: summary.run_id.clone(),
            ledger,
            after,
            accepted: summary.status == RunStatus::Success,
            code: summary.code,
            objective: summary.objective.clone(),
            own: summary.own?,
            began: summary.began.clone(),
            landing: run.landing.clone(),
            parent: run.row.parent.clone(),
            agent: run.row.agent.clone(),
            contract_sha256: run.row.contract_sha256.clone(),
            target: run.row.target.clone(),
            lost: run.row.lost,
            part_of: run.row.part_of.clone(),
            base: run.base.clone(),
        })
    }

    fn known(self, stamps: Stamps) -> KnownRun {
        let status = if self.accepted {
            RunStatus::Success
        } else {
            RunStatus::Failure
        };
        let summary = RunSummary {
            own: Some(self.own),
            began: self.began,
            landing: Some(LandingSummary {
                landed: self.landing.clone(),
                held: None,
            }),
            ..RunSummary::without_facts(&self.run_id, status, self.code, self.objective)
        };
        let row = RoomRow {
            summary,
            question: None,
            questions: Vec::new(),
            parent: self.parent,
            agent: self.agent,
            contract_sha256: self.contract_sha256,
            target: self.target,
            target_moved: false,
            lost: self.lost,
            part_of: self.part_of,
        };
        KnownRun::of(row, self.base, self.landing, stamps)
    }
}

/// The kept rows of one repository.
#[derive(Debug, Default)]
pub(crate) struct RowCache {
    /// Absent until a place for it is known.
    path: Option<PathBuf>,
    rows: BTreeMap<String, KeptRow>,
}

impl RowCache {
    /// The rows that are kept in `directory`.
    pub(crate) fn open(directory: &Path) -> Self {
        let path = directory.join(FILE);
        Self {
            rows: read(&path).unwrap_or_default(),
            path: Some(path),
        }
    }

    /// The kept row of a run whose files have these stamps.
    pub(crate) fn take(&mut self, run: &str, stamps: Stamps) -> Option<KnownRun> {
        let row = self.rows.remove(run)?;
        let same = stamps.sealed && stamps.ledger == Some(row.ledger) && stamps.after == row.after;
        same.then(|| row.known(stamps))
    }

    /// Keeps the rows of all sealed runs among `runs`; how many have files that are too new. A file
    /// that cannot be written saves nothing at the next start, and is no failure now.
    pub(crate) fn keep<'a>(&self, runs: impl Iterator<Item = &'a KnownRun>) -> usize {
        let Some(path) = &self.path else { return 0 };
        let before = stamp::now();
        let mut text = format!("{HEAD}\n").into_bytes();
        let mut left = 0;
        for run in runs.filter(|run| run.stamps.sealed) {
            match KeptRow::of(run, before).and_then(|row| serde_json::to_vec(&row).ok()) {
                Some(line) => {
                    text.extend(line);
                    text.push(b'\n');
                }
                None if is_outcome(run.row.summary.status) => left += 1,
                None => {}
            }
        }
        let made = atomic::make_directories(atomic::directory_of(path));
        let _ = made.and_then(|()| atomic::replace(path, &text, 0o600, Durability::Cache));
        left
    }
}

/// Whether a sealed run with this status has a row that can be kept.
fn is_outcome(status: RunStatus) -> bool {
    matches!(status, RunStatus::Success | RunStatus::Failure)
}

fn read(path: &Path) -> Option<BTreeMap<String, KeptRow>> {
    let file = fs::File::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    let mut lines = bytes.split(|byte| *byte == b'\n');
    if lines.next() != Some(HEAD.as_bytes()) {
        return None;
    }
    let rows = lines.filter_map(|line| json::parse_as::<KeptRow>(line).ok());
    Some(rows.map(|row| (row.run_id.clone(), row)).collect())
}
