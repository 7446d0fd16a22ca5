//! A shared checkout, a registry and the evidence of intents in memory, with a power switch.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use provost_change::analysis::run::RunHead;
use provost_change::evidence::verify;
use provost_change::intent::{Intent, State};
use provost_change::ports::{
    AnalysisStore, ChangeEvidence, IntentEntry, IntentRegistry, Lens, RegistryView, Seal,
};
use provost_change::request::{Evidence, FinishRequest, StartRequest, Wanted};
use provost_change::scope::ChangeScope;
use provost_change::service::{Ports, Session};
use provost_change::start::decide::{DirtyPolicy, OnConflict};
use provost_core::bundle::layout::{ATTESTATION, LEDGER};
use provost_core::checkout::{CheckoutState, DirtyFile, Moved};
use provost_core::code::Code;
use provost_core::json;
use provost_core::lease::Owner;
use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_core::record::{Event, Head, Record};
use provost_engine::ports::{Checkout, FreshNames, PortError};
use provost_engine::sim::{Power, SimClock, SimSigner};
use provost_lens::structure::baseline::Seen;
use provost_lens::structure::blast::Depth;
use provost_lens::structure::budget::Strictness;
use provost_lens::structure::metrics::Metrics;
use provost_lens::structure::{REPORT_VERSION, Report, Settings};

/// The registry of intents.
pub(crate) struct SimIntents {
    power: Power,
    pub(crate) intents: BTreeMap<String, Intent>,
    digests: BTreeMap<String, String>,
}

impl SimIntents {
    fn known(&self, named: Option<&str>) -> RegistryView {
        let wanted = |it: &&Intent| it.state.is_open() || named == Some(it.intent_id.as_str());
        RegistryView {
            intents: self.intents.values().filter(wanted).cloned().collect(),
            ..RegistryView::default()
        }
    }

    pub(crate) fn open(&self) -> Vec<&Intent> {
        let intents = self.intents.values();
        intents.filter(|it| it.state.is_open()).collect()
    }
}

impl IntentRegistry for SimIntents {
    fn turn(
        &mut self,
        named: Option<&str>,
        decide: &mut dyn FnMut(&RegistryView) -> Vec<IntentEntry>,
    ) -> Result<(), PortError> {
        let known = self.known(named);
        let Self { power, intents, .. } = self;
        power.call(|| {
            for entry in decide(&known) {
                let intent = match entry {
                    IntentEntry::Declared(intent) => *intent,
                    IntentEntry::Changed { intent_id, fact } => {
                        intents[&intent_id].clone().after(&fact)
                    }
                };
                intents.insert(intent.intent_id.clone(), intent);
            }
        })
    }

    fn look(&mut self, named: Option<&str>) -> Result<RegistryView, PortError> {
        self.power.call(|| self.known(named))
    }

    fn past(&mut self) -> Result<Vec<Intent>, PortError> {
        let Self { power, intents, .. } = self;
        power.call(|| {
            intents
                .values()
                .filter(|it| it.edit_allowed)
                .cloned()
                .collect()
        })
    }

    fn renew_all(&mut self, _: &Owner, _: i64) -> Result<usize, PortError> {
        self.power.call(|| 0)
    }

    fn renew_one(&mut self, _: &Owner, _: &str, _: i64) -> Result<usize, PortError> {
        self.power.call(|| 0)
    }

    fn purge(&mut self, _: i64) -> Result<usize, PortError> {
        self.power.call(|| 0)
    }

    fn keep_digest(&mut self, digest: &str, intent_id: &str) -> Result<(), PortError> {
        let Self { power, digests, .. } = self;
        power.call(|| {
            digests.insert(digest.to_owned(), intent_id.to_owned());
        })
    }

    fn pin_chain(&mut self, _: &str, _: &Head) -> Result<(), PortError> {
        self.power.call(|| ())
    }

    fn intent_of(&mut self, digest: &str) -> Result<Option<String>, PortError> {
        self.power.call(|| self.digests.get(digest).cloned())
    }
}

/// A checkout with one file that may be edited.
pub(crate) struct SimCheckout {
    power: Power,
    pub(crate) dirty: RefCell<bool>,
}

pub(crate) const FILE: &str = "src/a.py";

fn workspace(dirty: bool) -> CheckoutState {
    let object = |word: &str| format!("100644 {}", sha256(word.as_bytes()));
    let file = DirtyFile {
        letters: " M".to_owned(),
        head: object("before"),
        staged: object("before"),
        disk: Some(object("after")),
    };
    let file = dirty.then(|| (RawPath::new(FILE), file));
    CheckoutState {
        tree: Some(sha256(b"tree")),
        dirty: file.into_iter().collect(),
    }
}

impl Checkout for SimCheckout {
    fn workspace(&self) -> Result<CheckoutState, PortError> {
        self.power.call(|| workspace(*self.dirty.borrow()))
    }

    fn moved(&self, _: Option<&str>, _: Option<&str>) -> Result<Moved, PortError> {
        self.power.call(Moved::new)
    }

