//! Which files a run changed, and by how many lines.

use std::collections::BTreeMap;

use provost_core::path::RawPath;
use provost_core::run::fact::Capture;
use serde::{Serialize, Serializer};

use super::archive::LineCount;

#[derive(Debug)]
pub struct ChangedFile {
    pub path: RawPath,
    pub kind: ChangeKind,
}

impl Serialize for ChangedFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.path)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Removed,
    Modified,
}

/// How many lines a path gained and lost; neither if it is not text.
#[derive(Debug, Serialize)]
pub struct ChangedLines {
    pub path: RawPath,
    pub added: Option<u64>,
    pub removed: Option<u64>,
}

pub(super) fn changed_files(captured: &Capture) -> Vec<ChangedFile> {
    let file = |change: &provost_core::change::Change| ChangedFile {
        path: change.path.clone(),
        kind: match (&change.before, &change.after) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            (Some(_), Some(_)) => ChangeKind::Modified,
        },
    };
    captured.changes.iter().map(file).collect()
}

pub(super) fn lines(counted: BTreeMap<RawPath, Option<LineCount>>) -> Vec<ChangedLines> {
    let row = |(path, lines): (RawPath, Option<LineCount>)| ChangedLines {
        path,
        added: lines.map(|it| it.added),
        removed: lines.map(|it| it.removed),
    };
    counted.into_iter().map(row).collect()
}
