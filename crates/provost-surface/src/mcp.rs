//! Serves MCP on stdin and stdout: one JSON-RPC message per line.
//!
//! Implemented without the official SDK, because four methods over a pipe need neither an async
//! runtime nor its forty crates.
//!
//! # Invariants
//!
//! - A line is bounded; what is no request is answered with an error, and the next line is read.
//! - Short requests are answered while a long one is at work; long ones are answered in order.
//! - Everything that was read is answered, even after the input has ended.
//! - A separate thread renews the leases, whatever the rest is doing.
//! - Only answers go to stdout.

pub(crate) mod rpc;

use std::io;
use std::sync::PoisonError;
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Duration;

use provost_change::next_step::Audience;
use provost_change::tools::{self, Request, ToolDescription};
use provost_core::lease::Owner;
use provost_host::clock;
use serde_json::{Map, Value};

use rpc::{BUSY, CallResult, INVALID_PARAMS, Out, RpcServer};

use crate::answer::Failure;
use crate::change::{ChangeSession, Identity, Kept, Trouble};
use crate::{session, stores};

/// How many requests may wait before reading stops.
const WAITING: usize = 256;

/// How often leases are renewed; the shortest lease is a minute.
const BEAT: Duration = Duration::from_secs(15);

/// A message to the worker thread.
enum Work {
    Call {
        id: Value,
        tool: String,
        arguments: Map<String, Value>,
    },
    Name(String),
}

/// Serves until stdin ends.
pub fn serve() -> Result<(), Failure> {
    let owner = session::owner()?;
    let mut session = ChangeSession::new(Identity::Process(owner.clone()), "unknown client");
    session.bind();
    beat(owner, session.registries());
    let out = Out::stdout();
    let (work, queue) = mpsc::sync_channel(WAITING);
    let worker = thread::Builder::new().name("tools".to_owned()).spawn({
        let out = out.clone();
        move || serve_tools(session, &queue, &out)
    });
    let worker = worker.map_err(|error| {
        Failure::new(
            provost_core::code::Code::HostFailed,
            format!("no thread: {error}"),
        )
    })?;
    let server = ChangeTools { work };
    rpc::serve(&mut io::stdin().lock(), &server, &out);
    drop(server);
    // All requests are answered before the end; intents that are left can be recovered.
    let _ = worker.join();
    Ok(())
}

/// The tools of controlled changes; one thread answers their calls.
struct ChangeTools {
    work: SyncSender<Work>,
}

impl RpcServer for ChangeTools {
    fn instructions(&self) -> &'static str {
        "Analyse the repository, start a controlled change, edit only when edit_allowed is true, \
         analyse again, then finish with every file you touched."
    }

    fn named(&self, client: String) {
        let _ = self.work.send(Work::Name(client));
    }

    fn tools(&self) -> Vec<ToolDescription> {
        tools::list()
    }

    fn call(&self, id: &Value, tool: &str, arguments: Map<String, Value>, out: &Out) {
        if !tools::is_known(tool) {
            out.refuse(id, INVALID_PARAMS, "there is no such tool");
            return;
        }
        let asked = Work::Call {
            id: id.clone(),
            tool: tool.to_owned(),
            arguments,
        };
        // If too many requests wait, no more are read before one of them is answered.
        if self.work.send(asked).is_err() {
            out.refuse(id, BUSY, "the server ends");
        }
    }
}

/// Answers calls, one after the other.
fn serve_tools(mut session: ChangeSession, queue: &mpsc::Receiver<Work>, out: &Out) {
    for work in queue {
        match work {
            Work::Name(label) => session.rename(label),
            Work::Call {
                id,
                tool,
                arguments,
            } => {
                let asked = Request::read(&tool, &arguments).map_err(Trouble::from);
                let answer = asked
                    .and_then(|request| session.call(&request))
                    .and_then(|answer| Ok(answer.json(Audience::Tool)?));
                let result = match answer {
                    Ok(value) => CallResult::of(value),
                    Err(trouble) => {
                        let text = serde_json::to_string(&trouble.payload());
                        CallResult::failed(text.unwrap_or_default())
                    }
                };
                out.answer(&id, result);
            }
        }
    }
}

/// Renews the leases of this process as long as it lives.
fn beat(owner: Owner, registries: Kept) {
    let renew = move || {
        loop {
            thread::sleep(BEAT);
            let paths = registries
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            for path in paths {
                // A registry that cannot be reached is tried again; leases last longer.
                if let Ok(mut registry) = stores::intent_registry(&path) {
                    let _ = registry.renew_all(&owner, clock::now_millis());
                }
            }
        }
    };
    // Without this thread, requests still renew leases.
    let _ = thread::Builder::new().name("heart".to_owned()).spawn(renew);
}
