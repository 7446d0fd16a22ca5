//! `provost check`: checks contracts, scopes, diffs and payloads; nothing is run.

mod bundle;
mod command;
pub(super) mod contract;
mod diff;
#[cfg(feature = "formats")]
mod operator;
#[cfg(feature = "formats")]
mod packet;
#[cfg(feature = "formats")]
mod packet_file;
mod scope;

use std::path::Path;

use clap::Subcommand;

use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::verdict::Verdict;

use crate::answer::{Answer, Outcome};
use crate::show::one_line;

#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Check {
    /// Check that a contract keeps every rule of its format.
    Contract(contract::CheckContract),
    /// Check that these paths can be the scope of a contract.
    Scope(scope::CheckScope),
    /// Check that the changes in a checkout are inside a scope.
    Diff(diff::CheckDiff),
    /// Check that a command may be an acceptance command of a contract in a file.
    Command(command::CheckCommand),
    /// Check that every file of sealed bundles fits its schema.
    Bundle(bundle::CheckBundle),
    /// Check that a control packet is valid, and whether its phase is accepted.
    #[cfg(feature = "formats")]
    Packet(packet::CheckPacket),
    #[cfg(feature = "formats")]
    #[command(flatten)]
    PacketFile(packet_file::PacketFile),
    #[cfg(feature = "formats")]
    #[command(flatten)]
    Operator(operator::Operator),
}

pub(super) fn run(check: Check) -> Outcome {
    match check {
        Check::Contract(check) => contract::run(&check),
        Check::Scope(check) => scope::run(check),
        Check::Diff(check) => diff::run(&check),
        Check::Command(check) => command::run(&check),
        Check::Bundle(check) => bundle::run(&check),
        #[cfg(feature = "formats")]
        Check::Packet(check) => packet::run(&check),
        #[cfg(feature = "formats")]
        Check::PacketFile(check) => packet_file::run(&check),
        #[cfg(feature = "formats")]
        Check::Operator(check) => operator::run(&check),
    }
}

/// A payload that does not parse gets a verdict: the check worked, the answer is no.
pub(super) fn bad_payload(file: &Path, error: &dyn std::error::Error) -> Answer {
    let reason = format!("`{}`: {error}", one_line(&file.display().to_string()));
    let mut answer = Answer::from(Verdict::deny(Code::InputInvalid, reason));
    answer.exit = Exit::No;
    answer
}
