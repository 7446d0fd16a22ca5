use super::attribute::attribute;
use super::blast::{Depth, Level, radius};
use super::budget::{Asked, Budgets, Headroom, Standing, Strictness, gate};
use super::compare::{DeltaVerdict, compare};
use super::health::{Points, compat, pair, standard};
use super::metrics::{Debt, Debts, PythonSums, Spread};
use super::sample::{clones, dead, function, path, report, with_imports};
use super::*;

fn toy() -> Vec<Function> {
    vec![function("a.py", "add", 1), function("b.py", "twice", 1)]
}

fn ids(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.id.as_str()).collect()
}

#[test]
fn what_is_new_is_a_regression_and_what_is_gone_an_improvement() {
    let clean = report(toy(), vec![]);
    let dirty = report(toy(), vec![dead("a.py", "old", "s")]);
    let worse = compare(&clean, &dirty);
    assert_eq!(ids(&worse.regressions), ["dead_code:old"]);
    assert_eq!(worse.verdict, DeltaVerdict::Regressed);
    let better = compare(&dirty, &clean);
    assert_eq!(ids(&better.improvements), ["dead_code:old"]);
    assert_eq!(better.verdict, DeltaVerdict::Improved);
    let same = compare(&dirty, &dirty);
    assert_eq!(same.verdict, DeltaVerdict::Stable);
    assert_eq!(same.health_delta, Some(Points::whole(0)));
}

#[test]
fn one_better_and_one_worse_is_mixed() {
    let before = report(toy(), vec![dead("a.py", "old", "s")]);
    let after = report(toy(), vec![dead("b.py", "other", "t")]);
    assert_eq!(compare(&before, &after).verdict, DeltaVerdict::Mixed);
}

#[test]
fn a_finding_that_moved_or_was_renamed_is_not_new() {
    let before = report(toy(), vec![dead("a.py", "old", "s")]);
    let cases = [
        ("moved", dead("b.py", "old", "s")),
        ("renamed", dead("a.py", "fresh", "s")),
        ("moved and renamed", dead("b.py", "fresh", "s")),
    ];
    for (name, finding) in cases {
        let delta = compare(&before, &report(toy(), vec![finding]));
        assert_eq!(delta.regressions, [], "{name}");
        assert_eq!(delta.moved.len(), 1, "{name}");
        assert_eq!(delta.verdict, DeltaVerdict::Stable, "{name}");
    }
    let edited = compare(&before, &report(toy(), vec![dead("a.py", "old", "t")]));
    assert_eq!((edited.regressions.len(), edited.moved.len()), (0, 0));
}

#[test]
fn the_second_of_two_equal_names_is_new_where_it_is() {
    let before = report(toy(), vec![dead("b.py", "x", "s")]);
    let mut second = dead("b.py", "x", "s");
    second.id = "dead_code:x#2".to_owned();
    let after = report(toy(), vec![dead("a.py", "x", "t"), second]);
    let delta = compare(&before, &after);
    assert_eq!(delta.regressions[0].places[0].path, path("a.py"));
    assert_eq!(delta.regressions.len(), 1);
}

#[test]
fn a_further_copy_of_a_clone_is_new() {
    let two = clones("k", &[("a.py", "f"), ("b.py", "g")]);
    let three = clones("k", &[("a.py", "f"), ("b.py", "g"), ("c.py", "h")]);
    let (two, three) = (report(toy(), vec![two]), report(toy(), vec![three]));
    assert_eq!(
        ids(&compare(&two, &three).regressions),
        ["clone:function:k"]
    );
    assert_eq!(compare(&three, &two).regressions, []);
}

#[test]
fn clones_that_were_edited_alike_are_the_same_group() {
    let old = clones("k", &[("a.py", "f"), ("b.py", "g")]);
    let new = clones("m", &[("a.py", "f"), ("b.py", "g")]);
    let delta = compare(&report(toy(), vec![old]), &report(toy(), vec![new]));
    assert_eq!((delta.regressions.len(), delta.improvements.len()), (0, 0));
}

#[test]
fn what_is_not_sure_is_reported_and_does_not_decide() {
    let mut unsure = dead("a.py", "old", "s");
    unsure.confidence = Confidence::Low;
    let delta = compare(&report(toy(), vec![]), &report(toy(), vec![unsure.clone()]));
    assert_eq!((delta.regressions.len(), delta.advisories.len()), (0, 1));
    assert_eq!(delta.verdict, DeltaVerdict::Stable);
    let sure = report(toy(), vec![dead("a.py", "old", "s")]);
    let delta = compare(&report(toy(), vec![unsure]), &sure);
    assert_eq!(delta.regressions.len(), 1, "surer than before");
}

#[test]
fn other_settings_or_another_analyser_are_incomparable() {
    let before = report(toy(), vec![]);
    let mut other = before.clone();
    other.settings.min_loc = 3;
    let mut newer = before.clone();
    newer.analyser = "next".to_owned();
    for after in [other, newer] {
        let delta = compare(&before, &after);
        assert_eq!(delta.verdict, DeltaVerdict::Incomparable);
        assert_eq!(delta.health_delta, None);
        assert_ne!(before.digest(), after.digest());
    }
}

