//! Records the questions of the running agent, and their answers.
//!
//! # Invariants
//!
//! - A question is in the ledger before a person sees it, and an answer before it has an effect.
//! - An answer that came when the question was over does not count.
//! - A path is leased before the yes about it is recorded.

use provost_core::code::Code;
use provost_core::lease::{Acquired, LeaseRequest};
use provost_core::question::{
    AgentQuestion, AnswerMeans, AnswerRefused, Permission, QuestionAnswer, QuestionKind, digest,
};
use provost_core::run::fact::{Fact, Names};
use provost_core::run::judge::{AskedWidening, QuestionStanding};
use provost_core::run::{State, Step};
use provost_core::scope::Scope;
use provost_core::time;

use super::{LEASE_MS, LeaseWatch, Ports, fold, held, record};
use crate::ports::PortError;

/// How long the yes of the allow-list is valid, in milliseconds.
const LISTED_MS: i64 = 3_600_000;

impl LeaseWatch<'_> {
    /// The answer to a question of the agent so far.
    pub(super) fn ask_person(
        &mut self,
        kind: QuestionKind,
        content: &str,
        reason: &str,
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
                if let Err(why) = self.state.may_ask(kind, content) {
                    return Ok(Permission::No(why));
                }
                let until = now.saturating_add(self.state.opened.ask.wait_ms());
                let question = AgentQuestion {
                    reason: reason.to_owned(),
                    needs: self.state.opened.ask.needs,
                    ..AgentQuestion::new(self.run_id, kind, content, until)
                };
                self.ask_anew(question, now)?;
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
            let reason = String::new();
            self.note(Fact::QuestionExpired { digest, reason })?;
            return Ok(Permission::No("no person answered in time".to_owned()));
        }
        let known = self.state.questions.get(&digest);
        if let Some(QuestionStanding::Expired { reason }) = known.map(|known| &known.standing) {
            return Ok(Permission::No(reason.clone()));
        }
        Ok(Permission::Open)
    }

    fn ask_anew(&mut self, question: AgentQuestion, now: i64) -> Result<(), PortError> {
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
                signature: None,
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
        let is_valid = answer.until_ms() > self.clock.millis();
        let counts = answer.digest == digest && is_person && is_valid;
        if counts && self.state.may_answer(&answer).is_ok() {
            let taken = if answer.allow {
                self.grow(digest)?
            } else {
                Ok(())
            };
            self.note(match taken {
                Ok(()) => Fact::QuestionAnswered(answer),
                Err(reason) => Fact::QuestionExpired {
                    digest: digest.to_owned(),
                    reason,
                },
            })?;
        }
        self.answers.forget(digest);
        Ok(())
    }

    /// Leases the path that the question `digest` asks for, if it asks for one; the inner error
    /// says which run holds it.
    fn grow(&mut self, digest: &str) -> Result<Result<(), String>, PortError> {
        let known = self.state.questions.get(digest).map(|it| &it.question);
        let asked = known.map(|it| AskedWidening::parse(it.kind, &it.content));
        let Some(Ok(AskedWidening::Path(path))) = asked else {
            return Ok(Ok(()));
        };
        let Ok(contract) = &self.state.contract else {
            return Ok(Ok(()));
        };
        let mut paths = contract.scope.entries().to_vec();
        paths.push(path);
        let now = self.clock.millis();
        let request = LeaseRequest {
            run_id: self.run_id.to_owned(),
            scope: Scope::of(paths),
            owner: self.state.owner.clone(),
            now,
            expires_at: now + LEASE_MS,
        };
        match self.registry.acquire(&request)? {
            Acquired::Held(holders) => Ok(Err(held(&holders).reason)),
            Acquired::Granted(lease) => {
                self.fence = lease.fence;
                self.held_until = request.expires_at;
                let fence = lease.fence;
                self.note(Fact::Leased { fence })?;
                Ok(Ok(()))
            }
        }
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
    let late = answer.until_ms() <= ports.clock.millis();
    let may = if late {
        Err(AnswerRefused::Late)
    } else {
        state.may_answer(&answer)
    };
    may.map_err(|refused| refusal(&state.names.run_id, &refused))?;
    record(ports, &mut state, Fact::QuestionAnswered(answer))?;
    Ok(state)
}

/// Why an answer to a question of the run does not count, with the command that helps.
pub fn refusal(run_id: &str, refused: &AnswerRefused) -> PortError {
    PortError::new(refused.code(), refused.to_string()).hint(refused.hint(run_id))
}
