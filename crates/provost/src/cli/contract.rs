//! `provost contract`: writes and lints contracts, and learns them from past runs.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use provost_core::approval::Widening;
use provost_core::code::Code;
use provost_core::contract;
use provost_core::contract::document::{Document, Permissions};
use provost_core::contract::typed::Typed;
use provost_core::document::{self, Format};
use provost_core::json;
use provost_core::schema::validate::Misfit;
use provost_core::tier::Tier;
use provost_core::verdict::Verdict;
use provost_engine::contract::learn;
use provost_engine::contract::lint;
use provost_engine::query::{self, RoleContractSummary};
use provost_fs::atomic;
use provost_host::{clock, ids};
use serde::Serialize;
use serde_json::Value;

use super::check::contract::{judge, waiting};
use super::duration::seconds;
use super::limits::Limits;
use super::net::Net;
use super::runs::Which;
use crate::answer::{Answer, Answered, Failure, Outcome};
use crate::input;
use crate::output;
use crate::places::Places;
use crate::show::{neutralise, one_line};

#[derive(Subcommand)]
#[command(defer = true)]
pub(super) enum Contract {
    /// Write a contract from flags, with a comment on each field.
    New(Box<New>),
    /// Check a contract, and give advice on what the rules permit but a careful author avoids.
    Lint(Lint),
    /// Write the narrowest contract that a past run would have passed.
    Learn(Learn),
}

#[derive(Args)]
#[command(after_help = "\
The ending of the file name decides the format: .yaml, .toml, or JSON, which has no comments.

Example:
  provost contract new greet.yaml 'Greet people by name' --allow src/greet --accept 'pytest -q'")]
pub(super) struct New {
    /// The file to write; it must not exist.
    file: PathBuf,

    /// The objective of the contract.
    objective: String,

    /// A path that the agent may write, with everything below it. Repeat for more.
    #[arg(long, value_name = "PATH", required = true)]
    allow: Vec<String>,

    /// A command that must pass on the result. Repeat for more.
    #[arg(long, value_name = "CMD", required = true)]
    accept: Vec<String>,

    /// A path that the agent may not touch, even inside an allowed path.
    #[arg(long, value_name = "PATH")]
    forbid: Vec<String>,

    /// The revision to start from [default: HEAD].
    #[arg(long, value_name = "REV")]
    base: Option<String>,

    /// The branch that the result lands on.
    #[arg(long, value_name = "BRANCH")]
    target: Option<String>,

    /// Time limit of the agent, and of each acceptance command: 90, 90s, 20m or 2h.
    #[arg(long, value_name = "TIME", default_value = "20m", value_parser = seconds)]
    timeout: u64,

    /// How often the agent may fix what a review or a command refused.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    retries: u32,

    /// The tier of the sandboxes.
    #[arg(long, value_name = "TIER")]
    tier: Option<Tier>,

    #[command(flatten)]
    net: Net,

    #[command(flatten)]
    limits: Limits,

    /// A protected file that decides what passing means and that may change.
    #[arg(long, value_name = "PATH")]
    permit_oracle: Vec<String>,

    /// A protected file that instructs agents and that may change.
    #[arg(long, value_name = "PATH")]
    permit_governing: Vec<String>,

    /// A file that may change although it is not text.
    #[arg(long, value_name = "PATH")]
    allow_binary: Vec<String>,

    /// A symbolic link that may change.
    #[arg(long, value_name = "PATH")]
    permit_symlink: Vec<String>,

    /// Permit that an acceptance command runs fewer tests than on the base.
    #[arg(long)]
    permit_fewer_tests: bool,
}

#[derive(Args)]
#[command(after_help = "\
Exit 0: every rule is kept, with or without advice. 1: a rule is broken.

Example:
  provost contract lint contract.yaml")]
pub(super) struct Lint {
    /// The contract as JSON, or as YAML or TOML by its file name; `-` reads JSON from stdin.
    file: PathBuf,

    /// Judge it for this agent, as `run --agent` names it [default: the one that fits best].
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

#[derive(Args)]
#[command(after_help = "\
The contract has exact paths, the permissions that were used, the places that were reached, and
limits rounded up from measurements. A run that was refused only for its scope can be learned
from; one that failed cannot.

Example:
  provost contract learn last --out tight.yaml")]
pub(super) struct Learn {
    #[command(flatten)]
    which: Which,

