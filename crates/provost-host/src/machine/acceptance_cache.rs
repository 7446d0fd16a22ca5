//! Lets a round of the acceptance commands start on the build caches of its base, and keeps those
//! that a round on a trusted commit left.
//!
//! # Invariants
//!
//! - Caches are kept only of a cold round on the base of a run, if that is in the history of the
//!   target branch. No agent worked on such a tree.
//! - A round writes to layers of its own, which are removed with its workspace.
//! - Whatever fails here makes the round cold, and the reason is recorded.

use std::fs;
use std::path::Path;

use provost_core::json;
use provost_core::object::sha256;
use provost_core::prepare::Output;
use provost_core::run::effect::{Accept, AskedStart};
use provost_core::run::fact::{CacheStart, CacheUse, CommandRun};
use provost_core::tier::Tier;
use provost_core::{contract::Test, path::RawPath};
use provost_engine::acceptance_cache::{self, CCACHE, Facts, Start};
use provost_engine::ports::PortError;
use serde_json::json;

use super::prepare::{identity, target};
use super::{Machine, accept, git, host, overlay_check};
use crate::sandbox::{Mount, Profile};
use crate::workspace::build_cache::{BuildCache, LeftDirectory};
use crate::workspace::{Dates, Workspace, WorkspaceError, layer};

/// The directory of a workspace for what a round writes to its caches.
const CACHES: &str = "caches";

/// The build caches of one round.
pub(super) struct RoundCache {
    /// Where the project keeps them; nothing else matters if there are none.
    directories: Vec<Output>,
    /// The name of the entry that belongs to the round.
    key: String,
    /// The entry that it starts on.
    layer: Option<BuildCache>,
    dates: Dates,
    /// Why it starts as it does.
    reason: String,
    /// Whether what it leaves is kept.
    keep: bool,
}

impl RoundCache {
    /// The times of the files in its workspace.
    pub(super) fn dates(&self) -> Dates {
        self.dates.clone()
    }

    /// What belongs into the name of a remembered result, so that a round which has caches to keep
    /// runs once more if only its result is known.
    pub(super) fn memory(&self) -> Option<&str> {
        (self.keep && !self.directories.is_empty()).then_some(self.key.as_str())
    }

    /// Makes the directories that are mounted in the sandbox of the round, and adds the mounts.
    pub(super) fn mount(
        &self,
        workspace: &Workspace,
        profile: &mut Profile,
    ) -> Result<(), PortError> {
        for (number, output) in self.directories.iter().enumerate() {
            let own = workspace.root.join(CACHES).join(number.to_string());
            let target = target(output);
            match (&self.layer, output) {
                (Some(layer), _) => {
                    if let Output::Tree(path) = output {
                        layer::make_place(&workspace.tree, path)
                            .map_err(host("make room for a build cache"))?;
                    }
                    let [upper, work] = ["upper", "work"].map(|name| own.join(name));
                    make(&upper)?;
                    make(&work)?;
                    profile.add(Mount::Overlay {
                        lowers: vec![layer.directory(number)],
                        upper,
                        work,
                        target,
                    });
                }
                // Its home is in memory otherwise.
                (None, Output::Home(_)) if self.keep => {
                    make(&own)?;
                    let source = own;
                    profile.add(Mount::Writable { source, target });
                }
                (None, Output::Home(_) | Output::Tree(_)) => {}
            }
        }
        Ok(())
    }
}

fn make(directory: &Path) -> Result<(), PortError> {
    fs::create_dir_all(directory).map_err(host("make room for a build cache"))
}

impl Machine {
    /// Decides how the round `order` starts; `profile` is the digest of its sandbox.
    pub(super) fn round_cache(
        &self,
        order: &Accept,
        profile: &str,
    ) -> Result<RoundCache, PortError> {
        let base = self.repo.read_tree(&order.base.tree).map_err(git)?;
        let (rules, steps) = (&order.cache.rules, &order.prepare.steps);
        let mut directories = acceptance_cache::directories(&base.files, &rules.acceptance, steps);
        let named = |output: &Output| rules.acceptance.contains(output);
        directories.retain(|output| {
            named(output) || output.to_string() != CCACHE || identity::is_installed("ccache")
        });
        let mut cache = RoundCache {
            key: key(order, profile, &directories),
            directories,
            layer: None,
            dates: Dates::default(),
            reason: String::new(),
            keep: false,
        };
        if cache.directories.is_empty() {
            return Ok(cache);
        }
        match self.start(order, &cache) {
            Ok((layer, dates, reason)) => {
                (cache.layer, cache.dates, cache.reason) = (Some(layer), dates, reason);
            }
            Err(reason) => cache.reason = reason,
        }
        let is_base = order.tree == order.base.tree && order.cache.keep;
        cache.keep = is_base && order.tier == Tier::Namespaces && self.trusted(order).is_ok();
        Ok(cache)
    }

