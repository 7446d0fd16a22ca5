//! The gates of a run: each judges from the facts of the run alone.
//!
//! Every gate fails closed: a fact that is not there is a refusal.

mod acceptance;
mod change;
mod command_policy;
mod consent;
mod forbidden;
mod output;
mod overspent;
mod program;
mod question;
mod read_only_agent;
mod regression;
mod review;
mod runtime;
mod tools;
mod widened;

pub(super) use acceptance::judge_stopped;
pub use acceptance::{compare, judge_tests, optional_red, render_ending};
pub use output::{AgentResult, Claim, Complaint, NO_RESULT};
pub use program::{Lack, judge_programs};
pub use question::{QuestionStanding, QuestionState};
pub use read_only_agent::ReadOnlyAgent;
pub use regression::judge_regression;
pub use widened::{AskedWidening, GrantedWidening};

use overspent::overspent;
use serde_json::json;

use super::fact::{AgentRun, Ending, Opened, Probe, Side, TestRun, WorkspaceChoice};
use super::{Gate, State};
use crate::agent::Adapted;
use crate::agent::sum::End;
use crate::change::{Change, Finding};
use crate::code::Code;
use crate::contract::additions::AdditionsFrom;
use crate::contract::check::{Purpose, Rules};
use crate::contract::document::{AcceptMode, Document};
use crate::contract::limits::Limits;
use crate::contract::{self, Contract, Problem};
use crate::gate::command::{self, Trust};
use crate::gate::diff;
use crate::net::credential::Credential;
use crate::size;
use crate::tier::Tier;
use crate::verdict::Verdict;
use crate::wording::counted;
use change::{audited, missing_files};
use command_policy::policy;

impl Opened {
    /// Every secret that the proxy adds in this run, for the agent if one starts, or for the
    /// reviewer.
    pub fn brokered(&self) -> Vec<&Credential> {
        let review = self.review.iter().flat_map(|review| &review.credentials);
        let agent = self.credentials.iter().filter(|_| self.work.is_none());
        agent.chain(review).collect()
    }

    /// What the rules say about the contract, in this repository and with this agent.
    pub fn judge(&self) -> Verdict {
        let problems = self.resolve().err().unwrap_or_default();
        contract::judge(&problems)
    }

    /// Whether the contract lets the agent ask for children.
    pub fn grants_children(&self) -> bool {
        let extension = self.contract.x_provost.as_ref();
        extension.is_some_and(|extension| extension.children.is_some())
    }

    /// What the run is held to, or what is wrong with its contract.
    pub fn resolve(&self) -> Result<Contract, Vec<Problem>> {
        self.resolve_document(self.contract.clone())
    }

    /// What the run would be held to by `document`.
    pub(super) fn resolve_document(&self, document: Document) -> Result<Contract, Vec<Problem>> {
        let policy = policy().and_then(|policy| policy.with(self.commands.clone()));
        let policy = policy.map_err(|error| {
            vec![Problem {
                path: "/acceptance_tests".to_owned(),
                code: Code::CommandRefused,
                problem: error.to_string(),
            }]
        })?;
        let trust = if self.typed {
            Trust::TypedByPerson
        } else {
            Trust::FromFile
        };
        let rules = Rules {
            policy: &policy,
            trust,
            purpose: Purpose::Run,
            additions: AdditionsFrom::Record(&self.additions),
        };
        let contract = contract::resolve_by(document, &rules)?;
        let mut problems = self.ungiven(&contract.document);
        problems.extend(self.unlike(&contract.document));
        problems.extend(self.unfit_for_full_access());
        if !problems.is_empty() {
            return Err(problems);
        }
        let extension = contract.document.x_provost.as_ref();
        if !self.loopback && extension.and_then(|it| it.loopback) == Some(true) {
            let problem = "asks for loopback, and the policy turns loopback off: `loopback = false` \
                           under `[sandbox]` in provost.toml";
            return Err(vec![Problem {
                path: "/x_provost/loopback".to_owned(),
                code: Code::ContractInvalid,
                problem: problem.to_owned(),
            }]);
        }
        if let Some(lack) = self.lacks(contract.tier) {
            return Err(vec![Problem {
                path: "/x_provost/tier".to_owned(),
                code: Code::ContractInvalid,
                problem: format!("(`{}`) {lack}", contract.tier),
            }]);
        }
        Ok(contract.under(&self.limits))
    }

