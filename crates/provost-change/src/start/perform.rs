//! Starts a change: declares its scope, finds conflicts and takes the lease.
//!
//! The rules are in `docs/change-control.md`.

use std::collections::BTreeSet;

use crate::analysis::run::{RunHead, newest};
use crate::answer::Started;
use crate::conflict::{Conflict, Peer, conflicts, exclusions, peers};
use crate::event::IntentEvent;
use crate::evidence::{BASELINE, BEFORE, BLAST, INTENT, digest};
use crate::hygiene::AtStart;
use crate::intent::{Intent, LEASE, Ownership, State, TTL, VERSION, Viewer, clamp};
use crate::next_step::NextStep;
use crate::queue::{ahead, position, waiting};
use crate::recover::decide::{Sweep, closing};
use crate::request::StartRequest;
use crate::start::decide::{OnConflict, Seen, StartStatus, advice, continues, decide};
use provost_core::checkout::{CheckoutState, Snapshot};
use provost_core::json;
use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_lens::structure::baseline;
use provost_lens::structure::blast::{artifact_id, radius};
use serde_json::{Value, json};

use crate::analysis::queries::budget_of;
use crate::ports::{IntentEntry, RegistryView};
use crate::service::{ChangeError, Ports, Session, wrong};
use crate::unfinished_work::find::{self as unfinished_work, UnfinishedWork};
use provost_engine::ports::PortError;

pub fn start(
    ports: &mut Ports<'_>,
    session: &Session,
    request: &StartRequest,
) -> Result<Started, ChangeError> {
    let now = ports.clock.millis();
    close_what_is_over(ports, session, now)?;
    let Some(head) = newest(&ports.analyses.heads()?, &request.root).cloned() else {
        return Ok(Started::needs_analysis(Vec::new()));
    };
    refuse_links(ports, request)?;
    let workspace = match ports.checkout.workspace() {
        Ok(workspace) => Ok(workspace),
        Err(error) => Err(error.verdict().reason),
    };
    if let Ok(workspace) = &workspace {
        let drifted = drifted(ports, &head, workspace)?;
        if !drifted.is_empty() {
            return Ok(Started::needs_analysis(drifted.into_iter().collect()));
        }
    }
    // On disk before any other agent can see the intent; after a refused start, gc removes it.
    let intent_id = ports.names.intent_id(now)?;
    let draft = draft(session, request, &head, &workspace, intent_id, now);
    let waits = request.on_conflict == OnConflict::Queue && has_to_wait(ports, session, &draft)?;
    let carry = match &workspace {
        // A queued intent gets its beginning when it is promoted.
        Ok(workspace) if !waits => {
            unfinished_work::find(ports, &request.root, &request.scope, workspace)?
        }
        _ => None,
    };
    let draft = match &carry {
        Some(carry) => draft.continuing(&carry.continuation()),
        None => draft,
    };
    let mut answer = Started::needs_analysis(Vec::new());
    let report = ports.analyses.report(&head)?;
    let paths = crate::analysis::queries::root_relative(&request.root, &request.scope);
    let blast = radius(&report, &paths, request.depth);
    let level = crate::analysis::queries::level_word(blast.radius_level);
    keep_before(ports, &draft, &head, carry.as_ref())?;
    let alive = ports.alive;
    let mut replaced = Vec::new();
    ports.registry.turn(None, &mut |known| {
        let viewer = Viewer {
            me: &session.me,
            now,
            alive,
        };
        let asked = Asked { request, waits };
        let (decided, entries) = settle(&asked, &workspace, &draft, level, known, &viewer);
        answer = decided;
        let (mut intents, entries): (Vec<Intent>, Vec<IntentEntry>) = entries.into_iter().unzip();
        intents.retain(|one| one.intent_id != draft.intent_id);
        replaced = intents;
        entries
    })?;
    ports.note_closed(&replaced);
    answer.replaced = replaced.into_iter().map(|one| one.intent_id).collect();
    if answer.replay {
        // The process that declared the intent may have died before it wrote the record.
        if let Some(intent) = &answer.intent {
            ports.begin(intent)?;
        }
        return Ok(answer);
    }
    if answer.status != StartStatus::Queued {
        answer.budget = Some(budget_of(&report, request.strictness));
        answer.blast = Some(blast);
    }
    write_down(ports, &mut answer)?;
    Ok(answer)
}

