//! Resolves a task contract into the rules of a run. The fields are described in
//! `docs/contract.md`.
//!
//! # Invariants
//!
//! - A [`Contract`] that exists can be run: it has a scope, a command that must pass and a limit.
//! - A demand that Provost cannot enforce is refused, not ignored; a stricter contract never runs
//!   as a laxer one.
//! - All problems are listed, each with the place in the document.

pub mod additions;
pub mod check;
pub mod document;
pub mod forbidden;
pub mod limits;
pub mod output;
mod persons;
mod problem;
mod promises;
pub mod role;
mod shares;
pub mod typed;

use std::time::Duration;

use serde_json::{Value, json};

use crate::code::Code;
use crate::gate::command::{self, CommandPolicy, Trust};
use crate::gate::diff::Permit;
use crate::gate::proof::{self, Proof};
use crate::json;
use crate::net::endpoint::Endpoint;
use crate::object::sha256;
use crate::path::{RepoPath, is_segment};
use crate::scope::{self, Scope};
use crate::tier::Tier;
use crate::verdict::Verdict;
use additions::{AdditionsFrom, OwnSchema};
use check::{Purpose, Rules};
use document::{
    AcceptMode, Document, Extension, Filesystem, Network, OutputType, Permissions, RequiredOutput,
    Role,
};
use limits::{Asked, Limits};
use problem::Problems;

pub use problem::Problem;

/// The schema that the structured result of an agent is bound to, as contracts name it.
pub const RESULT_SCHEMA: &str = "schemas/agent_task_result.v1.json";

pub const RESULT_SCHEMA_TEXT: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../schemas/agent_task_result.v1.json"
));

/// The largest contract, in bytes of its canonical form. It becomes part of records and reports,
/// which have to be read again.
pub const LARGEST: usize = 1 << 20;

/// The longest time limit of a run, so that a mistyped limit does not last for ever.
pub(crate) const LONGEST: Duration = Duration::from_hours(7 * 24);

/// The most further attempts that may fix what was refused.
pub(crate) const MOST_RETRIES: u32 = 10;

/// The largest number of network endpoints that one contract may name.
const MOST_PLACES: usize = 64;

/// The resolved rules of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Contract {
    /// The document, as written.
    pub document: Document,
    /// Where the agent may write; never empty.
    pub scope: Scope,
    /// Where it may not write, even inside the scope.
    pub forbid: Scope,
    /// Paths of the scope that other parts of the same division may change too.
    pub shares: Scope,
    /// Kinds of change that are refused otherwise.
    pub permit: Permit,
    /// The acceptance commands; at least one must pass.
    pub tests: Vec<Test>,
    /// When an agent, or one acceptance command, is ended.
    pub time_limit: Duration,
    /// The other limits at which it is ended.
    pub limits: Limits,
    pub result: ResultRule,
    /// The schema of the result, if it is one of the repository.
    pub own_schema: Option<OwnSchema>,
    /// Whether fewer tests may run than before.
    pub may_lose_tests: bool,
    /// What the acceptance commands have to show.
    pub accept_mode: AcceptMode,
    /// The network endpoints that the agent may reach; acceptance commands reach none.
    pub net: Vec<Endpoint>,
    /// Whether sandboxes have their own loopback interface; a policy may still turn it off.
    pub loopback: bool,
    /// The tier of every sandbox of the run.
    pub tier: Tier,
    /// Whether nothing may change, because the contract is for an audit.
    pub audit: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// For people.
    pub name: String,
    /// The command as written.
    pub text: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Whether its failure is a refusal.
    pub must_pass: bool,
}

/// Whether the agent has to leave a structured result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultRule {
    /// It may; if it does, the result has to be valid.
    Optional,
    /// A required output of the contract demands it.
    Required,
}

