//! `provost demo`: real agents in a temporary repository, judged like the agents of any run.
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

use clap::Args;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::gate::command::quote;
use provost_core::tier::Tier;
use provost_host::sandbox;
use serde::Serialize;

use crate::answer::{Answered, Failure, Outcome};
use crate::show::Reader;
use acts::{ACTS, ComparedFacts, Played};
use screen::Screen;
use stage::Stage;

const HEADLINE: &str = "Six agents under contract; ✓ marks the expected outcome";

/// Watch agents work under contract in a temporary repository.
#[derive(Args)]
pub(super) struct Demo {
    /// Keep the temporary directory, with every bundle and agent.
    #[arg(long)]
    keep: bool,
}

pub(super) fn run(demo: &Demo, reader: Reader) -> Outcome {
    let began = Instant::now();
    sandbox::availability(Tier::default()).map_err(|blocker| {
        Failure::of(Code::SandboxUnavailable, &blocker).hint(blocker.remedy.clone())
    })?;
    let mut stage = Stage::new(demo.keep)?;
    let screen = Screen::new(reader == Reader::Person);
    screen.open(HEADLINE, &introduction(&stage));
    let mut shown = Vec::new();
    for (number, act) in ACTS.iter().enumerate() {
        screen.begin(number + 1, act);
        let played = (act.play)(&mut stage).unwrap_or_else(|trouble| failed(&trouble));
        if stage.is_cancelled() {
            return Err(Failure::new(Code::Cancelled, "the demo was cancelled"));
        }
        screen.end(&played);
        shown.push(ShownAct {
            act: act.name,
            title: act.title,
            does: act.does,
            word: played.word,
            outcome: played.outcome,
            held: played.facts.held(),
            facts: played.facts,
        });
    }
    let shown = ShownDemo {
        held: shown.iter().all(|act| act.held),
        acts: shown,
        directory: demo.keep.then(|| stage.top.clone()),
        seconds: began.elapsed().as_secs_f32(),
    };
    Ok(shown.into())
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

#[derive(Serialize)]
struct ShownDemo {
    held: bool,
    acts: Vec<ShownAct>,
    directory: Option<PathBuf>,
    #[serde(skip)]
    seconds: f32,
}

#[derive(Serialize)]
struct ShownAct {
    act: &'static str,
    title: &'static str,
    does: &'static str,
    word: &'static str,
    outcome: String,
    held: bool,
    #[serde(flatten)]
    facts: ComparedFacts,
}

impl Answered for ShownDemo {
    fn exit(&self) -> Exit {
        if self.held { Exit::Yes } else { Exit::No }
    }

    fn text(&self) -> String {
        let (count, seconds) = (self.acts.len(), self.seconds);
        let mut text = if self.held {
            format!("\nall {count} acts had the expected outcome, in {seconds:.1} s\n")
        } else {
            let wrong = self.acts.iter().filter(|act| !act.held);
            let wrong: Vec<&str> = wrong.map(|act| act.act).collect();
            format!("\nunexpected outcome: {}\n", wrong.join(", "))
        };
        if let Some(kept) = &self.directory {
            text += &format!("kept: {}\n", kept.display());
        }
        if self.held {
            text += "next: provost init, in a repository of your own\n";
        }
        text
    }
}
