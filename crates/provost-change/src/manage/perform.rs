//! Lists, renews, promotes, checks and clears intents.

use std::collections::BTreeSet;

use crate::answer::{IntentList, Promoted, Renewed};
use crate::conflict::{conflicts, peers};
use crate::event::IntentEvent;
use crate::evidence::{BASELINE, BEFORE, INTENT};
use crate::finish::decide::{ScopeCheck, check as hold};
use crate::hygiene::AtStart;
use crate::intent::fact::{Continuation, IntentFact, Promotion, Renewal};
use crate::intent::{Intent, LEASE, Ownership, State, TTL, Viewer, clamp};
use crate::next_step::NextStep;
use crate::queue::{ahead, position};
use crate::request::Evidence;
use crate::start::decide::{DirtyPolicy, OnConflict, Seen, StartStatus, advice, decide};
use provost_core::checkout::{CheckoutState, Snapshot};
use provost_core::lease::Owner;
use provost_core::path::RawPath;
use serde_json::json;

use crate::finish::perform::changed;
use crate::finish::record::{record_scope_check, record_undeclared_paths};
use crate::ports::{IntentEntry, IntentRegistry, RegistryView};
use crate::service::{ChangeError, Ports, Session, is_closed, wrong};
use crate::start::perform::drifted;
use crate::unfinished_work::find::{self as unfinished_work, UnfinishedWork};

/// Lists all intents; expired ones are closed first.
pub fn list(ports: &mut Ports<'_>, session: &Session) -> Result<IntentList, ChangeError> {
    let now = ports.clock.millis();
    crate::start::perform::close_what_is_over(ports, session, now)?;
    let known = ports.registry.look(None)?;
    let has_run = !ports.analyses.heads()?.is_empty();
    let viewer = ports.viewer(session, now);
    let intents = known
        .intents
        .into_iter()
        .map(|intent| {
            let ownership = intent.ownership(&viewer);
            (intent, ownership)
        })
        .collect();
    let mut intents: Vec<(Intent, Ownership)> = intents;
    // An expired intent is closed, and its owner may still renew it.
    let over = |one: &Intent| one.owner == session.me && one.state == State::Expired;
    let past = ports.registry.past()?.into_iter();
    intents.extend(past.filter(over).map(|one| (one, Ownership::Expired)));
    let mut leases = known.leases;
    leases.retain(|lease| lease.is_live(now, ports.alive));
    Ok(IntentList {
        intents,
        has_run,
        leases,
        unread: known.unread,
    })
}

/// An intent of this session; reading it renews its lease.
pub fn get(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
) -> Result<(Intent, Ownership), ChangeError> {
    let intent = ports.own(session, intent_id)?;
    match intent.state {
        State::Active | State::Queued | State::Refused | State::Expired => {}
        State::Clean | State::Orphaned | State::Replaced => return is_closed(&intent),
    }
    touch(ports, session, intent_id)?;
    let now = ports.clock.millis();
    let intent = ports.own(session, intent_id)?;
    let ownership = intent.ownership(&ports.viewer(session, now));
    Ok((intent, ownership))
}

/// Renews the lease of an intent of this session, unless the intent is expired.
pub(crate) fn touch(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
) -> Result<(), ChangeError> {
    let now = ports.clock.millis();
    ports.registry.renew_one(&session.me, intent_id, now)?;
    Ok(())
}

/// Renews the lease and the time of an intent, and says how long they last. An expired intent gets
/// its files back, unless another intent holds them.
pub fn renew(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
    lease: Option<i64>,
    ttl: Option<i64>,
) -> Result<Renewed, ChangeError> {
    let intent = ports.own(session, intent_id)?;
    match intent.state {
        State::Active | State::Queued | State::Expired => {}
        State::Clean | State::Orphaned | State::Refused | State::Replaced => {
            return is_closed(&intent);
        }
    }
    let now = ports.clock.millis();
    let alive = ports.alive;
    let lease = clamp(lease.or(session.lease), LEASE);
    let mut answer = Renewed::Conflict(Vec::new());
    ports.registry.turn(Some(intent_id), &mut |known| {
        let viewer = Viewer {
            me: &session.me,
            now,
            alive,
        };
        let mine = |one: &&Intent| one.intent_id == intent_id && one.owner == session.me;
        let Some(own) = known.intents.iter().find(mine) else {
            return Vec::new();
        };
        let over = own.clone().at(now).state == State::Expired;
        let others = peers(&known.intents, &known.leases, &viewer);
        let found = conflicts(&own.scope, &others);
        if over && own.edit_allowed && !found.is_empty() {
            answer = Renewed::Conflict(found);
            return Vec::new();
        }
        let ttl = ttl.map_or(own.ttl_seconds, |ttl| clamp(Some(ttl), TTL));
        let until = now.saturating_add(i64::from(ttl) * 1000);
        let (intent, entry) = own.change(IntentFact::Renewed(Renewal {
            state: match own.state {
                State::Expired if own.edit_allowed => State::Active,
                State::Expired => State::Queued,
                state => state,
            },
            // An intent that was recovered while others held its files may edit when they are gone.
            edit_allowed: own.edit_allowed || (own.state == State::Active && found.is_empty()),
            lease_renewed_at: own.lease_renewed_at.max(now),
            lease_seconds: lease,
            ttl_seconds: ttl,
            expires_at: own.expires_at.max(until),
        }));
        answer = Renewed::Yes(Box::new(intent));
        vec![entry]
    })?;
    if let Renewed::Yes(renewed) = &answer
        && intent.state == State::Expired
    {
        let facts = json!({ "ttl_seconds": renewed.ttl_seconds });
        ports.note(IntentEvent::Reset, renewed, facts, &[])?;
    }
    Ok(answer)
}

