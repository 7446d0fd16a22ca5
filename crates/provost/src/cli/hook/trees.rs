//! Judges the trees that are about to be committed or pushed.

use provost_core::gate::diff::{self, Facts, Rules};
use provost_core::object::Oid;
use provost_engine::binding::Binding;
use provost_engine::land::Target as _;
use provost_host::machine::Machine;

use super::git_operation::On;
use super::{Held, Stop};
use crate::answer::Failure;
use crate::places::Places;

pub(super) struct Judged<'a> {
    pub(super) tree: Oid,
    pub(super) held: Held,
    pub(super) binding: &'a Binding,
    /// The ref and the commit, if git names one.
    pub(super) what: String,
}

/// Applies the diff gate to each tree, by the same rules as for an agent's work.
pub(super) fn judge(place: Places, trees: Vec<Judged<'_>>, on: &On) -> Result<(), Stop> {
    if trees.is_empty() {
        return Ok(());
    }
    place.prepare()?;
    let cache = place.cache()?.to_owned();
    let scratch = format!("hook-{}", std::process::id());
    let mut machine = Machine::new(place.repo, &cache, &cache, &scratch);
    let mut judged = Ok(());
    for one in trees {
        let held = &one.held;
        let changed = machine.changes(&held.base, &one.tree);
        judged = match changed {
            Err(error) => Err(Stop::Failed(error.into())),
            Ok(changed) => {
                let rules = Rules {
                    scope: &held.contract.scope,
                    forbid: &held.contract.forbid,
                    permit: &held.contract.permit,
                    extra: &held.policy.protect,
                };
                let facts = Facts {
                    changes: &changed.changes,
                    findings: &changed.findings,
                    ..Facts::default()
                };
                let verdict = diff::judge(&facts, &rules);
                if verdict.allow {
                    Ok(())
                } else {
                    Err(Stop::Refused(on.refused(verdict, one.binding, &one.what)))
                }
            }
        };
        if judged.is_err() {
            break;
        }
    }
    let tidied = machine.tidy().map_err(Failure::from);
    judged?;
    Ok(tidied?)
}
