//! Judges before the agent works whether the acceptance commands could start at all.

use serde::{Deserialize, Serialize};

use crate::gate::command;
use crate::path::RepoPath;
use crate::run::effect::{Selftest, TREE};
use crate::scope::Scope;

/// Why a program cannot be started in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// It is not there.
    Missing,
    /// It is there, and is no program.
    NotExecutable,
    /// It is a script for a program that is not there.
    NoInterpreter(String),
}

/// What is said of the first command that no candidate could make start; `lacks` has what was found
/// in its sandbox on the base, for each command.
pub fn judge_programs(order: &Selftest, lacks: &[Option<Lack>]) -> Option<String> {
    if prepares_anew(order) {
        return None;
    }
    let tests = order.acceptance.tests.iter().zip(lacks).enumerate();
    tests.into_iter().find_map(|(at, (test, lack))| {
        let (program, lack) = (test.argv.first()?, lack.as_ref()?);
        if !test.must_pass || may_come(program, at, &order.scope) {
            return None;
        }
        let why = match lack {
            Lack::Missing => format!(
                "there is no program `{program}`; a sandbox has the system's programs, the toolchains \
                 along your PATH, what is committed and what was prepared"
            ),
            Lack::NotExecutable => format!("`{program}` is not executable"),
            Lack::NoInterpreter(interpreter) => {
                format!("`{program}` is a script for `{interpreter}`, which is not there")
            }
        };
        let line = command::line(&test.argv);
        Some(format!("`{line}` cannot be started in the sandbox: {why}"))
    })
}

/// Whether the agent may change what decides about prepared programs.
fn prepares_anew(order: &Selftest) -> bool {
    let mut steps = order.acceptance.prepare.steps.iter();
    steps.any(|step| Scope::of(step.inputs.clone()).overlaps(&order.scope))
}

/// Whether the program of command number `at` may be there by the time it is wanted: made by the
/// agent, or in the workspace by an earlier command.
fn may_come(program: &str, at: usize, scope: &Scope) -> bool {
    let inside = match program.strip_prefix('/') {
        Some(_) => program
            .strip_prefix(TREE)
            .and_then(|it| it.strip_prefix('/')),
        None => program.contains('/').then_some(program),
    };
    let Some(inside) = inside else { return false };
    let path = RepoPath::try_from(inside.trim_start_matches("./"));
    // A path that climbs is left to the command itself.
    at > 0 || path.map_or(true, |path| scope.covers(&path))
}
