//! Looks after intents: lists, renews, promotes, recovers, clears.

use std::collections::BTreeSet;

use provost_core::bundle::change::BEFORE;
use provost_core::intent::answer::{Listed, Promoted};
use provost_core::intent::conflict::{conflicts, peers};
use provost_core::intent::course::Happening;
use provost_core::intent::finish::{ScopeCheck, check as hold};
use provost_core::intent::hygiene::AtStart;
use provost_core::intent::queue::{ahead, position};
use provost_core::intent::record::{Intent, LEASE, Ownership, State, Viewer, clamp};
use provost_core::intent::request::Evidence;
use provost_core::intent::start::{DirtyPolicy, OnConflict, Seen, Status, advice, decide};
use provost_core::intent::workspace::{Snapshot, Workspace};
use provost_core::lease::{Lease, Owner};
use provost_core::path::RawPath;
use serde_json::json;

use super::finish::{changed, remember};
use super::ports::{Entry, IntentRegistry};
use super::start::drifted;
use super::{ChangeError, Ports, Session, wrong};

/// Lists all intents; what is over is closed on the way (R23).
pub fn list(ports: &mut Ports<'_>, session: &Session) -> Result<Listed, ChangeError> {
    let now = ports.clock.millis();
    super::start::close_what_is_over(ports, session, now)?;
    let known = ports.registry.look(None)?;
    let has_run = !ports.shelf.heads()?.is_empty();
    let viewer = ports.viewer(session, now);
    let intents = known
        .intents
        .into_iter()
        .map(|intent| {
            let ownership = intent.ownership(&viewer);
            (intent, ownership)
        })
        .collect();
    let mut leases = known.leases;
    leases.retain(|lease| lease.is_live(now, viewer.alive));
    Ok(Listed {
        intents,
        has_run,
        leases,
        unread: known.unread,
    })
}

/// An intent of this session; its lease is renewed (R22).
pub fn get(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
) -> Result<(Intent, Ownership), ChangeError> {
    let intent = ports.own(session, intent_id)?;
    match intent.state {
        State::Active | State::Queued | State::Refused => {}
        other => return wrong(format!("the intent `{intent_id}` is {}", other.name())),
    }
    touch(ports, session, intent_id)?;
    let now = ports.clock.millis();
    let intent = ports.own(session, intent_id)?;
    let ownership = intent.ownership(&ports.viewer(session, now));
    Ok((intent, ownership))
}

/// Renews the lease of an intent of this session, if its time is not over.
pub(super) fn touch(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
) -> Result<(), ChangeError> {
    let now = ports.clock.millis();
    change(ports, session, intent_id, now, |own| {
        Some((
            Intent {
                lease_renewed_at: own.lease_renewed_at.max(now),
                ..own.clone()
            },
            None,
        ))
    })?;
    Ok(())
}

/// Renews the lease of an intent, and says how long it lasts from now on.
pub fn renew(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
    seconds: Option<i64>,
) -> Result<Option<Intent>, ChangeError> {
    ports.own(session, intent_id)?;
    let now = ports.clock.millis();
    let lease = clamp(seconds.or(session.lease), LEASE);
    change(ports, session, intent_id, now, |own| {
        Some((
            Intent {
                lease_renewed_at: own.lease_renewed_at.max(now),
                lease_seconds: lease,
                ..own.clone()
            },
            None,
        ))
    })
}

/// Renews what this owner holds; for the heartbeat of a server.
pub fn renew_all(
    registry: &mut dyn IntentRegistry,
    owner: &Owner,
    now: i64,
) -> Result<usize, ChangeError> {
    Ok(registry.renew_all(owner, now)?)
}

/// Changes an open intent of this session whose time is not over, in one turn.
fn change(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
    now: i64,
    decide: impl Fn(&Intent) -> Option<(Intent, Option<Happening>)>,
) -> Result<Option<Intent>, ChangeError> {
    let mut changed = None;
    ports.registry.turn(None, &mut |known| {
        let mine = |one: &&Intent| {
            one.intent_id == intent_id && one.owner == session.me && now < one.expires_at
        };
        let found = known.intents.iter().find(mine).and_then(&decide);
        found
            .map(|(intent, what)| {
                changed = Some(intent.clone());
                Entry { intent, what }
            })
            .into_iter()
            .collect()
    })?;
    Ok(changed)
}

/// Holds what was touched against what was declared.
pub fn check(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
    evidence: &Evidence,
) -> Result<(Intent, ScopeCheck), ChangeError> {
    let intent = ports.own(session, intent_id)?;
    if !intent.state.is_open() {
        return wrong(format!(
            "the intent `{intent_id}` is {}",
            intent.state.name()
        ));
    }
    let workspace = ports.checkout.workspace()?;
    let evidence: BTreeSet<RawPath> = changed(ports, &intent.root, evidence, &workspace)?;
    if evidence.is_empty() {
        return wrong("the evidence names no file");
    }
    let found = hold(&intent.scope, &evidence);
    let intent = remember(ports, &intent, found.status)?;
    let facts = json!({ "status": found.status.name(), "evidence": found.actual });
    ports.note(Happening::Checked, &intent, facts, &[])?;
    Ok((intent, found))
}

