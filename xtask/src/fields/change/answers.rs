//! Answers of change control, for cases that together have every possible field.
//!
//! The rules of the core decide their content, and the writers that serve agents write them; only
//! the checkout, the agents and the analyses are made up.

mod scene;

use std::collections::BTreeSet;

use provost_change::analysis::run::RunHead;
use provost_change::answer::{Budget, Compared, Finished, Looked, Offered, Started, Unread};
use provost_change::conflict::{Peer, conflicts, exclusions, peers};
use provost_change::finish::claims;
use provost_change::finish::decide::{self as finish, FinishStatus, Stop, conclude, needs_person};
use provost_change::finish::verify::{After, Patch, Side, Verified, judge};
use provost_change::hygiene::{AtFinish, AtStart, Finishing, HygieneStrictness};
use provost_change::intent::{Intent, ScopeStatus, State};
use provost_change::next_step::{Audience, NextStep};
use provost_change::queue::{position, waiting};
use provost_change::receipt::compose::{PatchTrail, Receipt, ReceiptFacts, digest};
use provost_change::request::{FinishRequest, StartRequest};
use provost_change::scope::ChangeScope;
use provost_change::start::decide::{Seen, StartStatus, advice, continues, decide};
use provost_change::tools::Request;
use provost_change::tools::answers::{
    ComparedRuns, Detail, FinishPayload, Focus, FoundReceipt, LookPayload, Lookup, ReceiptLookup,
    RunBudget, StartPayload, StartView,
};
use provost_change::tools::arguments::{ReceiptFormat, Shown};
use provost_core::checkout::{CheckoutState, Moved};
use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_lens::structure::Report;
use provost_lens::structure::baseline;
use provost_lens::structure::blast::radius;
use provost_lens::structure::budget::{Asked, Budgets, Headroom, Standing, Strictness, gate};
use provost_lens::structure::compare::compare;
use serde::Serialize;
use serde_json::{Map, Value, json};

use scene::{
    Answer, DIRTY, DIRTY_AFTER, FORGOTTEN, MINE, NOW, THEIRS, intent, other, report, seen, text,
    workspace,
};

/// The answers of `tool` in every case that has fields of its own.
pub(super) fn of(tool: &str) -> Answer<Vec<Value>> {
    match tool {
        "start_controlled_change" => starts(),
        "finish_controlled_change" => finishes(),
        "check_patch_contract" => looks(),
        "compare_runs" => compared().map(|one| vec![one]),
        "get_review_receipt" => receipts(),
        _ => Err(format!("no answers of `{tool}`")),
    }
}

