//! The messages between an agent and the broker of its sandbox: one line of JSON each way.

use serde::{Deserialize, Serialize};

use super::family::ChildBudget;
use crate::question::QuestionKind;
use crate::verdict::Verdict;

/// The longest message, in bytes.
pub const LONGEST_MESSAGE: usize = 64 << 10;

/// What an agent asks of the broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum BrokerRequest {
    Start(Box<ChildTask>),
    /// Answers when the child ended, or after this time.
    Wait {
        child: String,
        #[serde(default)]
        seconds: u64,
    },
    Cancel {
        child: String,
    },
    List {},
    /// Asks a person for a path or a permission; answers at once, and again when it is asked again.
    Ask {
        kind: QuestionKind,
        content: String,
        #[serde(default)]
        reason: String,
    },
}

/// The child that an agent asks for. What is left out, the child does not get.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChildTask {
    /// Starting twice with one key starts one child.
    pub key: String,
    /// Its instruction.
    pub task: String,
    /// Whether it only reads; the kernel then refuses every write to the tree.
    pub read_only: bool,
    /// The paths that it may change.
    pub write: Vec<String>,
    /// The places of the network that it may reach, as `host:port`.
    pub net: Vec<String>,
    /// Its model; that of its parent if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tools that its program may offer; those of its parent if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Its share. Seconds and processes that are 0 mean a quarter of the grant, or what is left of it.
    pub budget: ChildBudget,
    /// How many agents it may start itself.
    pub children: u32,
}

/// What the broker answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum BrokerAnswer {
    /// The child, as it is now.
    Child(Box<ChildRow>),
    Children {
        children: Vec<ChildRow>,
    },
    /// What was asked for is permitted for the rest of the run, or no answer came yet.
    Asked {
        granted: bool,
        words: String,
    },
    Refused {
        verdict: Verdict,
    },
}

/// One child, as its parent sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildRow {
    pub child: String,
    pub key: String,
    /// `running`, `ended` or `lost`.
    pub state: String,
    pub read_only: bool,
    pub given: ChildBudget,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<ChildBudget>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The file of the sandbox with its patch, if it changed something that its gates let pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// The file of the sandbox with what it said at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}
