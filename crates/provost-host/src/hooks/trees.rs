//! Judges the trees that are about to be committed or pushed.

use std::path::Path;

use provost_core::gate::diff::{self, Facts, Rules};
use provost_core::object::Oid;
use provost_engine::binding::{Binding, BoundContract, HookStop};
use provost_engine::land::Target as _;

use super::git_operation::GitOperation;
use crate::git::Repository;
use crate::machine::Machine;

#[derive(Debug)]
pub struct BoundTree<'a> {
    pub tree: Oid,
    pub held: BoundContract,
    pub binding: &'a Binding,
    /// The ref and the commit, if git names one.
    pub what: String,
}

/// Applies the diff gate to each tree, by the same rules as for an agent's work; `cache` exists.
pub fn judge(
    repo: Repository,
    cache: &Path,
    trees: Vec<BoundTree<'_>>,
    on: &GitOperation,
) -> Result<(), HookStop> {
    let scratch = format!("hook-{}", std::process::id());
    let mut machine = Machine::new(repo, cache, cache, &scratch);
    let mut judged = Ok(());
    for one in trees {
        let held = &one.held;
        let changed = machine.changes(&held.base, &one.tree);
        judged = match changed {
            Err(error) => Err(HookStop::Failed(error)),
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
                    Err(HookStop::Refused(on.refused(
                        verdict,
                        one.binding,
                        &one.what,
                    )))
                }
            }
        };
        if judged.is_err() {
            break;
        }
    }
    let tidied = machine.tidy();
    judged?;
    Ok(tidied?)
}