/// Whether another intent or run holds files of the intent, or an earlier one waits for them.
fn has_to_wait(
    ports: &mut Ports<'_>,
    session: &Session,
    draft: &Intent,
) -> Result<bool, ChangeError> {
    let known = ports.registry.look(None)?;
    let viewer = ports.viewer(session, ports.clock.millis());
    let others = peers(&known.intents, &known.leases, &viewer);
    Ok(!conflicts(&draft.scope, &others).is_empty()
        || !ahead(draft, &known.intents, &viewer).is_empty())
}

/// Stores the state that an intent begins from.
fn keep_before(
    ports: &mut Ports<'_>,
    draft: &Intent,
    head: &RunHead,
    carry: Option<&UnfinishedWork>,
) -> Result<(), ChangeError> {
    let id = &draft.intent_id;
    if let Some(carry) = carry {
        return Ok(carry.keep(ports, id)?);
    }
    ports.evidence.put_report(id, BEFORE, head)?;
    if draft.baseline_sha256.is_some() {
        ports.keep(id, BASELINE, &accepted(head))?;
    }
    Ok(())
}

/// Refuses paths through a symbolic link: another agent may have declared the same file by its own
/// name.
fn refuse_links(ports: &Ports<'_>, request: &StartRequest) -> Result<(), ChangeError> {
    let scope = &request.scope;
    for path in scope.allowed_files.iter().chain(&scope.allowed_related) {
        if let Some(link) = ports.checkout.link_on(path.as_str())? {
            return wrong(format!(
                "`{path}` is reached by the symbolic link `{link}`: declare what it leads to"
            ));
        }
    }
    Ok(())
}

/// The new intent and those that it replaces, each with its registry entry. A refused intent
/// changes no other; an open one replaces the open intents of its owner on the same run.
fn entries(intent: &Intent, intents: &[Intent]) -> Vec<(Intent, IntentEntry)> {
    let mine = |own: &&Intent| {
        let same = own.owner == intent.owner && own.run_id == intent.run_id;
        same && own.state.is_open() && intent.state.is_open()
    };
    let replaced = intents.iter().filter(mine);
    let new = IntentEntry::Declared(Box::new(intent.clone()));
    replaced
        .map(|own| own.close(State::Replaced))
        .chain([(intent.clone(), new)])
        .collect()
}

/// The input of a turn of the registry.
struct Asked<'a> {
    request: &'a StartRequest,
    /// Whether the request expected to wait; then it is queued even if the conflict is gone.
    waits: bool,
}

impl Asked<'_> {
    /// The intents and runs that hold files of the request. A request that may wait takes its place
    /// behind those that wait for the same files.
    fn in_the_way(
        &self,
        draft: &Intent,
        others: &[Peer],
        known: &RegistryView,
        viewer: &Viewer<'_>,
    ) -> Vec<Conflict> {
        let mut found = conflicts(&draft.scope, others);
        if self.request.on_conflict == OnConflict::Queue {
            found.extend(ahead(draft, &known.intents, viewer));
        }
        found
    }

    fn status(&self, found: &[Conflict], seen: Seen<'_>) -> StartStatus {
        match decide(found, seen, self.request.on_conflict, self.request.policy) {
            StartStatus::Active if self.waits => StartStatus::Queued,
            status => status,
        }
    }
}

