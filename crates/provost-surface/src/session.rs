//! Wires one run: its lock, ledger, bundle and registry to the engine's ports.

mod answer_rules;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use provost_core::approval::Person;
use provost_core::bundle::dsse;
use provost_core::bundle::key::{PublicKey, SigningKey};
use provost_core::bundle::layout::{AFTER, DRIVER_LOCK, LEDGER};
use provost_core::code::Code;
use provost_core::lease::Owner;
use provost_core::net::credential::Credential;
use provost_core::question::{AnswerMeans, QuestionAnswer};
use provost_core::record::Head;
use provost_core::run::State;
use provost_core::run::fact::{Names, Opened};
use provost_engine::bundle::verify::Files;
use provost_engine::drive::{self, Draft, Ports, Sign, Source};
use provost_engine::land::{self, LandPorts, Landed, Sealed};
use provost_engine::ports::{Bundle, Clock, Ledger, Observer, PortError, Registry, Signer};
use provost_engine::query;
use provost_engine::replay::model::{ModelReplayPorts, Remodelled};
use provost_engine::replay::{self, Reexecuted, Rehydrated, ReplayPorts};
use provost_fs::atomic;
use provost_host::answer_box::AnswerBox;
use provost_host::bundle::Directory;
use provost_host::machine::Machine;
use provost_host::{clock, keys, process_owner, user_file};

use crate::answer::Failure;
use crate::child_threads::{ChildThreads, ParentLink};
use crate::parts;
use crate::places::Places;
use crate::stores::{self, DriverGuard, Expected};
use crate::user_consent::Sent;

pub use answer_rules::{case_rules, require_person_key};

/// A run that this process drives.
pub struct Session {
    root: PathBuf,
    _lock: DriverGuard,
    ledger: Box<dyn Ledger>,
    registry: Box<dyn Registry>,
    bundle: Box<dyn Bundle>,
    machine: Machine,
    signer: KeySigner,
    answers: AnswerBox,
}

impl Session {
    /// Begins the run `names` in its own directory.
    pub fn create(place: Places, names: &Names) -> Result<Self, Failure> {
        // Everything that may be missing is checked before the directory of the run is created.
        let signer = place.prepare_for(|| KeySigner::of(&place))?;
        let registry = place.registry()?;
        let directory = place.run(&names.run_id);
        DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .map_err(|error| {
                Failure::new(
                    Code::HostFailed,
                    format!("`{}`: {error}", directory.display()),
                )
            })?;
        let lock = lock(&directory, &names.run_id)?;
        let secret = place.secret()?;
        let path = directory.join(LEDGER);
        let ledger = stores::open_ledger(&path, Expected::New, Head::genesis(), Some(secret));
        // No ref and no lease outlives the directory that names them.
        let holder = directory.parent().unwrap_or(&place.root);
        atomic::sync_directory(holder)
            .map_err(|error| Failure::of(Code::HostFailed, &error).about(holder))?;
        let means = (registry, signer);
        Self::of(place, &names.run_id, lock, ledger?, means)
    }

    /// Takes over the run `run_id`, if no process drives it and this user began it.
    pub fn open(place: Places, run_id: &str) -> Result<Self, Failure> {
        // Nothing is written to a run of another user, not even a lock.
        query::require_own(&place, run_id)?;
        let directory = place.run(run_id);
        let lock = lock(&directory, run_id)?;
        query::require_own(&place, run_id)?;
        let secret = place.secret()?;
        let path = directory.join(LEDGER);
        let ledger = stores::open_ledger(&path, Expected::Existing, Head::genesis(), Some(secret));
        let means = (place.registry()?, KeySigner::of(&place)?);
        let mut session = Self::of(place, run_id, lock, ledger?, means)?;
        // A ledger that cannot be folded is reported by the command that continues the run.
        if let Ok(begun) = drive::fold(session.ledger.as_ref()) {
            session.machine.know(&begun.opened.brokered());
        }
        Ok(session)
    }

