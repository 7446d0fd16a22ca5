//! Thirty-two agents share one registry, and some are killed at any moment.
//!
//! A child is this test binary again. A child that may edit takes a kernel lock on every leaf of
//! its scope; if that fails, there were two owners.

#![expect(
    clippy::unwrap_used,
    reason = "the functions around the tests are tests as well"
)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use provost_change::conflict::{conflicts, peers};
use provost_change::intent::fact::{IntentFact, Promotion};
use provost_change::intent::{Intent, State, VERSION, Viewer};
use provost_change::ports::{IntentEntry, IntentRegistry as _};
use provost_change::queue::ahead;
use provost_change::scope::ChangeScope;
use provost_core::checkout::{CheckoutState, Snapshot};
use provost_core::lease::Owner;
use provost_store::registry::SqliteRegistry;
use rustix::fs::{FlockOperation, flock};

/// Names the directory of a child; not set in a parent.
const PLACE: &str = "PROVOST_TEST_INTENTS";

const PROCESSES: usize = 32;
const TURNS: u32 = 8;
const KILLS: usize = 12;

/// Scopes, each with the leaves of a small tree that it covers.
const SCOPES: [(&str, &[&str]); 5] = [
    ("a", &["a-b", "a-c"]),
    ("a/b", &["a-b"]),
    ("a/c", &["a-c"]),
    ("d", &["d-e", "d-f"]),
    ("d/e", &["d-e"]),
];

fn me() -> Owner {
    Owner {
        host: "host".into(),
        boot: "boot".into(),
        pid_namespace: "pid".into(),
        pid: std::process::id(),
        started: 1,
    }
}

/// A process is dead when its parent has reaped it; pids are not reused that soon.
fn alive(owner: &Owner) -> bool {
    Path::new(&format!("/proc/{}", owner.pid)).exists()
}

fn intent(id: String, entry: &str, state: State) -> Intent {
    Intent {
        version: VERSION,
        intent_id: id,
        owner: me(),
        agent_label: "agent".into(),
        agent_start_epoch: 0,
        root: String::new(),
        run_id: "run".into(),
        report_digest: "digest".into(),
        intent: "work".into(),
        expected_effects: Vec::new(),
        scope: ChangeScope::parse(&[entry], &[], &[], "").unwrap(),
        state,
        edit_allowed: state == State::Active,
        scope_status: None,
        declared_at: 0,
        expires_at: i64::MAX,
        ttl_seconds: 1,
        lease_renewed_at: 0,
        lease_seconds: u32::MAX,
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

/// Decides about `new` in one turn: it becomes active if no other intent conflicts or came first,
/// else it waits. Returns the state.
fn turn(registry: &mut SqliteRegistry, new: &Intent) -> State {
    let mut state = State::Queued;
    let owner = me();
    registry
        .turn(None, &mut |known| {
            let viewer = Viewer {
                me: &owner,
                now: 0,
                alive: &alive,
            };
            let others = peers(&known.intents, &known.leases, &viewer);
            let waits = known
                .intents
                .iter()
                .any(|one| one.intent_id == new.intent_id);
            let mut found = conflicts(&new.scope, &others);
            if waits {
                found.extend(ahead(new, &known.intents, &viewer));
            }
            state = if found.is_empty() {
                State::Active
            } else {
                State::Queued
            };
            if waits && state == State::Queued {
                return Vec::new();
            }
            if waits {
                let promotion = Promotion {
                    workspace_digest: String::new(),
                    snapshot: Snapshot {
                        captured_at: 0,
                        workspace: CheckoutState::default(),
                    },
                    work: None,
                };
                return vec![new.change(IntentFact::Promoted(Box::new(promotion))).1];
            }
            let intent = Intent {
                state,
                ..new.clone()
            };
            vec![IntentEntry::Declared(Box::new(intent))]
        })
        .unwrap();
    state
}

#[test]
fn part_of_an_agent() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let mut registry = SqliteRegistry::open(&place.join("registry.db")).unwrap();
    let pid = std::process::id();
    for number in 0..TURNS {
        let seed = (pid.wrapping_mul(7) + number * 3) as usize;
        let (entry, leaves) = SCOPES[seed % SCOPES.len()];
        let new = intent(format!("i-{pid}-{number}"), entry, State::Queued);
        let begin = Instant::now();
        while turn(&mut registry, &new) != State::Active {
            assert!(
                begin.elapsed() < Duration::from_mins(1),
                "no agent releases {entry}"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        println!("active {}", new.intent_id);
        let locks: Vec<File> = leaves
            .iter()
            .map(|leaf| {
                let file = File::create(place.join(leaf)).unwrap();
                flock(&file, FlockOperation::NonBlockingLockExclusive).expect("two owners");
                file
            })
            .collect();
        std::thread::sleep(Duration::from_millis(1));
        drop(locks);
        let entry = new.close(State::Clean).1;
        registry.turn(None, &mut |_| vec![entry.clone()]).unwrap();
        println!("closed {}", new.intent_id);
        std::io::stdout().flush().unwrap();
    }
    println!("done");
}

fn child(place: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "part_of_an_agent",
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(PLACE, place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn thirty_two_agents_never_share_a_file_and_lose_no_record() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    drop(SqliteRegistry::open(&place.join("registry.db")).unwrap());
    let mut children: Vec<Child> = (0..PROCESSES).map(|_| child(place)).collect();
    // Killed at moments that depend on the clock of the machine.
    for (number, child) in children.iter_mut().take(KILLS).enumerate() {
        std::thread::sleep(Duration::from_millis(20 + (number as u64 * 13) % 50));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut reported = BTreeSet::new();
    for (number, mut child) in children.into_iter().enumerate() {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let lines: Vec<String> = lines.map_while(Result::ok).collect();
        let status = child.wait().unwrap();
        if number >= KILLS {
            let words = child.stderr.take().map(|pipe| {
                BufReader::new(pipe)
                    .lines()
                    .map_while(Result::ok)
                    .collect::<Vec<_>>()
            });
            assert!(status.success(), "{words:?}");
            assert!(lines.iter().any(|line| line.ends_with("done")), "{lines:?}");
        }
        reported.extend(lines.into_iter().filter(|line| line.contains(" i-")));
    }
    let mut registry = SqliteRegistry::open(&place.join("registry.db")).unwrap();
    assert_eq!(registry.damage().unwrap(), None);
    for line in &reported {
        let mut words = line.split(' ').rev();
        let (id, what) = (words.next().unwrap(), words.next().unwrap());
        let known = registry.look(Some(id)).unwrap();
        let found = known.intents.iter().find(|one| one.intent_id == id);
        let state = found.map(|one| one.state);
        let fits = match state {
            Some(State::Clean) => true,
            Some(State::Active) => !what.ends_with("closed"),
            _ => false,
        };
        assert!(fits, "{line}: {state:?}");
    }
    assert!(reported.len() >= (PROCESSES - KILLS) * TURNS as usize * 2);
    let open = registry.look(None).unwrap().intents;
    let left: Vec<&Intent> = open.iter().filter(|one| alive(&one.owner)).collect();
    assert!(left.is_empty(), "{left:?}");
}
