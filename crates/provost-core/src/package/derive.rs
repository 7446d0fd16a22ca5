//! Derives the package of a child from what its parent may delegate.

use serde::{Deserialize, Serialize};

use super::document::Version;
use super::{
    Authority, Budget, Capability, Effect, Fingerprint, Handoff, Id, Kind, Package, PackageAnswer,
    PackageResult, Refusal, Set,
};
use crate::code::Code;

/// A request for a child's package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The package to derive from.
    pub parent: Package,
    /// The fingerprint under which that package was approved.
    pub parent_fingerprint: Fingerprint,
    pub child_agent_id: Id,
    /// Which capabilities the child keeps.
    pub tools: ToolPolicy,
    /// What else the child may do itself. Capabilities come from `tools`, so there are none here.
    #[serde(default)]
    pub ask: Authority,
    /// What the child may let its own children do.
    #[serde(default)]
    pub delegate: Authority,
    /// How many agents the child may start.
    #[serde(default)]
    pub children: u32,
    /// Hooks that guard it, beside those of its parent.
    #[serde(default)]
    pub guards: Set<Id>,
    /// The context that the child gets from its parent.
    #[serde(default)]
    pub handoff: Handoff,
}

/// Which of the capabilities that the parent may delegate the child gets.
///
/// The braces are there because serde accepts unknown members in a unit variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolPolicy {
    Inherit {},
    /// Those that only read.
    ReadOnly {},
    NoTools {},
    Allow {
        ids: Set<Id>,
    },
}

/// Something that the child did not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stripped {
    pub axis: &'static str,
    /// The capability, on that axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    pub reason: &'static str,
}

/// A child's package, and what was left out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Derived {
    pub package: Package,
    pub stripped: Vec<Stripped>,
    /// What the parent may still start.
    pub parent_budget: Budget,
}

impl Derived {
    pub fn answer(&self) -> PackageAnswer {
        let package = &self.package;
        let parent = package.parent.as_ref();
        let result = PackageResult::Derived {
            parent_fingerprint: parent.map(ToString::to_string).unwrap_or_default(),
            child_fingerprint: package.fingerprint().to_string(),
            package: package.canonical(),
        };
        let more = DerivedFacts {
            stripped: &self.stripped,
            parent_budget: self.parent_budget,
        };
        let mut answer = PackageAnswer::new(result, &more);
        let rows = self.stripped.iter();
        answer.without = rows.map(|row| (row.what(), row.why())).collect();
        answer
    }
}

#[derive(Serialize)]
struct DerivedFacts<'a> {
    stripped: &'a [Stripped],
    parent_budget: Budget,
}

impl Stripped {
    fn what(&self) -> String {
        let id = self.id.as_ref();
        id.map_or(self.axis.to_owned(), ToString::to_string)
    }

    /// The reason in words.
    fn why(&self) -> &'static str {
        match self.reason {
            "no_child_left" => "it starts children, and the child may start none",
            "read_only" => {
                "the request asks for reading only, and it does more or is not pinned by a digest"
            }
            "no_tools" => "the request asks for no tools",
            "not_listed" => "the request does not list it",
            other => other,
        }
    }
}

/// Derives the child that `request` asks for, or lists everything that is not granted.
pub fn derive(request: &Request) -> Result<Derived, Refusal> {
    let parent = &request.parent;
    let fingerprint = parent.fingerprint();
    if fingerprint != request.parent_fingerprint {
        let reason = format!("the parent's fingerprint is {fingerprint}");
        return Err(Refusal::rule(Code::ParentFingerprintMismatch, reason));
    }
    request.handoff.validate()?;
    let (parent_budget, budget) = parent.budget.spend(request.children)?;
    let grant = &parent.delegate;
    let findings = excess(request, grant, budget);
    if !findings.is_empty() {
        let reason = format!(
            "the child asks for more than it can be given: {}",
            findings[0]
        );
        return Err(Refusal::rule(Code::PackageExceedsGrant, reason).with(findings));
    }
    let mut stripped = Vec::new();
    let mut exercise = request.ask.clone();
    exercise.capabilities = keep(request, grant, budget, &mut stripped);
    let mut delegate = request.delegate.clone();
    delegate.capabilities = keep(request, &request.delegate, budget, &mut Vec::new());
    if request.tools == (ToolPolicy::ReadOnly {}) {
        let (left, emptied) = exercise.read_only();
        exercise = left;
        delegate = delegate.read_only().0;
        stripped.extend(emptied.into_iter().map(|axis| Stripped {
            axis,
            id: None,
            reason: "read_only",
        }));
    }
    let guards = parent.guards.iter().chain(request.guards.iter());
    let package = Package {
        schema_version: Version,
        agent: request.child_agent_id.clone(),
        parent: Some(fingerprint),
        exercise,
        delegate,
        budget,
        guards: guards.cloned().collect(),
        handoff: request.handoff.clone(),
    };
    Ok(Derived {
        package,
        stripped,
        parent_budget,
    })
}

/// Everything in `request` that exceeds `grant`.
fn excess(request: &Request, grant: &Authority, budget: Budget) -> Vec<String> {
    let named = |what: &str, list: Vec<String>| -> Vec<String> {
        list.into_iter()
            .map(|row| format!("{what}.{row}"))
            .collect()
    };
    let mut found = named("ask", request.ask.excess(grant));
    if !request.ask.capabilities.is_empty() {
        found.push("ask.capabilities: `tools` says which are kept".to_owned());
    }
    found.extend(named("delegate", request.delegate.excess(grant)));
    if budget.children == 0 && !request.delegate.is_empty() {
        found.push("delegate: the child may start no agent to delegate to".to_owned());
    }
    if let ToolPolicy::Allow { ids } = &request.tools {
        let unknown = ids.iter().filter(|id| grant.capabilities.get(id).is_none());
        found.extend(unknown.map(|id| format!("tools: `{id}` is not granted")));
    }
    found
}

/// The capabilities of `from` that the child keeps.
fn keep(
    request: &Request,
    from: &Authority,
    budget: Budget,
    stripped: &mut Vec<Stripped>,
) -> super::Keyed<Capability> {
    let reason = |capability: &Capability| -> Option<&'static str> {
        let starts =
            capability.kind == Kind::AgentAsTool || capability.effect() == Effect::Delegate;
        if starts && (budget.levels == 0 || budget.children == 0) {
            return Some("no_child_left");
        }
        match &request.tools {
            ToolPolicy::Inherit {} => None,
            ToolPolicy::ReadOnly {} => (capability.effect() != Effect::Read).then_some("read_only"),
            ToolPolicy::NoTools {} => Some("no_tools"),
            ToolPolicy::Allow { ids } => (!ids.contains(&capability.id)).then_some("not_listed"),
        }
    };
    let kept = |capability: &&Capability| match reason(capability) {
        None => true,
        Some(reason) => {
            stripped.push(Stripped {
                axis: "capabilities",
                id: Some(capability.id.clone()),
                reason,
            });
            false
        }
    };
    from.capabilities.iter().filter(kept).cloned().collect()
}
