//! Checks one analysis against limits that a request switches on one by one.
//!
//! # Invariants
//!
//! - A limit that is switched on but not measured fails: a missing measurement is not a pass.
//! - A finding is new if no baseline accepts it; without a baseline every finding is new.

use serde::{Deserialize, Serialize};

use super::baseline::Seen;
use super::budget::{Gate, Standing};
use super::health::Points;
use super::{Family, Finding, Report};

/// The limits of a request. A number is off when it is `None`, a switch when it is false.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the format has one switch per gate"
)]
pub struct Switches {
    /// No new clones.
    pub fail_on_new: bool,
    /// The largest number of clone groups.
    pub fail_threshold: Option<u32>,
    pub fail_complexity: Option<u32>,
    pub fail_coupling: Option<u32>,
    pub fail_cohesion: Option<u32>,
    /// No import cycles.
    pub fail_cycles: bool,
    pub fail_dead_code: bool,
    /// The lowest health.
    pub fail_health: Option<u32>,
    /// No new findings other than clones.
    pub fail_on_new_metrics: bool,
    /// Names of limits that were switched on and are not measured.
    pub not_measured: Vec<String>,
}

/// Checks `report` against `switches`.
pub fn evaluate(report: &Report, baseline: &Seen, switches: &Switches) -> Gate {
    let standing = Standing::of(report);
    let new = baseline.new_in(report);
    let count = |of: fn(&Finding) -> bool| new.iter().filter(|one| of(one)).count();
    let clones = count(|one| one.family == Family::Clone);
    let metrics = count(|one| one.family != Family::Clone);
    let mut reasons = Vec::new();
    let mut fail = |applies: bool, words: String| {
        if applies {
            reasons.push(words);
        }
    };
    fail(
        switches.fail_on_new && clones > 0,
        format!("fail_on_new: {clones} new groups of clones"),
    );
    fail(
        switches.fail_on_new_metrics && metrics > 0,
        format!("fail_on_new_metrics: {metrics} new findings"),
    );
    let groups = standing.clone_groups;
    let limits = [
        ("fail_threshold", switches.fail_threshold, groups),
        (
            "fail_complexity",
            switches.fail_complexity,
            u64::from(standing.max_complexity),
        ),
        (
            "fail_coupling",
            switches.fail_coupling,
            u64::from(standing.max_coupling),
        ),
        (
            "fail_cohesion",
            switches.fail_cohesion,
            u64::from(standing.max_cohesion),
        ),
    ];
    for (name, most, now) in limits {
        if let Some(most) = most {
            fail(
                now > u64::from(most),
                format!("{name}: {now}, at most {most}"),
            );
        }
    }
    let (cycles, dead) = (standing.dependency_cycles, standing.dead_code);
    fail(
        switches.fail_cycles && cycles > 0,
        format!("fail_cycles: {cycles} circles of imports"),
    );
    fail(
        switches.fail_dead_code && dead > 0,
        format!("fail_dead_code: {dead} unused symbols"),
    );
    if let Some(floor) = switches.fail_health {
        let least = Points::whole(i32::try_from(floor).unwrap_or(i32::MAX));
        match standing.health {
            Some(now) => fail(now < least, format!("fail_health: {now}, at least {floor}")),
            None => fail(
                true,
                "fail_health: there is no source code to measure".to_owned(),
            ),
        }
    }
    for name in &switches.not_measured {
        fail(true, format!("{name}: this is not measured here"));
    }
    Gate::of(reasons)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::baseline::{Baseline, NAME};
    use crate::structure::sample::{dead, function, report};

    type Set = fn(&mut Switches);

    fn tree() -> Report {
        let functions = vec![function("a.py", "f", 12)];
        let mut tree = report(functions, vec![dead("a.py", "f", "s")]);
        tree.metrics.dead_code = 1;
        tree.metrics.cycles = 1;
        tree.metrics.clone_groups = 2;
        tree.metrics.max_complexity = 12;
        tree
    }

    #[test]
    fn each_switch_fails_by_itself_and_says_so() {
        let tree = tree();
        let accepted = Baseline::of(&tree).render();
        let accepted = Seen::of(NAME, Some(accepted.as_bytes()), &tree);
        let none = &Seen::Missing;
        let cases: [(&Seen, Set, &[&str]); 10] = [
            (none, |_| {}, &[]),
            (
                none,
                |on| on.fail_on_new_metrics = true,
                &["fail_on_new_metrics"],
            ),
            (&accepted, |on| on.fail_on_new_metrics = true, &[]),
            (none, |on| on.fail_threshold = Some(1), &["fail_threshold"]),
            (none, |on| on.fail_threshold = Some(2), &[]),
            (
                none,
                |on| on.fail_complexity = Some(11),
                &["fail_complexity"],
            ),
            (none, |on| on.fail_cycles = true, &["fail_cycles"]),
            (
                &accepted,
                |on| on.fail_dead_code = true,
                &["fail_dead_code"],
            ),
            (none, |on| on.fail_health = Some(101), &["fail_health"]),
            (
                none,
                |on| on.not_measured.push("coverage_min".into()),
                &["coverage_min"],
            ),
        ];
        for (at, (baseline, set, want)) in cases.iter().enumerate() {
            let mut switches = Switches::default();
            set(&mut switches);
            let gate = evaluate(&tree, baseline, &switches);
            let names = gate
                .reasons
                .iter()
                .filter_map(|words| words.split(':').next());
            assert_eq!(names.collect::<Vec<_>>(), *want, "case {at}");
            assert_eq!(gate.would_fail, !want.is_empty(), "case {at}");
        }
    }
}
