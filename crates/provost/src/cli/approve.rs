//! `provost approve` and `provost reject`: record a person's answer to the question of a run.

use std::time::Duration;

use clap::Args;
use provost_core::approval::{Approval, LONGEST_SEC, Question};
use provost_core::exit::Exit;
use provost_core::question::AnswerMeans;
use provost_engine::drive::Draft;
use provost_engine::query::{self, QuestionView, Stage};
use serde::Serialize;

use super::agent_answer::{self, GivenAnswer, NO_LASTS_SEC};
use super::case;
use super::duration::seconds;
use super::net::Again;
use super::resume;
use crate::answer::{Answer, Failure, Outcome};
use crate::person_signing::{self, SigningFlags};
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::session::{self, Session};
use crate::show::Reader;
use crate::{approval_text, report};

/// Approve a run that asks for more than the policy permits by itself.
#[derive(Args)]
#[command(after_help = "\
`provost show RUN` shows what the run asks for. The approval is recorded with your name and is bound
to exactly that question by its digest. It expires after the time that --for gives.

With DIGEST it answers a question of the agent that works: `provost status` lists them. The
yes counts for the same question of this run until it expires.

Where the policy or your own settings say `[approve] needs = \"person-key\"`, it signs with your
person key (`provost key new --person`).

Examples:
  provost approve last --go
  provost approve RUN --for 8h
  provost approve RUN 5be1f2a0c3d4

`provost explain approvals` lists what needs an approval.")]
pub(super) struct Approve {
    /// The run: its id, a part of it, or `last`.
    run: String,

    /// The digest of a question of the agent, or its first digits.
    #[arg(value_name = "DIGEST")]
    question: Option<String>,

    /// How long the approval is valid for the start of the work: 90s, 20m, 2h, up to 7d.
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = lasting)]
    lasts: u64,

    /// Why, recorded in the evidence.
    #[arg(long, value_name = "WHY", default_value = "")]
    reason: String,

    /// Resume the run at once.
    #[arg(long, conflicts_with = "question")]
    go: bool,

    /// The digest of the question that you have seen; any other question is not approved.
    #[arg(long, value_name = "SHA256", conflicts_with = "question")]
    digest: Option<String>,

    #[command(flatten)]
    signing: SigningFlags,

    #[command(flatten)]
    again: Again,
}

/// Reject a run that asks for more than it should get.
#[derive(Args)]
#[command(after_help = "\
No work of the run has begun; the run is sealed with your answer. With DIGEST it says no to a
question of the agent, which continues without what it asked for.

Examples:
  provost reject last --reason 'the lock file is not part of this task'
  provost reject RUN 5be1f2a0c3d4")]
pub(super) struct Reject {
    /// The run: its id, a part of it, or `last`.
    run: String,

    /// The digest of a question of the agent, or its first digits.
    #[arg(value_name = "DIGEST")]
    question: Option<String>,

    /// The reason, recorded in the evidence.
    #[arg(long, value_name = "WHY", default_value = "")]
    reason: String,

    /// The digest of the question that you have seen; any other question is not answered.
    #[arg(long, value_name = "SHA256", conflicts_with = "question")]
    digest: Option<String>,
}

