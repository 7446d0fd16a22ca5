//! Answers what users ask about changes and branches: how many lines, and which commits they have.

use std::collections::{BTreeMap, BTreeSet};

use provost_core::object::Oid;
use provost_core::path::RawPath;

use super::run::unexpected;
use super::{GitError, Repository};

/// The most commits whose trees are read.
const MOST_TREES: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    pub added: u64,
    pub removed: u64,
}

impl Repository {
    /// How many lines each changed path gained and lost; `None` for binary content.
    pub fn line_counts(
        &self,
        before: &Oid,
        after: &Oid,
    ) -> Result<BTreeMap<RawPath, Option<Lines>>, GitError> {
        let arguments = [
            "diff-tree",
            "-r",
            "-z",
            "--numstat",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--diff-algorithm=myers",
            before.as_str(),
            after.as_str(),
            "--",
        ];
        let output = self.git.run(&self.at_side(), &arguments, Vec::new())?;
        let rows = output.stdout.split(|byte| *byte == 0);
        rows.filter(|row| !row.is_empty())
            .map(|row| counts(row).ok_or_else(|| unexpected("diff-tree")))
            .collect()
    }

    /// Those of `commits` that are in the history of `tip`; a missing commit is in no history.
    pub fn held_by(&self, tip: &Oid, commits: &BTreeSet<Oid>) -> Result<BTreeSet<Oid>, GitError> {
        if commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        let lines: Vec<&str> = commits.iter().map(Oid::as_str).collect();
        let lines = lines.join("\n") + "\n";
        let there = self.rev_list("--no-walk=unsorted", lines.clone())?;
        let outside = self.rev_list("--topo-order", format!("{lines}^{tip}\n"))?;
        let held = |commit: &&Oid| there.contains(*commit) && !outside.contains(*commit);
        Ok(commits.iter().filter(held).cloned().collect())
    }

    /// The trees of `HEAD` and its ancestors, at most the newest [`MOST_TREES`].
    pub fn trees(&self) -> Result<BTreeSet<String>, GitError> {
        let most = format!("--max-count={MOST_TREES}");
        let arguments = ["rev-list", "--format=%T", &most, "HEAD", "--"];
        let output = self.git.run(&self.at_refs(), &arguments, Vec::new())?;
        let text = String::from_utf8(output.stdout).map_err(|_| unexpected("rev-list"))?;
        let is_tree = |line: &&str| !line.starts_with("commit ");
        Ok(text.lines().filter(is_tree).map(str::to_owned).collect())
    }

    /// The commits that `git rev-list` prints for `lines`; missing ones are ignored.
    fn rev_list(&self, walk: &str, lines: String) -> Result<BTreeSet<Oid>, GitError> {
        let arguments = ["rev-list", "--ignore-missing", walk, "--stdin"];
        let output = self
            .git
            .run(&self.at_side(), &arguments, lines.into_bytes())?;
        let text = String::from_utf8(output.stdout).map_err(|_| unexpected("rev-list"))?;
        let commit = |line: &str| Oid::try_from(line).map_err(|_| unexpected("rev-list"));
        text.lines().map(commit).collect()
    }
}

/// One row of `--numstat`: counts or dashes, and a path.
fn counts(row: &[u8]) -> Option<(RawPath, Option<Lines>)> {
    let mut parts = row.splitn(3, |byte| *byte == b'\t');
    let mut number = || std::str::from_utf8(parts.next()?).ok();
    let (added, removed) = (number()?, number()?);
    let path = RawPath::new(parts.next()?);
    if (added, removed) == ("-", "-") {
        return Some((path, None));
    }
    let (added, removed) = (added.parse().ok()?, removed.parse().ok()?);
    Some((path, Some(Lines { added, removed })))
}
