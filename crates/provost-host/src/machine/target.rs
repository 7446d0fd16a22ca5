//! Moves the branch that a result lands on.

use provost_core::change::FindingKind;
use provost_core::code::Code;
use provost_core::object::{Kind, Oid};
use provost_core::run::effect::{Accept, Capture, ExistingTree, Merge, Review};
use provost_core::run::fact::{ReviewRun, TestRun};
use provost_engine::bundle::after::{Candidate, LandCommit};
use provost_engine::land::{
    Changed, CommitOrder, CommitPeople, CommitPerson, MergeOutcome, Target,
};
use provost_engine::ports::{PortError, Watch};

use super::accept::TESTS;
use super::read_only_agent::LOOK;
use super::{Machine, git, of_run, uncaptured};
use crate::capture::{self, Captured, Limits, Mode};
use crate::git::land::{LandError, checkout_fast_forward};
use crate::git::{Checkout, Expected, GitError, Merged, Person, SigningError};
use crate::workspace;

/// The directory in which a merge is checked.
const MERGE: &str = "merge";

impl Target for Machine {
    fn tip(&mut self, branch: &str) -> Result<Option<Oid>, PortError> {
        if let Some(real) = self.repo.alias_of(branch).map_err(git)? {
            let name = branch.to_owned();
            return Err(refuse(LandError::Alias { name, real }));
        }
        self.repo.ref_value(branch).map_err(git)
    }

    fn holds(&mut self, tip: &Oid, commit: &Oid) -> Result<bool, PortError> {
        match self.repo.commit_tree(commit) {
            Ok(_) => self.repo.follows(tip, commit).map_err(git),
            Err(GitError::Missing { .. }) => Ok(false),
            Err(error) => Err(git(error)),
        }
    }

    fn merge(&mut self, order: &Merge, target: &Oid) -> Result<MergeOutcome, PortError> {
        let (base, candidate) = (&order.base, &order.candidate);
        let tree = match self.repo.merge_tree(base, target, candidate).map_err(git)? {
            Merged::Clean(tree) => tree,
            Merged::Conflict(paths) => {
                let paths = paths.iter().map(ToString::to_string).collect();
                return Ok(MergeOutcome::Conflict(paths));
            }
        };
        let message = order.words.message(&tree);
        let commit = self.commit(&tree, target, &message, order.seconds)?;
        self.point(&format!("{}/{commit}", order.refs), &commit)?;
        Ok(MergeOutcome::Clean(Candidate {
            commit,
            tree,
            parent: target.clone(),
        }))
    }

    /// Captures a checkout of the tree against the target, so that a merge gets the same checks as
    /// an agent's work.
    fn changes(&mut self, target: &Oid, tree: &Oid) -> Result<Changed, PortError> {
        let base = self.repo.commit_tree(target).map_err(git)?;
        let mut captured = self.captured_tree(&base, tree, &Limits::default())?;
        self.find_secrets(&mut captured, &base)?;
        Ok(Changed {
            changes: captured.changes,
            findings: captured.findings,
        })
    }

    fn accept(&mut self, order: &Accept, watch: &mut dyn Watch) -> Result<TestRun, PortError> {
        self.run_tests(order, watch)
    }

    fn tree(&mut self, commit: &Oid) -> Result<Oid, PortError> {
        self.repo.commit_tree(commit).map_err(git)
    }

    fn review(&mut self, order: &Review, watch: &mut dyn Watch) -> Result<ReviewRun, PortError> {
        self.review_candidate(order, watch)
    }

    fn people(&mut self) -> Result<CommitPeople, PortError> {
        let Some([author, committer]) = self.repo.people().map_err(git)? else {
            let reason = "git knows no name and address for the author of the commit";
            let hint = "git config --global user.name 'Your Name' && \
                        git config --global user.email you@example.com";
            return Err(PortError::new(Code::IdentityMissing, reason).hint(hint));
        };
        let person = |Person { name, mail, .. }| CommitPerson { name, email: mail };
        Ok(CommitPeople {
            author: person(author),
            committer: person(committer),
        })
    }

    fn write_commit(&mut self, order: &CommitOrder) -> Result<LandCommit, PortError> {
        let mut object = order.object();
        if let Some(signing) = self.repo.signing().map_err(git)? {
            let person = |person: &CommitPerson| Person {
                name: person.name.clone(),
                mail: person.email.clone(),
                time: order.seconds,
            };
            let (author, committer) = (&order.people.author, &order.people.committer);
            let (author, committer) = (person(author), person(committer));
            let (place, message) = ((&order.tree, &order.parent), &order.message);
            let signed =
                self.repo
                    .signed_commit(&signing, place, [&author, &committer], message, &object);
            object = signed.map_err(unsigned)?;
        }
        let bytes = object.as_bytes();
        let commit = self.repo.write(Kind::Commit, bytes).map_err(git)?;
        self.point(&format!("{}/{commit}", order.refs), &commit)?;
        self.repo.release();
        Ok(LandCommit {
            commit,
            tree: order.tree.clone(),
            parent: order.parent.clone(),
            object,
        })
    }

