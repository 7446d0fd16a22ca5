//! Cases from the request to the judged whole, with a driver that crashes at any call.
//!
//! A commit is a set of words. A part adds its name; a part that is named in `breaks` also adds a
//! word that makes the commands of the whole fail, until it is fixed.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod runner;

use provost_core::approval::Person;
use provost_core::code::Code;
use provost_core::question::{AnswerMeans, AskRules};
use provost_core::verdict::Verdict;
use provost_engine::case::{self, CaseAnswer, CaseOpened, Fact, Ports, REPORT, State, Task};
use provost_engine::opening::RequestedAgent;
use provost_engine::ports::{Ledger as _, PortError};
use provost_engine::sim::{Cut, Power, SimBundle, SimClock, SimLedger, SimSigner, oid};

use runner::{SimCaseRunner, passes, words};

struct Ground {
    runner: SimCaseRunner,
    ledger: SimLedger,
    bundle: SimBundle,
    retries: u32,
}

const TASK: Task<'_> = Task {
    id: "case_1",
    jobs: 2,
};

impl Ground {
    fn new(power: &Power) -> Self {
        Self {
            runner: SimCaseRunner::default(),
            ledger: SimLedger::new(power),
            bundle: SimBundle::new(power),
            retries: 2,
        }
    }

    /// Begins or resumes the case, and approves what `approves` says once it is asked.
    fn drive(&mut self, approves: bool) -> Result<State, PortError> {
        let base_commit = self.runner.commit(words(&["base"]));
        let mut ports = Ports {
            runner: &mut self.runner,
            ledger: &mut self.ledger,
            bundle: &mut self.bundle,
            signer: &SimSigner,
            clock: &SimClock::default(),
        };
        if ports.ledger.records().is_empty() {
            let opened = CaseOpened {
                request: "Do all of it".to_owned(),
                base_commit,
                trace_id: "trace".to_owned(),
                planner: RequestedAgent::Named("ada".to_owned()),
                agent: RequestedAgent::Named("ada".to_owned()),
                review: None,
                unreviewed: false,
                retries: self.retries,
                split: true,
                ask: AskRules::default(),
                version: "0".to_owned(),
            };
            case::open(&mut ports, &TASK, opened)?;
        }
        let state = case::resume(&mut ports, &TASK, false)?;
        let mut state = case::drive(&mut ports, &TASK, state)?;
        if state.finished.is_some() {
            return Ok(state);
        }
        let digest = state.asked.as_ref().unwrap().digest.clone();
        if state.answered.is_none() {
            let wrong = answer("another", true);
            let refused = case::answer(&mut ports, &TASK, &mut state, wrong).unwrap_err();
            assert!(matches!(
                refused.code,
                Code::NothingToApprove | Code::HostFailed
            ));
            case::answer(&mut ports, &TASK, &mut state, answer(&digest, approves))?;
        }
        case::drive(&mut ports, &TASK, state)
    }

    /// How often each task was begun.
    fn begun(&self) -> usize {
        self.runner.runs.values().filter(|run| !run.judges).count()
    }
}

fn answer(digest: &str, approved: bool) -> CaseAnswer {
    CaseAnswer {
        digest: digest.to_owned(),
        approved,
        by: Person {
            user: "ada".to_owned(),
            uid: 1000,
            host: "here".to_owned(),
        },
        how: AnswerMeans::Terminal,
        until: String::new(),
        signature: None,
        reason: String::new(),
    }
}

#[test]
fn the_whole_is_accepted_with_the_words_of_every_part() {
    let mut ground = Ground::new(&Power::steady());
    ground.runner.widens = true;
    let state = ground.drive(true).unwrap();
    let end = state.accepted().unwrap().clone();
    let commit = end.commit.unwrap();
    assert_eq!(
        ground.runner.words(&commit),
        words(&["a", "b", "base", "c", "d"])
    );
    assert_eq!(ground.begun(), 4);
    assert!(
        ground
            .runner
            .runs
            .values()
            .all(|run| run.trace_id == "trace")
    );
    let brought: Vec<_> = state.integration.unwrap().merged;
    let brought: Vec<_> = brought
        .iter()
        .map(|it| (it.part.as_str(), it.paths.clone()))
        .collect();
    let path = |id: &str| vec![id.to_owned()];
    assert_eq!(brought, ["a", "b", "c", "d"].map(|id| (id, path(id))));
    assert!(ground.bundle.files.contains_key(REPORT));
}

