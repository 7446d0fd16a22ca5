//! Finds work that our refs keep although it did not land.

use std::collections::BTreeMap;

use provost_core::object::Oid;
use provost_core::run::refs::{self, Kind};
use provost_engine::query::{self, Landed, RunArchive};

use crate::git::{GitError, Repository};

/// Work that one of our refs keeps.
#[derive(Debug, Clone)]
pub struct KeptWork {
    /// The ref: `refs/provost/KIND/RUN/ATTEMPT`.
    pub name: String,
    pub commit: Oid,
}

impl KeptWork {
    pub fn run_id(&self) -> &str {
        refs::run_of(&self.name).unwrap_or_default()
    }

    /// Whether it was salvaged from an attempt that was interrupted.
    pub fn is_salvaged(&self) -> bool {
        self.name.starts_with(Kind::Salvaged.prefix())
    }
}

/// All work that is kept and not on its branch, by the name of its ref.
///
/// If it cannot be determined whether work has landed, it is listed: no work may be overlooked.
pub fn unlanded(repo: &Repository, archive: &dyn RunArchive) -> Result<Vec<KeptWork>, GitError> {
    let mut kept = Vec::new();
    for prefix in [Kind::Salvaged.prefix(), Kind::Captured.prefix()] {
        let refs = repo.refs(prefix)?;
        kept.extend(
            refs.into_iter()
                .map(|(name, commit)| KeptWork { name, commit }),
        );
    }
    let runs: Vec<&str> = kept.iter().map(KeptWork::run_id).collect();
    let landed = query::landed(archive, &runs);
    kept.retain(|one| !has_landed(one, &landed) && !is_empty(repo, one));
    Ok(kept)
}

/// Whether the work is on its branch; salvage of an interrupted attempt never is.
fn has_landed(kept: &KeptWork, landed: &BTreeMap<String, Landed>) -> bool {
    let landed = landed.get(kept.run_id());
    !kept.is_salvaged() && landed.is_some_and(|landed| landed.held == Some(true))
}

/// Whether the commit changes nothing: all work is in its base.
fn is_empty(repo: &Repository, kept: &KeptWork) -> bool {
    let tree = |rev: &str| {
        let commit = repo.resolve(rev)?;
        repo.commit_tree(&commit)
    };
    let parent = format!("{}^", kept.commit);
    match (repo.commit_tree(&kept.commit), tree(&parent)) {
        (Ok(own), Ok(base)) => own == base,
        _ => false,
    }
}
