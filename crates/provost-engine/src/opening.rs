//! Decides how a run begins: its contract, with everything it refers to pinned.
//!
//! # Invariants
//!
//! - What limits the run comes from the base commit, or from the person who began it.
//! - A refusal here opens no run, and says what to do.

pub(crate) mod agent;
mod continued;
pub mod defaults;
mod keep_work;
mod preflight;
mod retry;

pub use agent::{OwnLogins, is_granted, reading_agent};

use std::cell::RefCell;
use std::collections::BTreeMap;

pub use continued::continued;
pub use keep_work::{KeepWorkRequest, Wider, keep_work};
pub use preflight::{Preflight, foresee};
pub use retry::{RetryRequest, again};

use provost_core::agent::provider::FoundLogins;
use provost_core::approval::{self, Unasked, Widening};
use provost_core::bundle::layout::BundleFormat;
use provost_core::code::Code;
use provost_core::contract::additions::Additions;
use provost_core::contract::check::{self, LARGEST_REFERENCE, ReadFile, Referred};
use provost_core::contract::{self, document::Document};
use provost_core::lease::Owner;
use provost_core::net::credential::Credential;
use provost_core::net::endpoint::Endpoint;
use provost_core::object::{ObjectFormat, Oid};
use provost_core::path::RepoPath;
use provost_core::policy::Policy;
use provost_core::run::fact::{ExistingWork, Opened, Reviewer, WorkspaceChoice};
use provost_core::run::refs;
use provost_core::scope;

use crate::ports::PortError;
use crate::target;
use serde::{Deserialize, Serialize};

/// The repository that a run starts from, as it is when the run begins.
pub trait Origin {
    fn format(&self) -> ObjectFormat;

    /// The commit that a revision leads to.
    fn resolve(&self, revision: &str) -> Result<Oid, PortError>;

    fn tree(&self, commit: &Oid) -> Result<Oid, PortError>;

    /// The policy in a tree; an empty one if the tree has none.
    fn policy(&self, tree: &Oid) -> Result<Policy, PortError>;

    /// The directory at the top that holds more than half of the files of a tree.
    fn largest(&self, tree: &Oid) -> Result<Option<RepoPath>, PortError>;

    /// SHA-256 of the bytes of a file in a tree; `None` if there is no such file.
    fn digest(&self, tree: &Oid, path: &RepoPath) -> Result<Option<String>, PortError>;

    /// The bytes of a file in a tree, at most `most + 1`; `None` if there is no such file.
    fn read(&self, tree: &Oid, path: &RepoPath, most: usize) -> Result<Option<Vec<u8>>, PortError>;

    /// The branch that is checked out, as a full ref name.
    fn checked_out(&self) -> Result<Option<String>, PortError>;

    /// Whether there is a branch of this full ref name; false if the name is not valid.
    fn has_branch(&self, branch: &str) -> Result<bool, PortError>;
}

