//! Asks the broker, from inside a sandbox.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use provost_core::children::{BrokerAnswer, BrokerRequest, LONGEST_MESSAGE};
use provost_core::code::Code;
use provost_core::json;
use provost_host::sandbox::{BROKER, BROKER_VARIABLE};

use crate::answer::Failure;

/// How long the broker may take to answer at once: it may have to capture a large tree.
const PATIENCE: Duration = Duration::from_mins(5);

/// The largest answer.
const LARGEST_ANSWER: u64 = 4 << 20;

/// Sends one request, and reads its answer.
pub fn ask(request: &BrokerRequest) -> Result<BrokerAnswer, Failure> {
    let path = std::env::var_os(BROKER_VARIABLE).map_or_else(|| BROKER.into(), PathBuf::from);
    let mut stream = UnixStream::connect(&path).map_err(|_| {
        let (code, field) = match request {
            BrokerRequest::Ask { .. } => (
                Code::AskRefused,
                "lets the agent ask by `x_provost.may_ask`",
            ),
            _ => (
                Code::ChildrenNotGranted,
                "grants children by `x_provost.children`",
            ),
        };
        Failure::new(code, "this sandbox has no broker").hint(format!("a contract {field}"))
    })?;
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
        .set_read_timeout(Some(longest_wait(request)))
        .and_then(|()| stream.write_all(&text))
        .and_then(|()| stream.take(LARGEST_ANSWER).read_to_end(&mut answer))
        .map_err(|error| lost(&error))?;
    json::parse_as(&answer).map_err(|error| lost(&error))
}

fn longest_wait(request: &BrokerRequest) -> Duration {
    match request {
        BrokerRequest::Wait { seconds, .. } | BrokerRequest::AskParent { seconds, .. } => {
            PATIENCE + Duration::from_secs((*seconds).min(600))
        }
        BrokerRequest::Start(_)
        | BrokerRequest::Cancel { .. }
        | BrokerRequest::List {}
        | BrokerRequest::Tools {}
        | BrokerRequest::Message { .. }
        | BrokerRequest::ReplyToClarification { .. }
        | BrokerRequest::Monitor { .. }
        | BrokerRequest::SendMessage { .. }
        | BrokerRequest::ReadParentMessages { .. }
        | BrokerRequest::Ask { .. } => PATIENCE,
    }
}
