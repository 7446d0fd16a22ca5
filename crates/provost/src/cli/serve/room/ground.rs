//! What runs of a repository share, and what was spent.

use std::collections::BTreeMap;

use provost_change::intent::Intent;
use provost_core::code::Code;
use provost_core::time;
use provost_engine::ports::PortError;
use provost_engine::query::{self, GroundView, OpenTree, RunStatus};
use provost_host::origin::GitOrigin;
use provost_host::spend::{self, SpendLine};
use provost_host::user_state::UserState;
use provost_host::{clock, denied_writes, process_owner, user_file};
use provost_web::{ChangeRow, RoomListing, SpendView, SpentRow};

use super::super::super::status;
use crate::answer::Failure;
use crate::places::Places;

/// How many runs are looked at for open work.
const NEWEST: usize = 200;

/// How many denied writes are shown.
const DENIED: usize = 50;

pub(super) fn ground(
    place: &Places,
    listing: &RoomListing,
) -> Result<GroundView<ChangeRow>, PortError> {
    let open = listing.rows.iter().take(NEWEST).filter(|row| {
        let summary = &row.summary;
        let has_work = match summary.status {
            RunStatus::Running => true,
            RunStatus::Success => !summary.is_landed(),
            _ => false,
        };
        has_work && !summary.is_foreign()
    });
    let open: Vec<OpenTree> = open
        .filter_map(|row| OpenTree::of(&query::state(place, &row.summary.run_id).ok()?))
        .collect();
    let (conflicts, compared, left_out) = query::conflicts(place, &open);
    let changes = status::changes(place).ok();
    let changes = changes.map(|all| {
        let rows = all.iter();
        rows.map(|(intent, whose)| change(intent, &word(whose)))
            .collect()
    });
    Ok(GroundView {
        leases: leases(place)?,
        changes,
        conflicts,
        compared,
        left_out,
        denied: denied_writes::newest(&place.root, DENIED).ok(),
        policy: policy(place),
    })
}

fn word<T: serde::Serialize>(value: &T) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().replace('_', " ")
}

fn change(intent: &Intent, ownership: &str) -> ChangeRow {
    ChangeRow {
        intent_id: intent.intent_id.clone(),
        agent: intent.agent_label.clone(),
        state: word(&intent.state),
        intent: intent.intent.clone(),
        paths: intent
            .scope
            .allowed_files
            .iter()
            .map(ToString::to_string)
            .collect(),
        ownership: ownership.to_owned(),
        declared: time::render(intent.declared_at),
        expires: time::render(intent.expires_at),
    }
}

fn leases(place: &Places) -> Result<Vec<provost_core::lease::Lease>, PortError> {
    // A registry of another user says nothing about the active runs here.
    if place.is_foreign() || !place.registry_path().exists() {
        return Ok(Vec::new());
    }
    let registry = place.registry().map_err(Failure::into_port_error);
    let mut leases = registry?.leases()?;
    let now = clock::now_millis();
    leases.retain(|lease| lease.is_live(now, &process_owner::alive));
    Ok(leases)
}

/// The text of the policy at the commit that is checked out.
fn policy(place: &Places) -> Option<String> {
    let head = place.repo.resolve("HEAD").ok()?;
    let tree = place.repo.commit_tree(&head).ok()?;
    let file = GitOrigin(&place.repo).policy_file(&tree).ok()??;
    let text = place.repo.blob(&file).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

pub(super) fn spent(state: &UserState) -> Result<SpendView, PortError> {
    let unreadable = |error: std::io::Error| {
        let reason = format!("what was spent cannot be read: {error}");
        PortError::new(Code::HostFailed, reason)
    };
    let lines = spend::all(state.directory()).map_err(unreadable)?;
    let limits = user_file::read()?.budget;
    Ok(SpendView {
        days: sums(&lines, |line| line.at.get(..10).unwrap_or(&line.at)),
        models: sums(&lines, |line| &line.model),
        day_limit: limits.day,
        run_limit: limits.run,
    })
}

fn sums(lines: &[SpendLine], name: impl Fn(&SpendLine) -> &str) -> Vec<SpentRow> {
    let mut sums: BTreeMap<&str, SpentRow> = BTreeMap::new();
    for line in lines {
        let name = name(line);
        let sum = sums.entry(name).or_default();
        name.clone_into(&mut sum.name);
        sum.requests += 1;
        sum.tokens = sum.tokens.saturating_add(line.tokens);
        sum.micro_usd = sum.micro_usd.saturating_add(line.micro_usd);
    }
    sums.into_values().collect()
}
