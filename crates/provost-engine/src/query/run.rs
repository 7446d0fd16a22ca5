//! Everything about one run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::role_model::RoleContractSummary;
use crate::bundle::after::Landing;
use crate::bundle::attempts;
use crate::bundle::compose::role_binding;
use crate::dependencies::{Advice, ProjectFiles};
use crate::why;
use provost_core::agent::event::Usage;
use provost_core::approval::Approval;
use provost_core::bundle::report::{ReviewVerdict, RoleBinding};
use provost_core::code::Code;
use provost_core::contract::Contract;
use provost_core::exit::Exit;
use provost_core::gate::command;
use provost_core::net::model_traffic::ModelTraffic;
use provost_core::net::traffic::Traffic;
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_core::review::Remark;
use provost_core::run::cross_tests::ChangedTests;
use provost_core::run::fact::{AgentRun, Capture, ExistingWork, Layered, Left, Salvage, Side};
use provost_core::run::fix::EarlierAttempt;
use provost_core::run::spent::Spent;
use provost_core::run::{Gate, State};
use provost_core::tier::Tier;
use provost_core::verdict::Verdict;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::acceptance::TestsView;
use super::archive::{self, KeptBodies, Landed, LineCount, RecordedBodies};
use super::archive::{RunArchive, RunFiles, Stage};
use super::changed::{ChangedFile, ChangedLines, changed_files, lines};
use super::children::{self, ChildView};
use super::given::GivenView;
use super::logs::{LogFile, SecretsView, log_file, logs, secrets};
use super::missing;
use super::question::QuestionView;
use super::spent;
use super::summary::{LandingSummary, RunStatus};
use super::tail::{self, Tail};
use super::transcript;

/// Facts about a run that are not in its own ledger.
#[derive(Debug, Default)]
pub struct Surroundings {
    pub stage: Stage,
    /// Whether another user began it.
    pub foreign: bool,
    pub landed: Option<Landed>,
    /// Why it cannot land alone, if it is a part of a chain whose parts were not accepted together.
    pub part: Option<String>,
    /// The traffic between the active agent and its model so far.
    pub live: Option<ModelTraffic>,
    pub bodies: Option<KeptBodies>,
    /// When these facts were read, in milliseconds since 1970.
    pub now: i64,
    /// How many lines each path gained and lost, if they were counted.
    pub lines: Option<BTreeMap<RawPath, Option<LineCount>>>,
    /// The files of the base that decide how dependencies are prepared, where a run may lack some.
    pub project: ProjectFiles,
}

impl Surroundings {
    /// The facts about a run that this process has just driven as far as it goes.
    pub fn driven(state: &State) -> Self {
        let waits = state.is_waiting();
        Self {
            stage: if waits { Stage::Waiting } else { Stage::Sealed },
            ..Self::default()
        }
    }

    pub fn read(archive: &dyn RunArchive, state: &State, now: i64) -> Self {
        let run_id = &state.names.run_id;
        let tree = state.captured.as_ref().map(|captured| &captured.tree);
        let lines = tree.map(|tree| archive.line_counts(&state.opened.base_tree, tree));
        let reached = archive::stage(archive, run_id);
        let live = (reached == Stage::Running).then(|| archive.live(run_id, state.attempt));
        Self {
            stage: reached,
            foreign: !archive::is_own(archive, run_id),
            landed: archive::landed(archive, &[run_id.as_str()]).remove(run_id),
            part: None,
            live: live.flatten(),
            bodies: archive.bodies(run_id),
            now,
            lines: Some(lines.unwrap_or_default()),
            project: archive::project(archive, state),
        }
    }
}

