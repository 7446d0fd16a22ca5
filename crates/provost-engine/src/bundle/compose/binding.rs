//! Summarises how the role of a contract was bound, for readers; no gate depends on it.

use std::collections::BTreeMap;

use provost_core::agent::Adapter;
use provost_core::bundle::report::{
    Binding, BindingAuthority, BindingSource, BindingStatus, ExecutionAuthority, McpBundle,
    RoleBinding, RuntimeStatus, SkillsBundle, Validation,
};
use provost_core::contract::check::Referred;
use provost_core::contract::role::RuntimeBinding;
use provost_core::object::sha256;
use provost_core::run::State;

/// How the role was bound to the agent that ran.
pub(crate) fn summary(state: &State) -> RoleBinding {
    let opened = &state.opened;
    let view = opened.contract.role_contract.as_ref();
    let reference = |found: Option<&Option<String>>| found.cloned().flatten();
    let tools: Vec<String> = opened
        .adapted
        .iter()
        .flat_map(|agent| agent.tools.keys().cloned())
        .collect();
    let found = |name: &str| {
        let referred = opened.references.as_ref()?.get(name)?;
        match referred {
            Referred::Found(names) => Some(names.clone()),
            Referred::Lost(_) => None,
        }
    };
    let skills = found("skills_bundle_ref");
    let skills_ref = reference(view.map(|view| &view.skills_bundle_ref));
    let part = skills_ref.as_deref().and_then(|it| it.split_once('#'));
    RoleBinding {
        authority: BindingAuthority::ContractDerivedReadModel,
        source: "contract.json, and the agents and servers of provost.toml at the base".to_owned(),
        execution_authority: ExecutionAuthority::TaskContract,
        skills_bundle_ref: SkillsBundle {
            status: if skills.is_some() {
                BindingStatus::Resolved
            } else {
                BindingStatus::Unresolved
            },
            bundle_id: part.map(|(_, part)| part.to_owned()),
            reference: skills_ref,
            // The agent does not get these skills.
            resolved_skill_set: skills.unwrap_or_default(),
            validation: Validation::FailClosed,
        },
        mcp_bundle_ref: McpBundle {
            status: match (tools.is_empty(), found("mcp_bundle_ref")) {
                (false, _) => BindingStatus::RegistryBacked,
                (true, Some(_)) => BindingStatus::Resolved,
                (true, None) => BindingStatus::Unresolved,
            },
            reference: reference(view.map(|view| &view.mcp_bundle_ref)),
            resolved_mcp_tool_set: tools,
            validation: Validation::FailClosed,
        },
        runtime_binding: runtime(state),
    }
}

fn runtime(state: &State) -> Binding {
    let agent = state.opened.adapted.as_ref();
    let adapter = agent.map_or(Adapter::COMMAND, |agent| agent.adapter);
    let provider = agent.and_then(|agent| agent.provider.as_ref());
    let provider = provider.map(|provider| provider.base_url.endpoint.to_string());
    let model = agent.and_then(|agent| agent.model.clone());
    let origin = |known: bool| {
        if known {
            "the agent of the run"
        } else {
            "not said"
        }
        .to_owned()
    };
    Binding {
        status: match (&provider, &model) {
            (Some(_), Some(_)) => RuntimeStatus::ContractDerived,
            _ => RuntimeStatus::PartiallyResolved,
        },
        authority_scope: BindingAuthority::ContractDerivedReadModel,
        source: BindingSource {
            runner: origin(true),
            provider: origin(provider.is_some()),
            model: origin(model.is_some()),
        },
        summary: RuntimeBinding {
            runner: Some(adapter.name().to_owned()),
            provider,
            model,
        },
        capability: None,
    }
}

macro_rules! files {
    ($($name:literal)+) => {
        /// The schemas as they are shipped; generating them takes longer than the rest of a
        /// manifest.
        const FILES: &[(&str, &str)] = &[$((
            concat!($name, ".v1"),
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"), "/../../schemas/", $name, ".v1.json"
            )),
        ),)+];
    };
}

files! {
    "agent_event"
    "agent_registry"
    "agent_task_result"
    "case_report"
    "chain"
    "chain_report"
    "child_run"
    "dsse_envelope"
    "evidence_bundle"
    "evidence_report"
    "model_request"
    "network_use"
    "orchestrator_event"
    "plan_request"
    "planner_run"
    "reexec_report"
    "refused_request"
    "review_report"
    "reviewer_answer"
    "run_manifest"
    "run_meta"
    "sandbox_selftest"
    "task_contract"
    "task_result"
    "test_report"
    "verdict"
    "work_report"
}

/// The digest of every schema of this version, by name.
pub(super) fn schemas() -> BTreeMap<&'static str, String> {
    let digest = |(name, text): &(&'static str, &str)| (*name, sha256(text.as_bytes()));
    FILES.iter().map(digest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::formats;

    #[test]
    fn every_schema_is_listed_as_it_is_made() {
        let made = formats::all();
        let made = made.map(|format| (format.name, sha256(format.text().as_bytes())));
        assert_eq!(schemas(), made.collect());
    }
}