/// The run that a user wants to begin.
#[derive(Debug, Clone)]
pub struct Request {
    /// The contract, as written.
    pub contract: Document,
    /// Whether the user typed its commands.
    pub typed: bool,
    pub agent: RequestedAgent,
    /// Work that is judged without an agent.
    pub work: Option<ExistingWork>,
    /// The reviewer, instead of the one in the policy.
    pub review: Option<RequestedAgent>,
    /// The secrets that the proxy adds, by name.
    pub credentials: Vec<Credential>,
    /// The logins that the user has for known programs.
    pub logins: FoundLogins,
    /// How workspaces are made, instead of what the policy says.
    pub workspace: Option<WorkspaceChoice>,
    /// The process that drives the run.
    pub owner: Owner,
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedAgent {
    /// A command that the user typed.
    Typed(String),
    /// An agent that the policy names.
    Named(String),
}

impl RequestedAgent {
    /// The agent as the user wrote it.
    pub fn words(&self) -> &str {
        match self {
            Self::Typed(text) | Self::Named(text) => text,
        }
    }
}

fn target_of(origin: &dyn Origin, document: &Document) -> Result<String, PortError> {
    let named = document.x_provost.as_ref();
    let named = named.and_then(|extra| extra.target.as_deref());
    let exists = |branch: &str| origin.has_branch(branch);
    target::choose(named, origin.checked_out()?, exists)
}

/// The reviewer that was asked for, or that of the policy.
fn reviewer(
    asked: Option<RequestedAgent>,
    (policy, own): (&Policy, OwnLogins<'_>),
    document: &Document,
) -> Result<Option<Reviewer>, PortError> {
    let asked = asked.or_else(|| policy.review.clone().map(RequestedAgent::Named));
    let review = asked.map(|asked| agent::reviewer(&asked, policy, own, document));
    review.transpose()
}

fn endpoints(credentials: &[Credential]) -> Vec<Endpoint> {
    credentials.iter().map(|it| it.endpoint.clone()).collect()
}

/// The first record of the run that `request` asks for.
pub fn opening(origin: &dyn Origin, request: Request) -> Result<Opened, PortError> {
    let document = request.contract;
    let base_commit = base(origin, &document.rollback.baseline_ref)?;
    let base_tree = origin.tree(&base_commit)?;
    let policy = origin.policy(&base_tree)?;
    let target = target_of(origin, &document)?;
    no_branch_in_the_way(origin)?;
    granted(&request.credentials, agent::granted(&document))?;
    let additions = additions(origin, &base_tree, &document)?;
    let widenings = if request.typed {
        // A user who types a contract approves it, but for the user's own files.
        approval::full_access(&document)
    } else {
        let named = endpoints(&request.credentials);
        widenings(origin, &document, (&policy, &base_tree), &named)?
    };
    let own = OwnLogins {
        typed: &request.credentials,
        found: &request.logins,
    };
    let resolved = match &request.work {
        Some(_) => agent::ResolvedAgent::none(),
        None => agent::resolve_for(&request.agent, (&policy, own), &document)?,
    };
    let review = reviewer(request.review, (&policy, own), &document)?;
    let credentials = resolved.credentials(request.credentials, agent::granted(&document))?;
    let artifacts = artifacts(origin, &base_tree, &document)?;
    let references = references(origin, &base_tree, &document)?;
    let digest = contract::digest(&document);
    Ok(Opened {
        contract_sha256: digest.map_err(|error| PortError::of(Code::Bug, error))?,
        contract_source: None,
        contract: document,
        typed: request.typed,
        base_commit,
        base_tree,
        object_format: origin.format(),
        target: Some(target),
        agent: resolved.argv,
        adapted: resolved.adapted,
        agent_typed: matches!(request.agent, RequestedAgent::Typed(_)),
        credentials,
        review,
        protect: policy.protect,
        commands: policy.commands,
        workspace: request.workspace.unwrap_or(policy.workspace),
        cache: policy.cache,
        prepare: policy.prepare,
        loopback: !policy.loopback_off,
        limits: policy.limits,
        artifacts,
        references: Some(references),
        additions,
        least_tier: policy.least_tier,
        ask: policy.ask,
        refuses_programs: true,
        checks_thread: true,
        widenings,
        parent: None,
        work: request.work,
        continues: None,
        part: None,
        policies: policy.policies,
        child: None,
        ticket: None,
        owner: request.owner,
        format: BundleFormat::NEWEST,
        version: request.version,
    })
}

/// What `document` does beyond the policy of its base.
pub fn beyond_policy(origin: &dyn Origin, document: &Document) -> Result<Vec<Widening>, PortError> {
    let tree = origin.tree(&base(origin, &document.rollback.baseline_ref)?)?;
    let policy = origin.policy(&tree)?;
    widenings(origin, document, (&policy, &tree), &[])
}

/// Refuses a branch called `provost`: git cannot hold both it and `provost/RUN`.
fn no_branch_in_the_way(origin: &dyn Origin) -> Result<(), PortError> {
    if origin.has_branch(refs::BRANCHES.trim_end_matches('/'))? {
        let reason = "the branch `provost` is in the way of `provost/RUN`, where results go";
        let hint = "rename it, such as with `git branch -m provost provost-old`";
        return Err(PortError::new(Code::UsageError, reason).hint(hint));
    }
    Ok(())
}

/// Where a contract from a file exceeds what the policy at its base permits without a question.
fn widenings(
    origin: &dyn Origin,
    document: &Document,
    (policy, tree): (&Policy, &Oid),
    named: &[Endpoint],
) -> Result<Vec<Widening>, PortError> {
    let at_top = |entry: &String| {
        let path = scope::parse_entry(entry);
        path.is_ok_and(|path| !path.as_str().contains('/'))
    };
    // Reading a large tree takes a while.
    let largest = if document.allowed_paths.iter().any(at_top) {
        origin.largest(tree)?
    } else {
        None
    };
    let holds_most = |path: &RepoPath| largest.as_ref() == Some(path);
    let additions = additions(origin, tree, document)?;
    let unasked = Unasked {
        agents: additions.agents.into_iter().map(|it| it.agent_id).collect(),
        ..policy.approve.clone()
    };
    Ok(approval::widenings(document, &unasked, named, &holds_most))
}

/// The commit that `revision` names as the base of a run, and its policy.
pub fn policy_at(origin: &dyn Origin, revision: &str) -> Result<(Oid, Policy), PortError> {
    let commit = base(origin, revision)?;
    let policy = origin.policy(&origin.tree(&commit)?)?;
    Ok((commit, policy))
}

/// The commit that the run starts from.
pub(crate) fn base(origin: &dyn Origin, revision: &str) -> Result<Oid, PortError> {
    let commit = origin
        .resolve(revision)
        .map_err(|error| error.hint("commit something first, or name a revision"))?;
    // The sealed contract is compared with the commit; the id of a tag would look like another
    // base.
    if Oid::try_from(revision).is_ok_and(|id| id != commit) {
        let reason =
            format!("the base `{revision}` is not a commit id; it points to commit {commit}");
        return Err(PortError::new(Code::UsageError, reason).hint("name the commit"));
    }
    Ok(commit)
}

/// The digests of the files that `document` refers to, as they are in the base; the gate compares
/// them with the contract.
fn artifacts(
    origin: &dyn Origin,
    tree: &Oid,
    document: &Document,
) -> Result<BTreeMap<String, String>, PortError> {
    let mut found = BTreeMap::new();
    for artifact in &document.inputs.artifacts {
        let Ok(path) = RepoPath::try_from(artifact.uri.as_str()) else {
            continue;
        };
        if artifact.name.starts_with("output_schema") {
            continue;
        }
        if let Some(digest) = origin.digest(tree, &path)? {
            found.insert(artifact.uri.clone(), digest);
        }
    }
    Ok(found)
}

/// The files that the role of `document` refers to, as they are in the base.
fn references(
    origin: &dyn Origin,
    tree: &Oid,
    document: &Document,
) -> Result<BTreeMap<String, Referred>, PortError> {
    with_files(origin, tree, |read| check::refer(document, read))
}

/// The agents and schemas of the base that `document` uses.
fn additions(origin: &dyn Origin, tree: &Oid, document: &Document) -> Result<Additions, PortError> {
    with_files(origin, tree, |read| Additions::of(document, read))
}

/// Calls `take` with a reader of the files in `tree`; a file that could not be read is an error.
pub fn with_files<T>(
    origin: &dyn Origin,
    tree: &Oid,
    take: impl FnOnce(ReadFile<'_>) -> T,
) -> Result<T, PortError> {
    let trouble = RefCell::new(None);
    let read = |path: &RepoPath| match origin.read(tree, path, LARGEST_REFERENCE) {
        Ok(bytes) => bytes,
        Err(error) => {
            trouble.replace(Some(error));
            None
        }
    };
    let taken = take(&read);
    trouble.into_inner().map_or(Ok(taken), Err)
}

/// Refuses a credential for an endpoint that the contract does not grant.
fn granted(credentials: &[Credential], places: &[String]) -> Result<(), PortError> {
    for Credential { endpoint, .. } in credentials {
        if !agent::is_granted(endpoint, places) {
            let reason =
                format!("a credential is for `{endpoint}`, which the contract does not grant");
            return Err(PortError::new(Code::UsageError, reason)
                .hint("add it to `x_provost.net` of the contract"));
        }
    }
    Ok(())
}
