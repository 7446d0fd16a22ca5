//! Drives the runs of children, each in its own thread, because sandboxes die with their thread.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use provost_core::bundle::layout::{ATTESTATION, PATCH};
use provost_core::children::{ChildBudget, ChildEnd, FamilyMessage, MessageWay, PackageV1Record};
use provost_core::code::Code;
use provost_core::object::sha256;
use provost_core::package::Package;
use provost_core::run::State;
use provost_core::run::fact::{AgentRun, Cancel, Capture, Names, Opened, ResultFile};
use provost_core::verdict::Verdict;
use provost_engine::ports::{ChildCame, ChildRunner, PortError};
use provost_host::cancel_request::CancelRequest;
use provost_host::{clock, ids};

use crate::answer::Failure;
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::session::Session;

/// How much of what a child said its parent gets.
const MOST_SAID: usize = 256 << 10;

/// The threads of the children of one run.
#[derive(Debug)]
pub struct ChildThreads {
    root: PathBuf,
    sender: Sender<ChildCame>,
    receiver: Receiver<ChildCame>,
    /// Where messages for this run come.
    inbox: Inbox,
    /// Where messages for its parent and its children go, by their runs.
    peers: BTreeMap<String, Sender<FamilyMessage>>,
}

/// Where messages for one run come, from its parent and its children alike.
#[derive(Debug)]
struct Inbox {
    sender: Sender<FamilyMessage>,
    receiver: Receiver<FamilyMessage>,
}

impl Inbox {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel();
        Self { sender, receiver }
    }
}

/// How a run that another agent started reaches the run of that agent.
#[derive(Debug)]
pub struct ParentLink {
    parent: String,
    up: Sender<FamilyMessage>,
    inbox: Inbox,
}

impl ChildThreads {
    /// For a run in the runtime root `root`.
    pub fn new(root: &Path) -> Self {
        let (sender, receiver) = mpsc::channel();
        Self {
            root: root.to_owned(),
            sender,
            receiver,
            inbox: Inbox::new(),
            peers: BTreeMap::new(),
        }
    }

    /// For the run of a child.
    #[must_use]
    pub fn linked(mut self, link: ParentLink) -> Self {
        self.peers.insert(link.parent, link.up);
        self.inbox = link.inbox;
        self
    }
}

impl ChildRunner for ChildThreads {
    fn name(&mut self) -> Result<String, PortError> {
        let id = ids::run_id(clock::now_millis());
        id.map_err(|error| PortError::of(Code::HostFailed, error))
    }

    fn begin(&mut self, names: Names, opened: Opened) -> Result<(), PortError> {
        let sender = self.sender.clone();
        let inbox = Inbox::new();
        let down = inbox.sender.clone();
        let parent = opened.child.as_ref().map(|child| child.run.clone());
        let link = ParentLink {
            parent: parent.unwrap_or_default(),
            up: self.inbox.sender.clone(),
            inbox,
        };
        self.peers.insert(names.run_id.clone(), down);
        let builder = thread::Builder::new().name(names.run_id.clone());
        let thread = builder.spawn(move || {
            let run_id = names.run_id.clone();
            let came = drive(&names, opened, link).unwrap_or_else(|failure| ChildCame {
                run_id,
                end: Err(failure.verdict()),
                patch: None,
                said: Vec::new(),
            });
            // The receiver is gone if the parent failed; the run of the child is sealed.
            let _ = sender.send(came);
        });
        match thread {
            Ok(_) => Ok(()),
            Err(error) => Err(PortError::of(Code::HostFailed, error)),
        }
    }

    fn ended(&mut self, wait: Duration) -> Vec<ChildCame> {
        let first = if wait.is_zero() {
            self.receiver.try_recv().ok()
        } else {
            self.receiver.recv_timeout(wait).ok()
        };
        first.into_iter().chain(self.receiver.try_iter()).collect()
    }

    fn cancel(&mut self, run_id: &str, reason: &str) -> Result<(), PortError> {
        CancelRequest::of(&self.root, run_id).leave(&Cancel {
            by: None,
            at: clock::now(),
            reason: reason.to_owned(),
        })
    }

    fn send(&mut self, from: &str, message: &FamilyMessage) {
        let received = FamilyMessage {
            way: MessageWay::Received,
            peer: from.to_owned(),
            ..message.clone()
        };
        if let Some(peer) = self.peers.get(&message.peer) {
            // A run that has ended reads nothing more.
            let _ = peer.send(received);
        }
    }

    fn received(&mut self) -> Vec<FamilyMessage> {
        self.inbox.receiver.try_iter().collect()
    }

    #[cfg(feature = "formats")]
    fn package_v1(&self, parent: &Package, child: &Package) -> Option<PackageV1Record> {
        provost_formats::child_package::record(parent, child)
    }

    #[cfg(not(feature = "formats"))]
    fn package_v1(&self, _: &Package, _: &Package) -> Option<PackageV1Record> {
        None
    }
}

/// Drives the run of a child to its seal.
fn drive(names: &Names, opened: Opened, link: ParentLink) -> Result<ChildCame, Failure> {
    let place = Places::find()?;
    let directory = place.run(&names.run_id);
    let mut observer = ProgressObserver::new(true);
    observer.listen(CancelRequest::of(&place.root, &names.run_id));
    let mut session = Session::create(place, names)?;
    session.link(link);
    let state = session.run(names, opened, None, &mut observer)?;
    observer.close_request(&state);
    Ok(came(&state, &directory))
}

fn came(state: &State, directory: &Path) -> ChildCame {
    let unfinished = || Verdict::deny(Code::RunUnfinished, "the run has not ended yet");
    let verdict = state.finished.clone().unwrap_or_else(unfinished);
    let changed = state.captured.as_ref().is_some_and(Capture::holds_anything);
    let patch = (verdict.allow && changed).then(|| fs::read(directory.join(PATCH)).ok());
    let wall: u64 = state.attempts().map(|run| run.wall_ms).sum();
    let usage = state
        .spent(None)
        .map(|spent| spent.usage)
        .unwrap_or_default();
    let own = ChildBudget {
        tokens: usage.tokens(),
        micro_usd: usage.micro_usd,
        seconds: wall.div_ceil(1000),
        processes: 0,
    };
    let attestation = fs::read(directory.join(ATTESTATION)).ok();
    ChildCame {
        run_id: state.names.run_id.clone(),
        patch: patch.flatten(),
        said: state
            .agent
            .as_ref()
            .map_or_else(Vec::new, |agent| said(agent, directory)),
        end: Ok(ChildEnd {
            run_id: state.names.run_id.clone(),
            verdict,
            spent: own.plus(state.family.used()),
            children: state.family.count(),
            tree: state.captured.as_ref().map(|it| it.tree.clone()),
            attestation_sha256: attestation.map(|bytes| sha256(&bytes)),
        }),
    }
}

/// The result that an agent left, or else what it printed.
fn said(agent: &AgentRun, directory: &Path) -> Vec<u8> {
    let mut bytes = match &agent.result {
        ResultFile::Text(text) => text.clone().into_bytes(),
        ResultFile::Absent | ResultFile::Unusable(_) => {
            fs::read(directory.join(&agent.stdout.file)).unwrap_or_default()
        }
    };
    bytes.truncate(MOST_SAID);
    bytes
}