#[derive(Debug, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, most of them on the wire"
)]
pub struct RunView {
    pub run_id: String,
    /// The answer; for a run that waits for approval, the refusal until then.
    pub verdict: Option<Verdict>,
    pub status: RunStatus,
    /// Whether this user began it on this machine.
    pub own: bool,
    pub objective: String,
    /// How the role of the contract is bound; only for reading.
    pub role_binding_read_model: RoleBinding,
    /// What the contract makes of its role; only for reading.
    pub role_contract_summary: RoleContractSummary,
    /// The run that this one retries.
    pub parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_of: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildView>,
    /// How many requests for children were refused, by code.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub children_refused: BTreeMap<String, u64>,
    /// The work that it judged without an agent, with every earlier refusal of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<ExistingWork>,
    pub approval: Option<Approval>,
    #[serde(flatten)]
    pub given: GivenView,
    pub base: Oid,
    pub tree: Option<Oid>,
    pub commit: Option<Oid>,
    pub branch: Option<String>,
    #[serde(flatten)]
    pub landing: LandingSummary,
    pub began: String,
    pub took_ms: Option<u64>,
    /// What the agents of all attempts spent.
    pub usage: Option<Spent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bodies: Option<RecordedBodies>,
    /// Milliseconds that the agents of all attempts worked.
    pub agent_ms: Option<u64>,
    /// Tests that failed and may, because they fail twice on the base.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excused: Vec<String>,
    pub changed_files: Vec<ChangedFile>,
    #[serde(serialize_with = "by_name")]
    pub gates: Vec<GateView>,
    /// `None` if the run has no reviewer.
    pub review: Option<ReviewView>,
    pub tests: Option<TestsView>,
    /// The test files that an accepted change touches, and the outcome of the base's tests on it.
    pub tests_changed: Option<ChangedTests>,
    /// The prepared layers, of the candidate if they differ from those of the base.
    pub layers: Vec<Layered>,
    /// Forbidden programs and forms of commands that the last agent used, with their counts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub forbidden: BTreeMap<String, u64>,
    /// The requests of the last agent, refused ones too.
    pub network: Vec<Traffic>,
    pub lines: Option<Vec<ChangedLines>>,
    /// The logs that are not empty.
    pub logs: Vec<LogFile>,
    /// The last words of the agent: a claim, as its program reports it.
    pub agent_said: Option<String>,
    /// The ends of the logs of what failed.
    pub output: Vec<Tail>,
    /// What the sandbox of a failed command lacked.
    pub missing: Vec<Advice>,
    pub secrets: SecretsView,
    pub sandbox: Option<SandboxView>,
    /// The name before 0.2.
    #[serde(rename = "box")]
    former_sandbox: Option<SandboxView>,
    pub loopback: bool,
    pub attempts: u32,
    pub refused_before: Vec<EarlierAttemptView>,
    pub salvaged: Vec<Salvage>,
    pub left: Vec<Left>,
    pub bundle: PathBuf,

    /// What the contract would have to say for the same work to pass; `None` if that would not
    /// suffice.
    #[serde(skip)]
    pub widening: Option<Vec<why::Widening>>,
    #[serde(skip)]
    pub stage: Stage,
    /// Whether the verdict is the last word, and not a question.
    #[serde(skip)]
    pub is_finished: bool,
    /// What a person has to approve, or has approved; `None` if nothing.
    #[serde(skip)]
    pub question: Option<QuestionView>,
    /// Notes that decide nothing.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// Why it cannot land alone, if it is a part of a chain.
    #[serde(skip)]
    pub part: Option<String>,
    /// Whether there is work to restore that did not land.
    #[serde(skip)]
    pub has_work: bool,
    /// When the facts were read, in milliseconds since 1970.
    #[serde(skip)]
    pub now: i64,
}

#[derive(Debug, Serialize)]
pub struct GateView {
    #[serde(skip)]
    pub gate: Gate,
    pub allow: bool,
    pub code: Code,
    pub reason: String,
    #[serde(skip)]
    pub details: Option<Value>,
}

/// The gates as an object; the sandbox also has its name before 0.2.
fn by_name<S: Serializer>(gates: &[GateView], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for gate in gates {
        map.serialize_entry(gate.gate.name(), gate)?;
        if gate.gate == Gate::Sandbox {
            map.serialize_entry("box", gate)?;
        }
    }
    map.end()
}

#[derive(Debug, Serialize)]
pub struct ReviewView {
    pub reviewer: String,
    /// `None` if there is no report that counts.
    pub verdict: Option<ReviewVerdict>,
    pub summary: Option<String>,
    pub tree: Option<Oid>,
    pub wall_ms: Option<u64>,
    pub usage: Option<Usage>,
    pub network: Vec<Traffic>,
    #[serde(skip)]
    pub findings: Vec<Remark>,
}

