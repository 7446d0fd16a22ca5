//! Reads commits, trees, blobs and differences.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use provost_core::change::{Change, Node};
use provost_core::object::{Kind, Mode, ObjectFormat, Oid};
use provost_core::path::{LONGEST, RawPath};
use provost_core::tree::{self, Trees};

use super::run::{failed, unexpected};
use super::{Batch, GitError, Repository};

#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TreeRead {
    /// The file at each path; directories are not listed.
    pub files: BTreeMap<RawPath, Node>,
    /// The tree objects that were read: all of them, if git was asked for the whole tree.
    pub trees: Trees,
}

impl Repository {
    /// The commit that `rev` names.
    pub fn resolve(&self, rev: &str) -> Result<Oid, GitError> {
        let no_commit = || GitError::NoCommit {
            rev: rev.to_owned(),
        };
        if rev.is_empty() || rev.starts_with('-') || rev.contains(char::is_control) {
            return Err(no_commit());
        }
        if let Some(commit) = self.plainly(rev)? {
            match self.commit_tree(&commit) {
                Ok(_) => return Ok(commit),
                Err(error @ (GitError::TimedOut { .. } | GitError::Failed { .. })) => {
                    return Err(error);
                }
                // Another kind of object, which may lead to a commit, or a missing one.
                Err(_) => {}
            }
        }
        let peeled = format!("{rev}^{{commit}}");
        let arguments = [
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &peeled,
        ];
        let output = self.git.call(&self.at_refs(), &arguments, Vec::new())?;
        match output.status.code() {
            Some(0) => {}
            Some(1) => return Err(no_commit()),
            _ => return Err(failed("rev-parse".to_owned(), &output)),
        }
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let oid = Oid::try_from(text).map_err(|_| unexpected("rev-parse"))?;
        self.commit_tree(&oid)?;
        Ok(oid)
    }

    /// The object that `rev` names, if it is found without starting git.
    fn plainly(&self, rev: &str) -> Result<Option<Oid>, GitError> {
        if let Ok(oid) = Oid::try_from(rev) {
            return Ok((oid.format() == self.format).then_some(oid));
        }
        if rev != "HEAD" {
            return Ok(None);
        }
        match self.head_branch()? {
            Some(branch) => self.ref_value(&branch),
            None => Ok(None),
        }
    }

    pub fn commit_tree(&self, commit: &Oid) -> Result<Oid, GitError> {
        let bytes = self.batch()?.one(commit, Kind::Commit)?;
        tree::commit_tree(&bytes)
            .filter(|tree| tree.format() == self.format)
            .ok_or_else(|| unexpected("cat-file"))
    }

    /// The first line of the message of a commit; empty if it has none.
    pub fn commit_subject(&self, commit: &Oid) -> Result<String, GitError> {
        let bytes = self.batch()?.one(commit, Kind::Commit)?;
        let text = String::from_utf8_lossy(&bytes);
        let message = text.split_once("\n\n").map_or("", |(_, message)| message);
        let first = message.lines().find(|line| !line.trim().is_empty());
        Ok(first.unwrap_or_default().trim().to_owned())
    }

    /// Only the top level of a tree.
    pub fn read_top(&self, root: &Oid) -> Result<TreeRead, GitError> {
        let mut read = TreeRead::default();
        let level = vec![(RawPath::new(""), root.clone())];
        self.read_level(&mut self.batch()?, &mut read, level)?;
        Ok(read)
    }

