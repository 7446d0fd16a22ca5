//! Programs that were ended at a limit, and the next larger value of that limit.
//!
//! The program did not finish, so the sufficient value is unknown. The suggested value is twice the
//! old one, and the note says so.

use std::time::Duration;

use serde_json::{Value, json};

use provost_core::contract::limits::Asked;
use provost_core::json;
use provost_core::run::State;
use provost_core::run::fact::Ending;
use provost_core::run::judge::render_ending;

use super::{Clause, Row, Widening};

/// The longest time that a contract may ask for; see its rules.
const LONGEST: u64 = 7 * 24 * 3600;

/// The limit that ended the agent, if one did.
pub(super) fn of_agent(state: &State) -> Option<Row> {
    let agent = state.agent.as_ref()?;
    let row = of(state, agent.ending)?;
    Some(Row {
        about: Some("the agent".to_owned()),
        problem: render_ending(agent.ending),
        ..row
    })
}

/// The limit behind `ending`, if there is one.
pub(super) fn of(state: &State, ending: Ending) -> Option<Row> {
    let contract = state.contract.as_ref().ok()?;
    let limits = &contract.limits;
    let seconds = |time: Duration| time.as_secs();
    let (name, value) = match ending {
        Ending::TimedOut => return Some(time(seconds(contract.time_limit))),
        Ending::OutputLimit => ("output_bytes", limits.output_bytes),
        Ending::MemoryLimit => ("memory_bytes", limits.memory_bytes),
        Ending::ProcessLimit => ("processes", limits.processes),
        Ending::DiskLimit => ("disk_bytes", limits.disk_bytes),
        Ending::InodeLimit => ("inodes", limits.inodes),
        Ending::NoProgress => ("no_progress_sec", seconds(limits.no_progress)),
        Ending::Exited(_)
        | Ending::Signalled(_)
        | Ending::Overspent
        | Ending::NoModel
        | Ending::Dismissed
        | Ending::Cancelled
        | Ending::LeaseLost
        | Ending::NotStarted => return None,
    };
    let more = value.saturating_mul(2);
    let asked: Option<Asked> = json::from_value(json!({ name: more })).ok();
    let fits = asked.is_some_and(|asked| asked.flaws().is_empty());
    let pointer = format!("/x_provost/limits/{name}");
    Some(row(pointer, json!(value), fits.then(|| json!(more))))
}

fn time(value: u64) -> Row {
    let more = value.saturating_mul(2).min(LONGEST);
    let pointer = "/timeout_retry/timeout_sec".to_owned();
    row(pointer, json!(value), (more > value).then(|| json!(more)))
}

fn row(pointer: String, value: Value, more: Option<Value>) -> Row {
    let note = match more {
        Some(_) => "the sufficient value is unknown; this is twice what it had",
        None => "it has as much as a contract may grant",
    };
    let widening = more.map(|more| Widening::set(&pointer, more));
    Row {
        about: None,
        rule: None,
        problem: String::new(),
        contract: Some(Clause::new(pointer, value)),
        widening: widening.into_iter().collect(),
        note: Some(note.to_owned()),
    }
}