impl ResultRule {
    pub fn of(document: &Document) -> Self {
        let asks = |output: &RequiredOutput| {
            matches!(output.r#type, OutputType::Report | OutputType::Json)
        };
        if document.required_outputs.iter().any(asks) {
            Self::Required
        } else {
            Self::Optional
        }
    }
}

/// Reads a contract from the bytes of a JSON document.
///
/// The task id becomes a name in the bundle, so it has to be valid before a run can begin.
pub fn parse(bytes: &[u8]) -> Result<Document, json::ReadError> {
    from_value(&json::parse(bytes)?)
}

/// Reads a contract from a parsed document, as [`parse`] does.
pub fn from_value(value: &Value) -> Result<Document, json::ReadError> {
    let document: Document = json::from_value(value)?;
    let wrong = |field: &str, what: String| json::ReadError::Shape {
        field: field.to_owned(),
        what,
    };
    let size = json::canonical(value).len();
    if size > LARGEST {
        let what = format!("has {size} bytes; a contract has at most {LARGEST}");
        return Err(wrong("", what));
    }
    if !is_segment(&document.task_id) {
        let what = "may hold letters, digits, `.`, `_` and `-`, at most 128";
        return Err(wrong("task_id", what.to_owned()));
    }
    Ok(document)
}

/// Checks every rule, by the shipped agents and schemas; returns the contract or everything that is
/// wrong with it.
pub fn resolve(
    document: Document,
    policy: &CommandPolicy,
    trust: Trust,
) -> Result<Contract, Vec<Problem>> {
    let rules = Rules {
        policy,
        trust,
        purpose: Purpose::Run,
        additions: AdditionsFrom::Nowhere,
    };
    resolve_by(document, &rules)
}

/// The same by `rules`, which must be those of a run.
pub fn resolve_by(document: Document, rules: &Rules<'_>) -> Result<Contract, Vec<Problem>> {
    let (policy, trust) = (rules.policy, rules.trust);
    let value = serde_json::to_value(&document).unwrap_or_default();
    let findings = check::check(&value, rules);
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut problems = Problems::default();
    let extension = document.x_provost.clone().unwrap_or_default();
    let result = ResultRule::of(&document);
    shares::outside_of_scope(&document, &mut problems);
    let contract = Contract {
        scope: paths("/allowed_paths", &document.allowed_paths, &mut problems),
        forbid: paths("/x_provost/forbid", &extension.forbid, &mut problems),
        shares: shares::shared(&document, &mut problems),
        may_lose_tests: extension
            .permit
            .as_ref()
            .is_some_and(|permit| permit.fewer_tests),
        accept_mode: extension.accept_mode.unwrap_or_default(),
        permit: permit(&extension.permit.unwrap_or_default(), &mut problems),
        tests: tests(&document, policy, trust, &mut problems),
        time_limit: Duration::from_secs(document.timeout_retry.timeout_sec),
        limits: Limits::of(&extension.limits.unwrap_or_default(), &Asked::default()),
        result,
        own_schema: rules.additions.of(&document).bound(&document).cloned(),
        net: network(&document, &mut problems),
        loopback: extension.loopback != Some(false),
        tier: extension
            .tier
            .map_or(Ok(Tier::default()), |tier| tier.parse())
            .unwrap_or_default(),
        audit: document.audit_only == Some(true),
        document,
    };
    // The rules have checked every entry; one that could not be parsed would be missing here.
    if problems.0.is_empty() {
        Ok(contract)
    } else {
        Err(problems.0)
    }
}

impl Contract {
    /// The same contract with the limits of a policy where it states none.
    #[must_use]
    pub fn under(mut self, policy: &Asked) -> Self {
        let extension = self.document.x_provost.as_ref();
        let asked = extension.and_then(|extension| extension.limits);
        self.limits = Limits::of(&asked.unwrap_or_default(), policy);
        self
    }
}

/// What a run could not enforce.
fn unkept(document: &Document) -> Vec<Problem> {
    let mut problems = Problems::default();
    permissions(document, &mut problems);
    unsupported(document, &mut problems);
    artifacts(document, &mut problems);
    promises::rollback(document, &mut problems);
    promises::outputs(document, &mut problems);
    if document.parent_task_id.as_ref() == Some(&document.task_id) {
        problems.add("/parent_task_id", "is the task itself");
    }
    strictness(document, &mut problems);
    problems.0
}

/// SHA-256 of the canonical form of `document`.
pub fn digest(document: &Document) -> Result<String, serde_json::Error> {
    let value = serde_json::to_value(document)?;
    Ok(sha256(json::canonical(&value).as_bytes()))
}

/// The verdict of the policy gate about the problems of a contract.
pub fn judge(findings: &[Problem]) -> Verdict {
    let Some(first) = findings.first() else {
        return Verdict::allow("contract is within the repository's policy");
    };
    let first = match first.path.as_str() {
        "" => format!("the document {}", first.problem),
        path => format!("`{path}` {}", first.problem),
    };
    let reason = match findings.len() {
        1 => first,
        count => format!("{count} rules are broken; {first}"),
    };
    Verdict::deny(Code::ContractInvalid, reason).with(json!({ "findings": findings }))
}

fn permissions(document: &Document, problems: &mut Problems) {
    let permissions = &document.tool_permissions;
    let role = document.assigned_agent.role;
    if matches!(role, Role::Pm | Role::TechLead | Role::Reviewer)
        && permissions.filesystem == Filesystem::WorkspaceWrite
    {
        problems.add(
            "/tool_permissions/filesystem",
            "is more than the role may have: read-only",
        );
    }
    if permissions.filesystem == Filesystem::ReadOnly && document.audit_only != Some(true) {
        problems.add(
            "/tool_permissions/filesystem",
            "leaves the agent nothing to land; only a contract with `audit_only` wants that",
        );
    }
}

/// The network endpoints that may be reached: none unless both fields permit it.
fn network(document: &Document, problems: &mut Problems) -> Vec<Endpoint> {
    let (field, list) = ("/tool_permissions/network", "/x_provost/net");
    let extension = document.x_provost.as_ref();
    let entries = extension.map_or(&[][..], |extension| extension.net.as_slice());
    match (document.tool_permissions.network, entries) {
        (Network::Deny, [_, ..]) => problems.add(list, "names hosts, and the network is denied"),
        (Network::Allow, []) => {
            let problem = "`allow` names no hosts; list them in `x_provost.net`";
            problems.add(field, problem);
        }
        (Network::Deny, []) | (Network::Allow, [_, ..]) | (Network::OnRequest, _) => {}
    }
    if entries.len() > MOST_PLACES {
        problems.add(list, format!("names more than {MOST_PLACES} places"));
        return Vec::new();
    }
    let mut places = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        match Endpoint::parse(entry) {
            Ok(place) => places.push(place),
            Err(why) => {
                let problem = format!("(`{}`) {why}", entry.escape_debug());
                problems.add(format!("{list}/{index}"), problem);
            }
        }
    }
    places
}

