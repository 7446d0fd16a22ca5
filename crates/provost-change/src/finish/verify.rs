//! Judges a patch by what it did to the structure of the code.

use crate::finish::decide::{ScopeCheck, StopReason};
use crate::intent::ScopeStatus;
use provost_lens::structure::Report;
use provost_lens::structure::attribute::attribute;
use provost_lens::structure::baseline::{self, Course, Seen};
use provost_lens::structure::budget::{Asked, Budgets, Gate, Strictness, gate, gate_against};
use provost_lens::structure::compare::{Delta, DeltaVerdict, compare, not_applicable};
use provost_lens::structure::health::Points;
use provost_lens::structure::profile::{self, Profile};

use provost_core::words;
use serde::Deserialize;

words! {
    #[derive(Deserialize)]
    pub enum PatchStatus {
        Accepted = "accepted",
        /// This change is fine; the structure became worse outside of its scope.
        AcceptedWithExternalChanges = "accepted_with_external_changes",
        /// The analyses do not allow a judgement.
        Unverified = "unverified",
        Violated = "violated",
    }
}

/// One analysis, as a judgement needs it.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    pub run_id: &'a str,
    pub root: &'a str,
    /// The digest of the settings and the analyser.
    pub means: &'a str,
    pub report: &'a Report,
    /// The baseline as the analysis found it.
    pub baseline: &'a Seen,
}

#[derive(Debug, Clone, Copy)]
pub enum After<'a> {
    /// The caller named none, or one that the session does not have.
    None,
    /// It does not describe what is on disk.
    Stale(Side<'a>),
    /// It describes what is on disk.
    Fresh(Side<'a>),
}

#[derive(Debug, Clone, Copy)]
pub struct Patch<'a> {
    /// The touched paths, relative to the analysed root.
    pub paths: &'a [String],
    /// The declared paths, likewise; `None` when there is no intent.
    pub scope: Option<&'a [String]>,
    /// The result of the scope check, when there is an intent.
    pub check: Option<&'a ScopeCheck>,
    pub before: Option<Side<'a>>,
    pub after: After<'a>,
    pub strictness: Strictness,
    pub without_run: WithoutRun,
}

/// What a patch gets that has no analysis from after it, where its profile needs none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutRun {
    /// It is accepted.
    Accepted,
    /// It is accepted if it touches no code that the analysis reads.
    AcceptedUnlessCode,
    /// It is not accepted, because an analysis showed a violation before.
    Unverified,
}

#[derive(Debug, Clone)]
pub struct Verified {
    pub status: PatchStatus,
    /// `None` if it is accepted. Of several violations the first.
    pub reason: Option<StopReason>,
    /// Which checks the patch needs.
    pub profile: Profile,
    pub delta: Delta,
    /// Ids of new findings that are attributed to this change.
    pub intent_regressions: Vec<String>,
    /// Ids of new findings that are not.
    pub external_regressions: Vec<String>,
    /// How many symbols of this change became worse.
    pub intent_worsened: usize,
    /// How many symbols outside of it became worse.
    pub external_worsened: usize,
    /// The gate before and after; `None` when nothing was compared.
    pub gates: Option<(Gate, Gate)>,
    /// Whether a gate that passed before fails because of this change.
    pub caused_gate_failure: bool,
    pub violations: Vec<&'static str>,
    /// The violations that refuse the change.
    pub blocking: Vec<&'static str>,
}

impl Verified {
    /// By how much the health fell; `None` if it did not.
    pub fn health_fell(&self) -> Option<Points> {
        self.delta.health_delta.filter(|delta| delta.is_negative())
    }

    /// Whether there is a comparison that claims about the change can be checked against.
    pub fn supports_claims(&self) -> bool {
        self.delta.comparable
    }

