//! Merges trees without a checkout.

use std::collections::BTreeSet;

use provost_core::object::{Kind, Mode, Oid};
use provost_core::pack;
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
            self.commit_aside(&tree, parents, "side of a merge", &nobody)
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

    /// Holds what `tree` has and none of `known`, which git wrote where a clean-up finds it.
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

    /// The tree itself, or that of the commit.
    fn tree_of(&self, oid: &Oid) -> Result<Oid, GitError> {
        match self.batch()?.one(oid, Kind::Tree) {
            Err(GitError::WrongKind { .. }) => self.commit_tree(oid),
            read => read.map(|_| oid.clone()),
        }
    }
}