    /// The file to write [default: JSON on stdout]; it must not exist.
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
    let now = clock::now_millis();
    let run_id = ids::run_id(now)?;
    let typed = Typed {
        accept_mode: None,
        may_ask: false,
        full_access: None,
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
    let written = Written {
        out: &new.file,
        run_id: None,
        contract: None,
        looked,
        words: format!("wrote {}\n", new.file.display()),
    };
    Ok(written.into())
}

/// The verdict of the rules on a contract, and advice.
#[derive(Serialize)]
pub(super) struct Looked {
    pub(super) verdict: Verdict,
    pub(super) advice: Vec<Misfit>,
    asks: Vec<Widening>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role_contract_summary: Option<RoleContractSummary>,
}

pub(super) fn look(value: &Value) -> Result<Looked, Failure> {
    look_for(value, None, &[])
}

/// The same for the agent of this name, for a contract that was read from `bytes`.
fn look_for(value: &Value, agent: Option<&str>, bytes: &[u8]) -> Result<Looked, Failure> {
    let place = Places::around(Path::new(".")).ok();
    let judged = judge(place.as_ref(), value, agent, bytes)?;
    let document: Option<Document> = json::from_value(value.clone()).ok();
    Ok(Looked {
        verdict: judged.verdict,
        advice: document.iter().flat_map(lint::lint).collect(),
        asks: judged.asks,
        role_contract_summary: judged.role,
    })
}

/// A contract that was written to a file.
#[derive(Serialize)]
pub(super) struct Written<'a> {
    pub(super) out: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) contract: Option<Value>,
    #[serde(flatten)]
    pub(super) looked: Looked,
    /// What was done and what comes next.
    #[serde(skip)]
    pub(super) words: String,
}

impl Answered for Written<'_> {
    /// A broken rule is a note here, and is refused when the contract runs.
    fn text(&self) -> String {
        let Self { looked, words, .. } = self;
        let mut text = words.clone();
        if !looked.verdict.allow {
            let reason = one_line(&looked.verdict.reason);
            text += &format!("note: this contract would be refused: {reason}\n");
        }
        text + &looked.advice_text()
    }
}

impl Looked {
    pub(super) fn advice_text(&self) -> String {
        let line = |one: &Misfit| format!("advice: {} {}\n", one.path, one.problem);
        neutralise(&self.advice.iter().map(line).collect::<String>()) + &waiting(&self.asks)
    }
}

fn lint(lint: &Lint) -> Outcome {
    let bytes = input::read(&lint.file, contract::LARGEST)?;
    let value = match document::parse(input::format(&lint.file), &bytes) {
        Ok(value) => value,
        Err(error) => return Ok(super::check::bad_payload(&lint.file, &error)),
    };
    let looked = look_for(&value, lint.agent.as_deref(), &bytes)?;
    let text = looked.advice_text();
    let Looked {
        verdict,
        advice,
        asks,
        role_contract_summary,
    } = looked;
    let mut answer = Answer::from(verdict).with(Linted {
        advice,
        asks,
        role_contract_summary,
    });
    answer.text += &text;
    Ok(answer)
}

#[derive(Serialize)]
struct Linted {
    advice: Vec<Misfit>,
    asks: Vec<Widening>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role_contract_summary: Option<RoleContractSummary>,
}

fn learn(learn: &Learn) -> Outcome {
    let place = Places::look()?;
    let run_id = place.find_run(&learn.which.run)?;
    let state = query::state(&place, &run_id)?;
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
    let place = file.display();
    let written = Written {
        out: file,
        words: format!("wrote {place}: what {run_id} needed, and nothing more\n"),
        run_id: Some(run_id),
        contract: None,
        looked,
    };
    Ok(written.into())
}

/// Writes `document` in the format that the file name asks for; never overwrites a file.
pub(super) fn write(file: &Path, document: &Document) -> Result<(), Failure> {
    let value = serde_json::to_value(document).unwrap_or_default();
    let format = Format::of_name(&file.to_string_lossy()).unwrap_or(Format::Json);
    let text = document::render(format, &value, lint::FIELDS);
    output::unlinked(file)?;
    atomic::create(file, text.as_bytes(), 0o666)
        .map_err(|error| Failure::of(Code::HostFailed, &error).about(file))
}