    /// The caches to start on, the dates of the files, and words for it; an error says why the
    /// round is cold.
    fn start(
        &self,
        order: &Accept,
        cache: &RoundCache,
    ) -> Result<(BuildCache, Dates, String), String> {
        match order.cache.start {
            AskedStart::Warm => {}
            AskedStart::Cold(reason) => return Err(reason.to_owned()),
            AskedStart::Repeat => return Err("a round that started warm did not pass".to_owned()),
        }
        if order.tier != Tier::Namespaces {
            return Err(format!("tier `{}` has no mounts", order.tier));
        }
        self.trusted(order)?;
        let words = |error: &dyn std::error::Error| chain(error);
        let found = self.places.builds.find(&cache.key);
        let layer = found.map_err(|error| words(&error))?.ok_or_else(|| {
            if self.places.builds.know(&cache.key) {
                "the cache of the base was changed on disk".to_owned()
            } else {
                "no cache of the base is kept for these commands and this sandbox".to_owned()
            }
        })?;
        let changes = self.repo.differences(&order.base.tree, &order.tree);
        let changes = changes.map_err(|error| words(&error))?;
        let tree = self
            .repo
            .read_tree(&order.tree)
            .map_err(|error| words(&error))?;
        let facts = Facts {
            files: &tree.files,
            changes: &changes,
            protect: &order.cache.protect,
            steps: &order.prepare.steps,
        };
        let newer = match acceptance_cache::decide(&facts) {
            Start::Warm(newer) => newer,
            Start::Cold(reason) => return Err(reason),
        };
        let at = layer.later();
        let at = at.ok_or("the clock was set back since the cache was kept")?;
        if let Some(refusal) = overlay_check::refusal(&self.launcher, &self.places.cache) {
            return Err(format!("no overlay: {refusal}"));
        }
        let (count, files) = (newer.len(), tree.files.len());
        let reason = acceptance_cache::warm_words(count, files, &layer.about.commit);
        let at = Some(at);
        Ok((layer, Dates { newer, at }, reason))
    }

    /// Whether the base of the round is in the history of the target branch; an error says why not.
    fn trusted(&self, order: &Accept) -> Result<(), String> {
        let branch = order.cache.target.as_deref();
        let branch = branch.ok_or("the run has no target branch")?;
        let tip = self.repo.ref_value(branch).map_err(|error| chain(&error))?;
        let tip = tip.ok_or_else(|| format!("there is no branch `{branch}`"))?;
        let commit = &order.base.commit;
        match self.repo.follows(&tip, commit) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("the base is not in the history of `{branch}`")),
            Err(error) => Err(chain(&error)),
        }
    }

    /// Keeps what the round left, if it may be kept, and says how it started.
    pub(super) fn close_cache(
        &self,
        order: &Accept,
        cache: &RoundCache,
        workspace: &Workspace,
        (commands, altered): (&[CommandRun], &[RawPath]),
    ) -> Option<CacheUse> {
        if cache.directories.is_empty() {
            return None;
        }
        let start = match &cache.layer {
            Some(_) => CacheStart::Warm,
            None => CacheStart::Cold,
        };
        let mut said = CacheUse {
            start,
            reason: cache.reason.clone(),
            layer: cache.layer.as_ref().map(BuildCache::recorded),
            kept: None,
            refused: None,
        };
        let is_settled = commands.iter().all(|ran| accept::is_settled(ran.ending));
        if cache.keep && is_settled && altered.is_empty() {
            match self.keep_cache(order, cache, workspace) {
                Ok(Some(kept)) => said.kept = Some(kept.recorded()),
                Ok(None) => said.reason += "; the commands left no build cache",
                Err(error) => {
                    let why = chain(&error);
                    said.reason += &format!("; the build cache could not be kept: {why}");
                }
            }
        }
        Some(said)
    }

    fn keep_cache(
        &self,
        order: &Accept,
        cache: &RoundCache,
        workspace: &Workspace,
    ) -> Result<Option<BuildCache>, WorkspaceError> {
        let left = |(number, output): (usize, &Output)| {
            let name = output.to_string();
            let (root, path) = match output {
                Output::Tree(path) => (workspace.tree.clone(), path.clone()),
                Output::Home(_) => {
                    let path = number.to_string().try_into().ok()?;
                    (workspace.root.join(CACHES), path)
                }
            };
            Some(LeftDirectory { name, root, path })
        };
        let left: Vec<LeftDirectory> = cache
            .directories
            .iter()
            .enumerate()
            .filter_map(left)
            .collect();
        let of = (&order.base.commit, &order.base.tree);
        self.places.builds.keep(&cache.key, of, &left)
    }
}

/// The name of the caches of the base of `order`: another tree, sandbox, command or toolchain has
/// others.
fn key(order: &Accept, profile: &str, directories: &[Output]) -> String {
    let argv = |test: &Test| test.argv.clone();
    let commands: Vec<Vec<String>> = order.tests.iter().map(argv).collect();
    let toolchain = identity::of_commands(&commands);
    let key = json!({ "tree": order.base.tree, "profile": profile, "commands": commands,
                      "toolchain": toolchain, "directories": directories, "version": 1 });
    sha256(json::canonical(&key).as_bytes())
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    text
}
