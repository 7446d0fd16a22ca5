//! Decides the next step of a case.

use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::object::Oid;
use provost_core::verdict::Verdict;
use provost_core::wording::counted;

use super::blame::{Blame, PrefixResult, blame};
use super::{Drafted, Integration, Judging, State};
use crate::chain::{self, Chain, End};

#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// A planner has to write the contract.
    Plan,
    /// A planner has to divide the contract.
    Split,
    /// It has to be found out what a person must be asked.
    Ask,
    /// A person has to answer first.
    Approval,
    /// A part has to be started, taken over or waited for.
    Part(chain::Next),
    /// The results of the parts have to be merged.
    Integrate,
    /// A run has to judge the whole, which is this commit.
    Judge(Oid),
    /// The driver of this run died: it fixes a part, or judges the whole.
    TakeUp(String),
    /// The run that fixes a part or judges the whole has to end first.
    Wait,
    /// The commands of the whole have to run on this commit, which holds the first parts.
    TestPrefix(Oid),
    /// A part has to be fixed.
    Fix(FixOrder),
    /// Nothing is left to do.
    Finish(Verdict),
}

/// Which part is fixed, and from where.
#[derive(Debug, Clone, PartialEq)]
pub struct FixOrder {
    pub part: String,
    pub base_commit: Oid,
    /// Whether the base holds the earlier result of the part.
    pub keeps: bool,
    /// Why the whole was refused.
    pub refusal: Verdict,
}

impl State {
    /// The next step, if `jobs` parts may be active at once; `chain` are the parts, once there are
    /// any.
    pub fn next(&self, chain: Option<&Chain>, jobs: usize) -> Next {
        let refused = |drafted: &Drafted| match &drafted.document_sha256 {
            Some(_) => None,
            None => Some(Next::Finish(drafted.verdict.clone())),
        };
        let Some(planned) = &self.planned else {
            return Next::Plan;
        };
        if let Some(finish) = refused(planned) {
            return finish;
        }
        let Some(split) = &self.split else {
            return Next::Split;
        };
        if let Some(finish) = refused(split) {
            return finish;
        }
        let (Some(parts), Some(chain)) = (&self.parts, chain) else {
            return Next::Finish(Verdict::deny(
                Code::Bug,
                "the parts of the case are missing",
            ));
        };
        if let Some(next) = self.permission() {
            return next;
        }
        match parts.next(chain, jobs) {
            chain::Next::Test => self.whole(chain),
            chain::Next::Finish(verdict) if verdict.allow => self.whole(chain),
            chain::Next::Finish(verdict) => Next::Finish(verdict),
            next => Next::Part(next),
        }
    }

    /// What is missing before the parts may begin; `None` if nothing is.
    fn permission(&self) -> Option<Next> {
        let Some(question) = &self.asked else {
            return Some(Next::Ask);
        };
        if question.is_empty() {
            return None;
        }
        match &self.answered {
            None => Some(Next::Approval),
            Some(answer) if answer.approved => None,
            Some(answer) => {
                let by = &answer.by;
                let words = match answer.reason.as_str() {
                    "" => format!("rejected by {by}"),
                    reason => format!("rejected by {by}: {reason}"),
                };
                Some(Next::Finish(Verdict::deny(Code::ApprovalRejected, words)))
            }
        }
    }

    /// The next step once every part was accepted alone.
    fn whole(&self, chain: &Chain) -> Next {
        if let Some(fix) = self.fixes.last() {
            match &fix.end {
                None if self.abandoned => return Next::TakeUp(fix.start.run_id.clone()),
                None => return Next::Wait,
                Some(end) if end.accepted().is_none() => {
                    let reason = format!("the fix of `{}`: {}", fix.start.part, end.verdict.reason);
                    return Next::Finish(Verdict::deny(denial(&end.verdict), reason));
                }
                Some(_) => {}
            }
        }
        let Some(integration) = &self.integration else {
            return Next::Integrate;
        };
        if let Some(conflict) = &integration.conflict {
            let reason = format!(
                "`{}` and `{}` change the same lines: {} in conflict, `{}`",
                conflict.with.join("`, `"),
                conflict.part,
                counted(conflict.paths.len(), "path"),
                conflict.paths.first().map_or("", String::as_str)
            );
            let refusal = Verdict::deny(Code::ChainConflict, reason);
            let base = integration.merged.last().map(|it| &it.commit);
            return self.fix(&conflict.part, base, false, refusal);
        }
        let Some(last) = integration.merged.last() else {
            return Next::Finish(Verdict::deny(Code::Bug, "no part has a result"));
        };
        match &self.judging {
            None => Next::Judge(last.commit.clone()),
            Some(Judging::Running { run_id }) if self.abandoned => Next::TakeUp(run_id.clone()),
            Some(Judging::Running { .. }) => Next::Wait,
            Some(Judging::Ended(end)) => self.judged(chain, integration, end),
        }
    }