#[test]
fn a_rejected_case_begins_no_part() {
    let mut ground = Ground::new(&Power::steady());
    ground.runner.widens = true;
    let state = ground.drive(false).unwrap();
    assert_eq!(state.finished.unwrap().code, Code::ApprovalRejected);
    assert_eq!(ground.runner.runs.len(), 0);
}

#[test]
fn the_part_that_breaks_the_whole_is_found_and_fixed() {
    for broken in ["a", "b", "c", "d"] {
        let mut ground = Ground::new(&Power::steady());
        ground.runner.breaks = vec![broken];
        let state = ground.drive(true).unwrap();
        let fixed: Vec<&str> = state
            .fixes
            .iter()
            .map(|fix| fix.start.part.as_str())
            .collect();
        assert_eq!(fixed, [broken]);
        let commit = state.accepted().unwrap().commit.clone().unwrap();
        let words = ground.runner.words(&commit);
        assert!(words.contains(&format!("{broken}:fixed")), "{words:?}");
        assert!(passes(&words), "{words:?}");
        assert_eq!(ground.begun(), 5, "each part once, and one fix");
        assert!(ground.runner.tests <= 3, "{} tests", ground.runner.tests);
    }
}

#[test]
fn a_whole_that_no_fix_mends_is_refused_after_the_last_one() {
    for (retries, fixes) in [(0, 0), (2, 2)] {
        let mut ground = Ground::new(&Power::steady());
        ground.retries = retries;
        ground.runner.breaks = vec!["c"];
        ground.runner.stubborn = true;
        let state = ground.drive(true).unwrap();
        let finished = state.finished.clone().unwrap();
        assert_eq!(finished.code, Code::AcceptanceFailed);
        assert!(finished.reason.contains("after"), "{}", finished.reason);
        assert_eq!(state.fixes.len(), fixes);
        assert!(state.accepted().is_none());
    }
}

#[test]
fn a_conflict_names_both_parts_and_the_later_one_is_done_again() {
    let mut ground = Ground::new(&Power::steady());
    ground.runner.clashes = vec!["a", "c"];
    let state = ground.drive(true).unwrap();
    let fix = &state.fixes[0].start;
    assert_eq!((fix.part.as_str(), fix.keeps), ("c", false));
    assert!(state.accepted().is_some());
    let mut ground = Ground::new(&Power::steady());
    ground.runner.clashes = vec!["a", "c"];
    ground.retries = 0;
    let finished = ground.drive(true).unwrap().finished.unwrap();
    assert_eq!(finished.code, Code::ChainConflict);
    assert!(
        finished.reason.contains("`a` and `c`"),
        "{}",
        finished.reason
    );
}

#[test]
fn a_case_survives_a_crash_at_any_call() {
    for cut in [Cut::Before, Cut::After] {
        for call in 1.. {
            let power = Power::cut_at(call, cut);
            let mut ground = Ground::new(&power);
            ground.runner.widens = true;
            ground.runner.breaks = vec!["b"];
            let first = ground.drive(true);
            let calm = !power.is_out();
            let state = if calm {
                first.unwrap()
            } else {
                assert!(first.is_err(), "call {call}");
                power.restore();
                // The threads are gone with their process; their runs are where they were.
                ground.runner.awaited.clear();
                ground.drive(true).unwrap()
            };
            let commit = state.accepted().unwrap().commit.clone().unwrap();
            let all = words(&["a", "b", "b:fixed", "base", "c", "d"]);
            assert_eq!(ground.runner.words(&commit), all, "call {call} {cut:?}");
            assert_eq!(ground.begun(), 5, "call {call} {cut:?}: no task twice");
            assert!(ground.bundle.files.contains_key(REPORT));
            if calm {
                break;
            }
        }
    }
}

#[test]
fn facts_that_do_not_fit_are_refused() {
    let mut ground = Ground::new(&Power::steady());
    let state = ground.drive(true).unwrap();
    let commit = oid("x");
    let facts = [
        Fact::JudgeLost {},
        Fact::FixEnded {
            end: Box::new(state.accepted().unwrap().clone()),
        },
        Fact::PrefixTested {
            commit,
            verdict: Verdict::allow("fine"),
        },
        Fact::Answered(answer("x", true)),
    ];
    for fact in facts {
        assert!(state.clone().apply(fact.clone()).is_err(), "{fact:?}");
    }
    let mut fresh = State::fold(&ground.ledger.records()[..1]).unwrap().unwrap();
    let early = Fact::Landed {
        branch: "main".to_owned(),
        commit: oid("x"),
    };
    assert!(fresh.apply(early).is_err());
    assert!(fresh.apply(Fact::FixLost {}).is_err());
}
