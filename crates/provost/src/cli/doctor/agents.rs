//! Says which agent programs are installed, and which login each would use.

use provost_core::agent::Adapter;
use provost_host::agent;
use provost_host::login::{self, LoginReport, Validity};

use super::Row;
use crate::cli::agent::{tested_note, version};

/// One row for each known program. A run needs none of them: any command can be an agent.
pub(super) fn rows() -> Vec<Row> {
    let plain = Adapter::programs().filter_map(Adapter::plain);
    plain.map(|plain| row(&login::resolved(&plain))).collect()
}

fn row(agent: &provost_core::agent::Adapted) -> Row {
    let name = format!("agent {}", agent.adapter);
    let installed = match agent::find(agent) {
        Ok(Some(installed)) => installed,
        Ok(None) => return Row::not_tried(name, "not installed"),
        Err(error) => {
            let row = Row::not_tried(name, "not installed");
            return row.remedy(error.hint.unwrap_or_default());
        }
    };
    let version = version(&installed, agent);
    let version = match tested_note(&version, agent) {
        Some(note) => format!("{version} ({note})"),
        None => version,
    };
    let login = LoginReport::of(agent);
    match login.as_ref().map(|login| (login, &login.validity)) {
        None => Row::ok(name, version),
        Some((_, Validity::Unusable { reason, hint })) => {
            Row::not_tried(name, format!("{version}, no login: {reason}")).remedy(hint)
        }
        Some((login, Validity::Usable | Validity::Until { .. })) => {
            Row::ok(name, format!("{version}, {}", login.text()))
        }
    }
}