    /// What sandboxes of `tier` lack for the policy and the agent of this run.
    fn lacks(&self, tier: Tier) -> Option<String> {
        let least = self.least_tier;
        if tier < least {
            return Some(format!(
                "is weaker than the policy of the repository accepts: `least_tier` under \
                 `[sandbox]` in provost.toml is `{least}`"
            ));
        }
        if tier == Tier::Namespaces {
            return None;
        }
        // It has no mounts and no network of its own.
        if let Some(lack) = self.unrefusable() {
            return Some(lack);
        }
        if !self.prepare.is_empty() {
            let lack = "cannot hold what the `[[prepare]]` steps of provost.toml make: take tier \
                        `namespaces`";
            return Some(lack.to_owned());
        }
        if self.workspace == WorkspaceChoice::Overlay {
            let lack = "cannot hold a workspace of kind `overlay`: take tier `namespaces`, or kind \
                        `copy`";
            return Some(lack.to_owned());
        }
        let reviewer = self
            .review
            .as_ref()
            .and_then(|review| review.adapted.as_ref());
        let adapted = self.adapted.as_ref().or(reviewer)?;
        Some(format!(
            "has no network, and the agent `{}` cannot work without its model: take tier \
             `namespaces`",
            adapted.adapter
        ))
    }
}

impl State {
    /// What `gate` says about the facts so far.
    pub fn judge(&self, gate: Gate) -> Verdict {
        let contract = match &self.contract {
            Ok(contract) => contract,
            Err(problems) => return contract::judge(problems),
        };
        match gate {
            Gate::Integrated => tools::judge_integrated(&contract.document),
            Gate::Sampling => Verdict::allow("no server may ask the model of the agent"),
            Gate::Policy => self.judge_policy(),
            Gate::Sandbox => self.judge_sandbox(contract.tier),
            Gate::Agent => self.judge_agent(contract),
            Gate::Output => self.judge_output(contract),
            Gate::Diff => self.judge_diff(contract),
            Gate::Review => self.judge_review(),
            Gate::Acceptance => {
                let tests = |side| self.tests.get(&side);
                self.judge_round(tests(Side::Candidate), tests(Side::Base), contract)
            }
            Gate::Tree => self.judge_tree(),
        }
    }

    /// Whether the acceptance commands in `run` show what the contract asks for; `before` is the
    /// round whose tests must still run.
    pub fn judge_round(
        &self,
        run: Option<&TestRun>,
        before: Option<&TestRun>,
        contract: &Contract,
    ) -> Verdict {
        match contract.accept_mode {
            AcceptMode::Pass => judge_tests(run, before, contract),
            AcceptMode::NoRegression => {
                let base = [Side::Base, Side::BaseAgain].map(|side| self.tests.get(&side));
                judge_regression(run, before, base, contract)
            }
        }
    }

    fn judge_sandbox(&self, tier: Tier) -> Verdict {
        let Some(test) = &self.tested else {
            return Verdict::deny(Code::SandboxLeaks, "the sandbox was not tested");
        };
        if test.tier != tier.name() {
            let reason = format!("the contract asks for tier `{tier}`, not `{}`", test.tier);
            return Verdict::deny(Code::SandboxUnavailable, reason);
        }
        let excused = |attempt: &Probe| tier.excuses(test.processes, &attempt.name);
        let leaks: Vec<String> = test
            .attempts()
            .filter(|(_, attempt)| !attempt.held && !excused(attempt))
            .map(|(place, attempt)| format!("{} ({place})", attempt.name))
            .collect();
        // Without an agent there is one sandbox.
        let agent = Some(&test.agent).filter(|_| self.opened.work.is_none());
        let mut tested = agent.into_iter().chain([&test.acceptance]);
        let whole = tested.all(|probed| !probed.attempts.is_empty());
        if test.held && leaks.is_empty() && whole {
            let blocked = counted(test.attempts().count(), "escape attempt");
            let holes = tier.holes(test.processes).len();
            return Verdict::allow(match holes {
                0 => format!("sandbox checked: {blocked} blocked"),
                holes => format!(
                    "sandbox checked: {blocked} blocked, except by {} of tier `{tier}`",
                    counted(holes, "declared hole")
                ),
            });
        }
        let reason = if leaks.is_empty() {
            "the self-test of the sandbox is incomplete".to_owned()
        } else {
            format!("the sandbox does not hold: {}", leaks.join(", "))
        };
        Verdict::deny(Code::SandboxLeaks, reason).with(json!({ "leaks": leaks }))
    }

