//! Reads the task card: the planner's permissions.

use provost_core::path::RepoPath;
use serde_json::Value;

use super::fields::{self, Fields};
use super::finding::Findings;
use super::rule::{self, Rule};
use super::{Evidence, Source, TASK_CARD};

const MOST: usize = 10_000;

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

/// The content of a task card, as far as it can be read.
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
    let entries = fields::mapping(source, TASK_CARD, findings)?;
    let mut fields = Fields {
        file: TASK_CARD,
        prefix: "",
        entries: &entries,
        findings,
    };
    fields.one_of("schema_version", &["subagent_task_card_v1"]);
    fields.phase(phase_id);
    fields.one_of("executor_required", &["codex_cli_subagent"]);
    let published_at = fields.time("published_at").map(str::to_owned);
    let goals = goals(&mut fields);
    let allowed = rules(&mut fields, "allowed_paths").unwrap_or_default();
    if let Some(everything) = allowed.iter().position(Rule::is_everything) {
        let name = format!("allowed_paths[{everything}]");
        fields.doubt(&name, "allows the whole tree");
    }
    let noise = match entries.get("external_noise_paths") {
        None | Some(Value::Null) => Vec::new(),
        Some(_) => noise(&mut fields),
    };
    let commands = commands(&mut fields);
    let policy = policy(&mut fields);
    let evidence = match policy {
        Some(Policy::Hardened) => evidence(&mut fields),
        _ => Vec::new(),
    };
    Some(Card {
        goals,
        allowed,
        noise,
        commands,
        published_at,
        policy,
        evidence,
        sealed: entries.contains_key("x_provost"),
    })
}

fn goals(fields: &mut Fields<'_, '_>) -> Vec<String> {
    let goals = fields.texts("goal_ids");
    if goals.as_ref().is_some_and(Vec::is_empty) {
        fields.refuse("goal_ids", "names no goal");
    }
    let goals = goals.unwrap_or_default().into_iter();
    let goals: Vec<String> = goals.map(|goal| goal.trim().to_owned()).collect();
    // Provost may publish the id of a contract as the goal, and seals the card.
    let ours = fields.entries.contains_key("x_provost");
    for goal in goals.iter().filter(|goal| !ours && !is_goal(goal)) {
        fields.doubt("goal_ids", format!("`{goal}` is no goal id such as G15"));
    }
    goals
}

/// Whether `text` is `G` and a number.
fn is_goal(text: &str) -> bool {
    let number = text.strip_prefix('G').unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// A list of rules with at least one that is not blank.
fn rules(fields: &mut Fields<'_, '_>, name: &str) -> Option<Vec<Rule>> {
    let texts = fields.texts(name)?;
    if texts.len() > MOST {
        fields.refuse(name, format!("has more than {MOST} rules"));
        return None;
    }
    let mut rules = Vec::new();
    for text in &texts {
        match rule::normal(text) {
            Ok(Some(path)) => rules.push(Rule::of(&path)),
            // An empty rule covers nothing.
            Ok(None) => {}
            Err(why) => fields.refuse(name, format!("`{text}` {why}")),
        }
    }
    if texts.is_empty() {
        fields.refuse(name, "has no rule");
    }
    Some(rules)
}

/// The noise paths; a blank entry is refused, an empty list is accepted.
fn noise(fields: &mut Fields<'_, '_>) -> Vec<Rule> {
    let name = "external_noise_paths";
    let Some(Value::Array(items)) = fields.entries.get(name) else {
        fields.refuse(name, "is not a list");
        return Vec::new();
    };
    for (at, item) in items.iter().enumerate() {
        if item.as_str().is_some_and(|text| text.trim().is_empty()) {
            fields.refuse(&format!("{name}[{at}]"), "is blank");
        }
    }
    if items.is_empty() {
        return Vec::new();
    }
    rules(fields, name).unwrap_or_default()
}

fn commands(fields: &mut Fields<'_, '_>) -> Vec<String> {
    let name = "acceptance_commands";
    if let Some(Value::Array(items)) = fields.entries.get(name) {
        for (at, item) in items.iter().enumerate() {
            if item.as_str().is_some_and(|text| text.trim().is_empty()) {
                fields.refuse(&format!("{name}[{at}]"), "is blank");
            }
        }
        if items.is_empty() {
            fields.refuse(name, "names no command");
        }
    }
    let commands = fields.texts(name).unwrap_or_default().into_iter();
    commands.map(|command| command.trim().to_owned()).collect()
}

fn policy(fields: &mut Fields<'_, '_>) -> Option<Policy> {
    let name = "evidence_policy";
    match fields.entries.get(name) {
        None | Some(Value::Null) => Some(Policy::Legacy),
        Some(Value::String(text)) => match text.trim() {
            "" | "legacy" => Some(Policy::Legacy),
            "hardened" => Some(Policy::Hardened),
            other => {
                fields.refuse(name, format!("is `{other}`, not legacy or hardened"));
                None
            }
        },
        Some(_) => {
            fields.refuse(name, "is not text");
            None
        }
    }
}

fn evidence(fields: &mut Fields<'_, '_>) -> Vec<(Evidence, RepoPath)> {
    let Some(value) = fields.required("evidence_files") else {
        return Vec::new();
    };
    let Value::Object(entries) = value else {
        fields.refuse("evidence_files", "is not a mapping");
        return Vec::new();
    };
    let mut inner = Fields {
        file: fields.file,
        prefix: "evidence_files.",
        entries,
        findings: &mut *fields.findings,
    };
    let mut found = Vec::new();
    for evidence in Evidence::ALL {
        let Some(text) = inner.text(evidence.key()) else {
            continue;
        };
        match rule::normal(text) {
            Ok(Some(path)) => found.push((evidence, path)),
            Ok(None) => inner.refuse(evidence.key(), "names no file"),
            Err(why) => inner.refuse(evidence.key(), format!("`{text}` {why}")),
        }
    }
    found
}
