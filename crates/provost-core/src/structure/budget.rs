//! Says how much worse a tree may become, how near it is to that, and whether it is too far.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::health::Points;
use super::{Category, Family, Finding, Report};

/// How strict a budget is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strictness {
    /// No new clones, and what the request set.
    #[default]
    Ci,
    /// Nothing new of anything.
    Strict,
    /// Everything is off.
    Relaxed,
}

impl Strictness {
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "ci" => Some(Self::Ci),
            "strict" => Some(Self::Strict),
            "relaxed" => Some(Self::Relaxed),
            _ => None,
        }
    }

    /// Its word, as JSON has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ci => "ci",
            Self::Strict => "strict",
            Self::Relaxed => "relaxed",
        }
    }
}

/// Limits that a request set by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The largest complexity.
    pub complexity: Option<u32>,
    /// The largest coupling.
    pub coupling: Option<u32>,
    /// The largest cohesion.
    pub cohesion: Option<u32>,
}

/// Limits; a number that is off is nothing, a switch that is off is false.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the document has one switch a gate"
)]
pub struct Budgets {
    /// How many clones may be new.
    pub clone_regression: Option<u32>,
    /// The largest complexity.
    pub complexity_delta: Option<u32>,
    /// The largest coupling.
    pub coupling_delta: Option<u32>,
    /// The largest cohesion.
    pub cohesion_delta: Option<u32>,
    /// The least health.
    pub health_floor: Option<u32>,
    /// The least test coverage, in percent; it is not measured here.
    pub coverage_min: Option<u32>,
    /// No new dead code.
    pub forbid_dead_code_regression: bool,
    /// No new circles of imports.
    pub forbid_cycle_regression: bool,
    /// No type lost; it is not measured here.
    pub forbid_typing_regression: bool,
    /// No documentation lost; it is not measured here.
    pub forbid_docstring_regression: bool,
    /// No public name lost; it is not measured here.
    pub forbid_api_break: bool,
    /// No hot function without a test; it is not measured here.
    pub forbid_untested_hotspots: bool,
    /// The names of the limits that are off.
    pub disabled: Vec<String>,
    /// The names of the limits that are on and that nobody measures, so that nobody takes their
    /// silence for a yes.
    pub not_measured: Vec<String>,
}

impl Budgets {
    /// The limits of `strictness`.
    pub fn of(strictness: Strictness, asked: &Asked) -> Self {
        let strict = strictness == Strictness::Strict;
        let relaxed = strictness == Strictness::Relaxed;
        let limit = |own: Option<u32>, value: u32| match strictness {
            Strictness::Strict => Some(own.unwrap_or(value)),
            Strictness::Ci => own,
            Strictness::Relaxed => None,
        };
        let mut budgets = Self {
            clone_regression: (!relaxed).then_some(0),
            complexity_delta: limit(asked.complexity, 10),
            coupling_delta: limit(asked.coupling, 5),
            cohesion_delta: limit(asked.cohesion, 3),
            health_floor: strict.then_some(70),
            coverage_min: (!relaxed).then_some(if strict { 80 } else { 50 }),
            forbid_dead_code_regression: strict,
            forbid_cycle_regression: strict,
            forbid_typing_regression: strict,
            forbid_docstring_regression: strict,
            forbid_api_break: strict,
            forbid_untested_hotspots: strict,
            disabled: Vec::new(),
            not_measured: Vec::new(),
        };
        for (name, on, measured) in budgets.switches() {
            if !on {
                budgets.disabled.push(name.to_owned());
            } else if !measured {
                budgets.not_measured.push(name.to_owned());
            }
        }
        budgets
    }

    /// Every limit: its name, whether it is on, whether it is measured.
    fn switches(&self) -> [(&'static str, bool, bool); 12] {
        [
            ("clone_regression", self.clone_regression.is_some(), true),
            ("complexity_delta", self.complexity_delta.is_some(), true),
            ("coupling_delta", self.coupling_delta.is_some(), true),
            ("cohesion_delta", self.cohesion_delta.is_some(), true),
            ("health_floor", self.health_floor.is_some(), true),
            ("coverage_min", self.coverage_min.is_some(), false),
            (
                "forbid_dead_code_regression",
                self.forbid_dead_code_regression,
                true,
            ),
            (
                "forbid_cycle_regression",
                self.forbid_cycle_regression,
                true,
            ),
            (
                "forbid_typing_regression",
                self.forbid_typing_regression,
                false,
            ),
            (
                "forbid_docstring_regression",
                self.forbid_docstring_regression,
                false,
            ),
            ("forbid_api_break", self.forbid_api_break, false),
            (
                "forbid_untested_hotspots",
                self.forbid_untested_hotspots,
                false,
            ),
        ]
    }
}

/// Where a tree stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Groups of clones.
    pub clone_groups: u64,
    /// Symbols that nobody uses.
    pub dead_code: u64,
    /// Circles of imports.
    pub dependency_cycles: u64,
    /// The largest complexity.
    pub max_complexity: u32,
    /// The largest coupling.
    pub max_coupling: u32,
    /// The largest cohesion.
    pub max_cohesion: u32,
    /// The health; nothing where there is no source code.
    pub health: Option<Points>,
}

