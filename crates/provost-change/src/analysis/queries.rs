//! Answers questions that change nothing: budgets, comparisons, reach, claims, receipts.

use std::collections::BTreeSet;

use crate::analysis::run::{RunHead, find, newest, settings_digest};
use crate::answer::{Budget, Compared, Gated, Looked};
use crate::finish::claims::{self, ClaimText, ClaimsVerdict};
use crate::finish::decide::{FinishStatus, check};
use crate::finish::verify::{self, After, Patch, Side, WithoutRun, judge};
use crate::intent::{Intent, State};
use crate::receipt::compose::{self, Receipt, ReceiptFacts, inside};
use crate::request::{Evidence, VerifyRequest};
use crate::scope::ChangeScope;
use provost_core::checkout::CheckoutState;
use provost_core::path::{RawPath, RepoPath};
use provost_lens::structure::Report;
use provost_lens::structure::baseline::Seen;
use provost_lens::structure::blast::{Blast, Depth, Level, radius};
use provost_lens::structure::budget::{Asked, Budgets, Headroom, Standing, Strictness, gate};
use provost_lens::structure::compare as structure;
use provost_lens::structure::gates::{Switches, evaluate};
use provost_lens::structure::health::Points;

use crate::finish::perform::{baseline, before, changed};
use crate::finish::record::record_violation;
use crate::service::{ChangeError, Ports, Session, altered, wrong};
use crate::unfinished_work::find::with_later_findings;

pub(crate) fn budget_of(report: &Report, strictness: Strictness) -> Budget {
    let budgets = Budgets::of(strictness, &Asked::default());
    let standing = Standing::of(report);
    Budget {
        strictness,
        headroom: Headroom::of(&budgets, &standing),
        gate: gate(report, Some(report), &budgets),
        budgets,
        standing,
    }
}

/// The budget of a run, and the intent that it is asked for.
pub fn budget(
    ports: &mut Ports<'_>,
    session: &Session,
    run: Option<&str>,
    intent_id: Option<&str>,
    strictness: Strictness,
) -> Result<(String, Budget, Option<Intent>), ChangeError> {
    let intent = match intent_id {
        Some(id) => Some(ports.own(session, id)?),
        None => None,
    };
    if let Some(id) = intent_id {
        crate::manage::perform::touch(ports, session, id)?;
    }
    let named = run.or(intent.as_ref().map(|intent| intent.run_id.as_str()));
    let head = pick(ports, named)?;
    let report = ports.analyses.report(&head)?;
    Ok((head.run_id, budget_of(&report, strictness), intent))
}

/// The run called `name`, or the newest.
fn pick(ports: &Ports<'_>, name: Option<&str>) -> Result<RunHead, ChangeError> {
    let heads = ports.analyses.heads()?;
    match name {
        Some(name) => Ok(find(&heads, name)?.clone()),
        None => match heads.iter().max_by_key(|head| head.taken_at) {
            Some(head) => Ok(head.clone()),
            None => wrong("this session has no run yet: analyse the repository first"),
        },
    }
}

/// The paths that a caller reports as touched, relative to the analysed root.
pub fn touched(
    ports: &mut Ports<'_>,
    root: &str,
    evidence: &Evidence,
) -> Result<BTreeSet<String>, ChangeError> {
    let workspace = ports.checkout.workspace()?;
    let paths = changed(ports, root, evidence, &workspace)?;
    Ok(paths
        .iter()
        .map(|path| inside(root, &path.to_string()))
        .collect())
}

/// Compares a run with limits, each of which is switched on separately.
pub fn gates(
    ports: &mut Ports<'_>,
    run: Option<&str>,
    switches: &Switches,
) -> Result<Gated, ChangeError> {
    let head = pick(ports, run)?;
    let report = ports.analyses.report(&head)?;
    Ok(Gated {
        gate: evaluate(&report, &head.baseline, switches),
        baseline: head.baseline.describe(&report),
        run_id: head.run_id,
    })
}

/// How far changes of `files` reach.
pub fn blast(
    ports: &mut Ports<'_>,
    run: Option<&str>,
    files: &[String],
    depth: Depth,
) -> Result<(String, Blast), ChangeError> {
    let head = pick(ports, run)?;
    let report = ports.analyses.report(&head)?;
    let entries = crate::scope::normalise("files", files, "")?;
    let entries: Vec<&str> = entries.iter().map(RepoPath::as_str).collect();
    Ok((head.run_id, radius(&report, &entries, depth)))
}

pub(crate) fn level_word(level: Level) -> &'static str {
    match level {
        Level::Low => "low",
        Level::Medium => "medium",
        Level::High => "high",
    }
}

