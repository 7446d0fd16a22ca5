//! Finishes a change: judges the edits against the declared scope and seals the result.
//!
//! The rules are in `docs/change-control.md`.

use std::collections::BTreeSet;

use crate::analysis::run::{RunHead, find, settings_digest};
use crate::answer::{Finished, Offered};
use crate::conflict::peers;
use crate::evidence::{BASELINE, BEFORE};
use crate::finish::claims;
use crate::finish::decide::{self as rules, FinishStatus, Stop, conclude};
use crate::finish::verify::{self, After, Patch, Side, judge};
use crate::hygiene::{AtFinish, Finishing, HygieneStrictness};
use crate::intent::{Intent, ScopeStatus, State};
use crate::next_step::NextStep;
use crate::receipt::compose::{PatchTrail, inside};
use crate::request::{Evidence, FinishRequest, Wanted};
use crate::scope::Relation;
use provost_core::checkout::CheckoutState;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_lens::structure::Report;
use provost_lens::structure::baseline::Seen;
use provost_lens::structure::profile;

use crate::analysis::queries::root_relative;
use crate::finish::record::{
    record_accepted_files, record_scope_check, record_undeclared_paths, record_violation,
};
use crate::manage::perform::close;
use crate::receipt::store::{store_receipt, write_down};
use crate::service::{ChangeError, Ports, Session, altered, is_closed, wrong};
use crate::unfinished_work::find::with_later_findings;

pub fn finish(
    ports: &mut Ports<'_>,
    session: &Session,
    request: &FinishRequest,
) -> Result<Finished, ChangeError> {
    let intent = ports.own(session, &request.intent_id)?;
    match intent.state {
        State::Active | State::Queued | State::Refused | State::Expired => {}
        State::Clean | State::Orphaned | State::Replaced => return is_closed(&intent),
    }
    let mut done = undecided(intent, request);
    if !done.intent.may_edit() {
        if let Evidence::Files(files) = &request.evidence {
            rules::evidence(files, &done.intent.root, None)?;
        }
        let why = Stop::NotPermitted(done.intent.state);
        return stop(ports, done, why);
    }
    let workspace = match ports.checkout.workspace() {
        Ok(workspace) => workspace,
        Err(error) => {
            done.blind = Some(error.verdict().reason);
            return stop(ports, done, Stop::CheckoutUnreadable);
        }
    };
    let evidence = resolve(ports, &done.intent, &request.evidence, &workspace)?;
    done.evidence = evidence.iter().cloned().collect();
    done.intent = record_undeclared_paths(ports, &done.intent, &evidence)?;
    let hygiene = look(ports, session, &done.intent, &evidence, &workspace)?;
    let block = hygiene.block;
    done.hygiene = Some(hygiene);
    done.workspace = Some(workspace);
    if let Some(block) = block {
        return stop(ports, done, Stop::Hygiene(block));
    }
    let Some(before) = before(ports, &done.intent)? else {
        done.workspace = None;
        done.hygiene = None;
        return stop(ports, done, Stop::Expired);
    };
    let check = rules::check(&done.intent.scope, &evidence);
    done.intent = record_scope_check(ports, &done.intent, check.status)?;
    if let Some(workspace) = &done.workspace {
        done.intent = with_later_findings(ports, done.intent, workspace)?;
        done.strictness = done.intent.strictness(request.strictness);
    }
    if check.status == ScopeStatus::Violated {
        done.trail = Some(PatchTrail::sealed(&done.intent, &check, None));
        done.check = Some(check);
        done.hygiene = None;
        done.workspace = None;
        return stop(ports, done, Stop::Scope);
    }
    done.check = Some(check);
    done.before = Some((done.intent.run_id.clone(), before));
    let after = judge_structure(ports, request, &evidence, &mut done)?;
    complete(ports, session, request, after.as_ref(), done)
}

fn undecided(intent: Intent, request: &FinishRequest) -> Finished {
    let strictness = intent.strictness(request.strictness);
    Finished {
        intent,
        status: FinishStatus::Unverified,
        reason: None,
        needs_person: false,
        next_step: None,
        cleared: false,
        workspace: None,
        hygiene: None,
        evidence: Vec::new(),
        check: None,
        verified: None,
        before: None,
        after: None,
        claims: None,
        receipt: None,
        receipt_error: None,
        trail: None,
        offered: Offered {
            claims: request.claims.is_some(),
            review: request.review.is_some(),
            strictness: request.strictness,
        },
        strictness,
        blind: None,
    }
}

/// Ends a finish that could not be judged, and appends that to the chain.
fn stop(
    ports: &mut Ports<'_>,
    mut done: Finished,
    stop: Stop<'_>,
) -> Result<Finished, ChangeError> {
    (done.status, done.reason) = conclude(stop);
    done.needs_person = rules::needs_person(stop);
    done.next_step = match stop {
        Stop::Hygiene(block) => {
            let staged = done.hygiene.as_ref().map(|found| found.staged.clone());
            Some(NextStep::Unblock(block, staged.unwrap_or_default()))
        }
        _ => done.reason.map(NextStep::After),
    };
    write_down(ports, &done, None, &[])?;
    Ok(done)
}

