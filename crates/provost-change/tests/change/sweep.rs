//! Every use case of a change, cut at every call, and what the next call does then.

use provost_change::answer::{Promoted, Recovered};
use provost_change::intent::State;
use provost_change::next_step::Audience;
use provost_change::service::{clear, finish, gc, promote, recover, start};
use provost_change::start::decide::StartStatus;
use provost_engine::sim::{Cut, Power};

use crate::stage::{ChangeStage, session, start_request};

const CUTS: [Cut; 3] = [Cut::Before, Cut::After, Cut::Flicker];

trait UseCase {
    /// The stage before the use case.
    fn before() -> ChangeStage;
    /// Runs the use case as the process `pid`.
    fn attempt(stage: &mut ChangeStage, pid: u32) -> Result<(), String>;
    /// Completes the use case as the process `pid`, after another process was cut.
    fn go_on(stage: &mut ChangeStage, pid: u32, place: &str);
    /// Checks the stage at the end.
    fn check(stage: &ChangeStage, place: &str);
}

fn sweep<U: UseCase>(least: u32) {
    for cut in CUTS {
        for call in 1.. {
            let power = Power::cut_at(call, cut);
            let mut stage = U::before().powered(&power);
            let first = U::attempt(&mut stage, 1);
            let place = format!("cut {cut:?} call {call}");
            let struck = power.has_struck();
            power.restore();
            if struck {
                // A process that was cut is gone; one whose call failed asks again.
                let pid = if cut == Cut::Flicker { 1 } else { 9 };
                stage.dead = vec![1];
                stage.dead.retain(|dead| *dead != pid);
                U::go_on(&mut stage, pid, &place);
            } else {
                first.unwrap();
            }
            U::check(&stage, &place);
            for id in stage.intents.intents.keys() {
                assert_eq!(stage.faults(id), Vec::<String>::new(), "{place}: {id}");
            }
            if !struck {
                assert!(call > least, "only {call} calls were cut");
                break;
            }
        }
    }
}

/// Starts a change as `pid`, and gives the id of the intent.
fn started(stage: &mut ChangeStage, pid: u32, want: StartStatus) -> Result<String, String> {
    let answer = stage.with(|ports| start(ports, &session(pid), &start_request()));
    let answer = answer.map_err(|error| error.to_string())?;
    if answer.status == want {
        return Ok(answer.intent.unwrap().intent_id);
    }
    // An agent that cannot read the checkout is refused, and holds nothing.
    Err(answer.message(Audience::Tool))
}

/// The one open intent; `pid` takes it over if another process owns it.
fn taken_over(stage: &mut ChangeStage, pid: u32, place: &str) -> Option<String> {
    let open = stage.intents.open();
    assert!(open.len() <= 1, "{place}: {open:?}");
    let intent = open.first()?;
    let (id, owner) = (intent.intent_id.clone(), intent.owner.pid);
    if owner != pid {
        let run = stage.first_run();
        let answer = stage.with(|ports| recover(ports, &session(pid), &id, &run));
        assert!(
            matches!(answer, Ok(Recovered::Yes { .. })),
            "{place}: {answer:?}"
        );
    }
    Some(id)
}

struct Start;

impl UseCase for Start {
    fn before() -> ChangeStage {
        ChangeStage::new(Power::steady())
    }

    fn attempt(stage: &mut ChangeStage, pid: u32) -> Result<(), String> {
        started(stage, pid, StartStatus::Active).map(|_| ())
    }

    fn go_on(stage: &mut ChangeStage, pid: u32, place: &str) {
        if pid == 1 || taken_over(stage, pid, place).is_none() {
            started(stage, pid, StartStatus::Active).unwrap();
        }
    }

    fn check(stage: &ChangeStage, place: &str) {
        let open = stage.intents.open();
        assert_eq!(open.len(), 1, "{place}");
        let intent = open[0];
        assert!(intent.edit_allowed && !stage.dead.contains(&intent.owner.pid));
        let id = &intent.intent_id;
        for name in ["before.json", "intent.json"] {
            assert!(stage.evidence.has(id, name), "{place}: {name}");
        }
    }
}

#[test]
fn a_start_survives_failure_and_crash_at_any_call() {
    sweep::<Start>(5);
}

struct Abandon;

impl UseCase for Abandon {
    fn before() -> ChangeStage {
        ChangeStage::new(Power::steady())
    }

    fn attempt(stage: &mut ChangeStage, pid: u32) -> Result<(), String> {
        started(stage, pid, StartStatus::Active).map(|_| ())
    }

    fn go_on(stage: &mut ChangeStage, _: u32, _: &str) {
        stage.dead = vec![1];
        stage.with(|ports| gc(ports, &session(9))).unwrap();
    }

