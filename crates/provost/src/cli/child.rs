//! `provost child`: speaks to the broker of children, inside a sandbox.

use clap::{Args, Subcommand};
use provost_core::children::policy::HandoffKind;
use provost_core::children::{
    AskedHandoff, BrokerAnswer, BrokerRequest, ChildBudget, ChildRow, ChildTask, MessageRow,
    MessageTool,
};
use provost_core::code::Code;
use provost_core::exit::Exit;

use crate::answer::{Answer, Failure, Outcome};
use crate::broker_client::ask;
use crate::child_tools;
use crate::show::one_line;

#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Child {
    /// Start a child on the work as it is now.
    Start(Box<Start>),
    /// Wait until a child ended, and print where its patch is.
    Wait(Wait),
    /// End a child.
    Cancel(Named),
    /// List the children of this agent.
    List,
    /// Send a message to a child.
    Message(MessageFlags),
    /// Answer a question of a child.
    Reply(ReplyFlags),
    /// Print everything that a child wrote.
    Monitor(MonitorFlags),
    /// Send a message to the agent that started this one.
    Send(SendFlags),
    /// Ask the agent that started this one, and wait for its reply.
    Ask(AskFlags),
    /// Print what the agent that started this one wrote.
    Read(ReadFlags),
    /// Serve these commands as MCP tools on stdin and stdout.
    Mcp,
}

#[derive(Args)]
pub(super) struct MessageFlags {
    /// The child, as `start` printed it.
    child: String,

    text: String,

    /// Names the message; the same command with the same key sends no second one.
    #[arg(long)]
    key: String,

    /// How many seconds it can be read; an hour if left out.
    #[arg(long, default_value_t = 0)]
    seconds: u64,
}

#[derive(Args)]
pub(super) struct ReplyFlags {
    /// The child, as `start` printed it.
    child: String,

    /// The question, as `wait` printed it.
    question: String,

    text: String,

    /// Names the reply; the same command with the same key sends no second one.
    #[arg(long)]
    key: String,
}

#[derive(Args)]
pub(super) struct MonitorFlags {
    /// The child, as `start` printed it.
    child: String,

    /// Only what came after the message of this number.
    #[arg(long, default_value_t = 0)]
    after: u64,
}

#[derive(Args)]
pub(super) struct ReadFlags {
    /// Only what came after the message of this number.
    #[arg(long, default_value_t = 0)]
    after: u64,
}

#[derive(Args)]
pub(super) struct SendFlags {
    text: String,

    /// Names the message; the same command with the same key sends no second one.
    #[arg(long)]
    key: String,
}

#[derive(Args)]
pub(super) struct AskFlags {
    text: String,

    /// Names the question; the same command with the same key asks no second one.
    #[arg(long)]
    key: String,

    /// How many seconds to wait for the reply, at most 600.
    #[arg(long, default_value_t = 300)]
    seconds: u64,
}

#[derive(Args)]
pub(super) struct Start {
    /// What the child is to do.
    task: String,

    /// Names the child; the same command with the same key starts no second one.
    #[arg(long)]
    key: String,

    /// The child only reads: every write to the tree fails.
    #[arg(long, conflicts_with = "write")]
    read_only: bool,

    /// A path that the child may change; can be repeated.
    #[arg(long, value_name = "PATH")]
    write: Vec<String>,

    /// A place of the network that the child may reach, as `host:port`; can be repeated.
    #[arg(long, value_name = "PLACE")]
    net: Vec<String>,

    /// The model of the child instead of that of this agent.
    #[arg(long)]
    model: Option<String>,

    /// A tool that the program of the child may offer to its model; can be repeated.
    #[arg(long, value_name = "TOOL")]
    tool: Vec<String>,

    /// Tokens of models for the child.
    #[arg(long, default_value_t = 0)]
    tokens: u64,

    /// Millionths of a US dollar for the child.
    #[arg(long, default_value_t = 0)]
    micro_usd: u64,

    /// Seconds until the child is ended; a quarter of the grant if left out.
    #[arg(long, default_value_t = 0)]
    seconds: u64,

    /// Processes of the child at a time; a quarter of the grant if left out.
    #[arg(long, default_value_t = 0)]
    processes: u64,

    /// How many agents the child may start itself.
    #[arg(long, default_value_t = 0)]
    children: u32,

    /// A tool for messages that the child keeps; can be repeated.
    #[arg(long, value_name = "TOOL", value_parser = message_tool)]
    message: Vec<MessageTool>,

    /// What of the context of this agent the child gets: `summary_only`, `selected_refs` or
    /// `full_history`.
    #[arg(long, value_name = "KIND", value_parser = handoff_kind, requires = "policy")]
    handoff: Option<HandoffKind>,

    /// The policy that permits the hand-off.
    #[arg(long = "handoff-policy", value_name = "POLICY", requires = "handoff")]
    policy: Option<String>,

    /// The summary that is handed over.
    #[arg(long, value_name = "TEXT", requires = "handoff")]
    summary: Option<String>,

    /// How many tokens the summary may have.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    summary_tokens: u32,

    /// A reference that is handed over, as `tree:PATH`, `ledger:NUMBER`, `file:NAME` or
    /// `child:RUN/said.txt`; can be repeated.
    #[arg(long = "ref", value_name = "REF", requires = "handoff")]
    refs: Vec<String>,

    /// The policy about the end of the child.
    #[arg(long, value_name = "POLICY")]
    lifecycle_policy: Option<String>,

