//! Reads refs, and writes those below `refs/provost/` and `refs/heads/provost/`.

use std::collections::{BTreeMap, BTreeSet};

use provost_core::object::{Kind, ObjectFormat, Oid};
use provost_core::run::refs::{BRANCHES, KEPT};
use provost_core::tree;

use super::ref_files::{self, Made};
use super::run::{failed, unexpected};
use super::{GitError, Repository, loose_objects, system};

/// Prefixes of the refs that Provost writes.
const OURS: &[&str] = &[KEPT, BRANCHES];

/// Expected value of a ref before it is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// It must not exist.
    Absent,
    /// It must lead to this object.
    Is(Oid),
    /// Any value, or none.
    Any,
}

impl Repository {
    /// Sets one of our own refs, if it has the expected value, to a commit that exists.
    pub fn keep(&self, name: &str, new: &Oid, expected: &Expected) -> Result<(), GitError> {
        self.point(name, new, expected)?;
        // A clean-up that began before the ref existed may have removed objects that nothing held.
        let read = self.commit_tree(new);
        let read = read.and_then(|tree| self.batch()?.one(&tree, Kind::Tree));
        read.map(drop).inspect_err(|_| {
            let _ = self.delete_ref(name, new);
        })
    }

    fn point(&self, name: &str, new: &Oid, expected: &Expected) -> Result<(), GitError> {
        check(name, OURS)?;
        let may_be_new = matches!(expected, Expected::Absent | Expected::Any);
        if may_be_new && self.is_plain && loose_objects::is_ours_alone(&self.objects) {
            // As git does: a ref must not lead to a missing object.
            self.commit_tree(new)?;
            match ref_files::create(&self.common_dir, name, new) {
                Ok(Made::New) => return Ok(()),
                Ok(Made::Same) if *expected == Expected::Any => return Ok(()),
                Ok(Made::Unsynced(error)) => {
                    return Err(system(format!("sync the ref `{name}`"))(error));
                }
                // The ref exists, but was expected to be absent; its value does not matter.
                Ok(Made::Same) | Err(ref_files::AskGit) => {}
            }
        }
        self.update_ref(name, new, expected)
    }

    /// Deletes one of our own refs, if it has the expected value.
    pub fn delete_ref(&self, name: &str, expected: &Oid) -> Result<(), GitError> {
        check(name, OURS)?;
        let arguments = ["update-ref", "--no-deref", "-d", name, expected.as_str()];
        let output = self.git.call(&self.at_refs(), &arguments, Vec::new())?;
        if output.status.success() {
            return Ok(());
        }
        self.moved(name, &Expected::Is(expected.clone()))?;
        Err(failed("update-ref".to_owned(), &output))
    }

