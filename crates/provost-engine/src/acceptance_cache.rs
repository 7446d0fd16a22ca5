//! Decides whether acceptance commands may start on build caches, and which files then count as
//! changed.
//!
//! # Invariants
//!
//! - A cold start is the answer to every doubt.
//! - A warm round decides nothing that a cold one would refuse: if a gate would refuse it, the same
//!   commands run again cold, and the cold round counts.
//! - Where a build tool may not see that an input changed, all files of its package count as newer,
//!   so that the tool builds them again.

use std::collections::{BTreeMap, BTreeSet};

use provost_core::change::{Change, Node};
use provost_core::contract::Test;
use provost_core::object::Oid;
use provost_core::path::{RawPath, RepoPath};
use provost_core::prepare::{self, Output, Step};
use provost_core::protect::{self, Extra};
use provost_core::run::effect::{Accept, AskedStart};
use provost_core::run::fact::{CacheStart, CacheUse, Ending, Fact, Side, TestRun, WarmRound};
use provost_core::run::{Gate, State};

use crate::ports::PortError;

#[cfg(test)]
mod tests;

type Files = BTreeMap<RawPath, Node>;

/// The most directories of one project that are kept.
const MOST_PATHS: usize = 8;

/// The directories with build caches in a project with these files: those of known tools, and
/// `more` from its policy. None of them holds a tracked file or an output of `steps`.
pub fn directories(files: &Files, more: &[Output], steps: &[Step]) -> Vec<Output> {
    let mut found: Vec<Output> = more.to_vec();
    found.extend(known_directories(files));
    let mut chosen: Vec<Output> = Vec::new();
    for output in found {
        let prepared = steps.iter().flat_map(|step| &step.outputs);
        let others = chosen.iter().chain(prepared).chain([&output]);
        let tracked = match &output {
            Output::Tree(path) => holds_files(files, path),
            Output::Home(_) => false,
        };
        if prepare::nested(others).is_none() && !tracked && chosen.len() < MOST_PATHS {
            chosen.push(output);
        }
    }
    chosen
}

/// Where the tools that this project is built with keep their caches.
fn known_directories(files: &Files) -> Vec<Output> {
    let named = |name: &str| files.keys().any(|path| name_of(path) == name.as_bytes());
    let mut texts = Vec::new();
    for path in files.keys().filter(|path| name_of(path) == CARGO) {
        let directory = parent(path.as_bytes());
        // A package inside a workspace uses the directory of the workspace.
        let mut above = ancestors(directory).filter(|it| *it != directory);
        if !above.any(|above| files.contains_key(&RawPath::new(above).join(CARGO))) {
            texts.push(RawPath::new(directory).join(b"target").to_string());
        }
    }
    if named("go.mod") {
        texts.push(GO_CACHE.to_owned());
    }
    if ["build.gradle", "build.gradle.kts"].into_iter().any(named) {
        texts.push("~/.gradle/caches/build-cache-1".to_owned());
    }
    let c = |path: &RawPath| {
        C.iter()
            .any(|end| path.as_bytes().ends_with(end.as_bytes()))
    };
    if files.keys().any(c) {
        texts.push(CCACHE.to_owned());
    }
    texts
        .into_iter()
        .filter_map(|text| Output::try_from(text).ok())
        .collect()
}

/// The build cache of Go in the home of a sandbox.
pub const GO_CACHE: &str = "~/.cache/go-build";
/// The cache of ccache there.
pub const CCACHE: &str = "~/.cache/ccache";
const CARGO: &[u8] = b"Cargo.toml";
const C: [&str; 5] = [".c", ".cc", ".cpp", ".cxx", ".m"];

fn holds_files(files: &Files, path: &RepoPath) -> bool {
    let path = RawPath::from(path);
    let below = path.join(b"");
    files.contains_key(&path)
        || ancestors(parent(path.as_bytes())).any(|above| files.contains_key(&RawPath::new(above)))
        || files
            .range(below.clone()..)
            .next()
            .is_some_and(|(found, _)| found.as_bytes().starts_with(below.as_bytes()))
}

/// What the rules need to know about a round.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The files of the tree under test.
    pub files: &'a Files,
    /// How that tree differs from the base, whose caches would be used.
    pub changes: &'a [Change],
    pub protect: &'a Extra,
    /// The preparation steps of the policy, whose inputs are build files.
    pub steps: &'a [Step],
}

/// How a round starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// On the caches; these files get a newer time than everything in them.
    Warm(BTreeSet<RawPath>),
    /// Without caches, and why.
    Cold(String),
}

/// Decides by what a change touches whether a round on it may start warm.
pub fn decide(facts: &Facts<'_>) -> Start {
    match facts
        .changes
        .iter()
        .find_map(|change| obstacle(facts, change))
    {
        Some(reason) => Start::Cold(reason),
        None => Start::Warm(newer(facts.files, facts.changes)),
    }
}

