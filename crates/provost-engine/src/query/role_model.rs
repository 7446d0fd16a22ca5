//! Read models of roles: how a contract was bound to an agent, for a run and for a case.
//!
//! They are derived from contracts and decide nothing; each says so.

use provost_core::bundle::report::{BindingAuthority, ExecutionAuthority, RoleBinding};
use provost_core::run::State;
use serde::Serialize;

use super::archive::RunArchive;
use crate::bundle::compose::role_binding;
use crate::case::CaseReport;

/// `workflow_case_read_model`: the binding of the latest run of a case.
#[derive(Debug, Serialize)]
pub struct WorkflowCaseModel {
    pub authority: BindingAuthority,
    pub execution_authority: ExecutionAuthority,
    pub case_id: String,
    /// The run that it was derived from; absent as long as no run can be read.
    pub source_run_id: Option<String>,
    pub role_binding_summary: Option<RoleBinding>,
}

impl WorkflowCaseModel {
    pub fn of(archive: &dyn RunArchive, report: &CaseReport<'_>) -> Self {
        let parts = report.parts.iter().flat_map(|part| &part.runs);
        let runs = parts.chain(&report.whole).map(|run| run.run_id);
        // Names of runs sort by time.
        let read = |run: &str| Some((run.to_owned(), super::state(archive, run).ok()?));
        let latest: Option<(String, State)> = runs.max().and_then(read);
        Self {
            authority: BindingAuthority::ContractDerivedReadModel,
            execution_authority: ExecutionAuthority::TaskContract,
            case_id: report.case_id.to_owned(),
            role_binding_summary: latest.as_ref().map(|(_, state)| role_binding(state)),
            source_run_id: latest.map(|(run, _)| run),
        }
    }
}
