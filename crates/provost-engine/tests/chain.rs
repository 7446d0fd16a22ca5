//! Chains whose driver dies at any call, and goes on.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::{BTreeMap, VecDeque};

use provost_core::chain::{self, Chain, Document, End, Merge, Node, Standing, State};
use provost_core::code::Code;
use provost_core::contract::check::{Purpose, Rules};
use provost_core::contract::typed::Typed;
use provost_core::gate::command::{CommandPolicy, Trust};
use provost_core::verdict::Verdict;
use provost_engine::chain::{Came, Crew, Joined, Order, Ports, REPORT, Task, drive};
use provost_engine::ports::{Bundle as _, PortError, Wish};
use provost_engine::sim::{Cut, Power, SimBundle, SimClock, SimLedger, SimSigner, oid};

/// People who do every run at once when somebody waits for it.
#[derive(Default)]
struct SimCrew {
    names: u32,
    /// What was begun, by run: its node.
    begun: BTreeMap<String, String>,
    /// Runs that somebody waits for.
    awaited: VecDeque<(String, String)>,
    /// The node that is refused, and by which rule.
    refuses: Option<(&'static str, Code)>,
    /// The node whose needs do not go together.
    clashes: bool,
    cancelled: bool,
}

impl Crew for SimCrew {
    fn name(&mut self) -> Result<String, PortError> {
        self.names += 1;
        Ok(format!("run_{}", self.names))
    }

    fn join(&mut self, _: &str, merge: &Merge) -> Result<Joined, PortError> {
        if self.clashes && !merge.others.is_empty() {
            return Ok(Joined::Conflict(vec!["a".to_owned()]));
        }
        Ok(Joined::Clean(merge.first.clone()))
    }

    fn begin(&mut self, order: Order) -> Result<(), PortError> {
        self.begun.insert(order.run_id.clone(), order.node.clone());
        self.awaited.push_back((order.node, order.run_id));
        Ok(())
    }

    fn take_up(&mut self, node: &str, run_id: &str) -> Result<(), PortError> {
        self.awaited.push_back((node.to_owned(), run_id.to_owned()));
        Ok(())
    }

    fn ended(&mut self) -> Result<Came, PortError> {
        let (node, run_id) = self.awaited.pop_front().unwrap();
        if !self.begun.contains_key(&run_id) {
            return Ok(Came::Nothing { node });
        }
        let refusal = self.refuses.filter(|(refused, _)| *refused == node);
        let verdict = match refusal {
            Some((_, code)) => Verdict::deny(code, "no"),
            None => Verdict::allow("fine"),
        };
        let commit = verdict.allow.then(|| oid(&run_id));
        let end = Box::new(End {
            commit,
            tree: None,
            head: Some("head".to_owned()),
            verdict,
            run_id,
        });
        Ok(Came::Ended { node, end })
    }

    fn tell(&mut self, _: &str) -> Wish {
        if self.cancelled {
            Wish::Cancel
        } else {
            Wish::GoOn
        }
    }
}

/// Two nodes that a third needs, and a fourth of its own.
fn sample() -> Chain {
    let node = |id: &str, needs: &[&str]| {
        let typed = Typed {
            objective: "Do it".to_owned(),
            allow: vec![id.to_owned()],
            accept: vec!["pytest -q".to_owned()],
            timeout_sec: 60,
            ..Typed::default()
        };
        Node {
            id: id.to_owned(),
            needs: needs.iter().map(ToString::to_string).collect(),
            agent: None,
            contract: Some(typed.document("run", 1_767_225_600_000)),
            contract_file: None,
            drops: Vec::new(),
            package: None,
        }
    };
    let document = Document {
        schema_version: 1,
        parent: None,
        max_handoffs: 10,
        nodes: vec![
            node("a", &[]),
            node("b", &[]),
            node("c", &["a", "b"]),
            node("d", &[]),
        ],
    };
    let rules = Rules {
        policy: &CommandPolicy::shipped().unwrap(),
        trust: Trust::FromFile,
        purpose: Purpose::Run,
    };
    chain::check(&document, &rules).unwrap()
}

struct Ground {
    crew: SimCrew,
    ledger: SimLedger,
    bundle: SimBundle,
}

impl Ground {
    fn new(power: &Power) -> Self {
        Self {
            crew: SimCrew::default(),
            ledger: SimLedger::new(power),
            bundle: SimBundle::new(power),
        }
    }

    fn drive(&mut self, chain: &Chain) -> Result<State, PortError> {
        let task = Task {
            id: "chain_1",
            chain,
            sha256: "digest",
            base: &oid("base"),
            jobs: 2,
            again: false,
        };
        let mut ports = Ports {
            crew: &mut self.crew,
            ledger: &mut self.ledger,
            bundle: &mut self.bundle,
            signer: &SimSigner,
            clock: &SimClock::default(),
        };
        drive(&mut ports, &task)
    }
}

#[test]
fn a_chain_survives_a_crash_at_any_call() {
    let chain = sample();
    for cut in [Cut::Before, Cut::After] {
        for call in 1.. {
            let power = Power::cut_at(call, cut);
            let mut ground = Ground::new(&power);
            let first = ground.drive(&chain);
            if !power.is_out() {
                assert!(first.unwrap().finished.unwrap().allow);
                assert_eq!(ground.crew.begun.len(), 4);
                break;
            }
            assert!(first.is_err(), "call {call}");
            power.restore();
            // The threads are gone with their process; their runs are where they were.
            ground.crew.awaited.clear();
            let state = ground.drive(&chain).unwrap();
            assert!(state.finished.unwrap().allow, "call {call} {cut:?}");
            assert_eq!(
                ground.crew.begun.len(),
                4,
                "call {call} {cut:?}: no node twice"
            );
            assert!(ground.bundle.get(REPORT).unwrap().is_some());
        }
    }
}

#[test]
fn what_is_refused_or_clashes_ends_a_chain_with_its_own_code() {
    let chain = sample();
    let verdict = |change: fn(&mut SimCrew)| {
        let mut ground = Ground::new(&Power::steady());
        change(&mut ground.crew);
        let state = ground.drive(&chain).unwrap();
        let rows = state.nodes.values();
        let run = rows.filter(|it| matches!(it, Standing::Ended(_))).count();
        (state.finished.unwrap().code, run)
    };
    let refused = verdict(|crew| crew.refuses = Some(("a", Code::EmptyDiff)));
    assert_eq!(refused, (Code::EmptyDiff, 3), "c is not run");
    let held = verdict(|crew| crew.refuses = Some(("d", Code::LeaseHeld)));
    assert_eq!(held, (Code::LeaseHeld, 4));
    assert_eq!(
        verdict(|crew| crew.clashes = true),
        (Code::ChainConflict, 3)
    );
    assert_eq!(verdict(|crew| crew.cancelled = true), (Code::Cancelled, 0));
}
