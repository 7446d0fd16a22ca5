//! The request for a child: its route, its tools, its hand-off, its depth budget.

use provost_core::code::Code;
use provost_core::package::{Id, IdError, Kind, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capability::Capability;
use super::document::Route;
use super::reference::{PolicyKind, PolicyRef};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum RoutePolicy {
    InheritParent,
    UseAllowedOverride { route_id: String, model_id: String },
}

impl RoutePolicy {
    /// The route of a child whose parent uses `parent`.
    pub(super) fn select(&self, parent: &Route, policy: &ChildPolicy) -> Result<Route, Refusal> {
        let Self::UseAllowedOverride { route_id, model_id } = self else {
            return Ok(parent.clone());
        };
        if !policy.allowed_route_overrides.contains(route_id) {
            let reason = format!("the route `{route_id}` is not among the allowed overrides");
            return Err(Refusal::rule(Code::RouteOverrideNotAllowed, reason));
        }
        if route_id.is_empty() || model_id.is_empty() {
            let reason = "a route override names no route or no model";
            return Err(Refusal::rule(Code::RouteOverrideBlank, reason));
        }
        Ok(Route {
            route_id: route_id.clone(),
            model_id: model_id.clone(),
            provider_policy_ref: None,
        })
    }
}

/// Carried by the format; no reader uses it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RouteInheritance {
    InheritParent,
    ExplicitOverrideOnly,
}

/// What of the parent's context reaches the child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Handoff {
    None,
    SummaryOnly {
        summary_ref: Id,
        max_tokens: u32,
        policy_ref: PolicyRef,
    },
    SelectedRefs {
        refs: Vec<Id>,
        policy_ref: PolicyRef,
    },
    FullHistoryWithPolicy {
        policy_ref: PolicyRef,
        projection_audit_required: bool,
    },
}

impl Handoff {
    /// Checks that this may be handed over at all.
    pub(super) fn validate(&self) -> Result<(), Refusal> {
        let (flaw, host, policy) = match self {
            Self::None => return Ok(()),
            Self::SummaryOnly {
                max_tokens,
                policy_ref,
                ..
            } => (
                (*max_tokens == 0).then_some((
                    Code::HandoffSummaryZeroTokens,
                    "a summary with a budget of no tokens",
                )),
                Code::HandoffHostPolicySummaryOnly,
                policy_ref,
            ),
            Self::SelectedRefs { refs, policy_ref } => (
                refs.is_empty().then_some((
                    Code::HandoffSelectedRefsEmpty,
                    "selected references without a reference",
                )),
                Code::HandoffHostPolicySelectedRefs,
                policy_ref,
            ),
            Self::FullHistoryWithPolicy {
                policy_ref,
                projection_audit_required,
            } => (
                (!projection_audit_required).then_some((
                    Code::HandoffFullHistoryNoAudit,
                    "the full history without an audit",
                )),
                Code::HandoffHostPolicyFullHistoryWithPolicy,
                policy_ref,
            ),
        };
        if let Some((code, reason)) = flaw {
            return Err(Refusal::rule(code, reason));
        }
        if policy.kind == PolicyKind::Host {
            let reason = format!(
                "a policy of the host (`{}`) does not govern a hand-off",
                policy.id
            );
            return Err(Refusal::rule(host, reason));
        }
        Ok(())
    }

    pub(super) fn policy_refs(&self) -> Vec<&PolicyRef> {
        match self {
            Self::None => Vec::new(),
            Self::SummaryOnly { policy_ref, .. }
            | Self::SelectedRefs { policy_ref, .. }
            | Self::FullHistoryWithPolicy { policy_ref, .. } => vec![policy_ref],
        }
    }

    /// The references that are handed over.
    pub(super) fn content_refs(&self) -> Vec<&Id> {
        match self {
            Self::None | Self::FullHistoryWithPolicy { .. } => Vec::new(),
            Self::SummaryOnly { summary_ref, .. } => vec![summary_ref],
            Self::SelectedRefs { refs, .. } => refs.iter().collect(),
        }
    }