    fn restore_commit(&mut self, refs: &str, commit: &LandCommit) -> Result<(), PortError> {
        let bytes = commit.object.as_bytes();
        let written = self.repo.write(Kind::Commit, bytes).map_err(git)?;
        self.point(&format!("{refs}/{written}"), &written)?;
        self.repo.release();
        Ok(())
    }

    fn advance(&mut self, branch: &str, from: &Oid, to: &Oid) -> Result<(), PortError> {
        match self.repo.checkout_of(branch).map_err(refuse)? {
            Some(checkout) => checkout_fast_forward(&self.repo, &checkout, from, to),
            None => self.repo.land_ref(branch, to, &Expected::Is(from.clone())),
        }
        .map_err(refuse)
    }

    fn tidy(&mut self) -> Result<(), PortError> {
        for directory in [MERGE, TESTS, LOOK] {
            self.remove(&self.places.run.join(directory))?;
        }
        // If other files were kept for the user in there, the directory stays.
        let _ = std::fs::remove_dir(&self.places.run);
        Ok(())
    }

    fn retire(&mut self, branch: &str, commit: &Oid) -> Result<(), PortError> {
        let checkouts = self.repo.checkouts().map_err(git)?;
        let used = |checkout: &Checkout| checkout.branch.as_deref() == Some(branch);
        if checkouts.iter().any(used) {
            return Ok(());
        }
        match self.repo.ref_value(branch).map_err(git)? {
            Some(at) if at == *commit => self.repo.delete_ref(branch, commit).map_err(git),
            // Gone already, or it has later commits.
            Some(_) | None => Ok(()),
        }
    }
}

impl Machine {
    /// Captures a checkout of a tree that exists already, so that it gets the same checks.
    pub(super) fn capture_existing(
        &self,
        existing: &ExistingTree,
        order: &Capture,
    ) -> Result<Captured, PortError> {
        let mut captured = self.captured_tree(&order.base, &existing.tree, &of_run())?;
        // What the tree could not hold when an agent left it still counts. Secrets are found anew.
        let lost = existing.findings.iter();
        let lost = lost.filter(|finding| finding.kind != FindingKind::Secret);
        captured.findings.extend(lost.cloned());
        captured.findings.dedup();
        Ok(captured)
    }

    /// Captures a checkout of `tree`, compared with the tree `base`.
    pub(super) fn captured_tree(
        &self,
        base: &Oid,
        tree: &Oid,
        limits: &Limits,
    ) -> Result<Captured, PortError> {
        let directory = self.places.run.join(MERGE);
        self.remove(&directory)?;
        std::fs::create_dir_all(&self.places.run)
            .map_err(super::host("make the cache directory"))?;
        let made = workspace::create(&self.repo, tree, &directory, None)
            .map_err(|error| PortError::of(Code::HostFailed, error))?;
        let source = made.source();
        let mut captured = capture::capture(&self.repo, base, &source, limits, Mode::Record)
            .map_err(uncaptured)?;
        if captured.tree != *tree {
            let differing = self.repo.differences(tree, &captured.tree).map_err(git)?;
            if let Some(first) = differing.first() {
                let reason = format!(
                    "`{}` of the tree {} is lost in a checkout: the base ignores it, or it is a \
                     submodule",
                    first.path,
                    tree.short()
                );
                return Err(PortError::new(Code::DiffRefused, reason));
            }
            // A tree of an old repository may have another id than its own files make.
            captured.tree = tree.clone();
        }
        self.remove(&directory)?;
        Ok(captured)
    }
}

fn unsigned(error: SigningError) -> PortError {
    let code = match &error {
        SigningError::Refused { .. } | SigningError::Another => Code::SigningFailed,
        SigningError::Git(_) => Code::GitFailed,
    };
    PortError::of(code, error)
}

fn refuse(error: LandError) -> PortError {
    let code = match &error {
        LandError::Elsewhere { .. }
        | LandError::NotForward { .. }
        | LandError::Git(GitError::RefMoved { .. }) => Code::TargetMoved,
        LandError::Git(_) | LandError::NotACheckout { .. } => Code::GitFailed,
        LandError::Alias { .. } | LandError::Several { .. } | LandError::InUse { .. } => {
            Code::TargetRefused
        }
        LandError::Dirty { .. }
        | LandError::InTheWay { .. }
        | LandError::Filtered { .. }
        | LandError::Hidden { .. }
        | LandError::Busy { .. }
        | LandError::Refused { .. } => Code::CheckoutDirty,
    };
    PortError::of(code, error)
}