/// Decides in a turn of the registry.
fn settle(
    asked: &Asked<'_>,
    workspace: &Result<CheckoutState, String>,
    draft: &Intent,
    level: &str,
    known: &RegistryView,
    viewer: &Viewer<'_>,
) -> (Started, Vec<(Intent, IntentEntry)>) {
    let request = asked.request;
    let others = peers(&known.intents, &known.leases, viewer);
    let found = asked.in_the_way(draft, &others, known, viewer);
    let hygiene = workspace
        .as_ref()
        .map(|now| AtStart::look(&request.scope, now, &others));
    let seen = match &hygiene {
        Ok(dirty) => Seen::All(dirty),
        Err(why) => Seen::Nothing(why),
    };
    let status = asked.status(&found, seen);
    let mut intent = Intent {
        state: match status {
            StartStatus::Active => State::Active,
            StartStatus::Queued => State::Queued,
            StartStatus::Blocked | StartStatus::NeedsAnalysis => State::Refused,
        },
        edit_allowed: status == StartStatus::Active,
        peers_digest: peers_digest(&others),
        radius_level: level.to_owned(),
        ..draft.clone()
    };
    let replayed = (status == StartStatus::Active)
        .then(|| {
            known
                .intents
                .iter()
                .find(|own| is_same(own, &intent, viewer))
        })
        .flatten();
    let entries = match replayed {
        Some(own) => {
            intent = own.clone();
            Vec::new()
        }
        None => entries(&intent, &known.intents),
    };
    let continuing = hygiene
        .as_ref()
        .is_ok_and(|dirty| continues(dirty, request.policy) && status == StartStatus::Active);
    let next_step = match status {
        StartStatus::Active => None,
        StartStatus::Queued => Some(NextStep::Wait),
        StartStatus::Blocked | StartStatus::NeedsAnalysis => Some(advice(&found, seen)),
    };
    let answer = Started {
        status,
        exclusions: exclusions(&request.scope, &others),
        waiting: waiting(&intent, &known.intents, viewer),
        total_agents: agents(known, &intent, viewer),
        stale_count: others
            .iter()
            .filter(|peer| peer.ownership == Ownership::ForeignStale)
            .count(),
        position: position(&intent, &known.intents, viewer),
        continuing,
        blind: workspace.as_ref().err().cloned(),
        hygiene: hygiene.ok(),
        drifted: Vec::new(),
        blast: None,
        blast_digest: None,
        budget: None,
        replay: replayed.is_some(),
        replaced: Vec::new(),
        next_step,
        unread: known.unread.clone(),
        conflicts: found,
        intent: Some(intent),
    };
    (answer, entries)
}

/// Whether `own` is the intent that the same request made before.
fn is_same(own: &Intent, new: &Intent, viewer: &Viewer<'_>) -> bool {
    own.owner == new.owner
        && own.state == State::Active
        && own.ownership(viewer).is_own()
        && own.run_id == new.run_id
        && own.request_digest == new.request_digest
        && own.workspace_digest == new.workspace_digest
        && own.peers_digest == new.peers_digest
}

fn peers_digest(others: &[Peer]) -> String {
    let names: BTreeSet<&str> = others.iter().map(|peer| peer.intent_id.as_str()).collect();
    sha256(json::canonical(&json!(names)).as_bytes())
}

/// How many agents have an open intent, including the owner of `intent`.
fn agents(known: &RegistryView, intent: &Intent, viewer: &Viewer<'_>) -> usize {
    let mut owners = vec![&intent.owner];
    let open = known.intents.iter().filter(|other| other.state.is_open());
    for other in open.filter(|other| other.ownership(viewer).is_live_foreign()) {
        if !owners.contains(&&other.owner) {
            owners.push(&other.owner);
        }
    }
    owners.len()
}

fn draft(
    session: &Session,
    request: &StartRequest,
    head: &RunHead,
    workspace: &Result<CheckoutState, String>,
    intent_id: String,
    now: i64,
) -> Intent {
    let ttl = clamp(request.ttl.or(session.ttl), TTL);
    let asked = json!({
        "root": request.root,
        "scope": request.scope.digest(),
        "intent": request.intent,
        "effects": request.expected_effects,
        "policy": request.policy.name(),
        "strictness": request.strictness.word(),
        "ttl": ttl,
    });
    let workspace = workspace.as_ref().ok();
    Intent {
        version: VERSION,
        intent_id,
        owner: session.me.clone(),
        agent_label: session.label.clone(),
        agent_start_epoch: session.epoch,
        root: request.root.clone(),
        run_id: head.run_id.clone(),
        report_digest: head.report_digest.clone(),
        intent: request.intent.clone(),
        expected_effects: request.expected_effects.clone(),
        scope: request.scope.clone(),
        state: State::Refused,
        edit_allowed: false,
        scope_status: None,
        declared_at: now,
        expires_at: now.saturating_add(i64::from(ttl) * 1000),
        ttl_seconds: ttl,
        lease_renewed_at: now,
        lease_seconds: clamp(session.lease, LEASE),
        request_digest: sha256(json::canonical(&asked).as_bytes()),
        workspace_digest: workspace.map(CheckoutState::digest).unwrap_or_default(),
        peers_digest: String::new(),
        radius_level: String::new(),
        baseline_sha256: (head.baseline != baseline::Seen::Missing)
            .then(|| digest(&accepted(head))),
        strictness: request.strictness,
        was_violated: false,
        carried: None,
        named: Vec::new(),
        accepted: None,
        left: None,
        snapshot: workspace.map(|workspace| Snapshot {
            captured_at: now,
            workspace: workspace.clone(),
        }),
    }
}

