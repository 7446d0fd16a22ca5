//! Decides whether a change is accepted when its agent finishes it.

use std::collections::BTreeSet;

use crate::finish::verify::{self, Verified};
use crate::hygiene::Block;
use crate::intent::{ScopeStatus, State};
use crate::scope::{ChangeScope, ScopeError, normalise};
use provost_core::checkout::CheckoutState;
use provost_core::path::{RawPath, RepoPath};
use provost_core::words;
use serde::Deserialize;

words! {
    #[derive(Deserialize)]
    pub enum FinishStatus {
        /// The evidence, the scope and the structure hold.
        Accepted = "accepted",
        /// This change holds; the checkout also has changes outside of its scope.
        AcceptedWithExternalChanges = "accepted_with_external_changes",
        /// There is not enough evidence to judge by.
        Unverified = "unverified",
        /// The scope, the structure or a gate is violated.
        Violated = "violated",
        /// The time of the intent is over, or the analysis from before differs from the declared one.
        Expired = "expired",
    }
}

impl FinishStatus {
    pub fn is_accepted(self) -> bool {
        matches!(self, Self::Accepted | Self::AcceptedWithExternalChanges)
    }
}

words! {
    /// Why a change is not accepted.
    #[derive(Deserialize)]
    pub enum StopReason {
        /// The intent waits: its agent may not edit yet.
        IntentNotActive = "intent_not_active",
        EditNotAllowed = "edit_not_allowed",
        TtlExpired = "ttl_expired",
        GitUnavailable = "git_unavailable",
        WorkspaceHygiene = "workspace_hygiene",
        ReportDigestMismatch = "report_digest_mismatch",
        NoBeforeRun = "no_before_run",
        NoAfterRun = "no_after_run",
        AfterRunRequiredForGovernance = "after_run_required_for_governance",
        AfterRunNotNew = "after_run_not_new",
        AfterRunStale = "after_run_stale",
        IncomparableRuns = "incomparable_runs",
        StructuralRegressions = "structural_regressions",
        GateFailures = "gate_failures",
        BaselineAbuse = "baseline_abuse",
        ScopeViolation = "scope_violation",
        StateArtifactMutation = "state_artifact_mutation",
    }
}

/// The step at which a finish stopped, and why.
#[derive(Debug, Clone, Copy)]
pub enum Stop<'a> {
    /// The agent may not edit under an intent in this state.
    NotPermitted(State),
    /// Git cannot read the checkout, so no finish is accepted.
    CheckoutUnreadable,
    /// Uncommitted changes block the finish.
    Hygiene(Block),
    /// The digest of the analysis from before differs from the declared one.
    Expired,
    /// The agent touched something that it did not declare.
    Scope,
    /// Every check before the structure passed, and the structure was judged.
    Judged {
        verified: &'a Verified,
        /// Whether the checkout has uncommitted changes that are not part of this change.
        external: bool,
    },
}

/// The answer to a finish of an intent in this state, under which its agent may not edit.
pub fn stopped_at(state: State) -> (FinishStatus, StopReason) {
    match state {
        State::Expired => (FinishStatus::Expired, StopReason::TtlExpired),
        State::Queued => (FinishStatus::Unverified, StopReason::IntentNotActive),
        State::Active | State::Refused | State::Clean | State::Orphaned | State::Replaced => {
            (FinishStatus::Unverified, StopReason::EditNotAllowed)
        }
    }
}

