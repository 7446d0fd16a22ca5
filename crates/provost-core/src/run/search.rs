//! The findings that the agent of a search leaves in its result, at `evidence_refs.search`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fact::ResultFile;
use crate::bundle::report::{Claim, Consensus, Source, one_or_more};
use crate::closed::closed;
use crate::contract::document::{Document, Role, TaskType};
use crate::json;

/// Where a result has them.
pub const PLACE: &str = "/evidence_refs/search";

closed! {
    /// What a search found, as its agent reports it.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct SearchFindings {
        /// The question as it was searched for.
        pub refined_prompt?: String,
        /// What was found; never empty.
        #[serde(deserialize_with = "one_or_more")]
        pub sources: Vec<Source>,
        /// The claims that were drawn from the sources.
        pub claims: Vec<Claim>,
        /// What was not examined.
        pub limitations: Vec<String>,
        /// Where sources agree.
        pub consensus?: Consensus,
    }
}

/// Whether `contract` asks for a search.
pub fn is_search(contract: &Document) -> bool {
    let role = contract.assigned_agent.role;
    matches!(role, Role::Searcher | Role::Researcher)
        || contract.task_type == Some(TaskType::Search)
}

/// The findings in `result`, if `contract` is a search and its agent left some.
pub fn findings(
    contract: &Document,
    result: &ResultFile,
) -> Option<Result<SearchFindings, json::ReadError>> {
    let ResultFile::Text(text) = result else {
        return None;
    };
    let value: Value = json::parse(text.as_bytes()).ok()?;
    let found = value.pointer(PLACE).filter(|_| is_search(contract))?;
    Some(json::from_value(found))
}