/// Gives back one intent of this session, or all of them (R17).
pub fn clear(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: Option<&str>,
) -> Result<Vec<String>, ChangeError> {
    let ids = if let Some(id) = intent_id {
        let intent = ports.own(session, id)?;
        if intent.state == State::Refused {
            // It held nothing; there is nothing to give back, and that is fine.
            return Ok(vec![intent.intent_id]);
        }
        if !intent.state.is_open() {
            return wrong(format!("the intent `{id}` is {}", intent.state.name()));
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
    let closed = close(ports, session, &ids, State::Clean)?;
    ports.note_closed(&closed);
    Ok(closed.into_iter().map(|one| one.intent_id).collect())
}

/// Closes open intents of this session; gives those that were.
pub(super) fn close(
    ports: &mut Ports<'_>,
    session: &Session,
    ids: &[String],
    state: State,
) -> Result<Vec<Intent>, ChangeError> {
    let mut closed = Vec::new();
    ports.registry.turn(None, &mut |known| {
        let mine = known.intents.iter().filter(|one| {
            one.owner == session.me && one.state.is_open() && ids.contains(&one.intent_id)
        });
        let entries: Vec<Entry> = mine
            .map(|one| Entry {
                intent: Intent {
                    state,
                    ..one.clone()
                },
                what: Some(Happening::Closed),
            })
            .collect();
        closed = entries.iter().map(|one| one.intent.clone()).collect();
        entries
    })?;
    Ok(closed)
}

/// Lets an intent that waits become active, if it may.
pub fn promote(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
) -> Result<Promoted, ChangeError> {
    let now = ports.clock.millis();
    let intent = ports.own(session, intent_id)?;
    if intent.state != State::Queued {
        return wrong(format!(
            "only a queued intent is promoted; `{intent_id}` is {}",
            intent.state.name()
        ));
    }
    let heads = ports.shelf.heads()?;
    let Some(head) = heads.iter().find(|head| head.run_id == intent.run_id) else {
        return Ok(Promoted::RunEvicted(Box::new(intent)));
    };
    ports.chronicle.put_report(intent_id, BEFORE, head)?;
    let workspace = match ports.checkout.workspace() {
        Ok(workspace) => Ok(workspace),
        Err(error) => Err(error.verdict().reason),
    };
    let moved = match &workspace {
        Ok(now) => drifted(ports, head, now)?,
        Err(_) => BTreeSet::new(),
    };
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
            answer = Promoted::Blocked(
                Box::new(intent.clone()),
                None,
                "its time is over; start again".to_owned(),
            );
            return Vec::new();
        };
        let (decided, entry) = settle(own, &known.intents, &known.leases, &workspace, &viewer);
        answer = decided;
        if let Promoted::Active(_, _, stale) = &mut answer {
            stale.extend(moved.iter().cloned());
        }
        entry.into_iter().collect()
    })?;
    if let Promoted::Active(promoted, ..) = &answer {
        // The file says what was declared and stays; what became of it is in the record.
        let before = (BEFORE, promoted.report_digest.clone());
        let facts = json!({ "workspace_digest": promoted.workspace_digest });
        ports.begin(&intent)?;
        ports.note(Happening::Promoted, promoted, facts, &[before])?;
    }
    Ok(answer)
}

fn settle(
    own: &Intent,
    intents: &[Intent],
    leases: &[Lease],
    workspace: &Result<Workspace, String>,
    viewer: &Viewer<'_>,
) -> (Promoted, Option<Entry>) {
    let others = peers(intents, leases, viewer);
    let mut found = conflicts(&own.scope, &others);
    found.extend(ahead(own, intents, viewer));
    if !found.is_empty() {
        let place = position(own, intents, viewer);
        return (Promoted::Queued(Box::new(own.clone()), found, place), None);
    }
    let dirt = workspace
        .as_ref()
        .map(|now| AtStart::look(&own.scope, now, &others));
    let seen = match &dirt {
        Ok(dirt) => Seen::All(dirt),
        Err(why) => Seen::Nothing(why),
    };
    let status = decide(&[], seen, OnConflict::Block, DirtyPolicy::Block);
    let (Status::Active, Ok(now), Ok(dirt)) = (status, workspace, &dirt) else {
        let words = advice(&[], seen);
        let blocked = Promoted::Blocked(Box::new(own.clone()), dirt.ok(), words);
        return (blocked, None);
    };
    let intent = Intent {
        state: State::Active,
        edit_allowed: true,
        lease_renewed_at: viewer.now,
        workspace_digest: now.digest(),
        snapshot: Some(Snapshot {
            captured_at: viewer.now,
            workspace: now.clone(),
        }),
        ..own.clone()
    };
    let entry = Entry {
        intent: intent.clone(),
        what: Some(Happening::Promoted),
    };
    (
        Promoted::Active(Box::new(intent), dirt.clone(), Vec::new()),
        Some(entry),
    )
}
