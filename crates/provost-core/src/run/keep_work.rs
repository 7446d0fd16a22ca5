//! Decides whether the captured work of a refused run may be judged again without its agent.

use super::fact::Capture;
use super::{Gate, State};
use crate::code::Code;

/// The refusals after which work may be judged again, by the gate that refused. After any other
/// one it may not: a wider contract would not help, or what was measured cannot be relied on.
pub const JUDGED_AGAIN: &[(Gate, Code)] = &[
    (Gate::Diff, Code::DiffRefused),
    (Gate::Review, Code::ReviewRefused),
    (Gate::Review, Code::ReviewInvalid),
    (Gate::Review, Code::TokenLimit),
    (Gate::Review, Code::ModelUnauthorized),
    (Gate::Review, Code::ModelUnreachable),
    (Gate::Review, Code::LoginUnusable),
    (Gate::Acceptance, Code::AcceptanceFailed),
    (Gate::Acceptance, Code::AcceptanceTimeout),
    (Gate::Acceptance, Code::TestsFewer),
    (Gate::Acceptance, Code::TestsUnnamed),
    (Gate::Acceptance, Code::MemoryLimit),
    (Gate::Acceptance, Code::ProcessLimit),
    (Gate::Acceptance, Code::DiskLimit),
    (Gate::Acceptance, Code::NoProgress),
];

/// The gates about an agent, which has to have passed them.
const OF_AGENT: [Gate; 3] = [Gate::Sandbox, Gate::Agent, Gate::Output];

impl State {
    /// The work that may be judged again, or why it may not, in words that follow the run's name.
    pub fn kept_work(&self) -> Result<&Capture, String> {
        let refusal = match &self.finished {
            None => return Err("has not ended".to_owned()),
            Some(verdict) if verdict.allow => return Err("was accepted".to_owned()),
            Some(refusal) => refusal,
        };
        let code = refusal.code;
        let by = self.gates.iter().find(|(_, verdict)| *verdict == refusal);
        let Some((gate, _)) = by else {
            return Err(format!("ended with {code}, and no gate refused its work"));
        };
        let passed = |gate: &Gate| self.gates.get(gate).is_some_and(|it| it.allow);
        let unmeasured = OF_AGENT.iter().find(|gate| !passed(gate));
        match (&self.captured, unmeasured) {
            _ if !JUDGED_AGAIN.contains(&(*gate, code)) => Err(format!(
                "was refused by the {} gate with {code}",
                gate.name()
            )),
            (None, _) => Err("captured no work".to_owned()),
            (Some(_), Some(gate)) if self.opened.work.is_none() => {
                Err(format!("did not pass the {} gate", gate.name()))
            }
            (Some(captured), _) => Ok(captured),
        }
    }
}