fn written(payload: impl Serialize) -> Answer<Value> {
    serde_json::to_value(payload).map_err(text)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn starts() -> Answer<Vec<Value>> {
    let (clean, dirty) = (workspace(&[]), workspace(&[(MINE, Some("x"))]));
    let beside = [
        other(2, THEIRS, &[MINE], State::Active)?,
        other(3, MINE, &[], State::Queued)?,
    ];
    let rival = [other(4, MINE, &[], State::Active)?];
    let request = |on_conflict: &str| {
        let asked = json!({
            "root": ".", "intent": "fix it", "on_conflict": on_conflict,
            "scope": { "allowed_files": [MINE], "allowed_related": [FORGOTTEN] },
            "dirty_scope_policy": "continue_own_wip", "blast_radius_depth": "transitive",
        });
        match Request::read("start_controlled_change", &object(asked)).map_err(text)? {
            Request::Start(asked) => asked.request("").map_err(text),
            _ => Err("this is no start".to_owned()),
        }
    };
    let (block, queue) = (request("block")?, request("queue")?);
    let mut replay = started(&block, &[], &clean)?;
    replay.replay = true;
    let drifted = Started::needs_analysis(vec![RawPath::new(MINE)]);
    let answers = [
        started(&block, &beside, &clean)?,
        started(&block, &[], &dirty)?,
        started(&block, &rival, &dirty)?,
        started(&queue, &rival, &clean)?,
        replay,
        drifted,
        Started::unseen("there is no repository".to_owned()),
    ];
    let write = |answer: &Started| {
        written(StartPayload::of(StartView {
            answer,
            request: &block,
            detail: Detail::Full,
            root: ".",
            now: NOW,
        }))
    };
    answers.iter().map(write).collect()
}

fn started(request: &StartRequest, others: &[Intent], now: &CheckoutState) -> Answer<Started> {
    let peers: Vec<Peer> = seen(|viewer| peers(others, &[], viewer));
    let found = conflicts(&request.scope, &peers);
    let hygiene = AtStart::look(&request.scope, now, &peers);
    let status = decide(
        &found,
        Seen::All(&hygiene),
        request.on_conflict,
        request.policy,
    );
    let state = match status {
        StartStatus::Active => State::Active,
        StartStatus::Queued => State::Queued,
        StartStatus::Blocked | StartStatus::NeedsAnalysis => State::Refused,
    };
    let intent = intent(1, request.scope.clone(), state)?;
    let before = report(1, None)?;
    Ok(Started {
        exclusions: exclusions(&request.scope, &peers),
        waiting: seen(|viewer| waiting(&intent, others, viewer)),
        total_agents: 1 + peers.len(),
        stale_count: 0,
        position: seen(|viewer| position(&intent, others, viewer)),
        continuing: status == StartStatus::Active && continues(&hygiene, request.policy),
        blind: None,
        drifted: Vec::new(),
        blast: Some(radius(&before, &[MINE], request.depth)),
        blast_digest: Some(sha256(b"blast")),
        budget: Some(budget(&before)),
        replay: false,
        replaced: vec!["intent-0".to_owned()],
        next_step: (status != StartStatus::Active).then(|| advice(&found, Seen::All(&hygiene))),
        unread: vec![Unread {
            intent_id: "intent-9".to_owned(),
            why: "it is of a later version".to_owned(),
        }],
        hygiene: Some(hygiene),
        conflicts: found,
        intent: Some(intent),
        status,
    })
}

fn budget(report: &Report) -> Budget {
    // The strictness that has every limit.
    let strictness = Strictness::Strict;
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

fn budget_asked() -> Answer<Value> {
    let before = report(1, None)?;
    let own = other(1, MINE, &[], State::Active)?;
    written(RunBudget::of(&own.run_id, &budget(&before), Some(&own)))
}

/// The verdict on a change of [`MINE`], if an unused function appeared in `dead`.
fn verified(dead: &str, check: &finish::ScopeCheck) -> Answer<(Verified, Report, Report)> {
    let (before, after) = (report(1, None)?, report(60, Some(dead))?);
    let (name_before, name_after) = (before.digest(), after.digest());
    let verified = judge(&Patch {
        paths: &[MINE.to_owned()],
        scope: Some(&[MINE.to_owned()]),
        check: Some(check),
        before: Some(side(&name_before, &before)),
        after: After::Fresh(side(&name_after, &after)),
        strictness: Strictness::default(),
        without_run: provost_change::finish::verify::WithoutRun::Accepted,
    });
    Ok((verified, before, after))
}

fn side<'a>(run_id: &'a str, report: &'a Report) -> Side<'a> {
    Side {
        run_id,
        root: "",
        means: "means",
        report,
        baseline: &baseline::Seen::Missing,
    }
}

fn finishes() -> Answer<Vec<Value>> {
    let theirs = [other(2, THEIRS, &[], State::Active)?];
    let rivals = [other(4, MINE, &[], State::Active)?];
    let answer = |evidence: &[&str], others: &[Intent], dead: &str| {
        let (done, shown) = finished("full", evidence, others, dead)?;
        written(FinishPayload::of(&done, shown))
    };
    let (mut unkept, shown) = finished("full", &[MINE], &theirs, THEIRS)?;
    unkept.receipt = None;
    unkept.receipt_error = Some("the disk is full".to_owned());
    let (held_up, _) = finished("full", &[FORGOTTEN], &rivals, THEIRS)?;
    let blind = Finished {
        hygiene: None,
        workspace: None,
        blind: Some("git cannot be asked".to_owned()),
        ..stopped(held_up, Stop::CheckoutUnreadable)
    };
    Ok(vec![
        answer(&[MINE], &theirs, THEIRS)?,
        answer(&[MINE], &theirs, MINE)?,
        answer(&[MINE, "elsewhere"], &theirs, THEIRS)?,
        answer(&[FORGOTTEN], &rivals, THEIRS)?,
        answer(&[MINE, FORGOTTEN], &theirs, THEIRS)?,
        written(FinishPayload::of(&unkept, shown))?,
        written(FinishPayload::of(&blind, shown))?,
    ])
}

/// The `dirty_snapshot` in the answer of a finish.
#[cfg(test)]
pub(super) fn snapshot(detail: &str) -> Answer<Value> {
    let (done, shown) = finished(detail, &[MINE], &[], THEIRS)?;
    let value = written(FinishPayload::of(&done, shown))?;
    Ok(value["workspace_hygiene_after"]["dirty_snapshot"].clone())
}

fn finished(
    detail: &str,
    evidence: &[&str],
    others: &[Intent],
    dead: &str,
) -> Answer<(Finished, Shown)> {
    let asked = json!({
        "intent_id": "intent-1", "changed_files": evidence, "after_run_id": "after",
        "claims_text": "dead_code:idle is fixed, dead_code:other is new, and no regressions",
        "review_text": "it is fine", "detail_level": detail, "patch_trail_detail": detail,
    });
    let read = Request::read("finish_controlled_change", &object(asked)).map_err(text)?;
    let Request::Finish(asked) = read else {
        return Err("this is no finish".to_owned());
    };
    let (request, shown) = (asked.request().map_err(text)?, asked.shown());
    let scope = ChangeScope::parse(&[MINE, FORGOTTEN], &[], &[], "").map_err(text)?;
    let mut dirty = DIRTY_AFTER.to_vec();
    dirty.push((MINE, Some("y")));
    let now = workspace(&dirty);
    let touched = finish::evidence(evidence, "", Some(&now)).map_err(text)?;
    let own = intent(1, scope, State::Active)?;
    let peers: Vec<Peer> = seen(|viewer| peers(others, &[], viewer));
    let hygiene = AtFinish::look(&Finishing {
        scope: &own.scope,
        evidence: &touched,
        now: &now,
        start: own.snapshot.as_ref(),
        moved: &Moved::new(),
        peers: &peers,
        strictness: HygieneStrictness::Lenient,
    });
    let done = unjudged(own, &request, &touched, now);
    let done = match hygiene.block {
        Some(block) => Finished {
            hygiene: Some(hygiene),
            ..stopped(done, Stop::Hygiene(block))
        },
        None => judged(done, &request, &touched, (hygiene, dead))?,
    };
    Ok((done, shown))
}

fn unjudged(
    intent: Intent,
    request: &FinishRequest,
    evidence: &BTreeSet<RawPath>,
    now: CheckoutState,
) -> Finished {
    Finished {
        intent,
        status: FinishStatus::Unverified,
        reason: None,
        needs_person: false,
        next_step: None,
        cleared: false,
        workspace: Some(now),
        hygiene: None,
        evidence: evidence.iter().cloned().collect(),
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
        strictness: request.strictness.unwrap_or_default(),
        blind: None,
    }
}

fn stopped(mut done: Finished, stop: Stop<'_>) -> Finished {
    (done.status, done.reason) = conclude(stop);
    done.needs_person = needs_person(stop);
    // After a judgement no next step is added.
    if !matches!(stop, Stop::Judged { .. }) {
        done.next_step = done.reason.map(NextStep::After);
    }
    done
}

fn judged(
    mut done: Finished,
    request: &FinishRequest,
    evidence: &BTreeSet<RawPath>,
    (hygiene, dead): (AtFinish, &str),
) -> Answer<Finished> {
    let check = finish::check(&done.intent.scope, evidence);
    if check.status == ScopeStatus::Violated {
        done.trail = Some(PatchTrail::sealed(&done.intent, &check, None));
        done.check = Some(check);
        done.workspace = None;
        return Ok(stopped(done, Stop::Scope));
    }
    let (found, before, after) = verified(dead, &check)?;
    let outside = hygiene.outside();
    let external = !outside.is_empty();
    let verified = &found;
    done = stopped(done, Stop::Judged { verified, external });
    let known = claims::ClaimFacts {
        report: Some(&after),
        earlier: Some(&before),
        health_delta: found.delta.health_delta,
        wants_citations: true,
    };
    let name = after.digest();
    let receipt = Receipt::of(&ReceiptFacts {
        intent: &done.intent,
        run_id: &name,
        after_run_id: Some(&name),
        at: NOW,
        status: done.status,
        check: &check,
        verified,
        strictness: request.strictness.unwrap_or_default(),
        external: &outside,
        not_changed: &hygiene.not_changed,
        workspace_digest: &workspace(DIRTY_AFTER).digest(),
        baseline_health: None,
        tree: Some("tree"),
        review: request.review.as_deref(),
    });
    if done.status.is_accepted() {
        let words = request.claims.as_ref();
        done.claims = words.map(|words| claims::judge(words, &known));
        let digest = digest(&receipt);
        done.receipt = Some((receipt, digest));
    }
    done.trail = Some(PatchTrail::sealed(&done.intent, &check, Some(verified)));
    done.before = Some((before.digest(), before));
    done.after = Some((name, after));
    done.check = Some(check);
    done.verified = Some(found);
    done.hygiene = Some(hygiene);
    Ok(done)
}

fn looks() -> Answer<Vec<Value>> {
    let mut waits = look(MINE)?;
    waits.verified = None;
    let mut early = look(MINE)?;
    let before = report(1, None)?;
    let name = before.digest();
    early.after = None;
    early.verified = Some(judge(&Patch {
        paths: &[MINE.to_owned()],
        scope: Some(&[MINE.to_owned()]),
        check: None,
        before: Some(side(&name, &before)),
        after: After::None,
        strictness: early.strictness,
        without_run: provost_change::finish::verify::WithoutRun::Accepted,
    }));
    let found = [look(MINE)?, look(THEIRS)?, waits, early];
    let looked = found.iter();
    let looked = looked.map(|one| written(LookPayload::of(one, Audience::Tool)));
    looked.chain([budget_asked()]).collect()
}

fn look(dead: &str) -> Answer<Looked> {
    let own = other(1, MINE, &[], State::Active)?;
    let check = finish::check(&own.scope, &BTreeSet::from([RawPath::new(MINE)]));
    let (found, before, after) = verified(dead, &check)?;
    let run = |report: &Report| {
        let health = report.health.as_ref().map(|health| health.points);
        Some((report.digest(), health))
    };
    Ok(Looked {
        verified: Some(found),
        intent: Some(own),
        check: Some(check),
        before: run(&before),
        after: run(&after),
        strictness: Strictness::default(),
    })
}

fn compared() -> Answer<Value> {
    let (before, after) = (report(1, None)?, report(60, Some(MINE))?);
    let head = |report: &Report| {
        let seen = baseline::Seen::Missing;
        RunHead::of(report, "", workspace(DIRTY), seen, NOW)
    };
    let found = Compared {
        before: head(&before),
        after: head(&after),
        delta: compare(&before, &after),
    };
    written(ComparedRuns::of(&found, Focus::All))
}

fn receipts() -> Answer<Vec<Value>> {
    let (done, _) = finished("full", &[MINE], &[], THEIRS)?;
    let (receipt, digest) = done.receipt.ok_or("no receipt was made")?;
    let mut asked = ReceiptLookup {
        receipt: None,
        digest,
        format: ReceiptFormat::Structured,
        omitted: Vec::new(),
    };
    let write = |asked: &ReceiptLookup| {
        let found = FoundReceipt::of(&receipt, asked);
        written(Lookup::<_, ()>::Ok(found))
    };
    let structured = write(&asked)?;
    asked.format = ReceiptFormat::Markdown;
    Ok(vec![structured, write(&asked)?])
}
