//! Carries out commands of pages and programs.
//!
//! Answers are recorded here, with who asked; what drives a run is a process of its own.

use std::path::Path;
use std::time::Duration;

use provost_core::approval::Person;
use provost_core::question::{AnswerMeans, AnswerRefused, Needs, QuestionAnswer};
use provost_core::run::fact::Cancel;
use provost_core::run::{Gate, State, Step};
use provost_core::time;
use provost_core::verdict::Verdict;
use provost_engine::drive::{self, Draft};
use provost_engine::ports::{Observer, ObserverChoice, Progress};
use provost_engine::query::{self, RunArchive as _};
use provost_host::cancel_request::CancelRequest;
use provost_host::clock;
use provost_web::{AskedBy, RoomCommand};

use super::super::{agent_answer, why};
use super::detached;
use crate::answer::Failure;
use crate::parts;
use crate::places::Places;
use crate::session::{self, Session};

/// How long an approval that is given here is valid for the start of the work.
const APPROVAL_LASTS: Duration = Duration::from_hours(1);

/// Who asked, in the ledger, beside the name of the account.
fn asked_through(asked: &AskedBy) -> String {
    match asked {
        AskedBy::Session => "serve-session".to_owned(),
        AskedBy::Token { name } => format!("serve-token {name}"),
    }
}

/// The user, who asked through this server.
fn person(asked: &AskedBy) -> Result<Person, Failure> {
    let person = session::person()?;
    Ok(Person {
        user: format!("{} ({})", person.user, asked_through(asked)),
        ..person
    })
}

fn means(asked: &AskedBy) -> AnswerMeans {
    match asked {
        AskedBy::Session => AnswerMeans::ServeSession,
        AskedBy::Token { .. } => AnswerMeans::Token,
    }
}

/// Answers the question of an agent that `digest` names; `None` if it names none.
fn to_agent(
    path: &Path,
    run: &str,
    (digest, allow, reason): (&str, bool, &str),
    asked: &AskedBy,
) -> Result<Option<String>, Failure> {
    let place = Places::of(path)?;
    let state = query::state(&place, run)?;
    if !state.questions.contains_key(digest) {
        return Ok(None);
    }
    let lasts = i64::try_from(APPROVAL_LASTS.as_millis()).unwrap_or(i64::MAX);
    let answer = QuestionAnswer {
        digest: digest.to_owned(),
        allow,
        how: means(asked),
        by: Some(person(asked)?),
        until: time::render(clock::now_millis().saturating_add(lasts)),
        reason: reason.to_owned(),
        signature: None,
    };
    let recorded = agent_answer::carry(place, &state, &answer, &mut QuietObserver)?;
    let done = if recorded {
        "answered"
    } else {
        "the answer waits for the driver"
    };
    Ok(Some(done.to_owned()))
}

/// A command about a run.
///
/// Neither a session nor a token has the key of a person, so no yes from here counts where one is
/// needed: `may_approve` and `may_answer` of the run refuse it.
pub(super) fn about_run(
    path: &Path,
    run: &str,
    command: &RoomCommand,
    asked: &AskedBy,
) -> Result<String, Failure> {
    let place = Places::of(path)?;
    query::require_own(&place, run)?;
    match command {
        RoomCommand::Approve { digest } => {
            if let Some(done) = to_agent(path, run, (digest, true, ""), asked)? {
                return Ok(done);
            }
            let draft = Draft {
                by: person(asked)?,
                seen: Some(digest),
                lasts: APPROVAL_LASTS,
                how: means(asked),
                reason: "",
            };
            let mut session = Session::open(place, run)?;
            session.approve(draft, &mut |_, _| Ok(()), &mut QuietObserver)?;
            drop(session);
            detached::start(&Places::of(path)?, &["resume", run])
        }
        RoomCommand::Reject { digest, reason } => {
            if let Some(done) = to_agent(path, run, (digest, false, reason), asked)? {
                return Ok(done);
            }
            let session = Session::open(place, run)?;
            let by = (person(asked)?, means(asked));
            session.reject(by, Some(digest), reason, &mut QuietObserver)?;
            Ok("rejected".to_owned())
        }
        RoomCommand::Cancel { reason } if place.is_driven(run) => {
            CancelRequest::of(&place.root, run).leave(&Cancel {
                by: Some(person(asked)?),
                at: clock::now(),
                reason: reason.clone(),
            })?;
            Ok("asked to end".to_owned())
        }
        RoomCommand::Cancel { reason } => {
            let reason = format!("--reason={reason} ({})", asked_through(asked));
            detached::start(&place, &["cancel", run, &reason])
        }
        RoomCommand::Retry { words: None } => detached::start(&place, &["retry", run]),
        // Words that begin like a flag are words.
        RoomCommand::Retry { words: Some(words) } => {
            detached::start(&place, &["retry", run, "--", words])
        }
        RoomCommand::KeepWork => {
            let view = why::view(&place, run)?;
            let words = view.permit_with.unwrap_or_default();
            let flags = words.iter().skip(4).map(String::as_str);
            let words: Vec<&str> = ["retry", run, "--keep-work"]
                .into_iter()
                .chain(flags)
                .collect();
            detached::start(&place, &words)
        }
        RoomCommand::Land => detached::start(&place, &["land", run]),
        RoomCommand::Resume => detached::start(&place, &["resume", run]),
    }
}

/// A command about a case: each is a process, recorded under the name of the account.
pub(super) fn about_case(
    path: &Path,
    case: &str,
    command: &RoomCommand,
    asked: &AskedBy,
) -> Result<String, Failure> {
    let place = Places::of(path)?;
    match command {
        RoomCommand::Approve { digest } => {
            // The process that is started has no terminal and no passphrase, and would say so to
            // no person.
            if parts::case_state(&place, case)?.opened.ask.needs == Needs::PersonKey {
                let refused = AnswerRefused::TooWeak(means(asked));
                return Err(drive::refusal(case, &refused).into());
            }
            let digest = format!("--digest={digest}");
            detached::start(&place, &["approve", case, &digest, "--go"])
        }
        RoomCommand::Reject { digest, reason } => {
            let (digest, reason) = (format!("--digest={digest}"), format!("--reason={reason}"));
            detached::start(&place, &["reject", case, &digest, &reason])
        }
        RoomCommand::Cancel { reason } => {
            detached::start(&place, &["cancel", case, &format!("--reason={reason}")])
        }
        RoomCommand::Retry { .. } | RoomCommand::KeepWork => {
            detached::start(&place, &["retry", case])
        }
        RoomCommand::Land => detached::start(&place, &["land", case]),
        RoomCommand::Resume => detached::start(&place, &["resume", case]),
    }
}

/// Shows nothing and cancels nothing: no person watches the steps of an answer.
struct QuietObserver;

impl Observer for QuietObserver {
    fn begins(&mut self, _: &State, _: Step) -> ObserverChoice {
        ObserverChoice::Continue
    }

    fn cancel(&mut self) -> Option<Cancel> {
        None
    }

    fn judged(&mut self, _: Gate, _: &Verdict) {}

    fn progressed(&mut self, _: &Progress) -> ObserverChoice {
        ObserverChoice::Continue
    }
}