#[derive(Debug, Clone, Serialize)]
pub struct SandboxView {
    pub tier: String,
    /// The version of Landlock inside, if it has gaps that other restrictions close.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landlock: Option<u32>,
    /// What this version of Landlock leaves to other restrictions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sealed_gaps: Vec<String>,
    /// What the tier does not stop.
    pub holes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct EarlierAttemptView {
    pub attempt: u32,
    pub task_id: String,
    pub code: Code,
    pub reason: String,
    /// The file in the bundle with its work, if there is one.
    pub patch: Option<String>,
    pub tree: Option<Oid>,
}

impl RunView {
    /// The view of the run of `state`, whose files lie in `bundle`.
    pub fn of(state: &State, bundle: &Path, files: &dyn RunFiles, around: Surroundings) -> Self {
        let captured = state.captured.as_ref();
        let published = state.published.as_ref();
        let finished = state.finished.as_ref();
        let agent = state.agent.as_ref();
        let sandbox = state.tested.as_ref().map(|test| SandboxView {
            tier: test.tier.clone(),
            landlock: test.landlock.filter(|_| !test.sealed_gaps.is_empty()),
            sealed_gaps: test.sealed_gaps.clone(),
            holes: test.holes.clone(),
        });
        let active_at = (around.stage == Stage::Running).then_some(around.now);
        Self {
            run_id: state.names.run_id.clone(),
            verdict: finished.cloned().or_else(|| state.unanswered()),
            status: RunStatus::of(state, around.stage),
            own: !around.foreign,
            objective: state.opened.contract.inputs.spec.clone(),
            role_binding_read_model: role_binding(state),
            role_contract_summary: RoleContractSummary::of(&state.opened),
            parent: state.opened.parent.clone(),
            child_of: state.opened.child.as_ref().map(|it| it.run.clone()),
            children: children::views(state),
            children_refused: children::refused(state),
            work: state.opened.work.clone(),
            approval: state.approval.clone(),
            given: GivenView::of(state),
            base: state.opened.base_commit.clone(),
            tree: captured.map(|captured| captured.tree.clone()),
            commit: published.map(|published| published.commit.clone()),
            branch: published.map(|published| short_branch(&published.branch).to_owned()),
            landing: LandingSummary::of(around.landed.as_ref()),
            began: state.began.clone(),
            took_ms: spent::took(state, active_at),
            usage: state.spent(around.live.as_ref()),
            bodies: RecordedBodies::of(state, around.bodies),
            agent_ms: spent::agent_ms(state),
            excused: excused(state),
            changed_files: captured.map(changed_files).unwrap_or_default(),
            gates: state.gates.iter().map(gate).collect(),
            review: review(state),
            tests: TestsView::of(state),
            tests_changed: changed_tests(state),
            layers: layers(state),
            forbidden: agent.map_or_else(BTreeMap::new, AgentRun::forbidden),
            network: agent.map_or_else(Vec::new, |it| it.network.clone()),
            lines: around.lines.map(lines),
            logs: logs(state).map(log_file).collect(),
            agent_said: transcript::last_words(state, files),
            output: tail::of_failure(state, bundle, files),
            missing: missing::of_failure(state, files, &around.project),
            secrets: secrets(state),
            former_sandbox: sandbox.clone(),
            sandbox,
            loopback: has_loopback(state),
            attempts: state.attempt,
            refused_before: state.past.iter().map(|past| earlier(past, files)).collect(),
            salvaged: state.salvaged.clone(),
            left: state.left.clone(),
            bundle: bundle.to_owned(),
            widening: why::widening_of_work(state),
            stage: around.stage,
            is_finished: finished.is_some(),
            question: QuestionView::of(state),
            notes: notes(state),
            part: around.part,
            has_work: captured.is_some_and(Capture::holds_anything)
                || !state.salvaged.is_empty()
                || !state.past.is_empty(),
            now: around.now,
        }
    }

    /// The verdict of a run that has one.
    pub fn finished(&self) -> Option<&Verdict> {
        self.verdict.as_ref().filter(|_| self.is_finished)
    }

    pub fn landed(&self) -> Option<&Landing> {
        self.landing.landed.as_ref()
    }

