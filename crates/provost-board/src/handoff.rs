//! Writes the hand-off of a board: a directory that is complete or absent.

use std::path::Path;

use provost_core::code::Code;
use provost_engine::ports::PortError;
use provost_formats::operator::bundle::{self, HandoffBundle};
use serde::Serialize;

use provost_surface::answer::{Answer, Answered, Failure};
use provost_surface::output;
use provost_surface::show::one_line;
use provost_surface::stores::{self, board as store};

use super::Handoff;
use super::session::{BoardSession, Stop};

pub(super) fn run(handoff: &Handoff) -> Result<Answer, Stop> {
    let session = BoardSession::find(&handoff.which)?;
    // The lock keeps two processes from writing one hand-off.
    let _turn = session.enter()?;
    let (board, head) = session.board()?;
    let bundle = bundle::handoff(&board, &head)?;
    let (target, code) = match &handoff.out {
        Some(out) => (out.clone(), Code::UsageError),
        None => (session.handoffs().join(&bundle.name), Code::EvidenceAltered),
    };
    if target.symlink_metadata().is_ok() {
        if !holds(&target, &bundle).map_err(Failure::from)? {
            let reason = "exists already, and is not this hand-off";
            let failure = Failure::new(code, reason).about(&target);
            return Err(failure.hint("name another directory, or omit --out").into());
        }
    } else {
        write(&target, &bundle)?;
    }
    let written = WrittenHandoff {
        run_id: board.run_id(),
        version: board.version(),
        name: &bundle.name,
        directory: &target,
        files: bundle.files.iter().map(|(name, _)| name.as_str()).collect(),
        next_actions: board.next().iter().map(ToString::to_string).collect(),
    };
    Ok(written.into())
}

#[derive(Serialize)]
struct WrittenHandoff<'a> {
    run_id: &'a str,
    version: u64,
    name: &'a str,
    directory: &'a Path,
    files: Vec<&'a str>,
    next_actions: Vec<String>,
}

impl Answered for WrittenHandoff<'_> {
    fn text(&self) -> String {
        let mut text = format!(
            "hand-off  {}\n",
            one_line(&self.directory.to_string_lossy())
        );
        text += &format!("version   {}\n", self.version);
        for action in &self.next_actions {
            text += &format!("next: {}\n", one_line(action));
        }
        text
    }
}

fn write(target: &Path, bundle: &HandoffBundle) -> Result<(), Failure> {
    output::unlinked(target)?;
    let beside = store::unfinished(target)?;
    let mut directory = stores::bundle(&beside);
    for (name, bytes) in &bundle.files {
        directory.put(name, bytes)?;
    }
    Ok(store::publish(&beside, target)?)
}

/// Whether every file of the hand-off is in `target`, unchanged.
fn holds(target: &Path, bundle: &HandoffBundle) -> Result<bool, PortError> {
    let directory = stores::bundle(target);
    for (name, bytes) in &bundle.files {
        if directory.get(name)?.as_ref() != Some(bytes) {
            return Ok(false);
        }
    }
    Ok(true)
}
