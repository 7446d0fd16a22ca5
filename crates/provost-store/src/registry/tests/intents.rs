//! Intents in the registry, against a model and against damage.

mod earlier_version;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use provost_change::conflict::{conflicts, peers};
use provost_change::intent::fact::{IntentFact, Renewal, Takeover};
use provost_change::intent::{Intent, ScopeStatus, State, VERSION, Viewer};
use provost_change::ports::{IntentEntry, IntentRegistry as _, RegistryView};
use provost_change::scope::ChangeScope;
use provost_core::path::RawPath;

use super::*;

fn intent(id: &str, pid: u32, allowed: &[&str], now: i64) -> Intent {
    Intent {
        version: VERSION,
        intent_id: id.into(),
        owner: owner(pid, "boot"),
        agent_label: "agent".into(),
        agent_start_epoch: 0,
        root: String::new(),
        run_id: "run".into(),
        report_digest: "digest".into(),
        intent: "work".into(),
        expected_effects: Vec::new(),
        scope: ChangeScope::parse(allowed, &[], &[], "").unwrap(),
        state: State::Active,
        edit_allowed: true,
        scope_status: None,
        declared_at: now,
        expires_at: now + 1000,
        ttl_seconds: 1,
        lease_renewed_at: now,
        lease_seconds: 1,
        request_digest: String::new(),
        workspace_digest: String::new(),
        peers_digest: String::new(),
        radius_level: String::new(),
        snapshot: None,
        baseline_sha256: None,
        strictness: provost_lens::structure::budget::Strictness::default(),
        was_violated: false,
        carried: None,
        named: Vec::new(),
        accepted: None,
        left: None,
    }
}

fn declared(intent: Intent) -> Vec<IntentEntry> {
    vec![IntentEntry::Declared(Box::new(intent))]
}

fn change(registry: &mut SqliteRegistry, id: &str, fact: &IntentFact) {
    let entry = |known: &RegistryView| {
        let mut found = known.intents.iter();
        let found = found.find(|one| one.intent_id == id).unwrap();
        vec![found.change(fact.clone()).1]
    };
    registry.turn(Some(id), &mut { entry }).unwrap();
}

fn closed(state: State) -> IntentFact {
    IntentFact::Closed { state, left: None }
}

fn unread(known: &RegistryView) -> Vec<(&str, &str)> {
    let unread = known.unread.iter();
    unread
        .map(|one| (one.intent_id.as_str(), one.why.as_str()))
        .collect()
}

fn events(connection: &Connection) -> i64 {
    let count = "SELECT count(*) FROM intent_event";
    connection.query_row(count, [], |row| row.get(0)).unwrap()
}

fn put(registry: &mut SqliteRegistry, intent: &Intent) {
    registry
        .turn(None, &mut |_| declared(intent.clone()))
        .unwrap();
}

fn names(known: &RegistryView) -> Vec<&str> {
    known
        .intents
        .iter()
        .map(|one| one.intent_id.as_str())
        .collect()
}

#[test]
fn the_state_of_an_intent_is_the_fold_over_its_events_and_rows_stay() {
    let scratch = Scratch::new();
    let mut registry = scratch.open();
    let one = intent("one", 1, &["a"], 0);
    put(&mut registry, &one);
    let mut want = one.clone();
    let facts = [
        IntentFact::Named {
            paths: vec![RawPath::new("b")],
        },
        IntentFact::Checked {
            status: ScopeStatus::Violated,
            at: 3,
        },
        IntentFact::Violated,
        IntentFact::Renewed(Renewal {
            state: State::Active,
            edit_allowed: false,
            lease_renewed_at: 4,
            lease_seconds: 7,
            ttl_seconds: 8,
            expires_at: 4000,
        }),
        IntentFact::Recovered(Takeover {
            owner: owner(2, "boot"),
            agent_label: "other".into(),
            agent_start_epoch: 9,
            lease_renewed_at: 5,
            edit_allowed: true,
        }),
        IntentFact::Accepted {
            files: BTreeMap::from([(RawPath::new("a"), None)]),
        },
    ];
    for fact in &facts {
        change(&mut registry, "one", fact);
        want = want.after(fact);
        assert_eq!(registry.look(None).unwrap().intents, [want.clone()]);
    }
    assert_eq!(registry.renew_all(&owner(2, "boot"), 6).unwrap(), 1);
    want.lease_renewed_at = 6;
    registry = scratch.open();
    assert_eq!(registry.look(None).unwrap().intents, [want.clone()]);
    change(&mut registry, "one", &closed(State::Clean));
    assert!(names(&registry.look(None).unwrap()).is_empty());
    let known = registry.look(Some("one")).unwrap();
    assert_eq!(known.intents, [want.after(&closed(State::Clean))]);
    let connection = Connection::open(&scratch.path).unwrap();
    let declared_and_closed = 2;
    let rows = declared_and_closed + i64::try_from(facts.len()).unwrap();
    assert_eq!(events(&connection), rows, "a heartbeat is no event");
    let changed = connection.execute("UPDATE intent_event SET event = 'x'", []);
    assert!(changed.is_err());
}

