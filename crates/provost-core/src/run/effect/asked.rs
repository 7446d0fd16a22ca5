//! Derives the inputs of a step from the state of the run.

use super::{
    Accept, Adaptation, AgentEffect, AskedStart, Base, CacheOrder, Capture, Clean, CommitText,
    Effect, ExistingTree, Extent, Fix, Keep, Merge, NamedBy, NoEffect, Prepare, Publish,
    ReadOnlyRun, Review, Salvage, Selftest, Workspace, WriteProtection,
};
use std::fmt::Write as _;
use std::time::Duration;

use crate::agent::launch::{self, Answer};
use crate::change::Change;
use crate::contract::Contract;
use crate::contract::document::RollbackStrategy;
use crate::contract::forbidden;
use crate::contract::limits::{Asked, Limits};
use crate::object::Oid;
use crate::review;
use crate::run::fact::{CacheStart, Side, TestRun};
use crate::run::refs::{self, Kind};
use crate::run::{Site, State, Step};
use crate::scope::Scope;
use crate::time;

/// The directory of the bundle for the acceptance logs of the candidate.
const CANDIDATE: &str = "ci/candidate";

/// The directory of the bundle for the logs of preparation.
const PREPARE: &str = "prepare";

impl State {
    /// The inputs of `step` in this state.
    pub fn effect(&self, step: Step) -> Result<Effect, NoEffect> {
        Ok(match step {
            // The run of a child's parent holds the scope.
            Step::Lease if self.opened.child.is_some() => Effect::Lease(Scope::of(Vec::new())),
            Step::Lease => Effect::Lease(self.held_to()?.scope.clone()),
            Step::Prepare => Effect::Prepare(self.prepare(self.opened.base_tree.clone(), PREPARE)),
            Step::Workspace => Effect::Workspace(Workspace {
                attempt: self.attempt,
                base: self.base(),
                tree: self.begins_with().clone(),
                choice: self.opened.workspace,
                tier: self.held_to()?.tier,
            }),
            Step::Selftest => Effect::Selftest(Box::new(Selftest {
                agent: match self.opened.work {
                    None => Some(self.agent_effect()?),
                    Some(_) => None,
                },
                acceptance: self.accept_base()?,
                scope: self.held_to()?.scope.clone(),
            })),
            Step::Agent => Effect::Agent(Box::new(self.agent_effect()?)),
            Step::Capture => Effect::Capture(Capture {
                attempt: self.attempt,
                base: self.opened.base_tree.clone(),
                keep: self.keep(Kind::Captured, "Capture"),
                crossed: ["old-tests", "new-tests"].map(|which| self.keep_crossed(which)),
                existing: self.opened.work.as_ref().map(|work| ExistingTree {
                    tree: work.tree.clone(),
                    findings: work.findings.clone(),
                }),
            }),
            Step::Review => Effect::Review(Box::new(self.review_effect()?)),
            Step::BaseAcceptance => Effect::Accept(self.accept_base()?),
            Step::BaseAgain => {
                let tree = self.opened.base_tree.clone();
                Effect::Accept(self.accept(Side::BaseAgain, tree, "ci/base-again".to_owned())?)
            }
            Step::Acceptance => {
                let tree = self.candidate()?.clone();
                let mut order = self.accept(Side::Candidate, tree, self.candidate_logs())?;
                // An attempt that changed nothing leaves a tree that was tested already.
                let past = self.past.iter().filter_map(|past| past.tests.as_ref());
                order.evidence.extend(past.cloned());
                Effect::Accept(order)
            }
            Step::OldTests => {
                let tree = self.crossed_trees().map(|trees| trees.old_tests.clone());
                let tree = tree.ok_or(NoEffect::NoCandidate)?;
                Effect::Accept(self.accept(Side::OldTests, tree, "ci/old-tests".to_owned())?)
            }
            Step::NewTests => {
                let tree = self.crossed_trees().map(|trees| trees.new_tests.clone());
                let tree = tree.ok_or(NoEffect::NoCandidate)?;
                Effect::Accept(self.accept(Side::NewTests, tree, "ci/new-tests".to_owned())?)
            }
            Step::Fix => Effect::Fix(self.fix_effect()?),
            Step::Publish => Effect::Publish(self.publish()?),
            Step::Clean => Effect::Clean(self.clean_effect()),
        })
    }

    /// The tree of work that exists already, and how it is kept.
    pub fn existing_tree(&self) -> Option<(&Oid, Keep)> {
        let keep = self.keep(Kind::Captured, "Capture");
        if let Some(work) = &self.opened.work {
            return Some((&work.tree, keep));
        }
        // The first attempt is number 1.
        let name = format!("{}/0", Kind::Captured.of_run(&self.names.run_id));
        let begun = self.opened.continues.as_ref()?;
        Some((begun, Keep { name, ..keep }))
    }

