//! Part runner: runs each node of a chain in its own thread, because sandboxes die with their
//! thread.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use provost_core::approval::Widening;
use provost_core::code::Code;
use provost_core::net::credential::Credential;
use provost_core::net::endpoint::Endpoint;
use provost_core::object::Oid;
use provost_core::question::AnswerMeans;
use provost_core::run::State;
use provost_core::run::fact::{ExistingWork, Names, Part, Revision};
use provost_core::run::refs::Kind;
use provost_core::verdict::Verdict;
use provost_engine::chain::{
    Came, CombinedResults, End, Merge, MergedNeeds, NodeStart, PartRunner,
};
use provost_engine::drive::Draft;
use provost_engine::opening::{self, Origin as _, Request, RequestedAgent};
use provost_engine::ports::{ObserverChoice, PortError};
use provost_engine::query::{self, RunArchive as _, Stage};
use provost_host::cancel_request::CancelRequest;
use provost_host::git::{Expected, GitError, Merged, Person};
use provost_host::origin::GitOrigin;
use provost_host::{clock, ids, login};

use super::super::run::{start, workspace};
use super::{combined, earlier_rounds};
use crate::answer::Failure;
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::session::{self, Session};
use crate::show::Reader;
use crate::user_consent::{self, Sent};

/// How long the approval of a whole case is valid for the start of one of its runs.
const APPROVED_FOR: Duration = Duration::from_hours(1);

/// The agents of every node.
#[derive(Clone)]
pub(in crate::cli) struct NodeAgents {
    pub(in crate::cli) agent: RequestedAgent,
    pub(in crate::cli) review: Option<RequestedAgent>,
    pub(in crate::cli) credentials: Vec<Credential>,
    /// The places of the network that the user typed.
    pub(in crate::cli) places: Vec<Endpoint>,
    /// The secrets that resumed runs may send.
    pub(in crate::cli) send: Vec<Sent>,
    /// The case that these runs are parts of.
    pub(in crate::cli) case: Option<String>,
}

impl NodeAgents {
    /// Whether a resumed run may send `credential`: the user typed it as `--credential` or
    /// `--send`.
    fn sends(&self, credential: &Credential) -> bool {
        self.credentials.contains(credential) || self.send.iter().any(|it| it.is(credential))
    }
}

/// Runs nodes of a chain in threads.
pub(in crate::cli) struct PartThreads {
    place: Places,
    directory: PathBuf,
    agents: Arc<NodeAgents>,
    observer: ProgressObserver,
    sender: Sender<Came>,
    receiver: Receiver<Came>,
}

impl PartThreads {
    pub(in crate::cli) fn new(
        place: Places,
        directory: PathBuf,
        agents: NodeAgents,
        reader: Reader,
    ) -> Self {
        let (sender, receiver) = mpsc::channel();
        Self {
            place,
            directory,
            agents: Arc::new(agents),
            observer: ProgressObserver::new(reader == Reader::Program),
            sender,
            receiver,
        }
    }

    /// Also follows the cancel request that another process may leave.
    pub(in crate::cli) fn listen(&mut self, request: CancelRequest) {
        self.observer.listen(request);
    }

    /// Runs `work` for `node` in its own thread.
    fn spawn(
        &self,
        node: String,
        run_id: String,
        work: impl FnOnce() -> Result<Option<End>, Failure> + Send + 'static,
    ) -> Result<(), PortError> {
        let sender = self.sender.clone();
        let named = thread::Builder::new().name(node.clone());
        let spawned = named.spawn(move || {
            let came = match work() {
                Ok(Some(end)) => ended(node, end),
                Ok(None) => Came::Nothing { node },
                // The run stays as it is; the next call of the chain resumes it.
                Err(failure) => ended(
                    node,
                    End {
                        run_id,
                        verdict: failure.verdict(),
                        commit: None,
                        tree: None,
                        head: None,
                    },
                ),
            };
            // The receiver is gone if the chain failed; the run itself is sealed.
            let _ = sender.send(came);
        });
        match spawned {
            Ok(_) => Ok(()),
            Err(error) => Err(PortError::of(Code::HostFailed, error)),
        }
    }
}

fn ended(node: String, end: End) -> Came {
    let end = Box::new(end);
    Came::Ended { node, end }
}

