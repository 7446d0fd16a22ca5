//! The children of one run, and what they have left: a fold over its events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::grant::ChildGrant;
use super::handoff::{HandedDocument, HandoffRecord};
use super::letter::FamilyMessage;
use super::tools::MessageTool;
use crate::object::Oid;
use crate::package::{Budget, Package};
use crate::verdict::Verdict;

/// An amount of everything that children share; each field is a limit or a use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChildBudget {
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub micro_usd: u64,
    /// Of the wall clock.
    pub seconds: u64,
    /// At a time; they are free again when the child ends.
    pub processes: u64,
}

impl ChildBudget {
    /// What is left after `used` is taken; nothing if more was used than there was.
    fn less(self, used: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(used.tokens),
            micro_usd: self.micro_usd.saturating_sub(used.micro_usd),
            seconds: self.seconds.saturating_sub(used.seconds),
            processes: self.processes.saturating_sub(used.processes),
        }
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
            seconds: self.seconds.saturating_add(other.seconds),
            processes: self.processes.saturating_add(other.processes),
        }
    }

    /// Every axis on which this is more than `bound`, as text.
    pub fn excess(&self, bound: &Self) -> Vec<String> {
        let rows = [
            ("tokens", self.tokens, bound.tokens),
            ("millionths of a dollar", self.micro_usd, bound.micro_usd),
            ("seconds", self.seconds, bound.seconds),
            ("processes", self.processes, bound.processes),
        ];
        let beyond = rows.into_iter().filter(|(_, asked, left)| asked > left);
        beyond
            .map(|(what, asked, left)| format!("{asked} {what} are asked and {left} left"))
            .collect()
    }
}

/// The event that starts a child: from here on its share is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildStart {
    /// The run of the child.
    pub run_id: String,
    /// The key of the request; a request with the same key starts no second child.
    pub key: String,
    /// SHA-256 of the request.
    pub request_sha256: String,
    pub read_only: bool,
    /// The fingerprint of its package.
    pub fingerprint: String,
    /// The fingerprint of the package that it was derived from.
    pub parent_fingerprint: String,
    pub given: ChildBudget,
    /// How many agents it may start itself.
    pub children: u32,
    /// The commit of the parent's work at that moment.
    pub base_commit: Oid,
    pub base_tree: Oid,
    /// The tools for messages that it keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageTool>,
    /// What of the context of its parent it gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffRecord>,
    /// The same derivation by version 1; a family of more generations has no such form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_v1: Option<PackageV1Record>,
}

/// What the derivation of a package by version 1 gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageV1Record {
    pub parent_fingerprint: String,
    pub child_fingerprint: String,
    /// What the child did not get, as that version writes it.
    pub strip_manifest: Value,
    pub strip_manifest_content_hash: String,
}

/// The event that ends a child: what it did not use comes back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildEnd {
    pub run_id: String,
    pub verdict: Verdict,
    pub spent: ChildBudget,
    /// How many agents it started, with theirs.
    pub children: u32,
    /// The tree of its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Oid>,
    /// SHA-256 of the signed statement of its bundle; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation_sha256: Option<String>,
}

/// The event of a request that was refused; the run continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildRefused {
    pub verdict: Verdict,
    /// How many requests it stands for; the last event of an attempt adds up the many.
    pub times: u64,
}

/// What distinguishes the run of a child from other runs: part of its first event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildOf {
    /// The run of the parent.
    pub run: String,
    pub key: String,
    /// Its package, whole.
    pub package: Package,
    pub fingerprint: String,
    /// What its parent may delegate and it did not get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stripped: Vec<StrippedItem>,
    pub given: ChildBudget,
    /// The context that its parent handed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoff: Vec<HandedDocument>,
}

/// Something that a child did not get, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrippedItem {
    pub axis: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ChildState {
    Running,
    Ended(Box<ChildEnd>),
    /// It died with its driver.
    Lost,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FamilyMember {
    pub start: ChildStart,
    pub state: ChildState,
}

/// The children of a run, in the order of their starts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Family {
    pub members: Vec<FamilyMember>,
    pub refused: Vec<ChildRefused>,
    /// What this run wrote to its children or its parent, and got from them.
    pub messages: Vec<FamilyMessage>,
}

