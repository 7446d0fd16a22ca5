//! Runs the agent of a sealed run again, on the recorded answers of its models.
//!
//! # Invariants
//!
//! - The proxy of such a sandbox reaches nothing, and no login is read for it.
//! - Workspaces and streams lie in a directory of their own, which is removed afterwards; the bundle
//!   and the workspaces of the run are not touched.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_core::code::Code;
use provost_core::json;
use provost_core::run::effect::Adaptation;
use provost_core::run::fact::AgentClaims;
use provost_core::secret::Known;
use provost_engine::ports::{Host as _, PortError, Watch};
use provost_engine::replay::model::{AgentAgain, AgentReplayed, ModelReplayHost, UnmatchedRequest};
use provost_model_record::playback::{Playback, SealedRequest, Unmatched};
use provost_model_record::store;

use super::sandboxed_command::{Ended, SandboxedCommand};
use super::{Machine, Places, git, host};
use crate::login;
use crate::proxy::Outlet;
use crate::proxy::gateway::request_log::RequestRow;

/// The directory with the bodies of the run in `bundle`, below the same runtime root.
pub(super) fn bodies_of(bundle: &Path) -> Result<PathBuf, PortError> {
    let run = bundle.file_name().and_then(|name| name.to_str());
    let root = bundle.parent().and_then(Path::parent);
    match (root, run) {
        (Some(root), Some(run)) => Ok(store::directory(root, run)),
        _ => Err(PortError::new(
            Code::Bug,
            "the bundle is in no runtime root",
        )),
    }
}

/// Removes kept bodies that hold a secret of `known`, which was not known when they were kept.
pub(super) fn forget(bundle: &Path, known: &Known) -> Result<(), PortError> {
    let directory = bodies_of(bundle)?;
    store::forget(&directory, known).map_err(host("remove bodies of models that hold a secret"))
}

impl Machine {
    /// The directory of everything that a replay of the agent needs.
    pub(super) fn replay_directory(&self) -> PathBuf {
        self.places.run.join("replay")
    }

    /// A machine for the same run, with places of its own.
    fn for_replay(&self) -> Self {
        let directory = self.replay_directory();
        let mut places = Places::new(&self.places.cache, &self.run_id);
        places.home = directory.join("home");
        places.run = directory;
        Self {
            run_id: self.run_id.clone(),
            repo: Arc::clone(&self.repo),
            places,
            bundle: self.bundle.clone(),
            launcher: self.launcher.clone(),
            lower: None,
            ready: None,
            known: self.known.clone(),
            brokered: self.brokered.clone(),
            learned: self.learned.clone(),
            sent: Vec::new(),
            children: None,
            patch: None,
            proven: self.proven.clone(),
            walled: self.walled.clone(),
            submodules: RefCell::default(),
            playbacks: self.playbacks.clone(),
        }
    }

    /// Runs the agent of `order` on what `playback` has; its streams go to the directory `streams`.
    fn play_agent(
        &self,
        order: &AgentAgain,
        (playback, streams): (&Arc<Playback>, &Path),
        watch: &mut dyn Watch,
    ) -> Result<(Ended, AgentClaims), PortError> {
        let agent = &*order.agent;
        let Some(known) = &agent.adaptation else {
            return Err(PortError::new(Code::Bug, "a command has no record"));
        };
        login::write_dummy(&known.adapted, &self.places.home)?;
        let directory = self.places.attempt(agent.attempt);
        let profile = self.agent_profile(agent)?;
        let run = SandboxedCommand {
            launcher: &self.launcher,
            profile: &profile,
            directory: &directory,
            bundle: streams,
            what: "agent, again",
            stdout: agent.stdout.clone(),
            stderr: agent.stderr.clone(),
            outlet: Outlet {
                playback: Some(Arc::clone(playback)),
                ..Outlet::default()
            },
            known: &self.known,
            broker: None,
        };
        let (ended, _, claims) =
            run.converse(known, &agent.argv, (&self.run_id, &self.repo), watch)?;
        Ok((ended, claims))
    }
}

