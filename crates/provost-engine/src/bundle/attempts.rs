//! The attempts of a run whose work is in the bundle.

use provost_core::run::State;
use provost_core::run::fact::Capture;

/// The directory with the patches of all attempts.
pub const PATCHES: &str = "patches/";

/// An attempt whose work was captured.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Attempt<'a> {
    pub number: u32,
    pub task_id: &'a str,
    pub captured: &'a Capture,
}

impl Attempt<'_> {
    /// The file of the bundle with its patch.
    pub fn patch(&self) -> String {
        patch(self.task_id, self.number)
    }
}

/// The file of a bundle with the patch of one attempt.
pub fn patch(task_id: &str, attempt: u32) -> String {
    format!("{PATCHES}{task_id}.{attempt}.diff")
}

/// The file of a bundle with the result of one task.
pub fn result_file(task_id: &str) -> String {
    format!("results/{task_id}/result.json")
}

/// The file of a bundle with the patch of one task.
pub fn result_patch(task_id: &str) -> String {
    format!("results/{task_id}/patch.diff")
}

/// The refused attempts before the last one that left changes, oldest first.
pub fn earlier(state: &State) -> Vec<Attempt<'_>> {
    let attempts = state.past.iter().filter_map(|past| {
        Some(Attempt {
            number: past.attempt,
            task_id: &past.task_id,
            captured: past.captured.as_ref()?,
        })
    });
    attempts.collect()
}

/// The last attempt, if it left changes.
pub fn last(state: &State) -> Option<Attempt<'_>> {
    Some(Attempt {
        number: state.attempt,
        task_id: state.task_id(),
        captured: state.captured.as_ref()?,
    })
}