/// The answer to a finish, and its reason.
pub fn conclude(stop: Stop<'_>) -> (FinishStatus, Option<StopReason>) {
    let (status, reason) = match stop {
        Stop::NotPermitted(state) => stopped_at(state),
        Stop::CheckoutUnreadable => (FinishStatus::Unverified, StopReason::GitUnavailable),
        Stop::Hygiene(_) => (FinishStatus::Unverified, StopReason::WorkspaceHygiene),
        Stop::Expired => (FinishStatus::Expired, StopReason::ReportDigestMismatch),
        Stop::Scope => (FinishStatus::Violated, StopReason::ScopeViolation),
        Stop::Judged { verified, external } => {
            let status = match verified.status {
                verify::PatchStatus::Accepted if external => {
                    FinishStatus::AcceptedWithExternalChanges
                }
                verify::PatchStatus::Accepted => FinishStatus::Accepted,
                verify::PatchStatus::AcceptedWithExternalChanges => {
                    FinishStatus::AcceptedWithExternalChanges
                }
                verify::PatchStatus::Unverified => FinishStatus::Unverified,
                verify::PatchStatus::Violated => FinishStatus::Violated,
            };
            return (status, verified.reason);
        }
    };
    (status, Some(reason))
}

pub fn needs_person(stop: Stop<'_>) -> bool {
    match stop {
        Stop::NotPermitted(state) => state == State::Expired,
        Stop::CheckoutUnreadable | Stop::Hygiene(_) | Stop::Expired | Stop::Scope => true,
        Stop::Judged { verified, .. } => verified.status == verify::PatchStatus::Violated,
    }
}

/// Result of a scope check. Paths match the declared ones exactly; forbidden ones match as
/// patterns.
#[derive(Debug, Clone, PartialEq)]
pub struct ScopeCheck {
    pub status: ScopeStatus,
    pub declared: Vec<RepoPath>,
    /// The paths that the agent says it touched.
    pub actual: Vec<RawPath>,
    /// Touched, but not declared.
    pub unexpected: Vec<RawPath>,
    pub forbidden: Vec<RawPath>,
    /// Touched, and declared only as related.
    pub expanded: Vec<RawPath>,
    /// Declared, but not touched.
    pub untouched: Vec<RepoPath>,
}

/// Compares the paths that an agent says it touched with those that it declared.
pub fn check(scope: &ChangeScope, evidence: &BTreeSet<RawPath>) -> ScopeCheck {
    let (mut forbidden, mut unexpected, mut expanded) = (Vec::new(), Vec::new(), Vec::new());
    for path in evidence {
        let named = RepoPath::try_from(path).ok();
        let named = named.filter(|path| scope.names(path));
        if scope.forbids(&path.to_string()) {
            forbidden.push(path.clone());
        } else if let Some(named) = named {
            if !scope.allowed_files.contains(&named) {
                expanded.push(path.clone());
            }
        } else {
            unexpected.push(path.clone());
        }
    }
    let untouched = |path: &&RepoPath| !evidence.contains(&RawPath::from(*path));
    let status = if !forbidden.is_empty() || !unexpected.is_empty() {
        ScopeStatus::Violated
    } else if !expanded.is_empty() {
        ScopeStatus::Expanded
    } else {
        ScopeStatus::Clean
    };
    let declared = || scope.allowed_files.iter().chain(&scope.allowed_related);
    ScopeCheck {
        status,
        actual: evidence.iter().cloned().collect(),
        unexpected,
        forbidden,
        expanded,
        untouched: scope
            .allowed_files
            .iter()
            .filter(untouched)
            .cloned()
            .collect(),
        declared: declared().cloned().collect(),
    }
}

