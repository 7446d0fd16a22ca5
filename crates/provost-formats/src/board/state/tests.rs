use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::board::decide::{Decision, MOST_LOCKS, Report, Request};
use crate::board::delta::{Create, Delta};
use crate::board::lock::conflicts;
use crate::board::row::{Priority, Pulse, Status};
use provost_core::code::Code;
use provost_core::record::{self, Head};

mod round;

const RUN: &str = "7b0c2f1e-9a4d-4c3b-8f21-5d6e7a8b9c0d";

/// Nested and separate, so that some requests conflict.
const PLACES: [&str; 5] = ["a", "a/b", "a/b/c", "d", "e/f"];

const FAILED: Code = Code::AcceptanceFailed;

fn task(number: u8) -> TaskId {
    TaskId::parse(&format!("T-{number}")).unwrap()
}

fn place(number: u8) -> Resource {
    Resource::parse(PLACES[usize::from(number) % PLACES.len()]).unwrap()
}

fn terms(number: u8, scope: u8, dependencies: &[u8]) -> Terms {
    Terms {
        task_id: task(number),
        objective: "objective".to_owned(),
        title: format!("title {number}"),
        dependencies: dependencies.iter().map(|on| task(*on)).collect(),
        lock_scope: vec![place(scope)],
        forbidden_scope: vec![Resource::parse("z").unwrap()],
        acceptance_criteria: vec!["c".to_owned()],
        constraints: Vec::new(),
        timeout_seconds: 60,
        heartbeat_interval_seconds: 5,
        priority: Priority::Normal,
        packet: json!({ "scope": scope }),
    }
}

fn assign(number: u8, scope: u8, dependencies: &[u8]) -> Request {
    Request::Assign {
        owner: "ada".to_owned(),
        terms: Box::new(terms(number, scope, dependencies)),
    }
}

fn report(number: u8, status: Status, code: Option<Code>) -> Request {
    Request::Result(Box::new(Report {
        task_id: task(number),
        status,
        note: None,
        log_end: Some(LogLine {
            line: "{}".to_owned(),
            code,
            next_step: "next".to_owned(),
        }),
        result: json!({ "status": status }),
    }))
}

fn delta(id: &str, number: u8, status: Status) -> Delta {
    Delta {
        delta_id: id.to_owned(),
        task_id: task(number),
        status,
        owner: "ada".to_owned(),
        reason: "because".to_owned(),
        create: Create::Unsaid,
        pulse: Pulse::default(),
    }
}

fn apply(base: u64, deltas: Vec<Delta>) -> Request {
    let blocker = |delta: &Delta| Blocker {
        task_id: delta.task_id.clone(),
        code: Code::LockConflict,
        reason: "waits".to_owned(),
    };
    Request::Apply {
        base,
        blockers: deltas.iter().map(blocker).collect(),
        deltas,
        terms: Vec::new(),
    }
}

/// The board after all `requests`, each of which must be granted.
fn after(requests: Vec<Request>) -> Board {
    let mut board = Board::new(RUN);
    for request in requests {
        board = board.decide(request, 0).unwrap().board;
    }
    board
}

fn refusal(board: &Board, request: Request) -> Option<Code> {
    board.decide(request, 0).err().map(|error| error.code())
}

/// A board on which T-1 is in progress on `a`, and T-3 is to be done; its version is 2.
fn two_tasks() -> Board {
    let todo = apply(1, vec![delta("t", 3, Status::Todo)]);
    after(vec![assign(1, 0, &[]), todo])
}

fn beat(number: u8, owner: &str) -> Request {
    Request::Heartbeat {
        task_id: task(number),
        owner: Some(owner.to_owned()),
    }
}

fn lock(number: u8, names: &[&str]) -> Request {
    let names = names.iter().map(|one| Resource::parse(one).unwrap());
    Request::Lock {
        task_id: task(number),
        resources: names.collect(),
    }
}

fn expect_refusals(cases: Vec<(&str, Request, Code)>) {
    let board = two_tasks();
    for (name, request, want) in cases {
        assert_eq!(refusal(&board, request), Some(want), "{name}");
    }
}

#[test]
fn places_of_the_machine_and_too_many_places_are_not_locked() {
    let scope = |names: Vec<String>| {
        let mut terms = terms(2, 3, &[]);
        let parse = |name: &String| Resource::parse(name).unwrap();
        terms.lock_scope = names.iter().map(parse).collect();
        let (owner, terms) = ("bob".to_owned(), Box::new(terms));
        Request::Assign { owner, terms }
    };
    let many = |count: usize| scope((0..count).map(|at| format!("m/{at}")).collect());
    let absolute = scope(vec!["/srv/repository/d".to_owned()]);
    expect_refusals(vec![
        ("absolute", absolute, Code::SchemaInvalid),
        ("absolute, later", lock(3, &["/d"]), Code::SchemaInvalid),
        // One lock is held already.
        ("many", many(MOST_LOCKS), Code::LockConflict),
    ]);
    assert_eq!(refusal(&two_tasks(), many(MOST_LOCKS - 1)), None);
}

