//! `provost ask`: asks a person for more than the contract gives, inside a sandbox.

use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use provost_core::children::{BrokerAnswer, BrokerRequest};
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::question::QuestionKind;
use serde::Serialize;

use crate::answer::{Answer, Failure, Outcome};
use crate::broker_client;
use crate::show::one_line;

/// How often the answer of a person is looked for.
const AGAIN: Duration = Duration::from_millis(500);

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
pub(super) fn run(asked: Ask) -> Outcome {
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
        match broker_client::ask(&request)? {
            BrokerAnswer::Refused { verdict } => return Err(verdict.into()),
            BrokerAnswer::Asked { granted, words } => {
                let over = Instant::now() >= until;
                if granted || over {
                    let exit = if granted { Exit::Yes } else { Exit::NotNow };
                    let text = format!("{}\n", one_line(&words));
                    return Ok(Answer::new(exit, AskedAnswer { granted, words }, text));
                }
            }
            _ => {
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
