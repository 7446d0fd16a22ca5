//! Checks the nodes of a chain against the contract that they are parts of.
//!
//! What a contract permits an agent is an authority of packages version 2. Fields that packages
//! have no axis for are compared separately, with the same wording.

use provost_core::children::{ChildBudget, ChildGrant};
use provost_core::code::Code;
use provost_core::contract::check::Rules;
use provost_core::contract::document::{AcceptMode, Document as Written, Permissions};
use provost_core::contract::{self, Contract, Problem, Test};
use provost_core::gate::diff::Permit;
use provost_core::package::{
    self, Authority, Budget, Handoff, Id, Limits, Package, Place, Refusal, Request, Set,
    ToolPolicy, Version,
};
use provost_core::path::RepoPath;
use provost_core::scope::Scope;

use super::narrow::command_of;
use crate::chain::document::{Document, Node};

/// What an agent under `contract` may do, as far as packages have an axis for it. A command that is
/// narrower than one of `whole` counts as that one.
fn authority(contract: &Contract, whole: &Contract) -> Authority {
    let ids = |texts: Vec<String>| -> Set<Id> {
        let ids = texts.into_iter().filter_map(|text| Id::try_from(text).ok());
        ids.collect()
    };
    let named = |test: &Test| command_of(test, whole).unwrap_or(test).text.clone();
    let tests = contract.tests.iter().map(named);
    let entries = contract.scope.entries().iter();
    Authority {
        read: [Place::everything()].into_iter().collect(),
        write: entries.cloned().map(Place::of).collect(),
        run: ids(tests.collect()),
        network: ids(contract.net.iter().map(ToString::to_string).collect()),
        limits: Limits {
            seconds: contract.time_limit.as_secs(),
            tokens: 0,
            processes: contract.limits.processes,
        },
        ..Authority::default()
    }
}

/// The package of an agent that passes `contract` on to `children` agents.
pub fn parent(contract: &Contract, children: usize) -> Result<Package, Refusal> {
    Ok(Package {
        schema_version: Version,
        agent: id(&contract.document.task_id)?,
        parent: None,
        exercise: Authority::default(),
        delegate: authority(contract, contract),
        budget: Budget {
            levels: 1,
            children: u32::try_from(children).unwrap_or(u32::MAX),
        },
        guards: Set::default(),
        handoff: Handoff::default(),
    })
}

/// The package of an agent under `child`, derived from that of an agent under `whole`.
pub fn derive(parent: &Package, child: &Contract, whole: &Contract) -> Result<Package, Refusal> {
    let derived = package::derive(&Request {
        parent_fingerprint: parent.fingerprint(),
        parent: parent.clone(),
        child_agent_id: id(&child.document.task_id)?,
        tools: ToolPolicy::NoTools {},
        ask: authority(child, whole),
        delegate: Authority::default(),
        children: 0,
        guards: Set::default(),
        handoff: Handoff::default(),
    })?;
    Ok(derived.package)
}

fn id(text: &str) -> Result<Id, Refusal> {
    Id::try_from(text.to_owned()).map_err(|error| Refusal::malformed("task_id", error.to_string()))
}

/// Every point in which the nodes of `document` exceed `written`, or leave out what it demands.
///
/// A node whose own contract breaks a rule is skipped: that is reported elsewhere.
pub(super) fn judge(document: &Document, written: &Written, rules: &Rules<'_>) -> Vec<Problem> {
    // Problems of the parent itself are reported where it is checked.
    let Ok(whole) = contract::resolve_by(written.clone(), rules) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let package = match parent(&whole, document.nodes.len()) {
        Ok(package) => package,
        Err(refusal) => return vec![problem("/parent/task_id", refusal.code, refusal.reason)],
    };
    let mut children = Vec::new();
    for (at, node) in document.nodes.iter().enumerate() {
        let Some(child) = node.contract.clone() else {
            continue;
        };
        let Ok(child) = contract::resolve_by(child, rules) else {
            continue;
        };
        let place = format!("/nodes/{at}");
        found.extend(excess(&place, node, &package, &child, &whole));
        found.extend(dropped(&place, node, &child, &whole));
        children.push((at, child));
    }
    found.extend(grants_of_children(&children, &whole));
    found.extend(overlaps(&children));
    found.extend(left_out_by_all(&children, &whole));
    found
}

