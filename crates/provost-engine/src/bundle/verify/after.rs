//! Checks the records and files that were written after the seal.
//!
//! The second chain has no key of its own, so a record counts only if a statement vouches for it. A
//! record that requires a statement and has none counts as altered. Any other record without one is
//! listed as unvouched and decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use provost_evidence::verification;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::read::{AFTER, Bundle};
use super::{Finding, Signer, compare, words};
use crate::bundle::after::{
    self, COMMIT_WRITTEN, Candidate, LANDED, LandCommit, Landing, MERGED, REPLAYED, Replay,
    ReplayStart, STATEMENT, TestStart,
};
use crate::bundle::statement::{
    CommitStatement, LandingStatement, LedgerHead, MergeStatement, ReplayStatement, RunPredicate,
    Statement, Vouched,
};
use provost_core::bundle::dsse::Envelope;
use provost_core::bundle::layout::is_later;
use provost_core::bundle::report::{TestStatus, Time};
use provost_core::json;
use provost_core::record::{self, Head, Level, Record};
use provost_core::run::fact::{ReviewRun, Side, TestRun};

/// The verified contents of the second chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct After {
    /// Every commit that may land, oldest first: the sealed candidate, then merges with a moved
    /// target.
    pub candidates: Vec<Candidate>,
    /// The commits that were written to land one of them, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<LandCommit>,
    /// The landings, oldest first.
    pub landings: Vec<Landing>,
    /// The replays, oldest first.
    pub replays: Vec<Replay>,
    /// Records and files that no statement vouches for.
    pub unvouched: Vec<String>,
    /// The acceptance commands on merges, if a statement vouches for them.
    #[serde(skip)]
    pub tests: Vec<TestRun>,
}

impl After {
    /// Every commit that may be on the target because of this run, oldest first: a candidate that
    /// was merged by hand or by an earlier version, or a commit that was written to land.
    pub fn landable(&self) -> Vec<Candidate> {
        let written = self.commits.iter().map(LandCommit::candidate);
        self.candidates.iter().cloned().chain(written).collect()
    }
}

/// Reads the second chain, and every file that it names.
pub(super) fn follow(bundle: &Bundle<'_>) -> (After, Vec<Finding>) {
    let Some(sealed) = bundle.predicate() else {
        // A missing seal is a finding of its own, and what follows it cannot be judged.
        return (After::default(), Vec::new());
    };
    let mut reader = Reader {
        bundle,
        sealed,
        after: After {
            candidates: sealed_candidate(bundle, sealed).into_iter().collect(),
            ..After::default()
        },
        findings: Vec::new(),
        statements: BTreeMap::new(),
    };
    let records = reader.records();
    if let Some(pin) = bundle.pins.after.as_ref().and_then(LedgerHead::of) {
        let found = compare(AFTER, &records, &pin, "the registry knows");
        reader.findings.extend(found);
    }
    for record in &records {
        reader.take(record);
    }
    let vouched = reader.vouched(&records);
    reader.list_unvouched(&records, &vouched);
    let counts = records
        .iter()
        .filter(|record| vouched.contains(&record.seq));
    reader.after.tests = counts.filter_map(merge_test).collect();
    reader.files(&Named::of(&records, &vouched));
    (reader.after, reader.findings)
}

/// The commit of the sealed candidate, if the run was accepted.
fn sealed_candidate(bundle: &Bundle<'_>, sealed: &RunPredicate) -> Option<Candidate> {
    let published = bundle.course.end()?.published.as_ref()?;
    Some(Candidate {
        commit: published.commit.clone(),
        tree: sealed.candidate_tree.clone()?,
        parent: sealed.base_commit.clone(),
    })
    .filter(|_| sealed.verdict.allow)
}

struct Reader<'a> {
    bundle: &'a Bundle<'a>,
    sealed: &'a RunPredicate,
    after: After,
    findings: Vec<Finding>,
    /// For each record that carries a statement, the first record that it vouches for.
    statements: BTreeMap<u64, u64>,
}

