//! Takes over, resets or clears intents whose owner is gone.

use crate::analysis::run::find;
use crate::answer::{Recovered, Swept};
use crate::conflict::peers;
use crate::event::IntentEvent;
use crate::intent::fact::{IntentFact, Renewal, Takeover};
use crate::intent::{Intent, RETENTION, TTL, Viewer, clamp};
use crate::recover::decide::{self, Refusal, Reset, Sweep, closing};
use provost_core::path::RawPath;
use serde_json::json;

use crate::ports::IntentEntry;
use crate::service::{ChangeError, Ports, Session};

/// Takes over an intent of a dead owner, or an own one whose lease ran out.
pub fn recover(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
    run: &str,
) -> Result<Recovered, ChangeError> {
    let now = ports.clock.millis();
    let heads = ports.analyses.heads()?;
    let has_run = find(&heads, run).is_ok();
    let alive = ports.alive;
    let workspace = ports.checkout.workspace().ok();
    let mut answer = Recovered::No(Refusal::NotFound);
    ports.registry.turn(Some(intent_id), &mut |known| {
        let viewer = Viewer {
            me: &session.me,
            now,
            alive,
        };
        let found = known.intents.iter().find(|one| one.intent_id == intent_id);
        let others = peers(&known.intents, &known.leases, &viewer);
        let judged = decide::judge(found, has_run, &others, &viewer);
        match (
            decide::contest(judged, found, workspace.as_ref(), (&known.intents, &others)),
            found,
        ) {
            (Ok(held_by), Some(previous)) => {
                let (intent, entry) = previous.change(IntentFact::Recovered(Takeover {
                    owner: session.me.clone(),
                    agent_label: session.label.clone(),
                    agent_start_epoch: session.epoch,
                    lease_renewed_at: now,
                    edit_allowed: previous.edit_allowed && held_by.is_empty(),
                }));
                answer = Recovered::Yes {
                    intent: Box::new(intent),
                    previous: Box::new(previous.clone()),
                    changed: Vec::new(),
                    held_by,
                };
                vec![entry]
            }
            (Err(refusal), _) => {
                answer = Recovered::No(refusal);
                Vec::new()
            }
            (Ok(_), None) => Vec::new(),
        }
    })?;
    if let Recovered::Yes {
        intent,
        previous,
        changed,
        ..
    } = &mut answer
    {
        *changed = since(ports, intent)?;
        let facts = json!({ "from": previous.owner, "to": intent.owner, "changed": changed });
        ports.note(IntentEvent::Recovered, previous, facts, &[])?;
    }
    Ok(answer)
}

/// The paths that changed since an intent was declared.
fn since(ports: &Ports<'_>, intent: &Intent) -> Result<Vec<RawPath>, ChangeError> {
    let (Some(start), Ok(now)) = (&intent.snapshot, ports.checkout.workspace()) else {
        return Ok(Vec::new());
    };
    let before = start.workspace.tree.as_deref();
    let moved = ports.checkout.moved(before, now.tree.as_deref())?;
    Ok(start
        .workspace
        .differences(&now, &moved)
        .into_iter()
        .collect())
}

/// Begins an own intent anew, or closes one whose owner is dead.
pub fn reset(
    ports: &mut Ports<'_>,
    session: &Session,
    intent_id: &str,
    ttl: Option<i64>,
) -> Result<Option<(Intent, Reset)>, ChangeError> {
    let now = ports.clock.millis();
    let ttl = clamp(ttl.or(session.ttl), TTL);
    let alive = ports.alive;
    let mut answer = None;
    ports.registry.turn(None, &mut |known| {
        let viewer = Viewer {
            me: &session.me,
            now,
            alive,
        };
        let Some(found) = known.intents.iter().find(|one| one.intent_id == intent_id) else {
            return Vec::new();
        };
        let decided = decide::reset(found, &viewer);
        let (intent, entry) = match decided {
            Reset::Renewed => found.change(IntentFact::Renewed(Renewal {
                state: found.state,
                edit_allowed: found.edit_allowed,
                lease_renewed_at: now,
                lease_seconds: found.lease_seconds,
                ttl_seconds: ttl,
                expires_at: now.saturating_add(i64::from(ttl) * 1000),
            })),
            Reset::Removed(state) => found.close(state),
            Reset::Rejected(_) => {
                answer = Some((found.clone(), decided));
                return Vec::new();
            }
        };
        answer = Some((intent, decided));
        vec![entry]
    })?;
    match &answer {
        Some((intent, Reset::Renewed)) => {
            let facts = json!({ "ttl_seconds": intent.ttl_seconds });
            ports.note(IntentEvent::Reset, intent, facts, &[])?;
        }
        Some((intent, Reset::Removed(_))) => ports.note_closed(std::slice::from_ref(intent)),
        Some((_, Reset::Rejected(_))) | None => {}
    }
    Ok(answer)
}

/// Closes expired intents and those of dead owners, and removes old records.
pub fn gc(ports: &mut Ports<'_>, session: &Session) -> Result<Swept, ChangeError> {
    let now = ports.clock.millis();
    let (removed, remaining) = sweep(ports, session, now, Sweep::Whole)?;
    let purged = ports.registry.purge(now.saturating_sub(RETENTION))?;
    Ok(Swept {
        removed,
        remaining,
        purged,
    })
}

/// Closes intents whose owner is dead; gives how many were closed and how many are open.
pub(crate) fn sweep(
    ports: &mut Ports<'_>,
    session: &Session,
    now: i64,
    how: Sweep,
) -> Result<(usize, usize), ChangeError> {
    let alive = ports.alive;
    let (mut removed, mut open): (Vec<Intent>, usize) = (Vec::new(), 0);
    ports.registry.turn(None, &mut |known| {
        let viewer = Viewer {
            me: &session.me,
            now,
            alive,
        };
        let closed = |one: &Intent| Some(one.close(closing(one, how, &viewer)?));
        let entries: Vec<IntentEntry>;
        (removed, entries) = known.intents.iter().filter_map(closed).unzip();
        open = known.intents.len() - removed.len();
        entries
    })?;
    ports.note_closed(&removed);
    Ok((removed.len(), open))
}
