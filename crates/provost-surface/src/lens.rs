//! Wires the lens: git lists the files, the cache of the repository keeps the facts.

use std::path::Path;

use provost_change::ports::Lens;
use provost_core::code::Code;
use provost_engine::ports::PortError;
use provost_host::git::{GitError, Repository};
use provost_lens::structure::{Report, Settings};
use provost_lens::{LensError, Listed, TreeSitterLens};

use crate::places::Places;

/// The lens for a repository. Without a directory for caches it works as well, but slower.
pub fn of(place: &Places) -> TreeSitterLens {
    TreeSitterLens {
        list: Box::new(list),
        cache: place.cache().ok().map(Path::to_owned),
    }
}

/// The lens as controlled changes use it.
pub struct ChangeLens(pub TreeSitterLens);

impl Lens for ChangeLens {
    fn analyze(&self, root: &Path, settings: &Settings) -> Result<Report, PortError> {
        Ok(self.0.analyze(root, settings)?)
    }
}

fn list(root: &Path, memory: &[u8]) -> Result<Listed, LensError> {
    let found = Repository::discover(root).and_then(|repo| repo.project_files(root, memory));
    let listed = found.map(|found| Listed {
        paths: found.paths,
        memory: found.memory,
    });
    listed.map_err(|error| {
        let code = match error {
            GitError::NoProgram => Code::GitMissing,
            GitError::NotARepository { .. } => Code::NotARepository,
            _ => Code::GitFailed,
        };
        LensError::of(code, error)
    })
}