    /// The name of the variant on the wire.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SummaryOnly { .. } => "summary_only",
            Self::SelectedRefs { .. } => "selected_refs",
            Self::FullHistoryWithPolicy { .. } => "full_history_with_policy",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ToolPolicy {
    InheritAllowlist,
    ReadOnly,
    NoTools,
    CustomAllowlist { capability_ids: Vec<Id> },
}

impl ToolPolicy {
    /// Whether the child keeps `capability`.
    ///
    /// The format knows no effects, so `read_only` keeps everything; see [`provost_core::package`]
    /// for a model in which it does not.
    pub(super) fn retains(&self, capability: &Capability) -> bool {
        match self {
            Self::InheritAllowlist | Self::ReadOnly => true,
            Self::NoTools => capability.is_reserved(),
            Self::CustomAllowlist { capability_ids } => {
                capability.is_reserved() || capability_ids.contains(&capability.capability_id)
            }
        }
    }
}

/// What the parent's side says about its children.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct ChildPolicy {
    pub(super) source_parent_package: String,
    inherit_provider_route: RouteInheritance,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    allowed_route_overrides: Vec<String>,
    pub(super) strip_recursive_subagents: bool,
    pub(super) strip_disallowed_tools: bool,
    pub(super) child_lifecycle_bounds: PolicyRef,
    pub(super) redaction_policy_ref: PolicyRef,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parent_control_tool_ids: Vec<Id>,
}

/// The tools by which a parent and its children talk; children do not keep them.
const CONTROL_TOOLS: [&str; 5] = [
    "tool.subagent_send_message",
    "tool.subagent_reply_to_clarification",
    "tool.subagent_ask_parent",
    "tool.subagent_read_parent_messages",
    "tool.subagent_monitor",
];

impl ChildPolicy {
    /// The policy that the format calls `strip_recursive_defaults`.
    pub(super) fn strip_recursive_defaults(source_parent_package: String) -> Result<Self, IdError> {
        let id = |text: &str| Id::try_from(text.to_owned());
        let policy = |kind: PolicyKind, text: &str| {
            let version = None;
            let id = id(text)?;
            Ok(PolicyRef { kind, id, version })
        };
        let control = CONTROL_TOOLS.into_iter().map(id);
        Ok(Self {
            source_parent_package,
            inherit_provider_route: RouteInheritance::InheritParent,
            allowed_route_overrides: Vec::new(),
            strip_recursive_subagents: true,
            strip_disallowed_tools: true,
            child_lifecycle_bounds: policy(
                PolicyKind::RuntimePackage,
                "policy.child.parent_owned",
            )?,
            redaction_policy_ref: policy(
                PolicyKind::Redaction,
                "policy.redaction.subagent.default",
            )?,
            parent_control_tool_ids: control.collect::<Result<_, _>>()?,
        })
    }

    /// The same policy for a child that keeps the tools `kept`, and may use `route`.
    pub(super) fn keeping(mut self, kept: &[Id], route: &str) -> Self {
        self.parent_control_tool_ids.retain(|id| !kept.contains(id));
        self.allowed_route_overrides.push(route.to_owned());
        self
    }

    /// Whether `capability` starts or steers other agents, as far as this format says.
    pub(super) fn is_recursive(&self, capability: &Capability) -> bool {
        capability.kind == Kind::AgentAsTool
            || self
                .parent_control_tool_ids
                .contains(&capability.capability_id)
    }
}

/// How deep and how wide children may be started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct DepthBudget {
    current_depth: u32,
    max_depth: u32,
    max_children: u32,
}

impl DepthBudget {
    /// The budget of a child, if one may be started.
    pub(super) fn child(&self) -> Result<Self, Refusal> {
        if self.current_depth >= self.max_depth {
            let reason = format!(
                "depth {} of {} leaves no level for a child",
                self.current_depth, self.max_depth
            );
            return Err(Refusal::rule(Code::DepthExhausted, reason));
        }
        if self.max_children == 0 {
            let reason = "the budget allows no children";
            return Err(Refusal::rule(Code::ChildrenExhausted, reason));
        }
        Ok(Self {
            current_depth: self.current_depth + 1,
            ..self.clone()
        })
    }
}