#[test]
fn an_unreadable_intent_is_kept_and_reported() {
    let scratch = Scratch::new();
    let mut registry = scratch.open();
    for name in ["damaged", "later", "cut", "gap", "empty", "fine"] {
        put(&mut registry, &intent(name, 1, &[name], 0));
        change(&mut registry, name, &IntentFact::Violated);
        change(&mut registry, name, &IntentFact::Violated);
    }
    let connection = Connection::open(&scratch.path).unwrap();
    let later = r#"{"version": 99, "anything": true}"#;
    let hash = provost_core::object::sha256(later.as_bytes());
    let damage = format!(
        "DROP TRIGGER intent_event_stays;
         UPDATE intent_event SET event = '{{' WHERE intent_id = 'damaged';
         DELETE FROM intent_event WHERE intent_id = 'empty';
         DELETE FROM intent_event WHERE intent_id = 'later';
         INSERT INTO intent_event (intent_id, event, hash) VALUES ('later', '{later}', '{hash}');
         UPDATE intent_index SET last = (SELECT max(seq) FROM intent_event)
             WHERE intent_id = 'later';
         DELETE FROM intent_event WHERE seq IN
             (SELECT max(seq) FROM intent_event WHERE intent_id = 'cut');
         DELETE FROM intent_event WHERE seq IN
             (SELECT max(seq) - 1 FROM intent_event WHERE intent_id = 'gap');"
    );
    connection.execute_batch(&damage).unwrap();
    put(&mut registry, &intent("new", 2, &["new"], 1));
    registry = scratch.open();
    let known = registry.look(None).unwrap();
    assert_eq!(names(&known), ["fine", "new"]);
    let altered = "its content does not fit its digest";
    let want = [
        ("cut", "its last event is missing"),
        ("damaged", altered),
        ("empty", "it has no events"),
        ("gap", altered),
        ("later", "its version 99 is newer than this program knows"),
    ];
    assert_eq!(unread(&known), want);
    let kept = "SELECT event FROM intent_event WHERE intent_id = 'later'";
    let kept: String = connection.query_row(kept, [], |row| row.get(0)).unwrap();
    assert_eq!(kept, later);
}

#[test]
fn an_index_that_is_behind_the_events_is_made_anew() {
    let scratch = Scratch::new();
    let mut registry = scratch.open();
    for (at, name) in ["b", "a", "over"].into_iter().enumerate() {
        let now = i64::try_from(at).unwrap();
        put(&mut registry, &intent(name, 1, &[name], now));
    }
    change(&mut registry, "over", &closed(State::Clean));
    change(&mut registry, "a", &IntentFact::Violated);
    let known = registry.look(None).unwrap();
    drop(registry);
    let damages = [
        "DELETE FROM intent_index",
        "DELETE FROM intent_index WHERE intent_id = 'b'",
        "UPDATE intent_index SET last = 1, open = 1, declared_at = 9, expires_at = 9",
    ];
    for damage in damages {
        let connection = Connection::open(&scratch.path).unwrap();
        connection.execute(damage, []).unwrap();
        drop(connection);
        let seen = SqliteRegistry::glance(&scratch.path, |registry| registry.look(None)).unwrap();
        assert_eq!(seen.intents, known.intents, "{damage}");
        assert_eq!(unread(&seen), [], "{damage}");
    }
    assert_eq!(scratch.open().purge(i64::MAX).unwrap(), 1);
}

#[test]
fn an_intent_is_declared_once_and_changed_only_if_it_is_known() {
    let scratch = Scratch::new();
    let mut registry = scratch.open();
    let one = intent("one", 1, &["a"], 0);
    put(&mut registry, &one);
    let again = declared(one.clone());
    assert!(registry.turn(None, &mut |_| again.clone()).is_err());
    let unknown = intent("two", 1, &["a"], 0).close(State::Clean).1;
    let both = [one.close(State::Clean).1, unknown];
    assert!(registry.turn(None, &mut |_| both.to_vec()).is_err());
    assert_eq!(registry.look(None).unwrap().intents, [one]);
}

#[test]
fn runs_and_agents_see_each_other() {
    let scratch = Scratch::new();
    let mut registry = scratch.open();
    let all_alive = |_: &Owner| true;
    put(&mut registry, &intent("agent", 1, &["src/a"], 0));
    let held = registry
        .acquire(&request("run", &["src"], 0), &all_alive)
        .unwrap();
    let Acquired::Held(holders) = held else {
        panic!("an agent is at work there");
    };
    assert_eq!(holders[0].run_id, "agent");
    let none_alive = |_: &Owner| false;
    let granted = registry
        .acquire(&request("run", &["src"], 0), &none_alive)
        .unwrap();
    assert!(matches!(granted, Acquired::Granted(_)), "its agent is dead");
    let known = registry.look(None).unwrap();
    assert_eq!((known.leases.len(), names(&known)), (1, vec!["agent"]));
}

