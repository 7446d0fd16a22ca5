//! Judges how an agent that only reads a tree (reviewer, planner) ended.

use serde_json::json;

use super::overspent::spent_all;
use super::{no_model, render_ending};
use crate::agent::Adapted;
use crate::agent::sum::End;
use crate::code::Code;
use crate::run::fact::{AgentRun, Ending, ResultFile, ReviewRun};
use crate::verdict::Verdict;
use crate::wording::counted;

/// An agent that reads a tree: reviewer or planner.
#[derive(Debug, Clone, Copy)]
pub struct ReadOnlyAgent<'a> {
    /// What it is called.
    pub who: &'static str,
    pub leaves: &'static str,
    /// The rule that what it left breaks if its word cannot be taken.
    pub code: Code,
    /// How its program is spoken to, if it is one that is known.
    pub adapted: Option<&'a Adapted>,
}

impl ReadOnlyAgent<'_> {
    /// The text that it left, or why its word cannot be taken.
    pub fn report_text<'a>(&self, looked: &'a ReviewRun) -> Result<&'a str, Verdict> {
        if let Some(refusal) = self.ended_badly(&looked.run) {
            return Err(refusal);
        }
        if !looked.altered.is_empty() {
            return Err(self.meddled(looked));
        }
        match &looked.run.result {
            ResultFile::Absent => Err(self.invalid(format!("left no {}", self.leaves))),
            ResultFile::Unusable(why) => {
                let (who, leaves) = (self.who, self.leaves);
                Err(Verdict::deny(
                    self.code,
                    format!("the {who}'s {leaves} {why}"),
                ))
            }
            ResultFile::Text(text) => Ok(text),
        }
    }

    /// The refusal of what it did, in words that follow its name.
    fn invalid(&self, what: impl AsRef<str>) -> Verdict {
        Verdict::deny(self.code, format!("the {} {}", self.who, what.as_ref()))
    }

    /// Why what it left does not count, whatever it is.
    fn ended_badly(&self, run: &AgentRun) -> Option<Verdict> {
        let who = self.who;
        let overspent = |what: &str| Verdict::deny(Code::TokenLimit, format!("the {who} {what}"));
        match run.ending {
            Ending::Exited(0) => {}
            Ending::Dismissed if self.adapted.is_some() => {}
            Ending::Cancelled => {
                return Some(Verdict::deny(Code::Cancelled, "the run was cancelled"));
            }
            Ending::LeaseLost => {
                let reason = format!("the lease on the scope was lost, so the {who} was ended");
                return Some(Verdict::deny(Code::LeaseLost, reason));
            }
            Ending::Exited(_) if run.trouble().is_some() => return Some(no_model(run, who)),
            Ending::NoModel => return Some(no_model(run, who)),
            Ending::Overspent => {
                let what = self.adapted.map(|adapted| spent_all(run, adapted));
                return Some(overspent(
                    what.as_deref().unwrap_or("spent more than it may"),
                ));
            }
            other => return Some(self.invalid(render_ending(other))),
        }
        // What a program that is known says about its own end: without a good word there was none.
        let adapted = self.adapted?;
        let sum = run.claims.as_ref().map(|claims| &claims.sum);
        let spent = run.spent();
        let beyond = spent.and_then(|spent| adapted.budget.exceeded(&spent));
        let refused = run.model.as_ref().is_some_and(|model| model.refused > 0);
        let beyond = beyond.or_else(|| refused.then(|| spent_all(run, adapted)));
        if let Some(what) = beyond {
            return Some(overspent(&what));
        }
        match sum.and_then(|sum| sum.end.as_ref()) {
            Some(End::Done) => None,
            Some(End::GaveUp(words)) => Some(self.invalid(format!("gave up: {words}"))),
            Some(End::Broken(words)) => Some(self.invalid(words.clone())),
            None => Some(self.invalid("ended without reporting that it was done")),
        }
    }

    /// The refusal of an agent that changed the tree it was to read.
    fn meddled(&self, looked: &ReviewRun) -> Verdict {
        let files = counted(looked.altered.len(), "file");
        let problem = format!("changed by the {}", self.who);
        let row = |path| json!({ "path": path, "problem": problem });
        let rows: Vec<_> = looked.altered.iter().map(row).collect();
        self.invalid(format!("changed {files} of the tree"))
            .with(json!({ "findings": rows }))
    }
}