/// Reports fields that cannot be enforced yet.
fn unsupported(document: &Document, problems: &mut Problems) {
    let extension = document.x_provost.clone().unwrap_or_default();
    let Extension {
        tier,
        limits: _,
        net,
        loopback,
        author: _,
        accept_mode: _,
        target: _,
        forbid: _,
        permit: _,
        shares: _,
        children,
        may_ask,
        full_access,
    } = extension;
    let without_sockets = tier.as_deref() == Some(Tier::Landlock.name());
    if may_ask == Some(true) {
        persons::asking(document, without_sockets, problems);
    }
    if let Some(reason) = full_access {
        persons::wide(document, &reason, without_sockets, problems);
    }
    if children.is_some() && without_sockets {
        let problem = "needs a sandbox of tier `namespaces`, and the contract asks for `landlock`";
        problems.add("/x_provost/children", problem);
    }
    if let Some(tier) = tier {
        let asks = document.tool_permissions.network == Network::OnRequest;
        sandboxed(&tier, asks || !net.is_empty(), loopback, problems);
    }
    let chain = document.handoff_chain.as_ref();
    if chain.is_some_and(|chain| chain.enabled == Some(true)) {
        let problem = "passes work on, and a run is the work of one role; give each role a contract \
                       of its own and let `provost chain` run them";
        problems.add("/handoff_chain/enabled", problem);
    }
    if document.browser_policy.is_some() {
        problems.add("/browser_policy", "is for a browser, and agents get none");
    }
}

/// Whether `document` demands proof of every command.
pub fn is_strict(document: &Document) -> bool {
    let options = document.runtime_options.as_ref();
    options.and_then(|options| options.strict_acceptance) == Some(true)
}

/// A strict contract has no command that tests nothing.
fn strictness(document: &Document, problems: &mut Problems) {
    if !is_strict(document) {
        return;
    }
    for (index, test) in document.acceptance_tests.iter().enumerate() {
        let argv = command::split(&test.cmd).unwrap_or_default();
        if let Proof::Nothing(why) = proof::of(&argv) {
            let problem = format!("{why}, and `strict_acceptance` asks for proof");
            problems.add(format!("/acceptance_tests/{index}/cmd"), problem);
        }
    }
}

