//! `provost demo`: real agents in a temporary repository, judged like the agents of any run.

use clap::Args;
use provost_core::exit::Exit;
use provost_demo::ShownDemo;

use crate::answer::{Answer, Outcome};
use crate::show::Reader;

/// Watch agents work under contract in a temporary repository.
#[derive(Args)]
pub(super) struct Demo {
    /// Keep the temporary directory, with every bundle and agent.
    #[arg(long)]
    keep: bool,
}

pub(super) fn run(demo: &Demo, reader: Reader) -> Outcome {
    let shown = provost_demo::play(demo.keep, reader == Reader::Person)?;
    let exit = if shown.held { Exit::Yes } else { Exit::No };
    Ok(Answer::new(exit, &shown, text(&shown)))
}

fn text(shown: &ShownDemo) -> String {
    let (count, seconds) = (shown.acts.len(), shown.seconds);
    let mut text = if shown.held {
        format!("\nall {count} acts had the expected outcome, in {seconds:.1} s\n")
    } else {
        let wrong = shown.acts.iter().filter(|act| !act.held);
        let wrong: Vec<&str> = wrong.map(|act| act.act).collect();
        format!("\nunexpected outcome: {}\n", wrong.join(", "))
    };
    if let Some(kept) = &shown.directory {
        text += &format!("kept: {}\n", kept.display());
    }
    if shown.held {
        text += "next: provost init, in a repository of your own\n";
    }
    text
}