/// The paths that the evidence names; an error if it names none.
fn resolve(
    ports: &Ports<'_>,
    intent: &Intent,
    evidence: &Evidence,
    workspace: &CheckoutState,
) -> Result<BTreeSet<RawPath>, ChangeError> {
    let paths = changed(ports, &intent.root, evidence, workspace)?;
    if paths.is_empty() {
        return wrong("the evidence names no file that changed");
    }
    Ok(paths)
}

pub(crate) fn changed(
    ports: &Ports<'_>,
    root: &str,
    evidence: &Evidence,
    workspace: &CheckoutState,
) -> Result<BTreeSet<RawPath>, ChangeError> {
    match evidence {
        Evidence::Files(files) => Ok(rules::evidence(files, root, Some(workspace))?),
        Evidence::DiffRef(rev) => {
            let tree = match ports.checkout.tree_of(rev) {
                Ok(tree) => tree,
                Err(error) => return wrong(error.verdict().reason),
            };
            let moved = ports
                .checkout
                .moved(Some(&tree), workspace.tree.as_deref())?;
            let mut paths = workspace.since(&moved);
            let below = format!("{root}/");
            paths.retain(|path| root.is_empty() || path.as_bytes().starts_with(below.as_bytes()));
            Ok(paths)
        }
    }
}

fn look(
    ports: &mut Ports<'_>,
    session: &Session,
    intent: &Intent,
    evidence: &BTreeSet<RawPath>,
    workspace: &CheckoutState,
) -> Result<AtFinish, ChangeError> {
    let known = ports.registry.look(None)?;
    let start = intent.snapshot.as_ref();
    let moved = match start {
        Some(start) => {
            let before = start.workspace.tree.as_deref();
            ports.checkout.moved(before, workspace.tree.as_deref())?
        }
        None => provost_core::checkout::Moved::new(),
    };
    let viewer = ports.viewer(session, ports.clock.millis());
    let others = peers(&known.intents, &known.leases, &viewer);
    Ok(AtFinish::look(&Finishing {
        scope: &intent.scope,
        evidence,
        now: workspace,
        start,
        moved: &moved,
        peers: &others,
        strictness: if session.strict_finish {
            HygieneStrictness::Strict
        } else {
            HygieneStrictness::Lenient
        },
    }))
}

/// The analysis from before the change, if it still has the digest that was declared.
pub(crate) fn before(ports: &Ports<'_>, intent: &Intent) -> Result<Option<Report>, ChangeError> {
    let Some(kept) = ports.evidence.get(&intent.intent_id, BEFORE)? else {
        return Ok(None);
    };
    if sha256(&kept) != intent.report_digest {
        return Ok(None);
    }
    Ok(json::parse_own(&kept).ok())
}

/// The baseline as the analysis from before the change saw it.
pub(crate) fn baseline(ports: &Ports<'_>, intent: &Intent) -> Result<Seen, ChangeError> {
    let Some(digest) = &intent.baseline_sha256 else {
        return Ok(Seen::Missing);
    };
    let kept = ports.evidence.get(&intent.intent_id, BASELINE)?;
    let kept = kept.filter(|kept| sha256(kept) == *digest);
    let seen = kept.and_then(|kept| json::parse_own(&kept).ok());
    Ok(seen.ok_or_else(|| altered("the baseline from before"))?)
}

/// Judges the change; also gives the run from after it, if there is one.
fn judge_structure(
    ports: &mut Ports<'_>,
    request: &FinishRequest,
    evidence: &BTreeSet<RawPath>,
    done: &mut Finished,
) -> Result<Option<RunHead>, ChangeError> {
    let heads = ports.analyses.heads()?;
    let root = done.intent.root.clone();
    let paths: Vec<String> = evidence
        .iter()
        .map(|path| inside(&root, &path.to_string()))
        .collect();
    let means = done
        .before
        .as_ref()
        .map(|(_, report)| settings_digest(report))
        .unwrap_or_default();
    let named = request.after_run.as_ref();
    let head = match named.and_then(|name| find(&heads, name).ok()) {
        Some(head) => Some(head.clone()),
        None if profile::of(paths.iter().map(String::as_str)).after_run_required() => None,
        None => newest_fresh_analysis(ports, &heads, &means, evidence, done)?,
    };
    let after = match &head {
        Some(head) => Some((head.clone(), ports.analyses.report(head)?)),
        None => None,
    };
    let stale = match (&head, &done.workspace) {
        (Some(head), Some(now)) => is_stale(ports, head, now, &done.intent, evidence)?,
        _ => false,
    };
    let scope = root_relative(&root, &done.intent.scope);
    let side = after.as_ref().map(|(head, report)| Side {
        run_id: &head.run_id,
        root: &head.root,
        means: &head.means,
        report,
        baseline: &head.baseline,
    });
    let accepted = baseline(ports, &done.intent)?;
    let verified = judge(&Patch {
        paths: &paths,
        scope: Some(&scope),
        check: done.check.as_ref(),
        before: done.before.as_ref().map(|(run_id, report)| Side {
            run_id,
            root: &root,
            means: &means,
            report,
            baseline: &accepted,
        }),
        after: match side {
            None => After::None,
            Some(side) if stale => After::Stale(side),
            Some(side) => After::Fresh(side),
        },
        strictness: done.strictness,
        without_run: done.intent.without_run(),
    });
    if verified.status == verify::PatchStatus::Violated && side.is_some() {
        done.intent = record_violation(ports, &done.intent)?;
    }
    done.verified = Some(verified);
    if let Some((head, report)) = after {
        done.after = Some((head.run_id, report));
    }
    Ok(head)
}

