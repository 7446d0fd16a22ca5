//! Gives the answer to a question of a running agent: to its driver, or to the ledger if it has none.

use std::thread;
use std::time::{Duration, Instant};

use provost_core::code::Code;
use provost_core::question::{AgentQuestion, AnswerMeans, AnswerRefused, QuestionAnswer};
use provost_core::run::State;
use provost_core::run::judge::{QuestionStanding, QuestionState};
use provost_core::time;
use provost_engine::drive;
use provost_engine::ports::Observer;
use provost_engine::query::{self, RunArchive as _};
use provost_host::answer_box::AnswerBox;
use provost_host::clock;
use serde::Serialize;

use crate::answer::{Answer, Failure, Outcome};
use crate::approval_text;
use crate::person_signing::{self, SigningFlags};
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::session::{self, Session};
use crate::show::Reader;

/// How long a no is valid, in seconds.
pub(super) const NO_LASTS_SEC: u64 = 3600;

/// The fewest digits of a digest that name a question.
const FEWEST_DIGITS: usize = 8;

/// How long the driver may take to record an answer.
const TAKEN: Duration = Duration::from_secs(10);

/// What the user says.
pub(super) struct GivenAnswer<'a> {
    pub(super) allow: bool,
    pub(super) lasts_sec: u64,
    pub(super) reason: &'a str,
    pub(super) signing: &'a SigningFlags,
}

/// Answers the question `named` of the run `run_id`.
pub(super) fn give(run_id: &str, named: &str, given: &GivenAnswer<'_>, reader: Reader) -> Outcome {
    let place = Places::find()?;
    query::require_own(&place, run_id)?;
    let state = query::state(&place, run_id)?;
    let known = find(&state, named)?;
    let question = known.question.clone();
    let now = clock::now_millis();
    let lasts = i64::try_from(given.lasts_sec.saturating_mul(1000)).unwrap_or(i64::MAX);
    let mut answer = QuestionAnswer {
        digest: question.digest.clone(),
        allow: given.allow,
        how: AnswerMeans::Terminal,
        by: Some(session::person()?),
        until: time::render(now.saturating_add(lasts)),
        reason: given.reason.to_owned(),
        signature: None,
    };
    let needs = question.needs;
    (answer.how, answer.signature) =
        person_signing::give(given.signing, needs, &answer.statement())?;
    let mut observer = ProgressObserver::new(reader == Reader::Program);
    let recorded = carry(place, &state, &answer, &mut observer)?;
    Ok(given_text(run_id, &question, answer, recorded))
}

/// Carries `answer` to the driver of the run, or to its ledger if it has none; whether it is
/// recorded.
pub(super) fn carry(
    place: Places,
    state: &State,
    answer: &QuestionAnswer,
    observer: &mut dyn Observer,
) -> Result<bool, Failure> {
    let run_id = &state.names.run_id;
    let refuse = |refused: AnswerRefused| Failure::from(drive::refusal(run_id, &refused));
    state.may_answer(answer).map_err(refuse)?;
    if !place.is_driven(run_id) {
        let mut session = Session::open(place, run_id)?;
        session.answer_question(answer.clone(), observer)?;
        return Ok(true);
    }
    let known = state.questions.get(&answer.digest);
    if known.is_some_and(|known| known.question.is_over(clock::now_millis())) {
        return Err(refuse(AnswerRefused::Late));
    }
    hand_over(&place, run_id, answer)
}

/// The question of `state` that `named` is the digest of, or its first digits.
pub(super) fn find<'a>(state: &'a State, named: &str) -> Result<&'a QuestionState, Failure> {
    let run_id = &state.names.run_id;
    let nothing = |reason: String| {
        let hint = "provost status lists the questions that are open";
        Failure::new(Code::NothingToApprove, reason).hint(hint)
    };
    if named.len() < FEWEST_DIGITS {
        let reason = format!("`{named}` is too short for the digest of a question");
        return Err(nothing(reason));
    }
    let digest = named.to_ascii_lowercase();
    let mut found = state
        .questions
        .values()
        .filter(|it| it.question.digest.starts_with(&digest));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(nothing(format!("`{named}` names several questions"))),
        (None, _) => Err(nothing(format!(
            "{run_id} asks no question with the digest `{named}`"
        ))),
    }
}

/// Leaves `answer` for the driver of the run; whether it was recorded in time.
fn hand_over(place: &Places, run_id: &str, answer: &QuestionAnswer) -> Result<bool, Failure> {
    let answers = AnswerBox::of(&place.root, run_id, place.secret()?);
    if !answers.leave(answer)? {
        let reason = "an answer to that question is on its way already";
        return Err(Failure::new(Code::NothingToApprove, reason)
            .hint(format!("provost log {run_id} says what was answered")));
    }
    let until = Instant::now() + TAKEN;
    while Instant::now() < until {
        thread::sleep(Duration::from_millis(50));
        let state = query::state(place, run_id)?;
        let known = state.questions.get(&answer.digest);
        match known.map(|known| &known.standing) {
            Some(QuestionStanding::Answered(recorded)) if recorded == answer => return Ok(true),
            Some(QuestionStanding::Open) => {}
            Some(QuestionStanding::Expired { reason }) if !reason.is_empty() => {
                let reason = format!("the yes does not count: {reason}");
                return Err(Failure::new(Code::NothingToApprove, reason));
            }
            _ => {
                let reason = AnswerRefused::Late.to_string();
                return Err(Failure::new(Code::NothingToApprove, reason));
            }
        }
    }
    Ok(false)
}

fn given_text(
    run_id: &str,
    question: &AgentQuestion,
    answer: QuestionAnswer,
    recorded: bool,
) -> Answer {
    let word = if answer.allow { "yes" } else { "no" };
    let asked = approval_text::asked(question);
    let mut text = format!("{word}: {asked}\nuntil {}\n", answer.until);
    if !recorded {
        text += "the driver of the run has not read the answer yet\n";
    }
    let facts = AnsweredQuestion {
        run_id,
        question,
        answer,
        recorded,
    };
    Answer::data(facts, text)
}

#[derive(Serialize)]
struct AnsweredQuestion<'a> {
    run_id: &'a str,
    question: &'a AgentQuestion,
    answer: QuestionAnswer,
    recorded: bool,
}
