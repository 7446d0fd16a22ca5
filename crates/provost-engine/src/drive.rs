//! Drives one run to its end, from the state that its ledger gives.

mod consent;
mod fix;
mod question;
mod secrets;

pub use consent::{Draft, Sign, approve, reject};
pub use question::{answer_question, refusal};

use std::time::Duration;

use provost_core::bundle::layout::CONTRACT;
use provost_core::code::Code;
use provost_core::json;
use provost_core::lease::{Acquired, Holder, LeaseRequest, Owner};
use provost_core::object::sha256;
use provost_core::path::RepoPath;
use provost_core::question::{Permission, QuestionKind};
use provost_core::record::Head;
use provost_core::run::effect::Effect;
use provost_core::run::fact::{ContractSource, Fact, Judgement, Names, Opened, Violation};
use provost_core::run::{Next, State, Step};
use provost_core::scope::Scope;
use provost_core::verdict::Verdict;
use serde::Serialize;

use crate::acceptance_cache;
use crate::ports::{
    Answers, Bundle, Clock, Control, Host, Ledger, Observer, ObserverChoice, PortError, Progress,
    Registry, Signer, Watch,
};
use crate::seal;
pub use secrets::secret_words;

/// How long a lease lasts without renewal.
const LEASE_MS: i64 = 600_000;

const RENEW_MS: i64 = 15_000;

/// The ports that one run is driven through.
pub struct Ports<'a> {
    /// Carries out the effects.
    pub host: &'a mut dyn Host,
    pub ledger: &'a mut dyn Ledger,
    /// Knows which run holds which scope.
    pub registry: &'a mut dyn Registry,
    pub bundle: &'a mut dyn Bundle,
    pub signer: &'a dyn Signer,
    pub clock: &'a dyn Clock,
    pub observer: &'a mut dyn Observer,
    /// Where answers to the questions of the agent come from.
    pub answers: &'a dyn Answers,
}

/// The file that a contract was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub path: String,
    pub bytes: Vec<u8>,
}

/// Stores the file that the contract was read from, so that the user's own text is sealed as well.
pub fn keep_source(
    ports: &mut Ports<'_>,
    opened: &mut Opened,
    source: &Source,
) -> Result<(), PortError> {
    ports.bundle.put(&source.path, &source.bytes)?;
    opened.contract_source = Some(ContractSource {
        path: source.path.clone(),
        sha256: sha256(&source.bytes),
    });
    Ok(())
}

/// Begins a run: refs for the base and for work that exists already, the contract in the bundle,
/// the first record in the ledger.
pub fn open(ports: &mut Ports<'_>, names: &Names, opened: Opened) -> Result<(), PortError> {
    secrets::refuse_secret(ports.host, &opened)?;
    ports.bundle.put(CONTRACT, &contract_file(&opened)?)?;
    ports.host.keep_base(&names.run_id, &opened.base_commit)?;
    let fact = Fact::Opened(Box::new(opened));
    let event = fact.event(names, 1, ports.clock.timestamp());
    let first = Head::genesis().append(event.clone());
    let state = State::fold(&[first]).map_err(|error| PortError::of(Code::Bug, error))?;
    if let Some((tree, keep)) = state.existing_tree() {
        ports.host.keep_tree(tree, &keep)?;
    }
    ports.ledger.append(event)
}

/// `contract.json`, as the ledger has the contract.
fn contract_file(opened: &Opened) -> Result<Vec<u8>, PortError> {
    serde_json::to_vec_pretty(&opened.contract).map_err(|error| PortError::of(Code::Bug, error))
}

/// Makes the files of the contract those that the ledger names: a process may have written to them
/// while the run waited, and then its bundle would not verify.
pub(crate) fn restore_contract(bundle: &mut dyn Bundle, opened: &Opened) -> Result<(), PortError> {
    let canonical = |bytes: Vec<u8>| Some(json::canonical(&json::parse(&bytes).ok()?));
    let digest = bundle.get(CONTRACT)?.and_then(canonical);
    if digest.map(|text| sha256(text.as_bytes())).as_ref() != Some(&opened.contract_sha256) {
        bundle.put(CONTRACT, &contract_file(opened)?)?;
    }
    let Some(source) = &opened.contract_source else {
        return Ok(());
    };
    let bytes = bundle.get(&source.path)?.unwrap_or_default();
    if sha256(&bytes) == source.sha256 {
        return Ok(());
    }
    let reason = format!(
        "`{}` of the run was changed after the run began",
        source.path
    );
    let hint = "put your contract file back there unchanged, or begin a new run with it";
    Err(PortError::new(Code::EvidenceAltered, reason).hint(hint))
}