    fn check(stage: &ChangeStage, place: &str) {
        for intent in stage.intents.intents.values() {
            let closed = stage.evidence.count(&intent.intent_id, "INTENT_CLOSED");
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
    fn before() -> ChangeStage {
        let mut stage = ChangeStage::new(Power::steady());
        started(&mut stage, 1, StartStatus::Active).unwrap();
        stage.edit();
        stage
    }

    fn attempt(stage: &mut ChangeStage, pid: u32) -> Result<(), String> {
        let id = "intent-001";
        let request = stage.finish_request(id);
        let done = stage.with(|ports| finish(ports, &session(pid), &request));
        let done = done.map_err(|error| error.to_string())?;
        match (done.receipt_error, done.status.is_accepted()) {
            (None, true) => Ok(()),
            // The intent is still open, so that it can be finished again.
            (error, _) => Err(format!("{error:?} {:?}", done.reason)),
        }
    }

    fn go_on(stage: &mut ChangeStage, pid: u32, place: &str) {
        if taken_over(stage, pid, place).is_some() {
            Self::attempt(stage, pid).unwrap();
        }
    }

    fn check(stage: &ChangeStage, place: &str) {
        let id = "intent-001";
        assert_eq!(stage.state(id), State::Clean, "{place}");
        for name in ["intent.json", "receipt.json", "attestation.dsse.json"] {
            assert!(stage.evidence.has(id, name), "{place}: {name}");
        }
        let judged = stage.evidence.count(id, "FINISH_JUDGED");
        assert!((1..=2).contains(&judged), "{place}: {judged}");
        assert!(stage.evidence.count(id, "INTENT_CLOSED") <= 1, "{place}");
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
        let mut stage = Finish::before().powered(&power);
        let answer = Finish::attempt(&mut stage, 1);
        let cleared = stage.state("intent-001") == State::Clean;
        assert_eq!(answer.is_ok(), cleared, "call {call}: {answer:?}");
        if !power.has_struck() {
            break;
        }
    }
}

struct Promote;

impl UseCase for Promote {
    fn before() -> ChangeStage {
        let mut stage = ChangeStage::new(Power::steady());
        let first = started(&mut stage, 2, StartStatus::Active).unwrap();
        started(&mut stage, 1, StartStatus::Queued).unwrap();
        let cleared = stage.with(|ports| clear(ports, &session(2), Some(&first)));
        cleared.unwrap();
        stage
    }

    fn attempt(stage: &mut ChangeStage, pid: u32) -> Result<(), String> {
        let promoted = stage.with(|ports| promote(ports, &session(pid), "intent-002"));
        match promoted.map_err(|error| error.to_string())? {
            Promoted::Active(..) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    fn go_on(stage: &mut ChangeStage, pid: u32, place: &str) {
        let id = taken_over(stage, pid, place).unwrap();
        if stage.state(&id) == State::Queued {
            Self::attempt(stage, pid).unwrap();
        }
    }

    fn check(stage: &ChangeStage, place: &str) {
        let open = stage.intents.open();
        assert_eq!(open.len(), 1, "{place}");
        assert_eq!(open[0].state, State::Active, "{place}");
        assert!(open[0].edit_allowed, "{place}");
        assert!(stage.evidence.has("intent-002", "before.json"), "{place}");
        assert!(stage.evidence.count("intent-002", "INTENT_PROMOTED") <= 1);
    }
}

#[test]
fn a_promotion_survives_failure_and_crash_at_any_call() {
    sweep::<Promote>(5);
}

struct Recover;

impl UseCase for Recover {
    fn before() -> ChangeStage {
        let mut stage = ChangeStage::new(Power::steady());
        started(&mut stage, 5, StartStatus::Active).unwrap();
        stage.dead = vec![5];
        stage
    }

    fn attempt(stage: &mut ChangeStage, pid: u32) -> Result<(), String> {
        let run = stage.first_run();
        let answer = stage.with(|ports| recover(ports, &session(pid), "intent-001", &run));
        match answer.map_err(|error| error.to_string())? {
            Recovered::Yes { .. } => Ok(()),
            Recovered::No(refusal) => Err(format!("{refusal:?}")),
        }
    }

    fn go_on(stage: &mut ChangeStage, pid: u32, place: &str) {
        stage.dead.push(5);
        assert!(taken_over(stage, pid, place).is_some(), "{place}");
    }

    fn check(stage: &ChangeStage, place: &str) {
        let open = stage.intents.open();
        assert_eq!(open.len(), 1, "{place}");
        assert!(!stage.dead.contains(&open[0].owner.pid), "{place}");
        assert!(open[0].edit_allowed, "{place}");
    }
}

#[test]
fn a_recovery_survives_failure_and_crash_at_any_call() {
    sweep::<Recover>(3);
}