    /// Those of `refs` that lead to a missing object, or to one that depends on a missing object.
    pub fn dangling<'a>(
        &self,
        refs: impl Iterator<Item = (&'a String, &'a Oid)>,
    ) -> Result<Vec<String>, GitError> {
        let (mut found, mut rest) = (Vec::new(), Vec::new());
        for (name, oid) in refs {
            match self.batch()?.one(oid, Kind::Commit) {
                Ok(bytes) => rest.push((name, oid, tree::commit_parents(&bytes))),
                Err(GitError::Missing { .. }) => found.push(name.clone()),
                Err(error) => return Err(error),
            }
        }
        // A commit that another of our refs leads to is checked by itself.
        let ours: BTreeSet<&Oid> = rest.iter().map(|(_, oid, _)| *oid).collect();
        let lines = |oid: &Oid, parents: &[Oid]| {
            let others = parents.iter().filter(|parent| !ours.contains(parent));
            let others = others.map(|parent| format!("^{parent}\n"));
            format!("{oid}\n{}", others.collect::<String>())
        };
        let every = rest.iter().map(|(_, oid, parents)| lines(oid, parents));
        let all: String = every.collect();
        if all.is_empty() || self.is_whole(all)? {
            return Ok(found);
        }
        for (name, oid, parents) in &rest {
            if !self.is_whole(lines(oid, parents))? {
                found.push((*name).clone());
            }
        }
        Ok(found)
    }

    /// Whether everything exists that the commits in `lines` lead to.
    fn is_whole(&self, lines: String) -> Result<bool, GitError> {
        let arguments = ["rev-list", "--objects", "--quiet", "--stdin"];
        let input = lines.into_bytes();
        let output = self.git.call(&self.at_refs(), &arguments, input)?;
        let missing = [
            "missing",
            "bad object",
            "bad tree object",
            "unable to read",
            "Could not read",
        ];
        match output.status.success() {
            true => Ok(true),
            false if missing.iter().any(|word| output.words.contains(word)) => Ok(false),
            false => Err(failed("rev-list".to_owned(), &output)),
        }
    }

    /// The refs below `prefix`, such as `refs/provost/`.
    pub fn refs(&self, prefix: &str) -> Result<BTreeMap<String, Oid>, GitError> {
        check(prefix.trim_end_matches('/'), &["refs/"])?;
        let format = "--format=%(objectname) %(refname)";
        let arguments = ["for-each-ref", format, "--", prefix.trim_end_matches('/')];
        let output = self.git.run(&self.at_refs(), &arguments, Vec::new())?;
        let text = String::from_utf8(output.stdout).map_err(|_| unexpected("for-each-ref"))?;
        text.lines()
            .map(|line| {
                let (oid, name) = line
                    .split_once(' ')
                    .ok_or_else(|| unexpected("for-each-ref"))?;
                let oid = oid.try_into().map_err(|_| unexpected("for-each-ref"))?;
                Ok((name.to_owned(), oid))
            })
            .collect()
    }

    pub fn ref_value(&self, name: &str) -> Result<Option<Oid>, GitError> {
        check(name, &["refs/"])?;
        if self.is_plain
            && let Ok(value) = ref_files::value(&self.common_dir, name)
        {
            return Ok(value);
        }
        Ok(self.refs(name)?.remove(name))
    }

    /// The branch that `HEAD` names, such as `refs/heads/main`; `None` if it names a commit.
    pub fn head_branch(&self) -> Result<Option<String>, GitError> {
        if self.is_plain
            && let Ok(branch) = ref_files::head(&self.git_dir)
        {
            return Ok(Some(branch));
        }
        self.symbolic_ref("HEAD")
    }

    /// The ref that the symbolic ref `name` leads to; `None` if it is not symbolic.
    pub fn alias_of(&self, name: &str) -> Result<Option<String>, GitError> {
        check(name, &["refs/"])?;
        self.symbolic_ref(name)
    }

    fn symbolic_ref(&self, name: &str) -> Result<Option<String>, GitError> {
        let arguments = ["symbolic-ref", "--quiet", name];
        let output = self.git.call(&self.at_refs(), &arguments, Vec::new())?;
        match output.status.code() {
            Some(0) => Ok(Some(
                String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            )),
            Some(1) => Ok(None),
            _ => Err(failed("symbolic-ref".to_owned(), &output)),
        }
    }

    pub(super) fn update_ref(
        &self,
        name: &str,
        new: &Oid,
        expected: &Expected,
    ) -> Result<(), GitError> {
        let zero = "0".repeat(match self.format {
            ObjectFormat::Sha1 => 40,
            ObjectFormat::Sha256 => 64,
        });
        let mut arguments = vec![
            "update-ref",
            "--no-deref",
            "-m",
            "provost",
            name,
            new.as_str(),
        ];
        match expected {
            Expected::Absent => arguments.push(&zero),
            Expected::Is(oid) => arguments.push(oid.as_str()),
            Expected::Any => {}
        }
        let output = self.git.call(&self.at_refs(), &arguments, Vec::new())?;
        if output.status.success() {
            return Ok(());
        }
        self.moved(name, expected)?;
        Err(failed("update-ref".to_owned(), &output))
    }

    /// Fails if the ref does not have the expected value.
    fn moved(&self, name: &str, expected: &Expected) -> Result<(), GitError> {
        if !name.starts_with("refs/") {
            return Ok(());
        }
        let found = self.ref_value(name)?;
        let (holds, expected) = match expected {
            Expected::Absent => (found.is_none(), "nothing".to_owned()),
            Expected::Is(oid) => (found.as_ref() == Some(oid), oid.to_string()),
            Expected::Any => (true, String::new()),
        };
        if holds {
            return Ok(());
        }
        Err(GitError::RefMoved {
            name: name.to_owned(),
            expected,
            found,
        })
    }
}

/// Refuses names outside `places` and names that are no plain path.
pub(super) fn check(name: &str, places: &[&str]) -> Result<(), GitError> {
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.starts_with('-')
            && part.strip_suffix(".lock").is_none()
            && !part.contains("..")
            && !part.contains("@{")
            && !part.contains(|c: char| c.is_control() || " ~^:?*[\\".contains(c))
    };
    let ours =
        places.iter().any(|place| name.starts_with(place)) || places == ["refs/"] && name == "refs";
    if ours && !name.ends_with('.') && name.split('/').all(plain) {
        return Ok(());
    }
    Err(GitError::RefRefused {
        name: name.to_owned(),
    })
}