    fn judge_diff(&self, contract: &Contract) -> Verdict {
        let Some(captured) = &self.captured else {
            return Verdict::deny(Code::DiffRefused, "nothing was captured");
        };
        let work = self.opened.work.as_ref();
        if work.is_some_and(|work| work.tree != captured.tree) {
            let reason = "the captured tree is not the one that the run has to judge";
            return Verdict::deny(Code::TreeChanged, reason);
        }
        let verdict = self.judge_changes(contract, &captured.changes, &captured.findings);
        if contract.audit {
            return audited(verdict, &captured.changes);
        }
        if verdict.allow
            && let Some(missing) = missing_files(contract, &captured.changes)
        {
            return missing;
        }
        if verdict.allow && captured.changes.is_empty() {
            let reason = match work {
                None => "the agent made no changes",
                Some(_) => "the work has the same files as its base",
            };
            return Verdict::deny(Code::EmptyDiff, reason);
        }
        verdict
    }

    /// Whether a change keeps to the contract, and to the policy the run was opened with.
    pub fn judge_changes(
        &self,
        contract: &Contract,
        changes: &[Change],
        findings: &[Finding],
    ) -> Verdict {
        let rules = diff::Rules {
            scope: &contract.scope,
            forbid: &contract.forbid,
            permit: &contract.permit,
            extra: &self.opened.protect,
        };
        let facts = diff::Facts {
            changes,
            findings,
            ..diff::Facts::default()
        };
        diff::judge(&facts, &rules)
    }

    fn judge_tree(&self) -> Verdict {
        let (Some(captured), Some(run)) = (&self.captured, self.tests.get(&Side::Candidate)) else {
            return Verdict::deny(Code::TreeChanged, "the acceptance commands did not run");
        };
        if run.tree != captured.tree {
            return Verdict::deny(
                Code::TreeChanged,
                "the commands ran on another tree than the captured one",
            );
        }
        judge_unaltered(run)
    }
}

/// Whether the acceptance commands left the tree they judged as it was.
pub fn judge_unaltered(run: &TestRun) -> Verdict {
    if run.altered.is_empty() {
        return Verdict::allow("tree unchanged by the acceptance commands");
    }
    let reason = format!(
        "the acceptance commands changed {} of the tree",
        counted(run.altered.len(), "file")
    );
    let row = |path| json!({ "path": path, "problem": "changed by an acceptance command" });
    Verdict::deny(Code::TreeChanged, reason)
        .with(json!({ "findings": run.altered.iter().map(row).collect::<Vec<_>>() }))
}