    /// Whether claims about the change are worth a check.
    pub fn recommends_claims(&self) -> bool {
        let accepted = match self.status {
            PatchStatus::Accepted | PatchStatus::AcceptedWithExternalChanges => true,
            PatchStatus::Unverified | PatchStatus::Violated => false,
        };
        accepted && self.supports_claims()
    }
}

impl Patch<'_> {
    /// Whether it is not accepted without an analysis, although its profile needs none.
    fn needs_run(&self) -> bool {
        match self.without_run {
            WithoutRun::Accepted => false,
            WithoutRun::AcceptedUnlessCode => self.paths.iter().any(|path| profile::is_code(path)),
            WithoutRun::Unverified => true,
        }
    }
}

pub fn judge(patch: &Patch<'_>) -> Verified {
    let profile = profile::of(patch.paths.iter().map(String::as_str));
    let outside = patch
        .check
        .is_some_and(|check| check.status == ScopeStatus::Violated);
    let scope = outside.then_some(StopReason::ScopeViolation.name());
    if profile == Profile::StateArtifactChange {
        let reason = StopReason::StateArtifactMutation;
        return refused(
            profile,
            reason,
            [reason.name()].into_iter().chain(scope).collect(),
        );
    }
    let Some(before) = patch.before else {
        return unknown(profile, StopReason::NoBeforeRun, not_applicable());
    };
    if outside {
        let reason = StopReason::ScopeViolation;
        return refused(profile, reason, vec![reason.name()]);
    }
    let after = match patch.after {
        After::None if profile == Profile::GovernanceConfig => {
            return unknown(
                profile,
                StopReason::AfterRunRequiredForGovernance,
                not_applicable(),
            );
        }
        After::None if profile.after_run_required() => {
            return unknown(profile, StopReason::NoAfterRun, not_applicable());
        }
        After::None if patch.needs_run() => {
            return unknown(profile, StopReason::NoAfterRun, not_applicable());
        }
        After::None => return accepted_without_structure(profile),
        After::Fresh(after) | After::Stale(after)
            if after.run_id == before.run_id && profile.after_run_required() =>
        {
            return unknown(profile, StopReason::AfterRunNotNew, not_applicable());
        }
        // No analysis describes what such a patch touched: a stale one is as good as none.
        After::Fresh(after) | After::Stale(after)
            if after.run_id == before.run_id
                && profile == Profile::DocumentationOnly
                && !patch.needs_run() =>
        {
            return accepted_without_structure(profile);
        }
        After::Stale(_) if profile == Profile::DocumentationOnly && !patch.needs_run() => {
            return accepted_without_structure(profile);
        }
        After::Stale(_) => return unknown(profile, StopReason::AfterRunStale, not_applicable()),
        After::Fresh(after) => after,
    };
    let mut delta = compare(before.report, after.report);
    if before.root != after.root || before.means != after.means || !delta.comparable {
        delta.comparable = false;
        delta.verdict = DeltaVerdict::Incomparable;
        delta.health_delta = None;
        delta.debt_delta = None;
        return unknown(profile, StopReason::IncomparableRuns, delta);
    }
    weigh(patch, profile, before, after, delta)
}

