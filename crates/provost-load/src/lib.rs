//! Makes thousands of runs: by the engine, on the simulated machine, with the real store.
//!
//! Ledgers, bundles, leases and pins are those of the program; only the agent, its sandbox and git
//! are simulated. Some runs can be left open: their ledgers grow when a test says so, and this
//! process counts as their driver.

use std::fs;
use std::path::{Path, PathBuf};

use provost_core::bundle::dsse;
use provost_core::bundle::key::{PublicKey, SigningKey};
use provost_core::bundle::layout::{BundleFormat, CONTRACT, DRIVER_LOCK, LEDGER};
use provost_core::code::Code;
use provost_core::contract::limits::Asked;
use provost_core::contract::{self, RESULT_SCHEMA, RESULT_SCHEMA_TEXT};
use provost_core::lease::Owner;
use provost_core::object::{ObjectFormat, Oid, sha256};
use provost_core::protect::Extra;
use provost_core::record::{Event, Head, Record};
use provost_core::run::State;
use provost_core::run::fact::{CacheRules, Names, Opened, WorkspaceChoice};
use provost_core::tier::Tier;
use provost_core::user_secret::Secret;
use provost_engine::drive::{Ports, drive, open};
use provost_engine::ports::{Bundle as _, Clock, Ledger, PortError, Signer};
use provost_engine::sim::{
    Behaviour, Power, SimAnswers, SimBundle, SimHost, SimLedger, SimObserver, SimRegistry, oid,
};
use provost_host::{clock, process_owner};
use provost_store::bundle::DirBundle;
use provost_store::driven::{DrivenLedger, LiveRegistry};
use provost_store::lock::DriverLock;
use provost_store::registry::SqliteRegistry;
use serde_json::json;

/// The log that simulated programs print to.
const LOG: &str = "ci/tests.log";

/// How many attempts a run has at most.
const MOST_RETRIES: u32 = 10;

/// How many events an open run has at the beginning: its agent is at work.
const BEGUN: usize = 8;

/// A maker of runs in one runtime root.
pub struct ManyRuns {
    root: PathBuf,
    secret: Secret,
    signer: TestSigner,
    me: Owner,
    base: Oid,
    made: usize,
}

impl ManyRuns {
    /// For the runtime root `root` of the user whose secret is in the file `secret`. All runs begin
    /// from the commit `base`.
    pub fn new(root: &Path, secret: &Path, base: &str) -> Result<Self, PortError> {
        let text = fs::read_to_string(secret).map_err(|error| failed(secret, &error))?;
        let secret = Secret::parse(text.trim_end());
        let base = Oid::try_from(base.to_owned());
        Ok(Self {
            root: root.to_owned(),
            secret: secret.ok_or_else(|| wrong("the file holds no secret"))?,
            signer: TestSigner::new()?,
            me: process_owner::current().map_err(|error| wrong(&error.to_string()))?,
            base: base.map_err(|error| wrong(&error.to_string()))?,
            made: 0,
        })
    }

    fn next_run(&mut self) -> Result<(String, PathBuf), PortError> {
        self.made += 1;
        let id = format!("run_20260101_000000_000_{:012x}", self.made);
        let directory = self.root.join("runs").join(&id);
        fs::create_dir_all(&directory).map_err(|error| failed(&directory, &error))?;
        Ok((id, directory))
    }

    /// Makes `count` runs that were accepted and are sealed; the ids, oldest first.
    pub fn sealed(&mut self, count: usize) -> Result<Vec<String>, PortError> {
        (0..count).map(|_| self.one()).collect()
    }

    fn one(&mut self) -> Result<String, PortError> {
        let (id, directory) = self.next_run()?;
        let power = Power::steady();
        let mut host = SimHost::new(&power, Behaviour::Honest);
        let ledger = DrivenLedger::create(&directory.join(LEDGER), Head::genesis())?;
        let mut ledger = ledger.marked_with(self.secret.clone());
        let mut registry = LiveRegistry {
            registry: SqliteRegistry::open(&self.root.join("registry.db"))?,
            alive: process_owner::alive,
        };
        let mut bundle = DirBundle::new(&directory);
        bundle.put(LOG, b"")?;
        let mut observer = SimObserver::default();
        let mut ports = Ports {
            host: &mut host,
            ledger: &mut ledger,
            registry: &mut registry,
            bundle: &mut bundle,
            signer: &self.signer,
            clock: &WallClock,
            observer: &mut observer,
            answers: &SimAnswers::default(),
        };
        let state = self.driven(&mut ports, &id, 0)?;
        match state.finished {
            Some(verdict) if verdict.allow => Ok(id),
            other => Err(wrong(&format!("{id} was not accepted: {other:?}"))),
        }
    }

    fn driven(&self, ports: &mut Ports<'_>, id: &str, retries: u32) -> Result<State, PortError> {
        let opened = self.opened(id, retries)?;
        let names = Names {
            run_id: id.to_owned(),
            task_id: opened.contract.task_id.clone(),
            trace_id: format!("trace-{id}"),
        };
        open(ports, &names, opened)?;
        drive(ports)
    }

    /// Makes `count` runs that are driven by this process and whose ledgers can grow.
    pub fn growing(&mut self, count: usize) -> Result<Vec<GrowingRun>, PortError> {
        (0..count).map(|_| self.one_growing()).collect()
    }

