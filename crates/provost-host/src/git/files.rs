//! Lists the files of a checkout that belong to the project.

use std::path::Path;

use provost_core::path::RawPath;

use super::run::Place;
use super::{GitError, Repository};

/// Where Provost keeps its own things.
const RUNTIME: &[u8] = b".provost/";

impl Repository {
    /// The files below `root` that git tracks, and new ones that it does not ignore, relative to
    /// `root`. A file that was deleted and not committed is among them.
    ///
    /// `root` is the checkout that this repository was found from, or a directory in it.
    pub fn project_files(&self, root: &Path) -> Result<Vec<RawPath>, GitError> {
        let nowhere = || GitError::NotARepository {
            path: root.to_owned(),
        };
        let checkout = self.checkout().ok_or_else(nowhere)?;
        let real = root.canonicalize().map_err(|_| nowhere())?;
        let top = checkout.canonicalize().map_err(|_| nowhere())?;
        let below = real.strip_prefix(&top).map_err(|_| nowhere())?;
        let mut prefix = below.as_os_str().as_encoded_bytes().to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        let place = Place {
            git_dir: self.git_dir(),
            objects: None,
            work_tree: Some(checkout),
            index: None,
        };
        let arguments = [
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ];
        let output = self.git().run(&place, &arguments, Vec::new())?;
        let own = |path: &&[u8]| !path.is_empty() && !path.starts_with(RUNTIME);
        let paths = output.stdout.split(|byte| *byte == 0).filter(own);
        let within = paths.filter_map(|path| path.strip_prefix(prefix.as_slice()));
        Ok(within.map(RawPath::new).collect())
    }
}
