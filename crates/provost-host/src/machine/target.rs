//! Moves the branch that a result is meant for.

use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::run::State;
use provost_engine::land::{Changed, Merge, Target};
use provost_engine::ports::PortError;

use super::{Machine, git, proof, uncaptured};
use crate::capture::{self, Limits, Mode};
use crate::git::land::{Checkout, LandError, checkout_fast_forward};
use crate::git::{Expected, GitError, Merged};
use crate::workspace;

impl Target for Machine {
    fn tip(&mut self, branch: &str) -> Result<Option<Oid>, PortError> {
        self.repo.ref_value(branch).map_err(git)
    }

    fn merge(&mut self, base: &Oid, target: &Oid, candidate: &Oid) -> Result<Merge, PortError> {
        match self.repo.merge_tree(base, target, candidate).map_err(git)? {
            Merged::Clean(tree) => Ok(Merge::Clean(tree)),
            Merged::Conflict(paths) => Ok(Merge::Conflict(
                paths.iter().map(ToString::to_string).collect(),
            )),
        }
    }

    /// A checkout of the tree is captured against the target, so the same eyes look at a merge that
    /// look at an agent's work.
    fn changes(&mut self, target: &Oid, tree: &Oid) -> Result<Changed, PortError> {
        let base = self.repo.commit_tree(target).map_err(git)?;
        let directory = self.places.run.join("merge");
        self.remove(&directory)?;
        std::fs::create_dir_all(&self.places.run)
            .map_err(super::host("make the cache directory"))?;
        let made = workspace::create(&self.repo, tree, &directory, None)
            .map_err(|error| PortError::of(Code::HostFailed, error))?;
        let limits = Limits::default();
        let captured = capture::capture(&self.repo, &base, &made.tree, &limits, Mode::Record)
            .map_err(uncaptured)?;
        self.remove(&self.places.run)?;
        // A tree of an old repository may have another id than its own files make.
        let same = captured.tree == *tree
            || self
                .repo
                .differences(tree, &captured.tree)
                .map_err(git)?
                .is_empty();
        if !same {
            return Err(PortError::new(
                Code::Bug,
                "the merged tree does not survive a checkout",
            ));
        }
        Ok(Changed {
            changes: captured.changes,
            findings: captured.findings,
        })
    }

    fn commit(&mut self, state: &State, tree: &Oid, parent: &Oid) -> Result<Oid, PortError> {
        self.commit_on(state, tree, parent, &proof::commit_message(state, tree))
    }

    fn advance(&mut self, branch: &str, from: &Oid, to: &Oid) -> Result<(), PortError> {
        let checkouts = self.repo.checkouts().map_err(git)?;
        let on_it = checkouts
            .iter()
            .find(|checkout| checkout.branch.as_deref() == Some(branch));
        match on_it {
            Some(checkout) => {
                checkout_fast_forward(&self.repo, &checkout.path, from, to).map_err(refuse)
            }
            None => self
                .repo
                .land_ref(branch, to, &Expected::Is(from.clone()))
                .map_err(|error| refuse(LandError::Git(error))),
        }
    }

    fn retire(&mut self, branch: &str, commit: &Oid) -> Result<(), PortError> {
        let checkouts = self.repo.checkouts().map_err(git)?;
        let used = |checkout: &Checkout| checkout.branch.as_deref() == Some(branch);
        if checkouts.iter().any(used) {
            return Ok(());
        }
        match self.repo.ref_value(branch).map_err(git)? {
            Some(at) if at == *commit => self.repo.delete_ref(branch, commit).map_err(git),
            // Gone already, or somebody went on working there.
            Some(_) | None => Ok(()),
        }
    }
}

fn refuse(error: LandError) -> PortError {
    let code = match &error {
        LandError::Elsewhere { .. }
        | LandError::NotForward { .. }
        | LandError::Git(GitError::RefMoved { .. }) => Code::TargetMoved,
        LandError::Git(_) | LandError::NotACheckout { .. } => Code::GitFailed,
        LandError::Dirty { .. }
        | LandError::InTheWay { .. }
        | LandError::Filtered { .. }
        | LandError::Hidden { .. }
        | LandError::Busy { .. }
        | LandError::Refused { .. } => Code::CheckoutDirty,
    };
    PortError::of(code, error)
}
