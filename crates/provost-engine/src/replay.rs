//! Rebuilds the files of a sealed run, repeats its gates and acceptance commands, or runs its agent
//! again.
//!
//! # Invariants
//!
//! - Nothing is compared with evidence that does not verify.
//! - No sealed file is touched. The result of a replay is in a directory of its own; a record of
//!   the second chain names it before it is written.
//! - What could not be compared is never called equal.

pub mod model;

use std::collections::BTreeMap;

use crate::bundle::after::{REPLAY_STARTED, Replay, ReplayStart, TEST_RESULT};
use crate::bundle::attempts::{self, Attempt};
use crate::bundle::replay::{Differences, with_facts};
use crate::bundle::verify::{Files, Pins};
use provost_core::bundle::dsse::Envelope;
use provost_core::bundle::key::PublicKey;
use provost_core::bundle::layout::{ATTESTATION, MANIFEST};
use provost_core::bundle::report::{ReexecReport, RunManifest, Sha256, Time};
use provost_core::code::Code;
use provost_core::json;
use provost_core::object::{Oid, sha256};
use provost_core::path::RawPath;
use provost_core::run::fact::{Ending, Side, TestRun};
use provost_core::run::{State, effect};

use crate::after::{self, AfterPorts, UnleasedWatch};
use crate::land::Changed;
use crate::ports::{Bundle, Clock, Kept, PortError, Watch};
use crate::seal::{self, Made};

/// Repeats on this machine what a sealed run did on any machine.
pub trait ReplayHost {
    /// Makes sure that the trees of the run exist; `pack` holds the objects that only the run has.
    fn trees(&mut self, base: &Oid, tree: &Oid, pack: Vec<u8>) -> Result<(), PortError>;

    /// What `tree` changes in the commit `base`, with everything that the diff gate needs.
    fn changes(&mut self, base: &Oid, tree: &Oid) -> Result<Changed, PortError>;

    /// Runs the contract's commands in a fresh workspace of exactly one tree.
    fn accept(
        &mut self,
        order: &effect::Accept,
        watch: &mut dyn Watch,
    ) -> Result<TestRun, PortError>;

    fn patch(&mut self, before: &Oid, after: &Oid) -> Result<Vec<u8>, PortError>;

    /// The part of that patch that is about `paths`.
    fn patch_of(
        &mut self,
        before: &Oid,
        after: &Oid,
        paths: &[RawPath],
    ) -> Result<Vec<u8>, PortError>;

    /// The version of the kernel that makes the sandboxes.
    fn kernel(&mut self) -> Result<String, PortError>;

    /// Removes what the replay left in the cache.
    fn tidy(&mut self) -> Result<(), PortError>;
}

pub type ReplayPorts<'a> = AfterPorts<'a, dyn ReplayHost + 'a>;

/// Result of rebuilding a bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct Rehydrated {
    /// The files that were rebuilt and compared.
    pub built: Vec<String>,
    /// The files that hold measurements, which cannot be rebuilt.
    pub measured: Vec<String>,
    pub report: ReexecReport,
}

/// Rebuilds every file of the sealed run `run_id` that follows from its ledger and its trees.
pub fn rehydrate(
    bench: &mut dyn ReplayHost,
    evidence: &dyn after::Sealed,
    (pins, trusted): (&Pins, &[PublicKey]),
    clock: &dyn Clock,
    run_id: &str,
) -> Result<Rehydrated, PortError> {
    let (state, head) = after::read(&*evidence.files()?, run_id)?;
    after::verified(&*evidence.files()?, trusted, pins)?;
    let sealed = Sealed::of(&*evidence.files()?)?;
    let mut found = Differences::default();
    let made = made(bench, &sealed, &state, &mut found);
    let mut rebuilt = Rebuilt {
        sealed: &sealed,
        made: BTreeMap::new(),
    };
    let contract = serde_json::to_vec_pretty(&state.opened.contract)
        .map_err(|error| PortError::of(Code::Bug, error))?;
    rebuilt.put("contract.json", &contract)?;
    let statement = seal::write(&mut rebuilt, &state, &made, &head)?;
    let built: BTreeMap<String, Vec<u8>> = rebuilt.made;
    for (name, bytes) in &built {
        found.file(name, sealed.bytes(name), bytes);
    }
    let envelope = sealed.bytes(ATTESTATION).unwrap_or_default();
    let signed = Envelope::parse(envelope)
        .and_then(|envelope| envelope.unverified_payload())
        .map_err(|error| PortError::of(Code::SignatureInvalid, error))?;
    found.file(ATTESTATION, Some(&signed), statement.as_bytes());
    let named = sealed
        .named
        .keys()
        .filter(|name| !built.contains_key(*name));
    Ok(Rehydrated {
        measured: named.cloned().collect(),
        built: built.into_keys().chain([ATTESTATION.to_owned()]).collect(),
        report: found.report(run_id, now(clock)?),
    })
}

