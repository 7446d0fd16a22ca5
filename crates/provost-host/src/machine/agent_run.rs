//! Runs the agent of an attempt in its sandbox.

use std::cell::RefCell;

use provost_core::agent::launch::Answer;
use provost_core::code::Code;
use provost_core::run::effect;
use provost_core::run::fact::{AgentRun, ResultFile};
use provost_engine::ports::{ChildRunner, PortError, Watch};

use super::broker::Broker;
use super::profile::has_broker;
use super::{Machine, RESULT_LIMIT, sandboxed_command};
use crate::agent;
use crate::login;
use crate::sandbox::Stdin;

impl Machine {
    /// Runs the agent to its end, and its children with it.
    pub(super) fn run_agent(
        &mut self,
        order: &effect::AgentEffect,
        watch: &mut dyn Watch,
        runner: Option<&mut (dyn ChildRunner + 'static)>,
    ) -> Result<AgentRun, PortError> {
        let directory = self.places.attempt(order.attempt);
        self.stand(order)?;
        self.copy_evidence(order)?;
        let adapted = order.adaptation.as_ref().map(|known| &known.adapted);
        if let Some(agent) = adapted {
            agent::put_aside(agent, &self.places.home, order.attempt)?;
            login::write_dummy(agent, &self.places.home)?;
        }
        let profile = self.agent_profile(order)?;
        let run = sandboxed_command::SandboxedCommand {
            launcher: &self.launcher,
            profile: &profile,
            directory: &directory,
            bundle: &self.bundle,
            what: "agent",
            stdout: order.stdout.clone(),
            stderr: order.stderr.clone(),
            outlet: self.agent_outlet(order)?,
            known: &self.known,
            broker: runner
                .filter(|_| has_broker(order))
                .map(|runner| RefCell::new(Broker::new(self, order, runner))),
        };
        let result = || self.read_result(&directory);
        let Some(known) = &order.adaptation else {
            let contract = serde_json::to_vec(&order.contract)
                .map_err(|error| PortError::of(Code::Bug, error))?;
            let ended = run.follow(order.argv.clone(), Stdin::Bytes(contract), watch)?;
            return self.scrub_late(ended.of_agent(result(), None));
        };
        let (ended, stream, claims) =
            run.converse(known, &order.argv, (&self.run_id, &self.repo), watch)?;
        let left = match result() {
            (ResultFile::Absent, _) if known.answer != Answer::Free => {
                self.scrubbed(stream.result(&known.task_id, RESULT_LIMIT))
            }
            left => left,
        };
        self.scrub_late(ended.of_agent(left, Some(claims)))
    }
}
