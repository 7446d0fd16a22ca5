//! What persons gave the agents of a run beyond its contract, and what is asked of them now.

use provost_core::question::AgentQuestion;
use provost_core::run::State;
use serde::Serialize;

use crate::bundle::granted::PersonGrant;

#[derive(Debug, Serialize)]
pub struct GivenView {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<PersonGrant>,
    /// The questions of the agent that wait for an answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AgentQuestion>,
}

impl GivenView {
    pub fn of(state: &State) -> Self {
        Self {
            granted: PersonGrant::all(state),
            questions: state.open_questions().cloned().collect(),
        }
    }
}
