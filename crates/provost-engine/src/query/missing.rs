//! What the sandbox of a failed command lacked, with the lines that would help.

use provost_core::code::Code;
use provost_core::run::fact::{CommandRun, Ending, Side};
use provost_core::run::{Gate, State};

use super::archive::RunFiles;
use crate::dependencies::{Advice, Lack, ProjectFiles, advice, lack};

/// How many bytes at the end of a log are searched.
const WINDOW: u64 = 64 * 1024;

/// The words before the program that a sandbox does not have, in the reason of the refusal.
const NO_PROGRAM: &str = "there is no program `";

/// Whether a run ended in a way that a missing dependency explains.
pub fn may_lack(state: &State) -> bool {
    let refused = state
        .gates
        .get(&Gate::Acceptance)
        .is_some_and(|it| !it.allow);
    refused || unstartable(state).is_some()
}

/// What the project with these files should add to its policy, by what its commands printed.
pub(super) fn of_failure(
    state: &State,
    files: &dyn RunFiles,
    project: &ProjectFiles,
) -> Vec<Advice> {
    let mut lacks: Vec<Lack> = unstartable(state).into_iter().collect();
    let acceptance = state.gates.get(&Gate::Acceptance);
    if acceptance.is_some_and(|verdict| !verdict.allow) {
        let runs = state.tests.get(&Side::Candidate);
        let commands = runs.into_iter().flat_map(|run| &run.commands);
        let failed = commands.filter(|ran| ran.ending != Ending::Exited(0));
        lacks.extend(failed.filter_map(|ran| of_command(ran, files)));
    }
    let mut all = Vec::new();
    for lack in lacks {
        let found = advice(&lack, project, &state.opened.prepare);
        all.extend(found.filter(|found| !all.contains(found)));
    }
    all
}

fn of_command(ran: &CommandRun, files: &dyn RunFiles) -> Option<Lack> {
    [&ran.stderr, &ran.stdout].into_iter().find_map(|stream| {
        let bytes = files.end_of(&stream.file, WINDOW)?;
        lack(&String::from_utf8_lossy(&bytes))
    })
}

/// The program of an acceptance command that could not be started.
fn unstartable(state: &State) -> Option<Lack> {
    let verdict = state.refusal.as_ref().or(state.finished.as_ref())?;
    let verdict = Some(verdict).filter(|it| it.code == Code::AcceptanceUnstartable)?;
    let (_, rest) = verdict.reason.split_once(NO_PROGRAM)?;
    Some(Lack::Program(rest.split_once('`')?.0.to_owned()))
}
