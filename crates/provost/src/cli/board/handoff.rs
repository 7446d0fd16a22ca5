//! Writes the hand-off of a board: a directory that is complete or absent.

use std::path::Path;

use provost_core::code::Code;
use provost_engine::ports::PortError;
use provost_formats::operator::bundle::{self, HandoffBundle};
use serde_json::json;

use crate::answer::{Answer, Failure};
use crate::output;
use crate::show::one_line;
use crate::stores::{self, board as store};

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
    let names: Vec<&String> = bundle.files.iter().map(|(name, _)| name).collect();
    let json = json!({
        "run_id": board.run_id(),
        "version": board.version(),
        "name": bundle.name,
        "directory": target,
        "files": names,
        "next_actions": board.next().iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    let mut text = format!("hand-off  {}\n", one_line(&target.to_string_lossy()));
    text += &format!("version   {}\n", board.version());
    for action in board.next() {
        text += &format!("next: {}\n", one_line(&action.to_string()));
    }
    Ok(Answer::data(json, text))
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