impl FamilyMember {
    pub fn is_running(&self) -> bool {
        self.state == ChildState::Running
    }
}

/// What a family may still use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    pub children: u32,
    pub budget: ChildBudget,
}

impl Family {
    /// Takes the share of a child; false if the run or the key is taken.
    pub fn start(&mut self, start: ChildStart) -> bool {
        let taken =
            |it: &FamilyMember| it.start.run_id == start.run_id || it.start.key == start.key;
        if self.members.iter().any(taken) {
            return false;
        }
        let state = ChildState::Running;
        self.members.push(FamilyMember { start, state });
        true
    }

    /// Gives back what a child did not use; false if no such child runs.
    pub fn end(&mut self, end: ChildEnd) -> bool {
        let runs = |it: &&mut FamilyMember| {
            it.start.run_id == end.run_id && it.state == ChildState::Running
        };
        let Some(member) = self.members.iter_mut().find(runs) else {
            return false;
        };
        member.state = ChildState::Ended(Box::new(end));
        true
    }

    /// The driver died, and with it every child that ran.
    pub fn lose(&mut self) {
        let running = |it: &&mut FamilyMember| it.state == ChildState::Running;
        for member in self.members.iter_mut().filter(running) {
            member.state = ChildState::Lost;
        }
    }

    pub fn running(&self) -> impl Iterator<Item = &FamilyMember> {
        let running = |it: &&FamilyMember| it.state == ChildState::Running;
        self.members.iter().filter(running)
    }

    pub fn find(&self, run_id: &str) -> Option<&FamilyMember> {
        self.members.iter().find(|it| it.start.run_id == run_id)
    }

    /// The run of the child that an agent names, by its id or by the short form that people see.
    pub fn named(&self, text: &str) -> Option<&str> {
        let short = |id: &str| {
            let tail = id.rsplit('_').next().unwrap_or(id);
            text.len() >= 8 && tail.starts_with(text)
        };
        let mut found = self.members.iter().map(|it| it.start.run_id.as_str());
        let mut short = found.clone().filter(|id| short(id));
        let exact = found.find(|id| *id == text);
        exact.or_else(|| short.next().filter(|_| short.next().is_none()))
    }

    pub fn by_key(&self, key: &str) -> Option<&FamilyMember> {
        self.members.iter().find(|it| it.start.key == key)
    }

    /// How many agents were started, with those that they started.
    pub fn count(&self) -> u32 {
        let one = |it: &FamilyMember| match &it.state {
            ChildState::Running | ChildState::Lost => it.start.children,
            ChildState::Ended(end) => end.children,
        };
        let all = self.members.iter().map(|it| one(it).saturating_add(1));
        all.fold(0, u32::saturating_add)
    }

    /// What all children used, or were given if that is not known.
    pub fn used(&self) -> ChildBudget {
        let one = |member: &FamilyMember| match &member.state {
            ChildState::Running | ChildState::Lost => member.start.given,
            ChildState::Ended(end) => end.spent,
        };
        let all = self.members.iter().map(one);
        all.fold(ChildBudget::default(), ChildBudget::plus)
    }

    /// What is left of `grant`, under a contract with this time limit.
    pub fn left(&self, grant: &ChildGrant, timeout_sec: u64) -> Remaining {
        let mut budget = grant.budget(timeout_sec);
        for member in &self.members {
            let given = member.start.given;
            let taken = match &member.state {
                ChildState::Running => given,
                // Its processes are dead.
                ChildState::Lost => ChildBudget {
                    processes: 0,
                    ..given
                },
                ChildState::Ended(end) => ChildBudget {
                    processes: 0,
                    ..end.spent
                },
            };
            budget = budget.less(taken);
        }
        let children = grant.count.saturating_sub(self.count());
        Remaining { children, budget }
    }

    /// The generations and agents that are left of `grant`.
    pub(super) fn agents(&self, grant: &ChildGrant) -> Budget {
        Budget {
            levels: grant.levels(),
            children: grant.count.saturating_sub(self.count()),
        }
    }
}