/// Takes over a run after a crash, or after the answer that it waited for.
pub fn resume(ports: &mut Ports<'_>, owner: Owner) -> Result<(), PortError> {
    let mut state = fold(ports.ledger)?;
    if state.finished.is_some() {
        return Ok(());
    }
    record(ports, &mut state, Fact::Resumed { owner })
}

/// Drives the run to its seal, or to a question that a person has to answer.
pub fn drive(ports: &mut Ports<'_>) -> Result<State, PortError> {
    let mut state = fold(ports.ledger)?;
    if state.finished.is_none() {
        restore_contract(ports.bundle, &state.opened)?;
        seal::begin(ports, &state)?;
    }
    loop {
        notice(ports, &mut state)?;
        let fact = match state.next() {
            Next::Do(step) => {
                let mut choice = ports.observer.begins(&state, step);
                if state.cancel.is_some() {
                    choice = ObserverChoice::Cancel;
                }
                record(ports, &mut state, Fact::Started { step })?;
                match choice {
                    // Capture and clean run even after a cancel request: they save and remove what
                    // is left.
                    ObserverChoice::Cancel if !matches!(step, Step::Capture | Step::Clean) => {
                        cancelled(step)
                    }
                    ObserverChoice::Cancel | ObserverChoice::Continue => {
                        let fact = perform(ports, &state, step)?;
                        // Questions and children have events of their own.
                        if step == Step::Agent {
                            state = fold(ports.ledger)?;
                        }
                        fact
                    }
                }
            }
            Next::Ask => state.ask(),
            Next::Wait => return Ok(state),
            Next::Judge(_) if consent::is_over(ports, &state) => Fact::Expired {},
            Next::Judge(gate) => {
                let verdict = state.judge(gate);
                ports.observer.judged(gate, &verdict);
                Fact::judged(Judgement { gate, verdict })
            }
            Next::Lose => Fact::Lost {},
            Next::Trigger(gate) => fix::trigger(ports, &state, gate),
            Next::Exhaust { fixes } => Fact::Exhausted { fixes },
            Next::Finish(verdict) => Fact::Finished { verdict },
            Next::Seal => {
                if !seal::is_sealed(ports)? {
                    seal::seal(ports, &state)?;
                }
                ports.registry.release(&state.names.run_id)?;
                return Ok(state);
            }
        };
        if state.pending.is_some() {
            // The step may have ended because of a cancel request.
            notice(ports, &mut state)?;
        }
        if let Some(stopped) = fact.stopped() {
            let violation = Violation::Sandbox(stopped);
            record(ports, &mut state, Fact::Violation(violation))?;
        }
        record(ports, &mut state, fact)?;
    }
}

/// Records a cancel request, if there is a new one.
fn notice(ports: &mut Ports<'_>, state: &mut State) -> Result<(), PortError> {
    // A published candidate is accepted; a later cancel request does not undo that.
    if state.cancel.is_some() || state.published.is_some() || state.finished.is_some() {
        return Ok(());
    }
    match ports.observer.cancel() {
        Some(cancel) => record(ports, state, Fact::CancelRequested(cancel)),
        None => Ok(()),
    }
}

/// The state of the run, folded from `ledger`.
pub fn fold(ledger: &dyn Ledger) -> Result<State, PortError> {
    State::fold(ledger.records()).map_err(|error| PortError::of(Code::EvidenceAltered, error))
}

/// Appends `fact` if the state permits it, then applies it.
fn record(ports: &mut Ports<'_>, state: &mut State, fact: Fact) -> Result<(), PortError> {
    let now = ports.clock.timestamp();
    let names = Names {
        task_id: state.task_id().to_owned(),
        ..state.names.clone()
    };
    let about = (&names, state.attempt, now.clone());
    let (event, fact) = secrets::event(ports.host, fact, about)?;
    let mut after = state.clone();
    after.apply(fact).map_err(|misplaced| {
        PortError::new(Code::Bug, format!("{} {misplaced}", event.event_type))
    })?;
    ports.ledger.append(event)?;
    after.latest = now;
    *state = after;
    Ok(())
}

