//! Judges the structured result of an agent: its form, and what it says about its own work.
//!
//! # Invariants
//!
//! - The schema that the contract binds to the role decides about the form before anything is read.
//! - A good word of the agent opens no gate; a bad one closes this one. What it left is kept.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::bundle::report::{ReviewReport, ReviewVerdict, TestReport, TestStatus};
use crate::code::Code;
use crate::contract::additions::OwnSchema;
use crate::contract::output::Output;
use crate::contract::{Contract, ResultRule};
use crate::foreign_text::first_line;
use crate::json;
use crate::run::fact::ResultFile;
use crate::run::{State, search};
use crate::schema::read::{Unfit, read};
use crate::verdict::Verdict;

/// How much of the agent's own words is repeated in a reason, in characters.
const WORDS: usize = 200;

/// The reason of a gate that had nothing to judge; people need not read it.
pub const NO_RESULT: &str = "no structured result, and none is required";

/// The words of all formats for work that is not done.
const BAD: [&str; 7] = [
    "FAILED", "FAIL", "FAILURE", "BLOCKED", "SKIPPED", "ERROR", "ABORTED",
];

/// The structured result of an agent: what the schema of the same name says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentResult {
    /// The task the agent thinks it worked on.
    pub task_id: String,
    /// What it claims; only a failure is believed.
    pub status: Claim,
    /// In its own words.
    pub summary: String,
    /// Where it says the evidence is.
    pub evidence_refs: Map<String, Value>,
    /// What went wrong, in its own words.
    pub failure: Option<Complaint>,
    /// Contracts it proposes; never executed.
    #[serde(default)]
    pub contracts: Vec<Value>,
    /// Advice to the next agent; never an instruction.
    #[serde(default)]
    pub handoff_payload: Map<String, Value>,
}

/// What an agent claims about its own work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Claim {
    Success,
    Failed,
    Blocked,
    Skipped,
}

/// What went wrong, in the words of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Complaint {
    pub message: String,
    pub hint: String,
}

/// What a result says about the work it is the result of.
struct Word {
    /// What it is about, where it is not about the work at hand.
    elsewhere: Option<String>,
    /// How it contradicts itself.
    contradiction: Option<&'static str>,
    /// The word of its format for a work that is not done; nothing where it is.
    bad: Option<&'static str>,
    /// Why, in the agent's own words.
    why: String,
    /// The same as it was written.
    said: Value,
}

impl State {
    pub(super) fn judge_output(&self, contract: &Contract) -> Verdict {
        let invalid = |reason: String| Verdict::deny(Code::OutputInvalid, reason);
        let text = match self.agent.as_ref().map(|agent| &agent.result) {
            None => return invalid("no agent ran".to_owned()),
            Some(ResultFile::Absent) => {
                return match contract.result {
                    ResultRule::Optional => Verdict::allow(NO_RESULT),
                    ResultRule::Required => {
                        invalid("the contract asks for a result and there is none".into())
                    }
                };
            }
            Some(ResultFile::Unusable(why)) => {
                return invalid(format!("the agent's result {why}"));
            }
            Some(ResultFile::Text(text)) => text,
        };
        match self.word(contract, text) {
            Err(unfit) => {
                let verdict = invalid(format!("the agent's result {unfit}"));
                unfit.details().into_iter().fold(verdict, Verdict::with)
            }
            Ok(word) => self
                .judge_findings(contract)
                .unwrap_or_else(|| word.judge()),
        }
    }

    /// The refusal of the findings of a search that are not what they should be.
    fn judge_findings(&self, contract: &Contract) -> Option<Verdict> {
        let result = &self.agent.as_ref()?.result;
        let unfit = search::findings(&contract.document, result)?.err()?;
        let reason = format!(
            "the agent's result has no search at `{}`: {unfit}",
            search::PLACE
        );
        Some(Verdict::deny(Code::OutputInvalid, reason))
    }

    /// What the result `text` says, if it has the form that its role asks for.
    fn word(&self, contract: &Contract, text: &str) -> Result<Word, Unfit> {
        if let Some(own) = &contract.own_schema {
            return self.own_word(contract, own, text);
        }
        let output = Output::of(contract.document.assigned_agent.role);
        let (schema, bytes) = (output.schema(), text.as_bytes());
        let mut word = match output {
            Output::TaskResult => Word::of_result(read(bytes, &schema)?, contract),
            Output::ReviewReport => Word::of_review(read(bytes, &schema)?, contract),
            Output::TestReport => Word::of_tests(read(bytes, &schema)?, contract),
        };
        if output != Output::TaskResult {
            let value: Value = read(bytes, &schema)?;
            let run = value["run_id"].as_str().unwrap_or_default();
            word.elsewhere = word.elsewhere.or(self.other_run(contract, run));
        }
        Ok(word)
    }

    /// What the result `text` says that has the form of a schema of the repository.
    fn own_word(&self, contract: &Contract, own: &OwnSchema, text: &str) -> Result<Word, Unfit> {
        let schema = json::parse(own.text.as_bytes()).map_err(Unfit::Text)?;
        let value: Value = read(text.as_bytes(), &schema)?;
        let mut word = Word::of_own(&value, contract);
        let run = value["run_id"].as_str();
        let other = run.and_then(|run| self.other_run(contract, run));
        word.elsewhere = word.elsewhere.or(other);
        Ok(word)
    }

