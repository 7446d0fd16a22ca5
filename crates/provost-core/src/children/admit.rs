//! Decides whether a child may start, and makes its contract and its first event.

use std::collections::BTreeMap;

use super::child_contract::document;
use super::family::{ChildBudget, ChildOf, ChildStart, Family, PackageV1Record, StrippedItem};
use super::grant::ChildGrant;
use super::handoff::{AskedHandoff, Handed};
use super::message::ChildTask;
use super::own_package::{authority, id, kept_tools, limits, model_of, package_of, route};
use super::policy::{self, FamilyPolicyKind};
use super::tools;
use crate::agent::launch::{self, Answer};
use crate::agent::{Adapted, Budget as ModelBudget};
use crate::code::Code;
use crate::contract;
use crate::contract::document::Document;
use crate::net::endpoint::Endpoint;
use crate::object::Oid;
use crate::package::{self, Authority, Derived, Handoff, Package, Set, ToolPolicy};
use crate::run::fact::Opened;
use crate::verdict::Verdict;

/// The fewest processes that a sandbox can work with.
const FEWEST_PROCESSES: u64 = 16;

/// The longest key of a request, in bytes.
const LONGEST_KEY: usize = 128;

/// The longest instruction, in bytes.
const LONGEST_TASK: usize = 32 << 10;

/// A request for a child, and what it is judged by.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// The run of the parent.
    pub run_id: &'a str,
    pub opened: &'a Opened,
    pub family: &'a Family,
    pub task: &'a ChildTask,
    pub request_sha256: &'a str,
    /// A fresh id for the run of the child.
    pub child: &'a str,
}

/// A child that may start, once the work of its parent is captured.
#[derive(Debug, Clone)]
pub struct Admitted {
    start: ChildStart,
    opened: Opened,
}

/// The work of the parent at the start of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildBase {
    pub commit: Oid,
    pub tree: Oid,
}

impl Admitted {
    /// The same child, which gets what its parent asked to hand over.
    pub fn with_handoff(mut self, asked: &AskedHandoff, handed: Handed) -> Result<Self, Verdict> {
        let Some(record) = asked.handed(&handed)? else {
            return Ok(self);
        };
        if let Some(child_of) = &mut self.opened.child {
            child_of.package.handoff = record.handoff.clone();
            child_of.fingerprint = child_of.package.fingerprint().to_string();
            child_of.handoff = handed.documents;
            self.start.fingerprint.clone_from(&child_of.fingerprint);
        }
        self.start.handoff = Some(record);
        Ok(self)
    }

    /// The package of the child.
    pub fn package(&self) -> Option<&Package> {
        self.opened.child.as_ref().map(|it| &it.package)
    }

    /// Records what version 1 derives.
    pub fn record_v1(&mut self, record: PackageV1Record) {
        self.start.package_v1 = Some(record);
    }

    /// The event of the parent's ledger and the first event of the child's, on `base`.
    pub fn on(mut self, base: ChildBase) -> Result<(ChildStart, Opened), serde_json::Error> {
        self.opened.contract.rollback.baseline_ref = base.commit.to_string();
        self.opened.contract_sha256 = contract::digest(&self.opened.contract)?;
        self.opened.base_commit = base.commit.clone();
        self.opened.base_tree = base.tree.clone();
        self.start.base_commit = base.commit;
        self.start.base_tree = base.tree;
        Ok((self.start, self.opened))
    }
}

