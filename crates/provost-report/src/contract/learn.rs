//! Derives the tightest contract that a past run would have passed.
//!
//! # Invariants
//!
//! - The diff gate allows exactly this run's change under it; it permits nothing else.
//! - A permission is in it only if the run used it, a network endpoint only if it was reached.
//! - A limit is never below what was measured.

use std::collections::BTreeSet;

use provost_core::code::Code;
use provost_core::contract::Contract;
use provost_core::contract::document::{Document, Network};
use provost_core::contract::limits::Asked;
use provost_core::gate::diff::Permit;
use provost_core::run::fact::{Side, TestRun};
use provost_core::run::judge::judge_tests;
use provost_core::run::{Gate, State};
use provost_core::scope::Scope;
use provost_core::verdict::Verdict;

use crate::why::{Row, diff_rows, widened};

/// Gates that no contract affects: their refusals are final.
const SETTLED: [Gate; 5] = [
    Gate::Agent,
    Gate::Output,
    Gate::Review,
    Gate::Acceptance,
    Gate::Tree,
];

/// The shortest time limit that is derived, in seconds: a busy machine is slower than a quiet one.
const MINUTE: u64 = 60;

/// The smallest output limit that is derived.
const LEAST_OUTPUT: u64 = 64 << 10;

/// The tightest contract under which the run of `state` would have passed, or why there is none.
pub fn learn(state: &State) -> Result<Document, Verdict> {
    // The first contract: that of a fix attempt names evidence that no other run has.
    let contract = state.opened.resolve();
    let contract = &contract.map_err(|problems| provost_core::contract::judge(&problems))?;
    for gate in SETTLED {
        if let Some(verdict) = state.gates.get(&gate).filter(|verdict| !verdict.allow) {
            return Err(verdict.clone());
        }
    }
    let Some(captured) = state.captured.as_ref().filter(|it| it.holds_anything()) else {
        let reason = "the run left no change, so there is nothing to learn from it";
        return Err(Verdict::deny(Code::EmptyDiff, reason));
    };
    let mut bare = state.clone();
    let narrow = narrowed(contract);
    bare.opened.contract = narrow.document.clone();
    let verdict = state.judge_changes(&narrow, &captured.changes, &captured.findings);
    bare.contract = Ok(narrow);
    let rows = diff_rows(&bare, &verdict);
    if rows.iter().any(|row| row.widening.is_empty()) {
        return Err(hopeless(&rows, verdict));
    }
    let mut needed = Vec::new();
    for one in rows.into_iter().flat_map(|row| row.widening) {
        if !needed.contains(&one) {
            needed.push(one);
        }
    }
    let learned = widened(&bare.opened.contract, &needed);
    let mut learned =
        learned.map_err(|error| Verdict::deny(Code::ContractInvalid, error.to_string()))?;
    fewer_tests(state, contract, &mut learned);
    network(state, &mut learned);
    limits(state, &mut learned);
    Ok(learned)
}

/// `contract` without anything that grants a permission.
fn narrowed(contract: &Contract) -> Contract {
    let mut narrow = contract.clone();
    narrow.scope = Scope::default();
    narrow.permit = Permit::default();
    narrow.document.allowed_paths.clear();
    if let Some(extension) = &mut narrow.document.x_provost {
        extension.permit = None;
        extension.net.clear();
    }
    narrow.document.tool_permissions.network = Network::Deny;
    narrow
}

/// The refusal that remains under every contract.
fn hopeless(rows: &[Row], verdict: Verdict) -> Verdict {
    let first = rows.iter().find(|row| row.widening.is_empty());
    let reason = first.map_or_else(
        || verdict.reason.clone(),
        |row| {
            let about = row.about.as_deref().unwrap_or_default();
            format!(
                "no contract lets this change pass: `{about}` {}",
                row.problem
            )
        },
    );
    Verdict { reason, ..verdict }
}

/// The permission to run fewer tests, if the run did.
fn fewer_tests(state: &State, contract: &Contract, learned: &mut Document) {
    let side = |side: Side| state.tests.get(&side);
    let (Some(candidate), Some(base)) = (side(Side::Candidate), side(Side::Base)) else {
        return;
    };
    let mut strict = contract.clone();
    strict.may_lose_tests = false;
    let verdict = judge_tests(Some(candidate), Some(base), &strict);
    if verdict.code == Code::TestsFewer {
        let extension = learned.x_provost.get_or_insert_default();
        extension.permit.get_or_insert_default().fewer_tests = true;
    }
}

/// The endpoints that the agent reached.
fn network(state: &State, learned: &mut Document) {
    let asked = state.agent.iter().flat_map(|agent| &agent.network);
    let reached: BTreeSet<&String> = asked
        .filter(|line| line.allow)
        .map(|line| &line.target)
        .collect();
    let granted = state.opened.contract.x_provost.iter();
    let granted = granted.flat_map(|extension| &extension.net);
    // In the contract's own spelling; an agent's model is granted without the contract.
    let net: Vec<String> = granted
        .filter(|place| reached.contains(place))
        .cloned()
        .collect();
    if !net.is_empty() {
        learned.tool_permissions.network = Network::Allow;
        learned.x_provost.get_or_insert_default().net = net;
    }
}

/// Limits from what was measured: time and output, rounded up.
fn limits(state: &State, learned: &mut Document) {
    let commands = state.tests.values().flat_map(TestRun::everything);
    let commands: Vec<_> = commands.collect();
    let agent = state.agent.as_ref();
    let times = commands.iter().map(|ran| ran.wall_ms);
    let longest = times.chain(agent.map(|agent| agent.wall_ms)).max();
    let seconds = longest.unwrap_or_default().div_ceil(1000).max(1);
    let rounded = seconds.div_ceil(MINUTE).saturating_mul(MINUTE);
    let asked = &mut learned.timeout_retry.timeout_sec;
    *asked = rounded.min((*asked).max(seconds));
    let printed = commands
        .iter()
        .map(|ran| ran.stdout.bytes + ran.stderr.bytes);
    let by_agent = agent.map(|agent| agent.stdout.bytes + agent.stderr.bytes);
    let most = printed.chain(by_agent).max().unwrap_or_default();
    let output = most.max(LEAST_OUTPUT).checked_next_power_of_two();
    let extension = learned.x_provost.get_or_insert_default();
    let known = extension.limits.unwrap_or_default();
    let limits = Asked {
        output_bytes: output,
        ..known
    };
    if limits.flaws().is_empty() {
        extension.limits = Some(limits);
    }
}

#[cfg(test)]
mod tests;