    /// The exit status of a command that drove the run.
    pub fn exit(&self) -> Exit {
        self.finished().map_or(Exit::NotNow, Verdict::exit)
    }
}

/// A branch without `refs/heads/`.
pub fn short_branch(branch: &str) -> &str {
    branch.strip_prefix("refs/heads/").unwrap_or(branch)
}

/// Whether a person approved the run, and nothing has begun since.
pub fn is_approved(state: &State) -> bool {
    let begun = state.gates.contains_key(&Gate::Policy) || !state.past.is_empty();
    state.approval.is_some() && !begun
}

/// Whether the sandboxes of this run have a loopback, by the policy, the contract and its tier.
fn has_loopback(state: &State) -> bool {
    let has = |contract: &Contract| contract.loopback && contract.tier == Tier::Namespaces;
    state.opened.loopback && state.contract.as_ref().map_or(true, has)
}

fn gate((gate, verdict): (&Gate, &Verdict)) -> GateView {
    GateView {
        gate: *gate,
        allow: verdict.allow,
        code: verdict.code,
        reason: verdict.reason.clone(),
        details: verdict.details.clone(),
    }
}

/// The test files that an accepted change touches, and the outcome of the base's tests on it.
pub fn changed_tests(state: &State) -> Option<ChangedTests> {
    let is_accepted = state.finished.as_ref().is_some_and(|verdict| verdict.allow);
    state.changed_tests().filter(|_| is_accepted)
}

/// The failed tests that the acceptance gate let pass.
pub(super) fn excused(state: &State) -> Vec<String> {
    let details = state
        .gates
        .get(&Gate::Acceptance)
        .and_then(|it| it.details.as_ref());
    let names = details.and_then(|details| details.get("excused")?.as_array());
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

fn review(state: &State) -> Option<ReviewView> {
    let asked = state.opened.review.as_ref()?;
    let report = state.review_report();
    let reviewed = state.reviewed.as_ref();
    Some(ReviewView {
        reviewer: asked.name.clone(),
        verdict: report.as_ref().map(|report| report.verdict),
        summary: report.as_ref().map(|report| report.summary.clone()),
        tree: reviewed.map(|reviewed| reviewed.tree.clone()),
        wall_ms: reviewed.map(|reviewed| reviewed.run.wall_ms),
        usage: reviewed.and_then(|reviewed| reviewed.run.spent()),
        network: reviewed.map_or_else(Vec::new, |reviewed| reviewed.run.network.clone()),
        findings: report.map_or_else(Vec::new, |report| report.findings),
    })
}

/// The prepared layers. A layer that this run made for another of its steps was made by it.
fn layers(state: &State) -> Vec<Layered> {
    let own = state.tests.values().filter(|run| !run.cached);
    let own: Vec<_> = own.map(|run| &run.layers).collect();
    let judged = state.tests.get(&Side::Candidate).map(|run| &run.layers);
    let mut layers = judged
        .or(state.layers.as_ref())
        .cloned()
        .unwrap_or_default();
    for layer in layers.iter_mut().filter(|layer| layer.made.is_none()) {
        let mut all = state.layers.iter().chain(own.iter().copied()).flatten();
        let made = all.find(|other| other.key == layer.key && other.made.is_some());
        layer.made = made.and_then(|other| other.made.clone());
    }
    layers
}

fn earlier(past: &EarlierAttempt, files: &dyn RunFiles) -> EarlierAttemptView {
    let patch = attempts::patch(&past.task_id, past.attempt);
    EarlierAttemptView {
        attempt: past.attempt,
        task_id: past.task_id.clone(),
        code: past.refusal.code,
        reason: past.refusal.reason.clone(),
        patch: files.has(&patch).then_some(patch),
        tree: past.captured.as_ref().map(|captured| captured.tree.clone()),
    }
}

fn notes(state: &State) -> Vec<String> {
    let of_gates = state.gates.values().flat_map(Verdict::notes);
    let mut notes: Vec<String> = of_gates.map(str::to_owned).collect();
    let base = state.tests.get(&Side::Base).into_iter();
    for ran in base.flat_map(|base| &base.commands) {
        if ran.tally.as_ref().is_some_and(|tally| tally.ran() == 0) {
            let line = command::line(&ran.argv);
            notes.push(format!("{line} ran no test on the base"));
        }
    }
    notes
}