    fn of(
        place: Places,
        run_id: &str,
        lock: DriverGuard,
        ledger: Box<dyn Ledger>,
        (registry, signer): (Box<dyn Registry>, KeySigner),
    ) -> Result<Self, Failure> {
        let directory = place.run(run_id);
        let cache = place.cache()?.to_owned();
        let answers = AnswerBox::of(&place.root, run_id, place.secret()?);
        let root = place.root;
        let children = ChildThreads::new(&root);
        let mut machine = Machine::new(place.repo, &cache, &directory, run_id);
        machine.start_children_with(Box::new(children));
        Ok(Self {
            answers,
            root,
            _lock: lock,
            ledger,
            registry,
            bundle: stores::bundle(&directory),
            machine,
            signer,
        })
    }

    /// Lets the run of a child exchange messages with that of its parent.
    pub(crate) fn link(&mut self, link: ParentLink) {
        let children = ChildThreads::new(&self.root).linked(link);
        self.machine.start_children_with(Box::new(children));
    }

    /// Opens the run, whose contract was read from `source` if it was a file, and drives it to its
    /// seal.
    pub fn run(
        mut self,
        names: &Names,
        mut opened: Opened,
        source: Option<&Source>,
        observer: &mut dyn Observer,
    ) -> Result<State, Failure> {
        self.machine.know(&opened.brokered());
        self.send(&opened.brokered());
        if let Some(source) = source {
            let mut ports = self.ports(observer);
            drive::keep_source(&mut ports, &mut opened, source)?;
        }
        opened.ask = answer_rules::asked_rules(&opened.ask, &opened)?;
        record_as_user_says(&mut opened)?;
        drive::open(&mut self.ports(observer), names, opened)?;
        let state = drive::drive(&mut self.ports(observer))?;
        Ok(self.ended(state))
    }

    /// Removes the answers that are left for a run that has ended.
    fn ended(&self, state: State) -> State {
        if state.finished.is_some() {
            self.answers.close();
        }
        state
    }

    /// Permits the run to send these secrets, which this user named.
    pub fn send(&mut self, credentials: &[&Credential]) {
        self.machine.send(credentials);
    }

    pub fn brokered(&self) -> Result<Vec<Credential>, Failure> {
        let begun = drive::fold(self.ledger.as_ref())?;
        Ok(begun.opened.brokered().into_iter().cloned().collect())
    }

    /// Takes the run over after a crash and drives it to its seal.
    pub fn resume(mut self, observer: &mut dyn Observer) -> Result<State, Failure> {
        let mut ports = self.ports(observer);
        drive::resume(&mut ports, owner()?)?;
        let state = drive::drive(&mut ports)?;
        Ok(self.ended(state))
    }

    /// Records the answer to a question of an agent that was lost with its driver.
    pub fn answer_question(
        &mut self,
        answer: QuestionAnswer,
        observer: &mut dyn Observer,
    ) -> Result<State, Failure> {
        Ok(drive::answer_question(&mut self.ports(observer), answer)?)
    }

    /// Records the approval that `draft` describes, and `sign` signs if it has to be.
    pub fn approve(
        &mut self,
        draft: Draft<'_>,
        sign: Sign<'_>,
        observer: &mut dyn Observer,
    ) -> Result<State, Failure> {
        let mut ports = self.ports(observer);
        Ok(drive::approve(&mut ports, draft, sign)?)
    }

    /// Records the rejection of `by`, and drives the run to its seal.
    pub fn reject(
        mut self,
        by: (Person, AnswerMeans),
        seen: Option<&str>,
        reason: &str,
        observer: &mut dyn Observer,
    ) -> Result<State, Failure> {
        let mut ports = self.ports(observer);
        drive::reject(&mut ports, by, seen, reason)?;
        Ok(drive::drive(&mut ports)?)
    }