/// Makes again what only the machine can make; verification proves the objects.
fn made(
    bench: &mut dyn ReplayHost,
    sealed: &Sealed,
    state: &State,
    found: &mut Differences,
) -> Made {
    let mut made = Made::default();
    let last = attempts::last(state);
    if let Some(last) = &last {
        made.patch = made_again(bench, sealed, state, (last, PATCH), found);
    }
    for attempt in last.into_iter().chain(attempts::earlier(state)) {
        let name = attempt.patch();
        // A patch that was left out, or a bundle from before attempts were kept.
        if sealed.named.contains_key(&name) {
            let patch = made_again(bench, sealed, state, (&attempt, &name), found);
            made.patches.push((name, patch));
        }
    }
    made
}

/// The patch of one attempt, which was sealed as the file `name`.
fn made_again(
    bench: &mut dyn ReplayHost,
    sealed: &Sealed,
    state: &State,
    (attempt, name): (&Attempt<'_>, &str),
    found: &mut Differences,
) -> Vec<u8> {
    let pack = sealed.bytes(PACK).unwrap_or_default().to_vec();
    let (captured, before) = (attempt.captured, &state.opened.base_tree);
    let patch = bench
        .trees(&state.opened.base_commit, &captured.tree, pack)
        .and_then(|()| match captured.shown() {
            None => bench.patch(before, &captured.tree),
            Some(paths) => bench.patch_of(before, &captured.tree, &paths),
        });
    patch.unwrap_or_else(|error| {
        // The other files can still be compared, with the patch that was sealed.
        found.errors.push(format!("{name}: {error}"));
        sealed.bytes(name).unwrap_or_default().to_vec()
    })
}

const PACK: &str = "git/objects.pack";
const PATCH: &str = "patch.diff";

/// The files of a sealed run that its manifest names, and those beside them.
struct Sealed {
    bytes: BTreeMap<String, Vec<u8>>,
    named: BTreeMap<String, Kept>,
}

impl Sealed {
    fn of(files: &dyn Files) -> Result<Self, PortError> {
        let read = |name: &str| {
            let bytes = files.read(&RawPath::new(name));
            bytes.map_err(|problem| {
                PortError::new(Code::EvidenceIncomplete, format!("`{name}` {problem}"))
            })
        };
        let mut bytes = BTreeMap::new();
        for name in [MANIFEST, ATTESTATION] {
            bytes.insert(name.to_owned(), read(name)?);
        }
        let manifest: RunManifest = json::parse_as(&bytes[MANIFEST])
            .map_err(|error| PortError::of(Code::EvidenceAltered, error))?;
        let mut named = BTreeMap::new();
        for name in manifest.evidence_hashes.into_keys() {
            let content = read(&name)?;
            named.insert(name.clone(), kept(&name, &content));
            bytes.insert(name, content);
        }
        Ok(Self { bytes, named })
    }

    fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.bytes.get(name).map(Vec::as_slice)
    }
}

fn kept(name: &str, bytes: &[u8]) -> Kept {
    Kept {
        name: name.to_owned(),
        bytes: bytes.len() as u64,
        sha256: sha256(bytes),
    }
}

/// A bundle in memory: rebuilt files on top of the measured ones.
struct Rebuilt<'a> {
    sealed: &'a Sealed,
    made: BTreeMap<String, Vec<u8>>,
}

impl Bundle for Rebuilt<'_> {
    fn put_all(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), PortError> {
        self.made.extend(files.iter().cloned());
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, PortError> {
        let made = self.made.get(name).map(Vec::as_slice);
        Ok(made.or_else(|| self.sealed.bytes(name)).map(<[u8]>::to_vec))
    }

    fn list(&self) -> Result<Vec<Kept>, PortError> {
        let mut all = self.sealed.named.clone();
        for (name, bytes) in &self.made {
            all.insert(name.clone(), kept(name, bytes));
        }
        Ok(all.into_values().collect())
    }

    fn tidy(&mut self) -> Result<(), PortError> {
        Ok(())
    }
}

/// Result of repeating a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Reexecuted {
    pub report: ReexecReport,
    /// Where the bundle stores the report.
    pub replay: Replay,
}

