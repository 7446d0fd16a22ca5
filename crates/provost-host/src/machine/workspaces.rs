//! Decides how workspaces are made, and makes them.
//!
//! A copy behaves like any directory. An overlay is cheap however large the tree is, but the kernel
//! refuses to rename a directory of its lower layer, so small trees are copied.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::run::effect;
use provost_core::run::fact::{Placed, WorkspaceChoice, WorkspaceKind};
use provost_core::tier::Tier;
use provost_engine::ports::PortError;

use super::{Machine, git, overlay_check, profile};
use crate::capture::Source;
use crate::sandbox::{Mount, Profile};
use crate::workspace::{self, Dates, Lower, PrivateGit, Workspace, WorkspaceError, submodule};

/// The fewest files that are worth an overlay.
///
/// Measured on two busy cores and a slow disk, with files of 4 kB: 5 000 files take 7 s as a copy
/// and 0.03 s as an overlay with an existing checkout, 50 000 files 12 s and 0.3 s. Below that a
/// copy takes a second or two, and directories can be renamed in it.
const LEAST_FILES: usize = 5_000;

/// What a workspace is made of.
enum Ground {
    /// A checkout of its own, and why.
    Copy(String),
    /// A shared checkout as the lower layer.
    Lower(Arc<Lower>),
}

/// A tree for an acceptance round, a reviewer or a planner.
pub(super) struct Wanted<'a> {
    base: &'a effect::Base,
    tree: &'a Oid,
    choice: WorkspaceChoice,
    tier: Tier,
    dates: Dates,
}

impl<'a> Wanted<'a> {
    /// The tree that the acceptance commands judge.
    pub(super) fn of_round(order: &'a effect::Accept, dates: Dates) -> Self {
        Self {
            base: &order.base,
            tree: &order.tree,
            choice: order.choice,
            tier: order.tier,
            dates,
        }
    }

    /// The tree for a reviewer or planner.
    pub(super) fn of_look(order: &'a effect::ReadOnlyRun) -> Self {
        Self {
            base: &order.base,
            tree: &order.tree,
            choice: order.choice,
            tier: order.tier,
            dates: Dates::default(),
        }
    }
}

/// A workspace that no command has used yet.
pub(super) struct Fresh {
    pub(super) workspace: Workspace,
    /// Keeps the lower layer from being removed.
    _lower: Option<Arc<Lower>>,
}

impl Machine {
    /// Makes the workspace of the attempt.
    pub(super) fn place(
        &mut self,
        order: &effect::Workspace,
        directory: &Path,
    ) -> Result<Placed, PortError> {
        self.lower = None;
        let (tree, private) = (&order.tree, self.private(&order.base, order.tier));
        let ground = if *tree == order.base.tree {
            self.ground(tree, order.choice, order.tier)?
        } else {
            // Capture compares the upper layer with the base, which would not be the lower layer.
            Ground::Copy("it begins with a candidate".to_owned())
        };
        let (kind, reason) = match ground {
            Ground::Copy(reason) => {
                workspace::create(&self.repo, tree, directory, Some(&private)).map_err(failed)?;
                (WorkspaceKind::Copy, reason)
            }
            Ground::Lower(lower) => {
                workspace::create_over(&self.repo, &lower, directory, &private).map_err(failed)?;
                self.lower = Some(lower);
                (WorkspaceKind::Overlay, String::new())
            }
        };
        Ok(Placed {
            path: directory.display().to_string(),
            kind,
            reason,
        })
    }

    /// Locks the lower layer of the attempt's workspace; a driver that took the run over has not
    /// done so yet.
    pub(super) fn stand(&mut self, agent: &effect::AgentEffect) -> Result<(), PortError> {
        let directory = self.places.attempt(agent.attempt);
        let left = workspace::left_in(&directory);
        if self.lower.is_none() && matches!(left, Some(Source::Upper(_))) {
            let tree = &agent.base.tree;
            self.lower = Some(self.hold(tree)?);
        }
        let Some(ready) = &self.ready else {
            // A driver that takes a run over prepares again.
            return if agent.prepare.steps.is_empty() {
                Ok(())
            } else {
                Err(PortError::new(Code::Bug, "nothing was prepared"))
            };
        };
        let tree = Workspace::open(&directory, self.lowers()).tree;
        ready.make_places(&tree, Some(&self.places.home))
    }

    /// The lower layers of the attempt's workspace.
    fn lowers(&self) -> Vec<PathBuf> {
        self.lower.iter().map(|lower| lower.files()).collect()
    }

    /// The mount of the workspace in `directory` for a sandbox.
    pub(super) fn mounted(&self, directory: &Path) -> Result<Mount, PortError> {
        let lowers = match (workspace::left_in(directory), &self.lower) {
            (Some(Source::Directory(_)), _) => Vec::new(),
            (Some(Source::Upper(_)), Some(lower)) => vec![lower.files()],
            (Some(Source::Upper(_)), None) | (None, _) => {
                return Err(PortError::new(Code::HostFailed, "the workspace is gone"));
            }
        };
        Ok(Workspace::open(directory, lowers).mount(profile::TREE.as_ref()))
    }