    /// The round on `tree`, to run it again and show its output.
    pub fn accept_again(&self, tree: Oid) -> Result<Accept, NoEffect> {
        let mut order = self.accept(Side::Candidate, tree, self.candidate_logs())?;
        order.cache.start = AskedStart::Cold("a repeated round is cold");
        order.evidence.clear();
        Ok(order)
    }

    /// The directory of the bundle for the acceptance logs of the candidate.
    fn candidate_logs(&self) -> String {
        match self.past.len() {
            0 => CANDIDATE.to_owned(),
            // The logs of earlier candidates are evidence.
            fixes => format!("ci/fix-{fixes}"),
        }
    }

    /// The initial tree of the attempt: the base, the work that the run continues, or the candidate
    /// that it fixes, unless the contract wants a reset.
    fn begins_with(&self) -> &Oid {
        match self.opened.contract.rollback.strategy {
            RollbackStrategy::GitResetHard => return &self.opened.base_tree,
            RollbackStrategy::WorktreeDrop | RollbackStrategy::GitRevertCommit => {}
        }
        let refused = self.past.last().and_then(|past| past.captured.as_ref());
        let first = self.opened.continues.as_ref();
        let first = first.unwrap_or(&self.opened.base_tree);
        refused.map_or(first, |captured| &captured.tree)
    }

    fn fix_effect(&self) -> Result<Fix, NoEffect> {
        let trigger = self.trigger.as_ref().ok_or(NoEffect::NothingToMend)?;
        let backoff = self.opened.contract.timeout_retry.retry_backoff_sec;
        Ok(Fix {
            // The fold refuses a time that does not parse.
            not_before: time::parse(&trigger.not_before).unwrap_or_default(),
            most: Duration::from_secs(backoff),
            evidence: self.failed_evidence(),
        })
    }

    /// A round of the acceptance commands on the merge `tree`, with logs in the directory `logs`.
    ///
    /// A round of the same tree that was sealed, or is `known` from an earlier merge, is not
    /// repeated.
    pub fn accept_merge(
        &self,
        tree: Oid,
        logs: String,
        known: &[TestRun],
    ) -> Result<Accept, NoEffect> {
        let sealed = self.tests.get(&Side::Candidate);
        let mut order = self.accept(Side::Merged, tree, logs)?;
        order.evidence = sealed.into_iter().chain(known).cloned().collect();
        Ok(order)
    }

    /// A round on `tree` that always runs, with logs in the directory `logs`.
    pub fn accept_anew(&self, tree: Oid, logs: String) -> Result<Accept, NoEffect> {
        let mut order = self.accept(Side::Merged, tree, logs)?;
        order.cache.start = AskedStart::Cold("a replay is always cold");
        Ok(order)
    }

    /// The merge of the candidate with a moved target.
    pub fn merge(&self) -> Result<Merge, NoEffect> {
        Ok(Merge {
            base: self.opened.base_commit.clone(),
            candidate: self.candidate()?.clone(),
            words: self.words(),
            seconds: self.seconds(),
            refs: Kind::Merged.of_run(&self.names.run_id),
        })
    }

    pub fn base(&self) -> Base {
        Base {
            commit: self.opened.base_commit.clone(),
            tree: self.opened.base_tree.clone(),
        }
    }

    fn prepare(&self, tree: Oid, logs: &str) -> Prepare {
        Prepare {
            steps: self.opened.prepare.clone(),
            base: self.base(),
            tree,
            logs: logs.to_owned(),
            limits: Limits::of(&Asked::default(), &self.opened.limits),
            loopback: self.opened.loopback,
        }
    }

    /// Whether the sandboxes of agents, reviewers and acceptance commands have a loopback
    /// interface.
    fn has_loopback(&self, contract: &Contract) -> bool {
        self.opened.loopback && contract.loopback
    }

    fn held_to(&self) -> Result<&Contract, NoEffect> {
        self.contract.as_ref().map_err(|_| NoEffect::NoContract)
    }

    fn candidate(&self) -> Result<&Oid, NoEffect> {
        let captured = self.captured.as_ref().ok_or(NoEffect::NoCandidate)?;
        Ok(&captured.tree)
    }

