//! An authority: what may be done, one axis at a time.
//!
//! Two authorities are compared axis by axis. Each axis is a set of names or places, or a number;
//! less is fewer. Nothing on one axis compensates for something on another.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Capability, Effect, Id, Keyed, Set};
use crate::path::{PathError, RepoPath};

/// What may be done. An axis that is not stated is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Authority {
    /// Tools, tools of servers, agents and so on.
    pub capabilities: Keyed<Capability>,
    pub read: Set<Place>,
    pub write: Set<Place>,
    /// Programs that may be run.
    pub run: Set<Id>,
    /// As `host:port`.
    pub network: Set<Id>,
    /// Environment variables that are visible.
    pub environment: Set<Id>,
    pub secrets: Set<Id>,
    /// Models that may be used, each with its route.
    pub routes: Set<Route>,
    /// Where results may be delivered.
    pub sinks: Set<Id>,
    pub limits: Limits,
    /// Whether the agent may continue when its parent ends.
    pub detach: bool,
}

/// A part of the repository: `.` is all of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Place(Option<RepoPath>);

/// A route to a model, and the model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub route: Id,
    pub model: Id,
}

/// How much may be used; 0 where a limit is not stated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Wall-clock seconds.
    pub seconds: u64,
    /// Tokens of the model.
    pub tokens: u64,
    /// Processes at one time.
    pub processes: u64,
}

/// One thing that an agent might do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Use exactly this capability.
    Use(Capability),
    Read(RepoPath),
    Write(RepoPath),
    Run(Id),
    /// Reach this `host:port`.
    Reach(Id),
    See(Id),
    Unlock(Id),
    /// Use this model by this route.
    Ask(Route),
    Deliver(Id),
    Spend(Limits),
    /// Continue when the parent ends.
    Outlive,
}

impl Authority {
    pub fn permits(&self, action: &Action) -> bool {
        let within =
            |places: &Set<Place>, path: &RepoPath| places.iter().any(|place| place.holds(path));
        match action {
            Action::Use(capability) => self.capabilities.get(&capability.id) == Some(capability),
            Action::Read(path) => within(&self.read, path),
            Action::Write(path) => within(&self.write, path),
            Action::Run(program) => self.run.contains(program),
            Action::Reach(host) => self.network.contains(host),
            Action::See(name) => self.environment.contains(name),
            Action::Unlock(secret) => self.secrets.contains(secret),
            Action::Ask(route) => self.routes.contains(route),
            Action::Deliver(sink) => self.sinks.contains(sink),
            Action::Spend(amount) => amount.excess(&self.limits).is_empty(),
            Action::Outlive => self.detach,
        }
    }

    /// Every point in which this authority exceeds `bound`, as text; empty if it does not.
    pub fn excess(&self, bound: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for capability in self.capabilities.iter() {
            let id = &capability.id;
            match bound.capabilities.get(id) {
                None => found.push(format!("capabilities: `{id}` is not granted")),
                Some(granted) if granted != capability => {
                    found.push(format!(
                        "capabilities: `{id}` is not the one that is granted"
                    ));
                }
                Some(_) => {}
            }
        }
        let places = [
            ("read", &self.read, &bound.read),
            ("write", &self.write, &bound.write),
        ];
        for (axis, asked, granted) in places {
            let outside = |place: &&Place| !granted.iter().any(|grant| grant.covers(place));
            found.extend(beyond(axis, asked.iter().filter(outside)));
        }
        let names = [
            ("run", &self.run, &bound.run),
            ("network", &self.network, &bound.network),
            ("environment", &self.environment, &bound.environment),
            ("secrets", &self.secrets, &bound.secrets),
            ("sinks", &self.sinks, &bound.sinks),
        ];
        for (axis, asked, granted) in names {
            let outside = |name: &&Id| !granted.contains(name);
            found.extend(beyond(axis, asked.iter().filter(outside)));
        }
        let outside = |route: &&Route| !bound.routes.contains(route);
        found.extend(beyond("routes", self.routes.iter().filter(outside)));
        found.extend(self.limits.excess(&bound.limits));
        if self.detach && !bound.detach {
            found.push("detach: is not granted".to_owned());
        }
        found
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same authority without everything that does more than read.
    pub(super) fn read_only(mut self) -> (Self, Vec<&'static str>) {
        let mut emptied = Vec::new();
        let axes = [
            ("write", self.write.is_empty()),
            ("run", self.run.is_empty()),
            ("network", self.network.is_empty()),
            ("sinks", self.sinks.is_empty()),
        ];
        emptied.extend(
            axes.iter()
                .filter(|(_, empty)| !empty)
                .map(|(axis, _)| *axis),
        );
        self.write = Set::default();
        self.run = Set::default();
        self.network = Set::default();
        self.sinks = Set::default();
        let reads = |capability: &&Capability| capability.effect() == Effect::Read;
        self.capabilities = self.capabilities.iter().filter(reads).cloned().collect();
        (self, emptied)
    }
}

fn beyond<'a, T: fmt::Display + 'a>(axis: &str, items: impl Iterator<Item = &'a T>) -> Vec<String> {
    items
        .map(|item| format!("{axis}: `{item}` is not granted"))
        .collect()
}

impl Limits {
    fn excess(&self, bound: &Self) -> Vec<String> {
        let rows = [
            ("seconds", self.seconds, bound.seconds),
            ("tokens", self.tokens, bound.tokens),
            ("processes", self.processes, bound.processes),
        ];
        rows.iter()
            .filter(|(_, asked, granted)| asked > granted)
            .map(|(what, asked, granted)| {
                format!("limits: {asked} {what} are asked and {granted} granted")
            })
            .collect()
    }
}

impl Place {
    /// `path` and everything below it.
    pub fn of(path: RepoPath) -> Self {
        Self(Some(path))
    }

    /// The whole repository.
    pub fn everything() -> Self {
        Self(None)
    }

    /// The path; `None` for the whole repository.
    pub fn path(&self) -> Option<&RepoPath> {
        self.0.as_ref()
    }

    fn holds(&self, path: &RepoPath) -> bool {
        self.0.as_ref().is_none_or(|own| path.is_within(own))
    }

    fn covers(&self, other: &Self) -> bool {
        match &other.0 {
            None => self.0.is_none(),
            Some(path) => self.holds(path),
        }
    }
}

impl TryFrom<String> for Place {
    type Error = PathError;

    fn try_from(raw: String) -> Result<Self, PathError> {
        if raw == "." {
            return Ok(Self(None));
        }
        RepoPath::try_from(raw).map(|path| Self(Some(path)))
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        place.to_string()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.as_ref().map_or(".", RepoPath::as_str))
    }
}

impl fmt::Display for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} by {}", self.model, self.route)
    }
}
