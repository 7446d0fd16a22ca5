//! What Provost adds to the reports: facts that no gate depends on.
//!
//! These parts of a report are open. Another version may write other facts there, so a reader takes
//! them as they are; what this version writes are the types below.

use std::collections::BTreeMap;

use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_core::review::Report;
use provost_core::run::State;
use provost_core::run::cross_tests::{ChangedTests, CrossTests};
use provost_core::run::fact::{
    AgentRun, CacheUse, CommandRun, Ending, ResultFile, ReviewRun, TestRun,
};
use provost_core::run::fix::EarlierAttempt;
use provost_core::run::judge::{compare, optional_red, render_ending};
use provost_core::tally::Tally;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{ComposeError, Files};
use crate::bundle::attempts::{self, PATCHES};
use provost_core::agent::event::Usage;
use provost_core::contract::Test;
use provost_core::contract::document::Document;

/// `facts` as the fields of an open object.
pub(super) fn open(facts: &impl Serialize) -> Result<Map<String, Value>, ComposeError> {
    match serde_json::to_value(facts)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(ComposeError::NotAnObject),
    }
}

/// Where the contract says that there is more.
#[derive(Serialize)]
pub(super) struct ContractLinks<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    evidence_links: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_task_id: Option<&'a str>,
}

impl<'a> ContractLinks<'a> {
    pub(super) fn of(contract: &'a Document) -> Self {
        Self {
            evidence_links: &contract.evidence_links,
            parent_task_id: contract.parent_task_id.as_deref(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct WorkMetrics<'a> {
    pub(super) changed_files: usize,
    #[serde(flatten)]
    pub(super) agent: Option<AgentMetrics<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) earlier_attempts: Vec<EarlierFacts<'a>>,
}

#[derive(Serialize)]
#[expect(
    clippy::struct_field_names,
    reason = "the names of fields are the report's"
)]
pub(super) struct AgentMetrics<'a> {
    agent_wall_ms: u64,
    agent_ending: Ending,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_usage: Option<Usage>,
    /// In addition to the measured tokens; without those it is the same number.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_usage_claimed: Option<&'a Usage>,
    /// The agent's own claim, as data beside the measurements.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_claims: Option<&'a str>,
}

impl<'a> AgentMetrics<'a> {
    pub(super) fn of(agent: &'a AgentRun) -> Self {
        Self {
            agent_wall_ms: agent.wall_ms,
            agent_ending: agent.ending,
            agent_usage: agent.spent(),
            agent_usage_claimed: agent.claimed().filter(|_| agent.model.is_some()),
            agent_claims: match &agent.result {
                ResultFile::Text(text) => Some(text),
                _ => None,
            },
        }
    }
}

/// A refused attempt before the last one, with the file that holds its patch.
#[derive(Serialize)]
pub(super) struct EarlierFacts<'a> {
    attempt: u32,
    task_id: &'a str,
    code: Code,
    reason: &'a str,
    tree: Option<&'a Oid>,
    kept_by: Option<&'a str>,
    agent_wall_ms: Option<u64>,
    agent_usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    /// Why there is no patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<&'static str>,
}

impl<'a> EarlierFacts<'a> {
    pub(super) fn all(state: &'a State, files: &Files) -> Vec<Self> {
        let holds_attempts = files.keys().any(|name| name.starts_with(PATCHES));
        let row = |past: &'a EarlierAttempt| {
            let patch = attempts::patch(&past.task_id, past.attempt);
            let patch = files.contains_key(&patch).then_some(patch);
            let left_out = patch.is_none() && holds_attempts && past.captured.is_some();
            let (captured, agent) = (past.captured.as_ref(), past.agent.as_ref());
            Self {
                attempt: past.attempt,
                task_id: &past.task_id,
                code: past.refusal.code,
                reason: &past.refusal.reason,
                tree: captured.map(|captured| &captured.tree),
                kept_by: captured.map(|captured| captured.kept_by.as_str()),
                agent_wall_ms: agent.map(|agent| agent.wall_ms),
                agent_usage: agent.and_then(AgentRun::spent),
                patch,
                left_out: left_out
                    .then_some("the attempts are larger together than a bundle holds"),
            }
        };
        state.past.iter().map(row).collect()
    }
}

#[derive(Serialize)]
pub(super) struct TestFacts<'a> {
    #[serde(flatten)]
    ran: Option<RanFacts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tests_changed: Option<ChangedTests>,
    #[serde(flatten)]
    compared: Option<ComparedWithBase<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    two_sided: Option<CrossTests>,
}

#[derive(Serialize)]
struct RanFacts<'a> {
    tests: Vec<CommandTally<'a>>,
    times: Vec<CommandTime<'a>>,
    /// The run of the same case whose round on the same tree counts; these commands did not run
    /// again.
    #[serde(skip_serializing_if = "Option::is_none")]
    reused_from: Option<&'a str>,
    /// Whether they started on build caches, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<&'a CacheUse>,
    /// The commands that failed and need not pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    optional_red: Vec<&'a str>,
}

/// How many tests a command ran; `null` if its output does not say.
#[derive(Serialize)]
struct CommandTally<'a> {
    name: &'a str,
    tests: Option<&'a Tally>,
}

/// When a command started and how long it took, where measured.
#[derive(Serialize)]
struct CommandTime<'a> {
    name: &'a str,
    started_at: Option<&'a str>,
    finished_at: Option<String>,
    duration_ms: u64,
}

