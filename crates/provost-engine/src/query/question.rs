//! The question of a run, as surfaces show it.

use provost_core::approval::Widening;
use provost_core::gate::command;
use provost_core::object::Oid;
use provost_core::question::Needs;
use provost_core::run::State;

/// Everything that the digest of a question covers.
#[derive(Debug)]
pub struct QuestionView {
    pub run_id: String,
    pub objective: String,
    pub contract_sha256: String,
    pub base_commit: Oid,
    pub target: Option<String>,
    /// The command line of the agent.
    pub agent: String,
    pub reviewer: Option<String>,
    /// How the contract exceeds what the policy permits without approval.
    pub widenings: Vec<Widening>,
    pub digest: String,
    /// What a yes needs.
    pub needs: Needs,
}

impl QuestionView {
    /// The question of a run; `None` if its contract needs no approval.
    pub fn of(state: &State) -> Option<Self> {
        let question = state.question()?;
        Some(Self {
            run_id: question.run_id.to_owned(),
            objective: state.opened.contract.inputs.spec.clone(),
            contract_sha256: question.contract_sha256.to_owned(),
            base_commit: question.base_commit.clone(),
            target: question.target.map(str::to_owned),
            agent: command::line(question.agent),
            reviewer: question.review.map(command::line),
            widenings: question.widenings.to_vec(),
            digest: question.digest(),
            needs: state.approval_needs(),
        })
    }
}
