//! Lists the attempts that were refused before the last one.

use std::path::Path;

use provost_core::bundle::attempts;
use provost_core::run::State;
use provost_core::run::fix::EarlierAttempt;
use serde_json::{Value, json};

use crate::show::{neutralise, one_line};

/// The patch file of an attempt in the bundle, if it exists.
fn patch(bundle: &Path, past: &EarlierAttempt) -> Option<String> {
    let name = attempts::patch(&past.task_id, past.attempt);
    bundle.join(&name).is_file().then_some(name)
}

/// The refused attempts, for programs.
pub(super) fn facts(state: &State, bundle: &Path) -> Vec<Value> {
    let row = |past: &EarlierAttempt| {
        json!({ "attempt": past.attempt, "task_id": past.task_id, "code": past.refusal.code,
                "reason": past.refusal.reason, "patch": patch(bundle, past),
                "tree": past.captured.as_ref().map(|captured| &captured.tree) })
    };
    state.past.iter().map(row).collect()
}

/// The same for people.
pub(super) fn text(state: &State, bundle: &Path) -> String {
    let mut text = String::new();
    for past in &state.past {
        let (code, reason) = (past.refusal.code, one_line(&past.refusal.reason));
        text += &format!("  attempt {} was refused[{code}]: {reason}\n", past.attempt);
        if let Some(patch) = patch(bundle, past) {
            text += &format!("    its work: {}\n", neutralise(&patch));
        }
    }
    text
}