impl Reader<'_> {
    fn altered(&mut self, place: impl ToString, problem: impl Into<String>) {
        self.findings.push(Finding::altered(place, problem));
    }

    /// The records of the chain; empty if it is not one.
    fn records(&mut self) -> Vec<Record> {
        let bytes = match self.bundle.file(AFTER) {
            None => return Vec::new(),
            Some(Err(problem)) => {
                self.altered(AFTER, problem);
                return Vec::new();
            }
            Some(Ok(file)) => &file.bytes,
        };
        match record::read(bytes, Head::after(&self.sealed.ledger_head.hash)) {
            Ok(chain) => {
                if chain.whole < bytes.len() {
                    let problem = "its last line has no end";
                    self.findings.push(Finding::incomplete(AFTER, problem));
                }
                chain.records
            }
            Err(error) => {
                self.altered(AFTER, words(&error));
                Vec::new()
            }
        }
    }

    fn take(&mut self, record: &Record) {
        let place = format!("{AFTER} record {}", record.seq);
        if record.event.run_id != self.sealed.run_id {
            self.altered(&place, "belongs to another run");
        }
        let judged = match record.event.event_type.as_str() {
            MERGED => self.merge(record),
            COMMIT_WRITTEN => self.commit(record),
            LANDED => self.landing(record),
            REPLAYED => self.replay(record),
            _ if record.event.payload.contains_key(STATEMENT) => {
                Err("carries a statement, and records of its kind have none".to_owned())
            }
            _ => return,
        };
        match judged {
            Ok(vouches) => {
                self.statements.insert(vouches.seq, vouches.from);
            }
            Err(problem) => self.altered(place, problem),
        }
    }

    /// A merge that the gates accepted: one more commit that may land.
    fn merge(&mut self, record: &Record) -> Result<Vouched, String> {
        let statement: MergeStatement = self.statement(record)?;
        let merge = statement.predicate.clone();
        let claimed: Candidate = claim(record)?;
        self.is_ours(&merge.run_id, &merge.sealed_head)?;
        holds(merge.clone().state() == statement, "is about another tree")?;
        holds(claimed == merge.candidate, "differs from its statement")?;
        let passed = merge.acceptance.status == TestStatus::Pass
            && merge.acceptance.commands == self.sealed.acceptance.commands;
        holds(passed, "is of a merge that did not pass")?;
        let vouches = self.fits(merge.vouches, &merge.merged_at, record)?;
        self.after.candidates.push(claimed);
        Ok(vouches)
    }

    /// A commit of an accepted tree on its parent.
    fn commit(&mut self, record: &Record) -> Result<Vouched, String> {
        let statement: CommitStatement = self.statement(record)?;
        let written = statement.predicate.clone();
        let claimed: LandCommit = claim(record)?;
        self.is_ours(&written.run_id, &written.sealed_head)?;
        let said = (&written.tree, &written.parent);
        let same = said == (&claimed.tree, &claimed.parent)
            && written.clone().state(&claimed) == statement;
        holds(same, "differs from its statement")?;
        holds(claimed.is_consistent(), "is not the commit that it names")?;
        let accepted = self.after.candidates.iter().any(|it| claimed.is_of(it));
        holds(accepted, "is of a tree that was not accepted")?;
        let vouches = self.fits(written.vouches, &written.written_at, record)?;
        self.after.commits.push(claimed);
        Ok(vouches)
    }

    /// A landing of an accepted commit.
    fn landing(&mut self, record: &Record) -> Result<Vouched, String> {
        let statement: LandingStatement = self.statement(record)?;
        let landed = statement.predicate.clone();
        let claimed: Landing = claim(record)?;
        self.is_ours(&landed.run_id, &landed.sealed_head)?;
        let said = (&landed.tree, &landed.parent, &landed.target);
        let same = said == (&claimed.tree, &claimed.parent, &claimed.target)
            && landed.clone().state(claimed.commit.clone()) == statement;
        holds(same, "differs from its statement")?;
        let accepted = self.after.landable().contains(&claimed.candidate());
        holds(accepted, "is of a commit that was not accepted")?;
        let vouches = self.fits(landed.vouches, &landed.landed_at, record)?;
        self.after.landings.push(claimed);
        Ok(vouches)
    }

    /// A replay of exactly the sealed run.
    fn replay(&mut self, record: &Record) -> Result<Vouched, String> {
        let statement: ReplayStatement = self.statement(record)?;
        let again = statement.predicate.clone();
        let claimed: Replay = claim(record)?;
        self.is_ours(&again.run_id, &again.sealed_head)?;
        let candidate = self.sealed.candidate_tree.as_ref();
        let tree = candidate.unwrap_or(&self.sealed.base_tree);
        let same = again.clone().state() == statement && again.tree == *tree;
        holds(same, "is about another tree")?;
        holds(claimed == again.replay, "differs from its statement")?;
        let vouches = self.fits(again.vouches, &again.replayed_at, record)?;
        self.after.replays.push(claimed);
        Ok(vouches)
    }

    /// Opens the statement of a record, if a trusted key or the key of the seal signed it.
    fn statement<S, P>(&self, record: &Record) -> Result<Statement<S, P>, String>
    where
        S: Serialize + DeserializeOwned,
        P: Serialize + DeserializeOwned,
    {
        let Some(value) = record.event.payload.get(STATEMENT) else {
            return Err("carries no statement, so its writer is unknown".to_owned());
        };
        let envelope: Envelope = json::from_value(value.clone())
            .map_err(|error| format!("its statement does not parse: {error}"))?;
        holds(envelope.signatures.len() == 1, "is not signed once")?;
        let (trusted, want_key) = (self.bundle.trusted, self.bundle.want_key);
        let examined = verification::examine(STATEMENT, &envelope, trusted, want_key);
        // A key that is not trusted here only counts if it sealed the run.
        let sealed_too = match &examined.signer {
            Signer::Trusted(_) | Signer::Unsigned => false,
            Signer::Another(_) | Signer::Unknown(_) => examined.signer == self.bundle.signer,
        };
        if let Some(finding) = examined.findings.first().filter(|_| !sealed_too) {
            return Err(format!("its statement does not count: {}", finding.problem));
        }
        let payload = examined.payload.unwrap_or_default();
        Statement::parse(&payload)
            .map_err(|error| format!("its statement is of another kind: {error}"))
    }

    /// The statement is in the record it names, and the record claims nothing beyond it.
    fn fits(&self, vouches: Vouched, at: &Time, record: &Record) -> Result<Vouched, String> {
        let there = vouches.seq == record.seq && vouches.prev == record.prev;
        let whole = there && vouches.from <= vouches.seq;
        holds(whole, "was signed for another place")?;
        let ledger = self.bundle.ledger.as_ref();
        let first = ledger.and_then(|chain| chain.records.first());
        let event = &record.event;
        let same = event.ts == at.as_str()
            && event.level == Level::Info
            && event.attempt.is_none()
            && first.is_none_or(|first| {
                (&first.event.task_id, &first.event.trace_id) == (&event.task_id, &event.trace_id)
            });
        holds(same, "differs from its statement").map(|()| vouches)
    }

    /// The records that a statement vouches for.
    fn vouched(&self, records: &[Record]) -> BTreeSet<u64> {
        let mut from = u64::MAX;
        let mut vouched = BTreeSet::new();
        for record in records.iter().rev() {
            if let Some(first) = self.statements.get(&record.seq) {
                from = from.min(*first);
            }
            if from <= record.seq {
                vouched.insert(record.seq);
            }
        }
        vouched
    }

    fn is_ours(&self, run_id: &str, head: &LedgerHead) -> Result<(), String> {
        let ours = *run_id == self.sealed.run_id && *head == self.sealed.ledger_head;
        holds(ours, "is about another run")
    }

    /// Lists the records that no statement vouches for.
    fn list_unvouched(&mut self, records: &[Record], vouched: &BTreeSet<u64>) {
        for record in records {
            if !vouched.contains(&record.seq) {
                let kind = record.event.event_type.as_str();
                let line = format!("{AFTER} record {} ({kind})", record.seq);
                self.after.unvouched.push(line + explain(kind));
            }
        }
    }

    /// Compares the files that were written after the seal with the records that name them.
    fn files(&mut self, named: &Named) {
        let bundle = self.bundle;
        for (name, file) in &bundle.files {
            let text = name.to_string();
            if !is_later(&text) {
                continue;
            }
            let vouched = named.vouched.get(&text);
            match (vouched.or_else(|| named.claimed.get(&text)), file) {
                (_, Err(problem)) => self.altered(name, problem),
                (Some(want), Ok(file)) if *want != file.sha256 => {
                    self.altered(name, format!("is not what {AFTER} names"));
                }
                (Some(_), Ok(_)) if vouched.is_some() => {}
                (Some(_), Ok(_)) => self.after.unvouched.push(text),
                // The partial output of an interrupted test has no digest.
                (None, Ok(_)) if named.is_begun(&text) => self.after.unvouched.push(text),
                (None, Ok(_)) => {
                    let problem = format!("is not named in {AFTER}");
                    self.findings.push(Finding::incomplete(name, problem));
                }
            }
        }
        for name in named.vouched.keys() {
            if bundle.file(name).is_none() {
                let problem = format!("is missing; {AFTER} names it");
                self.findings.push(Finding::incomplete(name, problem));
            }
        }
    }
}