/// The child that `asking` describes, or why it may not start.
pub fn admit(asking: &Asking<'_>) -> Result<Admitted, Verdict> {
    let Asking {
        opened,
        family,
        task,
        ..
    } = *asking;
    let grant = granted(&opened.contract)?;
    check_words(task)?;
    check_policies(opened, task)?;
    let timeout = opened.contract.timeout_retry.timeout_sec;
    family
        .agents(grant)
        .spend(task.children)
        .map_err(|refusal| refuse(refusal.code, refusal.reason, &refusal.findings))?;
    let left = family.left(grant, timeout).budget;
    let given = share(task.budget, grant.budget(timeout), left);
    let mut beyond = given.excess(&left);
    if given.seconds == 0 || given.processes < FEWEST_PROCESSES {
        beyond.push(format!(
            "a child needs 1 second and {FEWEST_PROCESSES} processes; {} s and {} are left",
            left.seconds, left.processes
        ));
    }
    if opened.adapted.is_some() && given.tokens == 0 {
        beyond.push("a child with a model needs tokens, and the request names none".to_owned());
    }
    if let Some(first) = beyond.first().cloned() {
        return Err(refuse(Code::ChildBudgetExhausted, first, &beyond));
    }
    let parent = package_of(opened).map_err(|reason| invalid(&reason))?;
    let request = request(&parent, opened, task, given)?;
    let derived = package::derive(&request)
        .map_err(|refusal| refuse(refusal.code, refusal.reason, &refusal.findings))?;
    let fingerprint = derived.package.fingerprint().to_string();
    let start = ChildStart {
        run_id: asking.child.to_owned(),
        key: task.key.clone(),
        request_sha256: asking.request_sha256.to_owned(),
        read_only: task.read_only,
        fingerprint: fingerprint.clone(),
        parent_fingerprint: request.parent_fingerprint.to_string(),
        given,
        children: task.children,
        base_commit: opened.base_commit.clone(),
        base_tree: opened.base_tree.clone(),
        messages: task.messages.clone(),
        handoff: None,
        package_v1: None,
    };
    let child_of = ChildOf {
        run: asking.run_id.to_owned(),
        key: task.key.clone(),
        fingerprint,
        stripped: stripped(&derived),
        package: derived.package,
        given,
        handoff: Vec::new(),
    };
    let opened = first_event(asking, grant, child_of);
    if let Err(problems) = opened.resolve() {
        let verdict = contract::judge(&problems);
        return Err(invalid(&verdict.reason));
    }
    Ok(Admitted { start, opened })
}

fn granted(contract: &Document) -> Result<&ChildGrant, Verdict> {
    let extension = contract.x_provost.as_ref();
    let grant = extension.and_then(|extension| extension.children.as_ref());
    let reason = "the contract grants no children (`x_provost.children`)";
    grant.ok_or_else(|| Verdict::deny(Code::ChildrenNotGranted, reason))
}

/// Whether `text` can be the key of a request.
pub(super) fn is_key(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=LONGEST_KEY).contains(&text.len()) && text.bytes().all(plain)
}

/// Refuses a request that names a policy which does not resolve, or asks what none permits.
fn check_policies(opened: &Opened, task: &ChildTask) -> Result<(), Verdict> {
    let policies = &opened.policies;
    let named = |id: &Option<String>, usual: &str| id.clone().unwrap_or(usual.to_owned());
    let lifecycle = named(&task.lifecycle_policy, policy::PARENT_OWNED);
    let lifecycle = policy::resolve(policies, &lifecycle, FamilyPolicyKind::RuntimePackage)?;
    if lifecycle.detach {
        let reason = "no child continues when the agent of its parent has ended";
        return Err(Verdict::deny(Code::DetachNotGranted, reason));
    }
    let redaction = named(&task.redaction_policy, policy::DEFAULT_REDACTION);
    policy::resolve(policies, &redaction, FamilyPolicyKind::Redaction)?;
    task.handoff.check(policies)
}

fn check_words(task: &ChildTask) -> Result<(), Verdict> {
    if !is_key(&task.key) {
        return Err(invalid(
            "`key` has 1 to 128 letters, digits or characters of `._:-`",
        ));
    }
    if task.task.trim().is_empty() || task.task.len() > LONGEST_TASK {
        return Err(invalid("`task` has 1 byte to 32 KiB"));
    }
    match (task.read_only, task.write.is_empty()) {
        (true, false) => Err(invalid("`write` names paths, and `read_only` is asked for")),
        (false, true) => Err(invalid(
            "`write` names no path; name some, or ask for `read_only`",
        )),
        (true, true) | (false, false) => Ok(()),
    }
}

/// The share of a child: as asked, or a quarter of the grant where it says nothing.
fn share(asked: ChildBudget, grant: ChildBudget, left: ChildBudget) -> ChildBudget {
    let or_quarter = |asked: u64, grant: u64, left: u64, least: u64| match asked {
        0 => (grant / 4).max(least).min(left),
        asked => asked,
    };
    ChildBudget {
        seconds: or_quarter(asked.seconds, grant.seconds, left.seconds, 1),
        processes: or_quarter(
            asked.processes,
            grant.processes,
            left.processes,
            FEWEST_PROCESSES,
        ),
        ..asked
    }
}