/// Renews all intents of this owner; for the heartbeat of a server.
pub fn renew_all(
    registry: &mut dyn IntentRegistry,
    owner: &Owner,
    now: i64,
) -> Result<usize, ChangeError> {
    Ok(registry.renew_all(owner, now)?)
}

/// Compares the touched files with the declared scope.
pub fn check(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
    evidence: &Evidence,
) -> Result<(Intent, ScopeCheck), ChangeError> {
    let intent = ports.own(session, intent_id)?;
    if !intent.state.is_open() {
        return is_closed(&intent);
    }
    let workspace = ports.checkout.workspace()?;
    let evidence: BTreeSet<RawPath> = changed(ports, &intent.root, evidence, &workspace)?;
    if evidence.is_empty() {
        return wrong("the evidence names no file");
    }
    let found = hold(&intent.scope, &evidence);
    let intent = record_undeclared_paths(ports, &intent, &evidence)?;
    let intent = record_scope_check(ports, &intent, found.status)?;
    let facts = json!({ "status": found.status.name(), "evidence": found.actual });
    ports.note(IntentEvent::Checked, &intent, facts, &[])?;
    Ok((intent, found))
}

/// Gives back one intent of this session, or all of them.
pub fn clear(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: Option<&str>,
) -> Result<Vec<String>, ChangeError> {
    let ids = if let Some(id) = intent_id {
        let intent = ports.own(session, id)?;
        if intent.state == State::Refused {
            // A closed intent holds nothing, so there is nothing to give back.
            return Ok(vec![intent.intent_id]);
        }
        if !intent.state.is_open() && intent.state != State::Expired {
            return is_closed(&intent);
        }
        vec![id.to_owned()]
    } else {
        let known = ports.registry.look(None)?;
        let mine = known
            .intents
            .into_iter()
            .filter(|one| one.owner == session.me);
        mine.map(|one| one.intent_id).collect()
    };
    let now = ports.checkout.workspace().ok();
    let closed = close(ports, session, &ids, now.as_ref())?;
    ports.note_closed(&closed);
    Ok(closed.into_iter().map(|one| one.intent_id).collect())
}

/// Closes open and expired intents of this session, and stores with each its unfinished work from
/// `left`; gives the intents that were closed.
pub(crate) fn close(
    ports: &mut Ports<'_>,
    session: &Session,
    ids: &[String],
    left: Option<&CheckoutState>,
) -> Result<Vec<Intent>, ChangeError> {
    let mut closed = Vec::new();
    let named = ids.first().map(String::as_str);
    ports.registry.turn(named, &mut |known| {
        let mine = known.intents.iter().filter(|one| {
            let ends = one.state.is_open() || one.state == State::Expired;
            one.owner == session.me && ends && ids.contains(&one.intent_id)
        });
        let entries: Vec<IntentEntry>;
        (closed, entries) = mine
            .map(|one| {
                one.change(IntentFact::Closed {
                    state: State::Clean,
                    left: left.map(|now| one.dirty_in(now)),
                })
            })
            .unzip();
        entries
    })?;
    Ok(closed)
}

