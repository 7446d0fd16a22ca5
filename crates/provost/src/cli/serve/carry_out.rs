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
use provost_room::commands::BegunCommand;
use provost_web::{AskedBy, RoomCommand};

use super::super::{agent_answer, why};
use crate::answer::Failure;
use crate::parts;
use crate::places::Places;
use crate::session::{self, Session};

/// How long an approval that is given here is valid for the start of the work.
const APPROVAL_LASTS: Duration = Duration::from_hours(1);

/// The user, who asked through this server by this command.
fn person(begun: &BegunCommand) -> Result<Person, Failure> {
    let person = session::person()?;
    Ok(Person {
        user: format!("{} ({})", person.user, begun.mark()),
        ..person
    })
}

fn means(begun: &BegunCommand) -> AnswerMeans {
    match begun.asked() {
        AskedBy::Session { .. } => AnswerMeans::ServeSession,
        AskedBy::Token { .. } => AnswerMeans::Token,
    }
}

/// Answers the question of an agent that `digest` names; `None` if it names none.
fn to_agent(
    path: &Path,
    run: &str,
    (digest, allow, reason): (&str, bool, &str),
    begun: &BegunCommand,
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
        how: means(begun),
        by: Some(person(begun)?),
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

/// Carries out a command about the run or case `about`, which is recorded before.
pub(super) fn carry_out(
    path: &Path,
    about: &str,
    command: &RoomCommand,
    asked: &AskedBy,
) -> Result<String, Failure> {
    let place = Places::of(path)?;
    let is_case = about.starts_with(parts::CASE);
    if !is_case {
        query::require_own(&place, about)?;
    }
    let begun = BegunCommand::record(&place, about, command, asked)?;
    let done = if is_case {
        about_case(&place, about, command, &begun)
    } else {
        about_run(path, about, command, &begun)
    };
    done.inspect_err(|failure| begun.failed(failure))
}

/// A command about a run.
///
/// Neither a session nor a token has the key of a person, so no yes from here counts where one is
/// needed: `may_approve` and `may_answer` of the run refuse it.
fn about_run(
    path: &Path,
    run: &str,
    command: &RoomCommand,
    begun: &BegunCommand,
) -> Result<String, Failure> {
    let place = Places::of(path)?;
    match command {
        RoomCommand::Approve { digest } => {
            if let Some(done) = to_agent(path, run, (digest, true, ""), begun)? {
                return Ok(done);
            }
            let draft = Draft {
                by: person(begun)?,
                seen: Some(digest),
                lasts: APPROVAL_LASTS,
                how: means(begun),
                reason: "",
            };
            let mut session = Session::open(place, run)?;
            session.approve(draft, &mut |_, _| Ok(()), &mut QuietObserver)?;
            drop(session);
            begun.start(&Places::of(path)?, &["resume", run])
        }
        RoomCommand::Reject { digest, reason } => {
            if let Some(done) = to_agent(path, run, (digest, false, reason), begun)? {
                return Ok(done);
            }
            let session = Session::open(place, run)?;
            let by = (person(begun)?, means(begun));
            session.reject(by, Some(digest), reason, &mut QuietObserver)?;
            Ok("rejected".to_owned())
        }
        RoomCommand::Cancel { reason } if place.is_driven(run) => {
            CancelRequest::of(&place.root, run).leave(&Cancel {
                by: Some(person(begun)?),
                at: clock::now(),
                reason: reason.clone(),
            })?;
            Ok("asked to end".to_owned())
        }
        RoomCommand::Cancel { reason } => {
            let reason = format!("--reason={reason} ({})", begun.mark());
            begun.start(&place, &["cancel", run, &reason])
        }
        RoomCommand::Retry { words: None } => begun.start(&place, &["retry", run]),
        // Words that begin like a flag are words.
        RoomCommand::Retry { words: Some(words) } => {
            begun.start(&place, &["retry", run, "--", words])
        }
        RoomCommand::KeepWork => {
            let view = why::view(&place, run)?;
            let words = view.permit_with.unwrap_or_default();
            let flags = words.iter().skip(4).map(String::as_str);
            let words: Vec<&str> = ["retry", run, "--keep-work"]
                .into_iter()
                .chain(flags)
                .collect();
            begun.start(&place, &words)
        }
        RoomCommand::Land => begun.start(&place, &["land", run]),
        RoomCommand::Resume => begun.start(&place, &["resume", run]),
    }
}

/// A command about a case: each is a process, recorded under the name of the account.
fn about_case(
    place: &Places,
    case: &str,
    command: &RoomCommand,
    begun: &BegunCommand,
) -> Result<String, Failure> {
    match command {
        RoomCommand::Approve { digest } => {
            // The process that is started has no terminal and no passphrase, and would say so to
            // no person.
            if parts::case_state(place, case)?.opened.ask.needs == Needs::PersonKey {
                let refused = AnswerRefused::TooWeak(means(begun));
                return Err(drive::refusal(case, &refused).into());
            }
            let digest = format!("--digest={digest}");
            begun.start(place, &["approve", case, &digest, "--go"])
        }
        RoomCommand::Reject { digest, reason } => {
            let (digest, reason) = (format!("--digest={digest}"), format!("--reason={reason}"));
            begun.start(place, &["reject", case, &digest, &reason])
        }
        RoomCommand::Cancel { reason } => {
            begun.start(place, &["cancel", case, &format!("--reason={reason}")])
        }
        RoomCommand::Retry { .. } | RoomCommand::KeepWork => begun.start(place, &["retry", case]),
        RoomCommand::Land => begun.start(place, &["land", case]),
        RoomCommand::Resume => begun.start(place, &["resume", case]),
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