    /// The policy about the removal of secrets.
    #[arg(long, value_name = "POLICY")]
    redaction_policy: Option<String>,
}

fn message_tool(text: &str) -> Result<MessageTool, String> {
    let names = MessageTool::ALL.map(MessageTool::name).join(", ");
    MessageTool::parse(text).ok_or_else(|| format!("is none of {names}"))
}

fn handoff_kind(text: &str) -> Result<HandoffKind, String> {
    let names = HandoffKind::ALL.map(HandoffKind::name).join(", ");
    HandoffKind::parse(text).ok_or_else(|| format!("is none of {names}"))
}

#[derive(Args)]
pub(super) struct Named {
    /// The child, as `start` printed it.
    child: String,
}

#[derive(Args)]
pub(super) struct Wait {
    /// The child, as `start` printed it.
    child: String,

    /// How many seconds to wait, at most 600.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
}

pub(super) fn run(child: Child) -> Outcome {
    let request = match child {
        Child::Start(start) => BrokerRequest::Start(Box::new(task(*start))),
        Child::Wait(Wait { child, seconds }) => BrokerRequest::Wait { child, seconds },
        Child::Cancel(Named { child }) => BrokerRequest::Cancel { child },
        Child::List => BrokerRequest::List {},
        Child::Message(MessageFlags {
            child,
            text,
            key,
            seconds,
        }) => BrokerRequest::Message {
            child,
            key,
            text,
            seconds,
        },
        Child::Reply(ReplyFlags {
            child,
            question,
            text,
            key,
        }) => BrokerRequest::ReplyToClarification {
            child,
            key,
            question,
            text,
        },
        Child::Monitor(MonitorFlags { child, after }) => BrokerRequest::Monitor { child, after },
        Child::Send(SendFlags { text, key }) => BrokerRequest::SendMessage { key, text },
        Child::Ask(AskFlags { text, key, seconds }) => {
            BrokerRequest::AskParent { key, text, seconds }
        }
        Child::Read(ReadFlags { after }) => BrokerRequest::ReadParentMessages { after },
        Child::Mcp => {
            child_tools::serve()?;
            return Ok(Answer::silent());
        }
    };
    match ask(&request)? {
        BrokerAnswer::Refused { verdict } => Err(verdict.into()),
        BrokerAnswer::Child(row) => {
            let exit = exit(&row);
            let text = render(&row);
            Ok(Answer::new(exit, row, text))
        }
        BrokerAnswer::Children { children } => {
            let text: String = children.iter().map(render).collect();
            Ok(Answer::data(children, text))
        }
        BrokerAnswer::Sent { message } => {
            let text = format!("sent {}\n", one_line(&message));
            Ok(Answer::data(message, text))
        }
        BrokerAnswer::Messages { messages } => {
            let text: String = messages.iter().map(written).collect();
            Ok(Answer::data(messages, text))
        }
        BrokerAnswer::Asked { .. } => Err(Failure::new(
            Code::Bug,
            "the broker answers another question",
        )),
        BrokerAnswer::Tools { tools } => {
            let text = tools.join("\n") + "\n";
            Ok(Answer::data(tools, text))
        }
    }
}

/// One message; what another agent wrote stays on one line.
fn written(row: &MessageRow) -> String {
    let (number, kind, id) = (row.number, row.kind, one_line(&row.id));
    format!("{number} {kind} {id}: {}\n", one_line(&row.text))
}

fn task(start: Start) -> ChildTask {
    ChildTask {
        key: start.key,
        task: start.task,
        read_only: start.read_only,
        write: start.write,
        net: start.net,
        model: start.model,
        tools: (!start.tool.is_empty()).then_some(start.tool),
        budget: ChildBudget {
            tokens: start.tokens,
            micro_usd: start.micro_usd,
            seconds: start.seconds,
            processes: start.processes,
        },
        children: start.children,
        messages: start.message,
        handoff: match (start.handoff, start.policy) {
            (Some(HandoffKind::SummaryOnly), Some(policy)) => AskedHandoff::SummaryOnly {
                summary: start.summary.unwrap_or_default(),
                max_tokens: start.summary_tokens,
                policy,
            },
            (Some(HandoffKind::SelectedRefs), Some(policy)) => AskedHandoff::SelectedRefs {
                refs: start.refs,
                policy,
            },
            (Some(HandoffKind::FullHistory), Some(policy)) => AskedHandoff::FullHistory { policy },
            (_, None) | (None, _) => AskedHandoff::None {},
        },
        lifecycle_policy: start.lifecycle_policy,
        redaction_policy: start.redaction_policy,
    }
}

/// No for a child that was refused, not now for one that still works.
fn exit(row: &ChildRow) -> Exit {
    match (&row.verdict, row.state.as_str()) {
        (Some(verdict), _) if !verdict.allow => Exit::No,
        (None, "lost") => Exit::No,
        _ => Exit::Yes,
    }
}

fn render(row: &ChildRow) -> String {
    let mut text = format!("{} {} `{}`", row.child, row.state, one_line(&row.key));
    if let Some(verdict) = &row.verdict {
        text += &format!(": {} {}", verdict.code, one_line(&verdict.reason));
    }
    text.push('\n');
    let files = [("patch", &row.patch), ("said", &row.said)];
    for (what, file) in files {
        if let Some(file) = file {
            text += &format!("  {what} {file}\n");
        }
    }
    for question in &row.questions {
        text += &format!("  asks {}", written(question));
    }
    text
}