#[test]
fn what_a_worker_may_not_is_refused_by_its_rule() {
    use Code::{DependencyNotMet, InvalidTransition, LedgerInconsistent, MissingRequiredInput};
    use Status::{Blocked, Done};
    expect_refusals(vec![
        ("overlap", assign(2, 1, &[]), Code::LockConflict),
        ("again, otherwise", assign(1, 3, &[]), InvalidTransition),
        ("not done", assign(2, 3, &[1]), DependencyNotMet),
        ("not there", assign(2, 3, &[9]), DependencyNotMet),
        ("itself", assign(2, 3, &[2]), DependencyNotMet),
        (
            "beat of an unknown task",
            beat(9, "ada"),
            LedgerInconsistent,
        ),
        ("beat of another", beat(1, "bob"), Code::NonCompliant),
        ("beat too early", beat(3, "ada"), InvalidTransition),
        (
            "result of an unknown task",
            report(9, Done, None),
            LedgerInconsistent,
        ),
        ("result too early", report(3, Done, None), InvalidTransition),
        ("no code", report(1, Blocked, None), MissingRequiredInput),
        (
            "lock by an unknown task",
            lock(9, &["d"]),
            LedgerInconsistent,
        ),
        (
            "lock, half free",
            lock(3, &["d", "a/b"]),
            Code::LockConflict,
        ),
        ("lock of nothing", lock(3, &[]), MissingRequiredInput),
        ("lock of forbidden", lock(1, &["z/y"]), Code::LockConflict),
    ]);
    let release = Request::Release {
        task_id: task(1),
        resources: None,
    };
    expect_refusals(vec![("needed", release, LedgerInconsistent)]);
}

#[test]
fn what_a_delta_may_not_is_refused_by_its_rule() {
    use Code::{ConcurrencyConflict, InvalidTransition, LedgerInconsistent, MissingRequiredInput};
    use Status::{Blocked, Done, Failed, InProgress};
    let step = |base, id, number, status| apply(base, vec![delta(id, number, status)]);
    let mut future = delta("x", 1, InProgress);
    future.pulse.last_heartbeat_at = Some("1970-01-01T00:00:31Z".to_owned());
    let unsaid = Request::Apply {
        base: 2,
        deltas: vec![delta("x", 3, Blocked)],
        blockers: Vec::new(),
        terms: Vec::new(),
    };
    expect_refusals(vec![
        (
            "unassigned",
            step(2, "x", 3, InProgress),
            MissingRequiredInput,
        ),
        ("unproven", step(2, "x", 1, Done), MissingRequiredInput),
        ("no such step", step(2, "x", 3, Done), InvalidTransition),
        ("unknown", step(2, "x", 9, Failed), LedgerInconsistent),
        ("stale", step(1, "x", 1, Failed), ConcurrencyConflict),
        ("reused", step(1, "t", 1, Failed), ConcurrencyConflict),
        ("ahead of time", apply(2, vec![future]), Code::SchemaInvalid),
        ("blocked without a code", unsaid, MissingRequiredInput),
    ]);
}

#[test]
fn a_task_that_ended_stays_as_it_is() {
    use Status::{Blocked, Canceled, Done, Failed};
    let ended = |status| match status {
        Done | Failed => after(vec![assign(1, 0, &[]), report(1, status, Some(FAILED))]),
        _ => after(vec![
            assign(1, 0, &[]),
            apply(1, vec![delta("c", 1, status)]),
        ]),
    };
    for status in [Done, Failed, Canceled] {
        let board = ended(status);
        let version = board.version();
        let Request::Result(mut other) = report(1, status, Some(FAILED)) else {
            unreachable!()
        };
        other.result = json!({ "status": status, "files_touched": ["other"] });
        let mut alive = delta("x", 1, status);
        alive.pulse.last_heartbeat_at = Some("1970-01-01T00:00:00Z".to_owned());
        let mut mine = delta("x", 1, status);
        mine.owner = "bob".to_owned();
        let line = LogLine {
            line: "{}".to_owned(),
            code: None,
            next_step: String::new(),
        };
        let log = Request::Log {
            task_id: task(1),
            lines: vec![line],
        };
        let conflict = Code::ConcurrencyConflict;
        let cases = [
            ("other bytes", Request::Result(other), conflict),
            ("done", report(1, Done, None), conflict),
            ("blocked", report(1, Blocked, Some(FAILED)), conflict),
            ("a log", log, conflict),
            ("a pulse", apply(version, vec![alive]), conflict),
            (
                "an owner",
                apply(version, vec![mine]),
                Code::InvalidTransition,
            ),
            ("a beat", beat(1, "ada"), Code::InvalidTransition),
            ("a lock", lock(1, &["d"]), Code::InvalidTransition),
            ("an assignment", assign(1, 0, &[]), Code::InvalidTransition),
        ];
        for (name, request, want) in cases {
            if name == "done" && status == Done {
                continue;
            }
            assert_eq!(refusal(&board, request), Some(want), "{status}: {name}");
        }
        if status != Canceled {
            let replay = board.decide(report(1, status, Some(FAILED)), 0).unwrap();
            assert_eq!((replay.fact, &replay.board), (None, &board), "{status}");
        }
    }
}

