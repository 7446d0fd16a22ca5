//! Merges trees without a checkout.

use std::collections::BTreeSet;

use provost_core::object::{Kind, Mode, Oid};
use provost_core::pack;
use provost_core::path::RawPath;

use super::run::{failed, unexpected};
use super::{GitError, Person, Repository};

/// Result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// The merged tree; its objects are in the object store.
    Clean(Oid),
    /// The paths that both sides changed incompatibly.
    Conflict(Vec<RawPath>),
}

impl Repository {
    /// Merges the changes of `ours` and `theirs` to `base`; all three are trees or commits.
    ///
    /// No merge driver is started, and no path moves because its directory was renamed.
    pub fn merge_tree(&self, base: &Oid, ours: &Oid, theirs: &Oid) -> Result<Merged, GitError> {
        // Git finds the base from two commits, and older versions take no base by name. So the
        // trees are wrapped in commits, to which nothing refers afterwards.
        let placeholder = Person {
            name: "provost".to_owned(),
            mail: "provost@localhost".to_owned(),
            time: 0,
        };
        let dress = |oid: &Oid, parents: &[Oid]| {
            let tree = self.tree_of(oid)?;
            self.commit_aside(&tree, parents, "side of a merge", &placeholder)
        };
        let sides = [self.tree_of(ours)?, self.tree_of(theirs)?];
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
                self.hold_tree(&tree, &sides)?;
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

    /// Holds the objects of `tree` that none of `known` has: git wrote them where a clean-up finds
    /// them.
    fn hold_tree(&self, tree: &Oid, known: &[Oid]) -> Result<(), GitError> {
        let known = known.iter().map(|oid| self.read_tree(oid));
        let known = known.collect::<Result<Vec<_>, _>>()?;
        let read = self.read_tree(tree)?;
        let mut writer = pack::Writer::new(self.format);
        for (oid, bytes) in &read.trees {
            if !known.iter().any(|it| it.trees.contains_key(oid)) {
                writer.push(pack::Entry::named(oid.clone(), Kind::Tree, bytes));
            }
        }
        let nodes = known.iter().flat_map(|it| it.files.values());
        let there: BTreeSet<&Oid> = nodes.map(|node| &node.oid).collect();
        let mut batch = self.batch()?;
        for node in read.files.values() {
            if node.mode != Mode::Gitlink && !there.contains(&node.oid) {
                writer.add(Kind::Blob, &batch.one(&node.oid, Kind::Blob)?)?;
            }
        }
        self.write_pack(writer.finish())
    }

    /// The tree itself, or the tree of the commit.
    fn tree_of(&self, oid: &Oid) -> Result<Oid, GitError> {
        match self.batch()?.one(oid, Kind::Tree) {
            Err(GitError::WrongKind { .. }) => self.commit_tree(oid),
            read => read.map(|_| oid.clone()),
        }
    }
}
