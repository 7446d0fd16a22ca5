//! Lists what of a run is not in its bundle, because it is secret.

use provost_core::run::State;
use provost_core::run::fact::{Stream, Withheld};
use provost_core::wording::counted;
use serde_json::{Value, json};

use super::{logs, workers};
use crate::show::{neutralise, one_line};

/// The files from which secrets were removed, and how many.
fn removed(state: &State) -> Vec<(&str, u64)> {
    let reports = workers(state).filter_map(|agent| agent.claims.as_ref());
    let events = reports.map(|report| &report.events);
    let some = |stream: &&Stream| stream.redacted > 0;
    let streams = logs(state).chain(events).filter(some);
    let streams = streams.map(|stream| (stream.file.as_str(), stream.redacted));
    let results = workers(state).filter(|agent| agent.redacted > 0);
    let results = results.map(|agent| ("the result that was left", agent.redacted));
    streams.chain(results).collect()
}

/// What is left out of the bundle altogether.
fn withheld(state: &State) -> Option<&Withheld> {
    let captured = state.captured.as_ref()?;
    Some(&captured.withheld).filter(|withheld| !withheld.is_nothing())
}

/// All of this, for programs.
pub(super) fn facts(state: &State) -> Value {
    let removed = removed(state).into_iter();
    let removed = removed.map(|(place, count)| json!({ "from": place, "removed": count }));
    json!({ "removed": removed.collect::<Vec<_>>(), "withheld": withheld(state) })
}

/// All of this, for a person.
pub(super) fn text(state: &State) -> String {
    let mut text = String::new();
    for (place, count) in removed(state) {
        let secrets = counted(usize::try_from(count).unwrap_or(usize::MAX), "secret");
        text += &format!("  secrets  {secrets} removed from {}\n", neutralise(place));
    }
    let Some(withheld) = withheld(state) else {
        return text;
    };
    for path in &withheld.contents {
        let path = one_line(&path.to_string());
        text +=
            &format!("  withheld {path}: a secret is in it, so its content is not in the bundle\n");
    }
    if withheld.names {
        text += "  withheld all objects: a secret is in the name of a file\n";
    }
    text
}
