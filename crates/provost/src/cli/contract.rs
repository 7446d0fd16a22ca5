//! `provost contract`: contracts written, looked over, and learned from past runs.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use provost_core::approval::Widening;
use provost_core::code::Code;
use provost_core::contract;
use provost_core::contract::document::{Document, Permissions};
use provost_core::contract::lint;
use provost_core::contract::typed::Typed;
use provost_core::json;
use provost_core::run::learn;
use provost_core::tier::Tier;
use provost_core::verdict::Verdict;
use provost_formats::document::{self, Format};
use provost_host::{clock, ids};
use serde_json::{Value, json};

use super::check::contract::{judge, waiting};
use super::duration::seconds;
use super::limits::Limits;
use super::net::Net;
use super::runs::Which;
use crate::answer::{Answer, Failure, Outcome};
use crate::output;
use crate::places::Places;
use crate::show::neutralise;
use crate::{history, input};

#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Contract {
    /// Write a contract from flags, with a word about each field.
    New(Box<New>),
    /// Judge a contract, and say what a careful person would about it.
    Lint(Lint),
    /// Write the tightest contract that a past run would have passed.
    Learn(Learn),
}

#[derive(Args)]
#[command(after_help = "\
The end of the file's name says how it is written: .yaml, .toml, or JSON, which has no comments.

Example:
  provost contract new greet.yaml 'Greet people by name' --allow src/greet --accept 'pytest -q'")]
pub(super) struct New {
    /// The file to write; it must not be there.
    file: PathBuf,

    /// What is to be done.
    objective: String,

    /// A path the agent may write; it covers everything below it. Repeat for more.
    #[arg(long, value_name = "PATH", required = true)]
    allow: Vec<String>,

    /// A command that must pass on the result. Repeat for more.
    #[arg(long, value_name = "CMD", required = true)]
    accept: Vec<String>,

    /// A path the agent may not touch, even inside what is allowed.
    #[arg(long, value_name = "PATH")]
    forbid: Vec<String>,

    /// The revision to start from [default: HEAD].
    #[arg(long, value_name = "REV")]
    base: Option<String>,

    /// The branch the result is meant for.
    #[arg(long, value_name = "BRANCH")]
    target: Option<String>,

    /// When the agent, or one acceptance command, is ended: 90, 90s, 20m or 2h.
    #[arg(long, value_name = "TIME", default_value = "20m", value_parser = seconds)]
    timeout: u64,

    /// How often the agent may fix what a review or a command refused.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    retries: u32,

    /// What the sandboxes are made of.
    #[arg(long, value_name = "TIER")]
    tier: Option<Tier>,

    #[command(flatten)]
    net: Net,

    #[command(flatten)]
    limits: Limits,

    /// A file that decides what passing means and may change.
    #[arg(long, value_name = "PATH")]
    permit_oracle: Vec<String>,

    /// A file that instructs agents and may change.
    #[arg(long, value_name = "PATH")]
    permit_governing: Vec<String>,

    /// A file that may change although it is not text.
    #[arg(long, value_name = "PATH")]
    allow_binary: Vec<String>,

    /// A symbolic link that may change.
    #[arg(long, value_name = "PATH")]
    permit_symlink: Vec<String>,

    /// Let an acceptance command run fewer tests than on the base.
    #[arg(long)]
    permit_fewer_tests: bool,
}

#[derive(Args)]
#[command(after_help = "\
Exit 0: every rule is kept, whatever the advice. 1: a rule is broken.

Example:
  provost contract lint contract.yaml")]
pub(super) struct Lint {
    /// The contract as JSON, or as YAML or TOML if its name ends so; `-` reads JSON from stdin.
    file: PathBuf,

    /// Judge it for this agent, as `run --agent` names it; without it, for the one that fits best.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

#[derive(Args)]
#[command(after_help = "\
Exact paths, the permissions that were used, the places that were reached, limits rounded up from what was
measured. A run that was refused only for its scope is a lesson, too; one that failed is none.

Example:
  provost contract learn last --out tight.yaml")]
pub(super) struct Learn {
    #[command(flatten)]
    which: Which,