    fn one_growing(&mut self) -> Result<GrowingRun, PortError> {
        let (id, directory) = self.next_run()?;
        let records = self.rehearsed(&id)?;
        let mut events = records.into_iter().map(|record| record.event);
        let ledger = DrivenLedger::create(&directory.join(LEDGER), Head::genesis())?;
        let mut ledger = ledger.marked_with(self.secret.clone());
        for event in events.by_ref().take(BEGUN) {
            ledger.append(event)?;
        }
        let mut bundle = DirBundle::new(&directory);
        bundle.put(CONTRACT, b"{}")?;
        let lock = DriverLock::try_acquire(&directory.join(DRIVER_LOCK), &self.me)?;
        Ok(GrowingRun {
            _lock: lock.ok_or_else(|| wrong("the run has another driver"))?,
            id,
            ledger,
            rest: events.collect::<Vec<_>>().into_iter(),
        })
    }

    /// The records of a run with as many attempts as possible, all of which fail.
    fn rehearsed(&self, id: &str) -> Result<Vec<Record>, PortError> {
        let power = Power::steady();
        let mut host = SimHost::new(&power, Behaviour::Breaks);
        let mut ledger = SimLedger::new(&power);
        let mut bundle = SimBundle::new(&power);
        bundle.ledger = Some(std::rc::Rc::clone(&ledger.text));
        let mut observer = SimObserver::default();
        let mut ports = Ports {
            host: &mut host,
            ledger: &mut ledger,
            registry: &mut SimRegistry::new(&power, self.me.clone()),
            bundle: &mut bundle,
            signer: &self.signer,
            clock: &WallClock,
            observer: &mut observer,
            answers: &SimAnswers::default(),
        };
        self.driven(&mut ports, id, MOST_RETRIES)?;
        Ok(ledger.records().to_vec())
    }

    fn opened(&self, id: &str, retries: u32) -> Result<Opened, PortError> {
        let document = document(id, retries);
        let contract = contract::from_value(&document);
        let contract = contract.map_err(|error| wrong(&format!("{error:?}")))?;
        let digest = contract::digest(&contract).map_err(|error| wrong(&format!("{error:?}")))?;
        Ok(Opened {
            contract_sha256: digest,
            contract_source: None,
            contract,
            typed: true,
            base_commit: self.base.clone(),
            base_tree: oid("base tree"),
            object_format: ObjectFormat::Sha256,
            target: Some("refs/heads/main".to_owned()),
            agent: vec!["agent".to_owned()],
            agent_typed: true,
            adapted: None,
            credentials: Vec::new(),
            review: None,
            protect: Extra::default(),
            commands: Vec::new(),
            workspace: WorkspaceChoice::Auto,
            cache: CacheRules::default(),
            prepare: Vec::new(),
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
            owner: self.me.clone(),
            format: BundleFormat::NEWEST,
            version: "0".to_owned(),
        })
    }
}

/// The contract of the run `id`.
fn document(id: &str, retries: u32) -> serde_json::Value {
    json!({
        "task_id": "task-0001",
        "owner_agent": { "role": "PM", "agent_id": "agent-pm" },
        "assigned_agent": { "role": "WORKER", "agent_id": "agent-worker" },
        "inputs": {
            "spec": format!("say hello from {id}"),
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
            "filesystem": "workspace-write", "shell": "never", "network": "deny",
            "mcp_tools": [],
        },
        "mcp_tool_set": ["none"],
        "timeout_retry": {
            "timeout_sec": 60, "max_retries": retries, "retry_backoff_sec": 0,
        },
        "rollback": { "strategy": "worktree_drop", "baseline_ref": "HEAD" },
        "evidence_links": [],
        "log_refs": { "run_id": "run-0001", "paths": {} },
    })
}

/// An open run, which this process drives.
pub struct GrowingRun {
    pub id: String,
    ledger: DrivenLedger,
    rest: std::vec::IntoIter<Event>,
    _lock: DriverLock,
}

impl GrowingRun {
    /// Appends the next event, as a driver would; whether there was one.
    pub fn grow(&mut self) -> Result<bool, PortError> {
        match self.rest.next() {
            Some(event) => self.ledger.append(event).map(|()| true),
            None => Ok(false),
        }
    }
}

struct TestSigner {
    key: SigningKey,
    trusted: Vec<PublicKey>,
}

impl TestSigner {
    fn new() -> Result<Self, PortError> {
        let key = SigningKey::from_seed(&[7; 32], "load");
        let key = key.map_err(|error| wrong(&error.to_string()))?;
        let trusted = vec![key.public()];
        Ok(Self { key, trusted })
    }
}

impl Signer for TestSigner {
    fn sign(&self, statement: &[u8]) -> Result<Vec<u8>, PortError> {
        Ok(dsse::sign(statement, &self.key).render().into_bytes())
    }

    fn trusted(&self) -> &[PublicKey] {
        &self.trusted
    }
}

struct WallClock;

impl Clock for WallClock {
    fn timestamp(&self) -> String {
        clock::now()
    }

    fn millis(&self) -> i64 {
        clock::now_millis()
    }
}

fn wrong(reason: &str) -> PortError {
    PortError::new(Code::HostFailed, reason)
}

fn failed(path: &Path, error: &std::io::Error) -> PortError {
    wrong(&format!("`{}`: {error}", path.display()))
}
