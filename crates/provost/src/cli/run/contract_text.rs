//! The contract of a run as a person reads it before the agent starts.

use provost_core::contract::document::Document;
use provost_core::gate::command::quote;
use provost_engine::opening::RequestedAgent;
use provost_engine::opening::defaults::{Completed, ValueSource};

use crate::show::one_line;

/// The contract in lines; a value that was not typed is followed by where it comes from.
pub(super) fn lines(document: &Document, completed: &Completed, base: &str) -> Vec<String> {
    let mut lines = vec![format!("contract: {}", one_line(&document.inputs.spec))];
    let mut row = |name: &str, value: &str, source: ValueSource| {
        let from = match source.words() {
            "" => String::new(),
            words => format!("  ({words})"),
        };
        lines.push(format!("  {name:8} {}{from}", one_line(value)));
    };
    let revision = &document.rollback.baseline_ref;
    row("base", &format!("{base} ({revision})"), ValueSource::Typed);
    let paths: Vec<_> = completed
        .allow
        .value
        .iter()
        .map(|path| quote(path))
        .collect();
    row("allow", &paths.join(" "), completed.allow.source);
    for command in &completed.accept.value {
        row("accept", command, completed.accept.source);
    }
    let extra = document.x_provost.clone().unwrap_or_default();
    let permit = extra.permit.unwrap_or_default();
    let lists = [
        ("forbid", &extra.forbid),
        ("network", &extra.net),
        ("permits", &permit.oracle),
        ("permits", &permit.governing),
        ("permits", &permit.binary),
        ("permits", &permit.symlink),
    ];
    for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        row(name, &list.join(" "), ValueSource::Typed);
    }
    if permit.fewer_tests {
        row(
            "permits",
            "fewer tests than on the base",
            ValueSource::Typed,
        );
    }
    row(
        "agent",
        name(&completed.agent.value),
        completed.agent.source,
    );
    match &completed.review {
        Some(review) => row("review", name(&review.value), review.source),
        None => row("review", "none", ValueSource::BuiltIn),
    }
    let (timeout, retries) = (&completed.timeout_sec, &completed.retries);
    row("timeout", &duration(timeout.value), timeout.source);
    row("retries", &retries.value.to_string(), retries.source);
    lines
}

fn name(agent: &RequestedAgent) -> &str {
    match agent {
        RequestedAgent::Typed(command) => command,
        RequestedAgent::Named(name) => name,
    }
}

/// Seconds as a flag would have them.
fn duration(seconds: u64) -> String {
    match seconds {
        seconds if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}