/// The acceptance commands on a merge, if `record` is their result.
fn merge_test(record: &Record) -> Option<TestRun> {
    let is_result = record.event.event_type == after::TEST_RESULT;
    let payload = Value::Object(record.event.payload.clone());
    let run: TestRun = is_result
        .then(|| json::from_value(payload).ok())
        .flatten()?;
    (run.side == Side::Merged).then_some(run)
}

/// Explains a record that no statement vouches for, because its landing did not complete.
fn explain(kind: &str) -> &'static str {
    match kind {
        after::LAND_STARTED => ": a landing that began and was refused or interrupted",
        after::TEST_STARTED => ": a test of a merge that began",
        after::TEST_RESULT => ": a test that nothing followed from",
        after::REVIEW_STARTED => ": a review of a merge that began",
        after::REVIEW_RESULT => ": a review that nothing followed from",
        after::REPLAY_STARTED => ": a replay that began and was interrupted",
        _ => "",
    }
}

/// The files that the second chain names.
#[derive(Default)]
struct Named {
    /// Digests that a statement vouches for.
    vouched: BTreeMap<String, String>,
    /// Digests that only a record claims.
    claimed: BTreeMap<String, String>,
    /// Directories of tests that started.
    begun: BTreeSet<String>,
}

impl Named {
    fn of(records: &[Record], vouched: &BTreeSet<u64>) -> Self {
        let mut named = Self::default();
        for record in records {
            let payload = Value::Object(record.event.payload.clone());
            match record.event.event_type.as_str() {
                after::TEST_STARTED | after::REVIEW_STARTED => {
                    let start = json::from_value::<TestStart>(payload);
                    named.begun.extend(start.ok().map(|start| start.logs));
                }
                after::REPLAY_STARTED => {
                    let start = json::from_value::<ReplayStart>(payload).ok();
                    let directories = start.iter().flat_map(ReplayStart::directories);
                    named.begun.extend(directories);
                }
                after::REPLAYED => {
                    let replay = claim::<Replay>(record).ok();
                    let files = replay.filter(|replay| is_later(&replay.report));
                    let files = files.map(|replay| (replay.report, replay.sha256.into()));
                    named.take(files, vouched.contains(&record.seq));
                }
                after::REVIEW_RESULT => {
                    let review = json::from_value::<ReviewRun>(payload).ok();
                    let streams = review.iter().flat_map(|review| review.run.streams());
                    let files = streams
                        .filter(|stream| is_later(&stream.file))
                        .map(|stream| (stream.file.clone(), stream.sha256.clone()));
                    named.take(files, vouched.contains(&record.seq));
                }
                after::TEST_RESULT => {
                    let run = json::from_value::<TestRun>(payload).ok();
                    let commands = run.iter().flat_map(TestRun::everything);
                    let streams = commands.flat_map(|ran| [&ran.stdout, &ran.stderr]);
                    let files = streams
                        .filter(|stream| is_later(&stream.file))
                        .map(|stream| (stream.file.clone(), stream.sha256.clone()));
                    named.take(files, vouched.contains(&record.seq));
                }
                _ => {}
            }
        }
        named
    }

    fn take(&mut self, files: impl IntoIterator<Item = (String, String)>, vouched: bool) {
        if vouched {
            self.vouched.extend(files);
        } else {
            self.claimed.extend(files);
        }
    }

    /// Whether `name` is in the directory of a test that started.
    fn is_begun(&self, name: &str) -> bool {
        let directory = name.rsplit_once('/').map(|(directory, _)| directory);
        directory.is_some_and(|directory| self.begun.contains(directory))
    }
}

/// The payload of a record without its statement.
fn claim<T: DeserializeOwned>(record: &Record) -> Result<T, String> {
    let mut payload = record.event.payload.clone();
    payload.remove(STATEMENT);
    json::from_value(Value::Object(payload)).map_err(|error| format!("does not parse: {error}"))
}

fn holds(fact: bool, otherwise: &str) -> Result<(), String> {
    if fact {
        Ok(())
    } else {
        Err(otherwise.to_owned())
    }
}