    /// The run that a result is about, if it is not this one.
    fn other_run(&self, contract: &Contract, run: &str) -> Option<String> {
        let known = [&self.names.run_id, &contract.document.log_refs.run_id];
        let other = !known.iter().any(|known| *known == run);
        other.then(|| format!("another run, `{}`", first_line(run, WORDS)))
    }
}

impl Word {
    fn of_result(result: AgentResult, contract: &Contract) -> Self {
        let failure = result.failure.unwrap_or_default();
        let fails = [&failure.message, &failure.hint].map(|words| !words.trim().is_empty());
        let contradicts = result.status == Claim::Success && fails.contains(&true);
        let message = [&failure.message, &result.summary];
        let why = message.into_iter().find(|text| !text.trim().is_empty());
        Self {
            elsewhere: elsewhere(Some(&result.task_id), contract),
            contradiction: contradicts.then_some("says SUCCESS and names a failure"),
            bad: match result.status {
                Claim::Success => None,
                Claim::Failed => Some("FAILED"),
                Claim::Blocked => Some("BLOCKED"),
                Claim::Skipped => Some("SKIPPED"),
            },
            why: why.cloned().unwrap_or_default(),
            said: json!({ "summary": result.summary, "message": failure.message,
                "hint": failure.hint }),
        }
    }

    /// A result in the form of a schema of the repository: only what its usual fields say of a
    /// failure counts, whatever else the form has.
    fn of_own(value: &Value, contract: &Contract) -> Self {
        let text = |at: &str| {
            value
                .pointer(at)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let said = ["/status", "/verdict"].map(|at| text(at).to_ascii_uppercase());
        let bad = BAD
            .into_iter()
            .find(|bad| said.iter().any(|word| word == bad));
        let message = text("/failure/message");
        let why = [message, text("/summary")];
        let why = why.into_iter().find(|text| !text.trim().is_empty());
        let contradicts = bad.is_none() && !message.trim().is_empty();
        Self {
            elsewhere: elsewhere(value["task_id"].as_str(), contract),
            contradiction: contradicts.then_some("names a failure, and no status that says so"),
            bad,
            why: why.unwrap_or_default().to_owned(),
            said: json!({ "summary": text("/summary"), "message": message }),
        }
    }

    fn of_review(report: ReviewReport, contract: &Contract) -> Self {
        let passes = report.verdict == ReviewVerdict::Pass;
        let scope = &report.scope_check;
        let contradicts = passes && !(scope.passed && scope.violations.is_empty());
        Self {
            elsewhere: elsewhere(report.task_id.as_deref(), contract),
            contradiction: contradicts.then_some("accepts changes that it reports as out of scope"),
            bad: match report.verdict {
                ReviewVerdict::Pass => None,
                ReviewVerdict::Fail => Some("FAIL"),
                ReviewVerdict::Blocked => Some("BLOCKED"),
            },
            said: json!({ "summary": report.summary,
                "violations": report.scope_check.violations }),
            why: report.summary,
        }
    }

    fn of_tests(report: TestReport, contract: &Contract) -> Self {
        let mut failed = report.commands.iter();
        let failed = failed.find(|ran| ran.must_pass && ran.exit_code != 0);
        let message = report.failure.and_then(|failure| failure.message);
        let contradiction = match (report.status, &failed, &message) {
            (TestStatus::Pass, Some(_), _) => {
                Some("passes although a command that must pass failed")
            }
            (TestStatus::Pass, None, Some(words)) if !words.trim().is_empty() => {
                Some("says PASS and names a failure")
            }
            _ => None,
        };
        let named = failed.map(|ran| format!("{} ended with {}", ran.name, ran.exit_code));
        let why = message.or(named).unwrap_or_default();
        Self {
            elsewhere: elsewhere(Some(&report.task_id), contract),
            contradiction,
            bad: match report.status {
                TestStatus::Pass => None,
                TestStatus::Fail => Some("FAIL"),
                TestStatus::Error => Some("ERROR"),
                TestStatus::Skipped => Some("SKIPPED"),
            },
            said: json!({ "message": why }),
            why,
        }
    }

    fn judge(self) -> Verdict {
        if let Some(other) = self.elsewhere {
            let reason = format!("the agent's result is about {other}");
            return Verdict::deny(Code::OutputInvalid, reason);
        }
        if let Some(flaw) = self.contradiction {
            return Verdict::deny(Code::OutputInvalid, format!("the agent's result {flaw}"));
        }
        let Some(bad) = self.bad else {
            return Verdict::allow("the agent's result fits its schema");
        };
        let words = match first_line(&self.why, WORDS) {
            words if words.is_empty() => "it does not say why".to_owned(),
            words => words,
        };
        let reason = format!("the agent reports {bad}: {words}");
        let hint = "what the agent did is kept; `provost salvage restore` brings it back";
        Verdict::deny(Code::AgentReportedFailure, reason)
            .with(json!({ "status": bad, "said": self.said, "hint": hint }))
    }
}

/// The other task that a result is about.
fn elsewhere(task_id: Option<&str>, contract: &Contract) -> Option<String> {
    let other = task_id.filter(|id| *id != contract.document.task_id)?;
    Some(format!("another task, `{}`", first_line(other, WORDS)))
}
