//! Merges trees without a checkout.

use provost_core::object::{Kind, Oid};
use provost_core::path::RawPath;

use super::run::{failed, unexpected};
use super::{GitError, Person, Repository};

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// The merged tree; its objects are in the object store.
    Clean(Oid),
    /// The paths that both sides changed in ways that do not go together.
    Conflict(Vec<RawPath>),
}

impl Repository {
    /// Merges what `ours` and `theirs` made of `base`; all three are trees or commits.
    ///
    /// No merge driver is started, and no path is moved because its directory was.
    pub fn merge_tree(&self, base: &Oid, ours: &Oid, theirs: &Oid) -> Result<Merged, GitError> {
        // Git finds the base of two commits, so the trees are dressed as such; older versions do
        // not take it by name. Nothing refers to these commits afterwards.
        let nobody = Person {
            name: "provost".to_owned(),
            mail: "provost@localhost".to_owned(),
            time: 0,
        };
        let dress = |oid: &Oid, parents: &[Oid]| {
            let tree = self.tree_of(oid)?;
            self.commit(&tree, parents, "side of a merge", &nobody, &nobody)
        };
        let base = dress(base, &[])?;
        let ours = dress(ours, std::slice::from_ref(&base))?;
        let theirs = dress(theirs, std::slice::from_ref(&base))?;
        let arguments = [
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
            ours.as_str(),
            theirs.as_str(),
        ];
        let output = self.git.call(&self.at_side(), &arguments, Vec::new())?;
        let mut parts = output.stdout.split(|byte| *byte == 0);
        let tree = parts
            .next()
            .and_then(|text| std::str::from_utf8(text).ok())
            .and_then(|text| Oid::try_from(text).ok());
        match output.status.code() {
            Some(0) => {
                let tree = tree.ok_or_else(|| unexpected("merge-tree"))?;
                self.read_tree(&tree)?;
                Ok(Merged::Clean(tree))
            }
            Some(1) => {
                let named = parts.filter(|path| !path.is_empty());
                let mut paths: Vec<RawPath> = named.map(RawPath::new).collect();
                paths.dedup();
                Ok(Merged::Conflict(paths))
            }
            _ => Err(failed("merge-tree".to_owned(), &output)),
        }
    }

    /// The tree itself, or that of the commit.
    fn tree_of(&self, oid: &Oid) -> Result<Oid, GitError> {
        match self.batch()?.one(oid, Kind::Tree) {
            Err(GitError::WrongKind { .. }) => self.commit_tree(oid),
            read => read.map(|_| oid.clone()),
        }
    }
}
