//! Wires the lens: git lists the files, the cache of the repository keeps the facts.

use std::path::Path;

use provost_core::code::Code;
use provost_engine::ports::PortError;
use provost_host::git::{GitError, Repository};
use provost_lens::{Listed, TreeSitterLens};

use crate::places::Places;

/// The lens for a repository. Without a directory for caches it works as well, but slower.
pub(crate) fn of(place: &Places) -> TreeSitterLens {
    TreeSitterLens {
        list: Box::new(list),
        cache: place.cache().ok().map(Path::to_owned),
    }
}

fn list(root: &Path, memory: &[u8]) -> Result<Listed, PortError> {
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
        PortError::of(code, error)
    })
}
