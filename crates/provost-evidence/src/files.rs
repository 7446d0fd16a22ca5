//! The files of a sealed directory, as the caller reads them.

use std::collections::BTreeMap;

use crate::path::RawPath;

/// The files of a bundle, read within bounds by the caller.
pub trait Files {
    /// The name of every entry of the bundle that is not a directory, from its root.
    fn names(&self) -> Vec<RawPath>;

    /// The bytes of a file, or the reason why there are none: not a regular file, too large, or
    /// unreadable.
    fn read(&self, name: &RawPath) -> Result<Vec<u8>, String>;
}

impl Files for BTreeMap<RawPath, Vec<u8>> {
    fn names(&self) -> Vec<RawPath> {
        self.keys().cloned().collect()
    }

    fn read(&self, name: &RawPath) -> Result<Vec<u8>, String> {
        self.get(name).cloned().ok_or_else(|| "is missing".into())
    }
}
