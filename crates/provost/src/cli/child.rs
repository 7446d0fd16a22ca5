//! `provost child` and `provost ask`: speak to the broker, inside a sandbox.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use provost_core::children::{
    BrokerAnswer, BrokerRequest, ChildBudget, ChildRow, ChildTask, LONGEST_MESSAGE,
};
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::json;
use provost_core::question::QuestionKind;
use provost_host::sandbox::{BROKER, BROKER_VARIABLE};

use crate::answer::{Answer, Failure, Outcome};
use crate::show::one_line;
use serde::Serialize;

/// How long the broker may take to answer anything but `wait`: it may have to capture a large tree.
const PATIENCE: Duration = Duration::from_mins(5);
/// How often the answer of a person is looked for.
const AGAIN: Duration = Duration::from_millis(500);
/// The largest answer.
const LARGEST_ANSWER: u64 = 1 << 20;

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
        BrokerAnswer::Asked { .. } => Err(Failure::new(
            Code::Bug,
            "the broker answers another question",
        )),
    }
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
    }
}

/// Ask a person for more than the contract gives.
#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Ask {
    /// Ask to write a path, with everything below it.
    Path(AskedFor),
    /// Ask to change a file that decides what passing means; it opens with the next fix.
    Oracle(AskedFor),
    /// Ask to change a file that instructs agents; it opens with the next fix.
    Governing(AskedFor),
    /// Ask to pass with fewer tests than before.
    FewerTests(AskReason),
}

#[derive(Args)]
pub(super) struct AskedFor {
    /// The path in the repository.
    path: String,

    #[command(flatten)]
    why: AskReason,
}

#[derive(Args)]
pub(super) struct AskReason {
    /// Why, for the person who answers.
    reason: String,

    /// How many seconds to wait for the answer.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
}

/// Asks, and waits for the answer of a person.
pub(super) fn ask_person(asked: Ask) -> Outcome {
    let (kind, content, why) = match asked {
        Ask::Path(AskedFor { path, why }) => (QuestionKind::Path, path, why),
        Ask::Oracle(AskedFor { path, why }) => {
            (QuestionKind::Widening, format!("oracle {path}"), why)
        }
        Ask::Governing(AskedFor { path, why }) => {
            (QuestionKind::Widening, format!("governing {path}"), why)
        }
        Ask::FewerTests(why) => (QuestionKind::Widening, "fewer-tests".to_owned(), why),
    };
    let request = BrokerRequest::Ask {
        kind,
        content,
        reason: why.reason,
    };
    let until = Instant::now() + Duration::from_secs(why.seconds);
    loop {
        match ask(&request)? {
            BrokerAnswer::Refused { verdict } => return Err(verdict.into()),
            BrokerAnswer::Asked { granted, words } => {
                let over = Instant::now() >= until;
                if granted || over {
                    let exit = if granted { Exit::Yes } else { Exit::NotNow };
                    let text = format!("{}\n", one_line(&words));
                    return Ok(Answer::new(exit, AskedAnswer { granted, words }, text));
                }
            }
            BrokerAnswer::Child(_) | BrokerAnswer::Children { .. } => {
                return Err(Failure::new(
                    Code::Bug,
                    "the broker answers another question",
                ));
            }
        }
        thread::sleep(AGAIN);
    }
}

#[derive(Serialize)]
struct AskedAnswer {
    granted: bool,
    words: String,
}

/// Sends one request, and reads its answer.
fn ask(request: &BrokerRequest) -> Result<BrokerAnswer, Failure> {
    let path = std::env::var_os(BROKER_VARIABLE).map_or_else(|| BROKER.into(), PathBuf::from);
    let mut stream = UnixStream::connect(&path).map_err(|_| {
        let asks = matches!(request, BrokerRequest::Ask { .. });
        let (code, field) = if asks {
            (
                Code::AskRefused,
                "lets the agent ask by `x_provost.may_ask`",
            )
        } else {
            (
                Code::ChildrenNotGranted,
                "grants children by `x_provost.children`",
            )
        };
        Failure::new(code, "this sandbox has no broker").hint(format!("a contract {field}"))
    })?;
    let wait = match request {
        BrokerRequest::Wait { seconds, .. } => PATIENCE + Duration::from_secs((*seconds).min(600)),
        _ => PATIENCE,
    };
    let mut text = serde_json::to_vec(request).map_err(|e| Failure::of(Code::Bug, &e))?;
    text.push(b'\n');
    if text.len() > LONGEST_MESSAGE {
        let reason = format!("a request has at most {LONGEST_MESSAGE} bytes");
        return Err(Failure::new(Code::ChildRequestInvalid, reason));
    }
    let lost = |error: &dyn std::error::Error| {
        let reason = format!("the broker did not answer: {error}");
        Failure::new(Code::HostFailed, reason).hint("ask again with the same key")
    };
    let mut answer = Vec::new();
    stream
        .set_read_timeout(Some(wait))
        .and_then(|()| stream.write_all(&text))
        .and_then(|()| stream.take(LARGEST_ANSWER).read_to_end(&mut answer))
        .map_err(|error| lost(&error))?;
    json::parse_as(&answer).map_err(|error| lost(&error))
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
    text
}
