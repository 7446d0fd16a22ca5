//! Every use case of a change, cut at every call, and what the next call makes of it.

use provost_core::intent::answer::{Promoted, Recovered};
use provost_core::intent::record::State;
use provost_core::intent::start::Status;
use provost_engine::change::{clear, finish, gc, promote, recover, start};
use provost_engine::sim::{Cut, Power};

use crate::desk::{Desk, session, start_request};

const CUTS: [Cut; 3] = [Cut::Before, Cut::After, Cut::Flicker];

/// What is swept.
trait UseCase {
    /// The desk before it, without any cut.
    fn before() -> Desk;
    /// Does it as the process `pid`.
    fn attempt(desk: &mut Desk, pid: u32) -> Result<(), String>;
    /// Brings it to its end after the process `pid` was cut; `pid` of who goes on is given.
    fn go_on(desk: &mut Desk, pid: u32, place: &str);
    /// Shows that everything is as it must be.
    fn check(desk: &Desk, place: &str);
}

fn sweep<U: UseCase>(least: u32) {
    for cut in CUTS {
        for call in 1.. {
            let power = Power::cut_at(call, cut);
            let mut desk = U::before().powered(&power);
            let first = U::attempt(&mut desk, 1);
            let place = format!("cut {cut:?} call {call}");
            let struck = power.has_struck();
            power.restore();
            if struck {
                // A process that was cut is gone; one whose call failed asks again.
                let pid = if cut == Cut::Flicker { 1 } else { 9 };
                desk.dead = vec![1];
                desk.dead.retain(|dead| *dead != pid);
                U::go_on(&mut desk, pid, &place);
            } else {
                first.unwrap();
            }
            U::check(&desk, &place);
            for id in desk.intents.intents.keys() {
                assert_eq!(desk.faults(id), Vec::<String>::new(), "{place}: {id}");
            }
            if !struck {
                assert!(call > least, "only {call} calls were cut");
                break;
            }
        }
    }
}

/// Lets `pid` start, and gives the name of the intent.
fn started(desk: &mut Desk, pid: u32, want: Status) -> Result<String, String> {
    let answer = desk.with(|ports| start(ports, &session(pid), &start_request()));
    let answer = answer.map_err(|error| error.to_string())?;
    if answer.status == want {
        return Ok(answer.intent.unwrap().intent_id);
    }
    // Who cannot see the checkout is refused, and holds nothing.
    Err(answer.next_step)
}

/// The one intent that is open, whoever has it; taken over by `pid`, if it is not its own.
fn taken_over(desk: &mut Desk, pid: u32, place: &str) -> Option<String> {
    let open = desk.intents.open();
    assert!(open.len() <= 1, "{place}: {open:?}");
    let intent = open.first()?;
    let (id, owner) = (intent.intent_id.clone(), intent.owner.pid);
    if owner != pid {
        let run = desk.first_run();
        let answer = desk.with(|ports| recover(ports, &session(pid), &id, &run));
        assert!(
            matches!(answer, Ok(Recovered::Yes { .. })),
            "{place}: {answer:?}"
        );
    }
    Some(id)
}

struct Start;

impl UseCase for Start {
    fn before() -> Desk {
        Desk::new(Power::steady())
    }

    fn attempt(desk: &mut Desk, pid: u32) -> Result<(), String> {
        started(desk, pid, Status::Active).map(|_| ())
    }

    fn go_on(desk: &mut Desk, pid: u32, place: &str) {
        if pid == 1 || taken_over(desk, pid, place).is_none() {
            started(desk, pid, Status::Active).unwrap();
        }
    }

    fn check(desk: &Desk, place: &str) {
        let open = desk.intents.open();
        assert_eq!(open.len(), 1, "{place}");
        let intent = open[0];
        assert!(intent.edit_allowed && !desk.dead.contains(&intent.owner.pid));
        let id = &intent.intent_id;
        for name in ["before.json", "intent.json"] {
            assert!(desk.chronicle.has(id, name), "{place}: {name}");
        }
    }
}

#[test]
fn a_start_survives_failure_and_crash_at_any_call() {
    sweep::<Start>(5);
}

struct Abandon;

impl UseCase for Abandon {
    fn before() -> Desk {
        Desk::new(Power::steady())
    }

    fn attempt(desk: &mut Desk, pid: u32) -> Result<(), String> {
        started(desk, pid, Status::Active).map(|_| ())
    }

    fn go_on(desk: &mut Desk, _: u32, _: &str) {
        desk.dead = vec![1];
        desk.with(|ports| gc(ports, &session(9))).unwrap();
    }

    fn check(desk: &Desk, place: &str) {
        for intent in desk.intents.intents.values() {
            let closed = desk.chronicle.count(&intent.intent_id, "INTENT_CLOSED");
            let want = usize::from(!intent.state.is_open() && intent.state != State::Refused);
            assert_eq!(closed, want, "{place}");
        }
    }
}

