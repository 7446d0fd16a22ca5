//! Says what every file of a sealed directory is, and holds its documents against their schemas.
//!
//! # Invariants
//!
//! - A file without a known kind is a finding, so that none is written without a schema or a kind.
//! - Only files that are as they were sealed are judged; `verify` tells of the others.
//! - Directories of an earlier bundle format are not judged: their schemas were others.

use std::collections::BTreeMap;

use provost_core::bundle::layout::{self, AFTER, ATTESTATION, BundleFormat, LEDGER, MANIFEST};
use provost_core::bundle::report::RunManifest;
use provost_core::code::Code;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_core::record::{self, Head};
use provost_core::run::fact::Fact;
use provost_core::schema::validate::validate;
use provost_evidence::files::Files;
use provost_evidence::seal::Seal;
use serde::Serialize;
use serde_json::Value;

use super::formats;
use super::sealed::{RecordKind, RecordStatement, SEAL};

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// One JSON document of this schema.
    Document(&'static str),
    /// A JSON document of this schema on every line.
    Lines(&'static str),
    /// Something else, in words.
    Other(&'static str),
}

/// The kinds of sealed directories whose files are described here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedKind {
    Run,
    Record(RecordKind),
}

/// What the file `name` of such a directory is; `None` if no such file is known.
pub fn kind(directory: SealedKind, name: &str) -> Option<FileKind> {
    let parts: Vec<&str> = name.split('/').collect();
    match directory {
        SealedKind::Run => of_run(&parts),
        SealedKind::Record(record) => of_record(record, &parts),
    }
}

const PATCH: FileKind = FileKind::Other("patch");
const OUTPUT: FileKind = FileKind::Other("output of a program");
const TEXT: FileKind = FileKind::Other("text");
const LOCK: FileKind = FileKind::Other("lock");
const CONTRACT: FileKind = FileKind::Document("task_contract");
const EVENTS: FileKind = FileKind::Lines("orchestrator_event");
const RESULT: FileKind = FileKind::Document("task_result");
const REQUESTS: FileKind = FileKind::Lines("model_request");
const SEALED: FileKind = FileKind::Document("dsse_envelope");

fn of_run(parts: &[&str]) -> Option<FileKind> {
    use FileKind::{Document, Other};
    Some(match parts {
        ["contract.json"] | ["tasks", _, "contract.json"] => CONTRACT,
        ["manifest.json"] => Document("run_manifest"),
        ["meta.json"] => Document("run_meta"),
        ["events.jsonl" | "after.jsonl"] => EVENTS,
        ["reports", "task_result.json"] | ["results", _, "result.json"] => RESULT,
        ["reports", "work_report.json"] => Document("work_report"),
        ["reports", "review_report.json"] => Document("review_report"),
        ["reports", "test_report.json"] => Document("test_report"),
        ["reports", "evidence_report.json"] => Document("evidence_report"),
        ["reports", "evidence_bundle.json"] => Document("evidence_bundle"),
        ["sandbox", "selftest.json"] => Document("sandbox_selftest"),
        ["sandbox", "network.json"] => Document("network_use"),
        ["children", file] if has_end(file, ".json") => Document("child_run"),
        ["attestation.dsse.json"] => SEALED,
        ["artifacts", "output_schema.json"] => Other("JSON Schema of the result"),
        ["artifacts", "agent_result.json"] => Other("result as the agent left it"),
        ["patch.diff"] | ["git", "patch.diff"] | ["results", _, "patch.diff"] => PATCH,
        ["patches", file] if has_end(file, ".diff") => PATCH,
        ["git", "objects.pack"] => Other("git objects"),
        ["diff_name_only.txt" | "worktree_ref.txt"]
        | ["git", "diff_name_only.txt" | "baseline_commit.txt"]
        | ["trace", "trace_id.txt"]
        | ["tests", "command.txt"]
        | ["agent", _, "thread_id.txt"] => TEXT,
        ["tests", "stdout.log" | "stderr.log"] => OUTPUT,
        ["agent", _, "transcript.md"] => Other("transcript"),
        ["agent", _, file] | ["reviews", file] | ["after", .., file] => worker(file)?,
        ["ci" | "prepare", .., file] if has_end(file, ".log") => OUTPUT,
        [file] if file.starts_with("contract.source.") => Other("contract as the user wrote it"),
        ["driver.lock"] => LOCK,
        _ => return None,
    })
}

/// Whether `name` has exactly this ending; our own names are lower case.
fn has_end(name: &str, end: &str) -> bool {
    name.strip_suffix(end).is_some()
}

/// A file that an agent, a reviewer or a command left.
fn worker(file: &str) -> Option<FileKind> {
    Some(match file.rsplit_once('.') {
        Some((name, "jsonl")) if name.starts_with("model-requests") => REQUESTS,
        // A review of an attempt has its number in front.
        Some((name, "jsonl")) if name.ends_with("model-requests") => REQUESTS,
        Some((_, "jsonl")) => FileKind::Lines("agent_event"),
        Some((_, "log")) => OUTPUT,
        Some((name, "json")) if name.ends_with("report") => FileKind::Document("reviewer_answer"),
        _ => return None,
    })
}

fn of_record(record: RecordKind, parts: &[&str]) -> Option<FileKind> {
    use FileKind::{Document, Lines, Other};
    Some(match (record, parts) {
        (_, ["record.dsse.json"]) => SEALED,
        (_, ["driver.lock"]) => LOCK,
        (RecordKind::Plan | RecordKind::Split, ["request.json"]) => Document("plan_request"),
        (RecordKind::Plan | RecordKind::Split, ["planner.json"]) => Document("planner_run"),
        (RecordKind::Plan | RecordKind::Split, ["verdict.json"]) => Document("verdict"),
        (RecordKind::Plan | RecordKind::Split, ["answer.json"]) => {
            Other("answer as the planner left it")
        }
        (RecordKind::Plan | RecordKind::Split, ["events.jsonl"]) => Lines("agent_event"),
        (RecordKind::Plan | RecordKind::Split, ["model-requests.jsonl"]) => REQUESTS,
        (RecordKind::Plan | RecordKind::Split, ["stdout.log" | "stderr.log"]) => OUTPUT,
        (RecordKind::Refused, ["request.json"]) => Document("refused_request"),
        (RecordKind::Chain | RecordKind::Case | RecordKind::Refused, ["events.jsonl"]) => EVENTS,
        (RecordKind::Chain | RecordKind::Case, ["together", .., file]) if has_end(file, ".log") => {
            OUTPUT
        }
        (RecordKind::Chain, ["report.json"]) => Document("chain_report"),
        (RecordKind::Case, ["report.json"]) => Document("case_report"),
        (RecordKind::Case, ["parts.json"]) | (_, ["chain.json"]) => Document("chain"),
        (_, ["contract.json"]) | (RecordKind::Case, ["tasks", _, "contract.json"]) => CONTRACT,
        (RecordKind::Case, ["results", _, "result.json"]) => RESULT,
        (RecordKind::Case, ["reviews", _]) => Document("review_report"),
        (RecordKind::Case, ["results", _, "patch.diff"] | ["patches", _]) => PATCH,
        _ => return None,
    })
}

/// A file that is not what its schema says, or that has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileFinding {
    pub path: String,
    pub problem: String,
}

