//! Questions of the running agent, and which answers count.

use crate::gate::command::{self, Trust};
use crate::question::{
    self, AgentQuestion, AnswerMeans, AnswerRefused, Needs, Permission, QuestionAnswer,
    QuestionKind,
};
use crate::run::fact::Fact;
use crate::run::judge::AskedWidening;
use crate::run::{Misplaced, State, Step};
use crate::time;

/// A question with its answer, if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionState {
    pub question: AgentQuestion,
    /// The attempt whose agent asked.
    pub attempt: u32,
    pub standing: QuestionStanding,
}

impl QuestionState {
    /// Whether it widened the contract, which holds to the end of the run.
    fn is_granted(&self) -> bool {
        let widens = matches!(
            self.question.kind,
            QuestionKind::Path | QuestionKind::Widening
        );
        let allows = matches!(&self.standing, QuestionStanding::Answered(it) if it.allow);
        widens && allows
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionStanding {
    Open,
    Answered(QuestionAnswer),
    /// No answer came in time, or its yes could not be kept; it counts as no.
    Expired {
        reason: String,
    },
    /// The agent that asked has ended.
    AgentEnded,
}

impl State {
    /// The questions that wait for an answer, also those of an agent that was lost.
    pub fn open_questions(&self) -> impl Iterator<Item = &AgentQuestion> {
        let open = |it: &&QuestionState| it.standing == QuestionStanding::Open;
        let open = self.questions.values().filter(open);
        open.map(|it| &it.question)
            .filter(|_| self.finished.is_none())
    }

    /// The answer to the same question so far; `None` if it has to be asked, for the first time or
    /// again.
    pub fn permission(&self, digest: &str, now: i64) -> Option<Permission> {
        let known = self.questions.get(digest)?;
        match &known.standing {
            QuestionStanding::Open if known.attempt == self.attempt => Some(Permission::Open),
            QuestionStanding::Answered(answer) if answer.until_ms() > now || known.is_granted() => {
                Some(permission(answer))
            }
            QuestionStanding::Open
            | QuestionStanding::Answered(_)
            | QuestionStanding::Expired { .. }
            | QuestionStanding::AgentEnded => None,
        }
    }

    /// Whether another question may be asked about `content`; else the reason why it counts as no.
    pub fn may_ask(&self, kind: QuestionKind, content: &str) -> Result<(), String> {
        match kind {
            QuestionKind::Command | QuestionKind::Host => {}
            QuestionKind::Path | QuestionKind::Widening => {
                let asked = AskedWidening::parse(kind, content)?;
                // One question has one spelling.
                if asked.question().1 != content {
                    return Err("is not spelled as it is asked".to_owned());
                }
                if let Some(why) = self.cannot_widen(&asked) {
                    return Err(why);
                }
            }
        }
        if self.opened.ask.needs == Needs::PersonKey && self.opened.ask.person_keys.is_empty() {
            let why = "needs the key of a person, and there was none when the run began";
            return Err(why.to_owned());
        }
        if content.len() > question::LONGEST {
            return Err(format!(
                "is longer than {} KiB, which no person reads",
                question::LONGEST / 1024
            ));
        }
        if self.questions.len() >= question::MOST {
            return Err(format!("comes after {} questions", question::MOST));
        }
        Ok(())
    }

    /// Whether `answer` counts now.
    pub fn may_answer(&self, answer: &QuestionAnswer) -> Result<(), AnswerRefused> {
        let known = self.questions.get(&answer.digest);
        let known = known.filter(|_| self.finished.is_none());
        let known = known.ok_or(AnswerRefused::Unknown)?;
        match &known.standing {
            QuestionStanding::Open => {}
            QuestionStanding::Answered(earlier) => {
                let word = if earlier.allow { "yes" } else { "no" };
                return Err(AnswerRefused::Twice(word));
            }
            QuestionStanding::Expired { .. } => return Err(AnswerRefused::Late),
            QuestionStanding::AgentEnded => return Err(AnswerRefused::AgentEnded),
        }
        if time::parse(&answer.until).is_err() {
            return Err(AnswerRefused::NoTime);
        }
        if answer.how == AnswerMeans::AllowList && !(answer.allow && self.lists(&known.question)) {
            return Err(AnswerRefused::NotListed);
        }
        if answer.how == AnswerMeans::AllowList {
            return Ok(());
        }
        let given = (answer.how, answer.signature.as_ref());
        let needs = known.question.needs;
        self.opened.ask.admit(needs, given, &answer.statement())
    }

    /// Whether the allow-list of the policy answers `question` with yes.
    pub fn lists(&self, question: &AgentQuestion) -> bool {
        let policy = super::policy().and_then(|it| it.with(self.opened.commands.clone()));
        question.kind == QuestionKind::Command
            && policy.is_ok_and(|policy| {
                command::judge(&question.content, &policy, Trust::FromFile).allow
            })
    }

    /// Applies a question, its answer or its end, if it is possible in this state.
    pub(in crate::run) fn apply_question(&mut self, fact: Fact) -> Result<(), Misplaced> {
        match fact {
            Fact::QuestionAsked(question) => self.asked_by_agent(question),
            Fact::QuestionAnswered(answer) => {
                self.may_answer(&answer).map_err(|_| Misplaced)?;
                let known = self.questions.get_mut(&answer.digest).ok_or(Misplaced)?;
                let kind = known.question.kind;
                let widens = answer.allow;
                known.standing = QuestionStanding::Answered(answer);
                if widens && matches!(kind, QuestionKind::Path | QuestionKind::Widening) {
                    self.widen();
                }
                Ok(())
            }
            Fact::QuestionExpired { digest, reason } => {
                let known = self.questions.get_mut(&digest).ok_or(Misplaced)?;
                if known.standing != QuestionStanding::Open {
                    return Err(Misplaced);
                }
                known.standing = QuestionStanding::Expired { reason };
                Ok(())
            }
            _ => Err(Misplaced),
        }
    }

    /// Only the agent asks, while it runs.
    fn asked_by_agent(&mut self, question: AgentQuestion) -> Result<(), Misplaced> {
        let AgentQuestion { kind, content, .. } = &question;
        let digest = question::digest(&self.names.run_id, *kind, content);
        let known = self.questions.get(&digest);
        let is_open = known
            .is_some_and(|it| it.standing == QuestionStanding::Open && it.attempt == self.attempt);
        // What was permitted for good is not asked again.
        let may = known.is_some_and(|it| !it.is_granted()) || self.may_ask(*kind, content).is_ok();
        if question.needs != self.opened.ask.needs {
            return Err(Misplaced);
        }
        if self.pending != Some(Step::Agent) || digest != question.digest || is_open || !may {
            return Err(Misplaced);
        }
        let state = QuestionState {
            question,
            attempt: self.attempt,
            standing: QuestionStanding::Open,
        };
        self.questions.insert(digest, state);
        Ok(())
    }

    /// The agent has ended: its questions have no use any more.
    pub(in crate::run) fn end_questions(&mut self) {
        for known in self.questions.values_mut() {
            if known.standing == QuestionStanding::Open {
                known.standing = QuestionStanding::AgentEnded;
            }
        }
    }
}

fn permission(answer: &QuestionAnswer) -> Permission {
    if answer.allow {
        let until = answer.until_ms();
        return Permission::Yes { until };
    }
    Permission::No(match answer.reason.as_str() {
        "" => "a person said no".to_owned(),
        reason => format!("a person said no: {reason}"),
    })
}