/// The declared paths, relative to the analysed root.
pub(crate) fn root_relative(root: &str, scope: &ChangeScope) -> Vec<String> {
    let entries = scope.allowed_files.iter().chain(&scope.allowed_related);
    entries.map(|path| inside(root, path.as_str())).collect()
}

/// Compares two runs of this session; without a second one, with the newest.
pub fn compare(
    ports: &mut Ports<'_>,
    before: &str,
    after: Option<&str>,
) -> Result<Compared, ChangeError> {
    let before = pick(ports, Some(before))?;
    let after = if after.is_some() {
        pick(ports, after)?
    } else {
        let heads = ports.analyses.heads()?;
        let newest = newest(&heads, &before.root).cloned();
        newest.unwrap_or(before.clone())
    };
    let mut delta = structure::compare(
        &ports.analyses.report(&before)?,
        &ports.analyses.report(&after)?,
    );
    if before.root != after.root {
        delta.comparable = false;
        delta.verdict = structure::DeltaVerdict::Incomparable;
        delta.health_delta = None;
        delta.debt_delta = None;
    }
    Ok(Compared {
        before,
        after,
        delta,
    })
}

/// Checks the claims of a text against a run.
pub fn claims(
    ports: &mut Ports<'_>,
    text: &str,
    run: Option<&str>,
    wants_citations: bool,
    health_delta: Option<Points>,
) -> Result<ClaimsVerdict, ChangeError> {
    let text = ClaimText::try_from(text)?;
    let head = pick(ports, run)?;
    let report = ports.analyses.report(&head)?;
    Ok(claims::judge(
        &text,
        &claims::ClaimFacts {
            report: Some(&report),
            earlier: None,
            health_delta,
            wants_citations,
        },
    ))
}

/// Judges a patch without finishing the change.
pub fn verify(
    ports: &mut Ports<'_>,
    session: &Session,
    request: &VerifyRequest,
) -> Result<Looked, ChangeError> {
    let intent = match &request.intent_id {
        Some(id) => Some(ports.own(session, id)?),
        None => None,
    };
    if let Some(intent) = &intent {
        crate::manage::perform::touch(ports, session, &intent.intent_id)?;
        if intent.state != State::Active {
            return Ok(not_active(intent, intent.strictness(request.strictness)));
        }
    }
    let root = intent
        .as_ref()
        .map(|intent| intent.root.clone())
        .unwrap_or_default();
    let workspace = ports.checkout.workspace()?;
    let intent = intent
        .map(|intent| with_later_findings(ports, intent, &workspace))
        .transpose()?;
    let evidence = match &request.evidence {
        Some(evidence) => changed(ports, &root, evidence, &workspace)?,
        None => BTreeSet::new(),
    };
    let scope = intent.as_ref().map(|intent| &intent.scope);
    let check = scope.map(|scope| check(scope, &evidence));
    let first = first(ports, request, intent.as_ref())?;
    let last = last(ports, request.after_run.as_deref())?;
    let stale = match &last {
        Some((head, _)) => differs(ports, head, &workspace, &evidence)?,
        None => false,
    };
    let scope = scope.map(|scope| root_relative(&root, scope));
    let paths: Vec<String> = evidence
        .iter()
        .map(|path| inside(&root, &path.to_string()))
        .collect();
    let side = last.as_ref().map(|(head, report)| Side {
        run_id: &head.run_id,
        root: &head.root,
        means: &head.means,
        report,
        baseline: &head.baseline,
    });
    let strictness = strictness(intent.as_ref(), request);
    let verified = judge(&Patch {
        paths: &paths,
        scope: scope.as_deref(),
        check: check.as_ref(),
        before: first.as_ref().map(First::side),
        after: match side {
            None => After::None,
            Some(side) if stale => After::Stale(side),
            Some(side) => After::Fresh(side),
        },
        strictness,
        without_run: intent
            .as_ref()
            .map_or(WithoutRun::Accepted, Intent::without_run),
    });
    let intent = remember_violation(ports, intent, &verified, side.is_some())?;
    let health = |report: &Report| report.health.as_ref().map(|health| health.points);
    Ok(Looked {
        verified: Some(verified),
        intent,
        check,
        before: first.map(|first| (first.run_id, health(&first.report))),
        after: last.map(|(head, report)| (head.run_id, health(&report))),
        strictness,
    })
}

fn strictness(intent: Option<&Intent>, request: &VerifyRequest) -> Strictness {
    match intent {
        Some(intent) => intent.strictness(request.strictness),
        None => request.strictness.unwrap_or_default(),
    }
}