/// The result of a sealed directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckedFiles {
    /// How many files fit their schema.
    pub documents: usize,
    /// How many have a kind without a schema.
    pub others: usize,
    pub findings: Vec<FileFinding>,
}

/// Holds the files of a sealed directory against their schemas; `None` if it is not sealed, or by
/// an earlier format.
pub fn check(files: &dyn Files) -> Option<CheckedFiles> {
    let (directory, mut sealed) = sealed_files(files)?;
    let refused = refusal(files);
    let before = sealed.len();
    sealed.retain(|name, _| !is_kept_as_given(refused.as_deref(), name));
    let as_given = before - sealed.len();
    let mut schemas = Schemas::default();
    let mut checked = CheckedFiles {
        others: as_given,
        ..CheckedFiles::default()
    };
    for (name, digest) in &sealed {
        let Ok(bytes) = files.read(&RawPath::new(name.as_str())) else {
            continue;
        };
        if digest
            .as_ref()
            .is_some_and(|digest| sha256(&bytes) != *digest)
        {
            continue;
        }
        let problem = match kind(directory, name) {
            None => Some("has neither a schema nor a kind".to_owned()),
            Some(FileKind::Other(_)) => {
                checked.others += 1;
                continue;
            }
            Some(FileKind::Document(schema)) => schemas.misfit(schema, &bytes),
            Some(FileKind::Lines(schema)) => {
                let lines = bytes.split(|byte| *byte == b'\n');
                let mut lines = lines.filter(|line| !line.is_empty());
                lines.find_map(|line| schemas.misfit(schema, line))
            }
        };
        match problem {
            None => checked.documents += 1,
            Some(problem) => checked.findings.push(FileFinding {
                path: name.clone(),
                problem,
            }),
        }
    }
    Some(checked)
}

/// The code of the verdict of a run, unless it was accepted.
fn refusal(files: &dyn Files) -> Option<String> {
    let envelope = files.read(&RawPath::new(ATTESTATION)).ok()?;
    let payload = Seal::open(&envelope, &[]).ok()?.payload;
    let payload = json::parse(&payload).ok()?;
    let code = payload.pointer("/predicate/verdict/code")?;
    code.as_str().map(str::to_owned)
}

