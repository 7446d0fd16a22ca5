//! The types of the API: what programs send and get.

use provost_core::code::Code;
use provost_core::lease::Lease;
use provost_engine::query::{
    CaseSummary, DeniedWrite, GroundView, LiveView, StepSpan, TreeConflict, WaitReason,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::room::{AskedCommand, ChangeRow, LedgerLine, RepositoryRow, RoomRow, SpendView};

/// An error, as RFC 9457 has it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiProblem {
    /// Always `about:blank`: `code` says what is wrong.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) title: String,
    pub(crate) status: u16,
    /// `provost explain CODE` describes it.
    pub(crate) code: String,
    pub(crate) detail: String,
    /// What helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

/// A list; `next` is the `cursor` of the next page.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "List_of_{T}")]
pub(crate) struct ApiList<T> {
    pub(crate) items: Vec<T>,
    pub(crate) next: Option<String>,
}

/// A registered repository.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiRepository {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) path: String,
    /// Why its runs cannot be shown.
    pub(crate) problem: Option<String>,
}

impl From<RepositoryRow> for ApiRepository {
    fn from(row: RepositoryRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            path: row.path,
            problem: row.problem,
        }
    }
}

/// One run in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiRun {
    pub(crate) run_id: String,
    /// RUNNING, WAITING, APPROVED, INTERRUPTED, SUCCESS, FAILURE, `NOT_BEGUN` or UNREADABLE.
    pub(crate) status: String,
    /// The code of its verdict, or why it cannot be read.
    pub(crate) code: Option<String>,
    pub(crate) objective: String,
    /// Whether you began it on this machine; unknown if it cannot be read.
    pub(crate) own: Option<bool>,
    pub(crate) began: Option<String>,
    /// Whether its result is on its branch.
    pub(crate) landed: bool,
    /// The run that this one retries.
    pub(crate) parent: Option<String>,
    /// The command line of the agent.
    pub(crate) agent: Option<String>,
    pub(crate) contract_sha256: Option<String>,
    /// The branch that the result is meant for.
    pub(crate) target: Option<String>,
    /// Whether that branch is not at the commit that the run began from.
    pub(crate) target_moved: bool,
}

impl From<&RoomRow> for ApiRun {
    fn from(row: &RoomRow) -> Self {
        let summary = &row.summary;
        Self {
            run_id: summary.run_id.clone(),
            status: summary.status.word().to_owned(),
            code: summary.code.map(named),
            objective: summary.objective.clone(),
            own: summary.own,
            began: summary.began.clone(),
            landed: summary.is_landed(),
            parent: row.parent.clone(),
            agent: row.agent.clone(),
            contract_sha256: row.contract_sha256.clone(),
            target: row.target.clone(),
            target_moved: row.target_moved,
        }
    }
}

fn named(code: Code) -> String {
    code.name().to_owned()
}

/// Everything about one run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiRunDetail {
    /// The answer of `provost show RUN --json`.
    pub(crate) view: Value,
    /// The answer of `provost why RUN --json`; null if the ledger cannot be explained.
    pub(crate) why: Value,
    pub(crate) events: Vec<LedgerLine>,
    pub(crate) steps: Vec<ApiStep>,
    /// What an active run does now; null if it is not active.
    pub(crate) live: Option<ApiLive>,
    /// What pages and programs asked for, the newest first.
    pub(crate) commands: Vec<AskedCommand>,
}

/// One step of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiStep {
    pub(crate) step: String,
    /// From 1.
    pub(crate) attempt: u32,
    /// Milliseconds from the first event of the run.
    pub(crate) from_ms: u64,
    /// Milliseconds; for a step that has not ended, so far.
    pub(crate) took_ms: u64,
    pub(crate) ended: bool,
    pub(crate) failed: bool,
}

impl From<&StepSpan> for ApiStep {
    fn from(span: &StepSpan) -> Self {
        Self {
            step: spelled(&span.step),
            attempt: span.attempt,
            from_ms: span.from_ms,
            took_ms: span.took_ms,
            ended: span.ended,
            failed: span.failed,
        }
    }
}

/// What an active run does now.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiLive {
    /// The step that has begun and not ended.
    pub(crate) step: Option<String>,
    pub(crate) step_ms: Option<u64>,
    pub(crate) took_ms: Option<u64>,
    pub(crate) attempt: u32,
    /// The last tool that the worker used, with its arguments; a claim.
    pub(crate) last_tool: Option<String>,
    /// The last words of the worker; a claim.
    pub(crate) says: Option<String>,
    /// The paths that may be written.
    pub(crate) scope: Vec<String>,
    /// What the agents of all attempts spent so far.
    pub(crate) tokens: Option<u64>,
    pub(crate) micro_usd: Option<u64>,
    /// What the agent of one attempt may spend; null where there is no limit.
    pub(crate) limit_tokens: Option<u64>,
    pub(crate) limit_micro_usd: Option<u64>,
}

impl From<&LiveView> for ApiLive {
    fn from(live: &LiveView) -> Self {
        Self {
            step: live.step.as_ref().map(spelled),
            step_ms: live.step_ms,
            took_ms: live.took_ms,
            attempt: live.attempt,
            last_tool: live.last_tool.clone(),
            says: live.says.clone(),
            scope: live.scope.clone(),
            tokens: live.usage.map(|it| it.usage.tokens()),
            micro_usd: live.usage.map(|it| it.usage.micro_usd),
            limit_tokens: live.limit.tokens,
            limit_micro_usd: live.limit.micro_usd,
        }
    }
}