/// The baseline that the analysis saw, as it is stored.
fn accepted(head: &RunHead) -> Value {
    serde_json::to_value(&head.baseline).unwrap_or_default()
}

/// The files that differ from the run although git calls them clean.
pub(crate) fn drifted(
    ports: &Ports<'_>,
    head: &RunHead,
    now: &CheckoutState,
) -> Result<BTreeSet<RawPath>, ChangeError> {
    let (before, after) = (head.workspace.tree.as_deref(), now.tree.as_deref());
    let moved = ports.checkout.moved(before, after)?;
    let mut drifted = now.drifted(&head.workspace, &moved);
    let below = format!("{}/", head.root);
    drifted.retain(|path| head.root.is_empty() || path.as_bytes().starts_with(below.as_bytes()));
    Ok(drifted)
}

/// Closes expired intents.
pub(crate) fn close_what_is_over(
    ports: &mut Ports<'_>,
    session: &Session,
    now: i64,
) -> Result<(), ChangeError> {
    let known = ports.registry.look(None)?;
    let over = {
        let viewer = ports.viewer(session, now);
        let mut open = known.intents.iter();
        open.any(|intent| closing(intent, Sweep::Lazy, &viewer).is_some())
    };
    if over {
        crate::recover::perform::sweep(ports, session, now, Sweep::Lazy)?;
    }
    Ok(())
}

fn write_down(ports: &mut Ports<'_>, answer: &mut Started) -> Result<(), ChangeError> {
    let Some(intent) = &answer.intent else {
        return Ok(());
    };
    let mut blast = None;
    if let Some(reached) = &answer.blast {
        let document = reached.document(&intent.run_id);
        blast = ports.keep(&intent.intent_id, BLAST, &document).ok();
    }
    // A blast report that cannot be stored or indexed is given in full instead.
    if let Some((_, digest)) = &blast
        && index_blast(ports, intent, digest).is_ok()
    {
        answer.blast_digest = Some(digest.clone());
    }
    let in_the_way: Vec<&str> = answer
        .conflicts
        .iter()
        .map(|one| one.peer.intent_id.as_str())
        .collect();
    declare(ports, intent, answer.status, &in_the_way, blast)?;
    Ok(())
}

/// Writes the first record for an owner that died before it could.
pub(crate) fn begin(ports: &mut Ports<'_>, intent: &Intent) -> Result<(), PortError> {
    let (state, status) = match intent.state {
        State::Refused => (State::Refused, StartStatus::Blocked),
        _ if intent.edit_allowed => (State::Active, StartStatus::Active),
        _ => (State::Queued, StartStatus::Queued),
    };
    // Later states of the intent belong to the records that follow.
    let declared = Intent {
        state,
        ..intent.clone()
    };
    let blast = ports.evidence.get(&intent.intent_id, BLAST)?;
    let blast = blast.map(|kept| (BLAST, sha256(&kept)));
    declare(ports, &declared, status, &[], blast)
}

/// Writes the first record of a chain, and the files that it names.
fn declare(
    ports: &mut Ports<'_>,
    intent: &Intent,
    status: StartStatus,
    in_the_way: &[&str],
    blast: Option<(&'static str, String)>,
) -> Result<(), PortError> {
    let document = serde_json::to_value(intent).unwrap_or_default();
    let mut files = vec![
        ports.keep(&intent.intent_id, INTENT, &document)?,
        (BEFORE, intent.report_digest.clone()),
    ];
    let baseline = intent.baseline_sha256.clone();
    files.extend(baseline.map(|sha256| (BASELINE, sha256)));
    files.extend(blast);
    let what = match intent.state {
        State::Active => IntentEvent::Declared,
        State::Queued => IntentEvent::Queued,
        _ => IntentEvent::Refused,
    };
    let facts = json!({
        "status": status.name(),
        "run_id": intent.run_id,
        "report_digest": intent.report_digest,
        "scope": intent.scope,
        "scope_digest": intent.scope.digest(),
        "workspace_digest": intent.workspace_digest,
        "in_the_way": in_the_way,
    });
    ports.append(what, &intent.intent_id, facts, &files)
}

/// Makes the blast report of a change retrievable by its digest and its name.
fn index_blast(ports: &mut Ports<'_>, intent: &Intent, digest: &str) -> Result<(), PortError> {
    for name in [digest, &artifact_id(digest)] {
        ports.registry.keep_digest(name, &intent.intent_id)?;
    }
    Ok(())
}