fn cancelled(step: Step) -> Fact {
    let verdict = Verdict::deny(Code::Cancelled, "the run was cancelled");
    Fact::Failed { step, verdict }
}

/// Carries out `step`. A failure of the host ends the run; a failure of the store ends the driver.
fn perform(ports: &mut Ports<'_>, state: &State, step: Step) -> Result<Fact, PortError> {
    let failed = |verdict| Ok(Fact::Failed { step, verdict });
    let effect = match state.effect(step) {
        Ok(effect) => effect,
        Err(error) => return failed(PortError::of(Code::Bug, error).verdict()),
    };
    if !matches!(step, Step::Lease | Step::Clean) && !renew(ports, state)? {
        let reason = "the lease on the scope was lost";
        return failed(Verdict::deny(Code::LeaseLost, reason));
    }
    let host = &mut *ports.host;
    let outcome = match effect {
        // Only a lease can be refused without ending the run.
        Effect::Lease(scope) => return lease(ports, state, scope),
        Effect::Prepare(order) => watched(ports, state, |host, watch| {
            let layers = host.prepare(&order, watch)?;
            Ok(Fact::Prepared { layers })
        }),
        Effect::Workspace(order) => host.workspace(&order).map(Fact::Workspace),
        Effect::Selftest(order) => host.selftest(&order).map(Fact::Tested),
        Effect::Agent(mut agent) => match access_left(ports, state) {
            Some(left) if left.is_zero() => {
                let reason = "the time for which a person granted the files of the user is over";
                return failed(Verdict::deny(Code::FullAccessOver, reason));
            }
            left => {
                agent.time_limit = left.map_or(agent.time_limit, |it| it.min(agent.time_limit));
                watched(ports, state, |host, watch| {
                    host.agent(&agent, watch).map(Fact::AgentEnded)
                })
            }
        },
        Effect::Capture(order) => host.capture(&order).map(Fact::Captured),
        Effect::Review(order) => return fix::review(ports, state, &order),
        Effect::Fix(order) => return fix::fix(ports, state, &order),
        Effect::Accept(order) => watched(ports, state, |host, watch| {
            let is_refused = |run: &_| acceptance_cache::is_refused(state, run);
            acceptance_cache::settled(&order, is_refused, &mut |order| host.accept(order, watch))
                .map(Fact::TestsRan)
        }),
        Effect::Publish(order) => host.publish(&order).map(Fact::Published),
        Effect::Clean(order) => host.clean(&order).map(Fact::Cleaned),
    };
    outcome.or_else(|error| failed(error.verdict()))
}

/// How long the agent may still have the files of the user; `None` if it has not got them.
fn access_left(ports: &Ports<'_>, state: &State) -> Option<Duration> {
    let until = state.full_access_until()?;
    let left = until.saturating_sub(ports.clock.millis()).max(0);
    Some(Duration::from_millis(left.unsigned_abs()))
}

fn lease(ports: &mut Ports<'_>, state: &State, scope: Scope) -> Result<Fact, PortError> {
    let now = ports.clock.millis();
    let scope = if scope.is_empty() {
        childs_own(&state.names.run_id)?
    } else {
        scope
    };
    let request = LeaseRequest {
        run_id: state.names.run_id.clone(),
        scope,
        owner: state.owner.clone(),
        now,
        expires_at: now + LEASE_MS,
    };
    match ports.registry.acquire(&request)? {
        Acquired::Granted(lease) => Ok(Fact::Leased { fence: lease.fence }),
        Acquired::Held(holders) => {
            let verdict = held(&holders);
            if state.resumed > 0 {
                // A resumed run can continue later; this refusal must not end it.
                return Err(PortError::new(verdict.code, verdict.reason));
            }
            Ok(Fact::Failed {
                step: Step::Lease,
                verdict,
            })
        }
    }
}

/// What a child leases: a place of its own that no contract can name, because the run of its parent
/// holds the scope.
fn childs_own(run_id: &str) -> Result<Scope, PortError> {
    let path = RepoPath::try_from(format!(".provost/children/{run_id}"));
    let path = path.map_err(|error| PortError::of(Code::Bug, error))?;
    Ok(Scope::of(vec![path]))
}

