//! A sealed run on a disk, a branch, and a machine with a power switch.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use provost_core::bundle::dsse;
use provost_core::bundle::key::{PublicKey, SigningKey};
use provost_core::bundle::layout::AFTER;
use provost_core::change::{Change, Node};
use provost_core::code::Code;
use provost_core::lease::Owner;
use provost_core::object::{Kind, Mode, Oid, sha256};
use provost_core::path::RawPath;
use provost_core::record::{self, Event, Head, Record};
use provost_core::run::effect;
use provost_core::run::fact::{
    AgentRun, CommandRun, Ending, Probe, Probed, ResultFile, ReviewRun, Stream, TestRun,
};
use provost_engine::after::{AfterPorts, Sealed};
use provost_engine::bundle::after::{Candidate, LandCommit};
use provost_engine::bundle::verify::{self, Files, Pins};
use provost_engine::land::{
    Changed, CommitOrder, CommitPeople, CommitPerson, MergeOutcome, Target,
};
use provost_engine::ports::{Ledger, PortError, Registry as _, Signer, Watch};
use provost_engine::replay::ReplayHost;
use provost_engine::sim::{Cut, Power, SimClock, SimObserver, SimRegistry};
use serde_json::json;

use crate::sample::{Bundle, key};
use crate::sealed_run::SealedRun;

pub(crate) const RUN: &str = "run_00000001";

/// What survives a crash: the files of the run.
pub(crate) type Disk = Rc<RefCell<Bundle>>;

/// A commit id that no repository has.
pub(crate) fn commit(digit: &str) -> Oid {
    Oid::try_from(digit.repeat(40).as_str()).unwrap()
}

/// The commit that the run published.
pub(crate) fn published() -> Oid {
    commit("c")
}

/// The evidence on a disk, behind the power switch.
struct SimSealed {
    power: Power,
    disk: Disk,
}

impl Sealed for SimSealed {
    fn files(&self) -> Result<Box<dyn Files>, PortError> {
        self.power
            .call(|| Box::new(self.disk.borrow().clone()) as Box<dyn Files>)
    }

    fn after(&mut self, head: Head) -> Result<Box<dyn Ledger>, PortError> {
        let Self { power, disk } = self;
        power.call(|| {
            let text = disk.borrow().get(&RawPath::new(AFTER)).cloned();
            let chain = record::read(&text.unwrap_or_default(), head).unwrap();
            let (power, disk) = (power.clone(), Rc::clone(disk));
            let (records, head) = (chain.records, chain.head);
            let ledger = Later {
                power,
                disk,
                records,
                head,
            };
            Box::new(ledger) as Box<dyn Ledger>
        })
    }

    fn put_later(&mut self, name: &str, bytes: &[u8]) -> Result<(), PortError> {
        let Self { power, disk } = self;
        power.call(|| {
            disk.borrow_mut().insert(RawPath::new(name), bytes.to_vec());
        })
    }
}

/// The chain after the seal.
struct Later {
    power: Power,
    disk: Disk,
    records: Vec<Record>,
    head: Head,
}

impl Ledger for Later {
    fn records(&self) -> &[Record] {
        &self.records
    }

    fn append(&mut self, event: Event) -> Result<(), PortError> {
        let Self {
            power,
            disk,
            records,
            head,
        } = self;
        power.call(|| {
            let record = head.append(event);
            let mut disk = disk.borrow_mut();
            let text = disk.entry(RawPath::new(AFTER)).or_default();
            text.extend(format!("{}\n", record.line()).into_bytes());
            records.push(record);
        })
    }

    fn head(&self) -> Head {
        self.head.clone()
    }
}

/// A signer with a real key, so that signatures can be verified.
pub(crate) struct KeySigner {
    key: SigningKey,
    trusted: Vec<PublicKey>,
}

impl Signer for KeySigner {
    fn sign(&self, statement: &[u8]) -> Result<Vec<u8>, PortError> {
        Ok(dsse::sign(statement, &self.key).render().into_bytes())
    }

    fn trusted(&self) -> &[PublicKey] {
        &self.trusted
    }
}

/// The repository and its sandboxes.
pub(crate) struct SimTarget {
    power: Power,
    disk: Disk,
    /// The commits of the branch, oldest first.
    pub(crate) history: Vec<Oid>,
    /// How often the branch moved.
    pub(crate) moves: u32,
    /// What merging and testing left in the cache.
    pub(crate) cached: u32,
    /// Trees that were tested, and how often.
    pub(crate) tested: BTreeMap<Oid, u32>,
    /// How often the reviewer read the merge.
    pub(crate) reviews: u32,
    /// What the candidate changes.
    changes: Vec<Change>,
    /// Whether a merge changes something else than the candidate does.
    pub(crate) differs: bool,
    /// How many commits were written to land.
    commits: u32,
    /// Whether the branch of the run is gone.
    pub(crate) retired: bool,
}

