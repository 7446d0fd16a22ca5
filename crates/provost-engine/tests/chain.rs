//! Chains whose driver crashes at any call, and is started again.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::{BTreeMap, VecDeque};

use provost_core::code::Code;
use provost_core::contract::additions::AdditionsFrom;
use provost_core::contract::check::{Purpose, Rules};
use provost_core::contract::document::Document as Written;
use provost_core::contract::typed::Typed;
use provost_core::gate::command::{CommandPolicy, Trust};
use provost_core::verdict::Verdict;
use provost_engine::chain::{
    self, Came, Chain, CombinedResults, Document, End, Merge, MergedNeeds, Node, NodeAgents,
    NodeStart, PartRunner, Ports, REPORT, Standing, State, Task, drive,
};
use provost_engine::ports::{Bundle as _, Ledger as _, ObserverChoice, PortError};
use provost_engine::sim::{Cut, Power, SimBundle, SimClock, SimLedger, SimSigner, oid};

/// A part runner that ends a run as soon as the chain waits for it.
#[derive(Default)]
struct SimPartRunner {
    names: u32,
    /// The runs that were begun, with the node of each.
    begun: BTreeMap<String, String>,
    /// The runs that the chain waits for.
    awaited: VecDeque<(String, String)>,
    /// The node that is refused, and the code of the refusal.
    refuses: Option<(&'static str, Code)>,
    /// Whether the results that a node needs conflict.
    clashes: bool,
    /// Whether the results fail when they are tested together.
    apart: bool,
    cancelled: bool,
}

impl PartRunner for SimPartRunner {
    fn name(&mut self) -> Result<String, PortError> {
        self.names += 1;
        Ok(format!("run_{}", self.names))
    }

    fn join(&mut self, _: &str, merge: &Merge) -> Result<MergedNeeds, PortError> {
        if self.clashes && !merge.others.is_empty() {
            return Ok(MergedNeeds::Conflict(vec!["a".to_owned()]));
        }
        Ok(MergedNeeds::Clean(merge.first.clone()))
    }

    fn begin(&mut self, order: NodeStart) -> Result<(), PortError> {
        self.begun.insert(order.run_id.clone(), order.node.clone());
        self.awaited.push_back((order.node, order.run_id));
        Ok(())
    }

    fn take_up(&mut self, node: &str, run_id: &str) -> Result<(), PortError> {
        self.awaited.push_back((node.to_owned(), run_id.to_owned()));
        Ok(())
    }

    fn test(&mut self, _: &CombinedResults) -> Result<Verdict, PortError> {
        Ok(if self.apart {
            Verdict::deny(Code::AcceptanceFailed, "a command failed")
        } else {
            Verdict::allow("fine")
        })
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

    fn report(&mut self, _: &str) -> ObserverChoice {
        if self.cancelled {
            ObserverChoice::Cancel
        } else {
            ObserverChoice::Continue
        }
    }
}

fn node_agents(agent: &str, review: Option<&str>) -> NodeAgents {
    NodeAgents {
        agent: agent.to_owned(),
        review: review.map(str::to_owned),
        credentials: Vec::new(),
    }
}

/// Two nodes that a third needs, and a fourth of its own.
fn sample() -> Chain {
    chain_of(None)
}

/// The same nodes as parts of one contract.
fn divided() -> Chain {
    let whole = Typed {
        objective: "Do all of it".to_owned(),
        allow: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
        accept: vec!["pytest -q".to_owned()],
        timeout_sec: 60,
        ..Typed::default()
    };
    chain_of(Some(whole.document("run", 1_767_225_600_000)))
}

fn chain_of(parent: Option<Written>) -> Chain {
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
        parent,
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
        additions: AdditionsFrom::Nowhere,
    };
    chain::check(&document, &rules).unwrap()
}

struct Ground {
    runner: SimPartRunner,
    ledger: SimLedger,
    bundle: SimBundle,
    hands: NodeAgents,
    again: bool,
}

impl Ground {
    fn new(power: &Power) -> Self {
        Self {
            runner: SimPartRunner::default(),
            ledger: SimLedger::new(power),
            bundle: SimBundle::new(power),
            hands: node_agents("ada", None),
            again: false,
        }
    }