/// Renews the lease before a step; false if another run may hold the scope by then.
fn renew(ports: &mut Ports<'_>, state: &State) -> Result<bool, PortError> {
    let expires_at = ports.clock.millis() + LEASE_MS;
    ports.registry.renew(
        &state.names.run_id,
        state.fence.unwrap_or_default(),
        expires_at,
    )
}

fn held(holders: &[Holder]) -> Verdict {
    let paths = |holder: &Holder| {
        let paths: Vec<&str> = holder.paths.iter().map(RepoPath::as_str).collect();
        format!("{} holds {}", holder.run_id, paths.join(", "))
    };
    let list: Vec<String> = holders.iter().map(paths).collect();
    Verdict::deny(
        Code::LeaseHeld,
        format!("the scope is taken: {}", list.join("; ")),
    )
    .with(LeaseHolders { holders })
}

#[derive(Serialize)]
struct LeaseHolders<'a> {
    holders: &'a [Holder],
}

/// Runs a long effect under a watch that renews the lease and asks the observer for a cancellation.
fn watched<T>(
    ports: &mut Ports<'_>,
    state: &State,
    effect: impl FnOnce(&mut dyn Host, &mut dyn Watch) -> Result<T, PortError>,
) -> Result<T, PortError> {
    let now = ports.clock.millis();
    let mut watch = LeaseWatch {
        ledger: ports.ledger,
        answers: ports.answers,
        state: state.clone(),
        registry: ports.registry,
        observer: ports.observer,
        clock: ports.clock,
        run_id: &state.names.run_id,
        fence: state.fence.unwrap_or_default(),
        renewed: now,
        // The lease was renewed when this step began.
        held_until: now + LEASE_MS,
    };
    effect(ports.host, &mut watch)
}

struct LeaseWatch<'a> {
    registry: &'a mut dyn Registry,
    observer: &'a mut dyn Observer,
    clock: &'a dyn Clock,
    ledger: &'a mut dyn Ledger,
    answers: &'a dyn Answers,
    /// The state, with the questions and children that were recorded meanwhile.
    state: State,
    run_id: &'a str,
    fence: u64,
    renewed: i64,
    held_until: i64,
}

impl LeaseWatch<'_> {
    /// Whether the agent may start children, or ask for more than its contract gives.
    fn has_broker(&self) -> bool {
        let opened = &self.state.opened;
        opened.grants_children() || opened.contract.may_ask()
    }
}

impl Watch for LeaseWatch<'_> {
    fn ask(&mut self, kind: QuestionKind, content: &str, reason: &str) -> Permission {
        // A ledger that cannot be written ends the driver at its next record.
        self.ask_person(kind, content, reason)
            .unwrap_or_else(|error| Permission::No(error.to_string()))
    }

    fn state(&self) -> Option<&State> {
        self.has_broker().then_some(&self.state)
    }

    fn note(&mut self, fact: Fact) -> Result<(), PortError> {
        if !self.has_broker() {
            return Err(PortError::new(Code::Bug, "the contract gives no broker"));
        }
        let names = Names {
            task_id: self.state.task_id().to_owned(),
            ..self.state.names.clone()
        };
        let event = fact.event(&names, self.state.attempt, self.clock.timestamp());
        let mut after = self.state.clone();
        after.apply(fact).map_err(|misplaced| {
            PortError::new(Code::Bug, format!("{} {misplaced}", event.event_type))
        })?;
        self.ledger.append(event)?;
        self.state = after;
        Ok(())
    }

    fn tick(&mut self, progress: &Progress) -> Control {
        if self.observer.progressed(progress) == ObserverChoice::Cancel {
            return Control::Cancel;
        }
        let now = self.clock.millis();
        if now - self.renewed < RENEW_MS {
            return Control::Continue;
        }
        self.renewed = now;
        match self.registry.renew(self.run_id, self.fence, now + LEASE_MS) {
            Ok(true) => {
                self.held_until = now + LEASE_MS;
                Control::Continue
            }
            // If the registry does not answer, its last answer counts until the lease ends.
            Err(_) if now + RENEW_MS < self.held_until => Control::Continue,
            Ok(false) | Err(_) => Control::LeaseLost,
        }
    }
}
