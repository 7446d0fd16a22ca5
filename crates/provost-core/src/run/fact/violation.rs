//! Policy violations: found by a gate, or stopped by a sandbox while its program ran.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{AgentRun, Fact, Judgement};
use crate::code::Code;
use crate::net::traffic::Traffic;

/// The most rows of one event; further refused requests are only counted.
const MOST_ROWS: usize = 32;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Violation {
    Gate(Judgement),
    /// The sandbox of a step stopped it.
    Sandbox(Stopped),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stopped {
    pub program: Program,
    /// Network requests that the proxy refused, by endpoint and method.
    pub network: Vec<RefusedRequest>,
    /// How many further requests were refused that have no row.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub further: u64,
    /// Programs that may not run, and how often they were started.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, u64>,
    /// Forbidden forms of commands that its tools were seen used with; nothing stopped those.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shapes: BTreeMap<String, u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A program that runs in a sandbox with a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    Agent,
    Reviewer,
    /// A preparation step.
    Prepare,
}

/// Refused requests of one kind to one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedRequest {
    /// The endpoint as `host:port`; `-` if a request named none.
    pub target: String,
    pub method: String,
    pub code: Code,
    /// Why the first of them was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub count: u64,
}

impl Stopped {
    /// The refused part of `traffic`, if any.
    fn of<'a>(program: Program, traffic: impl Iterator<Item = &'a Traffic>) -> Option<Self> {
        let mut stopped = Self {
            program,
            network: Vec::new(),
            further: 0,
            programs: BTreeMap::new(),
            shapes: BTreeMap::new(),
        };
        for line in traffic.filter(|line| !line.allow) {
            if stopped.network.len() == MOST_ROWS {
                stopped.further = stopped.further.saturating_add(line.count);
                continue;
            }
            stopped.network.push(RefusedRequest {
                target: line.target.clone(),
                method: line.method.clone(),
                code: line.code,
                reason: line.reason.clone(),
                count: line.count,
            });
        }
        stopped.is_anything().then_some(stopped)
    }

    /// What was refused to an agent or a reviewer, or seen of its tools, if anything.
    fn of_run(program: Program, run: &AgentRun) -> Option<Self> {
        let stopped = Self::of(program, run.network.iter());
        let stopped = Self {
            programs: run.refused.clone(),
            shapes: run.shapes().cloned().unwrap_or_default(),
            ..stopped.unwrap_or(Self {
                program,
                network: Vec::new(),
                further: 0,
                programs: BTreeMap::new(),
                shapes: BTreeMap::new(),
            })
        };
        stopped.is_anything().then_some(stopped)
    }

    fn is_anything(&self) -> bool {
        !(self.network.is_empty() && self.programs.is_empty() && self.shapes.is_empty())
    }

    pub fn requests(&self) -> u64 {
        let rows = self.network.iter();
        rows.fold(self.further, |sum, row| sum.saturating_add(row.count))
    }
}

impl Fact {
    /// The requests that the sandbox stopped, if this fact is the end of its program.
    ///
    /// It is recorded before that end, so that no crash between the two can lose it.
    pub fn stopped(&self) -> Option<Stopped> {
        match self {
            Self::AgentEnded(run) => Stopped::of_run(Program::Agent, run),
            Self::Reviewed(reviewed) => Stopped::of_run(Program::Reviewer, &reviewed.run),
            Self::Prepared { layers } => {
                let made = layers.iter().filter_map(|layer| layer.made.as_ref());
                Stopped::of(Program::Prepare, made.flat_map(|made| &made.network))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(target: usize, allow: bool) -> Traffic {
        Traffic {
            target: format!("{target}.example:443"),
            method: "GET".to_owned(),
            allow,
            code: if allow {
                Code::Ok
            } else {
                Code::NetworkRefused
            },
            reason: None,
            count: 2,
            sent: 0,
            received: 0,
        }
    }

    #[test]
    fn refused_requests_are_listed_up_to_a_number_and_counted_beyond() {
        let none = [line(1, true)];
        assert_eq!(Stopped::of(Program::Agent, none.iter()), None);
        let many: Vec<Traffic> = (0..100).map(|at| line(at, at % 2 == 0)).collect();
        let stopped = Stopped::of(Program::Agent, many.iter()).unwrap();
        assert_eq!((stopped.network.len(), stopped.further), (MOST_ROWS, 36));
        assert_eq!(stopped.requests(), 100);
    }

    #[test]
    fn the_two_kinds_are_read_back_as_what_they_are() {
        let judgement = json!({ "gate": "diff", "verdict": { "allow": false,
            "code": "DIFF_REFUSED", "reason": "r" } });
        let read: Violation = crate::json::from_value(judgement).unwrap();
        assert!(matches!(read, Violation::Gate(_)));
        let refused = [line(1, false)];
        let stopped = Stopped::of(Program::Reviewer, refused.iter()).unwrap();
        let written = serde_json::to_value(Violation::Sandbox(stopped.clone())).unwrap();
        assert_eq!(written["program"], "reviewer");
        let read: Violation = crate::json::from_value(written).unwrap();
        assert_eq!(read, Violation::Sandbox(stopped));
    }

    #[test]
    fn an_old_event_has_no_programs_and_is_written_as_it_was() {
        let refused = [line(1, false)];
        let stopped = Stopped::of(Program::Agent, refused.iter()).unwrap();
        let written = serde_json::to_value(&stopped).unwrap();
        let fields: Vec<&String> = written.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["network", "program"]);
    }
}
