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

use std::time::Instant;

use clap::Args;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::gate::command::quote;
use provost_core::tier::Tier;
use provost_host::sandbox;
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::show::Reader;
use acts::{ACTS, Act, Played};
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
        shown.push((act, played));
    }
    let kept = demo.keep.then(|| stage.top.clone());
    let seconds = began.elapsed().as_secs_f32();
    Ok(answer(&shown, kept.as_deref(), seconds))
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
        expected: Value::Null,
        got: json!({ "trouble": trouble }),
    }
}

fn answer(shown: &[(&Act, Played)], kept: Option<&std::path::Path>, seconds: f32) -> Answer {
    let held = |played: &Played| played.expected == played.got;
    let entry = |(act, played): &(&Act, Played)| {
        json!({ "act": act.name, "title": act.title, "does": act.does, "word": played.word,
            "outcome": played.outcome, "expected": played.expected, "got": played.got,
            "held": held(played) })
    };
    let wrong: Vec<&str> = shown
        .iter()
        .filter(|(_, played)| !held(played))
        .map(|(act, _)| act.name)
        .collect();
    let mut text = if wrong.is_empty() {
        format!(
            "\nall {} acts had the expected outcome, in {seconds:.1} s\n",
            shown.len()
        )
    } else {
        format!("\nunexpected outcome: {}\n", wrong.join(", "))
    };
    if let Some(kept) = kept {
        text += &format!("kept: {}\n", kept.display());
    }
    if wrong.is_empty() {
        text += "next: provost init, in a repository of your own\n";
    }
    Answer {
        exit: if wrong.is_empty() {
            Exit::Yes
        } else {
            Exit::No
        },
        json: json!({
            "held": wrong.is_empty(),
            "acts": shown.iter().map(entry).collect::<Vec<_>>(),
            "directory": kept,
        }),
        text,
    }
}