fn weigh(
    patch: &Patch<'_>,
    profile: Profile,
    before: Side<'_>,
    after: Side<'_>,
    delta: Delta,
) -> Verified {
    let budgets = Budgets::of(patch.strictness, &Asked::default());
    let gates = (
        gate(before.report, Some(before.report), &budgets),
        gate(after.report, Some(before.report), &budgets),
    );
    // Without a scope every path belongs to this change.
    let everything = ["*".to_owned()];
    let entries = patch.scope.unwrap_or(&everything);
    let found = attribute(&delta, entries);
    let caused = match patch.scope {
        Some(_) => found.caused(&gates.0, &gates.1),
        None => gates.1.would_fail,
    };
    let mut violations = Vec::new();
    if !found.intent_regressions.is_empty() {
        violations.push(StopReason::StructuralRegressions.name());
    }
    if caused {
        violations.push(StopReason::GateFailures.name());
    }
    let accepted =
        |side: Side<'_>| gate_against(side.report, &|one| side.baseline.knows(one), &budgets);
    violations.extend(baseline::abuse(&Course {
        before: before.baseline,
        after: after.baseline,
        gates: (&accepted(before), &accepted(after)),
        regressions: delta.regressions.len(),
        paths: patch.paths,
        has_intent: patch.scope.is_some(),
    }));
    let blocking = if patch.strictness == Strictness::Relaxed {
        Vec::new()
    } else {
        violations.clone()
    };
    let fell = !gates.0.would_fail && gates.1.would_fail;
    let external = !found.external_regressions.is_empty() || (fell && !caused);
    let first = |rules: &[&'static str]| {
        let rule = rules.first()?;
        let kind = rule.split_once(':').map_or(*rule, |(kind, _)| kind);
        // Only the baseline adds rules of its own.
        Some(StopReason::parse(kind).unwrap_or(StopReason::BaselineAbuse))
    };
    let reason = first(&blocking);
    let status = match (reason.is_some(), external) {
        (true, _) => PatchStatus::Violated,
        (false, true) => PatchStatus::AcceptedWithExternalChanges,
        (false, false) => PatchStatus::Accepted,
    };
    let ids = |findings: &[&provost_lens::structure::Finding]| -> Vec<String> {
        findings.iter().map(|finding| finding.id.clone()).collect()
    };
    Verified {
        status,
        reason,
        profile,
        intent_regressions: ids(&found.intent_regressions),
        external_regressions: ids(&found.external_regressions),
        intent_worsened: found.intent_worsened.len(),
        external_worsened: found.external_worsened.len(),
        gates: Some(gates),
        caused_gate_failure: caused,
        violations,
        blocking,
        delta,
    }
}

fn plain(
    profile: Profile,
    status: PatchStatus,
    reason: Option<StopReason>,
    delta: Delta,
) -> Verified {
    Verified {
        status,
        reason,
        profile,
        delta,
        intent_regressions: Vec::new(),
        external_regressions: Vec::new(),
        intent_worsened: 0,
        external_worsened: 0,
        gates: None,
        caused_gate_failure: false,
        violations: Vec::new(),
        blocking: Vec::new(),
    }
}

fn unknown(profile: Profile, reason: StopReason, delta: Delta) -> Verified {
    plain(profile, PatchStatus::Unverified, Some(reason), delta)
}

/// The result for a patch that needs no structural check; the check is reported, never counted as
/// passed.
fn accepted_without_structure(profile: Profile) -> Verified {
    plain(profile, PatchStatus::Accepted, None, not_applicable())
}

