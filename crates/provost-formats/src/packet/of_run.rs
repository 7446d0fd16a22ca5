//! Composes a control packet from the measurements of a run.

use std::collections::BTreeMap;

use provost_core::bundle::key::SigningKey;
use provost_core::record::Record;
use provost_core::run::State;
use provost_core::run::fact::{CommandRun, Ending, Fact, Side};
use provost_core::time;
use provost_core::verdict::Verdict;

use super::compose::{self, Ran, Task};
use super::seal::{self, AFTER, BEFORE, LOG, SEAL, Sealed, Stage};
use super::{
    Document, EXECUTOR_REPORT, Evidence, Found, Packet, Snapshot, Source, Strictness, TASK_CARD,
    VALIDATOR_REPORT,
};

/// The most bytes of a log that a packet quotes.
const TAIL: usize = 4096;

/// The digest of every file of a tree, by its path.
pub type Digests = BTreeMap<String, String>;

/// The input of a packet.
pub struct Material<'a> {
    /// The state of an accepted run at its end.
    pub state: &'a State,
    pub records: &'a [Record],
    /// The digests of the base and the candidate.
    pub trees: [Digests; 2],
    pub log: &'a dyn Fn(&str) -> Vec<u8>,
    /// Documents that the task must have updated, as the candidate has them.
    pub docs: Vec<Document>,
}

/// The files of a packet about the run, by name; refused if the format's own rules refuse them.
pub fn compose(
    material: Material<'_>,
    key: &SigningKey,
) -> Result<BTreeMap<&'static str, String>, Verdict> {
    let Material {
        state,
        records,
        trees: [before, after],
        log,
        docs,
    } = material;
    let phase_id = state.names.run_id.as_str();
    let rows = rows(state, records, log);
    let card = compose::task_card(&Task {
        phase_id: phase_id.to_owned(),
        goals: vec![state.names.task_id.clone()],
        allowed: state.opened.contract.allowed_paths.clone(),
        noise: Vec::new(),
        commands: rows.iter().map(|row| row.command.clone()).collect(),
        published_at: state.began.clone(),
        directory: None,
    })?;
    let captured = when(records, |fact| matches!(fact, Fact::Captured(_)));
    let snapshot = |files, at: String| Snapshot {
        captured_at: Some(at),
        files,
    };
    let mut files = BTreeMap::from([
        (TASK_CARD, card),
        (BEFORE, snapshot(before, state.began.clone()).render()),
        (
            AFTER,
            snapshot(after, captured.unwrap_or_else(|| state.latest.clone())).render(),
        ),
        (LOG, compose::log(&rows)),
    ]);
    let changed = compose::changed_files(&packet(phase_id, &files, None))?;
    let report = compose::executor_report(
        phase_id,
        &Source::Bytes(files[TASK_CARD].clone().into_bytes()),
        &changed,
        &rows,
        &state.latest,
    );
    files.insert(EXECUTOR_REPORT, report);
    let conclusion =
        compose::validator_report(&packet(phase_id, &files, None), &docs, &state.latest);
    files.insert(VALIDATOR_REPORT, conclusion);
    let sealed = seal::seal(phase_id, Stage::Sealed, &sources(&files), key);
    files.insert(SEAL, sealed.unwrap_or_default());
    let verdict = super::judge(
        &packet(phase_id, &files, Some(key)),
        Strictness::Literal,
        None,
    );
    if verdict.allow {
        Ok(files)
    } else {
        Err(verdict)
    }
}

fn sources(files: &BTreeMap<&'static str, String>) -> BTreeMap<&'static str, Source> {
    let source = |text: &String| Source::Bytes(text.clone().into_bytes());
    files
        .iter()
        .map(|(name, text)| (*name, source(text)))
        .collect()
}

fn packet<'a>(
    phase_id: &'a str,
    files: &BTreeMap<&'static str, String>,
    key: Option<&SigningKey>,
) -> Packet<'a> {
    let mut sources = sources(files);
    let mut take = |name: &str| sources.remove(name).unwrap_or(Source::Missing);
    let (task_card, envelope) = (take(TASK_CARD), take(SEAL));
    let all = self::sources(files);
    let of = |name: &str| all.get(name).cloned().unwrap_or(Source::Missing);
    let found = super::wanted(&task_card).into_iter();
    let found = found.map(|(evidence, path): (Evidence, _)| Found {
        evidence,
        in_packet: of(path.as_str()),
        in_repository: Source::Missing,
        path,
    });
    Packet {
        phase_id,
        directory: None,
        evidence: found.collect(),
        executor_report: of(EXECUTOR_REPORT),
        validator_report: of(VALIDATOR_REPORT),
        task_card,
        seal: key.map(|key| Sealed {
            envelope,
            keys: vec![key.public()],
            files: all.clone(),
            others: Vec::new(),
        }),
    }
}

/// The commands that had to pass, with the times when they ran.
///
/// The ledger has the end of the last command and the duration of each; they ran one by one.
fn rows(state: &State, records: &[Record], log: &dyn Fn(&str) -> Vec<u8>) -> Vec<Ran> {
    let Some(run) = state.tests.get(&Side::Candidate) else {
        return Vec::new();
    };
    let ended = when(
        records,
        |fact| matches!(fact, Fact::TestsRan(run) if run.side == Side::Candidate),
    );
    let mut at = ended
        .and_then(|ended| time::parse(&ended).ok())
        .unwrap_or_default();
    let tests = &state.opened.contract.acceptance_tests;
    let mut rows = Vec::new();
    for (test, ran) in tests.iter().zip(&run.commands).rev() {
        let began = at.saturating_sub(i64::try_from(ran.wall_ms).unwrap_or_default());
        if test.must_pass {
            rows.push(Ran {
                command: test.cmd.clone(),
                exit_code: exit_code(ran),
                started_at: time::render(began),
                ended_at: time::render(at),
                stdout_tail: tail(&log(&ran.stdout.file)),
                stderr_tail: tail(&log(&ran.stderr.file)),
            });
        }
        at = began;
    }
    rows.reverse();
    rows
}

fn exit_code(ran: &CommandRun) -> i32 {
    match ran.ending {
        Ending::Exited(status) => status,
        Ending::Signalled(signal) => -signal,
        _ => 124,
    }
}

fn tail(bytes: &[u8]) -> String {
    let from = bytes.len().saturating_sub(TAIL);
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}

/// When the last fact of a kind was recorded.
fn when(records: &[Record], is: impl Fn(&Fact) -> bool) -> Option<String> {
    let mut last = records.iter().rev();
    let found = last.find(|record| {
        let fact = Fact::of(&record.event, record.seq);
        fact.is_ok_and(|fact| is(&fact))
    })?;
    Some(found.event.ts.clone())
}
