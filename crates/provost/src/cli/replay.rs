//! `provost replay`: rebuilds the files of a run, repeats its gates and tests, or runs its agent
//! again.

use std::path::{Path, PathBuf};

use clap::Args;
use provost_core::bundle::key::PublicKey;
use provost_core::bundle::report::{Difference, ReexecReport};
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::wording::counted;
use provost_engine::replay::model::Remodelled;
use provost_engine::replay::{Reexecuted, Rehydrated};
use serde::Serialize;
use serde_json::Value;

use crate::answer::{Answered, Failure, Outcome};
use crate::output;
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::session;
use crate::show::{Reader, one_line};

use super::runs::Which;
use super::verify;

/// How many differences the text output lists.
const MOST_SHOWN: usize = 40;

/// The most characters of a value that the text output shows.
const LONGEST: usize = 120;

/// Rebuild the files of a run, repeat its gates and tests, or run its agent again.
#[derive(Args)]
#[command(after_help = "\
Without --reexec every file that follows from the ledger and the trees is rebuilt in memory and
compared with the sealed one. With --reexec the gates judge the sealed trees again and the
acceptance commands run again, in a fresh sandbox, on the base and on the candidate. This can be
repeated as often as you like: the results are kept beside the sealed files, and `provost verify`
still passes. With --model the agent runs again, without a network, on the answers of its models
that the run recorded (`[record] bodies = true` in provost.toml), and the trees are compared.

Exit 0: everything that must be equal is. 1: something differs. 5: the evidence cannot be trusted.

Examples:
  provost replay last
  provost replay last --reexec --out report.json
  provost replay last --model")]
pub(super) struct Again {
    #[command(flatten)]
    which: Which,

    /// Repeat the gates and the acceptance commands.
    #[arg(long)]
    reexec: bool,

    /// Run the agent again on the recorded answers of its models, without a network.
    #[arg(long, conflicts_with = "reexec")]
    model: bool,

    /// Also write the report (`reexec_report.v1`) to this file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(again: &Again, reader: Reader) -> Outcome {
    let place = if again.reexec || again.model {
        Places::find()?
    } else {
        Places::look()?
    };
    let run_id = place.find_run(&again.which.run)?;
    let replayed = if again.model {
        let mut observer = ProgressObserver::new(reader == Reader::Program);
        let done = session::remodel(place, &run_id, &mut observer);
        observer.clear();
        let Remodelled {
            report,
            replay,
            incomplete,
            attempts,
        } = done?;
        let done = ReplayWork::Remodelled {
            report: replay.report,
            code: match (incomplete, report.hard_equal_pass) {
                (true, _) => Code::ReplayIncomplete,
                (false, true) => Code::Ok,
                (false, false) => Code::ReplayDiffers,
            },
            attempts,
        };
        Replayed { report, done }
    } else if again.reexec {
        let mut observer = ProgressObserver::new(reader == Reader::Program);
        let done = session::reexecute(place, &run_id, &mut observer);
        observer.clear();
        let Reexecuted { report, replay } = done?;
        let done = ReplayWork::Repeated {
            report: replay.report,
        };
        Replayed { report, done }
    } else {
        let Rehydrated {
            built,
            measured,
            report,
        } = session::rehydrate(place, &run_id, &keys()?)?;
        let done = ReplayWork::Rebuilt { built, measured };
        Replayed { report, done }
    };
    if let Some(file) = &again.out {
        write(file, &replayed.report)?;
    }
    Ok(replayed.into())
}

#[derive(Serialize)]
struct Replayed {
    #[serde(flatten)]
    report: ReexecReport,
    #[serde(flatten)]
    done: ReplayWork,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ReplayWork {
    Remodelled {
        /// The file of the report, in the bundle.
        report: String,
        code: Code,
        /// How many attempts were made again.
        attempts: usize,
    },
    Repeated {
        /// The file of the report, in the bundle.
        report: String,
    },
    Rebuilt {
        /// The files that were computed again.
        built: Vec<String>,
        /// The files that only the run itself could measure.
        measured: Vec<String>,
    },
}

/// The keys whose seals are trusted here.
fn keys() -> Result<Vec<PublicKey>, Failure> {
    let known = verify::trusted()?;
    Ok(known.iter().map(|known| known.key).collect())
}

fn write(file: &Path, report: &ReexecReport) -> Result<(), Failure> {
    let value = serde_json::to_value(report).unwrap_or_default();
    output::write(file, format!("{value:#}\n").as_bytes())
}

impl Answered for Replayed {
    fn exit(&self) -> Exit {
        if self.report.hard_equal_pass {
            Exit::Yes
        } else {
            self.code().exit()
        }
    }

    fn text(&self) -> String {
        let report = &self.report;
        let mut text = if report.hard_equal_pass {
            format!("equal: {}\n", report.run_id)
        } else {
            let count = counted(report.hard_diffs.len() + report.errors.len(), "thing");
            match self.code() {
                code @ Code::ReplayIncomplete => {
                    format!("not replayed[{code}]: the record of the models lacks {count}\n")
                }
                code => format!("differs[{code}]: {count} that must be equal\n"),
            }
        };
        for difference in report.hard_diffs.iter().take(MOST_SHOWN) {
            text += &format!("  {}\n", said(difference));
        }
        for error in report.errors.iter().take(MOST_SHOWN) {
            let what = match self.code() {
                Code::ReplayIncomplete => "",
                _ => "not compared: ",
            };
            text += &format!("  {what}{}\n", one_line(error));
        }
        if !report.soft_diffs.is_empty() {
            let count = counted(report.soft_diffs.len(), "difference");
            text += &format!("  and {count} that may differ between machines\n");
        }
        for difference in report.soft_diffs.iter().take(MOST_SHOWN) {
            text += &format!("    {}\n", said(difference));
        }
        text += &match &self.done {
            ReplayWork::Repeated { report } => format!("  report   {report}\n"),
            ReplayWork::Remodelled {
                report, attempts, ..
            } => {
                let attempts = counted(*attempts, "attempt");
                format!(
                    "  agent    {attempts} made again, without a network\n  report   {report}\n"
                )
            }
            ReplayWork::Rebuilt { built, measured } => format!(
                "  built    {}\n  measured {}, taken as they are\n",
                counted(built.len(), "file"),
                counted(measured.len(), "file")
            ),
        };
        if !report.hard_equal_pass {
            text += &format!("hint: provost explain {}\n", self.code());
        }
        text
    }
}

impl Replayed {
    /// The code of a replay that is not equal.
    fn code(&self) -> Code {
        match &self.done {
            ReplayWork::Remodelled { code, .. } => *code,
            ReplayWork::Repeated { .. } | ReplayWork::Rebuilt { .. } => Code::ReplayDiffers,
        }
    }
}

fn said(difference: &Difference) -> String {
    let side = |value: &Option<Value>| match value {
        None => "nothing".to_owned(),
        Some(value) => {
            let text = value.to_string();
            let cut: String = text.chars().take(LONGEST).collect();
            let dots = if cut.len() < text.len() { "…" } else { "" };
            cut + dots
        }
    };
    let (sealed, again) = (side(&difference.expected), side(&difference.actual));
    one_line(&format!("{}: was {sealed}, is {again}", difference.key))
}
