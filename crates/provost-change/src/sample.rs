//! States of a checkout for tests.

use provost_core::checkout::{CheckoutState, DirtyFile};
use provost_core::path::RawPath;

pub(crate) fn dirty_file(letters: &str, head: &str, disk: &str) -> DirtyFile {
    DirtyFile {
        letters: letters.into(),
        head: head.into(),
        staged: head.into(),
        disk: (disk != "?").then(|| disk.to_owned()),
    }
}

pub(crate) fn checkout(dirty: &[(&str, DirtyFile)]) -> CheckoutState {
    let dirty = dirty.iter();
    CheckoutState {
        tree: Some("tree".into()),
        dirty: dirty
            .map(|(path, file)| (RawPath::new(*path), file.clone()))
            .collect(),
    }
}
