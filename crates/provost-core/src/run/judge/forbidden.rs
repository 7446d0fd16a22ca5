//! Judges what the contract forbids: programs and forms of commands.

use serde_json::json;

use crate::code::Code;
use crate::contract::Contract;
use crate::contract::forbidden;
use crate::run::State;
use crate::run::fact::Opened;
use crate::verdict::Verdict;

impl Opened {
    /// Why a sandbox without mounts cannot keep the programs of the contract from running.
    pub(super) fn unrefusable(&self) -> Option<String> {
        let mut programs = forbidden::named_programs(&self.contract);
        let program = programs.next().filter(|_| self.refuses_programs)?;
        Some(format!(
            "cannot keep `{program}` of `forbidden_actions` from running: take tier `namespaces`"
        ))
    }
}

impl State {
    /// How the agent ended, and whether it used a form of command that the contract lists.
    pub(super) fn judge_agent(&self, contract: &Contract) -> Verdict {
        let verdict = super::judge_agent(self.agent.as_ref(), &self.opened, &contract.limits);
        let shapes = self.agent.as_ref().and_then(|agent| agent.shapes());
        let Some(shapes) = shapes.filter(|_| verdict.allow) else {
            return verdict;
        };
        let listed = forbidden::listed(&contract.document, shapes);
        let Some(first) = listed.first() else {
            return verdict;
        };
        let reason = format!("the agent used `{first}`, which `forbidden_actions` lists");
        Verdict::deny(Code::ForbiddenAction, reason).with(json!({ "shapes": shapes }))
    }
}