/// Whether a run that ended with the code `refused` has the file `name` as others wrote it: the
/// document that does not fit its schema is then what was refused.
fn is_kept_as_given(refused: Option<&str>, name: &str) -> bool {
    let by = |code: Code| refused == Some(code.name());
    (by(Code::ContractInvalid) && name == layout::CONTRACT)
        || (by(Code::ReviewInvalid) && name.starts_with("reviews/") && has_end(name, ".json"))
}

/// The files that a seal is about, with their digests where it names one.
type Sealed = BTreeMap<String, Option<String>>;

fn sealed_files(files: &dyn Files) -> Option<(SealedKind, Sealed)> {
    let read = |name: &str| files.read(&RawPath::new(name)).ok();
    if let Some(seal) = read(SEAL) {
        let payload = Seal::open(&seal, &[]).ok()?.payload;
        let statement: RecordStatement = json::parse_as(&payload).ok()?;
        let named = statement.subject.iter();
        let mut sealed: Sealed = named
            .map(|one| {
                (
                    one.name.clone(),
                    Some(one.digest.sha256.as_str().to_owned()),
                )
            })
            .collect();
        sealed.insert(SEAL.to_owned(), None);
        return Some((SealedKind::Record(statement.predicate.kind), sealed));
    }
    let (envelope, manifest) = (read(ATTESTATION)?, read(MANIFEST)?);
    let payload = json::parse(&Seal::open(&envelope, &[]).ok()?.payload).ok()?;
    let digest = payload.pointer("/predicate/manifest_sha256")?.as_str()?;
    let events = read(LEDGER)?;
    let chain = record::read(&events, Head::genesis()).ok()?;
    let Ok(Fact::Opened(opened)) = chain.records.first()?.event.untagged() else {
        return None;
    };
    if opened.format != BundleFormat::NEWEST || sha256(&manifest) != digest {
        return None;
    }
    let hashes = json::parse_as::<RunManifest>(&manifest)
        .ok()?
        .evidence_hashes;
    let mut sealed: Sealed = hashes
        .into_iter()
        .map(|(name, digest)| (name, Some(digest.as_str().to_owned())))
        .collect();
    sealed.insert(MANIFEST.to_owned(), None);
    sealed.insert(ATTESTATION.to_owned(), None);
    // Lines that are no chain were altered, and `verify` says so.
    let after = read(AFTER).filter(|bytes| record::read(bytes, chain.head.clone()).is_ok());
    if after.is_some() {
        sealed.insert(AFTER.to_owned(), None);
    }
    Some((SealedKind::Run, sealed))
}

/// The schemas that were asked for so far.
#[derive(Default)]
struct Schemas(BTreeMap<&'static str, Value>);

impl Schemas {
    /// What of the document `bytes` does not fit the schema `name`.
    fn misfit(&mut self, name: &'static str, bytes: &[u8]) -> Option<String> {
        let made = || formats::find(name).map(provost_core::schema::Format::schema);
        let Some(schema) = self.0.get(name).cloned().or_else(made) else {
            return Some(format!("needs the schema `{name}`, which does not exist"));
        };
        let document = match json::parse(bytes) {
            Ok(document) => document,
            Err(error) => return Some(format!("is no JSON: {error}")),
        };
        let misfits = validate(&schema, &document);
        self.0.insert(name, schema);
        let first = misfits.first()?;
        Some(format!(
            "does not fit `{name}`: `{}` {}",
            first.path, first.problem
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_that_a_kind_names_is_shipped() {
        let source = include_str!("file_kinds.rs");
        let mut names = 0;
        for kind in ["Document(\"", "Lines(\""] {
            for (at, _) in source.match_indices(kind) {
                let rest = &source[at + kind.len()..];
                let name = rest.split('"').next().unwrap_or_default();
                if name.contains('\\') {
                    continue;
                }
                names += 1;
                assert!(formats::find(name).is_some(), "{name}");
            }
        }
        assert!(names > 20, "{names}");
    }

    #[test]
    fn an_unknown_file_has_no_kind() {
        let run = |name: &str| kind(SealedKind::Run, name);
        assert_eq!(run("contract.json"), Some(CONTRACT));
        assert_eq!(
            run("agent/t/events.1.jsonl"),
            Some(FileKind::Lines("agent_event"))
        );
        for name in [
            "extra.json",
            "agent/t/x.bin",
            "reports/more.json",
            "artifacts/a/b",
        ] {
            assert_eq!(run(name), None, "{name}");
        }
    }
}