#[test]
fn a_worker_without_a_log_has_not_ended() {
    let board = after(vec![assign(1, 0, &[])]);
    let Request::Result(mut silent) = report(1, Status::Done, None) else {
        unreachable!()
    };
    silent.log_end = None;
    let refused = refusal(&board, Request::Result(silent));
    assert_eq!(refused, Some(Code::MissingRequiredInput));
}

#[test]
fn a_task_that_stops_frees_its_locks_in_the_same_step() {
    use Status::{Blocked, Canceled, Done, Failed};
    let code = Some(Code::AcceptanceFailed);
    let begun = after(vec![assign(1, 0, &[])]);
    let result = |status| (status, report(1, status, code));
    let step = |status| (status, apply(1, vec![delta("x", 1, status)]));
    let cases = [
        result(Done),
        result(Blocked),
        result(Failed),
        step(Blocked),
        step(Failed),
        step(Canceled),
    ];
    for (status, request) in cases {
        let stopped = begun.decide(request, 0).unwrap().board;
        assert_eq!(stopped.row(&task(1)).unwrap().status, status);
        assert_eq!(stopped.held_by(&task(1)), [], "{status}");
        let blocker = stopped.card(&task(1)).unwrap().blocker.as_ref();
        assert_eq!(blocker.is_some(), status == Blocked, "{status}");
        assert!(stopped.decide(assign(2, 1, &[]), 0).is_ok(), "{status}");
    }
}

#[test]
fn the_watchdog_blocks_and_releases_in_one_step() {
    let board = after(vec![assign(1, 0, &[]), assign(2, 3, &[])]);
    let beat = Request::Heartbeat {
        task_id: task(2),
        owner: None,
    };
    let board = board.decide(beat, 50_000).unwrap().board;
    assert_eq!(board.decide(Request::Tick, 60_000).unwrap().fact, None);
    let ticked = board.decide(Request::Tick, 60_001).unwrap();
    let Some(Fact::TimedOut { late }) = &ticked.fact else {
        panic!("{ticked:?}")
    };
    assert_eq!((late.len(), late[0].silent_ms), (1, 60_001));
    let after = ticked.board;
    assert_eq!(after.version(), board.version() + 1);
    let row = after.row(&task(1)).unwrap();
    assert_eq!(
        (row.status, row.pulse.timed_out),
        (Status::Blocked, Some(true))
    );
    let blocker = after.card(&task(1)).unwrap().blocker.as_ref().unwrap();
    assert_eq!(blocker.code, Code::TaskTimeout);
    assert!(after.held_by(&task(1)).is_empty());
    assert_eq!(after.held_by(&task(2)).len(), 1);
    // The resource is free for others, and the task can be assigned again.
    assert!(after.decide(assign(3, 1, &[]), 0).is_ok());
    assert!(after.decide(assign(1, 0, &[]), 0).is_ok());
}

#[test]
fn one_task_that_cannot_be_judged_does_not_hide_the_others() {
    let board = after(vec![assign(1, 0, &[])]);
    let board = board.decide(assign(2, 3, &[]), 10_000_000).unwrap().board;
    let ticked = board.decide(Request::Tick, 100_000).unwrap();
    assert_eq!(ticked.doubts.len(), 1);
    assert_eq!(ticked.board.row(&task(1)).unwrap().status, Status::Blocked);
    assert_eq!(
        ticked.board.row(&task(2)).unwrap().status,
        Status::InProgress
    );
}

/// What a random writer does.
#[derive(Debug, Clone)]
enum Act {
    Assign(u8, u8, Vec<u8>, bool),
    Beat(u8),
    Report(u8, u8),
    Tick,
    Apply(Vec<(u8, u8, u8)>, bool),
    Lock(u8, Vec<u8>),
    Release(u8, Option<Vec<u8>>),
    Log(u8),
}

