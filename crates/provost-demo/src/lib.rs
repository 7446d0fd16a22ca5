//! The acts of `provost demo`: real agents in a temporary repository, judged like the agents of any run.
//!
//! # Invariants
//!
//! - The agents are programs that `provost run` starts; nothing is a recording.
//! - Nothing outside one temporary directory is written.
//! - The demo succeeds only if every act has the expected outcome.

mod acts;
mod canary;
mod screen;
mod stage;

use std::path::PathBuf;
use std::time::Instant;

use provost_core::code::Code;
use provost_core::gate::command::quote;
use provost_core::tier::Tier;
use provost_engine::ports::PortError;
use provost_host::sandbox;
use serde::Serialize;

use acts::{ACTS, ComparedFacts, Played};
use screen::Screen;
use stage::Stage;

const HEADLINE: &str = "Six agents under contract; ✓ marks the expected outcome";

/// Plays all acts, in a directory that is `kept` or removed afterwards. They are printed as they
/// happen if `shown`.
pub fn play(kept: bool, shown: bool) -> Result<ShownDemo, PortError> {
    let began = Instant::now();
    sandbox::availability(Tier::default()).map_err(|blocker| {
        let remedy = blocker.remedy.clone();
        PortError::of(Code::SandboxUnavailable, blocker).hint(remedy)
    })?;
    let mut stage = Stage::new(kept)?;
    let screen = Screen::new(shown);
    screen.open(HEADLINE, &introduction(&stage));
    let mut acts = Vec::new();
    for (number, act) in ACTS.iter().enumerate() {
        screen.begin(number + 1, act);
        let played = (act.play)(&mut stage).unwrap_or_else(|trouble| failed(&trouble));
        if stage.is_cancelled() {
            return Err(PortError::new(Code::Cancelled, "the demo was cancelled"));
        }
        screen.end(&played);
        acts.push(ShownAct {
            act: act.name,
            title: act.title,
            does: act.does,
            word: played.word,
            outcome: played.outcome,
            held: played.facts.held(),
            facts: played.facts,
        });
    }
    Ok(ShownDemo {
        held: acts.iter().all(|act| act.held),
        acts,
        directory: kept.then(|| stage.top.clone()),
        seconds: began.elapsed().as_secs_f32(),
    })
}

fn introduction(stage: &Stage) -> [(&'static str, String); 3] {
    let accept = quote(stage::SLUG.accept);
    [
        ("repository", stage.repository().display().to_string()),
        ("objective", stage::SLUG.objective.to_owned()),
        ("contract", format!("--allow src --accept {accept}")),
    ]
}

/// An act that could not be finished.
fn failed(trouble: &str) -> Played {
    Played {
        rows: Vec::new(),
        word: "failed",
        outcome: trouble.to_owned(),
        facts: ComparedFacts::default().with("trouble", None, Some(trouble)),
    }
}

/// The outcome of all acts.
#[derive(Serialize)]
pub struct ShownDemo {
    /// Whether every act had the expected outcome.
    pub held: bool,
    pub acts: Vec<ShownAct>,
    /// The temporary directory, if it was kept.
    pub directory: Option<PathBuf>,
    #[serde(skip)]
    pub seconds: f32,
}

#[derive(Serialize)]
pub struct ShownAct {
    pub act: &'static str,
    title: &'static str,
    does: &'static str,
    word: &'static str,
    outcome: String,
    pub held: bool,
    #[serde(flatten)]
    facts: ComparedFacts,
}
