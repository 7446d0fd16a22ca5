//! `provost check packet`: checks that a control packet is valid, and whether its phase is
//! accepted.

use clap::Args;
use provost_formats::packet::{self, Gate, Strictness};

use crate::answer::Outcome;
use crate::packet_directory::{NoPacketDirectory, PacketDirectory, Which};

#[derive(Args)]
#[command(after_help = "Examples, at the root of the repository:
  provost check packet --phase-id p1 --strict
  provost check packet --phase-id p1 --gate --docs docs/guide.md --blackbox checks.json")]
pub(in crate::cli) struct CheckPacket {
    #[command(flatten)]
    which: Which,

    /// Also refuse what the format permits but a careful reader would not accept.
    #[arg(long)]
    strict: bool,

    /// Check whether the phase is accepted: packet, docs and black-box checks.
    #[arg(long, requires_all = ["docs", "blackbox"])]
    gate: bool,

    /// A document that the phase must have updated; repeat for more.
    #[arg(long, value_name = "PATH", requires = "gate")]
    docs: Vec<String>,

    /// The results of the black-box checks: `phase_id`, and `checks` with `goal_id` and `pass`.
    #[arg(long, value_name = "FILE", requires = "gate")]
    blackbox: Option<String>,
}

pub(super) fn run(check: &CheckPacket) -> Outcome {
    let folder = match PacketDirectory::open(&check.which) {
        Ok(folder) => folder,
        Err(NoPacketDirectory::Refused(verdict)) => return Ok((*verdict).into()),
        Err(NoPacketDirectory::Failed(failure)) => return Err(failure),
    };
    let gate = check.blackbox.as_ref().map(|blackbox| Gate {
        docs: check
            .docs
            .iter()
            .map(|path| folder.document(path))
            .collect(),
        blackbox: folder.document(blackbox),
    });
    let profile = if check.strict {
        Strictness::Strict
    } else {
        Strictness::Literal
    };
    Ok(packet::judge(&folder.packet()?, profile, gate.as_ref()).into())
}
