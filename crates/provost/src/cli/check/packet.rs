//! `provost check packet`: whether a control packet holds, and whether its phase is accepted.

use std::path::{Path, PathBuf};

use clap::Args;
use provost_core::code::Code;
use provost_core::json::LARGEST;
use provost_core::path::RepoPath;
use provost_dialects::packet::{self, Document, Found, Gate, Packet, Profile, Source};
use provost_host::clock;
use provost_host::foreign::{Below, ForeignError};

use crate::answer::{Failure, Outcome};

/// Where packets are, unless somebody says otherwise.
pub(in crate::cli) const ROOT: &str = "artifacts/subagent_control";

#[derive(Args)]
pub(in crate::cli) struct CheckPacket {
    /// The phase whose packet is judged.
    #[arg(long, value_name = "ID")]
    phase_id: String,

    /// The directory that holds the packets.
    #[arg(long, value_name = "DIR", default_value = ROOT)]
    packet_root: PathBuf,

    /// Refuse what the text of the format permits and a careful reader would not.
    #[arg(long)]
    strict: bool,

    /// Say whether the phase is accepted: packet, docs and black-box checks.
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
    let below = match packet::directory(&check.phase_id) {
        Ok(path) => path,
        Err(verdict) => return Ok(verdict.into()),
    };
    let repository = open(Path::new("."))?;
    let folder = open(&check.packet_root.join(below.as_str()))?;
    let task_card = source(&folder, packet::TASK_CARD);
    let wanted = packet::wanted(&task_card).into_iter();
    let evidence = wanted.map(|(evidence, path)| Found {
        evidence,
        in_repository: taken(&repository, &path),
        in_packet: taken(&folder, &path),
        path,
    });
    let packet = Packet {
        phase_id: &check.phase_id,
        directory: within(&check.packet_root, &below)?,
        evidence: evidence.collect(),
        task_card,
        executor_report: source(&folder, packet::EXECUTOR_REPORT),
        validator_report: source(&folder, packet::VALIDATOR_REPORT),
        read_time: |text| clock::parse(text).ok(),
    };
    let document = |path: &String| Document {
        path: path.clone(),
        source: source(&repository, path),
    };
    let gate = check.blackbox.as_ref().map(|blackbox| Gate {
        docs: check.docs.iter().map(document).collect(),
        blackbox: document(blackbox),
    });
    let profile = if check.strict {
        Profile::Strict
    } else {
        Profile::Literal
    };
    Ok(packet::judge(&packet, profile, gate.as_ref()).into())
}

fn open(directory: &Path) -> Result<Below, Failure> {
    Below::new(directory).map_err(|error| {
        let reason = format!("`{}`: {error}", directory.display());
        Failure::new(Code::InputUnreadable, reason)
    })
}

/// The packet's directory as seen from here, if it lies below.
fn within(root: &Path, below: &RepoPath) -> Result<Option<RepoPath>, Failure> {
    let unreadable = |error| Failure::of(Code::InputUnreadable, &error);
    let here = std::env::current_dir().map_err(unreadable)?;
    let there = std::path::absolute(root).map_err(unreadable)?;
    let path = there.strip_prefix(&here).ok();
    let path = path.map(|path| path.join(below.as_str()));
    Ok(path.and_then(|path| RepoPath::try_from(path.to_str()?).ok()))
}

fn source(directory: &Below, path: &str) -> Source {
    match RepoPath::try_from(path) {
        Ok(path) => taken(directory, &path),
        Err(why) => Source::Unreadable(why.to_string()),
    }
}

fn taken(directory: &Below, path: &RepoPath) -> Source {
    match directory.read(path, LARGEST) {
        Ok(bytes) => Source::Bytes(bytes),
        Err(ForeignError::Missing) => Source::Missing,
        Err(error) => Source::Unreadable(error.to_string()),
    }
}
