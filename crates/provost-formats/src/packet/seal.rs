//! The seal of a packet that Provost made: a signed list of its files.
//!
//! The format has no place for it, so it is a file of its own, which other tools ignore. It is
//! written anew at each stage, so that the next stage detects edits in between.

use std::collections::BTreeMap;

use provost_core::bundle::files::Files;
use provost_core::bundle::key::{PublicKey, SigningKey};
use provost_core::bundle::seal::Differences;
use provost_core::bundle::statement::{PredicateType, Statement, StatementKind, Subject};
use provost_core::bundle::verification;
use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_core::verdict::Verdict;
use serde::{Deserialize, Serialize};

use super::finding::Findings;
use super::{EXECUTOR_REPORT, Source, Strictness, TASK_CARD, VALIDATOR_REPORT};

pub const SEAL: &str = "seal.dsse.json";
/// The snapshot from before, in packets that Provost makes.
pub const BEFORE: &str = "workspace_before.json";
/// The snapshot from after, in packets that Provost makes.
pub const AFTER: &str = "workspace_after.json";
/// The log of the acceptance commands, in packets that Provost makes.
pub const LOG: &str = "acceptance_run_log.jsonl";

/// The stage of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The task card is published.
    Published,
    /// The executor report is written.
    Reported,
    /// The validator report is written.
    Sealed,
}

impl Stage {
    fn word(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Reported => "reported",
            Self::Sealed => "sealed",
        }
    }

    pub fn files(self) -> &'static [&'static str] {
        match self {
            Self::Published => &[TASK_CARD, BEFORE],
            Self::Reported => &[TASK_CARD, BEFORE, EXECUTOR_REPORT, AFTER, LOG],
            Self::Sealed => &[
                TASK_CARD,
                BEFORE,
                EXECUTOR_REPORT,
                AFTER,
                LOG,
                VALIDATOR_REPORT,
            ],
        }
    }
}

/// A seal, with the files that it may cover.
#[derive(Debug, Clone)]
pub struct Sealed {
    /// [`SEAL`]
    pub envelope: Source,
    pub keys: Vec<PublicKey>,
    /// The files of [`Stage::files`], by name.
    pub files: BTreeMap<&'static str, Source>,
    /// Other files in the directory of the packet.
    pub others: Vec<String>,
}

/// What is signed.
type PacketStatement = Statement<Digest, Predicate>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Digest {
    sha256: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Predicate {
    phase_id: String,
    stage: Stage,
}

/// The bytes of [`SEAL`] for the files of `stage`; `None` if one of them is missing.
pub fn seal(
    phase_id: &str,
    stage: Stage,
    files: &BTreeMap<&'static str, Source>,
    key: &SigningKey,
) -> Option<String> {
    let mut subject = Vec::new();
    for name in stage.files() {
        let Some(Source::Bytes(bytes)) = files.get(name) else {
            return None;
        };
        subject.push(Subject {
            name: (*name).to_owned(),
            digest: Digest {
                sha256: sha256(bytes),
            },
        });
    }
    let statement = PacketStatement {
        kind: StatementKind::V1,
        subject,
        predicate_type: PredicateType::Packet,
        predicate: Predicate {
            phase_id: phase_id.trim().to_owned(),
            stage,
        },
    };
    Some(statement.seal(key).render())
}

/// The stage of the seal of `phase_id`, if the seal is valid and of one of `stages`.
pub fn verify(sealed: &Sealed, phase_id: &str, stages: &[Stage]) -> Result<Stage, Verdict> {
    let mut findings = Findings::default();
    let stage = sealed.check(phase_id, stages, &mut findings);
    findings.settle(stage, Strictness::Literal)
}

impl Sealed {
    /// Checks that the seal is valid, is of one of `stages`, and covers every file.
    pub(super) fn check(
        &self,
        phase_id: &str,
        stages: &[Stage],
        findings: &mut Findings,
    ) -> Option<Stage> {
        let bytes = findings.of(SEAL).bytes(&self.envelope, "")?;
        let statement = self.open(bytes, findings)?;
        let Predicate {
            phase_id: of,
            stage,
        } = &statement.predicate;
        if of != phase_id.trim() {
            findings.add(SEAL, "phase_id", format!("is `{of}`, not `{phase_id}`"));
        }
        if !stages.contains(stage) {
            let names: Vec<&str> = stages.iter().map(|stage| stage.word()).collect();
            let problem = format!("is {}, not {}", stage.word(), names.join(" or "));
            findings.add(SEAL, "stage", problem);
        }
        let names: Vec<&str> = statement
            .subject
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        if names != stage.files() {
            findings.add(SEAL, "subject", "does not name the files of its stage");
        }
        let sealed = statement.subject.iter();
        let sealed: BTreeMap<&str, &str> = sealed
            .map(|one| (one.name.as_str(), one.digest.sha256.as_str()))
            .collect();
        let is_later = |name: &str| !sealed.contains_key(name);
        let differences = Differences::between(self, &sealed, is_later);
        for (name, _) in &differences.altered {
            findings.add(name, "", "was edited after it was sealed");
        }
        for (name, _) in &differences.missing {
            findings.add(name, "", "was sealed and is missing");
        }
        for name in &self.others {
            findings.doubt(
                name,
                "",
                "lies in the sealed packet and was not sealed with it",
            );
        }
        Some(*stage)
    }

    /// The statement of the seal `bytes`, if a known key signed exactly these bytes.
    fn open(&self, bytes: &[u8], findings: &mut Findings) -> Option<PacketStatement> {
        let opened = verification::open(SEAL, bytes, &self.keys, None);
        for finding in &opened.findings {
            findings.add(SEAL, "", &finding.problem);
        }
        if !opened.findings.is_empty() {
            return None;
        }
        let statement = PacketStatement::parse(&opened.payload?);
        match statement {
            Ok(statement) if statement.predicate_type == PredicateType::Packet => Some(statement),
            Ok(_) => {
                findings.add(SEAL, "", "is no seal of a packet");
                None
            }
            Err(error) => {
                findings.add(SEAL, "", error.to_string());
                None
            }
        }
    }
}

impl Files for Sealed {
    /// The files that are there.
    fn names(&self) -> Vec<RawPath> {
        let there = self.files.iter();
        let there = there.filter(|(_, source)| matches!(source, Source::Bytes(_)));
        there.map(|(name, _)| RawPath::new(*name)).collect()
    }

    fn read(&self, name: &RawPath) -> Result<Vec<u8>, String> {
        match self.files.get(name.to_string().as_str()) {
            Some(Source::Bytes(bytes)) => Ok(bytes.clone()),
            Some(Source::Unreadable(why)) => Err(why.clone()),
            Some(Source::Missing) | None => Err("is missing".to_owned()),
        }
    }
}