impl PartRunner for PartThreads {
    fn name(&mut self) -> Result<String, PortError> {
        let id = ids::run_id(clock::now_millis());
        id.map_err(|error| PortError::of(Code::HostFailed, error))
    }

    fn join(&mut self, run_id: &str, merge: &Merge) -> Result<MergedNeeds, PortError> {
        if merge.others.is_empty() {
            return Ok(MergedNeeds::Clean(merge.first.clone()));
        }
        let git = |error: GitError| PortError::of(Code::GitFailed, error);
        let repo = &self.place.repo;
        let mut tree = repo.commit_tree(&merge.first).map_err(git)?;
        let mut parents = vec![merge.first.clone()];
        for (base, theirs) in &merge.others {
            match repo.merge_tree(base, &tree, theirs).map_err(git)? {
                Merged::Clean(merged) => tree = merged,
                Merged::Conflict(paths) => {
                    let paths = paths.iter().map(ToString::to_string).collect();
                    return Ok(MergedNeeds::Conflict(paths));
                }
            }
            parents.push(theirs.clone());
        }
        let person = Person {
            name: "Provost".to_owned(),
            mail: "provost@localhost".to_owned(),
            time: merge.seconds,
        };
        let message = "Merge what a node of a chain starts from\n";
        let commit = repo.commit(&tree, &parents, message, &person, &person);
        let commit = commit.map_err(git)?;
        let name = Kind::Base.of_run(run_id);
        repo.keep(&name, &commit, &Expected::Any).map_err(git)?;
        Ok(MergedNeeds::Clean(commit))
    }

    fn begin(&mut self, order: NodeStart) -> Result<(), PortError> {
        let agents = Arc::clone(&self.agents);
        let (node, run_id) = (order.node.clone(), order.run_id.clone());
        self.spawn(node, run_id, move || begin(order, &agents).map(Some))
    }

    fn take_up(&mut self, node: &str, run_id: &str) -> Result<(), PortError> {
        let id = run_id.to_owned();
        let agents = Arc::clone(&self.agents);
        self.spawn(node.to_owned(), run_id.to_owned(), move || {
            take_up(&id, &agents)
        })
    }

    fn test(&mut self, order: &CombinedResults) -> Result<Verdict, PortError> {
        combined::test(order, &self.directory, &mut self.observer)
    }

    fn ended(&mut self) -> Result<Came, PortError> {
        // This struct holds a sender itself, so the channel is never closed.
        let came = self.receiver.recv();
        came.map_err(|error| PortError::of(Code::Bug, error))
    }

    fn report(&mut self, line: &str) -> ObserverChoice {
        self.observer.line(line);
        self.observer.choice()
    }
}

/// Drives the run of a node to its seal.
fn begin(order: NodeStart, agents: &NodeAgents) -> Result<End, Failure> {
    let place = Places::find()?;
    let names = Names {
        run_id: order.run_id,
        task_id: order.contract.task_id.clone(),
        trace_id: match order.trace_id {
            Some(trace_id) => trace_id,
            None => {
                crate::trace::trace_id().map_err(|error| Failure::of(Code::HostFailed, &error))?
            }
        },
    };
    // An agent that only the chain file names was not typed by the user.
    let by_name = |agent: &'_ RequestedAgent| match agent {
        RequestedAgent::Named(name) => Some(name.clone()),
        RequestedAgent::Typed(_) => None,
    };
    let (mine, review) = (
        by_name(&agents.agent),
        agents.review.as_ref().and_then(by_name),
    );
    let mine = mine.filter(|_| order.agent.is_none());
    let agent = order.agent.map(RequestedAgent::Named);
    // A secret is only for the nodes whose contracts grant its place.
    let extra = order.contract.x_provost.as_ref();
    let places = extra.map_or(&[][..], |extra| extra.net.as_slice());
    let granted = |it: &&Credential| opening::is_granted(&it.endpoint, places);
    let credentials = agents.credentials.iter().filter(granted).cloned().collect();
    let work = order
        .judges
        .map(|commit| existing(&place, order.part.as_ref(), commit));
    let work = work.transpose()?;
    let request = Request {
        work,
        contract: order.contract,
        typed: false,
        agent: agent.unwrap_or_else(|| agents.agent.clone()),
        review: agents.review.clone(),
        credentials,
        logins: login::found(),
        workspace: workspace()?,
        owner: session::owner()?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut opened = opening::opening(&GitOrigin(&place.repo), request)?;
    opened.part = order.part;
    let typed = user_consent::Typed {
        agent: mine.as_deref(),
        review: review.as_deref(),
        places: &agents.places,
        credentials: &agents.credentials,
    };
    user_consent::to_run(&place, &opened, &typed)?;
    start::check(&opened, None)?;
    let mut observer = ProgressObserver::new(true);
    observer.listen(CancelRequest::of(&place.root, &names.run_id));
    let rounds = opened.work.as_ref().map(|work| work.rounds.clone());
    let session = Session::create(place, &names)?;
    earlier_rounds::copy_logs(&names.run_id, &rounds.unwrap_or_default())?;
    let state = session.run(&names, opened, None, &mut observer)?;
    let state = approve_as(state, &order.approved, &mut observer)?;
    observer.close_request(&state);
    end(&state)
}