impl SimTarget {
    /// A stream that is there, with nothing in it.
    fn stream(&self, name: String) -> Stream {
        let mut disk = self.disk.borrow_mut();
        disk.insert(RawPath::new(name.clone().into_bytes()), Vec::new());
        Stream {
            file: name,
            bytes: 0,
            kept: 0,
            sha256: sha256(b""),
            redacted: 0,
            cut: false,
        }
    }

    fn run(&mut self, order: &effect::Accept) -> TestRun {
        *self.tested.entry(order.tree.clone()).or_default() += 1;
        self.cached += 1;
        let command = |(at, test): (usize, &provost_core::contract::Test)| CommandRun {
            name: test.name.clone(),
            argv: test.argv.clone(),
            ending: Ending::Exited(0),
            began: None,
            wall_ms: 1,
            stdout: self.stream(format!("{}/{at}.stdout.log", order.logs)),
            stderr: self.stream(format!("{}/{at}.stderr.log", order.logs)),
            tally: None,
        };
        TestRun {
            side: order.side,
            tree: order.tree.clone(),
            cached: false,
            profile: sha256(b"profile"),
            layers: Vec::new(),
            cache: None,
            commands: order.tests.iter().enumerate().map(command).collect(),
            altered: Vec::new(),
        }
    }
}

impl Target for SimTarget {
    fn tip(&mut self, _: &str) -> Result<Option<Oid>, PortError> {
        self.power.call(|| self.history.last().cloned())
    }

    fn holds(&mut self, _: &Oid, commit: &Oid) -> Result<bool, PortError> {
        self.power.call(|| self.history.contains(commit))
    }

    fn merge(&mut self, _: &effect::Merge, target: &Oid) -> Result<MergeOutcome, PortError> {
        let Self { power, cached, .. } = self;
        power.call(|| {
            *cached += 1;
            MergeOutcome::Clean(Candidate {
                commit: commit("e"),
                tree: commit("f"),
                parent: target.clone(),
            })
        })
    }

    fn changes(&mut self, _: &Oid, _: &Oid) -> Result<Changed, PortError> {
        self.power.call(|| {
            let mut changes = self.changes.clone();
            if self.differs {
                changes[0].before = Some(Node {
                    mode: Mode::File,
                    oid: commit("9"),
                });
            }
            Changed {
                changes,
                findings: Vec::new(),
            }
        })
    }

    fn accept(&mut self, order: &effect::Accept, _: &mut dyn Watch) -> Result<TestRun, PortError> {
        let power = self.power.clone();
        power.call(|| self.run(order))
    }

    fn tree(&mut self, _: &Oid) -> Result<Oid, PortError> {
        self.power.call(|| commit("8"))
    }

    fn review(
        &mut self,
        order: &effect::Review,
        _: &mut dyn Watch,
    ) -> Result<ReviewRun, PortError> {
        let power = self.power.clone();
        power.call(|| {
            self.reviews += 1;
            self.cached += 1;
            let look = &order.look;
            let report =
                json!({ "verdict": "PASS", "summary": "fine", "violations": [], "findings": [] });
            let attempts = vec![Probe {
                name: "write".to_owned(),
                walls: vec!["root".to_owned()],
                tried: "write outside".to_owned(),
                held: true,
                errno: Some(2),
            }];
            ReviewRun {
                tree: look.tree.clone(),
                ended_at: crate::sample::WHEN.to_owned(),
                altered: Vec::new(),
                probed: Probed {
                    shape: sha256(b"shape"),
                    cached: false,
                    attempts,
                },
                run: AgentRun {
                    ending: Ending::Exited(0),
                    wall_ms: 1,
                    stdout: self.stream(look.stdout.clone()),
                    stderr: self.stream(look.stderr.clone()),
                    result: ResultFile::Text(report.to_string()),
                    redacted: 0,
                    refused: std::collections::BTreeMap::new(),
                    network: Vec::new(),
                    claims: None,
                    model: None,
                },
            }
        })
    }

    fn people(&mut self) -> Result<CommitPeople, PortError> {
        let person = CommitPerson {
            name: "User".to_owned(),
            email: "user@localhost".to_owned(),
        };
        self.power.call(|| CommitPeople {
            author: person.clone(),
            committer: person,
        })
    }

    fn write_commit(&mut self, order: &CommitOrder) -> Result<LandCommit, PortError> {
        let Self { power, commits, .. } = self;
        power.call(|| {
            *commits += 1;
            // Each signature is another one.
            let object = format!("{}Signature: {commits}\n", order.object());
            let format = order.tree.format();
            LandCommit {
                commit: format.oid(Kind::Commit, object.as_bytes()).unwrap(),
                tree: order.tree.clone(),
                parent: order.parent.clone(),
                object,
            }
        })
    }

    fn restore_commit(&mut self, _: &str, commit: &LandCommit) -> Result<(), PortError> {
        assert!(commit.is_consistent());
        self.power.call(|| ())
    }

