//! `provost export`: exports a run in formats of other tools.

#[cfg(feature = "formats")]
mod packet;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use provost_core::bundle::key::PublicKey;
use provost_core::bundle::layout::{ATTESTATION, LEDGER, MANIFEST};
use provost_core::code::Code;
use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_core::record::{self, Head, Record};
use provost_core::run::State;
use provost_engine::bundle::verify::{self, Files as _};
use provost_engine::export::{junit, pull_request, sarif};
use provost_engine::why::Why;
use provost_host::bundle::Directory;
use serde::Serialize;
use serde_json::Value;

use super::runs::Which;
use crate::answer::{Answer, Answered, Failure, Outcome};
use crate::output;
use crate::places::Places;
use crate::show::Reader;

/// Export the result of a run in a format of other tools.
#[derive(Args)]
#[cfg_attr(
    not(feature = "formats"),
    command(after_help = "\
The bundle is verified first: evidence that cannot be trusted is not exported.

Example:
  provost export last --as sarif --out provost.sarif")
)]
#[cfg_attr(
    feature = "formats",
    command(after_help = "\
The bundle is verified first: evidence that cannot be trusted is not exported.
  junit        the acceptance commands on the candidate; their tests by name where they print them
  sarif        everything that was refused, SARIF 2.1.0
  attestation  the signed statement, byte for byte
  pr           title, blank line and body of a pull request about an accepted run
  packet       a control packet of an accepted run, as the directory PATH/RUN;
               `provost check packet --phase-id RUN --packet-root PATH` judges it

Examples:
  provost export last --as sarif --out provost.sarif
  provost export last --as packet --out packets --docs docs/guide.md")
)]
pub(super) struct Export {
    #[command(flatten)]
    which: Which,

    /// The format.
    #[arg(long = "as", value_name = "FORMAT")]
    format: Format,

    /// The file to write [default: stdout]; required for a packet.
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,

    /// A document that the task must have updated, for a packet; repeat for more.
    #[cfg(feature = "formats")]
    #[arg(long, value_name = "PATH")]
    docs: Vec<String>,
}

/// The format of the export.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    #[cfg(feature = "formats")]
    Packet,
    Sarif,
    Junit,
    Attestation,
    Pr,
}

pub(super) fn run(export: &Export, reader: Reader) -> Outcome {
    let place = Places::look()?;
    let run_id = place.find_run(&export.which.run)?;
    #[cfg(feature = "formats")]
    if export.format == Format::Packet {
        // A packet is signed with the key of this user.
        provost_engine::query::require_own(&place, &run_id)?;
    }
    let run = Sealed::open(&place, &run_id)?;
    let (bytes, json) = match export.format {
        #[cfg(feature = "formats")]
        Format::Packet => return packet::run(export, &place, &run),
        Format::Attestation => {
            let bytes = run.read(ATTESTATION);
            let json = serde_json::from_slice::<Value>(&bytes).unwrap_or_default();
            (bytes, json)
        }
        Format::Pr => {
            if !run.state.finished.as_ref().is_some_and(|it| it.allow) {
                let reason = format!("{run_id} was not accepted; there is nothing to propose");
                let failure = Failure::new(Code::NotAccepted, reason);
                return Err(failure.hint(format!("provost why {run_id}")));
            }
            let written = pull_request::render(&run.state, &sha256(&run.read(MANIFEST)));
            let json = Answer::data(&written, "").json;
            (written.text().into_bytes(), json)
        }
        Format::Sarif => {
            let why = Why::of(&run.records);
            let why = why.map_err(|error| Failure::of(Code::EvidenceAltered, &error))?;
            let json = Answer::data(sarif::render(&run.state, &why), "").json;
            (format!("{json:#}\n").into_bytes(), json)
        }
        Format::Junit => {
            let text = junit::render(&run.state, &|name| run.read(name));
            let facts = JunitReport {
                run_id: &run_id,
                junit: &text,
            };
            let json = Answer::data(facts, "").json;
            (text.into_bytes(), json)
        }
    };
    match &export.out {
        Some(file) => {
            output::write(file, &bytes)?;
            let written = ExportedFile {
                run_id: &run_id,
                out: file,
                sha256: sha256(&bytes),
            };
            Ok(written.into())
        }
        None => Ok(printed(&bytes, json, reader)),
    }
}

#[derive(Serialize)]
struct JunitReport<'a> {
    run_id: &'a str,
    junit: &'a str,
}

#[derive(Serialize)]
struct ExportedFile<'a> {
    run_id: &'a str,
    out: &'a Path,
    sha256: String,
}

impl Answered for ExportedFile<'_> {
    fn text(&self) -> String {
        format!("wrote {}\n", self.out.display())
    }
}

/// Prints raw data; `--json` gets JSON.
fn printed(bytes: &[u8], json: Value, reader: Reader) -> Answer {
    if reader == Reader::Program {
        return Answer::data(json, "");
    }
    // A closed pipe is not our failure.
    let _ = io::stdout().lock().write_all(bytes);
    Answer::silent()
}

/// A run whose evidence has just been verified.
struct Sealed {
    files: Directory,
    records: Vec<Record>,
    state: State,
}

impl Sealed {
    fn open(place: &Places, run_id: &str) -> Result<Self, Failure> {
        let open = || {
            let directory = Directory::open(&place.run(run_id));
            directory.map_err(|error| Failure::of(Code::InputUnreadable, &error))
        };
        let keys: Vec<PublicKey> = super::verify::trusted()?
            .iter()
            .map(|known| known.key)
            .collect();
        let report = verify::verify(&open()?, &keys, &place.pins(run_id)?, None);
        let verdict = report.verdict();
        if !verdict.allow {
            let failure = Failure::new(verdict.code, verdict.reason);
            return Err(failure.hint(format!("provost verify {run_id}")));
        }
        let files = open()?;
        let altered = |what: String| Failure::new(Code::EvidenceAltered, what);
        let bytes = files.read(&RawPath::new(LEDGER)).map_err(altered)?;
        let chain = record::read(&bytes, Head::genesis());
        let chain = chain.map_err(|error| Failure::of(Code::EvidenceAltered, &error))?;
        let state = State::fold(&chain.records);
        let state = state.map_err(|error| Failure::of(Code::EvidenceAltered, &error))?;
        Ok(Self {
            files,
            records: chain.records,
            state,
        })
    }

    /// A file of the bundle; verification found every file that is needed.
    fn read(&self, name: &str) -> Vec<u8> {
        self.files.read(&RawPath::new(name)).unwrap_or_default()
    }
}
