//! The messages between an agent and the broker of its sandbox: one line of JSON each way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::family::ChildBudget;
use super::handoff::AskedHandoff;
use super::letter::MessageKind;
use super::tools::MessageTool;
use crate::question::QuestionKind;
use crate::verdict::Verdict;

/// The longest message, in bytes.
pub const LONGEST_MESSAGE: usize = 64 << 10;

/// How many seconds an agent waits that does not say; programs wait longer for their tools.
fn patience() -> u64 {
    300
}

/// What an agent asks of the broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum BrokerRequest {
    /// Starts a child on the files of this agent as they are. What is left out, it does not get.
    Start(Box<ChildTask>),
    /// Answers when the child ended or asks something, or after this time.
    Wait {
        child: String,
        /// At most 600.
        #[serde(default = "patience")]
        seconds: u64,
    },
    /// Ends a child.
    Cancel { child: String },
    /// Lists the children of this agent.
    List {},
    /// Which tools the agent has.
    Tools {},
    /// Sends a message to a child.
    Message {
        child: String,
        key: String,
        text: String,
        /// How long it can be read; 0 is an hour.
        #[serde(default)]
        seconds: u64,
    },
    /// Answers a question of a child.
    ReplyToClarification {
        child: String,
        key: String,
        question: String,
        text: String,
    },
    /// Everything that a child wrote, and how it is.
    Monitor {
        child: String,
        #[serde(default)]
        after: u64,
    },
    /// Sends a message to the parent.
    SendMessage { key: String, text: String },
    /// Asks the parent, and waits for its reply for this time.
    AskParent {
        key: String,
        text: String,
        /// At most 600.
        #[serde(default = "patience")]
        seconds: u64,
    },
    /// What the parent wrote after the message of this number.
    ReadParentMessages {
        #[serde(default)]
        after: u64,
    },
    /// Asks a person for a path or a permission; answers at once, and again when it is asked again.
    Ask {
        kind: QuestionKind,
        content: String,
        #[serde(default)]
        reason: String,
    },
}

impl BrokerRequest {
    /// The child that the request is about.
    pub fn child_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Wait { child, .. }
            | Self::Cancel { child }
            | Self::Message { child, .. }
            | Self::ReplyToClarification { child, .. }
            | Self::Monitor { child, .. } => Some(child),
            Self::Start(_)
            | Self::List {}
            | Self::Tools {}
            | Self::SendMessage { .. }
            | Self::AskParent { .. }
            | Self::ReadParentMessages { .. }
            | Self::Ask { .. } => None,
        }
    }

    /// The tool for messages that the request is made by, if it is one.
    pub fn message_tool(&self) -> Option<MessageTool> {
        match self {
            Self::ReplyToClarification { .. } => Some(MessageTool::ReplyToClarification),
            Self::Monitor { .. } => Some(MessageTool::Monitor),
            Self::SendMessage { .. } => Some(MessageTool::SendMessage),
            Self::AskParent { .. } => Some(MessageTool::AskParent),
            Self::ReadParentMessages { .. } => Some(MessageTool::ReadParentMessages),
            Self::Start(_)
            | Self::Message { .. }
            | Self::Wait { .. }
            | Self::Cancel { .. }
            | Self::List {}
            | Self::Tools {}
            | Self::Ask { .. } => None,
        }
    }
}

/// The child that an agent asks for. What is left out, the child does not get.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// The tools for messages that it keeps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageTool>,
    /// What of the context of its parent it gets.
    #[serde(skip_serializing_if = "is_nothing")]
    pub handoff: AskedHandoff,
    /// The policy about its end; that of children that end with their parent if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle_policy: Option<String>,
    /// The policy about the removal of secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redaction_policy: Option<String>,
}

fn is_nothing(handoff: &AskedHandoff) -> bool {
    *handoff == AskedHandoff::default()
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
    Tools {
        tools: Vec<String>,
    },
    /// The message was sent, or had been.
    Sent {
        message: String,
    },
    /// What another agent wrote: data, and no instruction.
    Messages {
        messages: Vec<MessageRow>,
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

/// One message, as its receiver sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageRow {
    /// Counts the messages of this sender.
    pub number: u64,
    pub id: String,
    pub kind: MessageKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// What the sender wrote.
    pub text: String,
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
    /// The questions of the child that have no reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<MessageRow>,
    /// How many messages the child has sent.
    #[serde(default)]
    pub messages: u64,
}