/// Makes a queued intent active, if no conflict is left.
pub fn promote(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
) -> Result<Promoted, ChangeError> {
    let now = ports.clock.millis();
    let intent = ports.own(session, intent_id)?;
    if intent.state == State::Expired {
        return is_closed(&intent);
    }
    if intent.state != State::Queued {
        return wrong(format!(
            "only a queued intent is promoted; `{intent_id}` is {}",
            intent.state.name()
        ));
    }
    let heads = ports.analyses.heads()?;
    let head = heads.iter().find(|head| head.run_id == intent.run_id);
    if head.is_none() && intent.carried.is_none() {
        return Ok(Promoted::RunEvicted(Box::new(intent)));
    }
    let workspace = match ports.checkout.workspace() {
        Ok(workspace) => Ok(workspace),
        Err(error) => Err(error.verdict().reason),
    };
    let (moved, carry) = match (&workspace, head) {
        (Ok(now), Some(head)) => {
            let carry = unfinished_work::find(ports, &intent.root, &intent.scope, now)?;
            (drifted(ports, head, now)?, carry)
        }
        _ => (BTreeSet::new(), None),
    };
    match (&carry, head) {
        (Some(carry), _) => carry.keep(ports, intent_id)?,
        (None, Some(head)) => ports.evidence.put_report(intent_id, BEFORE, head)?,
        (None, None) => {}
    }
    let alive = ports.alive;
    let mut answer = Promoted::RunEvicted(Box::new(intent.clone()));
    ports.registry.turn(None, &mut |known| {
        let viewer = Viewer {
            me: &session.me,
            now,
            alive,
        };
        let mut open = known.intents.iter();
        let Some(own) = open.find(|one| one.intent_id == intent_id && now < one.expires_at) else {
            answer = Promoted::Blocked(Box::new(intent.clone()), None, NextStep::StartAgain);
            return Vec::new();
        };
        let work = carry.as_ref().map(UnfinishedWork::continuation);
        let (decided, entry) = settle((own, work), known, &workspace, &viewer);
        answer = decided;
        if let Promoted::Active(_, _, stale) = &mut answer {
            stale.extend(moved.iter().cloned());
        }
        entry.into_iter().collect()
    })?;
    if let Promoted::Active(promoted, ..) = &answer {
        ports.begin(&intent)?;
        note_promoted(ports, promoted, carry.is_some())?;
    } else if let (Some(_), Some(head)) = (&carry, head) {
        ports.evidence.put_report(intent_id, BEFORE, head)?;
    }
    Ok(answer)
}

/// Appends that an intent was promoted, and the state that it is judged from.
fn note_promoted(
    ports: &mut Ports<'_>,
    promoted: &Intent,
    carries: bool,
) -> Result<(), ChangeError> {
    let facts = json!({ "workspace_digest": promoted.workspace_digest });
    let mut files = vec![(BEFORE, promoted.report_digest.clone())];
    if carries {
        // The declaration and the state that it is judged from fit together.
        let document = serde_json::to_value(promoted).unwrap_or_default();
        files.push(ports.keep(&promoted.intent_id, INTENT, &document)?);
        let baseline = promoted.baseline_sha256.clone();
        files.extend(baseline.map(|sha256| (BASELINE, sha256)));
    }
    Ok(ports.note(IntentEvent::Promoted, promoted, facts, &files)?)
}

/// Decides about a queued intent, which may continue unfinished work.
fn settle(
    (own, work): (&Intent, Option<Continuation>),
    known: &RegistryView,
    workspace: &Result<CheckoutState, String>,
    viewer: &Viewer<'_>,
) -> (Promoted, Option<IntentEntry>) {
    let others = peers(&known.intents, &known.leases, viewer);
    let mut found = conflicts(&own.scope, &others);
    found.extend(ahead(own, &known.intents, viewer));
    if !found.is_empty() {
        let place = position(own, &known.intents, viewer);
        return (Promoted::Queued(Box::new(own.clone()), found, place), None);
    }
    let dirty = workspace
        .as_ref()
        .map(|now| AtStart::look(&own.scope, now, &others));
    let seen = match &dirty {
        Ok(dirty) => Seen::All(dirty),
        Err(why) => Seen::Nothing(why),
    };
    let status = decide(&[], seen, OnConflict::Block, DirtyPolicy::Block);
    let (StartStatus::Active, Ok(now), Ok(dirty)) = (status, workspace, &dirty) else {
        let next_step = match seen {
            Seen::All(found) if found.overlaps.is_empty() => NextStep::CommitOrClear,
            seen => advice(&[], seen),
        };
        let blocked = Promoted::Blocked(Box::new(own.clone()), dirty.ok(), next_step);
        return (blocked, None);
    };
    let (intent, entry) = own.change(IntentFact::Promoted(Box::new(Promotion {
        workspace_digest: now.digest(),
        snapshot: Snapshot {
            captured_at: viewer.now,
            workspace: now.clone(),
        },
        work,
    })));
    (
        Promoted::Active(Box::new(intent), dirty.clone(), Vec::new()),
        Some(entry),
    )
}