fn problem(path: impl Into<String>, code: Code, words: impl Into<String>) -> Problem {
    Problem {
        path: path.into(),
        code,
        problem: words.into(),
    }
}

/// The points in which a node exceeds its parent, each with its axis.
fn excess(
    place: &str,
    node: &Node,
    package: &Package,
    child: &Contract,
    whole: &Contract,
) -> Vec<Problem> {
    let beyond = |words: String| problem(place, Code::PackageExceedsGrant, words);
    let mut found: Vec<Problem> = match derive(package, child, whole) {
        Ok(derived) => match &node.package {
            Some(written) if *written != derived => {
                let words = "is not the package that follows from the parent and this contract";
                let code = Code::ParentFingerprintMismatch;
                vec![problem(format!("{place}/package"), code, words)]
            }
            _ => Vec::new(),
        },
        Err(refusal) if refusal.findings.is_empty() => {
            vec![problem(place, refusal.code, refusal.reason)]
        }
        Err(refusal) => refusal
            .findings
            .iter()
            .map(|finding| beyond(finding.trim_start_matches("ask.").to_owned()))
            .collect(),
    };
    found.extend(beside(child, whole).into_iter().map(beyond));
    found
}

/// Refuses parts whose agents may together start more than the whole grants.
fn grants_of_children(parts: &[(usize, Contract)], whole: &Contract) -> Vec<Problem> {
    let granted = granted(whole).unwrap_or_default();
    let most = granted.budget(whole.time_limit.as_secs());
    let (mut count, mut sum, mut found) = (0u32, ChildBudget::default(), Vec::new());
    for (at, part) in parts {
        let Some(grant) = self::granted(part).filter(|grant| grant.count > 0) else {
            continue;
        };
        count = count.saturating_add(grant.count);
        let seconds = part.time_limit.as_secs();
        sum = sum.plus(ChildBudget {
            // Without a word, each part has its own time limit for them.
            seconds: grant.seconds.unwrap_or(0),
            ..grant.budget(seconds)
        });
        let mut excess = sum.excess(&most);
        if count > granted.count {
            excess.push(format!(
                "{count} agents are asked and {} granted",
                granted.count
            ));
        }
        if grant.levels() > granted.levels() {
            excess.push("more generations are asked than granted".to_owned());
        }
        let listed = |grant: &ChildGrant| grant.models.clone().unwrap_or_default();
        let of_whole = listed(&granted);
        if listed(&grant).iter().any(|model| !of_whole.contains(model)) {
            excess.push("a model is asked that is not granted".to_owned());
        }
        let tools = granted.messages.as_deref().unwrap_or_default();
        if grant
            .messages
            .iter()
            .flatten()
            .any(|tool| !tools.contains(tool))
        {
            excess.push("a tool for messages is asked that is not granted".to_owned());
        }
        let place = format!("/nodes/{at}/contract/x_provost/children");
        let code = Code::PackageExceedsGrant;
        let all = excess.into_iter();
        found.extend(all.map(|reason| problem(&place, code, format!("children: {reason}"))));
    }
    found
}

fn granted(contract: &Contract) -> Option<ChildGrant> {
    contract.document.x_provost.as_ref()?.children.clone()
}

