//! Asks a person, for an agent, for more than the contract gives.

use provost_core::children::BrokerAnswer;
use provost_core::code::Code;
use provost_core::question::{LONGEST, Permission, QuestionKind};
use provost_core::verdict::Verdict;
use provost_engine::ports::Watch;

use super::Broker;

impl Broker<'_> {
    pub(super) fn ask(
        &mut self,
        kind: QuestionKind,
        content: &str,
        reason: &str,
        watch: &mut dyn Watch,
    ) -> Result<BrokerAnswer, Verdict> {
        let no = |words: String| Err(Verdict::deny(Code::AskRefused, words));
        if reason.len() > LONGEST {
            return no("the reason is longer than a person reads".to_owned());
        }
        match kind {
            QuestionKind::Path | QuestionKind::Widening => {}
            QuestionKind::Command | QuestionKind::Host => {
                return no("is asked by its use, not by this command".to_owned());
            }
        }
        let (content, _) = self.machine.known.scrub_text(content.to_owned());
        let (reason, _) = self.machine.known.scrub_text(reason.to_owned());
        match watch.ask(kind, &content, &reason) {
            Permission::Open => {
                self.waited += 1;
                let words = format!("`{content}` waits for a person");
                let granted = false;
                Ok(BrokerAnswer::Asked { granted, words })
            }
            Permission::Yes { .. } => {
                let words = match kind {
                    QuestionKind::Widening => {
                        format!("`{content}` is permitted; read-only files open with the next fix")
                    }
                    _ => format!("`{content}` is permitted for the rest of this run"),
                };
                let granted = true;
                Ok(BrokerAnswer::Asked { granted, words })
            }
            Permission::No(why) => no(format!("`{content}`: {why}")),
        }
    }
}
