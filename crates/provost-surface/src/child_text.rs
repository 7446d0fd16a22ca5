//! Renders the children of a run for people.

use provost_core::agent::dollars;
use provost_engine::query::RunView;

use crate::show::one_line;

/// The children of a run, each with its verdict and what it used of its share.
pub fn children(view: &RunView) -> String {
    let mut text = String::new();
    if let Some(parent) = &view.child_of {
        text += &format!("  child    of {parent}; its patch is for that run\n");
    }
    for child in &view.children {
        let verdict = child.verdict.as_ref().map_or("no end", |it| it.code.name());
        let kind = if child.read_only { "reads" } else { "writes" };
        let used = child.spent.unwrap_or_default();
        let (run_id, key) = (&child.run_id, one_line(&child.key));
        text += &format!("  child    {run_id} `{key}` {kind}: {verdict}");
        text += &format!(", {} of {} s", used.seconds, child.given.seconds);
        if child.given.tokens > 0 {
            text += &format!(", {} of {} tokens", used.tokens, child.given.tokens);
        }
        if used.micro_usd > 0 {
            text += &format!(", {}", dollars(used.micro_usd));
        }
        text.push('\n');
    }
    for (code, times) in &view.children_refused {
        text += &format!("  child    refused: {code} ({times} ×)\n");
    }
    text
}