/// Reads the paths that an agent says it touched, as seen from the root `below` the top.
///
/// A path that is not UTF-8 is matched by its `\xNN` form, as in payloads, but only if it is dirty.
pub fn evidence<S: AsRef<str>>(
    entries: &[S],
    below: &str,
    now: Option<&CheckoutState>,
) -> Result<BTreeSet<RawPath>, ScopeError> {
    let escaped = |text: &str| {
        let raw = RawPath::try_from(text.to_owned()).ok()?;
        let raw = if below.is_empty() {
            raw
        } else {
            RawPath::new(below).join(raw.as_bytes())
        };
        let dirty = now?.dirty.contains_key(&raw);
        (dirty && RepoPath::try_from(&raw).is_err()).then_some(raw)
    };
    let mut paths = BTreeSet::new();
    let mut plain: Vec<&str> = Vec::new();
    for entry in entries {
        match escaped(entry.as_ref()) {
            Some(raw) => {
                paths.insert(raw);
            }
            None => plain.push(entry.as_ref()),
        }
    }
    let plain = normalise("changed_files", &plain, below)?;
    paths.extend(plain.iter().map(RawPath::from));
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{checkout, dirty_file};

    fn set(paths: &[&str]) -> BTreeSet<RawPath> {
        paths.iter().map(|path| RawPath::new(*path)).collect()
    }

    #[test]
    fn forbidden_beats_allowed_and_is_not_repeated() {
        let scope = ChangeScope::parse(&["a", "docs/x", "d"], &["r"], &["docs/*"], "").unwrap();
        let cases = [
            (&["a"][..], &[][..], &[][..]),
            (&["a", "r"], &[], &[]),
            (&["a", "b"], &["b"], &[]),
            (&["docs/x"], &[], &["docs/x"]),
            (&["docs/y", "z"], &["z"], &["docs/y"]),
            (&["d/below"], &["d/below"], &[]),
            (&[".provost/x"], &[], &[".provost/x"]),
        ];
        for (touched, unexpected, forbidden) in cases {
            let found = check(&scope, &set(touched));
            assert_eq!(
                found.unexpected.into_iter().collect::<BTreeSet<_>>(),
                set(unexpected)
            );
            assert_eq!(
                found.forbidden.into_iter().collect::<BTreeSet<_>>(),
                set(forbidden)
            );
            let violated = !unexpected.is_empty() || !forbidden.is_empty();
            let status = match (violated, touched.contains(&"r")) {
                (true, _) => ScopeStatus::Violated,
                (false, true) => ScopeStatus::Expanded,
                (false, false) => ScopeStatus::Clean,
            };
            assert_eq!(found.status, status, "{touched:?}");
        }
    }

    #[test]
    fn a_path_that_is_no_text_can_be_reported() {
        let now = checkout(&[]);
        let mut now = now;
        now.dirty
            .insert(RawPath::new(b"d/\xff".to_vec()), dirty_file("??", "-", "1"));
        let read = evidence(&["d/\\xff", "./a"], "", Some(&now)).unwrap();
        assert!(read.contains(&RawPath::new(b"d/\xff".to_vec())));
        assert!(read.contains(&RawPath::new("a")));
        assert!(evidence(&["../a"], "", None).is_err());
        assert!(
            evidence(&["a"], "sub", None)
                .unwrap()
                .contains(&RawPath::new("sub/a"))
        );
    }

    #[test]
    fn each_stop_has_its_answer() {
        let cases = [
            (
                Stop::NotPermitted(State::Queued),
                FinishStatus::Unverified,
                StopReason::IntentNotActive,
                false,
            ),
            (
                Stop::NotPermitted(State::Expired),
                FinishStatus::Expired,
                StopReason::TtlExpired,
                true,
            ),
            (
                Stop::CheckoutUnreadable,
                FinishStatus::Unverified,
                StopReason::GitUnavailable,
                true,
            ),
            (
                Stop::Hygiene(Block::MissingEvidence),
                FinishStatus::Unverified,
                StopReason::WorkspaceHygiene,
                true,
            ),
            (
                Stop::Expired,
                FinishStatus::Expired,
                StopReason::ReportDigestMismatch,
                true,
            ),
            (
                Stop::Scope,
                FinishStatus::Violated,
                StopReason::ScopeViolation,
                true,
            ),
        ];
        for (stop, status, reason, person) in cases {
            assert_eq!(conclude(stop), (status, Some(reason)));
            assert_eq!(needs_person(stop), person);
            assert!(!status.is_accepted());
        }
    }
}
