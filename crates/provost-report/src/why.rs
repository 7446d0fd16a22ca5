//! Explains why a run was refused, and the smallest change of its contract for it to pass.
//!
//! # Invariants
//!
//! - Everything follows from the ledger; the machine is not examined.
//! - A widening is minimal: with it the row it belongs to is gone, and it permits nothing that the
//!   run did not touch. A refusal that no contract can permit has no widening, and says why.
//! - This decides nothing: a refused run stays refused.

mod diff;
mod limit;
mod widen;

use serde::Serialize;
use serde_json::{Value, json};

pub(crate) use diff::rows as diff_rows;
pub use widen::{Edit, Widening, widened};

use provost_core::code::Code;
use provost_core::contract::ResultRule;
use provost_core::contract::document::OutputType;
use provost_core::gate::command;
use provost_core::net::endpoint::Endpoint;
use provost_core::net::traffic::Traffic;
use provost_core::record::Record;
use provost_core::run::fact::{CommandRun, Fact, Side, Violation};
use provost_core::run::{BadLedger, Gate, State};
use provost_core::verdict::Verdict;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    pub run_id: String,
    /// The verdict; absent while the run is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// All refusals, in order; the first is the verdict of the run.
    pub refusals: Vec<Refusal>,
    /// Network endpoints that the agent requested and did not get; no gate refuses a run for it.
    pub network: Vec<Row>,
    /// Requests to models that the proxy did not forward, with the line that grants them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_requests: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refusal {
    /// The gate, or the step that failed.
    pub by: String,
    pub code: Code,
    pub reason: String,
    /// Never empty.
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The path, command or endpoint it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Which part of the rule, if it has parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What is wrong, as text that follows `about`.
    pub problem: String,
    /// What the contract says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<Clause>,
    /// What the contract would have to say; all entries together.
    pub widening: Vec<Widening>,
    /// A hint, or why no contract would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Clause {
    /// As a JSON pointer.
    pub pointer: String,
    /// The value there, or the default if there is none.
    pub value: Value,
    /// The line of the file it was read from, from 1, if both are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl Why {
    pub fn of(records: &[Record]) -> Result<Self, BadLedger> {
        let state = State::fold(records)?;
        let mut refusals = Vec::new();
        for record in records {
            match Fact::of(&record.event, record.seq)? {
                Fact::Failed { step, verdict } => {
                    let step = serde_json::to_value(step).unwrap_or_default();
                    let by = format!("step {}", step.as_str().unwrap_or_default());
                    refusals.push(refusal(&state, by, None, verdict));
                }
                Fact::Refused(judged) | Fact::Violation(Violation::Gate(judged)) => {
                    let by = format!("{} gate", judged.gate.name());
                    refusals.push(refusal(&state, by, Some(judged.gate), judged.verdict));
                }
                // A refusal that a later attempt fixes does not count.
                Fact::Fixing(_) => refusals.clear(),
                _ => {}
            }
        }
        Ok(Self {
            run_id: state.names.run_id.clone(),
            network: network(&state),
            model_requests: model_requests(&state),
            verdict: state.finished,
            refusals,
        })
    }

    /// Everything the contract would have to say for the run to pass; `None` if that would not
    /// suffice.
    pub fn widening(&self) -> Option<Vec<Widening>> {
        together(&self.refusals)
    }
}

/// What the contract would have to say for the same work to pass; `None` if that would not suffice,
/// or the work cannot be judged again.
pub fn widening_of_work(state: &State) -> Option<Vec<Widening>> {
    state.kept_work().ok()?;
    let refused = state.gates.iter().filter(|(_, verdict)| !verdict.allow);
    let refusals = refused.map(|(gate, verdict)| {
        let by = format!("{} gate", gate.name());
        refusal(state, by, Some(*gate), verdict.clone())
    });
    together(&refusals.collect::<Vec<_>>()).filter(|all| !all.is_empty())
}

/// The widenings of all rows; `None` if a row has none.
fn together(refusals: &[Refusal]) -> Option<Vec<Widening>> {
    let mut all: Vec<Widening> = Vec::new();
    for row in refusals.iter().flat_map(|refusal| &refusal.rows) {
        if row.widening.is_empty() {
            return None;
        }
        for one in &row.widening {
            if !all.contains(one) {
                all.push(one.clone());
            }
        }
    }
    let alone = |one: &Widening| !all.iter().any(|other| one.is_within(other));
    Some(all.iter().filter(|one| alone(one)).cloned().collect())
}

fn refusal(state: &State, by: String, gate: Option<Gate>, verdict: Verdict) -> Refusal {
    let mut rows = match (gate, verdict.code) {
        (Some(Gate::Diff), Code::DiffRefused | Code::SecretInPatch) => diff::rows(state, &verdict),
        (Some(Gate::Policy), _) => policy(state, &verdict),
        (Some(Gate::Acceptance), _) => acceptance(state, &verdict),
        (Some(Gate::Agent), _) => limit::of_agent(state).into_iter().collect(),
        (Some(Gate::Output), Code::OutputInvalid) => output(state, &verdict).into_iter().collect(),
        (_, Code::LeaseHeld) => held(&verdict),
        (_, _) => found(&verdict),
    };
    if rows.is_empty() {
        rows.push(Row::hopeless(None, &verdict.reason, remedy(verdict.code)));
    }
    Refusal {
        by,
        code: verdict.code,
        reason: verdict.reason,
        rows,
    }
}