    /// Every file of a tree, recursively.
    ///
    /// The last tree is cached, because a run reads its base repeatedly. Of another tree only the
    /// objects are read that the cached one lacks.
    pub fn read_tree(&self, root: &Oid) -> Result<Arc<TreeRead>, GitError> {
        let last = self.last_tree.lock().ok().and_then(|last| last.clone());
        if let Some((_, read)) = last.as_ref().filter(|(known, _)| known == root) {
            return Ok(Arc::clone(read));
        }
        let known = last.map(|(_, read)| read).unwrap_or_default();
        let mut batch = self.batch()?;
        let mut read = TreeRead::default();
        let mut level = vec![(RawPath::new(""), root.clone())];
        while !level.is_empty() {
            let (here, asked) = places(level)
                .into_iter()
                .partition(|(oid, _)| known.trees.contains_key(oid));
            level = self.read_places(&mut batch, &mut read, &asked)?;
            for (oid, paths) in &here {
                let bytes = known.trees.get(oid).cloned().unwrap_or_default();
                level.extend(read.take(self.format, oid, bytes, paths)?);
            }
        }
        let read = Arc::new(read);
        if let Ok(mut last) = self.last_tree.lock() {
            *last = Some((root.clone(), Arc::clone(&read)));
        }
        Ok(read)
    }

    /// Caches `files` as the content of the tree `root`. The caller must have listed it by trusted
    /// code.
    pub fn remember(&self, root: &Oid, files: BTreeMap<RawPath, Node>) {
        let trees = Trees::default();
        if let Ok(mut last) = self.last_tree.lock()
            && last.as_ref().is_none_or(|(known, _)| known != root)
        {
            *last = Some((root.clone(), Arc::new(TreeRead { files, trees })));
        }
    }

    /// Reads the directories of one depth and returns those below.
    pub fn read_level(
        &self,
        batch: &mut Batch,
        read: &mut TreeRead,
        level: Vec<(RawPath, Oid)>,
    ) -> Result<Vec<(RawPath, Oid)>, GitError> {
        self.read_places(batch, read, &places(level))
    }

    fn read_places(
        &self,
        batch: &mut Batch,
        read: &mut TreeRead,
        places: &Places,
    ) -> Result<Vec<(RawPath, Oid)>, GitError> {
        let mut below = Vec::new();
        batch.each(places.keys(), |oid, kind, bytes| {
            if kind != Kind::Tree {
                let oid = oid.clone();
                return Err(GitError::WrongKind {
                    oid,
                    wanted: Kind::Tree,
                });
            }
            let paths = places.get(oid).map_or(&[][..], Vec::as_slice);
            below.extend(read.take(self.format, oid, bytes, paths)?);
            Ok(())
        })?;
        Ok(below)
    }

    pub fn blob(&self, oid: &Oid) -> Result<Vec<u8>, GitError> {
        self.batch()?.one(oid, Kind::Blob)
    }

    /// The patch that turns `before` into `after`: exact for every byte, mode and name.
    ///
    /// Moves are written as removal and addition, so that each line belongs to its own path.
    pub fn patch(&self, before: &Oid, after: &Oid) -> Result<Vec<u8>, GitError> {
        self.patch_at(before, after, &[])
    }

    /// The part of that patch about `paths`, which must be sorted; empty if there are none.
    pub fn patch_of(
        &self,
        before: &Oid,
        after: &Oid,
        paths: &[RawPath],
    ) -> Result<Vec<u8>, GitError> {
        let mut patch = Vec::new();
        // This many always fit on one command line.
        for some in paths.chunks(200) {
            patch.extend(self.patch_at(before, after, some)?);
        }
        Ok(patch)
    }