    fn agent_effect(&self) -> Result<AgentEffect, NoEffect> {
        let contract = self.held_to()?;
        let (task, attempt) = (self.task_id(), self.attempt);
        let file = |name: &str, kind: &str| format!("agent/{task}/{name}.{attempt}.{kind}");
        let answer = Answer::of(&contract.document);
        let grant = contract.document.x_provost.as_ref();
        let grant = grant.and_then(|extension| extension.children.clone());
        let adapted = self.opened.adapted.clone().map(|mut adapted| {
            if let Some(grant) = &grant {
                grant.take_from(&mut adapted.budget);
            }
            adapted
        });
        let adaptation = adapted.map(|adapted| Adaptation {
            instruction: self.instruction(contract, adapted.adapter, answer),
            adapted,
            answer,
            task_id: task.to_owned(),
            events: file("events", "jsonl"),
            forbidden: contract.document.forbidden_actions.clone(),
            shapes: forbidden::shapes(&contract.document),
            thread: self.thread().map(str::to_owned),
        });
        let mut net = contract.net.clone();
        // Such an agent cannot work without its model, whatever else is denied.
        let model = adaptation.as_ref().and_then(Adaptation::model);
        net.extend(model.filter(|model| !contract.net.contains(model)).cloned());
        Ok(AgentEffect {
            run_id: self.names.run_id.clone(),
            attempt,
            base: self.base(),
            tree: self.begins_with().clone(),
            evidence: self.given(),
            prepare: self.prepare(self.opened.base_tree.clone(), PREPARE),
            argv: self.agent_words(),
            named_by: NamedBy::of(self.opened.agent_typed),
            adaptation,
            contract: contract.document.clone(),
            tier: contract.tier,
            walls: WriteProtection {
                forbid: contract.forbid.clone(),
                permit: contract.permit.clone(),
                extra: self.opened.protect.clone(),
            },
            time_limit: contract.time_limit,
            limits: contract.limits,
            hold: self.opened.ask.hold(),
            net,
            family: self.family_order(),
            loopback: self.has_loopback(contract),
            credentials: self.opened.credentials.clone(),
            stdout: file("stdout", "log"),
            stderr: file("stderr", "log"),
        })
    }

    /// The command of the agent; a known program continues the thread of the attempt that it fixes.
    fn agent_words(&self) -> Vec<String> {
        let words = &self.opened.agent;
        match (&self.opened.adapted, self.thread()) {
            (Some(known), Some(thread)) => launch::continued(words, known.adapter, thread),
            _ => words.clone(),
        }
    }

    /// The program's name for the conversation of the attempt to be fixed.
    fn thread(&self) -> Option<&str> {
        let fixed = self.past.last()?.agent.as_ref()?;
        fixed.claims.as_ref()?.sum.thread.as_deref()
    }

    fn review_effect(&self) -> Result<Review, NoEffect> {
        let captured = self.captured.as_ref().ok_or(NoEffect::NoCandidate)?;
        let logs = format!("reviews/{}.", self.attempt);
        self.review_of(self.base(), &captured.tree, &captured.changes, &logs)
    }

    /// A review of the merge `tree`, which changes `changes` in the target `base`, with logs in the
    /// directory `logs`.
    pub fn review_merge(
        &self,
        base: Base,
        tree: &Oid,
        changes: &[Change],
        logs: &str,
    ) -> Result<Review, NoEffect> {
        self.review_of(base, tree, changes, &format!("{logs}/"))
    }

    /// Whether `changes` are exactly the changes of the candidate.
    pub fn is_same_patch(&self, changes: &[Change]) -> bool {
        let captured = self.captured.as_ref();
        let own = captured.map_or(&[][..], |captured| &captured.changes);
        let side = |change: &Change| {
            let Change {
                path,
                before,
                after,
                ..
            } = change.clone();
            (path, before, after)
        };
        own.iter().map(side).eq(changes.iter().map(side))
    }

    fn review_of(
        &self,
        base: Base,
        tree: &Oid,
        changes: &[Change],
        logs: &str,
    ) -> Result<Review, NoEffect> {
        let contract = self.held_to()?;
        let reviewer = self.opened.review.clone().ok_or(NoEffect::NoReviewer)?;
        let file = |name: &str| format!("{logs}{name}");
        let mut paths = String::new();
        for change in changes {
            let _ = writeln!(paths, "{}", change.path);
        }
        let adaptation = reviewer.adapted.map(|adapted| Adaptation {
            instruction: review::render(contract)
                + &launch::binding(adapted.adapter, Answer::ReadOnly(review::schema())),
            adapted,
            answer: Answer::ReadOnly(review::schema()),
            task_id: self.task_id().to_owned(),
            events: file("events.jsonl"),
            forbidden: Vec::new(),
            shapes: forbidden::shapes(&contract.document),
            thread: None,
        });
        // A known program needs its model and no other endpoint; a command may need any.
        let net = match &adaptation {
            Some(known) => known.model().into_iter().cloned().collect(),
            None => contract.net.clone(),
        };
        Ok(Review {
            look: ReadOnlyRun {
                run_id: self.names.run_id.clone(),
                who: "reviewer",
                base,
                tree: tree.clone(),
                choice: self.opened.workspace,
                start: review::REVIEW_DIRECTORY.start,
                argv: reviewer.argv,
                named_by: NamedBy::of(reviewer.typed),
                adaptation,
                tier: contract.tier,
                time_limit: contract.time_limit,
                limits: contract.limits,
                net,
                loopback: self.has_loopback(contract),
                credentials: reviewer.credentials,
                stdout: file("stdout.log"),
                stderr: file("stderr.log"),
            },
            changed: paths,
            contract: contract.document.clone(),
            worker: review::Worker::of(self),
        })
    }