/// The rule of requests that a program makes on its own.
const BACKGROUND: &str = "background";

impl Row {
    /// Whether it is about a request that the work did not need.
    pub fn is_background(&self) -> bool {
        self.rule.as_deref() == Some(BACKGROUND)
    }

    /// A row that no contract would permit.
    fn hopeless(about: Option<String>, problem: &str, note: impl Into<String>) -> Self {
        Self {
            about,
            rule: None,
            problem: problem.to_owned(),
            contract: None,
            widening: Vec::new(),
            note: Some(note.into()),
        }
    }
}

impl Clause {
    fn new(pointer: String, value: Value) -> Self {
        Self {
            pointer,
            value,
            line: None,
            file: None,
        }
    }

    /// What `state`'s contract says at `pointer`.
    fn at(state: &State, pointer: impl Into<String>) -> Self {
        let pointer = pointer.into();
        let document = serde_json::to_value(&state.opened.contract).unwrap_or_default();
        let value = document.pointer(&pointer).cloned().unwrap_or_default();
        Self::new(pointer, value)
    }
}

/// What helps if no contract does.
fn remedy(code: Code) -> &'static str {
    match code {
        Code::EmptyDiff => "a run has to leave a change; say in the objective what is to change",
        Code::TreeChanged => "an acceptance command has to leave tracked files as they are",
        Code::Cancelled => "the run was cancelled; start it again",
        Code::AgentProtocol => "a server has to keep to MCP; what it printed is in the bundle",
        Code::AgentFailed => "the agent must exit without an error; its output is in the bundle",
        Code::AgentReportedFailure => {
            "the agent says that its work is not done; give it what it lacks, or say more exactly \
             what is wanted"
        }
        Code::TokenLimit => {
            "what an agent may spend is said in `provost.toml` of the base, under its name"
        }
        Code::ModelUnauthorized => {
            "log in again (`claude setup-token`, `codex login`), or set the variable to a key that \
             the model takes; see it with `provost agent list`, and start the run again with \
             `provost retry`"
        }
        Code::LoginUnusable => {
            "log in again with the command that the reason names, see it with `provost agent list`, \
             and start the run again with `provost retry`"
        }
        Code::ModelUnreachable => {
            "see whether the model answers outside the sandbox, and that `base_url` of the agent in \
             `provost.toml` is right; then start the run again"
        }
        _ => "nothing that a contract says would have changed this",
    }
}

/// The rows that a verdict lists: a path and its problem.
fn listed(verdict: &Verdict) -> Vec<(String, String, Value)> {
    let details = verdict.details.as_ref();
    let rows = details.and_then(|details| details.get("findings")?.as_array());
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    rows.into_iter()
        .flatten()
        .map(|row| (text(row, "path"), text(row, "problem"), row.clone()))
        .collect()
}

fn found(verdict: &Verdict) -> Vec<Row> {
    let row = |(path, problem, _): (String, String, Value)| {
        Row::hopeless(Some(path), &problem, remedy(verdict.code))
    };
    listed(verdict).into_iter().map(row).collect()
}

/// A problem of the contract itself: the row says how to fix it.
fn policy(state: &State, verdict: &Verdict) -> Vec<Row> {
    let row = |(path, problem, row): (String, String, Value)| Row {
        contract: Some(Clause::at(state, path.clone())),
        rule: row["code"].as_str().map(str::to_owned),
        ..Row::hopeless(Some(path), &problem, "the contract has to change here")
    };
    listed(verdict).into_iter().map(row).collect()
}

fn acceptance(state: &State, verdict: &Verdict) -> Vec<Row> {
    /// The log of the command `name`, if it is the second one.
    fn printed<'a>(state: &'a State, name: &str) -> Option<&'a str> {
        let commands = &state.tests.get(&Side::Candidate)?.commands;
        let ran = commands.iter().find(|ran| ran.name == name)?;
        let silent = ran.stdout.kept == 0 && ran.stderr.kept > 0;
        silent.then_some(ran.stderr.file.as_str())
    }
    let row = |(path, problem, row): (String, String, Value)| {
        let name = row["name"].as_str().unwrap_or_default();
        let tests = &state.opened.contract.acceptance_tests;
        let at = tests.iter().position(|test| test.name == name);
        let clause = at.map(|at| Clause::at(state, format!("/acceptance_tests/{at}")));
        let log = printed(state, name).unwrap_or(row["log"].as_str().unwrap_or_default());
        let made = Row {
            contract: clause,
            ..Row::hopeless(
                Some(path),
                &problem,
                format!("it has to pass; what it printed is in {log}"),
            )
        };
        if verdict.code == Code::TestsFewer && problem.contains("`strict_acceptance`") {
            let strict = "/runtime_options/strict_acceptance";
            return Row {
                contract: Some(Clause::at(state, strict)),
                widening: vec![Widening::set(strict, json!(false))],
                note: Some("a runner that reports how many tests it ran passes as well".to_owned()),
                ..made
            };
        }
        if verdict.code == Code::TestsFewer {
            return Row {
                widening: vec![Widening::set("/x_provost/permit/fewer_tests", json!(true))],
                note: None,
                ..made
            };
        }
        let ran = ran(state, name);
        match ran.and_then(|ran| limit::of(state, ran.ending)) {
            Some(limit) => Row {
                about: made.about,
                problem,
                ..limit
            },
            None => made,
        }
    };
    listed(verdict).into_iter().map(row).collect()
}