    fn trees(&self) -> Result<BTreeSet<String>, PortError> {
        self.power.call(BTreeSet::new)
    }

    fn tree_of(&self, _: &str) -> Result<String, PortError> {
        self.power.call(|| sha256(b"tree"))
    }

    fn read(&self, _: &str, _: &str, _: u64) -> Result<Option<Vec<u8>>, PortError> {
        self.power.call(|| None)
    }

    fn link_on(&self, _: &str) -> Result<Option<String>, PortError> {
        self.power.call(|| None)
    }

    fn place(&self, root: &str) -> PathBuf {
        PathBuf::from(root)
    }
}

/// The analyses from before and after the edit.
type Runs = Rc<Vec<(RunHead, Report)>>;

fn runs(after: bool) -> Runs {
    let report = |tree: &[u8]| Report {
        version: REPORT_VERSION.to_owned(),
        analyser: "test".to_owned(),
        settings: Settings::default(),
        tree: sha256(tree),
        tree_files: 1,
        languages: BTreeMap::new(),
        files: Vec::new(),
        functions: Vec::new(),
        classes: Vec::new(),
        imports: Vec::new(),
        findings: Vec::new(),
        metrics: Metrics::default(),
        health: None,
    };
    let head = |report: Report, dirty, at| {
        let head = RunHead::of(&report, "", workspace(dirty), Seen::default(), at);
        (head, report)
    };
    let mut all = vec![head(report(b"before"), false, 1)];
    if after {
        all.push(head(report(b"after"), true, 2));
    }
    Rc::new(all)
}

struct SimAnalysisStore {
    power: Power,
    runs: Runs,
}

impl AnalysisStore for SimAnalysisStore {
    fn heads(&self) -> Result<Vec<RunHead>, PortError> {
        let heads = || self.runs.iter().map(|(head, _)| head.clone()).collect();
        self.power.call(heads)
    }

    fn report(&self, head: &RunHead) -> Result<Report, PortError> {
        let found = || {
            let mut runs = self.runs.iter();
            runs.find(|(it, _)| it.run_id == head.run_id)
                .unwrap()
                .1
                .clone()
        };
        self.power.call(found)
    }

    fn put(&mut self, _: RunHead, _: &Report) -> Result<(), PortError> {
        self.power.call(|| ())
    }

    fn drop(&mut self, _: &[String]) -> Result<(), PortError> {
        self.power.call(|| ())
    }
}

/// The evidence of intents: files and chains.
pub(crate) struct SimEvidence {
    power: Power,
    runs: Runs,
    pub(crate) files: BTreeMap<(String, String), Vec<u8>>,
    pub(crate) chains: BTreeMap<String, (Vec<Record>, Head)>,
}

impl SimEvidence {
    pub(crate) fn has(&self, intent_id: &str, name: &str) -> bool {
        let key = (intent_id.to_owned(), name.to_owned());
        self.files.contains_key(&key)
    }

    /// How often the chain of an intent has the event `what`.
    pub(crate) fn count(&self, intent_id: &str, what: &str) -> usize {
        let records = self.chains.get(intent_id).map(|(records, _)| records);
        let records = records.into_iter().flatten();
        records.filter(|it| it.event.event_type == what).count()
    }
}

impl ChangeEvidence for SimEvidence {
    fn append(
        &mut self,
        intent_id: &str,
        event: Event,
        seal: &Seal<'_>,
    ) -> Result<Head, PortError> {
        let Self {
            power,
            chains,
            files,
            ..
        } = self;
        let head = power.call(|| {
            let empty = || (Vec::new(), Head::genesis());
            let (records, head) = chains.entry(intent_id.to_owned()).or_insert_with(empty);
            records.push(head.append(event));
            let lines: String = records.iter().map(|record| record.line() + "\n").collect();
            files.insert((intent_id.to_owned(), LEDGER.to_owned()), lines.into());
            head.clone()
        })?;
        let envelope = seal(&self.chains[intent_id].0)?;
        self.put(intent_id, ATTESTATION, &envelope)?;
        Ok(head)
    }

    fn put(&mut self, intent_id: &str, name: &str, bytes: &[u8]) -> Result<(), PortError> {
        let Self { power, files, .. } = self;
        let key = (intent_id.to_owned(), name.to_owned());
        power.call(|| {
            files.insert(key, bytes.to_vec());
        })
    }

    fn put_report(&mut self, intent_id: &str, name: &str, head: &RunHead) -> Result<(), PortError> {
        let found = self.runs.iter().find(|(it, _)| it.run_id == head.run_id);
        let value = serde_json::to_value(&found.unwrap().1).unwrap();
        self.put(intent_id, name, json::canonical(&value).as_bytes())
    }

    fn get(&self, intent_id: &str, name: &str) -> Result<Option<Vec<u8>>, PortError> {
        let key = (intent_id.to_owned(), name.to_owned());
        self.power.call(|| self.files.get(&key).cloned())
    }
}