    fn drive(&mut self, chain: &Chain) -> Result<State, PortError> {
        let task = Task {
            id: "chain_1",
            chain,
            sha256: "digest",
            base: &oid("base"),
            jobs: 2,
            again: self.again,
            hands: &self.hands,
        };
        let mut ports = Ports {
            runner: &mut self.runner,
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
                assert_eq!(ground.runner.begun.len(), 4);
                break;
            }
            assert!(first.is_err(), "call {call}");
            power.restore();
            // The threads are gone with their process; their runs are where they were.
            ground.runner.awaited.clear();
            let state = ground.drive(&chain).unwrap();
            assert!(state.finished.unwrap().allow, "call {call} {cut:?}");
            assert_eq!(
                ground.runner.begun.len(),
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
    let verdict = |change: fn(&mut SimPartRunner)| {
        let mut ground = Ground::new(&Power::steady());
        change(&mut ground.runner);
        let state = ground.drive(&chain).unwrap();
        let rows = state.nodes.values();
        let run = rows.filter(|it| matches!(it, Standing::Ended(_))).count();
        (state.finished.unwrap().code, run)
    };
    let refused = verdict(|runner| runner.refuses = Some(("a", Code::EmptyDiff)));
    assert_eq!(refused, (Code::EmptyDiff, 3), "c is not run");
    let held = verdict(|runner| runner.refuses = Some(("d", Code::LeaseHeld)));
    assert_eq!(held, (Code::LeaseHeld, 4));
    assert_eq!(
        verdict(|runner| runner.clashes = true),
        (Code::ChainConflict, 3)
    );
    assert_eq!(
        verdict(|runner| runner.cancelled = true),
        (Code::Cancelled, 0)
    );
}

#[test]
fn parts_of_one_contract_are_accepted_together_or_not_at_all() {
    let chain = divided();
    let mut ground = Ground::new(&Power::steady());
    let state = ground.drive(&chain).unwrap();
    assert!(state.finished.unwrap().allow && state.tested.unwrap().allow);
    let mut ground = Ground::new(&Power::steady());
    ground.runner.apart = true;
    for _ in 0..2 {
        let state = ground.drive(&chain).unwrap();
        let finished = state.finished.unwrap();
        assert_eq!(
            (finished.allow, finished.code),
            (false, Code::AcceptanceFailed)
        );
    }
    // The user may ask once more, and every part stays as it is.
    ground.runner.apart = false;
    ground.again = true;
    assert!(ground.drive(&chain).unwrap().finished.unwrap().allow);
    assert_eq!(ground.runner.begun.len(), 4);
    // Parts that do not need each other may still conflict.
    let mut ground = Ground::new(&Power::steady());
    ground.runner.clashes = true;
    let state = ground.drive(&chain).unwrap();
    assert_eq!(state.finished.unwrap().code, Code::ChainConflict);
}

#[test]
fn a_call_that_asks_for_others_than_the_runs_have_is_refused() {
    let chain = sample();
    let mut ground = Ground::new(&Power::steady());
    ground.runner.refuses = Some(("d", Code::ApprovalNeeded));
    ground.drive(&chain).unwrap();
    let records = ground.ledger.records().len();
    let reviewed = node_agents("ada", Some("bob"));
    let mut secret = node_agents("ada", None);
    secret.credentials = vec!["KEY".to_owned()];
    for other in [node_agents("eve", None), reviewed.clone(), secret] {
        ground.hands = other;
        let error = ground.drive(&chain).unwrap_err();
        assert_eq!(error.verdict().code, Code::UsageError);
        assert_eq!(
            ground.ledger.records().len(),
            records,
            "nothing was written"
        );
    }
    // Another agent for a refused node is possible; a review of a node that was accepted without
    // one is not.
    ground.again = true;
    ground.hands = reviewed;
    assert!(ground.drive(&chain).is_err());
    ground.runner.refuses = Some(("d", Code::EmptyDiff));
    ground.hands = node_agents("ada", None);
    ground.drive(&chain).unwrap();
    ground.runner.refuses = None;
    ground.hands = node_agents("eve", None);
    assert!(ground.drive(&chain).unwrap().finished.unwrap().allow);
}
