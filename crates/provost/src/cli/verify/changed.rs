//! The answer about the evidence of a controlled change.

use provost_change::evidence::ChangeReport;
use provost_core::bundle::key::NamedKey;
use provost_core::code::Code;
use provost_engine::bundle::verify::{ProofAnswer, Question, Signer};

use super::{line, rows, signed, verdict_words};
use crate::answer::Answer;
use crate::show::one_line;

pub(super) fn answer(report: &ChangeReport, names: &[&NamedKey]) -> Answer {
    Answer {
        exit: report.exit(),
        json: serde_json::to_value(report.verdict()).unwrap_or_default(),
        text: render(report, names),
    }
}

fn render(report: &ChangeReport, names: &[&NamedKey]) -> String {
    let mut text = line("intact", report.proof.intact, intact(report));
    text += &rows(&report.proof.findings, Question::Intact);
    text += &line("complete", report.proof.complete, complete(report));
    text += &rows(&report.proof.findings, Question::Complete);
    text += &line(
        "authentic",
        report.proof.authentic,
        &signed(&report.proof.signer, names),
    );
    text += &rows(&report.proof.findings, Question::Authentic);
    if report.holds()
        && let Some(intent_id) = &report.intent_id
    {
        let status = report.status.as_deref().unwrap_or("never finished");
        let status = status.replace('_', " ");
        text += &format!("change {}: {}\n", one_line(intent_id), one_line(&status));
    }
    let code = report.code();
    let words = match code {
        Code::Ok => return text,
        Code::RunUnfinished => "the change is not over yet",
        other => verdict_words(other),
    };
    text + &format!("error[{code}]: {words}\nhint: provost explain {code}\n")
}

fn intact(report: &ChangeReport) -> &'static str {
    match report.proof.intact {
        ProofAnswer::Yes => "no byte differs from what was sealed",
        ProofAnswer::No => "something differs from what was sealed",
        ProofAnswer::Open if matches!(report.proof.signer, Signer::Unknown(_)) => {
            "every file fits a statement whose signature cannot be checked here"
        }
        ProofAnswer::Open => "there is no seal to hold the files against",
    }
}

fn complete(report: &ChangeReport) -> &'static str {
    match report.proof.complete {
        ProofAnswer::Yes => "the change is over and nothing is missing",
        ProofAnswer::No => "files or records are missing or were added",
        ProofAnswer::Open => "the change is not over yet",
    }
}
