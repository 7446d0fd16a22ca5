//! Intents in the registry, against a model and against damage.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use provost_change::conflict::{conflicts, peers};
use provost_change::event::IntentEvent;
use provost_change::intent::{Intent, State, VERSION, Viewer};
use provost_change::ports::{IntentEntry, IntentRegistry as _, RegistryView};
use provost_change::scope::ChangeScope;

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
    vec![IntentEntry {
        intent,
        what: Some(IntentEvent::Declared),
    }]
}

fn put(registry: &mut Registry, intent: &Intent) {
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
fn every_change_of_state_is_a_row_that_stays() {
    let scratch = Scratch::new();
    let mut registry = scratch.open();
    let mut one = intent("one", 1, &["a"], 0);
    put(&mut registry, &one);
    one.lease_renewed_at = 5;
    registry
        .turn(None, &mut |_| {
            vec![IntentEntry {
                intent: one.clone(),
                what: None,
            }]
        })
        .unwrap();
    one.state = State::Clean;
    let closed = IntentEntry {
        intent: one.clone(),
        what: Some(IntentEvent::Closed),
    };
    registry.turn(None, &mut |_| vec![closed.clone()]).unwrap();
    let history = registry.history("one").unwrap();
    let reported: Vec<(&str, State)> = history
        .iter()
        .map(|(what, intent)| (what.as_str(), intent.state))
        .collect();
    let want = [
        ("INTENT_DECLARED", State::Active),
        ("INTENT_CLOSED", State::Clean),
    ];
    assert_eq!(reported, want, "renewing a lease is no change of state");
    assert!(names(&registry.look(None).unwrap()).is_empty());
    assert_eq!(names(&registry.look(Some("one")).unwrap()), ["one"]);
    let connection = Connection::open(&scratch.path).unwrap();
    let changed = connection.execute("UPDATE intent_event SET what = 'x'", []);
    assert!(changed.is_err());
}

#[test]
fn an_unreadable_intent_is_kept_and_reported() {
    let scratch = Scratch::new();
    let mut registry = scratch.open();
    for name in ["damaged", "later", "fine"] {
        put(&mut registry, &intent(name, 1, &[name], 0));
    }
    let connection = Connection::open(&scratch.path).unwrap();
    connection
        .execute(
            "UPDATE intent SET record = '{' WHERE intent_id = 'damaged'",
            [],
        )
        .unwrap();
    let later = r#"{"version": 99, "anything": true}"#;
    connection
        .execute(
            "UPDATE intent SET record = ?1, digest = ?2 WHERE intent_id = 'later'",
            [later, &provost_core::object::sha256(later.as_bytes())],
        )
        .unwrap();
    put(&mut registry, &intent("new", 2, &["new"], 1));
    let known = registry.look(None).unwrap();
    assert_eq!(names(&known), ["fine", "new"]);
    let unread: Vec<&str> = known
        .unread
        .iter()
        .map(|one| one.intent_id.as_str())
        .collect();
    assert_eq!(unread, ["damaged", "later"]);
    let kept: String = connection
        .query_row(
            "SELECT record FROM intent WHERE intent_id = 'later'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(kept, later);
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

#[test]
fn a_registry_of_the_first_version_is_brought_up_to_date() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let connection = Connection::open(&scratch.path).unwrap();
    connection
        .execute_batch(
            "DROP TABLE intent; DROP TABLE intent_event; DROP TABLE intent_digest;
             PRAGMA user_version = 1;",
        )
        .unwrap();
    drop(connection);
    let mut registry = scratch.open();
    put(&mut registry, &intent("one", 1, &["a"], 0));
    registry.keep_digest("d", "one").unwrap();
    assert_eq!(registry.intent_of("d").unwrap().as_deref(), Some("one"));
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
    registry: &mut Registry,
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
                registry
                    .turn(None, &mut |known| {
                        let found = known
                            .intents
                            .iter()
                            .find(|one| one.intent_id == id)
                            .unwrap();
                        vec![IntentEntry {
                            intent: Intent {
                                state: State::Clean,
                                ..found.clone()
                            },
                            what: Some(IntentEvent::Closed),
                        }]
                    })
                    .unwrap();
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
        let rows: i64 = connection
            .query_row("SELECT count(*) FROM intent_event", [], |row| row.get(0))
            .unwrap();
        prop_assert_eq!(rows, model.rows);
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