struct Numbers(RefCell<u32>);

impl FreshNames for Numbers {
    fn intent_id(&self, _: i64) -> Result<String, PortError> {
        *self.0.borrow_mut() += 1;
        Ok(format!("intent-{:03}", self.0.borrow()))
    }
}

struct NoLens;

impl Lens for NoLens {
    fn analyze(&self, _: &Path, _: &Settings) -> Result<Report, PortError> {
        Err(PortError::new(Code::Bug, "this stage has no lens"))
    }
}

pub(crate) struct ChangeStage {
    pub(crate) power: Power,
    pub(crate) intents: SimIntents,
    pub(crate) evidence: SimEvidence,
    pub(crate) checkout: SimCheckout,
    /// The processes of agents that died.
    pub(crate) dead: Vec<u32>,
    clock: SimClock,
    names: Numbers,
    runs: Runs,
}

impl ChangeStage {
    pub(crate) fn new(power: Power) -> Self {
        Self {
            intents: SimIntents {
                power: power.clone(),
                intents: BTreeMap::new(),
                digests: BTreeMap::new(),
            },
            evidence: SimEvidence {
                power: power.clone(),
                runs: runs(true),
                files: BTreeMap::new(),
                chains: BTreeMap::new(),
            },
            checkout: SimCheckout {
                power: power.clone(),
                dirty: RefCell::new(false),
            },
            dead: Vec::new(),
            clock: SimClock::default(),
            names: Numbers(RefCell::new(0)),
            runs: runs(false),
            power,
        }
    }

    /// The same machine with another power switch.
    pub(crate) fn powered(mut self, power: &Power) -> Self {
        self.power = power.clone();
        self.intents.power = power.clone();
        self.evidence.power = power.clone();
        self.checkout.power = power.clone();
        self
    }

    /// An agent edits the file, and analyses the checkout again.
    pub(crate) fn edit(&mut self) {
        *self.checkout.dirty.borrow_mut() = true;
        self.runs = runs(true);
    }

    pub(crate) fn with<T>(&mut self, work: impl FnOnce(&mut Ports<'_>) -> T) -> T {
        let dead = self.dead.clone();
        let mut analyses = SimAnalysisStore {
            power: self.power.clone(),
            runs: Rc::clone(&self.runs),
        };
        work(&mut Ports {
            registry: &mut self.intents,
            checkout: &self.checkout,
            lens: &NoLens,
            analyses: &mut analyses,
            evidence: &mut self.evidence,
            signer: &SimSigner,
            clock: &self.clock,
            names: &self.names,
            alive: &|owner| !dead.contains(&owner.pid),
        })
    }

    pub(crate) fn finish_request(&self, intent_id: &str) -> FinishRequest {
        let (after, _) = self.runs.last().unwrap();
        FinishRequest {
            intent_id: intent_id.to_owned(),
            evidence: Evidence::Files(vec![FILE.to_owned()]),
            after_run: Some(after.run_id.clone()),
            review: None,
            claims: None,
            receipt: Wanted::Yes,
            clear: Wanted::Yes,
            strictness: None,
        }
    }

    /// The id of the analysis from before.
    pub(crate) fn first_run(&self) -> String {
        self.runs[0].0.run_id.clone()
    }

    /// The findings about the evidence of an intent, without those about the missing signature.
    pub(crate) fn faults(&self, intent_id: &str) -> Vec<String> {
        let own = |((id, name), bytes): (&(String, String), &Vec<u8>)| {
            (id == intent_id).then(|| (RawPath::new(name.as_str()), bytes.clone()))
        };
        let files: BTreeMap<RawPath, Vec<u8>> =
            self.evidence.files.iter().filter_map(own).collect();
        let report = verify(&files, &[], None, None);
        let unsigned = |path: &str| path == ATTESTATION;
        let faults = report
            .proof
            .findings
            .iter()
            .filter(|one| !unsigned(&one.path));
        let lines = faults.map(|one| format!("{} {}", one.path, one.problem));
        lines.collect()
    }

    pub(crate) fn state(&self, intent_id: &str) -> State {
        self.intents.intents[intent_id].state
    }
}

/// The session of the agent with the process `pid`.
pub(crate) fn session(pid: u32) -> Session {
    let word = |text: &str| text.to_owned();
    Session {
        me: Owner {
            host: word("host"),
            boot: word("boot"),
            pid_namespace: word("ns"),
            pid,
            started: 1,
        },
        label: format!("agent {pid}"),
        epoch: 0,
        ttl: None,
        lease: None,
        strict_finish: false,
    }
}

pub(crate) fn start_request() -> StartRequest {
    StartRequest {
        root: String::new(),
        scope: ChangeScope::parse(&[FILE], &[], &[], "").unwrap(),
        intent: "fix it".to_owned(),
        expected_effects: Vec::new(),
        on_conflict: OnConflict::Queue,
        policy: DirtyPolicy::Block,
        strictness: Strictness::default(),
        ttl: None,
        depth: Depth::default(),
    }
}
