//! Copies what the runs of the parts left into the directory of the case.
//!
//! # Invariants
//!
//! - A file is copied only if it has the digest that the manifest of its run names.
//! - The copies decide nothing; the bundles of the runs are the evidence.

use provost_core::bundle::layout::{CONTRACT, MANIFEST, MOST_EARLIER, REVIEW_REPORT};
use provost_core::bundle::report::RunManifest;
use provost_core::json;
use provost_core::object::sha256;

use super::{Ports, State};
use crate::ports::PortError;

/// The directories of a run whose files belong to one task each.
const OF_TASKS: [&str; 3] = ["tasks/", "results/", "patches/"];

/// Copies contracts, results, patches and reviews of all runs of the parts, and the review of the
/// whole. What does not fit into the room of one bundle is left out.
pub(super) fn collect(ports: &mut Ports<'_>, state: &State) -> Result<(), PortError> {
    let mut room = MOST_EARLIER;
    for (part, run_id) in state.runs() {
        let manifest = ports.runner.evidence(run_id, MANIFEST)?;
        let manifest = manifest.and_then(|bytes| json::parse_as::<RunManifest>(&bytes).ok());
        let Some(manifest) = manifest else {
            // A run that never began, or was removed since, has nothing to copy.
            continue;
        };
        for (name, digest) in &manifest.evidence_hashes {
            let Some(place) = place(name, part.is_some(), run_id, &manifest) else {
                continue;
            };
            if ports.bundle.get(&place)?.is_some() {
                continue;
            }
            let bytes = ports.runner.evidence(run_id, name)?;
            let Some(bytes) = bytes.filter(|bytes| sha256(bytes) == digest.as_str()) else {
                continue;
            };
            let Some(rest) = room.checked_sub(bytes.len() as u64) else {
                continue;
            };
            room = rest;
            ports.bundle.put(&place, &bytes)?;
        }
    }
    Ok(())
}

/// Where the file `name` of the run `run_id` is in the directory of the case; `None` if it is not
/// copied.
fn place(name: &str, of_part: bool, run_id: &str, manifest: &RunManifest) -> Option<String> {
    if name == REVIEW_REPORT {
        return Some(format!("reviews/{run_id}.json"));
    }
    if !of_part {
        // The contract of the whole is that of the case.
        return None;
    }
    if name == CONTRACT {
        let task_id = manifest.task_id.as_ref()?;
        return Some(format!("tasks/{task_id}/{CONTRACT}"));
    }
    let of_task = OF_TASKS.iter().any(|directory| name.starts_with(directory));
    of_task.then(|| name.to_owned())
}
