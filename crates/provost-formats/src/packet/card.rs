//! The task card: the planner's permissions.

use provost_core::bundle::report::Nullable;
use provost_core::json::Node;
use provost_core::path::RepoPath;
use provost_core::schema::leaf::{Filled, FilledStrictly, Strictly};
use provost_core::schema::read::FormatReader;
use provost_core::text_schema;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::finding::{FileFindings, Findings};
use super::rule::{self, Rule};
use super::text::{ExecutorRole, Moment, trimmed};
use super::{Evidence, Source, TASK_CARD};

const MOST: usize = 10_000;

/// The field of the card that names files which may change by themselves.
pub(super) const NOISE_FIELD: &str = "external_noise_paths";

/// `task_card.yaml`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct TaskCard {
    #[schemars(with = "CardVersion")]
    pub schema_version: Option<CardVersion>,
    #[schemars(with = "Filled")]
    pub phase_id: Option<String>,
    /// Ids such as `G15`.
    #[schemars(with = "Vec<FilledStrictly>", length(min = 1))]
    pub goal_ids: Option<Vec<String>>,
    #[schemars(with = "ExecutorRole")]
    pub executor_required: Option<ExecutorRole>,
    /// Paths, and globs over whole paths.
    #[schemars(with = "Vec<FilledStrictly>", length(min = 1))]
    pub allowed_paths: Option<Vec<String>>,
    #[schemars(with = "Vec<Filled>", length(min = 1))]
    pub acceptance_commands: Option<Vec<String>>,
    #[schemars(with = "Moment")]
    pub published_at: Option<Moment>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub published_by: Option<&'static str>,
    /// `legacy` if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Nullable<PolicyName>")]
    pub evidence_policy: Option<String>,
    /// Needed in a hardened packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Strictly<EvidenceFiles>")]
    pub evidence_files: Option<Value>,
    /// Globs of files that change by themselves and are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Nullable<Vec<Filled>>")]
    pub external_noise_paths: Option<Vec<String>>,
    /// Whether Provost made it, so that a seal is required.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given"
    )]
    #[schemars(skip)]
    pub x_provost: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CardVersion {
    #[serde(rename = "subagent_task_card_v1")]
    V1,
}

enum PolicyName {}

text_schema!(PolicyName, {
    "type": "string",
    "x-strict": { "enum": [Policy::Legacy.name(), Policy::Hardened.name()] }
});

/// The files of a hardened packet, each from the root of the repository or of the packet.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct EvidenceFiles {
    #[schemars(with = "Filled")]
    pub workspace_before: Option<String>,
    #[schemars(with = "Filled")]
    pub workspace_after: Option<String>,
    #[schemars(with = "Filled")]
    pub acceptance_log: Option<String>,
}

impl EvidenceFiles {
    /// The files, each at the place that `of` gives it.
    pub(super) fn all(of: impl Fn(Evidence) -> String) -> Self {
        Self {
            workspace_before: Some(of(Evidence::Before)),
            workspace_after: Some(of(Evidence::After)),
            acceptance_log: Some(of(Evidence::Log)),
        }
    }

    fn get(&self, evidence: Evidence) -> Option<&str> {
        let text = match evidence {
            Evidence::Before => &self.workspace_before,
            Evidence::After => &self.workspace_after,
            Evidence::Log => &self.acceptance_log,
        };
        text.as_deref()
    }
}

/// Also `null` counts as given.
fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

static CARD: FormatReader<TaskCard> = FormatReader::new();
static FILES: FormatReader<EvidenceFiles> = FormatReader::new();

/// How much evidence a packet must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// Only its reports.
    Legacy,
    /// Snapshots and a log as well.
    Hardened,
}

impl Policy {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Hardened => "hardened",
        }
    }
}

/// What a task card permits, as far as it can be read.
#[derive(Debug, Default)]
pub(super) struct Card {
    pub(super) goals: Vec<String>,
    pub(super) allowed: Vec<Rule>,
    /// Paths that change by themselves and are not counted.
    pub(super) noise: Vec<Rule>,
    /// The acceptance commands, without outer blanks.
    pub(super) commands: Vec<String>,
    pub(super) published_at: Option<String>,
    /// `None` if the card does not give it in a readable way.
    pub(super) policy: Option<Policy>,
    pub(super) evidence: Vec<(Evidence, RepoPath)>,
    /// Whether it says that Provost made it, so that a seal is required.
    pub(super) sealed: bool,
}

