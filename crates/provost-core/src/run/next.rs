//! Decides the next step of a run.

use super::fact::{Cancel, Capture, Ending, Side};
use super::{Gate, Site, State, Step};
use crate::code::Code;
use crate::contract::document::AcceptMode;
use crate::verdict::Verdict;

/// How often an agent may be lost with its driver before the run fails.
const LOST_AGENTS: u32 = 3;

#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Record the question to a person.
    Ask,
    /// A person was asked and has not answered; nothing can be done.
    Wait,
    Do(Step),
    Judge(Gate),
    /// Record that another attempt is to fix what this gate refused.
    Trigger(Gate),
    /// Record that no further attempt is left.
    Exhaust {
        /// How many fix attempts there were.
        fixes: u32,
    },
    /// Record that the agent died with its driver.
    Lose,
    /// All gates have decided; record this verdict.
    Finish(Verdict),
    /// Everything is recorded; only the seal remains.
    Seal,
}

impl State {
    pub fn next(&self) -> Next {
        if self.finished.is_some() {
            return Next::Seal;
        }
        match self.pending {
            Some(Step::Agent) => return Next::Lose,
            Some(step) => return Next::Do(step),
            None => {}
        }
        if let Some(refusal) = &self.refusal {
            // An agent that failed may also have left its scope, and the report should say both.
            let left = self.captured.as_ref().is_some_and(Capture::holds_anything);
            if left && !self.gates.contains_key(&Gate::Diff) {
                return Next::Judge(Gate::Diff);
            }
            return self
                .next_attempt()
                .unwrap_or_else(|| self.wind_up(refusal.clone()));
        }
        if self.site == Site::Abandoned {
            return Next::Do(Step::Clean);
        }
        if self.lost >= LOST_AGENTS {
            return self.wind_up(Verdict::deny(
                Code::AgentLost,
                format!("the agent was lost with its driver {LOST_AGENTS} times"),
            ));
        }
        self.advance()
    }

    /// The next step towards a fix attempt, if a refusal may be fixed.
    fn next_attempt(&self) -> Option<Next> {
        let gate = self.fixable()?;
        let (most, fixes) = (self.most_fixes(), self.past.len());
        if most == 0 || self.exhausted {
            return None;
        }
        if self.trigger.is_none() {
            return Some(match u32::try_from(fixes) {
                Ok(_) if fixes < most => Next::Trigger(gate),
                Ok(fixes) => Next::Exhaust { fixes },
                Err(_) => return None,
            });
        }
        Some(Next::Do(match self.site {
            // A ref keeps the work.
            Site::Workspace | Site::Abandoned => Step::Clean,
            Site::Empty | Site::Begun if self.fence.is_none() => Step::Lease,
            Site::Empty | Site::Begun => Step::Fix,
        }))
    }

    /// Whether the run publishes nothing, because its contract is for an audit.
    fn audits(&self) -> bool {
        self.contract.as_ref().is_ok_and(|contract| contract.audit)
    }

    /// Whether every gate has decided about a run that publishes nothing: an audit, or a child,
    /// whose work its parent applies and the acceptance commands of its parent judge.
    fn is_judged(&self) -> bool {
        let judged = |gate| self.gates.contains_key(&gate);
        match &self.opened.child {
            Some(_) => judged(Gate::Diff),
            None => self.audits() && judged(Gate::Tree),
        }
    }

    /// Whether tests that fail on the base may fail, and some command does fail there.
    fn excuses(&self) -> bool {
        let mode = self.contract.as_ref().map(|contract| contract.accept_mode);
        let base = self.tests.get(&Side::Base).into_iter();
        let mut ran = base.flat_map(|base| &base.commands);
        mode.is_ok_and(|mode| mode == AcceptMode::NoRegression)
            && ran.any(|ran| ran.ending != Ending::Exited(0))
    }

    /// The end of a run: save the work on disk and remove the workspace, then finish with `answer`.
    fn wind_up(&self, answer: Verdict) -> Next {
        if self.site == Site::Empty {
            // The answer names who requested the cancellation.
            let whose = self
                .cancel
                .as_ref()
                .filter(|_| answer.code == Code::Cancelled);
            Next::Finish(whose.map_or(answer, Cancel::verdict))
        } else {
            Next::Do(Step::Clean)
        }
    }

    /// The normal order: the first step that is not done yet.
    fn advance(&self) -> Next {
        let judged = |gate| self.gates.contains_key(&gate);
        let ran = |side| self.tests.contains_key(&side);
        // Work that exists already needs no sandbox before its changes are known to be in scope.
        let has_agent = self.opened.work.is_none();
        if !judged(Gate::Policy) {
            self.consent().unwrap_or(Next::Judge(self.first_gate()))
        } else if self.fence.is_none() {
            Next::Do(Step::Lease)
        } else if self.published.is_some() || self.is_judged() {
            self.wind_up(Verdict::allow("every gate passed"))
        } else if has_agent && self.layers.is_none() && !self.opened.prepare.is_empty() {
            Next::Do(Step::Prepare)
        } else if has_agent && self.site != Site::Workspace {
            Next::Do(Step::Workspace)
        } else if has_agent && self.tested.is_none() {
            Next::Do(Step::Selftest)
        } else if has_agent && !judged(Gate::Sandbox) {
            Next::Judge(Gate::Sandbox)
        } else if has_agent && self.agent.is_none() {
            Next::Do(Step::Agent)
        } else if self.captured.is_none() {
            Next::Do(Step::Capture)
        } else if has_agent && !judged(Gate::Agent) {
            Next::Judge(Gate::Agent)
        } else if has_agent && !judged(Gate::Output) {
            Next::Judge(Gate::Output)
        } else if !judged(Gate::Diff) {
            Next::Judge(Gate::Diff)
        } else if self.layers.is_none() && !self.opened.prepare.is_empty() {
            Next::Do(Step::Prepare)
        } else if self.tested.is_none() {
            Next::Do(Step::Selftest)
        } else if !judged(Gate::Sandbox) {
            Next::Judge(Gate::Sandbox)
        } else if self.opened.review.is_some() && self.reviewed.is_none() {
            Next::Do(Step::Review)
        } else if self.opened.review.is_some() && !judged(Gate::Review) {
            Next::Judge(Gate::Review)
        } else if !ran(Side::Base) {
            Next::Do(Step::BaseAcceptance)
        } else if self.excuses() && !ran(Side::BaseAgain) {
            Next::Do(Step::BaseAgain)
        } else if !ran(Side::Candidate) {
            Next::Do(Step::Acceptance)
        } else if !judged(Gate::Acceptance) {
            Next::Judge(Gate::Acceptance)
        } else if !judged(Gate::Tree) {
            Next::Judge(Gate::Tree)
        } else {
            Next::Do(self.uncrossed().unwrap_or(Step::Publish))
        }
    }
}