    fn advance(&mut self, _: &str, from: &Oid, to: &Oid) -> Result<(), PortError> {
        let Self {
            power,
            history,
            moves,
            ..
        } = self;
        power.call(|| match history.last() {
            Some(tip) if tip == to => Ok(()),
            Some(tip) if tip == from => {
                history.push(to.clone());
                *moves += 1;
                Ok(())
            }
            _ => Err(PortError::new(Code::TargetMoved, "it moved")),
        })?
    }

    fn retire(&mut self, _: &str, commit: &Oid) -> Result<(), PortError> {
        let Self { power, retired, .. } = self;
        assert_eq!(*commit, published());
        power.call(|| *retired = true)
    }

    fn tidy(&mut self) -> Result<(), PortError> {
        let Self { power, cached, .. } = self;
        power.call(|| *cached = 0)
    }
}

impl ReplayHost for SimTarget {
    fn trees(&mut self, _: &Oid, _: &Oid, _: Vec<u8>) -> Result<(), PortError> {
        self.power.call(|| ())
    }

    fn changes(&mut self, base: &Oid, tree: &Oid) -> Result<Changed, PortError> {
        Target::changes(self, base, tree)
    }

    fn accept(
        &mut self,
        order: &effect::Accept,
        watch: &mut dyn Watch,
    ) -> Result<TestRun, PortError> {
        Target::accept(self, order, watch)
    }

    fn patch(&mut self, _: &Oid, _: &Oid) -> Result<Vec<u8>, PortError> {
        self.power.call(Vec::new)
    }

    fn patch_of(&mut self, _: &Oid, _: &Oid, _: &[RawPath]) -> Result<Vec<u8>, PortError> {
        self.power.call(Vec::new)
    }

    fn kernel(&mut self) -> Result<String, PortError> {
        self.power.call(|| "6.1".to_owned())
    }

    fn tidy(&mut self) -> Result<(), PortError> {
        Target::tidy(self)
    }
}

/// A machine with one sealed run.
pub(crate) struct Machine {
    pub(crate) power: Power,
    pub(crate) target: SimTarget,
    pub(crate) disk: Disk,
    registry: SimRegistry,
    signer: KeySigner,
}

impl Machine {
    /// A machine with this run, whose power fails at `call`.
    pub(crate) fn new(run: &SealedRun, call: u32, cut: Cut) -> Self {
        let SealedRun {
            base,
            head,
            changes,
            files,
        } = run.clone();
        let disk = Rc::new(RefCell::new(files));
        let word = || "x".to_owned();
        let owner = Owner {
            host: word(),
            boot: word(),
            pid_namespace: word(),
            pid: 1,
            started: 1,
        };
        let mut registry = SimRegistry::new(&Power::steady(), owner.clone());
        registry.pin(RUN, &head).unwrap();
        let power = Power::cut_at(call, cut);
        let pins = registry.pins;
        let mut registry = SimRegistry::new(&power, owner);
        registry.pins = pins;
        Self {
            target: SimTarget {
                power: power.clone(),
                disk: Rc::clone(&disk),
                history: vec![base],
                moves: 0,
                cached: 0,
                tested: BTreeMap::new(),
                reviews: 0,
                changes,
                differs: false,
                commits: 0,
                retired: false,
            },
            disk,
            registry,
            signer: KeySigner {
                key: key(1),
                trusted: vec![key(1).public()],
            },
            power,
        }
    }

    /// Calls `work` with the ports of this machine.
    pub(crate) fn with<T>(&mut self, work: impl FnOnce(&mut AfterPorts<'_, SimTarget>) -> T) -> T {
        let mut sealed = SimSealed {
            power: self.power.clone(),
            disk: Rc::clone(&self.disk),
        };
        work(&mut AfterPorts {
            target: &mut self.target,
            sealed: &mut sealed,
            registry: &mut self.registry,
            signer: &self.signer,
            clock: &SimClock::default(),
            observer: &mut SimObserver::default(),
        })
    }

    /// The records after the seal, of evidence that verifies with what the registry knows.
    pub(crate) fn verified(&mut self, place: &str) -> verify::After {
        let pins: Pins = self.registry.pinned(RUN).unwrap();
        let files = self.disk.borrow();
        let report = verify::verify(&*files, &self.signer.trusted, &pins, None);
        let verdict = report.verdict();
        assert!(
            verdict.allow,
            "{place}: {verdict:?} {:?}",
            report.proof.findings
        );
        report.after
    }

    /// How often an event was recorded after the seal.
    pub(crate) fn count(&self, what: &str) -> usize {
        let disk = self.disk.borrow();
        let text = disk.get(&RawPath::new(AFTER)).cloned().unwrap_or_default();
        let kind = format!(r#""event_type":"{what}""#);
        String::from_utf8_lossy(&text).matches(&kind).count()
    }

    pub(crate) fn records(&self) -> usize {
        let disk = self.disk.borrow();
        let text = disk.get(&RawPath::new(AFTER));
        text.map_or(0, |text| {
            text.split_inclusive(|byte| *byte == b'\n').count()
        })
    }
}