#[test]
fn more_branches_without_a_finding_lower_the_health() {
    let before = report(toy(), vec![]);
    let mut functions = toy();
    functions[0] = function("a.py", "add", 13);
    let delta = compare(&before, &report(functions, vec![]));
    assert_eq!(delta.verdict, DeltaVerdict::Regressed);
    assert!(delta.health_delta.unwrap() <= Points::whole(-1));
    assert_eq!(delta.regressions, []);
    assert_eq!((delta.worsened[0].before, delta.worsened[0].after), (1, 13));
    let patch = delta.patch.unwrap();
    assert_eq!((patch.changed, patch.added, patch.removed), (1, 0, 0));
    assert_eq!(patch.before, Some(Points::whole(100)));
    assert!(patch.after < patch.before);
}

#[test]
fn clean_code_that_comes_or_goes_moves_the_health_and_not_the_debt() {
    let mut functions = toy();
    functions.push(function("a.py", "bad", 30));
    let small = report(functions.clone(), vec![]);
    functions.push(function("c.py", "fine", 1));
    let large = report(functions, vec![]);
    for (before, after, want) in [
        (&small, &large, DeltaVerdict::Improved),
        (&large, &small, DeltaVerdict::Regressed),
    ] {
        let delta = compare(before, after);
        let points = |report: &Report| report.health.as_ref().unwrap().points;
        let difference = points(after).minus(points(before));
        assert_eq!(delta.health_delta, Some(difference));
        assert_eq!(delta.health_before, Some(points(before)));
        assert_eq!(delta.health_after, Some(points(after)));
        assert_eq!(delta.verdict, want);
        assert_eq!(delta.debt_delta, Some(Points::whole(0)));
    }
}

#[test]
fn one_defect_in_a_million_lines_is_seen() {
    let all = |debt: u64| {
        let of = |debt: u64, size: u64| Debt { debt, size };
        Debts::from([
            (health::Dimension::Complexity, of(50_000, 60_000)),
            (health::Dimension::DeadCode, of(debt, 70_000)),
            (health::Dimension::Coverage, of(0, 4_000)),
        ])
    };
    let (before, after) = pair(&all(9_000), &all(9_001)).unwrap();
    assert!(after.points < before.points);
}

#[test]
fn what_is_not_there_is_not_perfect() {
    assert_eq!(standard(&Debts::new()), None);
    let only = Debts::from([(health::Dimension::DeadCode, Debt { debt: 1, size: 10 })]);
    assert_eq!(standard(&only).unwrap().points, Points::whole(50));
}

#[test]
fn the_compatible_formula_gives_the_numbers_of_the_document() {
    let spread = |count: u64, sum: u64, max: u64, high: u64| Spread {
        count,
        sum,
        max,
        high,
    };
    let clean = PythonSums {
        files: 4,
        complexity: spread(3, 3, 1, 0),
        ..PythonSums::default()
    };
    let points = |sums: &PythonSums, at: usize| compat(sums).unwrap().dimensions[at].points;
    // 100 - 2.5 * 1 - 1.2 * 1 = 96.3
    assert_eq!(points(&clean, 1), Points::whole(96));
    // (25 + 15 + 10 * 4) * 100 + 20 * 96 = 9920, hence 99.2
    assert_eq!(compat(&clean).unwrap().points, Points::whole(99));
    let mut clones = clean.clone();
    clones.files = 10;
    clones.clone_groups = 1;
    // 10 % lies a third of the way from 90 to 50.
    assert_eq!(points(&clones, 0), Points::whole(77));
    let mut dead = clean.clone();
    dead.dead = 20;
    assert_eq!(points(&dead, 4), Points::whole(0));
    let mut deep = clean.clone();
    (deep.depth_max, deep.depth_twice_mean, deep.depth_p95) = (9, 4, 5);
    deep.cycles = 1;
    // 100 - 25 - 4 * (9 - 6)
    assert_eq!(points(&deep, 5), Points::whole(63));
    assert_eq!(compat(&PythonSums::default()), None);
}

#[test]
fn points_read_back_as_they_were_written() {
    let one = |text: &str| serde_json::from_str::<Points>(text).unwrap();
    for text in ["0", "100", "-2", "87.25", "-0.000001", "99.999999"] {
        assert_eq!(
            serde_json::to_string(&one(text)).unwrap(),
            text.replace("-0.000001", "-1e-6")
        );
        assert_eq!(one(text).to_string(), text);
    }
}

#[test]
fn a_report_reads_back_as_it_was_written() {
    let one = report(toy(), vec![dead("a.py", "old", "s")]);
    let text = serde_json::to_string(&one).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), one);
}