#[test]
fn a_start_that_was_cut_at_any_call_is_cleared_away_with_a_proper_chain() {
    sweep::<Abandon>(5);
}

struct Finish;

impl UseCase for Finish {
    fn before() -> Desk {
        let mut desk = Desk::new(Power::steady());
        started(&mut desk, 1, Status::Active).unwrap();
        desk.edit();
        desk
    }

    fn attempt(desk: &mut Desk, pid: u32) -> Result<(), String> {
        let id = "intent-001";
        let request = desk.finish_request(id);
        let done = desk.with(|ports| finish(ports, &session(pid), &request));
        let done = done.map_err(|error| error.to_string())?;
        match (done.receipt_error, done.status.is_accepted()) {
            (None, true) => Ok(()),
            // The intent is still there, so that it can be finished again.
            (error, _) => Err(format!("{error:?} {:?}", done.reason)),
        }
    }

    fn go_on(desk: &mut Desk, pid: u32, place: &str) {
        if taken_over(desk, pid, place).is_some() {
            Self::attempt(desk, pid).unwrap();
        }
    }

    fn check(desk: &Desk, place: &str) {
        let id = "intent-001";
        assert_eq!(desk.state(id), State::Clean, "{place}");
        for name in ["intent.json", "receipt.json", "attestation.dsse.json"] {
            assert!(desk.chronicle.has(id, name), "{place}: {name}");
        }
        let judged = desk.chronicle.count(id, "FINISH_JUDGED");
        assert!((1..=2).contains(&judged), "{place}: {judged}");
        assert!(desk.chronicle.count(id, "INTENT_CLOSED") <= 1, "{place}");
    }
}

#[test]
fn a_finish_survives_failure_and_crash_at_any_call() {
    sweep::<Finish>(15);
}

#[test]
fn a_finish_that_cleared_its_intent_is_no_failure_although_its_last_record_was() {
    for call in 1.. {
        let power = Power::cut_at(call, Cut::Flicker);
        let mut desk = Finish::before().powered(&power);
        let answer = Finish::attempt(&mut desk, 1);
        let cleared = desk.state("intent-001") == State::Clean;
        assert_eq!(answer.is_ok(), cleared, "call {call}: {answer:?}");
        if !power.has_struck() {
            break;
        }
    }
}

struct Promote;

impl UseCase for Promote {
    fn before() -> Desk {
        let mut desk = Desk::new(Power::steady());
        let first = started(&mut desk, 2, Status::Active).unwrap();
        started(&mut desk, 1, Status::Queued).unwrap();
        let cleared = desk.with(|ports| clear(ports, &session(2), Some(&first)));
        cleared.unwrap();
        desk
    }

    fn attempt(desk: &mut Desk, pid: u32) -> Result<(), String> {
        let promoted = desk.with(|ports| promote(ports, &session(pid), "intent-002"));
        match promoted.map_err(|error| error.to_string())? {
            Promoted::Active(..) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    fn go_on(desk: &mut Desk, pid: u32, place: &str) {
        let id = taken_over(desk, pid, place).unwrap();
        if desk.state(&id) == State::Queued {
            Self::attempt(desk, pid).unwrap();
        }
    }

    fn check(desk: &Desk, place: &str) {
        let open = desk.intents.open();
        assert_eq!(open.len(), 1, "{place}");
        assert_eq!(open[0].state, State::Active, "{place}");
        assert!(open[0].edit_allowed, "{place}");
        assert!(desk.chronicle.has("intent-002", "before.json"), "{place}");
        assert!(desk.chronicle.count("intent-002", "INTENT_PROMOTED") <= 1);
    }
}

#[test]
fn a_promotion_survives_failure_and_crash_at_any_call() {
    sweep::<Promote>(5);
}

struct Recover;

impl UseCase for Recover {
    fn before() -> Desk {
        let mut desk = Desk::new(Power::steady());
        started(&mut desk, 5, Status::Active).unwrap();
        desk.dead = vec![5];
        desk
    }

    fn attempt(desk: &mut Desk, pid: u32) -> Result<(), String> {
        let run = desk.first_run();
        let answer = desk.with(|ports| recover(ports, &session(pid), "intent-001", &run));
        match answer.map_err(|error| error.to_string())? {
            Recovered::Yes { .. } => Ok(()),
            Recovered::No(refusal) => Err(format!("{refusal:?}")),
        }
    }

    fn go_on(desk: &mut Desk, pid: u32, place: &str) {
        desk.dead.push(5);
        assert!(taken_over(desk, pid, place).is_some(), "{place}");
    }

    fn check(desk: &Desk, place: &str) {
        let open = desk.intents.open();
        assert_eq!(open.len(), 1, "{place}");
        assert!(!desk.dead.contains(&open[0].owner.pid), "{place}");
        assert!(open[0].edit_allowed, "{place}");
    }
}

#[test]
fn a_recovery_survives_failure_and_crash_at_any_call() {
    sweep::<Recover>(3);
}