    /// Makes a workspace of exactly the tree that is `wanted`, from git objects alone.
    pub(super) fn fresh(&self, wanted: &Wanted<'_>, directory: &Path) -> Result<Fresh, PortError> {
        let (repo, private) = (&self.repo, self.private(wanted.base, wanted.tier));
        // A candidate is used once, so its lower layer is the existing checkout of its base.
        let (base, tree) = (&wanted.base.tree, wanted.tree);
        let ground = if tree == base || self.places.lowers.know(base) {
            self.ground(base, wanted.choice, wanted.tier)?
        } else {
            Ground::Copy(String::new())
        };
        let (made, lower) = match ground {
            Ground::Copy(_) => {
                let private = Some(&private);
                let made = workspace::create_dated(repo, tree, directory, private, &wanted.dates);
                (made, None)
            }
            Ground::Lower(lower) if tree == base => {
                let made = workspace::create_over(repo, &lower, directory, &private);
                (made, Some(lower))
            }
            Ground::Lower(lower) => {
                let made = workspace::create_between(
                    repo,
                    &lower,
                    tree,
                    directory,
                    &private,
                    &wanted.dates,
                );
                (made, Some(lower))
            }
        };
        Ok(Fresh {
            workspace: made.map_err(failed)?,
            _lower: lower,
        })
    }

    /// What a workspace of `tree` is best made of.
    fn ground(&self, tree: &Oid, choice: WorkspaceChoice, tier: Tier) -> Result<Ground, PortError> {
        let lowers = &self.places.lowers;
        let asked = choice == WorkspaceChoice::Overlay;
        if choice == WorkspaceChoice::Copy {
            return Ok(Ground::Copy("the policy of the repository".to_owned()));
        }
        if tier == Tier::Landlock {
            let reason = "no overlay: tier `landlock` has no mounts";
            return if asked {
                Err(PortError::new(Code::SandboxUnavailable, reason))
            } else {
                Ok(Ground::Copy(reason.to_owned()))
            };
        }
        // An existing checkout is used even for a small tree.
        if !asked && !lowers.know(tree) {
            let files = self.repo.read_tree(tree).map_err(git)?.files.len();
            if files < LEAST_FILES {
                let reason = format!("{files} files, an overlay begins at {LEAST_FILES}");
                return Ok(Ground::Copy(reason));
            }
        }
        if let Some(refusal) = overlay_check::refusal(&self.launcher, &self.places.cache) {
            let reason = format!("no overlay: {refusal}");
            return if asked {
                Err(PortError::new(Code::SandboxUnavailable, reason))
            } else {
                Ok(Ground::Copy(reason))
            };
        }
        Ok(Ground::Lower(self.hold(tree)?))
    }

    /// The shared checkout of `tree`: the one that is locked already, or a newly locked one.
    fn hold(&self, tree: &Oid) -> Result<Arc<Lower>, PortError> {
        if let Some(lower) = self.lower.as_ref().filter(|lower| lower.tree() == tree) {
            return Ok(Arc::clone(lower));
        }
        let lower = self.places.lowers.hold(&self.repo, tree).map_err(failed)?;
        let listing = lower.listing(self.repo.format()).map_err(failed)?;
        self.repo.remember(tree, listing);
        Ok(Arc::new(lower))
    }

    /// Adds the submodules of `tree` to `profile`, read-only; those without objects stay empty.
    pub(super) fn add_submodules(
        &self,
        profile: &mut Profile,
        tree: &Oid,
    ) -> Result<(), PortError> {
        if profile.tier == Tier::Landlock {
            // This tier has no mounts.
            return Ok(());
        }
        let mut last = self.submodules.borrow_mut();
        if last.as_ref().is_none_or(|(of, _)| of != tree) {
            let mut held = Vec::new();
            for one in workspace::submodules(&self.repo, tree).map_err(git)? {
                let layer = submodule::hold(&self.places.layers, &one).map_err(failed)?;
                held.extend(layer.map(|layer| (one.path, layer)));
            }
            *last = Some((tree.clone(), held));
        }
        for (path, layer) in last.iter().flat_map(|(_, held)| held) {
            profile.add(Mount::ReadOnly {
                source: layer.output(0),
                target: Path::new(profile::TREE).join(path.as_str()),
            });
        }
        Ok(())
    }

    /// The git directory of a workspace.
    fn private(&self, base: &effect::Base, tier: Tier) -> PrivateGit {
        PrivateGit {
            commit: base.commit.clone(),
            objects: match tier {
                Tier::Namespaces => profile::OBJECTS.into(),
                // This tier has no mounts.
                Tier::Landlock => self.repo.objects().to_owned(),
            },
        }
    }
}

fn failed(error: WorkspaceError) -> PortError {
    PortError::of(Code::HostFailed, error)
}