    fn ports<'a>(&'a mut self, observer: &'a mut dyn Observer) -> Ports<'a> {
        Ports {
            host: &mut self.machine,
            ledger: self.ledger.as_mut(),
            registry: self.registry.as_mut(),
            bundle: self.bundle.as_mut(),
            signer: &self.signer,
            clock: &SystemClock,
            observer,
            answers: &self.answers,
        }
    }
}

/// Whether bodies of models are kept on this machine is the user's word, if the user says it.
fn record_as_user_says(opened: &mut Opened) -> Result<(), Failure> {
    let Some(record) = user_file::read()?.record_bodies else {
        return Ok(());
    };
    let reviewer = opened.review.as_mut();
    let reviewer = reviewer.and_then(|reviewer| reviewer.adapted.as_mut());
    for adapted in opened.adapted.iter_mut().chain(reviewer) {
        adapted.grants.record = record;
    }
    Ok(())
}

/// Lands the sealed result of the run `run_id` on its branch, if no other process drives it.
pub fn land(
    place: Places,
    run_id: &str,
    named: &[Sent],
    observer: &mut dyn Observer,
) -> Result<Landed, Failure> {
    query::require_own(&place, run_id)?;
    // The cache may have been cleared since the run, or the repository copied.
    place.prepare()?;
    let directory = place.run(run_id);
    let _lock = lock(&directory, run_id)?;
    let mut registry = place.registry()?;
    let signer = KeySigner::of(&place)?;
    let cache = place.cache()?.to_owned();
    let brokered = query::state(&place, run_id);
    // What cannot be read is refused below, with a better message.
    if let Ok(state) = &brokered {
        parts::require_accepted(&place, state)?;
    }
    let mut machine = Machine::new(place.repo, &cache, &directory, run_id);
    let brokered = brokered.as_ref().map(|state| state.opened.brokered());
    let brokered = brokered.unwrap_or_default();
    machine.know(&brokered);
    let is_named = |it: &&&Credential| named.iter().any(|sent| sent.is(it));
    let sent: Vec<&Credential> = brokered.iter().filter(is_named).copied().collect();
    machine.send(&sent);
    let mut ports = LandPorts {
        target: &mut machine,
        sealed: &mut SealedRun(directory),
        registry: registry.as_mut(),
        signer: &signer,
        clock: &SystemClock,
        observer,
    };
    Ok(land::land(&mut ports, run_id)?)
}

/// Rebuilds the files of the sealed run `run_id`; nothing is written.
pub fn rehydrate(
    place: Places,
    run_id: &str,
    trusted: &[PublicKey],
) -> Result<Rehydrated, Failure> {
    let directory = place.run(run_id);
    let pins = place.pins(run_id)?;
    let cache = place.cache()?.to_owned();
    let mut machine = Machine::new(place.repo, &cache, &directory, run_id);
    let sealed = SealedRun(directory);
    let known = (&pins, trusted);
    Ok(replay::rehydrate(
        &mut machine,
        &sealed,
        known,
        &SystemClock,
        run_id,
    )?)
}

/// Repeats the gates and the acceptance commands of the sealed run `run_id`, if no other process
/// drives it.
pub fn reexecute(
    place: Places,
    run_id: &str,
    observer: &mut dyn Observer,
) -> Result<Reexecuted, Failure> {
    query::require_own(&place, run_id)?;
    // The cache may have been cleared since the run.
    place.prepare()?;
    let directory = place.run(run_id);
    let _lock = lock(&directory, run_id)?;
    let mut registry = place.registry()?;
    let signer = KeySigner::of(&place)?;
    let cache = place.cache()?.to_owned();
    let brokered = query::state(&place, run_id);
    let mut machine = Machine::new(place.repo, &cache, &directory, run_id);
    let brokered = brokered.as_ref().map(|state| state.opened.brokered());
    machine.know(&brokered.unwrap_or_default());
    let mut ports = ReplayPorts {
        target: &mut machine,
        sealed: &mut SealedRun(directory),
        registry: registry.as_mut(),
        signer: &signer,
        clock: &SystemClock,
        observer,
    };
    Ok(replay::reexecute(&mut ports, run_id)?)
}

