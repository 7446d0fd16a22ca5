//! Judges the trees that are about to be committed or pushed.

use provost_core::gate::diff::{self, Facts, Rules};
use provost_core::object::Oid;
use provost_engine::land::Target as _;
use provost_host::machine::Machine;

use super::{Held, Stop};
use crate::answer::Failure;
use crate::place::Place;

/// The diff gate about each tree, by the same eyes that look at an agent's work.
pub(super) fn judge(place: Place, trees: Vec<(Oid, Held)>) -> Result<(), Stop> {
    if trees.is_empty() {
        return Ok(());
    }
    place.prepare()?;
    let cache = place.cache()?.to_owned();
    let scratch = format!("hook-{}", std::process::id());
    let mut machine = Machine::new(place.repo, &cache, &cache, &scratch);
    let mut judged = Ok(());
    for (tree, held) in trees {
        let changed = machine.changes(&held.base, &tree);
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
                    Err(Stop::Refused(verdict))
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