/// Stores in the record of the intent that an analysis from after an edit showed a violation.
fn remember_violation(
    ports: &mut Ports<'_>,
    intent: Option<Intent>,
    verified: &verify::Verified,
    has_run: bool,
) -> Result<Option<Intent>, ChangeError> {
    match intent {
        Some(own) if verified.status == verify::PatchStatus::Violated && has_run => {
            record_violation(ports, &own).map(Some)
        }
        intent => Ok(intent),
    }
}

/// The answer for an intent under which no agent may edit.
fn not_active(intent: &Intent, strictness: Strictness) -> Looked {
    Looked {
        verified: None,
        intent: Some(intent.clone()),
        check: None,
        before: None,
        after: None,
        strictness,
    }
}

/// The analysis from after the change, if this session has it.
fn last(ports: &Ports<'_>, name: Option<&str>) -> Result<Option<(RunHead, Report)>, ChangeError> {
    let heads = ports.analyses.heads()?;
    match name.and_then(|name| find(&heads, name).ok()) {
        Some(head) => Ok(Some((head.clone(), ports.analyses.report(head)?))),
        None => Ok(None),
    }
}

/// Whether one of `paths` differs from what a run saw.
fn differs(
    ports: &Ports<'_>,
    head: &RunHead,
    now: &CheckoutState,
    paths: &BTreeSet<RawPath>,
) -> Result<bool, ChangeError> {
    let (before, after) = (head.workspace.tree.as_deref(), now.tree.as_deref());
    let moved = ports.checkout.moved(before, after)?;
    let differs = head.workspace.differences(now, &moved);
    Ok(differs.iter().any(|path| paths.contains(path)))
}

/// The analysis from before the change.
struct First {
    run_id: String,
    root: String,
    means: String,
    report: Report,
    baseline: Seen,
}

impl First {
    fn side(&self) -> Side<'_> {
        Side {
            run_id: &self.run_id,
            root: &self.root,
            means: &self.means,
            report: &self.report,
            baseline: &self.baseline,
        }
    }
}

fn first(
    ports: &Ports<'_>,
    request: &VerifyRequest,
    intent: Option<&Intent>,
) -> Result<Option<First>, ChangeError> {
    if let Some(intent) = intent {
        let report = before(ports, intent)?.ok_or_else(|| altered("the analysis from before"))?;
        return Ok(Some(First {
            run_id: intent.run_id.clone(),
            root: intent.root.clone(),
            means: settings_digest(&report),
            report,
            baseline: baseline(ports, intent)?,
        }));
    }
    match &request.before_run {
        Some(name) => {
            let head = pick(ports, Some(name))?;
            let report = ports.analyses.report(&head)?;
            Ok(Some(First {
                run_id: head.run_id,
                root: head.root,
                means: head.means,
                report,
                baseline: head.baseline,
            }))
        }
        None => Ok(None),
    }
}

/// The intent of this session called by name, or the newest that began from `run`.
pub fn meant(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: Option<&str>,
    run: Option<&str>,
) -> Result<String, ChangeError> {
    if let Some(id) = intent_id {
        return Ok(ports.own(session, id)?.intent_id);
    }
    let head = pick(ports, run)?;
    let known = ports.registry.look(None)?;
    let began = |one: &Intent| one.owner == session.me && one.run_id == head.run_id;
    let newest = known.intents.into_iter().rfind(began);
    match newest {
        Some(intent) => Ok(intent.intent_id),
        None => {
            wrong("no open intent of this session began from that run: name one by `intent_id`")
        }
    }
}

/// A receipt for an unfinished intent: what is known about it at this moment.
pub fn make_receipt(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
) -> Result<(Receipt, String), ChangeError> {
    let intent = ports.own(session, intent_id)?;
    let workspace = ports.checkout.workspace()?;
    let nothing = BTreeSet::new();
    let found = check(&intent.scope, &nothing);
    let verified = judge(&Patch {
        paths: &[],
        scope: None,
        check: None,
        before: None,
        after: After::None,
        strictness: Strictness::Ci,
        without_run: WithoutRun::Unverified,
    });
    let digest = workspace.digest();
    let receipt = Receipt::of(&ReceiptFacts {
        intent: &intent,
        run_id: &intent.run_id,
        after_run_id: None,
        at: ports.clock.millis(),
        status: FinishStatus::Unverified,
        check: &found,
        verified: &verified,
        strictness: Strictness::Ci,
        external: &[],
        not_changed: &[],
        workspace_digest: &digest,
        baseline_health: None,
        tree: workspace.tree.as_deref(),
        review: None,
    });
    let value = compose::digest(&receipt);
    Ok((receipt, value))
}
