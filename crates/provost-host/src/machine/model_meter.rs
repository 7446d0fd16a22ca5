//! Makes the meter of an agent's model: with its limits, its rows in the bundle, and its bodies if
//! they are recorded.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use provost_core::agent::Adapted;
use provost_core::code::Code;
use provost_engine::ports::PortError;
use provost_model_record::store::{BodyStore, MOST};

use super::sandboxed_command::SandboxedCommand;
use super::{host, model_replay};
use crate::git::Repository;
use crate::proxy::TokenMeter;
use crate::spend::{self, SpendFiles};
use crate::user_state::UserState;

impl SandboxedCommand<'_> {
    /// The meter of the model of `agent`, if its place is known; its rows are the file `rows` of the
    /// bundle. What it spends counts for the run and the repository `spender`.
    pub(super) fn meter(
        &self,
        agent: &Adapted,
        rows: &str,
        spender: (&str, &Repository),
    ) -> Result<Option<Arc<TokenMeter>>, PortError> {
        let Some(meter) = TokenMeter::of(agent) else {
            return Ok(None);
        };
        let meter = with_book(meter, agent, spender)?;
        let file = File::create(self.place(rows)?);
        let file = file.map_err(host("write the rows about requests to models"))?;
        let mut meter = meter.with_log(file, self.known.clone());
        if agent.grants.record {
            meter = meter.with_bodies(bodies(self.bundle, rows)?);
        }
        Ok(Some(Arc::new(meter)))
    }
}

/// The meter, which records what is spent in the state of the user.
fn with_book(
    gauge: TokenMeter,
    agent: &Adapted,
    (run, repo): (&str, &Repository),
) -> Result<TokenMeter, PortError> {
    let limits = spend::limits_of(agent.grants.limits)?;
    let top = repo.top().unwrap_or_else(|| repo.common_dir());
    let state = UserState::find(top).and_then(|state| Ok(state.made()?.to_owned()));
    match state {
        Ok(state) => {
            let book = SpendFiles::at(&state, run, agent.adapter.name(), limits);
            Ok(gauge.with_book(Arc::new(book), limits))
        }
        // Nothing is limited by what was spent before.
        Err(_) if limits.is_open() => Ok(gauge),
        Err(error) => Err(PortError::new(Code::HostFailed, error.to_string())),
    }
}

/// Where the bodies that belong to the rows `rows` of `bundle` are kept.
fn bodies(bundle: &Path, rows: &str) -> Result<BodyStore, PortError> {
    let directory = model_replay::bodies_of(bundle)?;
    let store = BodyStore::open(&directory, rows, MOST);
    store.map_err(host("make the directory for bodies of models"))
}