#[derive(Serialize)]
struct ComparedWithBase<'a> {
    compared_with_base: &'static str,
    base: BaseFacts<'a>,
}

/// The results of the same commands on the base.
#[derive(Serialize)]
struct BaseFacts<'a> {
    tree: &'a Oid,
    cached: bool,
    commands: Vec<BaseCommand<'a>>,
}

#[derive(Serialize)]
struct BaseCommand<'a> {
    name: &'a str,
    ending: String,
    tests: Option<&'a Tally>,
}

impl<'a> TestFacts<'a> {
    /// The facts about the commands on the candidate and on the base.
    pub(super) fn of(
        state: &'a State,
        run: Option<&'a TestRun>,
        base: Option<&'a TestRun>,
        tests: &[Test],
    ) -> Self {
        let compared = |(base, run): (&'a TestRun, &TestRun)| ComparedWithBase {
            compared_with_base: compare(base, run, tests),
            base: BaseFacts::of(base),
        };
        Self {
            ran: run.map(|run| RanFacts::of(state, run, tests)),
            tests_changed: state.changed_tests(),
            compared: base.zip(run).map(compared),
            two_sided: state.cross_tests(),
        }
    }
}

impl<'a> RanFacts<'a> {
    fn of(state: &'a State, run: &'a TestRun, tests: &[Test]) -> Self {
        let tally = |ran: &'a CommandRun| CommandTally {
            name: &ran.name,
            tests: ran.tally.as_ref(),
        };
        let time = |ran: &'a CommandRun| CommandTime {
            name: &ran.name,
            started_at: ran.began.as_deref(),
            finished_at: ran.ended(),
            duration_ms: ran.wall_ms,
        };
        let red = optional_red(run, tests);
        Self {
            tests: run.commands.iter().map(tally).collect(),
            times: run.commands.iter().map(time).collect(),
            reused_from: state.reused_from(run),
            cache: run.cache.as_deref(),
            optional_red: red.into_iter().map(|ran| ran.name.as_str()).collect(),
        }
    }
}

impl<'a> BaseFacts<'a> {
    fn of(base: &'a TestRun) -> Self {
        let command = |ran: &'a CommandRun| BaseCommand {
            name: &ran.name,
            ending: render_ending(ran.ending),
            tests: ran.tally.as_ref(),
        };
        Self {
            tree: &base.tree,
            cached: base.cached,
            commands: base.commands.iter().map(command).collect(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct ReviewFacts<'a> {
    #[serde(flatten)]
    report: Option<RemarkList<'a>>,
    altered: &'a [RawPath],
    ending: Ending,
    wall_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

#[derive(Serialize)]
struct RemarkList<'a> {
    findings: &'a [provost_core::review::Remark],
}

impl<'a> ReviewFacts<'a> {
    pub(super) fn of(reviewed: &'a ReviewRun, report: Option<&'a Report>) -> Self {
        Self {
            report: report.map(|report| RemarkList {
                findings: &report.findings,
            }),
            altered: &reviewed.altered,
            ending: reviewed.run.ending,
            wall_ms: reviewed.run.wall_ms,
            usage: reviewed.run.spent(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct ManifestFacts<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    earlier_attempts: Vec<EarlierFacts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<WithheldFacts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forbidden_actions: Option<ForbiddenFacts<'a>>,
    /// The digest of every schema of this version, by name.
    schemas: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
struct WithheldFacts<'a> {
    paths: &'a std::collections::BTreeSet<RawPath>,
    /// Whether names were replaced too.
    names: bool,
    why: &'static str,
}

/// The forbidden actions of the contract, and how often the agent's tool calls matched them. The
/// actions inside a shell command are not visible.
#[derive(Serialize)]
struct ForbiddenFacts<'a> {
    declared: &'a [String],
    observed: bool,
    seen: BTreeMap<&'a str, u64>,
}

impl<'a> ManifestFacts<'a> {
    pub(super) fn of(
        state: &'a State,
        files: &Files,
        schemas: BTreeMap<&'static str, String>,
    ) -> Self {
        let withheld = state.captured.as_ref().map(|captured| &captured.withheld);
        let withheld = withheld.filter(|withheld| !withheld.is_nothing());
        Self {
            earlier_attempts: EarlierFacts::all(state, files),
            withheld: withheld.map(|withheld| WithheldFacts {
                paths: &withheld.contents,
                names: withheld.names,
                why: "left out of patch.diff and git/objects.pack, because a secret is in it",
            }),
            forbidden_actions: ForbiddenFacts::of(state),
            schemas,
        }
    }
}

impl<'a> ForbiddenFacts<'a> {
    fn of(state: &'a State) -> Option<Self> {
        let declared = state.opened.contract.forbidden_actions.as_slice();
        if declared.is_empty() {
            return None;
        }
        let past = state.past.iter().filter_map(|past| past.agent.as_ref());
        let claims = past
            .chain(&state.agent)
            .filter_map(|agent| agent.claims.as_ref());
        let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
        for (action, count) in claims.flat_map(|claims| &claims.sum.forbidden) {
            *seen.entry(action).or_default() += count;
        }
        Some(Self {
            declared,
            observed: state.opened.adapted.is_some(),
            seen,
        })
    }
}