fn judge_agent(agent: Option<&AgentRun>, opened: &Opened, limits: &Limits) -> Verdict {
    let Some(agent) = agent else {
        return Verdict::deny(Code::AgentFailed, "no agent ran");
    };
    let seconds = agent.wall_ms / 1000;
    match agent.ending {
        Ending::Exited(0) | Ending::Dismissed => match (&opened.adapted, agent.ending) {
            (Some(adapted), _) => judge_words(agent, adapted),
            (None, Ending::Exited(_)) => finished(agent),
            (None, _) => Verdict::deny(
                Code::AgentFailed,
                "the agent was ended as finished, but its adapter cannot decide that",
            ),
        },
        // It may have left before anybody ended it.
        Ending::Exited(_) if agent.trouble().is_some() => no_model(agent, "agent"),
        Ending::Exited(status) => {
            let spent = opened.adapted.as_ref().and_then(|it| overspent(agent, it));
            if let Some(reason) = spent {
                return Verdict::deny(Code::TokenLimit, reason);
            }
            let words = match agent
                .claims
                .as_ref()
                .and_then(|claims| claims.sum.end.as_ref())
            {
                Some(End::GaveUp(words)) => format!(": {words}"),
                Some(End::Broken(words)) => return broken(words),
                Some(End::Done) | None => String::new(),
            };
            let reason = format!("the agent ended with status {status}{words}");
            Verdict::deny(Code::AgentFailed, reason)
        }
        Ending::Signalled(signal) => Verdict::deny(
            Code::AgentFailed,
            format!("signal {signal} ended the agent"),
        ),
        Ending::NotStarted => Verdict::deny(
            Code::AgentFailed,
            format!(
                "the agent `{}` cannot be started in the sandbox",
                command::line(&opened.agent)
            ),
        ),
        Ending::Overspent => {
            let spent = opened.adapted.as_ref().and_then(|it| overspent(agent, it));
            let reason = spent.unwrap_or_else(|| "the agent spent more than it may".to_owned());
            Verdict::deny(Code::TokenLimit, reason)
        }
        Ending::NoModel => no_model(agent, "agent"),
        Ending::TimedOut => Verdict::deny(
            Code::AgentTimeout,
            format!("the agent was still at work after {seconds} s and was ended"),
        ),
        Ending::OutputLimit => Verdict::deny(
            Code::AgentOutputLimit,
            format!(
                "the agent wrote {} and was ended",
                size::rough(agent.stdout.bytes.saturating_add(agent.stderr.bytes))
            ),
        ),
        Ending::MemoryLimit
        | Ending::ProcessLimit
        | Ending::DiskLimit
        | Ending::InodeLimit
        | Ending::NoProgress => judge_limit(agent.ending, limits),
        Ending::Cancelled => Verdict::deny(Code::Cancelled, "the run was cancelled"),
        Ending::LeaseLost => Verdict::deny(
            Code::LeaseLost,
            "the lease on the scope was lost, so the agent was ended",
        ),
    }
}

/// The verdict on an agent that was ended at one of the limits of its sandbox.
fn judge_limit(ending: Ending, limits: &Limits) -> Verdict {
    let stopped =
        |code, what: String| Verdict::deny(code, format!("the agent {what} and was ended"));
    match ending {
        Ending::MemoryLimit => stopped(
            Code::MemoryLimit,
            format!(
                "used more than {} of memory",
                size::render(limits.memory_bytes)
            ),
        ),
        Ending::ProcessLimit => stopped(
            Code::ProcessLimit,
            format!("used up its {} processes", limits.processes),
        ),
        Ending::DiskLimit => stopped(
            Code::DiskLimit,
            format!(
                "filled its workspace beyond {}",
                size::render(limits.disk_bytes)
            ),
        ),
        Ending::InodeLimit => stopped(
            Code::DiskLimit,
            format!(
                "filled its workspace with more than {} files",
                limits.inodes
            ),
        ),
        Ending::NoProgress => stopped(
            Code::NoProgress,
            format!("got nowhere for {} s", limits.no_progress.as_secs()),
        ),
        other => stopped(Code::AgentFailed, render_ending(other)),
    }
}

/// Judges the end that the stream of a known program reports; without a report it failed.
fn judge_words(agent: &AgentRun, adapted: &Adapted) -> Verdict {
    if let Some(reason) = overspent(agent, adapted) {
        return Verdict::deny(Code::TokenLimit, reason);
    }
    match agent
        .claims
        .as_ref()
        .and_then(|claims| claims.sum.end.as_ref())
    {
        Some(End::Done) => finished(agent),
        Some(End::GaveUp(words)) => {
            Verdict::deny(Code::AgentFailed, format!("the agent gave up: {words}"))
        }
        Some(End::Broken(words)) => broken(words),
        None => Verdict::deny(
            Code::AgentFailed,
            "the agent ended without reporting that it was done",
        ),
    }
}

fn finished(agent: &AgentRun) -> Verdict {
    Verdict::allow(match agent.wall_ms {
        ms @ ..1000 => format!("agent finished ({ms} ms)"),
        ms => format!("agent finished ({} s)", ms / 1000),
    })
}

fn broken(words: &str) -> Verdict {
    Verdict::deny(Code::AgentProtocol, format!("the agent {words}"))
}

/// The verdict on an agent or a reviewer whose model did not answer.
fn no_model(agent: &AgentRun, who: &str) -> Verdict {
    match agent.trouble() {
        Some(trouble) => Verdict::deny(
            trouble.code,
            format!("{}, so the {who} could not continue", trouble.reason),
        ),
        None => Verdict::deny(Code::AgentFailed, format!("the {who} had no model")),
    }
}