/// Repeats the gates and the acceptance commands of the sealed run `run_id`, whose lock this
/// process holds.
pub fn reexecute(ports: &mut ReplayPorts<'_>, run_id: &str) -> Result<Reexecuted, PortError> {
    let (mut after_seal, _) = after::AfterSeal::begin(ports, run_id, |_| Ok(()))?;
    let start = ReplayStart::next(after_seal.after.records());
    after_seal.note(REPLAY_STARTED, &start)?;
    let found = again(&mut after_seal, &start);
    let tidied = after_seal.ports.target.tidy();
    let report = found?.report(run_id, after_seal.now()?);
    tidied?;
    let replay = concluded(&mut after_seal, &start, &report)?;
    Ok(Reexecuted { report, replay })
}

/// Keeps the report of a replay beside the sealed files, and records it, signed.
fn concluded<T: ?Sized>(
    after_seal: &mut after::AfterSeal<'_, '_, T>,
    start: &ReplayStart,
    report: &ReexecReport,
) -> Result<Replay, PortError> {
    let mut bytes =
        serde_json::to_vec_pretty(report).map_err(|error| PortError::of(Code::Bug, error))?;
    bytes.push(b'\n');
    let replay = Replay {
        report: start.report(),
        sha256: Sha256::of(&bytes),
        hard_equal: report.hard_equal_pass,
        soft_equal: report.soft_equal_pass,
    };
    after_seal.ports.sealed.put_later(&replay.report, &bytes)?;
    after_seal.replayed(&replay)?;
    Ok(replay)
}

/// One replay of one run.
type ReplayAfterSeal<'p, 'a> = after::AfterSeal<'p, 'a, dyn ReplayHost + 'a>;

fn again(
    after_seal: &mut ReplayAfterSeal<'_, '_>,
    start: &ReplayStart,
) -> Result<Differences, PortError> {
    let mut found = Differences::default();
    let state = after_seal.state.clone();
    let changes = changes(after_seal, &state, &mut found)?;
    let mut tests = Vec::new();
    // Without its trees nothing can be tested, and that is an error already.
    let there = found.errors.is_empty();
    for (side, sealed) in state.tests.iter().filter(|_| there) {
        let run = test(after_seal, *side, sealed, start.side(*side))?;
        found.tests(*side, sealed, &run);
        tests.push(run);
    }
    if there {
        found.gates(&state, &with_facts(&state, changes, tests));
    }
    if let Some(test) = &state.tested {
        let kernel = after_seal.ports.target.kernel()?;
        found.soft("sandbox kernel", &test.kernel, &kernel);
    }
    Ok(found)
}

/// What the sealed tree changes in its base, computed again.
fn changes(
    after_seal: &mut ReplayAfterSeal<'_, '_>,
    state: &State,
    found: &mut Differences,
) -> Result<Option<Vec<provost_core::change::Change>>, PortError> {
    let Some(captured) = &state.captured else {
        return Ok(None);
    };
    let files = after_seal.ports.sealed.files()?;
    let pack = files.read(&RawPath::new(PACK)).unwrap_or_default();
    let (base, tree) = (&state.opened.base_commit, &captured.tree);
    let bench = &mut *after_seal.ports.target;
    let changed = bench
        .trees(base, tree, pack)
        .and_then(|()| bench.changes(base, tree));
    match changed {
        Ok(changed) => {
            found.changes(&captured.changes, &changed.changes);
            Ok(Some(changed.changes))
        }
        Err(error) => {
            found.errors.push(format!("changed_files: {error}"));
            Ok(None)
        }
    }
}

/// Runs the acceptance commands on the tree of one side, and records the result.
fn test(
    after_seal: &mut ReplayAfterSeal<'_, '_>,
    side: Side,
    sealed: &TestRun,
    logs: String,
) -> Result<TestRun, PortError> {
    // No cached result is used, and every log has a place of its own.
    let order = after_seal.state.accept_anew(sealed.tree.clone(), logs);
    let order = order.map_err(|error| PortError::of(Code::Bug, error))?;
    let mut watch = UnleasedWatch(&mut *after_seal.ports.observer);
    let mut run = after_seal.ports.target.accept(&order, &mut watch)?;
    run.side = side;
    after_seal.note(TEST_RESULT, &run)?;
    let cancelled = |ending: Ending| ending == Ending::Cancelled;
    if run.commands.iter().any(|ran| cancelled(ran.ending)) {
        return Err(PortError::new(Code::Cancelled, "the replay was cancelled"));
    }
    Ok(run)
}

fn now(clock: &dyn Clock) -> Result<Time, PortError> {
    let now = clock.timestamp();
    now.try_into()
        .map_err(|_| PortError::new(Code::Bug, "the clock gives no time"))
}
