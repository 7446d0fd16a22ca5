//! Asks a person about what a contract widens, and records the answer.

use serde_json::json;

use crate::approval::{self, Approval, Question, Rejection};
use crate::code::Code;
use crate::contract::{self, Problem};
use crate::question::{AnswerMeans, AnswerRefused, Needs};
use crate::run::fact::{Fact, Opened};
use crate::run::{Gate, Misplaced, Next, State};
use crate::time;
use crate::verdict::Verdict;
use crate::wording::counted;

impl Opened {
    /// Access to everything of the user is for a run of its own.
    pub(super) fn unfit_for_full_access(&self) -> Option<Problem> {
        let is_part = self.part.is_some() || self.child.is_some();
        (self.contract.has_full_access() && is_part).then(|| Problem {
            path: approval::FULL_ACCESS.to_owned(),
            code: Code::ContractInvalid,
            problem: "is for a run of its own, and this one is a part of a whole".to_owned(),
        })
    }
}

impl State {
    /// The question to a person about this run, if any.
    pub fn question(&self) -> Option<Question<'_>> {
        let opened = &self.opened;
        if opened.widenings.is_empty() {
            return None;
        }
        Some(Question {
            run_id: &self.names.run_id,
            contract_sha256: &opened.contract_sha256,
            base_commit: &opened.base_commit,
            target: opened.target.as_deref(),
            agent: &opened.agent,
            review: opened.review.as_ref().map(|review| review.argv.as_slice()),
            widenings: &opened.widenings,
        })
    }

    /// Whether its agent is to have the files of the user and any place.
    pub fn has_full_access(&self) -> bool {
        self.opened.contract.has_full_access() && self.opened.work.is_none()
    }

    /// What a yes to the question about this run needs.
    pub fn approval_needs(&self) -> Needs {
        if self.has_full_access() {
            return Needs::PersonKey;
        }
        self.opened.ask.needs
    }

    /// Whether `approval` was given as it has to be.
    pub fn may_approve(&self, approval: &Approval) -> Result<(), AnswerRefused> {
        if self.has_full_access() && approval.reason.trim().is_empty() {
            return Err(AnswerRefused::NoReason);
        }
        // The evidence of the case shows how that answer was given.
        if approval.how == AnswerMeans::Case && self.opened.part.is_some() {
            return Ok(());
        }
        let given = (approval.how, approval.signature.as_ref());
        let ask = &self.opened.ask;
        ask.admit(self.approval_needs(), given, &approval.statement())
    }

    /// Until when the agent has everything of the user, in milliseconds; `None` if it never does.
    pub fn full_access_until(&self) -> Option<i64> {
        if !self.has_full_access() {
            return None;
        }
        let until = self
            .approval
            .as_ref()
            .map(|approval| time::parse(&approval.until));
        Some(until.and_then(Result::ok).unwrap_or(i64::MIN))
    }

    pub fn is_waiting(&self) -> bool {
        self.next() == Next::Wait
    }

    /// The next step before the policy gate can judge a contract that follows every rule.
    pub(in crate::run) fn consent(&self) -> Option<Next> {
        // A contract that breaks a rule is refused without a question.
        if self.contract.is_err() || self.approval.is_some() {
            return None;
        }
        self.question()?;
        Some(if self.asked { Next::Wait } else { Next::Ask })
    }

    /// The event that records the question.
    pub fn ask(&self) -> Fact {
        let reason = |it: &crate::approval::Widening| format!("{} {}", it.path, it.problem);
        Fact::Asked {
            digest: self.question().map(|it| it.digest()).unwrap_or_default(),
            reasons: self.opened.widenings.iter().map(reason).collect(),
        }
    }

    /// Whether an approval has expired although the work has not started.
    pub fn consent_is_over(&self, now: i64) -> bool {
        let begun = self.gates.contains_key(&Gate::Policy) || !self.past.is_empty();
        !begun && self.approval.as_ref().is_some_and(|it| it.is_over(now))
    }

    /// The verdict for a run that waits for an answer.
    pub fn unanswered(&self) -> Option<Verdict> {
        let question = self.question().filter(|_| self.is_waiting())?;
        let count = counted(question.widenings.len(), "thing");
        let reason = format!("a person has to approve {count} that the contract asks for");
        let details = json!({ "digest": question.digest(), "findings": question.widenings,
                              "question": question });
        Some(Verdict::deny(Code::ApprovalNeeded, reason).with(details))
    }

    /// The policy gate: every rule is followed, and a person approved where required.
    pub(in crate::run) fn judge_policy(&self) -> Verdict {
        let verdict = contract::judge(&[]);
        // Whatever the first record says about widenings.
        let granted = self
            .approval
            .as_ref()
            .is_some_and(|it| self.may_approve(it).is_ok());
        if self.has_full_access() && !granted {
            let reason = "no person key has granted the files of the user";
            return Verdict::deny(Code::ApprovalNeeded, reason);
        }
        let Some(question) = self.question() else {
            return verdict;
        };
        match &self.approval {
            Some(approval) if approval.digest == question.digest() => {
                let count = counted(question.widenings.len(), "thing");
                let (rules, by) = (verdict.reason, &approval.by);
                Verdict::allow(format!("{rules}; {by} approved {count} beyond it"))
            }
            _ => Verdict::deny(
                Code::ApprovalNeeded,
                "no person has approved what the contract widens",
            ),
        }
    }

    /// Applies a question or an answer, if it is possible in this state.
    pub(in crate::run) fn apply_answer(&mut self, fact: Fact) -> Result<(), Misplaced> {
        let next = self.next();
        let digest = self.question().map(|it| it.digest()).unwrap_or_default();
        match fact {
            Fact::Asked { digest: asked, .. } if next == Next::Ask && asked == digest => {
                self.asked = true;
            }
            Fact::Approved(approval)
                if next == Next::Wait
                    && is_answer(&approval, &digest)
                    && self.may_approve(&approval).is_ok() =>
            {
                self.approval = Some(approval);
            }
            Fact::Expired {} if matches!(next, Next::Judge(_)) && self.approval.is_some() => {
                self.approval = None;
            }
            Fact::Rejected(rejection) if next == Next::Wait && rejection.digest == digest => {
                self.refusal = Some(rejected(&rejection));
            }
            _ => return Err(Misplaced),
        }
        Ok(())
    }
}

fn is_answer(approval: &Approval, digest: &str) -> bool {
    approval.digest == digest && time::parse(&approval.until).is_ok()
}

fn rejected(rejection: &Rejection) -> Verdict {
    let Rejection { by, reason, .. } = rejection;
    let words = match reason.as_str() {
        "" => format!("{by} rejected it"),
        reason => format!("{by} rejected it: {reason}"),
    };
    Verdict::deny(Code::ApprovalRejected, words)
        .with(json!({ "by": by, "digest": rejection.digest }))
}