fn act() -> impl Strategy<Value = Act> {
    let number = 1..5_u8;
    let some = |most| prop::collection::vec(0..5_u8, 0..most);
    prop_oneof![
        5 => (number.clone(), 0..5_u8, prop::collection::vec(1..5_u8, 0..2), any::<bool>())
            .prop_map(|(task, scope, on, second)| Act::Assign(task, scope, on, second)),
        1 => number.clone().prop_map(Act::Beat),
        4 => (number.clone(), 0..3_u8).prop_map(|(task, how)| Act::Report(task, how)),
        1 => Just(Act::Tick),
        4 => (prop::collection::vec((number.clone(), 0..6_u8, 0..20_u8), 1..3), any::<bool>())
            .prop_map(|(deltas, fresh)| Act::Apply(deltas, fresh)),
        2 => (number.clone(), some(3)).prop_map(|(task, list)| Act::Lock(task, list)),
        2 => (number.clone(), prop::option::of(some(3)))
            .prop_map(|(task, list)| Act::Release(task, list)),
        1 => number.prop_map(Act::Log),
    ]
}

fn request(board: &Board, act: Act) -> Request {
    match act {
        Act::Assign(number, scope, dependencies, second) => Request::Assign {
            owner: if second { "bob" } else { "ada" }.to_owned(),
            terms: Box::new(terms(number, scope, &dependencies)),
        },
        Act::Beat(number) => Request::Heartbeat {
            task_id: task(number),
            owner: None,
        },
        Act::Report(number, how) => {
            let how = [Status::Done, Status::Blocked, Status::Failed][usize::from(how)];
            report(number, how, Some(Code::AcceptanceFailed))
        }
        Act::Tick => Request::Tick,
        Act::Apply(deltas, fresh) => {
            let base = board.version() + u64::from(!fresh);
            let one = |(number, status, id): (u8, u8, u8)| {
                delta(&format!("d{id}"), number, Status::ALL[usize::from(status)])
            };
            apply(base, deltas.into_iter().map(one).collect())
        }
        Act::Lock(number, list) => Request::Lock {
            task_id: task(number),
            resources: list.into_iter().map(place).collect(),
        },
        Act::Release(number, list) => Request::Release {
            task_id: task(number),
            resources: list.map(|list| list.into_iter().map(place).collect()),
        },
        Act::Log(number) => Request::Log {
            task_id: task(number),
            lines: vec![LogLine {
                line: format!("{{\"at\":{}}}", board.version()),
                code: None,
                next_step: String::new(),
            }],
        },
    }
}

/// What must be true of every board that requests can make.
fn sound(board: &Board) -> Result<(), TestCaseError> {
    prop_assert!(conflicts(board.locks()).is_empty());
    for lock in board.locks().iter().filter(|lock| lock.active) {
        prop_assert!(!board.row(&lock.task_id).unwrap().status.is_terminal());
    }
    for row in board.rows() {
        if row.status == Status::InProgress {
            let scope = &board.terms(&row.task_id).unwrap().lock_scope;
            let held = board.held_by(&row.task_id);
            prop_assert!(scope.iter().all(|place| held.contains(place)));
            prop_assert!(row.pulse.last_heartbeat_at.is_some());
        }
        let blocker = board
            .card(&row.task_id)
            .and_then(|card| card.blocker.as_ref());
        prop_assert_eq!(blocker.is_some(), row.status == Status::Blocked);
    }
    prop_assert_eq!(board.issues(), []);
    Ok(())
}

proptest! {
    #[test]
    fn whatever_is_asked_a_board_stays_sound_and_comes_back_from_its_records(
        acts in prop::collection::vec((act(), 0..40_000_i64), 0..60),
        cut: prop::sample::Index,
    ) {
        let mut boards = vec![Board::new(RUN)];
        let (mut head, mut text) = (Head::genesis(), String::new());
        let mut now = 0;
        for (act, later) in acts {
            now += later;
            let board = boards.last().unwrap();
            let is_beat = matches!(act, Act::Beat(_));
            let asked = request(board, act);
            let Ok(Decision { fact: Some(fact), board: next, .. }) = board.decide(asked.clone(), now)
            else {
                continue;
            };
            sound(&next)?;
            prop_assert_eq!(next.version(), board.version() + 1);
            // A repeated request changes nothing: granted or refused, never twice.
            let again = next.decide(asked, now);
            prop_assert!(is_beat || again.is_err() || again.unwrap().fact.is_none());
            text += &(head.append(fact.event(RUN, "2026-01-01T00:00:00Z".into())).line() + "\n");
            boards.push(next);
        }
        let records = record::read(text.as_bytes(), Head::genesis()).unwrap().records;
        let last = Board::fold(RUN, &records).unwrap();
        prop_assert_eq!(&last, boards.last().unwrap());
        let cut = cut.index(boards.len());
        let earlier = Board::fold(RUN, &records[..cut]).unwrap();
        prop_assert_eq!(&earlier, &boards[cut]);
        prop_assert_eq!(earlier.next(), boards[cut].next());
    }
}
