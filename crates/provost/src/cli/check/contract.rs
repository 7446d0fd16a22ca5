//! `provost check contract`: checks that a contract keeps every rule and could be run.

use std::path::{Path, PathBuf};

use clap::Args;
use provost_core::approval::Widening;
use provost_core::code::Code;
use provost_core::contract;
use provost_core::contract::additions::AdditionsFrom;
use provost_core::contract::check::{self, Purpose, Rules};
use provost_core::document;
use provost_core::gate::command::{CommandPolicy, Trust};
use provost_core::path::RepoPath;
use provost_core::schema::validate::Misfit;
use provost_core::verdict::{FoundAt, Verdict};
use provost_engine::opening::{self, Origin as _, Preflight, RequestedAgent};
use provost_engine::query::RoleContractSummary;
use provost_host::origin::GitOrigin;
use serde::Serialize;
use serde_json::Value;

use crate::answer::{Answer, Failure, Outcome};
use crate::cli::run::start::refuse_secrets;
use crate::input;
use crate::places::Places;
use crate::show::one_line;

#[derive(Args)]
#[command(after_help = "Example:
  provost check contract contract.json

`provost explain contract` describes the contract file.")]
pub(in crate::cli) struct CheckContract {
    /// The contract as JSON, or as YAML or TOML by its file name; `-` reads JSON from stdin.
    file: PathBuf,

    /// Check the document only: permit what no run on this machine could enforce.
    #[arg(long)]
    format: bool,

    /// Judge it for this agent, as `run --agent` names it [default: the one that fits best].
    #[arg(long, value_name = "NAME", conflicts_with = "format")]
    agent: Option<String>,
}

pub(super) fn run(check: &CheckContract) -> Outcome {
    let bytes = input::read(&check.file, contract::LARGEST)?;
    let value = match document::parse(input::format(&check.file), &bytes) {
        Ok(value) => value,
        Err(error) => return Ok(super::bad_payload(&check.file, &error)),
    };
    let place = Places::around(Path::new(".")).ok();
    let judged = if check.format {
        let beside = check.file.parent().unwrap_or(Path::new("."));
        Judged {
            verdict: by_rules(place.as_ref(), &value, Purpose::Format, beside)?,
            asks: Vec::new(),
            role: None,
        }
    } else {
        judge(place.as_ref(), &value, check.agent.as_deref(), &bytes)?
    };
    let mut answer = Answer::from(judged.verdict);
    let advice = answer
        .json
        .pointer("/details/advice")
        .and_then(Value::as_array);
    for row in advice.cloned().unwrap_or_default() {
        let FoundAt { path, problem } = FoundAt::read(&row);
        answer.text += &format!("note: {path}: {problem}\n");
    }
    if let Some(role) = &judged.role {
        if let Some(line) = role.line() {
            answer.text += &format!("{}\n", one_line(&line));
        }
        answer = answer.with(RoleFound {
            role_contract_summary: role,
        });
    }
    if !check.format {
        answer.text += &waiting(&judged.asks);
        answer = answer.with(AskedFor { asks: &judged.asks });
    }
    Ok(answer)
}

/// What the contract needs an approval for.
#[derive(Serialize)]
struct AskedFor<'a> {
    asks: &'a [Widening],
}

/// What the contract makes of its role.
#[derive(Serialize)]
struct RoleFound<'a> {
    role_contract_summary: &'a RoleContractSummary,
}

#[derive(Serialize)]
struct Advice {
    advice: Vec<Misfit>,
}

/// The verdict that a run of the contract here would get before its agent starts.
pub(in crate::cli) struct Judged {
    pub(in crate::cli) verdict: Verdict,
    pub(in crate::cli) asks: Vec<Widening>,
    /// What it makes of its role, if it could be run at all.
    pub(in crate::cli) role: Option<RoleContractSummary>,
}

