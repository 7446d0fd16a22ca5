//! The simulated machine of these tests, and the run it begins.

use std::collections::BTreeMap;

use provost_core::approval::{Kind, Widening};
use provost_core::contract::document::Document;
use provost_core::contract::limits::Asked;
use provost_core::contract::{self, RESULT_SCHEMA, RESULT_SCHEMA_TEXT};
use provost_core::lease::Owner;
use provost_core::object::{ObjectFormat, sha256};
use provost_core::path::RepoPath;
use provost_core::prepare;
use provost_core::protect::Extra;
use provost_core::run::State;
use provost_core::run::fact::{CacheRules, ExistingWork, Names, Opened, Reviewer, WorkspaceChoice};
use provost_core::tier::Tier;
use provost_engine::drive::{Ports, drive, open, resume};
use provost_engine::ports::{PortError, Signer};
use provost_engine::sim::{
    Behaviour, Power, SimAnswers, SimBundle, SimClock, SimHost, SimLedger, SimObserver,
    SimRegistry, SimSigner, oid,
};
use serde_json::{Value, json};

/// A machine on which one run is driven.
pub(crate) struct Machine {
    pub(crate) power: Power,
    pub(crate) host: SimHost,
    pub(crate) ledger: SimLedger,
    pub(crate) registry: SimRegistry,
    pub(crate) bundle: SimBundle,
    pub(crate) clock: SimClock,
    pub(crate) observer: SimObserver,
    pub(crate) answers: SimAnswers,
    /// How often a refusal may be fixed.
    pub(crate) retries: u32,
    /// Whether the contract asks for more than the policy permits without a question.
    pub(crate) wide: bool,
    pub(crate) contract: Value,
    /// Whether the run has a reviewer.
    pub(crate) reviewed: bool,
    /// The work that is judged without an agent, if it exists already.
    pub(crate) work: Option<ExistingWork>,
    pub(crate) signer: Box<dyn Signer>,
}

fn process(pid: u32) -> Owner {
    let word = |text: &str| text.to_owned();
    Owner {
        host: word("host"),
        boot: word("boot"),
        pid_namespace: word("ns"),
        pid,
        started: 1,
    }
}

impl Machine {
    pub(crate) fn new(behaviour: Behaviour, power: Power) -> Self {
        let ledger = SimLedger::new(&power);
        let mut bundle = SimBundle::new(&power);
        bundle.ledger = Some(std::rc::Rc::clone(&ledger.text));
        Self {
            host: SimHost::new(&power, behaviour),
            ledger,
            registry: SimRegistry::new(&power, process(1)),
            bundle,
            clock: SimClock::default(),
            observer: SimObserver::default(),
            answers: SimAnswers::default(),
            retries: 0,
            wide: false,
            contract: contract(),
            reviewed: true,
            work: None,
            signer: Box::new(SimSigner),
            power,
        }
    }

    pub(crate) fn ports(&mut self) -> Ports<'_> {
        Ports {
            host: &mut self.host,
            ledger: &mut self.ledger,
            registry: &mut self.registry,
            bundle: &mut self.bundle,
            signer: &*self.signer,
            clock: &self.clock,
            observer: &mut self.observer,
            answers: &self.answers,
        }
    }

    pub(crate) fn begin(&mut self) -> Result<State, PortError> {
        let mut document = self.contract.clone();
        if self.retries > 0 {
            document["timeout_retry"]["max_retries"] = json!(self.retries);
        }
        let contract = contract::from_value(&document).unwrap();
        let names = Names {
            run_id: "run_00000001".to_owned(),
            task_id: contract.task_id.clone(),
            trace_id: "trace-0001".to_owned(),
        };
        let mut opened = opening(contract);
        opened.work.clone_from(&self.work);
        if !self.reviewed {
            opened.review = None;
        }
        if self.wide {
            opened.widenings = vec![Widening {
                kind: Kind::Path,
                path: "/allowed_paths/0".to_owned(),
                problem: "is most of a repository".to_owned(),
            }];
        }
        let mut ports = self.ports();
        open(&mut ports, &names, opened)?;
        drive(&mut ports)
    }

    pub(crate) fn take_over(&mut self, pid: u32) -> Result<State, PortError> {
        self.registry.alive = process(pid);
        let mut ports = self.ports();
        resume(&mut ports, process(pid))?;
        drive(&mut ports)
    }
}

/// A step that makes the dependencies of the base.
fn dependencies() -> prepare::Step {
    let path = |text: &str| RepoPath::try_from(text).unwrap();
    prepare::Step {
        name: "deps".to_owned(),
        run: vec![vec!["make".to_owned()]],
        inputs: vec![path("app")],
        outputs: vec![prepare::Output::Tree(path("deps"))],
        net: Vec::new(),
        env: BTreeMap::new(),
        mount: None,
    }
}

/// A contract that can be run.
pub(crate) fn contract() -> Value {
    json!({
        "task_id": "task-0001",
        "owner_agent": { "role": "PM", "agent_id": "agent-pm" },
        "assigned_agent": { "role": "WORKER", "agent_id": "agent-worker" },
        "inputs": {
            "spec": "say hello",
            "artifacts": [{
                "name": "output_schema",
                "uri": RESULT_SCHEMA,
                "sha256": sha256(RESULT_SCHEMA_TEXT.as_bytes()),
            }],
        },
        "required_outputs": [],
        "allowed_paths": ["app"],
        "forbidden_actions": [],
        "acceptance_tests": [{ "name": "tests", "cmd": "pytest -q", "must_pass": true }],
        "tool_permissions": {
            "filesystem": "workspace-write", "shell": "never", "network": "deny", "mcp_tools": [],
        },
        "mcp_tool_set": ["none"],
        "timeout_retry": {
            "timeout_sec": 60, "max_retries": 0, "retry_backoff_sec": 7,
        },
        "rollback": { "strategy": "worktree_drop", "baseline_ref": "HEAD" },
        "evidence_links": [],
        "log_refs": { "run_id": "run-0001", "paths": {} },
    })
}

fn opening(contract: Document) -> Opened {
    Opened {
        contract_sha256: contract::digest(&contract).unwrap(),
        contract_source: None,
        contract,
        typed: true,
        base_commit: oid("base commit"),
        base_tree: oid("base tree"),
        object_format: ObjectFormat::Sha256,
        target: None,
        agent: vec!["agent".to_owned()],
        agent_typed: true,
        adapted: None,
        credentials: Vec::new(),
        review: Some(Reviewer {
            name: "strict".to_owned(),
            argv: vec!["reviewer".to_owned()],
            typed: true,
            adapted: None,
            credentials: Vec::new(),
        }),
        protect: Extra::default(),
        commands: Vec::new(),
        workspace: WorkspaceChoice::Auto,
        cache: CacheRules::default(),
        prepare: vec![dependencies()],
        loopback: false,
        limits: Asked::default(),
        artifacts: std::collections::BTreeMap::new(),
        references: None,
        additions: provost_core::contract::additions::Additions::default(),
        least_tier: Tier::default(),
        ask: provost_core::question::AskRules::default(),
        refuses_programs: true,
        checks_thread: true,
        widenings: Vec::new(),
        parent: None,
        work: None,
        continues: None,
        part: None,
        child: None,
        policies: provost_core::children::policy::FamilyPolicies::default(),
        ticket: None,
        owner: process(1),
        format: provost_core::bundle::layout::BundleFormat::NEWEST,
        version: "0".to_owned(),
    }
}