/// A random operation.
#[derive(Debug, Clone)]
enum Step {
    Start { pid: u32, scope: usize },
    Clear { nth: usize },
    Renew { pid: u32 },
    Wait { time: i64 },
    Die { pid: u32 },
    Reopen,
}

/// Scopes, each with the leaves of a small tree that it covers.
const SCOPES: [(&[&str], u8); 6] = [
    (&["a"], 0b0011),
    (&["a/b"], 0b0001),
    (&["a/c"], 0b0010),
    (&["d/e/f"], 0b0100),
    (&["a/b", "d"], 0b1101),
    (&["d/g"], 0b1000),
];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..4_u32, 0..SCOPES.len()).prop_map(|(pid, scope)| Step::Start { pid, scope }),
        3 => (0..8_usize).prop_map(|nth| Step::Clear { nth }),
        1 => (0..4_u32).prop_map(|pid| Step::Renew { pid }),
        3 => (1..600_i64).prop_map(|time| Step::Wait { time }),
        1 => (0..4_u32).prop_map(|pid| Step::Die { pid }),
        1 => Just(Step::Reopen),
    ]
}

/// Model of the registry: leaves instead of paths, no database.
#[derive(Default)]
struct Model {
    open: BTreeMap<String, (u32, usize, i64)>,
    dead: BTreeSet<u32>,
    now: i64,
    rows: i64,
}

impl Model {
    /// Whether `pid` may have `scope`.
    fn free(&self, pid: u32, scope: usize) -> bool {
        let mut others = self.open.values();
        !others.any(|(owner, held, end)| {
            *owner != pid
                && !self.dead.contains(owner)
                && self.now < *end
                && SCOPES[*held].1 & SCOPES[scope].1 != 0
        })
    }
}

/// Lets `pid` request a scope; registry and model must agree about the answer.
fn begin(
    registry: &mut SqliteRegistry,
    model: &mut Model,
    number: usize,
    (pid, scope): (u32, usize),
) -> Result<(), TestCaseError> {
    let new = intent(&format!("i{number:03}"), pid, SCOPES[scope].0, model.now);
    let (dead, now) = (model.dead.clone(), model.now);
    let alive = |owner: &Owner| !dead.contains(&owner.pid);
    let mut granted = false;
    registry
        .turn(None, &mut |known| {
            let viewer = Viewer {
                me: &new.owner,
                now,
                alive: &alive,
            };
            let others = peers(&known.intents, &known.leases, &viewer);
            granted = conflicts(&new.scope, &others).is_empty();
            if granted {
                declared(new.clone())
            } else {
                Vec::new()
            }
        })
        .unwrap();
    prop_assert_eq!(granted, model.free(pid, scope));
    if granted {
        let held = (pid, scope, new.expires_at);
        model.open.insert(new.intent_id, held);
        model.rows += 1;
    }
    Ok(())
}

fn play(steps: &[Step]) -> Result<(), TestCaseError> {
    let scratch = Scratch::new();
    let mut registry = scratch.open();
    let mut model = Model::default();
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Start { pid, scope } => begin(&mut registry, &mut model, number, (pid, scope))?,
            Step::Clear { nth } => {
                let Some(id) = model.open.keys().nth(nth).cloned() else {
                    continue;
                };
                change(&mut registry, &id, &closed(State::Clean));
                model.open.remove(&id);
                model.rows += 1;
            }
            Step::Renew { pid } => {
                let mine = |(owner, _, end): &&(u32, usize, i64)| *owner == pid && model.now < *end;
                let want = model.open.values().filter(mine).count();
                prop_assert_eq!(
                    registry.renew_all(&owner(pid, "boot"), model.now).unwrap(),
                    want
                );
            }
            Step::Wait { time } => model.now += time,
            Step::Die { pid } => {
                model.dead.insert(pid);
            }
            Step::Reopen => {
                drop(registry);
                registry = scratch.open();
            }
        }
        let known = registry.look(None).unwrap();
        let got: BTreeSet<&str> = names(&known).into_iter().collect();
        let want: BTreeSet<&str> = model.open.keys().map(String::as_str).collect();
        prop_assert_eq!(got, want);
        let connection = Connection::open(&scratch.path).unwrap();
        prop_assert_eq!(events(&connection), model.rows);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn intents_do_what_their_explanation_says(steps in prop::collection::vec(step(), 1..40)) {
        play(&steps)?;
    }
}
