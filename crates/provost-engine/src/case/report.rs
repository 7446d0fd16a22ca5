//! The report about a case, for programs and for the page of a case.

use provost_core::object::Oid;
use provost_core::verdict::Verdict;
use schemars::JsonSchema;
use serde::Serialize;

use crate::bundle::formats::{OpenObject, VerdictFile};
use provost_core::bundle::report::Nullable;

use super::{CaseQuestion, Integration, Judging, State};
use crate::chain::{End, Standing};
use crate::opening::RequestedAgent;

const VERSION: u32 = 1;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaseReport<'a> {
    pub schema_version: u32,
    pub case_id: &'a str,
    pub request: &'a str,
    pub base_commit: &'a Oid,
    pub trace_id: &'a str,
    /// The agent of the parts, and their reviewer.
    pub agent: &'a str,
    #[schemars(with = "Nullable<String>")]
    pub reviewer: Option<&'a str>,
    pub began: &'a str,
    /// Contracts give rights; a report only repeats what happened.
    pub execution_authority: &'static str,
    #[schemars(with = "Nullable<VerdictFile>")]
    pub verdict: Option<&'a Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OpenObject>")]
    pub question: Option<&'a CaseQuestion>,
    /// Whether the question was approved, once it is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    pub parts: Vec<CasePart<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OpenObject>")]
    pub integration: Option<&'a Integration>,
    /// The run that judged the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<CaseRun<'a>>,
    /// The commit that was landed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landed: Option<&'a Oid>,
}

/// A part with all of its runs, the fixes last.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CasePart<'a> {
    pub id: &'a str,
    pub runs: Vec<CaseRun<'a>>,
    /// Why it was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<VerdictFile>")]
    pub not_run: Option<&'a Verdict>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaseRun<'a> {
    pub run_id: &'a str,
    /// Whether the run fixes what was refused together.
    pub fix: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<VerdictFile>")]
    pub verdict: Option<&'a Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<&'a Oid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_head: Option<&'a str>,
}

impl<'a> CaseRun<'a> {
    fn running(run_id: &'a str, fix: bool) -> Self {
        Self {
            run_id,
            fix,
            verdict: None,
            tree: None,
            ledger_head: None,
        }
    }

    fn ended(end: &'a End, fix: bool) -> Self {
        Self {
            run_id: &end.run_id,
            fix,
            verdict: Some(&end.verdict),
            tree: end.tree.as_ref(),
            ledger_head: end.head.as_deref(),
        }
    }
}

impl<'a> CaseReport<'a> {
    /// The question that a person has to answer, if there is one.
    pub fn open_question(&self) -> Option<&'a CaseQuestion> {
        let open = self.approved.is_none() && self.verdict.is_none();
        let question = self.question;
        question.filter(|question| open && !question.is_empty())
    }

    pub fn of(id: &'a str, state: &'a State) -> Self {
        let opened = &state.opened;
        let parts = state.parts.iter().flat_map(|parts| &parts.nodes);
        Self {
            schema_version: VERSION,
            case_id: id,
            request: &opened.request,
            base_commit: &opened.base_commit,
            trace_id: &opened.trace_id,
            agent: opened.agent.words(),
            reviewer: opened.review.as_ref().map(RequestedAgent::words),
            began: &state.began,
            execution_authority: "task_contract",
            verdict: state.finished.as_ref(),
            question: state.asked.as_ref(),
            approved: state.answered.as_ref().map(|answer| answer.approved),
            parts: parts
                .map(|(id, standing)| part(state, id, standing))
                .collect(),
            integration: state.integration.as_ref(),
            whole: state.judging.as_ref().map(|judging| match judging {
                Judging::Running { run_id } => CaseRun::running(run_id, false),
                Judging::Ended(end) => CaseRun::ended(end, false),
            }),
            landed: state.landed.as_ref(),
        }
    }
}

fn part<'a>(state: &'a State, id: &'a str, standing: &'a Standing) -> CasePart<'a> {
    let (first, not_run) = match standing {
        Standing::Running { run_id } | Standing::Left { run_id } => {
            (Some(CaseRun::running(run_id, false)), None)
        }
        Standing::Ended(end) => (Some(CaseRun::ended(end, false)), None),
        Standing::NotRun(verdict) => (None, Some(verdict)),
    };
    let fixes = state.fixes.iter().filter(|fix| fix.start.part == id);
    let fixes = fixes.map(|fix| match &fix.end {
        Some(end) => CaseRun::ended(end, true),
        None => CaseRun::running(&fix.start.run_id, true),
    });
    CasePart {
        id,
        runs: first.into_iter().chain(fixes).collect(),
        not_run,
    }
}