/// The work that is in `commit` already.
fn existing(place: &Places, part: Option<&Part>, commit: Oid) -> Result<ExistingWork, Failure> {
    let name = part.map_or_else(String::new, |part| part.chain.clone());
    let tree = GitOrigin(&place.repo).tree(&commit)?;
    Ok(ExistingWork {
        rounds: earlier_rounds::of(place, &name, &tree)?,
        tree,
        revision: Some(Revision { name, commit }),
        judged: Vec::new(),
        findings: Vec::new(),
    })
}

/// Answers the question of a run by what a person approved for it before, if that covers all of
/// it.
fn approve_as(
    state: State,
    approved: &[Widening],
    observer: &mut ProgressObserver,
) -> Result<State, Failure> {
    let mut widenings = state.opened.widenings.iter();
    let Some(question) = state.question().filter(|_| state.unanswered().is_some()) else {
        return Ok(state);
    };
    if !widenings.all(|it| approved.contains(it)) {
        return Ok(state);
    }
    let mut session = Session::open(Places::find()?, &state.names.run_id)?;
    session.send(&state.opened.brokered());
    let digest = question.digest();
    let draft = Draft {
        by: session::person()?,
        seen: Some(&digest),
        lasts: APPROVED_FOR,
        how: AnswerMeans::Case,
        reason: "",
    };
    session.approve(draft, &mut |_, _| Ok(()), observer)?;
    session.resume(observer)
}

/// Resumes a run whose driver died, and drives it to its end; nothing if it never began.
fn take_up(run_id: &str, agents: &NodeAgents) -> Result<Option<End>, Failure> {
    let place = Places::find()?;
    query::require_own(&place, run_id)?;
    if place.is_sealed(run_id) {
        return end(&query::state(&place, run_id)?).map(Some);
    }
    if query::never_began(&place, run_id) && !place.is_driven(run_id) {
        return Ok(None);
    }
    if query::stage(&place, run_id) == Stage::Waiting {
        return end(&query::state(&place, run_id)?).map(Some);
    }
    let mut observer = ProgressObserver::new(true);
    observer.listen(CancelRequest::of(&place.root, run_id));
    let mut session = Session::open(place, run_id)?;
    let brokered = session.brokered()?;
    let (typed, others): (Vec<&Credential>, Vec<&Credential>) =
        brokered.iter().partition(|it| agents.sends(it));
    let command = format!("resume {}", agents.case.as_deref().unwrap_or(run_id));
    user_consent::to_send(run_id, &command, &others, &agents.send)?;
    session.send(&[typed, others].concat());
    let state = session.resume(&mut observer)?;
    observer.close_request(&state);
    end(&state).map(Some)
}

/// The end of a run, for the chain.
fn end(state: &State) -> Result<End, Failure> {
    let run_id = state.names.run_id.clone();
    let pins = Places::find()?.pins(&run_id)?;
    let unfinished = || {
        // A run that waits for approval is resumed when the chain is called after the answer.
        let waits = state.unanswered();
        waits.unwrap_or_else(|| Verdict::deny(Code::RunUnfinished, "the run has not ended yet"))
    };
    Ok(End {
        verdict: state.finished.clone().unwrap_or_else(unfinished),
        commit: state.published.as_ref().map(|it| it.commit.clone()),
        tree: state.captured.as_ref().map(|it| it.tree.clone()),
        head: pins.ledger.map(|head| head.hash),
        run_id,
    })
}
