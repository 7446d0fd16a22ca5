//! The acceptance commands in the form of the reports.

use provost_core::bundle::report::{ArtifactRef, BadShape, CommandResult};
use provost_core::contract::Contract;
use provost_core::run::fact::{CommandRun, Ending, Stream, TestRun};

/// The exit code for a report, which has no other field for how a command ended.
fn exit_code(ending: Ending) -> i64 {
    match ending {
        Ending::Exited(status) => i64::from(status),
        Ending::Signalled(signal) => 128 + i64::from(signal),
        Ending::TimedOut | Ending::NoProgress | Ending::Cancelled | Ending::LeaseLost => 124,
        Ending::OutputLimit
        | Ending::Overspent
        | Ending::NoModel
        | Ending::Dismissed
        | Ending::MemoryLimit
        | Ending::ProcessLimit
        | Ending::DiskLimit
        | Ending::InodeLimit => 125,
        Ending::NotStarted => 127,
    }
}

fn stream(stream: &Stream) -> Result<ArtifactRef, BadShape> {
    Ok(ArtifactRef {
        name: stream
            .file
            .rsplit('/')
            .next()
            .unwrap_or(&stream.file)
            .to_owned(),
        path: stream.file.clone(),
        sha256: stream.sha256.clone().try_into()?,
        media_type: None,
        size_bytes: Some(stream.kept),
    })
}

/// The result of each command.
pub(super) fn results(run: &TestRun, contract: &Contract) -> Result<Vec<CommandResult>, BadShape> {
    let one = |(ran, test): (&CommandRun, &provost_core::contract::Test)| {
        #[expect(
            clippy::cast_precision_loss,
            reason = "milliseconds of a run fit a double"
        )]
        let seconds = |millis: u64| millis as f64 / 1000.0;
        Ok(CommandResult {
            name: ran.name.clone(),
            cmd_argv: ran.argv.clone(),
            must_pass: test.must_pass,
            timeout_sec: contract.time_limit.as_secs_f64(),
            exit_code: exit_code(ran.ending),
            duration_sec: seconds(ran.wall_ms),
            stdout: stream(&ran.stdout)?,
            stderr: stream(&ran.stderr)?,
            cwd: None,
        })
    };
    run.commands.iter().zip(&contract.tests).map(one).collect()
}

/// When the first command started and the last one ended.
pub(super) fn span(run: &TestRun) -> (Option<String>, Option<String>) {
    let began = run.commands.first().and_then(|ran| ran.began.clone());
    (began, run.commands.last().and_then(CommandRun::ended))
}
