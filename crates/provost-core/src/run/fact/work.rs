//! Work that exists before a run begins: it is judged, and no agent is started.

use provost_evidence::statement::LedgerHead;
use serde::{Deserialize, Serialize};

use crate::change::Finding;
use crate::code::Code;
use crate::object::Oid;
use crate::wording::counted;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExistingWork {
    /// The tree that is judged.
    pub tree: Oid,
    /// The revision that the user named, if no run of Provost made the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// The refusals of this tree so far, oldest first; the last one is that of the parent run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judged: Vec<EarlierVerdict>,
    /// What the workspace of the agent held and the tree cannot represent; it still counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// As the user wrote it.
    pub name: String,
    pub commit: Oid,
}

/// The refusal of an earlier run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierVerdict {
    pub run_id: String,
    /// The end of its sealed ledger.
    pub sealed_head: LedgerHead,
    pub code: Code,
    pub reason: String,
}

impl ExistingWork {
    /// Where the work came from and how often it was judged with this run, as text.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(Revision { name, commit }) = &self.revision {
            words.push(format!("revision {name}, commit {}", commit.short()));
        }
        if let Some(first) = self.judged.first() {
            let times = counted(self.judged.len() + 1, "time");
            let EarlierVerdict { code, reason, .. } = first;
            words.push(format!("judged {times}, first: {code}: {reason}"));
        }
        words
    }
}