/// Fields that packages have no axis for.
fn beside(child: &Contract, whole: &Contract) -> Vec<String> {
    let mut found = Vec::new();
    permits(&child.permit, &whole.permit, &mut found);
    if child.may_lose_tests && !whole.may_lose_tests {
        found.push("permit: `fewer_tests` is not granted".to_owned());
    }
    for path in whole.forbid.entries() {
        let touches = Scope::of(vec![path.clone()]).overlaps(&child.scope);
        if touches && !child.forbid.covers(path) {
            found.push(format!("forbid: `{path}` is forbidden and is left out"));
        }
    }
    if child.tier < whole.tier {
        found.push(format!(
            "tier: `{}` is weaker than `{}`",
            child.tier, whole.tier
        ));
    }
    if child.accept_mode != whole.accept_mode && child.accept_mode != AcceptMode::default() {
        found.push("accept_mode: lets tests fail that must pass for the whole".to_owned());
    }
    if child.loopback && !whole.loopback {
        found.push("loopback: is not granted".to_owned());
    }
    numbers(child, whole, &mut found);
    let (mine, theirs) = (&child.document, &whole.document);
    let tools = [
        ("mcp_tool_set", &mine.mcp_tool_set, &theirs.mcp_tool_set),
        (
            "mcp_tools",
            &mine.tool_permissions.mcp_tools,
            &theirs.tool_permissions.mcp_tools,
        ),
    ];
    for (axis, asked, granted) in tools {
        for tool in asked.iter().filter(|tool| !granted.contains(tool)) {
            found.push(format!("{axis}: `{tool}` is not granted"));
        }
    }
    for words in &theirs.forbidden_actions {
        if !mine.forbidden_actions.contains(words) {
            found.push(format!("forbidden_actions: `{words}` is left out"));
        }
    }
    found
}

/// Limits that packages have no axis for.
fn numbers(child: &Contract, whole: &Contract, found: &mut Vec<String>) {
    let (mine, theirs) = (&child.document, &whole.document);
    let numbers = [
        (
            "retries",
            u64::from(mine.timeout_retry.max_retries),
            u64::from(theirs.timeout_retry.max_retries),
        ),
        (
            "seconds without progress",
            child.limits.no_progress.as_secs(),
            whole.limits.no_progress.as_secs(),
        ),
        (
            "bytes of memory",
            child.limits.memory_bytes,
            whole.limits.memory_bytes,
        ),
        (
            "bytes of disk",
            child.limits.disk_bytes,
            whole.limits.disk_bytes,
        ),
        ("files", child.limits.inodes, whole.limits.inodes),
        (
            "bytes of output",
            child.limits.output_bytes,
            whole.limits.output_bytes,
        ),
    ];
    for (what, asked, granted) in numbers {
        if asked > granted {
            found.push(format!(
                "limits: {asked} {what} are asked and {granted} granted"
            ));
        }
    }
}

fn permits(child: &Permit, whole: &Permit, found: &mut Vec<String>) {
    let kinds = [
        ("oracle", &child.oracle, &whole.oracle),
        ("governing", &child.governing, &whole.governing),
        ("binary", &child.binary, &whole.binary),
        ("symlink", &child.symlink, &whole.symlink),
    ];
    for (kind, asked, granted) in kinds {
        let outside = |path: &&RepoPath| !granted.covers(path);
        for path in asked.entries().iter().filter(outside) {
            found.push(format!("permit.{kind}: `{path}` is not granted"));
        }
    }
}

/// Commands of the parent that a node leaves out without listing them in `drops`.
fn dropped(place: &str, node: &Node, child: &Contract, whole: &Contract) -> Vec<Problem> {
    let has = |text: &str| has_command([child], whole, text);
    let said = |text: &str| {
        let mut drops = node.drops.iter();
        drops.any(|one| one.cmd == text && !one.reason.trim().is_empty())
    };
    let wanted = whole.tests.iter().filter(|test| test.must_pass);
    wanted
        .filter(|test| !has(&test.text) && !said(&test.text))
        .map(|test| {
            let words = format!(
                "acceptance: `{}` is left out; say why in `drops`",
                test.text
            );
            problem(place, Code::PackageExceedsGrant, words)
        })
        .collect()
}