/// Runs the agent of the sealed run `run_id` again on its recorded answers, if no other process
/// drives it.
pub fn remodel(
    place: Places,
    run_id: &str,
    observer: &mut dyn Observer,
) -> Result<Remodelled, Failure> {
    query::require_own(&place, run_id)?;
    // The cache may have been cleared since the run.
    place.prepare()?;
    let directory = place.run(run_id);
    let _lock = lock(&directory, run_id)?;
    let mut registry = place.registry()?;
    let signer = KeySigner::of(&place)?;
    let cache = place.cache()?.to_owned();
    let brokered = query::state(&place, run_id);
    let mut machine = Machine::new(place.repo, &cache, &directory, run_id);
    let brokered = brokered.as_ref().map(|state| state.opened.brokered());
    machine.know(&brokered.unwrap_or_default());
    let mut ports = ModelReplayPorts {
        target: &mut machine,
        sealed: &mut SealedRun(directory),
        registry: registry.as_mut(),
        signer: &signer,
        clock: &SystemClock,
        observer,
    };
    Ok(replay::model::remodel(&mut ports, run_id)?)
}

/// The bundle of a sealed run in its directory.
struct SealedRun(PathBuf);

impl Sealed for SealedRun {
    fn files(&self) -> Result<Box<dyn Files>, PortError> {
        let directory = Directory::open(&self.0);
        let directory = directory.map_err(|e| PortError::of(Code::InputUnreadable, e))?;
        Ok(Box::new(directory))
    }

    fn after(&mut self, head: Head) -> Result<Box<dyn Ledger>, PortError> {
        stores::open_ledger(&self.0.join(AFTER), Expected::Either, head, None)
    }

    fn put_later(&mut self, name: &str, bytes: &[u8]) -> Result<(), PortError> {
        stores::bundle(&self.0).put(name, bytes)
    }
}

/// Locks the run for this process, if no other process drives it.
pub fn lock(directory: &Path, run_id: &str) -> Result<DriverGuard, Failure> {
    let path: PathBuf = directory.join(DRIVER_LOCK);
    match stores::try_lock(&path, &owner()?)? {
        Some(lock) => Ok(lock),
        None => Err(
            Failure::new(Code::RunBusy, format!("another process drives {run_id}"))
                .hint(format!("provost log {run_id} --follow")),
        ),
    }
}

pub fn owner() -> Result<Owner, Failure> {
    process_owner::current().map_err(|error| Failure::of(Code::HostFailed, &error))
}

/// The user who started this process.
pub fn person() -> Result<Person, Failure> {
    process_owner::person().map_err(|error| Failure::of(Code::HostFailed, &error))
}

/// Signs with the key of this user.
pub struct KeySigner {
    key: SigningKey,
    trusted: Vec<PublicKey>,
}

impl KeySigner {
    /// The key of this user, which must not lie where an agent's work could reach it.
    pub fn of(place: &Places) -> Result<Self, Failure> {
        let refuse = |error: keys::KeysError| Failure::of(Code::KeyUnsafe, &error);
        let keys = keys::Keys::find().map_err(refuse)?;
        let top = place.repo.top().unwrap_or_else(|| place.repo.common_dir());
        let keys = keys.outside(top).map_err(refuse)?;
        let (key, _) = keys.load_or_create().map_err(refuse)?;
        let trusted = keys.trusted().map_err(refuse)?;
        Ok(Self {
            key,
            trusted: trusted.iter().map(|known| known.key).collect(),
        })
    }
}

impl Signer for KeySigner {
    fn sign(&self, statement: &[u8]) -> Result<Vec<u8>, PortError> {
        Ok(dsse::sign(statement, &self.key).render().into_bytes())
    }

    fn trusted(&self) -> &[PublicKey] {
        &self.trusted
    }
}

pub struct SystemClock;

impl Clock for SystemClock {
    fn timestamp(&self) -> String {
        clock::now()
    }

    fn millis(&self) -> i64 {
        clock::now_millis()
    }
}