    /// The patch of `paths`; of everything if `paths` is empty.
    fn patch_at(&self, before: &Oid, after: &Oid, paths: &[RawPath]) -> Result<Vec<u8>, GitError> {
        let arguments = [
            "diff-tree",
            "-r",
            "-p",
            "--binary",
            "--full-index",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--no-relative",
            "--submodule=short",
            "--ignore-submodules=none",
            "--diff-algorithm=myers",
            "--unified=3",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            before.as_str(),
            after.as_str(),
            "--",
        ];
        let paths = paths.iter().map(|path| OsStr::from_bytes(path.as_bytes()));
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).chain(paths).collect();
        let output = self.git.run(&self.at_side(), &arguments, Vec::new())?;
        Ok(output.stdout)
    }

    /// The paths that differ between two trees, sorted.
    pub fn names(&self, before: &Oid, after: &Oid) -> Result<Vec<RawPath>, GitError> {
        let changes = self.differences(before, after)?;
        Ok(changes.into_iter().map(|change| change.path).collect())
    }

    /// What differs between two trees, sorted; kind, origin and link of the changes are not set.
    pub fn differences(&self, before: &Oid, after: &Oid) -> Result<Vec<Change>, GitError> {
        let mut batch = self.batch()?;
        let mut failure = None;
        let lookup = |oid: &Oid| match batch.one(oid, Kind::Tree) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                failure = Some(error);
                None
            }
        };
        let result = tree::diff(before, after, lookup);
        if let Some(error) = failure {
            return Err(error);
        }
        result.map_err(|source| GitError::Tree {
            oid: after.clone(),
            source,
        })
    }

    /// New paths of `after`, each with the path of `before` that git takes for its origin and their
    /// similarity in percent (at least 50). `harder` considers unchanged files too.
    pub fn similar(
        &self,
        before: &Oid,
        after: &Oid,
        harder: bool,
    ) -> Result<BTreeMap<RawPath, (RawPath, u8)>, GitError> {
        let mut arguments = vec!["diff-tree", "-r", "-z", "--raw", "-M50%", "-C50%", "-l3000"];
        if harder {
            arguments.push("--find-copies-harder");
        }
        arguments.extend([
            "--no-ext-diff",
            "--diff-filter=RC",
            before.as_str(),
            after.as_str(),
        ]);
        let output = self.git.run(&self.at_side(), &arguments, Vec::new())?;
        let mut fields = output.stdout.split(|byte| *byte == 0);
        let mut pairs = BTreeMap::new();
        // `:modes ids C087` NUL source NUL target NUL
        while let Some(head) = fields.next().filter(|head| !head.is_empty()) {
            match (likeness(head), fields.next(), fields.next()) {
                (Some(percent), Some(source), Some(target)) if !target.is_empty() => {
                    pairs.insert(RawPath::new(target), (RawPath::new(source), percent));
                }
                _ => return Err(unexpected("diff-tree")),
            }
        }
        Ok(pairs)
    }
}

/// The paths of each tree. A tree at many paths is read once, but its files count at each.
type Places = BTreeMap<Oid, Vec<RawPath>>;

fn places(level: Vec<(RawPath, Oid)>) -> Places {
    let mut places = Places::new();
    for (path, oid) in level {
        places.entry(oid).or_default().push(path);
    }
    places
}

impl TreeRead {
    /// Adds the tree `oid`, which is at each of `directories`, and returns those below.
    fn take(
        &mut self,
        format: ObjectFormat,
        oid: &Oid,
        bytes: Vec<u8>,
        directories: &[RawPath],
    ) -> Result<Vec<(RawPath, Oid)>, GitError> {
        let bad = |source| GitError::Tree {
            oid: oid.clone(),
            source,
        };
        let entries = tree::parse(&bytes, format).map_err(bad)?;
        let mut below = Vec::new();
        for directory in directories {
            for entry in &entries {
                let path = directory.join(&entry.name);
                if path.as_bytes().len() > LONGEST {
                    let path = directory.clone();
                    return Err(bad(tree::TreeError::TooLong { path }));
                }
                if entry.mode == Mode::Tree {
                    below.push((path, entry.oid.clone()));
                } else {
                    let side = Node {
                        mode: entry.mode,
                        oid: entry.oid.clone(),
                    };
                    self.files.insert(path, side);
                }
            }
        }
        self.trees.insert(oid.clone(), bytes);
        Ok(below)
    }
}

/// The percentage at the end of a raw line about a move or a copy.
fn likeness(head: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(head).ok()?.strip_prefix(':')?;
    let (_, status) = text.rsplit_once(' ')?;
    let percent = status.strip_prefix(['R', 'C'])?.parse().ok()?;
    (percent <= 100).then_some(percent)
}
