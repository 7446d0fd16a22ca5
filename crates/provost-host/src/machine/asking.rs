//! Passes the questions of a running agent to the watch, and the answers back.

use std::sync::Arc;

use provost_core::question::{Permission, QuestionKind};
use provost_core::secret::Known;
use provost_engine::ports::Watch;

use crate::agent::AgentStream;
use crate::clock;
use crate::proxy::HostQuestions;

/// The questions of one sandbox.
pub(super) struct Asking<'a> {
    pub(super) hosts: Option<Arc<HostQuestions>>,
    /// Secrets that must not stay in a question.
    pub(super) known: &'a Known,
    /// How often a question was open at a tick.
    waited: u64,
}

impl<'a> Asking<'a> {
    pub(super) fn new(hosts: Option<Arc<HostQuestions>>, known: &'a Known) -> Self {
        Self {
            hosts,
            known,
            waited: 0,
        }
    }

    /// Passes on what is open. Returns a number that grows while a question waits, because a
    /// program that waits for a person is not silent.
    pub(super) fn relay(&mut self, stream: Option<&mut AgentStream>, watch: &mut dyn Watch) -> u64 {
        let hosts = self.hosts.as_ref();
        for place in hosts.iter().flat_map(|it| it.open()) {
            let permission = watch.ask(QuestionKind::Host, &place, "");
            self.waited += u64::from(permission == Permission::Open);
            if let Some(hosts) = hosts {
                hosts.answer(&place, permission, clock::now_millis());
            }
        }
        let Some(stream) = stream else {
            return self.waited;
        };
        for (id, command) in stream.asked_commands() {
            let (content, _) = self.known.scrub_text(command);
            match watch.ask(QuestionKind::Command, &content, "") {
                Permission::Open => self.waited += 1,
                Permission::Yes { .. } => stream.answer_command(&id, Ok(())),
                Permission::No(reason) => stream.answer_command(&id, Err(&reason)),
            }
        }
        self.waited
    }
}