/// Whether one of `children` has the command `text` of `whole`, or a narrower one.
fn has_command<'a>(
    children: impl IntoIterator<Item = &'a Contract>,
    whole: &Contract,
    text: &str,
) -> bool {
    let mut tests = children.into_iter().flat_map(|child| &child.tests);
    tests.any(|test| {
        test.must_pass && command_of(test, whole).is_some_and(|command| command.text == text)
    })
}

/// Commands of the parent that every node leaves out.
fn left_out_by_all(children: &[(usize, Contract)], whole: &Contract) -> Vec<Problem> {
    let has = |text: &str| has_command(children.iter().map(|(_, child)| child), whole, text);
    let wanted = whole.tests.iter().filter(|test| test.must_pass);
    wanted
        .filter(|test| !has(&test.text))
        .map(|test| {
            let words = format!("acceptance: `{}` is left out by every node", test.text);
            problem("/nodes", Code::PackageExceedsGrant, words)
        })
        .collect()
}

/// Nodes of one parent that share a path without declaring it.
fn overlaps(children: &[(usize, Contract)]) -> Vec<Problem> {
    let mut found = Vec::new();
    for (number, (at, child)) in children.iter().enumerate() {
        for (earlier, other) in &children[..number] {
            for path in child.scope.entries() {
                if !undeclared(path, child, other) {
                    continue;
                }
                let words = format!(
                    "write: `{path}` overlaps the scope of /nodes/{earlier}; what both may write \
                     has to be in `x_provost.shares` of both"
                );
                found.push(problem(format!("/nodes/{at}"), Code::ChainInvalid, words));
            }
        }
    }
    found
}

/// Whether `other` may write at `path` of `child`, and not both say so.
fn undeclared(path: &RepoPath, child: &Contract, other: &Contract) -> bool {
    let here = Scope::of(vec![path.clone()]);
    other.scope.entries().iter().any(|theirs| {
        let there = Scope::of(vec![theirs.clone()]);
        let common = if here.covers(theirs) { theirs } else { path };
        let is_common = here.covers(common) && there.covers(common);
        let shared = child.shares.covers(common) && other.shares.covers(common);
        // Two spellings that some file systems take for one path have no common entry.
        here.overlaps(&there) && !(is_common && shared)
    })
}

/// The paths of the parent that no child has: entries as they are written, and of `files` those
/// that lie in an entry of which children have only a part.
pub fn gaps<'a>(
    whole: &Scope,
    children: &[&Scope],
    files: impl Iterator<Item = &'a RepoPath>,
) -> Vec<RepoPath> {
    let handed = |path: &RepoPath| children.iter().any(|child| child.covers(path));
    let mut open: Vec<RepoPath> = files
        .filter(|path| whole.covers(path) && !handed(path))
        .cloned()
        .collect();
    for entry in whole.entries() {
        let below = Scope::of(vec![entry.clone()]);
        let in_part = children.iter().any(|child| child.overlaps(&below));
        if !in_part && !open.iter().any(|path| path.is_within(entry)) {
            open.push(entry.clone());
        }
    }
    open
}

/// The permits of a child of `whole`: those that its own scope can use.
pub fn permits_within(written: &Permissions, scope: &Scope) -> Permissions {
    let keep = |entries: &[String]| -> Vec<String> {
        let usable = |entry: &&String| {
            let path = provost_core::scope::parse_entry(entry);
            path.is_ok_and(|path| Scope::of(vec![path]).overlaps(scope))
        };
        entries.iter().filter(usable).cloned().collect()
    };
    Permissions {
        oracle: keep(&written.oracle),
        governing: keep(&written.governing),
        binary: keep(&written.binary),
        symlink: keep(&written.symlink),
        fewer_tests: written.fewer_tests,
    }
}