impl ModelReplayHost for Machine {
    fn load_model(&mut self, name: &str, rows: &[u8]) -> Result<Vec<String>, PortError> {
        let sealed = match sealed_requests(rows) {
            Ok(sealed) => sealed,
            Err(problems) => return Ok(problems),
        };
        let directory = bodies_of(&self.bundle)?;
        match Playback::load(&directory, name, &sealed, self.known.clone()) {
            Ok(playback) => {
                self.playbacks.insert(name.to_owned(), Arc::new(playback));
                Ok(Vec::new())
            }
            Err(problems) => Ok(problems),
        }
    }

    fn agent_again(
        &mut self,
        order: &AgentAgain,
        watch: &mut dyn Watch,
    ) -> Result<AgentReplayed, PortError> {
        let rows = order.agent.adaptation.as_ref().map(Adaptation::requests);
        let playback = rows.and_then(|rows| self.playbacks.get(&rows).cloned());
        let playback = playback.ok_or_else(|| PortError::new(Code::Bug, "no record was loaded"))?;
        let mut machine = self.for_replay();
        let streams = machine.places.run.join("streams");
        std::fs::create_dir_all(&streams).map_err(host("make the directory of a replay"))?;
        // Only the evidence of a fix is read from the bundle.
        let bundle = std::mem::replace(&mut machine.bundle, streams.clone());
        machine.prepare(&order.agent.prepare, watch)?;
        machine.workspace(&order.workspace)?;
        machine.bundle = bundle;
        let tested = machine.selftest(&order.selftest)?;
        if !tested.held {
            let reason = "the self-test found a way out of the sandbox of the agent";
            return Err(PortError::new(Code::SandboxLeaks, reason));
        }
        let (ended, claims) = machine.play_agent(order, (&playback, &streams), watch)?;
        let captured = machine.capture_workspace(&order.capture)?;
        let changes = self.repo.differences(&order.tree, &captured.tree);
        let changes = changes.map_err(git)?;
        machine.lower = None;
        let directory = machine.places.attempt(order.agent.attempt);
        machine.remove(&directory)?;
        Ok(AgentReplayed {
            ending: ended.ending,
            thread: claims.sum.thread,
            tree: captured.tree,
            changed: changes.into_iter().map(|change| change.path).collect(),
            unmatched: playback.stopped().map(unmatched),
            left: playback.left(),
        })
    }
}

fn unmatched(found: Unmatched) -> UnmatchedRequest {
    UnmatchedRequest {
        request: found.request,
        closest: found.closest,
        pointer: found.difference.pointer,
        recorded: found.difference.recorded,
        again: found.difference.again,
    }
}

/// The forwarded requests in sealed rows; or why they cannot be answered from a record.
fn sealed_requests(rows: &[u8]) -> Result<Vec<SealedRequest>, Vec<String>> {
    let mut requests: Vec<SealedRequest> = Vec::new();
    let mut refused = 0_u64;
    let lines = rows
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    for line in lines {
        let row: RequestRow = json::parse_as(line)
            .map_err(|error| vec![format!("a sealed row cannot be read: {error}")])?;
        match row {
            RequestRow::Opened { .. } => {}
            RequestRow::Reserved { number, .. } => requests.push(SealedRequest {
                number,
                digests: None,
            }),
            RequestRow::Settled {
                number,
                request,
                answer,
                ..
            } => {
                let digests = Some([request.sha256, answer.sha256]);
                let ended = requests.iter_mut().filter(|it| it.number == number);
                ended.for_each(|it| it.digests.clone_from(&digests));
            }
            RequestRow::Released { number } => requests.retain(|it| it.number != number),
            RequestRow::Refused { .. } => refused += 1,
        }
    }
    if refused > 0 {
        let why = format!("the proxy refused {refused} requests, whose answers are not kept");
        return Err(vec![why]);
    }
    Ok(requests)
}