#[test]
fn a_regression_belongs_to_the_scope_that_covers_one_of_its_places() {
    let before = report(toy(), vec![]);
    let group = clones("k", &[("pkg/a.py", "f"), ("pkg/b.py", "g")]);
    let after = report(toy(), vec![dead("pkg/c.py", "old", "s"), group]);
    let delta = compare(&before, &after);
    let cases: [(&[&str], usize, usize); 5] = [
        (&["pkg/a.py"], 1, 1),
        (&["pkg/c.py"], 1, 1),
        (&["pkg/b*", "pkg/c.py"], 2, 0),
        (&["pkg"], 2, 0),
        (&["other.py"], 0, 2),
    ];
    for (scope, own, foreign) in cases {
        let found = attribute(&delta, scope);
        let counts = (
            found.intent_regressions.len(),
            found.external_regressions.len(),
        );
        assert_eq!(counts, (own, foreign), "{scope:?}");
    }
}

#[test]
fn a_gate_that_fell_counts_only_with_something_worse_in_scope() {
    let before = report(toy(), vec![]);
    let group = clones("k", &[("a.py", "f"), ("b.py", "g")]);
    let after = report(toy(), vec![group]);
    let delta = compare(&before, &after);
    let budgets = Budgets::of(Strictness::Ci, &Asked::default());
    let (green, red) = (
        gate(&before, Some(&before), &budgets),
        gate(&after, Some(&before), &budgets),
    );
    assert_eq!((green.would_fail, green.exit_code), (false, 0));
    assert_eq!((red.would_fail, red.exit_code), (true, 3));
    assert!(attribute(&delta, &["a.py"]).caused(&green, &red));
    assert!(!attribute(&delta, &["z.py"]).caused(&green, &red));
    assert!(!attribute(&delta, &["a.py"]).caused(&red, &red));
}

#[test]
fn budgets_are_those_of_the_document() {
    let ci = Budgets::of(Strictness::Ci, &Asked::default());
    assert_eq!((ci.clone_regression, ci.complexity_delta), (Some(0), None));
    assert_eq!((ci.health_floor, ci.coverage_min), (None, Some(50)));
    assert!(!ci.forbid_dead_code_regression);
    assert_eq!(ci.not_measured, ["coverage_min"]);
    let strict = Budgets::of(Strictness::Strict, &Asked::default());
    assert_eq!(strict.complexity_delta, Some(10));
    assert_eq!(
        (strict.coupling_delta, strict.cohesion_delta),
        (Some(5), Some(3))
    );
    assert_eq!(
        (strict.health_floor, strict.coverage_min),
        (Some(70), Some(80))
    );
    assert_eq!(strict.disabled, Vec::<String>::new());
    let relaxed = Budgets::of(Strictness::Relaxed, &Asked::default());
    assert_eq!(
        (relaxed.clone_regression, relaxed.coverage_min),
        (None, None)
    );
    assert_eq!(relaxed.disabled.len(), 12);
    let asked = Asked {
        complexity: Some(7),
        ..Asked::default()
    };
    assert_eq!(
        Budgets::of(Strictness::Ci, &asked).complexity_delta,
        Some(7)
    );
}

#[test]
fn headroom_is_what_the_budget_leaves() {
    let mut functions = toy();
    functions[0] = function("a.py", "add", 13);
    let standing = Standing::of(&report(functions, vec![]));
    let strict = Budgets::of(Strictness::Strict, &Asked::default());
    let room = Headroom::of(&strict, &standing);
    assert_eq!(room.complexity, Some(-3));
    let ci = Budgets::of(Strictness::Ci, &Asked::default());
    assert_eq!(Headroom::of(&ci, &standing).complexity, None);
    assert_eq!(Headroom::of(&ci, &standing).health, None);
}

#[test]
fn a_radius_counts_importers_and_clones() {
    let group = clones("k", &[("a.py", "f"), ("z.py", "g")]);
    let imports = [
        ("b.py", "a.py"),
        ("c.py", "b.py"),
        ("d.py", "c.py"),
        ("c.py", "d.py"),
    ];
    let tree = with_imports(toy(), vec![group], &imports);
    let blast = radius(&tree, &["a.py", "nothing.md"], Depth::Transitive);
    assert_eq!(blast.direct_dependents, [path("b.py")]);
    assert_eq!(
        blast.transitive_dependents,
        Some(vec![path("c.py"), path("d.py")])
    );
    assert_eq!(blast.clone_cohort, [path("z.py")]);
    assert_eq!(blast.unknown, ["nothing.md"]);
    assert_eq!(blast.radius_level, Level::Medium);
    assert_eq!(blast.structural_risk, ["clone:function:k"]);
    let alone = radius(&tree, &["d.py"], Depth::Auto);
    assert_eq!(alone.in_dependency_cycle, [path("c.py"), path("d.py")]);
    assert_eq!(alone.transitive_dependents, None);
    assert_eq!(
        radius(&tree, &["z.md"], Depth::Auto).radius_level,
        Level::Low
    );
    let many: Vec<(String, &str)> = (0..6).map(|at| (format!("m{at}.py"), "a.py")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(from, to)| (from.as_str(), *to)).collect();
    let tree = with_imports(toy(), vec![], &many);
    assert_eq!(
        radius(&tree, &["a.py"], Depth::Auto).radius_level,
        Level::High
    );
}
