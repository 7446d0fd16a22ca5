//! Work that exists before a run begins: it is judged, and no agent is started.

use provost_evidence::statement::LedgerHead;
use serde::{Deserialize, Serialize};

use super::{Opened, Side, TestRun};
use crate::change::Finding;
use crate::code::Code;
use crate::object::Oid;
use crate::run::State;
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
    /// Rounds that other runs of the same case made on exactly this tree; one of the same commands
    /// in the same sandbox is not repeated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<EarlierRound>,
}

/// A round of acceptance commands that another run made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierRound {
    pub run_id: String,
    /// The end of its sealed ledger.
    pub ledger_head: String,
    /// As that ledger has it; its logs were copied.
    pub round: TestRun,
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

impl Opened {
    /// What other runs of the same case found on the tree of the candidate.
    pub fn earlier_rounds(&self, side: Side) -> Vec<TestRun> {
        let work = self.work.as_ref().filter(|_| side == Side::Candidate);
        let rounds = work.into_iter().flat_map(|work| &work.rounds);
        rounds.map(|it| it.round.clone()).collect()
    }
}

impl State {
    /// The run whose round `run` is, if the commands did not run for this one.
    pub fn reused_from(&self, run: &TestRun) -> Option<&str> {
        let work = self.opened.work.as_ref().filter(|_| run.cached)?;
        let mut rounds = work.rounds.iter();
        let same = rounds.find(|it| it.round.commands == run.commands && it.round.tree == run.tree);
        same.map(|it| it.run_id.as_str())
    }
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