/// The newest analysis of this session that describes what is on disk. A finish that names none is
/// judged by it, so that leaving it out does not help.
fn newest_fresh_analysis(
    ports: &Ports<'_>,
    heads: &[RunHead],
    means: &str,
    evidence: &BTreeSet<RawPath>,
    done: &Finished,
) -> Result<Option<RunHead>, ChangeError> {
    let Some(now) = &done.workspace else {
        return Ok(None);
    };
    let comparable = |head: &&RunHead| head.root == done.intent.root && head.means == means;
    let mut known: Vec<&RunHead> = heads.iter().filter(comparable).collect();
    known.sort_by_key(|head| std::cmp::Reverse(head.taken_at));
    for head in known {
        if !is_stale(ports, head, now, &done.intent, evidence)? {
            return Ok(Some(head.clone()));
        }
    }
    Ok(None)
}

/// Whether a run does not describe the files that this change left on disk.
fn is_stale(
    ports: &Ports<'_>,
    head: &RunHead,
    now: &CheckoutState,
    intent: &Intent,
    evidence: &BTreeSet<RawPath>,
) -> Result<bool, ChangeError> {
    let moved = ports
        .checkout
        .moved(head.workspace.tree.as_deref(), now.tree.as_deref())?;
    let differs = head.workspace.differences(now, &moved);
    let mine = |path: &RawPath| {
        evidence.contains(path) || intent.scope.relation(path) != Relation::Outside
    };
    Ok(differs.iter().any(mine))
}

/// Draws the conclusions of a judgement: trail, claims, receipt and the new state of the intent.
fn complete(
    ports: &mut Ports<'_>,
    session: &Session,
    request: &FinishRequest,
    after: Option<&RunHead>,
    mut done: Finished,
) -> Result<Finished, ChangeError> {
    let Some(verified) = done.verified.take() else {
        return Ok(done);
    };
    let external = done
        .hygiene
        .as_ref()
        .is_some_and(|hygiene| !hygiene.external().is_empty());
    let judged = Stop::Judged {
        verified: &verified,
        external,
    };
    (done.status, done.reason) = conclude(judged);
    done.needs_person = rules::needs_person(judged);
    done.next_step = done.reason.map(NextStep::After);
    if let Some(check) = &done.check {
        done.trail = Some(PatchTrail::sealed(&done.intent, check, Some(&verified)));
    }
    let accepted = done.status.is_accepted();
    let recommended = accepted && verified.supports_claims();
    if let Some(text) = request.claims.as_ref().filter(|_| recommended) {
        done.claims = Some(claims::judge(
            text,
            &claims::ClaimFacts {
                report: done.after.as_ref().map(|(_, report)| report),
                earlier: done.before.as_ref().map(|(_, report)| report),
                health_delta: verified.delta.health_delta,
                wants_citations: true,
            },
        ));
    }
    done.verified = Some(verified);
    let mut files = Vec::new();
    if accepted && request.receipt == Wanted::Yes {
        match store_receipt(ports, request, after, &done) {
            Ok((receipt, kept)) => {
                done.receipt = Some(receipt);
                files = kept;
            }
            Err(error) => done.receipt_error = Some(error.to_string()),
        }
    }
    match write_down(ports, &done, after, &files) {
        Ok(()) => {}
        Err(error) if done.receipt.is_some() => {
            // The verdict has no seal: the intent stays open, so that the agent can finish again.
            done.receipt_error = Some(error.to_string());
            done.receipt = None;
        }
        Err(error) => return Err(error),
    }
    if let Some(workspace) = done.workspace.as_ref().filter(|_| accepted) {
        done.intent = record_accepted_files(ports, &done.intent, workspace)?;
    }
    if accepted && done.receipt_error.is_none() && request.clear == Wanted::Yes {
        let id = done.intent.intent_id.clone();
        let closed = close(ports, session, &[id], done.workspace.as_ref())?;
        done.cleared = !closed.is_empty();
        ports.note_closed(&closed);
    }
    Ok(done)
}
