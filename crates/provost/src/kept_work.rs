//! Finds the work that refs of ours keep although it did not land.

use std::collections::BTreeMap;

use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::run::refs::{self, Kind};

use crate::answer::Failure;
use crate::history::{self, Landed};
use crate::places::Places;

/// Work that a ref of ours keeps.
#[derive(Debug, Clone)]
pub(crate) struct KeptWork {
    /// The ref: `refs/provost/KIND/RUN/ATTEMPT`.
    pub(crate) name: String,
    /// The commit it keeps.
    pub(crate) commit: Oid,
}

impl KeptWork {
    pub(crate) fn run_id(&self) -> &str {
        refs::run_of(&self.name).unwrap_or_default()
    }

    /// Whether it was saved from an attempt that did not come to its end.
    pub(crate) fn is_salvaged(&self) -> bool {
        self.name.starts_with(Kind::Salvaged.prefix())
    }
}

/// All work that is kept and not on its branch, by the name of its ref.
///
/// What cannot be told counts as work: better too much is shown than work goes unseen.
pub(crate) fn unlanded(place: &Places) -> Result<Vec<KeptWork>, Failure> {
    let mut kept = Vec::new();
    for prefix in [Kind::Salvaged.prefix(), Kind::Captured.prefix()] {
        let refs = place.repo.refs(prefix);
        let refs = refs.map_err(|error| Failure::of(Code::GitFailed, &error))?;
        kept.extend(
            refs.into_iter()
                .map(|(name, commit)| KeptWork { name, commit }),
        );
    }
    let runs: Vec<&str> = kept.iter().map(KeptWork::run_id).collect();
    let landed = history::landed(place, &runs);
    kept.retain(|one| !has_landed(one, &landed) && !is_empty(place, one));
    Ok(kept)
}

/// Whether the work is on its branch; what an earlier attempt left when it was lost is not.
fn has_landed(kept: &KeptWork, landed: &BTreeMap<String, Landed>) -> bool {
    let landed = landed.get(kept.run_id());
    !kept.is_salvaged() && landed.is_some_and(|landed| landed.held == Some(true))
}

/// Whether the commit changes nothing: the work is all in the base it was put on.
fn is_empty(place: &Places, kept: &KeptWork) -> bool {
    let tree = |rev: &str| {
        let commit = place.repo.resolve(rev)?;
        place.repo.commit_tree(&commit)
    };
    let parent = format!("{}^", kept.commit);
    match (place.repo.commit_tree(&kept.commit), tree(&parent)) {
        (Ok(own), Ok(base)) => own == base,
        _ => false,
    }
}