/// Judges `value`, which was read from `bytes`, by the same function as a run here; as a document
/// outside of a repository, and where too little of it can be read.
pub(in crate::cli) fn judge(
    place: Option<&Places>,
    value: &Value,
    agent: Option<&str>,
    bytes: &[u8],
) -> Result<Judged, Failure> {
    if let Some(place) = place
        && let Some(verdict) = unreadable(place, value)?
    {
        return Ok(Judged {
            verdict,
            asks: Vec::new(),
            role: None,
        });
    }
    let (Some(place), Ok(document)) = (place, contract::from_value(value)) else {
        return Ok(Judged {
            verdict: by_rules(place, value, Purpose::Run, Path::new("."))?,
            asks: Vec::new(),
            role: None,
        });
    };
    let agent = agent.map(|name| RequestedAgent::Named(name.to_owned()));
    let foreseen = opening::foresee(&GitOrigin(&place.repo), &document, agent);
    let foreseen = foreseen.map_err(Failure::from);
    let foreseen = foreseen.and_then(|it| refuse_secrets(&it.opened, bytes).map(|()| it));
    Ok(match foreseen {
        Err(failure) => Judged {
            verdict: failure.verdict(),
            asks: Vec::new(),
            role: None,
        },
        Ok(Preflight {
            verdict,
            asks,
            opened,
        }) => {
            let role = Some(RoleContractSummary::of(&opened));
            let advice = check::advice(&document);
            // A contract that is refused outright needs no approval.
            let waits = verdict.allow || verdict.code == Code::ApprovalNeeded;
            let asks = if waits { asks } else { Vec::new() };
            let verdict = if verdict.allow && !advice.is_empty() {
                verdict.with(Advice { advice })
            } else {
                verdict
            };
            Judged {
                verdict,
                asks,
                role,
            }
        }
    })
}

/// The verdict of the rules on `value`, if it is too incomplete to be run in this repository.
pub(in crate::cli) fn unreadable(
    place: &Places,
    value: &Value,
) -> Result<Option<Verdict>, Failure> {
    let Err(error) = contract::from_value(value) else {
        return Ok(None);
    };
    let verdict = by_rules(Some(place), value, Purpose::Run, Path::new("."))?;
    Ok(Some(if verdict.allow {
        // It cannot be read, so it is refused whatever the rules say.
        Verdict::deny(Code::ContractInvalid, error.to_string())
    } else {
        verdict
    }))
}

/// The verdict of the contract rules on `value` as a document.
fn by_rules(
    place: Option<&Places>,
    value: &Value,
    purpose: Purpose,
    beside: &Path,
) -> Result<Verdict, Failure> {
    let checkout = place.and_then(|place| place.repo.checkout());
    let root = checkout.unwrap_or(beside);
    let read = |path: &RepoPath| input::reference(root, path);
    let rules = Rules {
        policy: &policy(place, value)?,
        trust: Trust::FromFile,
        purpose,
        additions: AdditionsFrom::Base(&read),
    };
    Ok(check::judge(value, &rules, &read))
}

/// Notes about what a run would need approval for.
pub(in crate::cli) fn waiting(asks: &[Widening]) -> String {
    let line = |one: &Widening| {
        let (path, problem) = (one_line(&one.path), one_line(&one.problem));
        format!("note: a run waits for approval: {path}: {problem}\n")
    };
    asks.iter().map(line).collect()
}

/// The commands that a run of this contract here would accept.
fn policy(place: Option<&Places>, contract: &Value) -> Result<CommandPolicy, Failure> {
    let bug = |error| Failure::of(Code::Bug, &error);
    let shipped = CommandPolicy::shipped().map_err(bug)?;
    let base = contract
        .pointer("/rollback/baseline_ref")
        .and_then(Value::as_str);
    let (Some(place), Some(base)) = (place, base) else {
        return Ok(shipped);
    };
    let commit = place.repo.resolve(base).ok();
    let tree = commit.and_then(|commit| place.repo.commit_tree(&commit).ok());
    match tree {
        Some(tree) => {
            let policy = GitOrigin(&place.repo).policy(&tree)?;
            shipped.with(policy.commands).map_err(bug)
        }
        // A base that does not exist here adds no commands.
        None => Ok(shipped),
    }
}