/// Reports a tier that does not exist, or that cannot enforce the rest of the contract.
fn sandboxed(tier: &str, has_net: bool, loopback: Option<bool>, problems: &mut Problems) {
    let place = "/x_provost/tier";
    match tier.parse() {
        Err(error) => problems.add(place, format!("(`{}`) {error}", tier.escape_debug())),
        Ok(Tier::Landlock) if has_net || loopback == Some(true) => {
            let problem = "(`landlock`) can hold no grant and has no loopback; use `namespaces`";
            problems.add(place, problem);
        }
        Ok(Tier::Landlock | Tier::Namespaces) => {}
    }
}

/// Reports artifacts that an agent cannot be given.
fn artifacts(document: &Document, problems: &mut Problems) {
    for (index, artifact) in document.inputs.artifacts.iter().enumerate() {
        let path = format!("/inputs/artifacts/{index}");
        let is_schema = artifact.name.starts_with("output_schema");
        if !is_schema && RepoPath::try_from(artifact.uri.as_str()).is_err() {
            problems.add(format!("{path}/uri"), "is no file of the repository");
        }
    }
}

fn bounds(document: &Document, problems: &mut Problems) {
    let limit = &document.timeout_retry;
    if limit.timeout_sec == 0 || limit.timeout_sec > LONGEST.as_secs() {
        problems.add(
            "/timeout_retry/timeout_sec",
            "is not between 1 second and 7 days",
        );
    }
    if limit.max_retries > MOST_RETRIES {
        problems.add("/timeout_retry/max_retries", "is more than 10");
    }
    if limit.retry_backoff_sec > LONGEST.as_secs() {
        problems.add("/timeout_retry/retry_backoff_sec", "is more than 7 days");
    }
    let asked = document.x_provost.as_ref().and_then(|more| more.limits);
    for (name, flaw) in asked.unwrap_or_default().flaws() {
        problems.add(format!("/x_provost/limits/{name}"), flaw);
    }
    let children = document.x_provost.as_ref();
    let children = children.and_then(|more| more.children.as_ref());
    for (name, flaw) in children.iter().flat_map(|grant| grant.flaws()) {
        problems.add(format!("/x_provost/children/{name}"), flaw);
    }
}

fn paths(place: &str, entries: &[String], problems: &mut Problems) -> Scope {
    if entries.len() > scope::MOST {
        problems.add(place, format!("names more than {} paths", scope::MOST));
    }
    let mut paths = Vec::new();
    for (index, entry) in entries.iter().take(scope::MOST).enumerate() {
        match scope::parse_entry(entry) {
            Ok(path) => paths.push(path),
            Err(why) => {
                let problem = format!("(`{}`) {why}", entry.escape_debug());
                problems.add(format!("{place}/{index}"), problem);
            }
        }
    }
    Scope::of(paths)
}

fn permit(permissions: &Permissions, problems: &mut Problems) -> Permit {
    let mut scope = |kind: &str, entries: &[String]| {
        paths(&format!("/x_provost/permit/{kind}"), entries, problems)
    };
    Permit {
        oracle: scope("oracle", &permissions.oracle),
        governing: scope("governing", &permissions.governing),
        binary: scope("binary", &permissions.binary),
        symlink: scope("symlink", &permissions.symlink),
    }
}

fn tests(
    document: &Document,
    policy: &CommandPolicy,
    trust: Trust,
    problems: &mut Problems,
) -> Vec<Test> {
    let mut tests = Vec::new();
    for (index, test) in document.acceptance_tests.iter().enumerate() {
        let verdict = command::judge(&test.cmd, policy, trust);
        if !verdict.allow {
            problems.add(format!("/acceptance_tests/{index}/cmd"), verdict.reason);
            continue;
        }
        if let Ok(argv) = command::split(&test.cmd) {
            let (name, text) = (test.name.clone(), test.cmd.clone());
            tests.push(Test {
                name,
                text,
                argv,
                must_pass: test.must_pass,
            });
        }
    }
    if !document.acceptance_tests.iter().any(|test| test.must_pass) {
        problems.add("/acceptance_tests", "holds no command that must pass");
    }
    tests
}

#[cfg(test)]
mod tests;
