//! What an agent may do and let its children do, as a package: from the contract of its run.

use super::family::ChildBudget;
use super::message::ChildTask;
use super::tools::{self, MessageTool};
use crate::contract::document::Filesystem;
use crate::net::endpoint::Endpoint;
use crate::package::{
    self, Authority, Capability, Handoff, Id, Kind, Limits, Package, Place, Route, Set, Version,
};
use crate::run::fact::Opened;
use crate::scope;

/// The capability to start children.
const START: &str = "tool.child_start";

/// Every program that the sandbox contains.
const EVERY_PROGRAM: &str = "*";

/// The package of a run that may start children: what its agent may do, and may let others do.
pub fn package_of(opened: &Opened) -> Result<Package, String> {
    if let Some(child_of) = &opened.child {
        return Ok(child_of.package.clone());
    }
    let document = &opened.contract;
    let extension = document.x_provost.clone().unwrap_or_default();
    let grant = extension.children.clone().unwrap_or_default();
    let timeout = document.timeout_retry.timeout_sec;
    let own = Limits {
        seconds: timeout,
        tokens: tokens(opened),
        processes: 0,
    };
    let mut exercise = authority(opened, &document.allowed_paths, &extension.net, own)?;
    let budget = grant.budget(timeout);
    let shared = limits(budget);
    let mut delegate = Authority {
        limits: shared,
        ..exercise.clone()
    };
    let models = grant.models.iter().flatten();
    let more: Vec<Route> = models
        .map(|model| route(opened, Some(model)))
        .collect::<Result<_, _>>()?;
    delegate.routes = delegate.routes.iter().cloned().chain(more).collect();
    if document.tool_permissions.filesystem == Filesystem::ReadOnly {
        exercise.write = Set::default();
    }
    Ok(Package {
        schema_version: Version,
        agent: id(agent_name(opened))?,
        parent: None,
        exercise,
        delegate,
        budget: package::Budget {
            levels: grant.levels(),
            children: grant.count,
        },
        guards: Set::default(),
        handoff: Handoff::default(),
    })
}

/// The capabilities that the child keeps: tools of its program as asked, or all of them; tools of
/// the broker only as asked.
pub(super) fn kept_tools(parent: &Package, task: &ChildTask) -> Result<Set<Id>, String> {
    let of_broker = |text: &str| {
        let messages = MessageTool::ALL.into_iter();
        messages.map(MessageTool::capability).any(|it| it == text) || text == START
    };
    let all = || {
        let all = parent.delegate.capabilities.iter();
        let names = all.map(|it| it.id.to_string());
        names.filter(|name| !of_broker(name)).collect::<Vec<_>>()
    };
    let mut names = task.tools.clone().unwrap_or_else(all);
    names.extend(task.messages.iter().map(|tool| tool.capability()));
    if task.children > 0 {
        names.push(START.to_owned());
    }
    names.iter().map(|name| id(name)).collect()
}

/// The authority to write `write`, reach `net` and use the agent of `opened`.
pub(super) fn authority(
    opened: &Opened,
    write: &[String],
    net: &[String],
    limits: Limits,
) -> Result<Authority, String> {
    let place = |entry: &String| {
        let path = scope::parse_entry(entry).map_err(|why| format!("`{entry}` {why}"))?;
        Ok(Place::of(path))
    };
    let reach = |entry: &String| {
        let endpoint = Endpoint::parse(entry).map_err(|why| format!("`{entry}` {why}"))?;
        id(&endpoint.to_string())
    };
    let places: Result<Vec<Place>, String> = write.iter().map(place).collect();
    let network: Result<Vec<Id>, String> = net.iter().map(reach).collect();
    let extension = opened.contract.x_provost.as_ref();
    let grant = extension.and_then(|it| it.children.as_ref());
    let messages = grant.map(tools::kept).unwrap_or_default().iter();
    let messages = messages.map(|tool| tool.capability());
    let starts = grant.filter(|it| it.count > 0).map(|_| START.to_owned());
    let capability = |tool: String| {
        let kind = if tool == START {
            Kind::AgentAsTool
        } else {
            Kind::Tool
        };
        Ok(Capability::unknown(id(&tool)?, kind))
    };
    let all = offered(opened).into_iter().chain(messages).chain(starts);
    let capabilities: Result<Vec<Capability>, String> = all.map(capability).collect();
    let routes = match &opened.adapted {
        None => Vec::new(),
        Some(_) => vec![route(opened, model_of(opened))?],
    };
    Ok(Authority {
        capabilities: capabilities?.into_iter().collect(),
        read: std::iter::once(Place::everything()).collect(),
        write: places?.into_iter().collect(),
        run: std::iter::once(id(EVERY_PROGRAM)?).collect(),
        network: network?.into_iter().collect(),
        routes: routes.into_iter().collect(),
        limits,
        ..Authority::default()
    })
}

/// The tools that the program of `opened` may offer to its model.
fn offered(opened: &Opened) -> Vec<String> {
    let Some(adapted) = &opened.adapted else {
        return Vec::new();
    };
    let known = || vec!["known".to_owned()];
    adapted.grants.tools.clone().unwrap_or_else(known)
}

pub(super) fn model_of(opened: &Opened) -> Option<&String> {
    opened.adapted.as_ref()?.model.as_ref()
}

pub(super) fn route(opened: &Opened, model: Option<&String>) -> Result<Route, String> {
    Ok(Route {
        route: id(agent_name(opened))?,
        model: id(model.map_or("default", String::as_str))?,
    })
}

fn agent_name(opened: &Opened) -> &str {
    let adapted = opened.adapted.as_ref();
    adapted.map_or("command", |adapted| adapted.adapter.name())
}

fn tokens(opened: &Opened) -> u64 {
    let adapted = opened.adapted.as_ref();
    adapted.and_then(|it| it.budget.tokens).unwrap_or(0)
}

pub(super) fn limits(budget: ChildBudget) -> Limits {
    Limits {
        seconds: budget.seconds,
        tokens: budget.tokens,
        processes: budget.processes,
    }
}

pub(super) fn id(text: &str) -> Result<Id, String> {
    Id::try_from(text.to_owned()).map_err(|error| error.to_string())
}