    fn accept_base(&self) -> Result<Accept, NoEffect> {
        let tree = self.opened.base_tree.clone();
        self.accept(Side::Base, tree, "ci/base".to_owned())
    }

    fn accept(&self, side: Side, tree: Oid, logs: String) -> Result<Accept, NoEffect> {
        let contract = self.held_to()?;
        let prepared = match side {
            Side::Base | Side::BaseAgain | Side::Candidate | Side::OldTests | Side::NewTests => {
                PREPARE
            }
            // Each merge has its own logs.
            Side::Merged => &logs,
        };
        Ok(Accept {
            side,
            prepare: self.prepare(tree.clone(), prepared),
            loopback: self.has_loopback(contract),
            cache: Box::new(self.cache_order(side)),
            tree,
            base: self.base(),
            choice: self.opened.workspace,
            tier: contract.tier,
            tests: contract.tests.clone(),
            time_limit: contract.time_limit,
            limits: contract.limits,
            logs,
            evidence: self.opened.earlier_rounds(side),
        })
    }

    fn cache_order(&self, side: Side) -> CacheOrder {
        let rules = self.opened.cache.clone();
        let start = match (side, rules.candidate, rules.land) {
            // Its count of tests is what candidates are compared with.
            (Side::Base | Side::BaseAgain, ..) => {
                AskedStart::Cold("the base is always tested cold")
            }
            (Side::Merged, _, CacheStart::Cold) => AskedStart::Cold("`land` tests cold"),
            (Side::Merged, _, CacheStart::Warm)
            | (Side::Candidate | Side::OldTests | Side::NewTests, CacheStart::Warm, _) => {
                AskedStart::Warm
            }
            (_, CacheStart::Cold, _) => AskedStart::Cold("`[cache]` of provost.toml says cold"),
        };
        CacheOrder {
            start,
            rules,
            // The base of a part may be made of work that did not land.
            keep: side == Side::Base && self.opened.part.is_none(),
            target: self.opened.target.clone(),
            protect: self.opened.protect.clone(),
        }
    }

    fn publish(&self) -> Result<Publish, NoEffect> {
        let tree = self.candidate()?.clone();
        let keep = Keep {
            name: refs::branch(&self.names.run_id),
            parent: self.opened.base_commit.clone(),
            message: self.words().message(&tree),
            seconds: self.seconds(),
        };
        Ok(Publish { tree, keep })
    }

    fn clean_effect(&self) -> Clean {
        // Only a finished workspace can hold work.
        let finished = matches!(self.site, Site::Workspace | Site::Abandoned);
        let captured = self.captured.as_ref();
        let whole = captured.is_some_and(|captured| {
            let mut findings = captured.findings.iter();
            !findings.any(|finding| finding.kind.leaves_work_out())
        });
        Clean {
            attempt: self.attempt,
            extent: match self.site {
                Site::Abandoned => Extent::Attempt,
                // Another attempt continues in the same home.
                Site::Workspace if self.trigger.is_some() => Extent::Attempt,
                Site::Empty | Site::Begun | Site::Workspace => Extent::Run,
            },
            salvage: (finished && !whole).then(|| Salvage {
                base: self.begins_with().clone(),
                captured: captured.map(|captured| captured.tree.clone()),
                keep: self.keep(Kind::Salvaged, "Salvage"),
            }),
            stay: self.left.iter().map(|left| left.path.clone()).collect(),
        }
    }

    /// How a tree of this attempt is kept on the base, by a ref of this kind.
    fn keep(&self, kind: Kind, what: &str) -> Keep {
        let run = &self.names.run_id;
        Keep {
            name: format!("{}/{}", kind.of_run(run), self.attempt),
            parent: self.opened.base_commit.clone(),
            message: format!("{what} of {run}\n"),
            seconds: self.seconds(),
        }
    }

    /// How a tree for cross-tests is kept.
    fn keep_crossed(&self, which: &str) -> Keep {
        let keep = self.keep(Kind::Crossed, "Half");
        Keep {
            name: format!("{}-{which}", keep.name),
            ..keep
        }
    }

    fn words(&self) -> CommitText {
        CommitText {
            objective: self.opened.contract.inputs.spec.clone(),
            run_id: self.names.run_id.clone(),
            contract_sha256: self.opened.contract_sha256.clone(),
        }
    }

    fn seconds(&self) -> i64 {
        time::parse(&self.began).map_or(0, |millis| millis / 1000)
    }
}