/// The command called `name`, as it ran on the candidate.
fn ran<'a>(state: &'a State, name: &str) -> Option<&'a CommandRun> {
    let run = state.tests.get(&Side::Candidate)?;
    run.commands.iter().find(|ran| ran.name == name)
}

fn output(state: &State, verdict: &Verdict) -> Option<Row> {
    let contract = state.contract.as_ref().ok()?;
    let outputs = &contract.document.required_outputs;
    let asks = |kind: OutputType| matches!(kind, OutputType::Report | OutputType::Json);
    let at = outputs.iter().position(|output| asks(output.r#type));
    let clause = match (contract.result, at) {
        (ResultRule::Required, Some(at)) => Clause::at(state, format!("/required_outputs/{at}")),
        _ => Clause::at(state, "/inputs/artifacts"),
    };
    Some(Row {
        contract: Some(clause),
        ..Row::hopeless(
            Some(command::line(&state.opened.agent)),
            &verdict.reason,
            "the agent has to leave a result that fits; `provost schema` prints the schemas",
        )
    })
}

fn held(verdict: &Verdict) -> Vec<Row> {
    let details = verdict.details.as_ref();
    let holders = details.and_then(|details| details.get("holders")?.as_array());
    let row = |holder: &Value| {
        let run = holder["run_id"].as_str().unwrap_or_default().to_owned();
        let paths = holder["paths"].as_array().into_iter().flatten();
        let paths: Vec<&str> = paths.filter_map(Value::as_str).collect();
        let problem = format!("holds {}", paths.join(", "));
        Row::hopeless(Some(run), &problem, "wait for its end, or take other paths")
    };
    holders.into_iter().flatten().map(row).collect()
}

/// The endpoints that the agent requested and did not get.
fn network(state: &State) -> Vec<Row> {
    let traffic = state.agent.iter().flat_map(|agent| &agent.network);
    let mut rows: Vec<Row> = Vec::new();
    for line in traffic.filter(|line| line.code == Code::NetworkRefused) {
        if rows
            .iter()
            .any(|row| row.about.as_ref() == Some(&line.target))
        {
            continue;
        }
        let problem = line
            .reason
            .as_deref()
            .unwrap_or("was asked for and is not granted");
        let mut row = Row {
            contract: Some(Clause::at(state, "/x_provost/net")),
            ..Row::hopeless(Some(line.target.clone()), problem, "")
        };
        let place = Endpoint::parse(&line.target);
        let adapter = state.opened.adapted.as_ref().map(|it| it.adapter);
        let by_itself =
            |place: &Endpoint| adapter.is_some_and(|adapter| adapter.is_background(place));
        if place.as_ref().is_ok_and(by_itself) {
            row.rule = Some(BACKGROUND.to_owned());
            row.contract = None;
            row.note = Some(format!(
                "the program asks for it by itself and works without; if the work needs it: \
                 `--net {}`",
                line.target
            ));
        } else if let Ok(place) = place {
            row.widening = vec![
                Widening::add("/x_provost/net", place.to_string()),
                Widening::set("/tool_permissions/network", json!("allow")),
            ];
            row.note = None;
        } else {
            row.note = Some("a contract cannot grant this address".to_owned());
        }
        rows.push(row);
    }
    // Requests that the work needed come first.
    rows.sort_by_key(Row::is_background);
    rows
}

/// The requests to models that were refused.
fn model_requests(state: &State) -> Vec<Row> {
    let traffic = state.agent.iter().flat_map(|agent| &agent.network);
    let refused = traffic.filter(|line| line.code == Code::ModelRequestRefused);
    let row = |line: &Traffic| {
        let reason = line.reason.as_deref().unwrap_or("was refused");
        // The reason names the line of `provost.toml` after its problem.
        let (problem, line_of_policy) = reason.split_once("; ").unwrap_or((reason, ""));
        let note = match line_of_policy {
            "" => "no line of `provost.toml` permits a request that cannot be read or counted",
            line => line,
        };
        Row::hopeless(Some(line.target.clone()), problem, note)
    };
    refused.map(row).collect()
}

#[cfg(test)]
mod tests;