pub(super) fn read(source: &Source, phase_id: &str, findings: &mut Findings) -> Option<Card> {
    let mut found = findings.of(TASK_CARD);
    let card: TaskCard = found.read_yaml(source, &CARD)?;
    found.phase(card.phase_id.as_deref(), phase_id);
    let sealed = card.x_provost.is_some();
    // Only what cannot be read was left out of the card, and that is refused already.
    let allowed = rules(card.allowed_paths, "allowed_paths", &mut found);
    if let Some(everything) = allowed.iter().position(Rule::is_everything) {
        let name = format!("allowed_paths[{everything}]");
        found.doubt(&name, "allows the whole tree");
    }
    let noise = card.external_noise_paths.filter(|noise| !noise.is_empty());
    let policy = policy(card.evidence_policy.as_deref(), &mut found);
    let evidence = match policy {
        Some(Policy::Hardened) => evidence(card.evidence_files, &mut found),
        _ => Vec::new(),
    };
    Some(Card {
        goals: goals(card.goal_ids, sealed, &mut found),
        allowed,
        noise: rules(noise, NOISE_FIELD, &mut found),
        commands: trimmed(card.acceptance_commands),
        published_at: card.published_at.and_then(|at| Some(at.text()?.to_owned())),
        policy,
        evidence,
        sealed,
    })
}

/// The goals; a sealed card may have the id of a contract as its goal.
fn goals(ids: Option<Vec<String>>, sealed: bool, found: &mut FileFindings<'_>) -> Vec<String> {
    let is_given = ids.is_some();
    let goals = trimmed(ids);
    if is_given && goals.is_empty() {
        found.add("goal_ids", "names no goal");
    }
    for goal in goals.iter().filter(|goal| !sealed && !is_goal(goal)) {
        found.doubt("goal_ids", format!("`{goal}` is no goal id such as G15"));
    }
    goals
}

/// Whether `text` is `G` and a number.
fn is_goal(text: &str) -> bool {
    let number = text.strip_prefix('G').unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Rules, of which at least one is not blank.
fn rules(texts: Option<Vec<String>>, name: &str, found: &mut FileFindings<'_>) -> Vec<Rule> {
    let Some(mut texts) = texts else {
        return Vec::new();
    };
    texts.retain(|text| !text.trim().is_empty());
    if texts.len() > MOST {
        found.add(name, format!("has more than {MOST} rules"));
        return Vec::new();
    }
    if texts.is_empty() {
        found.add(name, "has no rule");
    }
    let mut rules = Vec::new();
    for text in &texts {
        match rule::normal(text) {
            Ok(Some(path)) => rules.push(Rule::of(&path)),
            // An empty rule covers nothing.
            Ok(None) => {}
            Err(why) => found.add(name, format!("`{text}` {why}")),
        }
    }
    rules
}

fn policy(text: Option<&str>, found: &mut FileFindings<'_>) -> Option<Policy> {
    match text.unwrap_or_default().trim() {
        "" | "legacy" => Some(Policy::Legacy),
        "hardened" => Some(Policy::Hardened),
        other => {
            let problem = format!("is `{other}`, not legacy or hardened");
            found.add("evidence_policy", problem);
            None
        }
    }
}

/// The member of a card that names its evidence.
pub(super) const EVIDENCE_FILES: &str = "evidence_files";

fn evidence(files: Option<Value>, found: &mut FileFindings<'_>) -> Vec<(Evidence, RepoPath)> {
    let name = EVIDENCE_FILES;
    let Some(files) = files else {
        found.add(name, "is missing");
        return Vec::new();
    };
    let Some(files) = found.read(&Node::from(files), &FILES, &format!("{name}.")) else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    for evidence in Evidence::ALL {
        let Some(text) = files.get(evidence) else {
            continue;
        };
        match rule::normal(text) {
            Ok(Some(path)) => paths.push((evidence, path)),
            Ok(None) => found.add(&evidence.field(), "names no file"),
            Err(why) => found.add(&evidence.field(), format!("`{text}` {why}")),
        }
    }
    paths
}
