//! The seal of a packet that Provost made: a signed list of its files.
//!
//! The format has no place for it, so it is a file of its own, which other tools ignore. It is
//! written anew at each stage, so that the next stage detects edits in between.

use std::collections::BTreeMap;

use provost_core::bundle::dsse;
use provost_core::bundle::key::{PublicKey, SigningKey};
use provost_core::json;
use provost_core::object::sha256;
use provost_core::verdict::Verdict;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::finding::Findings;
use super::{EXECUTOR_REPORT, Profile, Source, TASK_CARD, VALIDATOR_REPORT, refuse};

pub const SEAL: &str = "seal.dsse.json";
/// The snapshot from before, in packets that Provost makes.
pub const BEFORE: &str = "workspace_before.json";
/// The snapshot from after, in packets that Provost makes.
pub const AFTER: &str = "workspace_after.json";
/// The log of the acceptance commands, in packets that Provost makes.
pub const LOG: &str = "acceptance_run_log.jsonl";

const KIND: &str = "https://in-toto.io/Statement/v1";
const PREDICATE: &str = "https://provost.dev/packet/v1";

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

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: Predicate,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Subject {
    name: String,
    digest: Digest,
}

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
    let statement = Statement {
        kind: KIND.to_owned(),
        subject,
        predicate_type: PREDICATE.to_owned(),
        predicate: Predicate {
            phase_id: phase_id.trim().to_owned(),
            stage,
        },
    };
    let payload = serde_json::to_value(statement).ok()?;
    Some(dsse::sign(json::canonical(&payload).as_bytes(), key).render())
}

/// The stage of the seal of `phase_id`, if the seal is valid and of one of `stages`.
pub fn verify(sealed: &Sealed, phase_id: &str, stages: &[Stage]) -> Result<Stage, Verdict> {
    let mut findings = Findings::default();
    match sealed.check(phase_id, stages, &mut findings) {
        Some(stage) if findings.holds(Profile::Literal) => Ok(stage),
        _ => Err(refuse(
            &findings,
            Profile::Literal,
            Value::Object(Map::new()),
        )),
    }
}

impl Sealed {
    /// Checks that the seal is valid, is of one of `stages`, and covers every file.
    pub(super) fn check(
        &self,
        phase_id: &str,
        stages: &[Stage],
        findings: &mut Findings,
    ) -> Option<Stage> {
        let bytes = super::fields::bytes(&self.envelope, SEAL, "", findings)?;
        let statement = match self.open(bytes) {
            Ok(statement) => statement,
            Err(problem) => {
                findings.add(SEAL, "", problem);
                return None;
            }
        };
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
        for subject in &statement.subject {
            let name = subject.name.as_str();
            match self.files.get(name) {
                Some(Source::Bytes(bytes)) if sha256(bytes) == subject.digest.sha256 => {}
                Some(Source::Bytes(_)) => findings.add(name, "", "was edited after it was sealed"),
                _ => findings.add(name, "", "was sealed and is missing"),
            }
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

    fn open(&self, bytes: &[u8]) -> Result<Statement, String> {
        let opened = dsse::open(bytes, &self.keys).map_err(|error| error.to_string())?;
        let statement: Statement =
            json::parse_as(&opened.payload).map_err(|error| error.to_string())?;
        if statement.kind != KIND || statement.predicate_type != PREDICATE {
            return Err("is no seal of a packet".to_owned());
        }
        Ok(statement)
    }
}