impl Standing {
    /// Where the tree of `report` stands.
    pub fn of(report: &Report) -> Self {
        let metrics = &report.metrics;
        Self {
            clone_groups: metrics.clone_groups,
            dead_code: metrics.dead_code,
            dependency_cycles: metrics.cycles,
            max_complexity: metrics.max_complexity,
            max_coupling: metrics.max_coupling,
            max_cohesion: metrics.max_cohesion,
            health: report.health.as_ref().map(|health| health.points),
        }
    }
}

/// How much worse a tree may become before a limit is broken; negative where it is already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headroom {
    /// To the largest complexity.
    pub complexity: Option<i64>,
    /// To the largest coupling.
    pub coupling: Option<i64>,
    /// To the largest cohesion.
    pub cohesion: Option<i64>,
    /// To the least health.
    pub health: Option<Points>,
}

impl Headroom {
    /// What `budgets` leave where a tree stands.
    pub fn of(budgets: &Budgets, standing: &Standing) -> Self {
        let left =
            |limit: Option<u32>, now: u32| limit.map(|limit| i64::from(limit) - i64::from(now));
        let floor = budgets
            .health_floor
            .and_then(|floor| i32::try_from(floor).ok());
        let health = floor.zip(standing.health);
        Self {
            complexity: left(budgets.complexity_delta, standing.max_complexity),
            coupling: left(budgets.coupling_delta, standing.max_coupling),
            cohesion: left(budgets.cohesion_delta, standing.max_cohesion),
            health: health.map(|(floor, now)| now.minus(Points::whole(floor))),
        }
    }
}

/// What a gate says, or would say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// Whether a limit is broken.
    pub would_fail: bool,
    /// How a command that asked would end.
    pub exit_code: u8,
    /// Which limits, in words.
    pub reasons: Vec<String>,
}

impl Gate {
    /// A gate that fails for each of `reasons`.
    pub fn of(reasons: Vec<String>) -> Self {
        Self {
            would_fail: !reasons.is_empty(),
            exit_code: if reasons.is_empty() { 0 } else { GATE_FAILED },
            reasons,
        }
    }
}

/// How a command ends whose gate fails, in the document.
const GATE_FAILED: u8 = 3;

/// Holds `report` against `budgets`. What `known` has is not new; without one, everything is.
pub fn gate(report: &Report, known: Option<&Report>, budgets: &Budgets) -> Gate {
    let old: BTreeSet<&str> = known
        .into_iter()
        .flat_map(|known| known.findings.iter().map(|finding| finding.id.as_str()))
        .collect();
    let is_old = |finding: &Finding| old.contains(finding.id.as_str());
    gate_against(report, &is_old, budgets)
}

/// Holds `report` against `budgets`; `is_old` says which findings are not new.
pub fn gate_against(report: &Report, is_old: &dyn Fn(&Finding) -> bool, budgets: &Budgets) -> Gate {
    let standing = Standing::of(report);
    let mut reasons = Vec::new();
    let new = |is: fn(&Finding) -> bool| {
        let fresh = |finding: &&Finding| is(finding) && finding.gates() && !is_old(finding);
        report.findings.iter().filter(fresh).count()
    };
    let clones = new(|finding| finding.family == Family::Clone);
    if let Some(most) = budgets.clone_regression
        && clones > most as usize
    {
        reasons.push(format!(
            "clone_regression: {clones} new groups of clones, at most {most}"
        ));
    }
    let dead = new(|finding| finding.family == Family::DeadCode);
    if budgets.forbid_dead_code_regression && dead > 0 {
        reasons.push(format!(
            "forbid_dead_code_regression: {dead} new unused symbols"
        ));
    }
    let circles = new(|finding| finding.category == Category::DependencyCycle);
    if budgets.forbid_cycle_regression && circles > 0 {
        reasons.push(format!(
            "forbid_cycle_regression: {circles} new import cycles"
        ));
    }
    let limits = [
        (
            "complexity_delta",
            budgets.complexity_delta,
            standing.max_complexity,
        ),
        (
            "coupling_delta",
            budgets.coupling_delta,
            standing.max_coupling,
        ),
        (
            "cohesion_delta",
            budgets.cohesion_delta,
            standing.max_cohesion,
        ),
    ];
    for (name, most, now) in limits {
        if let Some(most) = most
            && now > most
        {
            reasons.push(format!("{name}: {now}, at most {most}"));
        }
    }
    let floor = budgets
        .health_floor
        .and_then(|floor| i32::try_from(floor).ok());
    if let Some((floor, now)) = floor.zip(standing.health)
        && now < Points::whole(floor)
    {
        reasons.push(format!("health_floor: {now}, at least {floor}"));
    }
    Gate::of(reasons)
}
