//! Records the questions of the running agent, and their answers.
//!
//! # Invariants
//!
//! - A question is in the ledger before a person sees it, and an answer before it has an effect.
//! - An answer that came when the question was over does not count.

use provost_core::code::Code;
use provost_core::question::{
    AgentQuestion, AnswerMeans, Permission, QuestionAnswer, QuestionKind, digest,
};
use provost_core::run::fact::{Fact, Names};
use provost_core::run::{State, Step};
use provost_core::time;

use super::{LeaseWatch, Ports, fold, record};
use crate::ports::PortError;

/// How long the yes of the allow-list is valid, in milliseconds.
const LISTED_MS: i64 = 3_600_000;

impl LeaseWatch<'_> {
    /// The answer to a question of the agent so far.
    pub(super) fn ask_person(
        &mut self,
        kind: QuestionKind,
        content: &str,
    ) -> Result<Permission, PortError> {
        if self.state.pending != Some(Step::Agent) {
            return Ok(Permission::No("only the agent of a run asks".to_owned()));
        }
        let digest = digest(self.run_id, kind, content);
        let now = self.clock.millis();
        match self.state.permission(&digest, now) {
            Some(Permission::Open) => {}
            Some(decided) => return Ok(decided),
            None => {
                if let Err(why) = self.state.may_ask(content) {
                    return Ok(Permission::No(why));
                }
                self.ask_anew(kind, content, now)?;
            }
        }
        self.take_answer(&digest)?;
        if let Some(decided @ (Permission::Yes { .. } | Permission::No(_))) =
            self.state.permission(&digest, now)
        {
            return Ok(decided);
        }
        let open = self.state.open_questions().find(|it| it.digest == digest);
        if open.is_some_and(|question| question.is_over(now)) {
            self.note(Fact::QuestionExpired { digest })?;
            return Ok(Permission::No("no person answered in time".to_owned()));
        }
        Ok(Permission::Open)
    }

    fn ask_anew(&mut self, kind: QuestionKind, content: &str, now: i64) -> Result<(), PortError> {
        let until = now.saturating_add(self.state.opened.ask.wait_ms());
        let question = AgentQuestion::new(self.run_id, kind, content, until);
        let lost = self.state.open_questions();
        if !lost.into_iter().any(|it| it.digest == question.digest) {
            // An answer that was left for the same question before is not one to this.
            self.answers.forget(&question.digest);
        }
        self.note(Fact::QuestionAsked(question.clone()))?;
        if self.state.lists(&question) {
            let yes = QuestionAnswer {
                digest: question.digest,
                allow: true,
                how: AnswerMeans::AllowList,
                by: None,
                until: time::render(now.saturating_add(LISTED_MS)),
                reason: String::new(),
            };
            return self.note(Fact::QuestionAnswered(yes));
        }
        self.observer.asked(self.run_id, &question);
        Ok(())
    }

    /// Records the answer that another process left, if it counts.
    fn take_answer(&mut self, digest: &str) -> Result<(), PortError> {
        let Some(answer) = self.answers.answer(digest) else {
            return Ok(());
        };
        // The allow-list is asked here, and by no other process.
        let is_person = answer.how != AnswerMeans::AllowList;
        if answer.digest == digest && is_person && self.state.may_answer(&answer).is_ok() {
            self.note(Fact::QuestionAnswered(answer))?;
        }
        self.answers.forget(digest);
        Ok(())
    }

    /// Appends `fact`, whose texts the host has scrubbed.
    fn note(&mut self, fact: Fact) -> Result<(), PortError> {
        let now = self.clock.timestamp();
        let names = Names {
            task_id: self.state.task_id().to_owned(),
            ..self.state.names.clone()
        };
        let event = fact.event(&names, self.state.attempt, now);
        let mut after = self.state.clone();
        after.apply(fact).map_err(|misplaced| {
            PortError::new(Code::Bug, format!("{} {misplaced}", event.event_type))
        })?;
        self.ledger.append(event)?;
        self.state = after;
        Ok(())
    }
}

/// Records `answer` for a run that no process drives.
pub fn answer_question(ports: &mut Ports<'_>, answer: QuestionAnswer) -> Result<State, PortError> {
    let mut state = fold(ports.ledger)?;
    state
        .may_answer(&answer)
        .map_err(|refused| PortError::new(Code::NothingToApprove, refused))?;
    record(ports, &mut state, Fact::QuestionAnswered(answer))?;
    Ok(state)
}