/// Why a round with this change starts cold.
fn obstacle(facts: &Facts<'_>, change: &Change) -> Option<String> {
    let path = &change.path;
    let (before, after) = match (&change.before, &change.after) {
        (_, None) => return Some(format!("`{path}` is deleted or renamed")),
        (before, Some(after)) => (before, after),
    };
    if before
        .as_ref()
        .is_some_and(|before| before.mode != after.mode)
    {
        return Some(format!("the mode of `{path}` changed"));
    }
    let Ok(known) = RepoPath::try_from(path) else {
        return Some(format!("`{path}` is no name that every tool can read"));
    };
    if protect::classify(&known, facts.protect).is_some() {
        return Some(format!("`{path}` is a build or oracle file"));
    }
    let is_input = |input: &RepoPath| {
        let (input, path) = (input.as_str(), known.as_str());
        path.strip_prefix(input)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if facts
        .steps
        .iter()
        .flat_map(|step| &step.inputs)
        .any(is_input)
    {
        return Some(format!("`{path}` is an input of a `[[prepare]]` step"));
    }
    // Its cache holds results of tests, which do not depend on files that the build does not name.
    let gradle = ["build.gradle", "build.gradle.kts"];
    let gradle = || {
        facts
            .files
            .keys()
            .any(|it| gradle.iter().any(|n| name_of(it) == n.as_bytes()))
    };
    let source = known
        .as_str()
        .split('/')
        .rev()
        .skip(1)
        .any(|part| part == "src");
    (!source && gradle()).then(|| format!("`{path}` may be an input that Gradle does not know"))
}

/// The files that get a newer time: those that changed, and all of a package whose build may depend
/// on one of them in a way that cargo does not see.
fn newer(files: &Files, changes: &[Change]) -> BTreeSet<RawPath> {
    let mut newer: BTreeSet<RawPath> = changes.iter().map(|it| it.path.clone()).collect();
    let mut packages: BTreeSet<Vec<u8>> = BTreeSet::new();
    let holds = |above: &[u8], name: &[u8]| files.contains_key(&RawPath::new(above).join(name));
    let is_cargo = files.keys().any(|path| name_of(path) == CARGO);
    for change in changes.iter().filter(|_| is_cargo) {
        let path = change.path.as_bytes();
        let mut around = ancestors(parent(path)).filter(|above| holds(above, CARGO));
        // A build script may read any file below it, and names only some of them to cargo.
        let scripts = around.clone().filter(|above| holds(above, b"build.rs"));
        packages.extend(scripts.map(<[u8]>::to_vec));
        // A new file can be another module of a name that is taken, and macros read files that are
        // not Rust. Without a package around it, any package may read it.
        if change.before.is_none() || !path.ends_with(b".rs") {
            packages.insert(around.next().unwrap_or_default().to_vec());
        }
    }
    for path in files.keys() {
        if ancestors(parent(path.as_bytes())).any(|above| packages.contains(above)) {
            newer.insert(path.clone());
        }
    }
    newer
}

/// `directory` and every directory above it; the last one is the root, which is empty.
fn ancestors(directory: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    std::iter::successors(Some(directory), |path| {
        (!path.is_empty()).then(|| parent(path))
    })
}

fn parent(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    slash.map_or(&[], |at| &path[..at])
}

fn name_of(path: &RawPath) -> &[u8] {
    let bytes = path.as_bytes();
    let slash = bytes.iter().rposition(|byte| *byte == b'/');
    slash.map_or(bytes, |at| &bytes[at + 1..])
}

/// Words for a warm start on the caches of `commit`.
pub fn warm_words(newer: usize, files: usize, commit: &Oid) -> String {
    let commit = &commit.as_str()[..12.min(commit.as_str().len())];
    format!("{newer} of {files} files newer than the cache of commit {commit}")
}

/// Runs a round by `run`. If it started warm and `is_refused`, it runs again cold, and the cold
/// round is the result.
pub fn settled(
    order: &Accept,
    is_refused: impl Fn(&TestRun) -> bool,
    run: &mut dyn FnMut(&Accept) -> Result<TestRun, PortError>,
) -> Result<TestRun, PortError> {
    let first = run(order)?;
    let stopped = |ending| matches!(ending, Ending::Cancelled | Ending::LeaseLost);
    let is_stopped = first.commands.iter().any(|ran| stopped(ran.ending));
    let layer = first.cache.as_ref().and_then(|cache| cache.layer.clone());
    let (true, Some(layer)) = (first.is_warm() && !is_stopped && is_refused(&first), layer) else {
        return Ok(first);
    };
    let mut again = order.clone();
    again.cache.start = AskedStart::Repeat;
    let mut second = run(&again)?;
    second.cache = Some(Box::new(CacheUse {
        start: CacheStart::Cold,
        reason: "a round that started warm did not pass".to_owned(),
        layer: None,
        kept: None,
        refused: Some(WarmRound {
            layer,
            commands: first.commands,
            altered: first.altered,
        }),
    }));
    Ok(second)
}

/// Whether a gate would refuse the run because of `run`; of a round that no gate judges, whether a
/// command failed that must pass.
pub fn is_refused(state: &State, run: &TestRun) -> bool {
    match run.side {
        Side::Candidate => {
            let mut after = state.clone();
            let applied = after.apply(Fact::TestsRan(run.clone()));
            let allows = |gate| after.judge(gate).allow;
            applied.is_err() || ![Gate::Acceptance, Gate::Tree].into_iter().all(allows)
        }
        Side::Merged => {
            let accepted = state.tests.get(&Side::Candidate);
            let allows = |it: &_| state.judge_round(Some(run), accepted, it).allow;
            !state.contract.as_ref().is_ok_and(allows) || !run.altered.is_empty()
        }
        Side::Base | Side::BaseAgain | Side::OldTests | Side::NewTests => {
            let tests: &[Test] = state.contract.as_ref().map_or(&[], |it| &it.tests);
            let mut pairs = tests.iter().zip(&run.commands);
            let red = pairs.any(|(test, ran)| test.must_pass && ran.ending != Ending::Exited(0));
            red || tests.len() != run.commands.len() || !run.altered.is_empty()
        }
    }
}
