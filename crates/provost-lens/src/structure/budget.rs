//! Defines how much worse a tree may become, how much room is left, and when a limit is exceeded.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::health::Points;
use super::{Category, Family, Finding, Report};

/// The later ones are stricter.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Strictness {
    Relaxed,
    /// No new clones, and the limits of the request.
    #[default]
    Ci,
    /// No new findings of any kind.
    Strict,
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

    /// Its name in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ci => "ci",
            Self::Strict => "strict",
            Self::Relaxed => "relaxed",
        }
    }
}

/// Limits that the request sets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub complexity: Option<u32>,
    pub coupling: Option<u32>,
    pub cohesion: Option<u32>,
}

/// Limits; a number that is off is `None`, a switch that is off is false.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the format has one switch per gate"
)]
pub struct Budgets {
    /// The largest number of new clones.
    pub clone_regression: Option<u32>,
    /// The largest complexity.
    pub complexity_delta: Option<u32>,
    /// The largest coupling.
    pub coupling_delta: Option<u32>,
    /// The largest cohesion.
    pub cohesion_delta: Option<u32>,
    /// The lowest health.
    pub health_floor: Option<u32>,
    /// The lowest test coverage, in percent; not measured.
    pub coverage_min: Option<u32>,
    /// No new dead code.
    pub forbid_dead_code_regression: bool,
    /// No new import cycles.
    pub forbid_cycle_regression: bool,
    /// No type annotation lost; not measured.
    pub forbid_typing_regression: bool,
    /// No documentation lost; not measured.
    pub forbid_docstring_regression: bool,
    /// No public name lost; not measured.
    pub forbid_api_break: bool,
    /// No hot function without a test; not measured.
    pub forbid_untested_hotspots: bool,
    /// The names of the limits that are off.
    pub disabled: Vec<String>,
    /// The names of the limits that are on but not measured: a missing measurement is not a pass.
    pub not_measured: Vec<String>,
}

impl Budgets {
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

/// The values of a tree that limits apply to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    pub clone_groups: u64,
    /// Unused symbols.
    pub dead_code: u64,
    /// Import cycles.
    pub dependency_cycles: u64,
    pub max_complexity: u32,
    pub max_coupling: u32,
    pub max_cohesion: u32,
    /// `None` where there is no source code.
    pub health: Option<Points>,
}

impl Standing {
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

/// How much worse a tree may become before a limit is exceeded; negative where it is exceeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headroom {
    pub complexity: Option<i64>,
    pub coupling: Option<i64>,
    pub cohesion: Option<i64>,
    pub health: Option<Points>,
}

impl Headroom {
    /// The room that `budgets` leave.
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

/// The verdict of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// Whether a limit is exceeded.
    pub would_fail: bool,
    /// The exit status of a command that asks.
    pub exit_code: u8,
    /// The exceeded limits, as text.
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

/// The exit status of a command whose gate fails, as the payload format defines it.
const GATE_FAILED: u8 = 3;

/// Checks `report` against `budgets`. Findings in `known` are not new; without it every one is.
pub fn gate(report: &Report, known: Option<&Report>, budgets: &Budgets) -> Gate {
    let old: BTreeSet<&str> = known
        .into_iter()
        .flat_map(|known| known.findings.iter().map(|finding| finding.id.as_str()))
        .collect();
    let is_old = |finding: &Finding| old.contains(finding.id.as_str());
    gate_against(report, &is_old, budgets)
}

/// Checks `report` against `budgets`; `is_old` says which findings are not new.
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