/// What the package of the child is derived from.
fn request(
    parent: &Package,
    opened: &Opened,
    task: &ChildTask,
    given: ChildBudget,
) -> Result<package::Request, Verdict> {
    let wrong = |reason: String| invalid(&reason);
    let mut ask = authority(opened, &task.write, &task.net, limits(given)).map_err(wrong)?;
    ask.capabilities = std::iter::empty().collect();
    let model = task.model.as_ref().or(model_of(opened));
    ask.routes = std::iter::once(route(opened, model).map_err(wrong)?)
        .filter(|_| opened.adapted.is_some())
        .collect();
    let delegate = if task.children == 0 {
        Authority::default()
    } else {
        Authority {
            capabilities: parent.delegate.capabilities.clone(),
            ..ask.clone()
        }
    };
    let tools = ToolPolicy::Allow {
        ids: kept_tools(parent, task).map_err(wrong)?,
    };
    Ok(package::Request {
        parent_fingerprint: parent.fingerprint(),
        parent: parent.clone(),
        child_agent_id: id(&task.key).map_err(wrong)?,
        tools,
        ask,
        delegate,
        children: task.children,
        guards: Set::default(),
        handoff: Handoff::default(),
    })
}

/// The first event of the child's run, on a base that is not known yet.
fn first_event(asking: &Asking<'_>, grant: &ChildGrant, child_of: ChildOf) -> Opened {
    let Asking { opened, task, .. } = *asking;
    let adapted = opened.adapted.clone();
    let adapted = adapted.map(|adapted| with_share(adapted, grant, &child_of, task));
    let model = adapted.as_ref().and_then(|it| it.provider.as_ref());
    let model = model.map(|provider| provider.base_url.endpoint.clone());
    let places: Vec<Endpoint> = task.net.iter().flat_map(|it| Endpoint::parse(it)).collect();
    let reached = |place: &Endpoint| Some(place) == model.as_ref() || places.contains(place);
    let credentials = opened.credentials.iter();
    let credentials = credentials.filter(|it| reached(&it.endpoint)).cloned();
    let contract = document(asking, grant, &child_of);
    let adapted = adapted.map(|mut adapted| {
        let tools = tools::broker_tools(&contract, true);
        adapted.broker = tools.into_iter().map(str::to_owned).collect();
        adapted
    });
    let agent = adapted.as_ref().filter(|it| it.server.is_none());
    let agent = agent.map(|it| launch::argv(it, Answer::of(&contract)));
    Opened {
        contract,
        agent: agent.unwrap_or_else(|| opened.agent.clone()),
        contract_source: None,
        target: None,
        adapted,
        credentials: credentials.collect(),
        review: None,
        artifacts: BTreeMap::new(),
        references: Some(BTreeMap::new()),
        widenings: Vec::new(),
        parent: None,
        work: None,
        continues: None,
        part: None,
        child: Some(Box::new(child_of)),
        ..opened.clone()
    }
}

/// The agent with the share of the child.
fn with_share(
    mut adapted: Adapted,
    grant: &ChildGrant,
    child_of: &ChildOf,
    task: &ChildTask,
) -> Adapted {
    let given = child_of.given;
    adapted.budget = ModelBudget {
        tokens: Some(given.tokens),
        // Where the contract grants no price, tokens are the limit.
        micro_usd: grant.micro_usd.map(|_| given.micro_usd),
    };
    if let Some(model) = &task.model {
        adapted.model = Some(model.clone());
        adapted.grants.models = Some(vec![model.clone()]);
    }
    if let Some(tools) = &task.tools {
        adapted.grants.tools = Some(tools.clone());
    }
    adapted
}

fn stripped(derived: &Derived) -> Vec<StrippedItem> {
    let item = |row: &package::Stripped| StrippedItem {
        axis: row.axis.to_owned(),
        id: row.id.as_ref().map(ToString::to_string),
        reason: row.reason.to_owned(),
    };
    derived.stripped.iter().map(item).collect()
}

fn invalid(reason: &str) -> Verdict {
    Verdict::deny(Code::ChildRequestInvalid, reason)
}

fn refuse(code: Code, reason: String, findings: &[String]) -> Verdict {
    let verdict = Verdict::deny(code, reason);
    if findings.is_empty() {
        return verdict;
    }
    verdict.with(serde_json::json!({ "findings": findings }))
}