    /// The file to write, instead of JSON on standard output; it must not be there.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(contract: &Contract) -> Outcome {
    match contract {
        Contract::New(new) => self::new(new),
        Contract::Lint(lint) => self::lint(lint),
        Contract::Learn(learn) => self::learn(learn),
    }
}

fn new(new: &New) -> Outcome {
    let unlucky = |error: ids::NoRandomness| Failure::of(Code::HostFailed, &error);
    let now = clock::now_millis();
    let run_id = ids::run_id(now).map_err(unlucky)?;
    let typed = Typed {
        objective: new.objective.clone(),
        allow: new.allow.clone(),
        forbid: new.forbid.clone(),
        accept: new.accept.clone(),
        base: new.base.clone(),
        target: new.target.clone(),
        timeout_sec: new.timeout,
        max_retries: new.retries,
        limits: new.limits.asked(),
        tier: new.tier,
        net: new.net.places(),
        permit: Permissions {
            oracle: new.permit_oracle.clone(),
            governing: new.permit_governing.clone(),
            binary: new.allow_binary.clone(),
            symlink: new.permit_symlink.clone(),
            fewer_tests: new.permit_fewer_tests,
        },
    };
    let document = typed.document(&run_id, now);
    let looked = look(&serde_json::to_value(&document).unwrap_or_default())?;
    write(&new.file, &document)?;
    Ok(told(
        &looked,
        &format!("wrote {}\n", new.file.display()),
        json!({ "out": new.file }),
    ))
}

/// What the rules and a careful person say about a contract.
pub(super) struct Looked {
    pub(super) verdict: Verdict,
    advice: Vec<(String, String)>,
    asks: Vec<Widening>,
}

pub(super) fn look(value: &Value) -> Result<Looked, Failure> {
    look_for(value, None, &[])
}

/// The same for the agent of this name, of a contract that was read from `bytes`.
fn look_for(value: &Value, agent: Option<&str>, bytes: &[u8]) -> Result<Looked, Failure> {
    let place = Places::around(Path::new(".")).ok();
    let judged = judge(place.as_ref(), value, agent, bytes)?;
    let document: Option<Document> = json::from_value(value.clone()).ok();
    let advice = document.iter().flat_map(lint::lint);
    let advice = advice.map(|one| (one.path, one.problem)).collect();
    Ok(Looked {
        verdict: judged.verdict,
        advice,
        asks: judged.asks,
    })
}

/// What was found, below `words`; what breaks a rule is said, and decides elsewhere.
pub(super) fn told(looked: &Looked, words: &str, mut json: Value) -> Answer {
    let mut text = words.to_owned();
    if !looked.verdict.allow {
        text += &format!(
            "note: as it is, it would be refused: {}\n",
            neutralise(&looked.verdict.reason)
        );
    }
    json["verdict"] = json!(looked.verdict);
    json["advice"] = rows(looked);
    json["asks"] = json!(looked.asks);
    text += &advice(looked);
    Answer::data(json, text)
}

pub(super) fn rows(looked: &Looked) -> Value {
    let row = |(path, problem): &(String, String)| json!({ "path": path, "problem": problem });
    looked.advice.iter().map(row).collect()
}

pub(super) fn advice(looked: &Looked) -> String {
    let line = |(path, problem): &(String, String)| format!("advice: {path} {problem}\n");
    neutralise(&looked.advice.iter().map(line).collect::<String>()) + &waiting(&looked.asks)
}

fn lint(lint: &Lint) -> Outcome {
    let bytes = input::read(&lint.file, contract::LARGEST)?;
    let value = match document::parse(input::format(&lint.file), &bytes) {
        Ok(value) => value,
        Err(error) => return Ok(super::check::bad_payload(&error)),
    };
    let looked = look_for(&value, lint.agent.as_deref(), &bytes)?;
    let text = advice(&looked);
    let rows = rows(&looked);
    let mut answer = Answer::from(looked.verdict);
    answer.json["advice"] = rows;
    answer.json["asks"] = json!(looked.asks);
    answer.text += &text;
    Ok(answer)
}

fn learn(learn: &Learn) -> Outcome {
    let place = Places::look()?;
    let run_id = place.find_run(&learn.which.run)?;
    let state = history::state(&place, &run_id)?;
    let document = match learn::learn(&state) {
        Ok(document) => document,
        Err(verdict) => {
            let mut answer = Answer::from(verdict);
            answer.text += &format!("hint: provost why {run_id}\n");
            return Ok(answer);
        }
    };
    let value = serde_json::to_value(&document).unwrap_or_default();
    let Some(file) = &learn.out else {
        return Ok(Answer::data(value.clone(), format!("{value:#}\n")));
    };
    let looked = look(&value)?;
    write(file, &document)?;
    let words = format!(
        "wrote {}: what {run_id} needed, and no more\n",
        file.display()
    );
    Ok(told(
        &looked,
        &words,
        json!({ "out": file, "run_id": run_id }),
    ))
}

/// Writes `document` as the name of the file says; what is there is left alone.
pub(super) fn write(file: &Path, document: &Document) -> Result<(), Failure> {
    let value = serde_json::to_value(document).unwrap_or_default();
    let format = Format::of_name(&file.to_string_lossy()).unwrap_or(Format::Json);
    let text = document::render(format, &value, lint::FIELDS);
    output::unlinked(file)?;
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::of(Code::HostFailed, &error).about(file))
}