/// Records the approval, and resumes the run if `--go` asks for it.
pub(super) fn approve(approve: &Approve, reader: Reader) -> Outcome {
    let place = Places::find()?;
    if let Some(id) = place.find_case(&approve.run)? {
        let reply = case::Reply {
            approved: true,
            digest: approve.digest.as_deref(),
            reason: &approve.reason,
            lasts_sec: approve.lasts,
            signing: &approve.signing,
            go: approve.go,
            send: &approve.again.send,
        };
        return case::reply(&id, &reply, reader);
    }
    let run_id = place.find_run(&approve.run)?;
    if let Some(question) = &approve.question {
        let given = GivenAnswer {
            allow: true,
            lasts_sec: approve.lasts,
            reason: &approve.reason,
            signing: &approve.signing,
        };
        return agent_answer::give(&run_id, question, &given, reader);
    }
    let mut observer = ProgressObserver::new(reader == Reader::Program);
    let go = resume::Go::On("resume", &approve.again.send);
    if approve.go && is_approved(&place, &run_id, approve.digest.as_deref()) {
        return resume::take_over(&run_id, &go, reader);
    }
    let mut session = Session::open(place, &run_id)?;
    let draft = Draft {
        by: session::person()?,
        seen: approve.digest.as_deref(),
        lasts: Duration::from_secs(approve.lasts),
        how: AnswerMeans::Terminal,
        reason: &approve.reason,
    };
    let mut sign = |needs, approval: &mut Approval| {
        let given = person_signing::give(&approve.signing, needs, &approval.statement());
        (approval.how, approval.signature) = given.map_err(Failure::into_port_error)?;
        Ok(())
    };
    let state = session.approve(draft, &mut sign, &mut observer)?;
    drop(session);
    let approval = state.approval.as_ref();
    let mut text = QuestionView::of(&state)
        .as_ref()
        .map(approval_text::question)
        .unwrap_or_default();
    if let Some(Approval { by, until, .. }) = approval {
        let signed = approval_text::signed(approval);
        text += &format!("approved by {by}{signed}, until {until}\n");
    }
    if approve.go {
        observer.line(text.trim_end());
        return resume::take_over(&run_id, &go, reader);
    }
    text += &format!("next: provost resume {run_id}\n");
    let facts = ApprovedRun {
        run_id: &run_id,
        approved: approval,
        question: state.question(),
    };
    Ok(Answer::data(facts, text))
}

#[derive(Serialize)]
struct ApprovedRun<'a> {
    run_id: &'a str,
    approved: Option<&'a Approval>,
    question: Option<Question<'a>>,
}

/// Whether the run has an approval of what was `seen`, is the user's own, and has not ended.
fn is_approved(place: &Places, run_id: &str, seen: Option<&str>) -> bool {
    let open = query::stage(place, run_id) == Stage::Interrupted && query::is_own(place, run_id);
    let state = query::state(place, run_id).ok().filter(|_| open);
    let approval = state.and_then(|state| state.approval);
    approval.is_some_and(|it| seen.is_none_or(|seen| seen == it.digest))
}

/// Records the rejection, which ends the run.
pub(super) fn reject(reject: &Reject, reader: Reader) -> Outcome {
    let place = Places::find()?;
    if let Some(id) = place.find_case(&reject.run)? {
        let reply = case::Reply {
            approved: false,
            digest: reject.digest.as_deref(),
            reason: &reject.reason,
            lasts_sec: NO_LASTS_SEC,
            signing: &SigningFlags::default(),
            go: false,
            send: &[],
        };
        return case::reply(&id, &reply, reader);
    }
    let run_id = place.find_run(&reject.run)?;
    if let Some(question) = &reject.question {
        let given = GivenAnswer {
            allow: false,
            lasts_sec: NO_LASTS_SEC,
            reason: &reject.reason,
            signing: &SigningFlags::default(),
        };
        return agent_answer::give(&run_id, question, &given, reader);
    }
    let bundle = place.run(&run_id);
    let mut observer = ProgressObserver::new(reader == Reader::Program);
    let session = Session::open(place, &run_id)?;
    let seen = reject.digest.as_deref();
    let by = (session::person()?, AnswerMeans::Terminal);
    let state = session.reject(by, seen, &reject.reason, &mut observer)?;
    let mut answer = report::driven(&state, &bundle);
    // The verdict of the run is a refusal, as the user asked.
    answer.exit = Exit::Yes;
    Ok(answer)
}

fn lasting(text: &str) -> Result<u64, String> {
    match seconds(text)? {
        long if long > LONGEST_SEC => Err("an approval is good for 7 days at most".to_owned()),
        fine => Ok(fine),
    }
}