/// A word of an enum, as the wire form spells it.
fn spelled<T: Serialize>(word: &T) -> String {
    value(word).as_str().unwrap_or_default().to_owned()
}

/// The right of a run to write in a scope, for a time.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiLease {
    pub(crate) run_id: String,
    pub(crate) paths: Vec<String>,
    /// Larger than that of every lease granted before.
    pub(crate) fence: u64,
    /// In milliseconds since 1970.
    pub(crate) granted_at: i64,
    pub(crate) expires_at: i64,
}

/// Two runs whose work git cannot merge.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiConflict {
    pub(crate) runs: [String; 2],
    pub(crate) paths: Vec<String>,
}

/// One case in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiCase {
    pub(crate) case_id: String,
    /// RUNNING, WAITING, INTERRUPTED, SUCCESS, FAILURE, LANDED or UNREADABLE.
    pub(crate) status: String,
    pub(crate) code: Option<String>,
    pub(crate) request: String,
    pub(crate) began: Option<String>,
    pub(crate) parts: usize,
    pub(crate) accepted: usize,
    pub(crate) fixes: usize,
}

impl From<&CaseSummary> for ApiCase {
    fn from(case: &CaseSummary) -> Self {
        Self {
            case_id: case.case_id.clone(),
            status: case.status.word().to_owned(),
            code: case.code.map(named),
            request: case.request.clone(),
            began: case.began.clone(),
            parts: case.parts,
            accepted: case.accepted,
            fixes: case.fixes,
        }
    }
}

/// Everything about one case.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiCaseDetail {
    /// The report of the case: plan, parts, integration, whole, landing.
    pub(crate) report: Value,
    /// The binding of its latest run; only for reading.
    pub(crate) workflow_case_read_model: Value,
    pub(crate) events: Vec<LedgerLine>,
    /// What pages and programs asked for, the newest first.
    pub(crate) commands: Vec<AskedCommand>,
}

/// Something that waits for the user.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiWaiting {
    pub(crate) repository: String,
    /// question, approval, `lost_driver`, budget, refused, `target_moved`, landing or case.
    pub(crate) reason: String,
    /// The digest of the question, if it waits for an approval.
    pub(crate) digest: Option<String>,
    /// What its agent asks; each has a digest that approve and reject take, and says in `needs`
    /// whether a yes needs the key of a person.
    pub(crate) questions: Value,
    pub(crate) run: Option<ApiRun>,
    pub(crate) case: Option<ApiCase>,
}

pub(crate) fn word(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Question => "question",
        WaitReason::Approval => "approval",
        WaitReason::LostDriver => "lost_driver",
        WaitReason::Budget => "budget",
        WaitReason::Refused => "refused",
        WaitReason::TargetMoved => "target_moved",
        WaitReason::Landing => "landing",
    }
}

/// What runs of one repository share.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiGround {
    pub(crate) leases: Vec<ApiLease>,
    /// Declared changes of shared checkouts; null if they cannot be read.
    pub(crate) changes: Option<Vec<ChangeRow>>,
    /// Pairs of runs whose work git cannot merge.
    pub(crate) conflicts: Vec<ApiConflict>,
    pub(crate) compared: usize,
    pub(crate) left_out: usize,
    /// Writes that the hooks of agents denied, the newest first; null if they cannot be read.
    pub(crate) denied: Option<Vec<DeniedWrite>>,
    pub(crate) policy: Option<String>,
    /// What your agents spent, in all repositories.
    pub(crate) spend: SpendView,
}

impl ApiGround {
    pub(crate) fn of(ground: GroundView<ChangeRow>, spend: SpendView) -> Self {
        Self {
            leases: ground.leases.iter().map(lease).collect(),
            changes: ground.changes,
            conflicts: ground.conflicts.into_iter().map(conflict).collect(),
            compared: ground.compared,
            left_out: ground.left_out,
            denied: ground.denied,
            policy: ground.policy,
            spend,
        }
    }
}

fn lease(lease: &Lease) -> ApiLease {
    let paths = lease.scope.entries().iter();
    ApiLease {
        run_id: lease.run_id.clone(),
        paths: paths.map(ToString::to_string).collect(),
        fence: lease.fence,
        granted_at: lease.granted_at,
        expires_at: lease.expires_at,
    }
}

fn conflict(conflict: TreeConflict) -> ApiConflict {
    let paths = conflict.paths.iter();
    ApiConflict {
        paths: paths.map(ToString::to_string).collect(),
        runs: conflict.runs,
    }
}

/// Lines of a transcript.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiTranscript {
    pub(crate) items: Value,
    pub(crate) next: Option<String>,
}

/// The result of verification, with the files and the head of the chain.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct ApiEvidence(pub(crate) Value);

/// Lines of the patch of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiChange {
    pub(crate) lines: Vec<String>,
    pub(crate) total: usize,
    pub(crate) next: Option<String>,
}

/// The fields that a command needs; others are refused.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiCommand {
    /// Of the question that is answered; for approve and reject.
    #[serde(default)]
    pub(crate) digest: Option<String>,
    /// For reject and cancel.
    #[serde(default)]
    pub(crate) reason: Option<String>,
    /// For retry: what else is to be done.
    #[serde(default)]
    pub(crate) words: Option<String>,
}

/// A command that was carried out or started.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiDone {
    pub(crate) done: String,
}

/// A view of the engine, in its wire form.
pub(crate) fn value<T: Serialize>(view: &T) -> Value {
    serde_json::to_value(view).unwrap_or_default()
}
