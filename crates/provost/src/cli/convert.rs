//! `provost convert`: converts a task from one format to another.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use provost_core::code::Code;
use provost_core::document::{self, Format};
use provost_core::gate::command::CommandPolicy;
use provost_core::json;
use provost_core::verdict::{FoundAt, Verdict};
use provost_formats::convert::{self, Converted, Dialect, Note, Settings};

use super::snapshot;
use crate::answer::{Answer, Failure, Outcome};
use crate::input;
use crate::show::{self, Reader};

/// Convert a task from one format to another.
#[derive(Args)]
#[command(after_help = "\
The document goes to stdout. Fields of the source that the target cannot hold, and values of the
target that the source does not give, are listed on stderr. A required field without a value is
refused.

Examples:
  provost convert --from assignment --to contract T-12.json --set task_id=task-0012 \\
      --set rollback.baseline_ref=main \\
      --set owner_agent.role=PM --set owner_agent.agent_id=agent-pm \\
      --set acceptance_tests.cmd='pytest -q'
  provost convert --from contract --to card contract.json --set goal_ids=G15 \\
      --set published_at=2026-01-31T12:00:00Z --out task_card.yaml")]
pub(super) struct Convert {
    /// The format of the source.
    #[arg(long, value_enum)]
    from: Name,

    /// The format of the result.
    #[arg(long, value_enum)]
    to: Name,

    /// The source: JSON, YAML or TOML by its file name; `-` reads stdin in the usual format of the
    /// source (YAML for a card, else JSON).
    #[arg(default_value = "-")]
    file: PathBuf,

    /// The file to write [default: stdout].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// A field of the result and its value, as in `task.task_id=T-12`; repeat for more, and for
    /// each element of a list.
    #[arg(long, value_name = "FIELD=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,

    /// Refuse if the target cannot hold everything.
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    /// The task card of a control packet (YAML).
    Card,
    /// The assignment of the operator contracts (JSON).
    Assignment,
    /// The task contract (JSON).
    Contract,
}

impl From<Name> for Dialect {
    fn from(name: Name) -> Self {
        match name {
            Name::Card => Self::Card,
            Name::Assignment => Self::Assignment,
            Name::Contract => Self::Contract,
        }
    }
}

pub(super) fn run(convert: &Convert, reader: Reader) -> Outcome {
    let (from, to) = (convert.from.into(), convert.to.into());
    let bytes = input::read(&convert.file, json::LARGEST)?;
    let policy = CommandPolicy::shipped().map_err(|error| Failure::of(Code::Bug, &error))?;
    let named = Format::of_name(&convert.file.to_string_lossy());
    let source = document::parse(named.unwrap_or(Dialect::format(from)), &bytes)
        .map_err(|error| Failure::of(Code::InputInvalid, &error).about(&convert.file))?;
    let mut settings = Settings::new();
    for (name, value) in &convert.set {
        settings
            .entry(name.clone())
            .or_default()
            .push(value.clone());
    }
    let made = match convert::convert((from, to), &source, &settings, &policy) {
        Ok(made) => made,
        Err(verdict) => return Ok(refused(verdict, reader)),
    };
    if convert.strict && !made.lost.is_empty() {
        return Ok(refused(lossy(&made), reader));
    }
    answer(&made, to, convert.out.as_deref(), reader)
}

fn answer(made: &Converted, to: Dialect, out: Option<&Path>, reader: Reader) -> Outcome {
    let text = to.render(&made.document);
    if reader == Reader::Person {
        print_notes("not carried", &made.lost);
        print_notes("added", &made.given);
    }
    let words = format!("converted to {}", to.words());
    let mut answer = Answer::from(Verdict::allow(words).with(made));
    match out {
        Some(out) => snapshot::write(out, &text)?,
        None => answer.text = text,
    }
    Ok(answer)
}

/// A refusal; its text goes to stderr, because stdout is for the document.
fn refused(verdict: Verdict, reader: Reader) -> Answer {
    let mut answer = Answer::from(verdict);
    if reader == Reader::Person {
        show::print_message(answer.text.trim_end());
        answer.text.clear();
    }
    answer
}

fn print_notes(what: &str, notes: &[Note]) {
    for note in notes {
        let line = format!("note: {what}: {}: {}", note.path, note.reason);
        show::print_message(&show::neutralise(&line));
    }
}

/// The refusal of a conversion that had to be complete and was not.
fn lossy(made: &Converted) -> Verdict {
    let rows = made.lost.iter().map(|note| FoundAt {
        path: &note.path,
        problem: &note.reason,
    });
    let first = made.lost.first().map_or("", |note| note.path.as_str());
    let reason = format!("{} places are not carried, `{first}` first", rows.len());
    Verdict::deny(Code::ContractInvalid, reason).with_findings(rows)
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("has no `=`")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}