    /// The next step after the whole was judged.
    fn judged(&self, chain: &Chain, integration: &Integration, end: &End) -> Next {
        let verdict = &end.verdict;
        if end.accepted().is_some() {
            let parts = counted(chain.nodes.len(), "part");
            return Next::Finish(Verdict::allow(format!("{parts}, accepted together")));
        }
        let last = integration.merged.len().saturating_sub(1);
        if !matches!(verdict.code, Code::AcceptanceFailed | Code::ReviewRefused) {
            return Next::Finish(Verdict::deny(denial(verdict), verdict.reason.clone()));
        }
        if self.fixes.len() >= self.opened.retries as usize {
            return self.fix_merged(integration, last, verdict);
        }
        let Some(merged) = integration.merged.get(last) else {
            return Next::Finish(verdict.clone());
        };
        let mut refusal = verdict;
        if verdict.code == Code::ReviewRefused {
            // A fix has to pass the commands, so what breaks them is fixed before what the reviewer
            // refused.
            match self.prefixes.get(&merged.commit) {
                None => return Next::TestPrefix(merged.commit.clone()),
                // A reviewer judges all parts at once, and the last was made knowing the others.
                Some(tested) if tested.allow => {
                    return self.fix_merged(integration, last, verdict);
                }
                Some(tested) => refusal = tested,
            }
        }
        let prefix = |count: usize| match count.checked_sub(1) {
            None => Some(&self.opened.base_commit),
            Some(at) => integration.merged.get(at).map(|it| &it.commit),
        };
        let mut unclear = None;
        let known = |count: usize| {
            let verdict = self.prefixes.get(prefix(count)?)?;
            Some(match verdict.exit() {
                Exit::Yes => PrefixResult::Passes,
                _ => PrefixResult::Fails,
            })
        };
        for verdict in self.prefixes.values() {
            if !chain::is_final(verdict) {
                unclear = Some(verdict);
            }
        }
        match (unclear, blame(integration.merged.len(), known)) {
            // The machine, not the change, prevented a test: the case can be resumed.
            (Some(unclear), _) => Next::Finish(unclear.clone()),
            (None, Blame::Test(count)) => match prefix(count) {
                Some(commit) => Next::TestPrefix(commit.clone()),
                None => Next::Finish(refusal.clone()),
            },
            (None, Blame::Part(at)) => self.fix_merged(integration, at, refusal),
        }
    }

    /// Fixes the part that was merged at `at`, on top of the parts up to it.
    fn fix_merged(&self, integration: &Integration, at: usize, refusal: &Verdict) -> Next {
        match integration.merged.get(at) {
            Some(it) => self.fix(&it.part, Some(&it.commit), true, refusal.clone()),
            None => Next::Finish(refusal.clone()),
        }
    }

    fn fix(&self, part: &str, base: Option<&Oid>, keeps: bool, refusal: Verdict) -> Next {
        let rounds = self.fixes.len();
        if rounds >= self.opened.retries as usize {
            let fixes = counted(rounds, "fix");
            let reason = format!("{}, after {fixes}", refusal.reason);
            return Next::Finish(Verdict { reason, ..refusal });
        }
        Next::Fix(FixOrder {
            part: part.to_owned(),
            base_commit: base.unwrap_or(&self.opened.base_commit).clone(),
            keeps,
            refusal,
        })
    }
}

/// The code of a refusal, also where a verdict without a result says yes.
fn denial(verdict: &Verdict) -> Code {
    if verdict.allow {
        Code::Bug
    } else {
        verdict.code
    }
}