fn refused(profile: Profile, reason: StopReason, violations: Vec<&'static str>) -> Verified {
    Verified {
        blocking: violations.clone(),
        violations,
        ..plain(
            profile,
            PatchStatus::Violated,
            Some(reason),
            not_applicable(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_lens::structure::sample::{dead, function, report};

    struct Case {
        name: &'static str,
        paths: &'static [&'static str],
        after: u8,
        strictness: Strictness,
        without_run: WithoutRun,
        want: (&'static str, Option<&'static str>),
    }

    /// After: 0 none, 1 the same run, 2 a new one, 3 a stale one, 4 other settings, 5 worse in
    /// scope, 6 worse elsewhere.
    fn run(case: &Case) -> Verified {
        let base = report(vec![function("a.py", "f", 1)], vec![]);
        let mut after = report(vec![function("a.py", "g", 1)], vec![]);
        match case.after {
            5 => after.findings.push(dead("a.py", "g", "s")),
            6 => after.findings.push(dead("b.py", "g", "s")),
            _ => {}
        }
        let side = |run_id, means, report| Side {
            run_id,
            root: "",
            means,
            report,
            baseline: &Seen::Missing,
        };
        let paths: Vec<String> = case.paths.iter().map(|path| (*path).to_owned()).collect();
        judge(&Patch {
            paths: &paths,
            scope: Some(&["a.py".to_owned()]),
            check: None,
            before: Some(side("before", "m", &base)),
            after: match case.after {
                0 => After::None,
                1 => After::Fresh(side("before", "m", &base)),
                3 => After::Stale(side("after", "m", &after)),
                4 => After::Fresh(side("after", "other", &after)),
                _ => After::Fresh(side("after", "m", &after)),
            },
            strictness: case.strictness,
            without_run: case.without_run,
        })
    }

    fn assert_result(case: &Case) {
        let found = run(case);
        let result = (found.status.name(), found.reason.map(StopReason::name));
        assert_eq!(result, case.want, "{}", case.name);
    }

    #[test]
    fn evidence_that_is_left_out_does_not_help() {
        use WithoutRun::{AcceptedUnlessCode, Unverified};
        let missing = ("unverified", Some("no_after_run"));
        let accepted = ("accepted", None);
        let stale = ("unverified", Some("after_run_stale"));
        let cases: [(_, &[&str], _, _, _); 5] = [
            ("code", &["a.js"], 0, AcceptedUnlessCode, missing),
            ("data", &["a.json"], 0, AcceptedUnlessCode, accepted),
            ("violated before", &["a.md"], 0, Unverified, missing),
            ("violated before, stale", &["a.md"], 3, Unverified, stale),
            ("violated before, new", &["a.md"], 2, Unverified, accepted),
        ];
        for (name, paths, after, without_run, want) in cases {
            assert_result(&Case {
                name,
                paths,
                after,
                strictness: Strictness::Ci,
                without_run,
                want,
            });
        }
    }

    #[test]
    fn the_first_that_fits_decides() {
        let case = |name, paths, after, want| Case {
            name,
            paths,
            after,
            strictness: Strictness::Ci,
            without_run: WithoutRun::Accepted,
            want,
        };
        let unknown = |reason| ("unverified", Some(reason));
        let violated = ("violated", Some("structural_regressions"));
        let mut cases = vec![
            case("docs", &["a.md"][..], 0, ("accepted", None)),
            case("other languages", &["a.js"], 0, ("accepted", None)),
            case("python, none", &["a.py"], 0, unknown("no_after_run")),
            case(
                "settings, none",
                &["setup.cfg"],
                0,
                unknown("after_run_required_for_governance"),
            ),
            case("python, old", &["a.py"], 1, unknown("after_run_not_new")),
            case("docs, old", &["a.md"], 1, ("accepted", None)),
            case("stale", &["a.py"], 3, unknown("after_run_stale")),
            case("other settings", &["a.py"], 4, unknown("incomparable_runs")),
            case("fine", &["a.py"], 2, ("accepted", None)),
            case("worse", &["a.py"], 5, violated),
            case(
                "worse elsewhere",
                &["a.py"],
                6,
                ("accepted_with_external_changes", None),
            ),
            case(
                "our own state",
                &["a.py", ".provost/x"],
                2,
                ("violated", Some("state_artifact_mutation")),
            ),
        ];
        cases.push(Case {
            strictness: Strictness::Relaxed,
            ..case("worse, relaxed", &["a.py"], 5, ("accepted", None))
        });
        for case in &cases {
            assert_result(case);
        }
        let relaxed = run(cases.last().unwrap());
        assert_eq!(relaxed.violations, ["structural_regressions"]);
        assert!(relaxed.blocking.is_empty());
    }

    #[test]
    fn without_an_analysis_from_before_nothing_is_accepted() {
        let found = judge(&Patch {
            paths: &["a.md".to_owned()],
            scope: None,
            check: None,
            before: None,
            after: After::None,
            strictness: Strictness::Ci,
            without_run: WithoutRun::Accepted,
        });
        assert_eq!(found.reason, Some(StopReason::NoBeforeRun));
    }
}
