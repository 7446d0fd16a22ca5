//! The result of verification, and what follows from it.

use provost_evidence::verification::{
    Finding, Proof, ProofAnswer, Question, Rejudged, Signer, ThreeAnswers,
};
use serde::Serialize;

use super::after::After;
use super::read::Bundle;
use crate::bundle::granted::PersonGrant;
use crate::bundle::statement::SealedVerdict;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::object::Oid;
use provost_core::verdict::Verdict;

/// How far a run came, as its bundle shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its ledger has no final record yet, and there is no seal.
    Running,
    /// It ended and was sealed.
    Sealed,
    /// It ended and its seal is missing.
    Unsealed,
    /// The end of its ledger is missing.
    TailMissing,
}

/// The result of verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The run, if the bundle names it.
    pub run_id: Option<String>,
    pub state: State,
    #[serde(flatten)]
    pub proof: Proof,
    /// The sealed decision of the gates; only as trustworthy as the three answers.
    pub sealed_verdict: Option<SealedVerdict>,
    /// The tree that would land.
    pub tree: Option<Oid>,
    /// What persons gave the agents beyond the contract.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<PersonGrant>,
    /// What followed the seal; only as trustworthy as the three answers.
    pub after: After,
    /// The bundle format, if this program is too old for it, so that decisions were not repeated.
    #[serde(skip)]
    pub newer_format: Option<u64>,
}

impl Report {
    pub(super) fn of(
        bundle: &Bundle<'_>,
        state: State,
        after: After,
        mut findings: Vec<Finding>,
    ) -> Self {
        let ended = match state {
            _ if bundle.course.newer.is_some() => ProofAnswer::Open,
            State::Running => ProofAnswer::Open,
            State::Sealed => ProofAnswer::Yes,
            State::Unsealed | State::TailMissing => ProofAnswer::No,
        };
        let (intact, authentic) = match state {
            State::Running => (ProofAnswer::Yes, ProofAnswer::Open),
            State::Sealed | State::Unsealed | State::TailMissing => (
                bundle.signer.anchors(bundle.statement.is_some()),
                bundle.signer.vouches(),
            ),
        };
        let otherwise = ThreeAnswers {
            intact,
            complete: ended,
            authentic,
        };
        findings.extend(bundle.rejudge());
        Self {
            run_id: bundle.run_id(),
            state,
            proof: Proof::of(otherwise, bundle.signer.clone(), bundle.want_key, findings),
            sealed_verdict: bundle.predicate().map(|predicate| predicate.verdict),
            tree: bundle
                .predicate()
                .and_then(|predicate| predicate.candidate_tree.clone()),
            granted: bundle
                .predicate()
                .map_or_else(Vec::new, |predicate| predicate.granted.clone()),
            after,
            newer_format: bundle.course.newer,
        }
    }

    /// The deciding code, worst first.
    fn code(&self) -> Code {
        if self.proof.intact == ProofAnswer::No {
            Code::EvidenceAltered
        } else if self.proof.complete == ProofAnswer::No && self.has(Question::Complete) {
            Code::EvidenceIncomplete
        } else if self.newer_format.is_some() {
            Code::UnknownSchemaVersion
        } else if self.state == State::Running {
            Code::RunUnfinished
        } else {
            match self.proof.signer {
                Signer::Unsigned => Code::SignatureInvalid,
                Signer::Another(_) | Signer::Unknown(_) => Code::KeyUnknown,
                Signer::Trusted(_) => {
                    let holds = [self.proof.intact, self.proof.complete, self.proof.authentic];
                    if holds.iter().all(|answer| *answer == ProofAnswer::Yes) {
                        Code::Ok
                    } else if self.proof.authentic == ProofAnswer::Yes {
                        Code::EvidenceIncomplete
                    } else {
                        Code::SignatureInvalid
                    }
                }
            }
        }
    }

    fn has(&self, question: Question) -> bool {
        self.proof
            .findings
            .iter()
            .any(|one| one.question == question)
    }

    /// The report as a verdict: an allow only if all three answers are yes.
    pub fn verdict(&self) -> Verdict {
        let words = Words {
            whole: "the bundle is intact, complete and authentic",
            unfinished: "the run has not ended yet",
        };
        let verdict = match (self.code(), self.newer()) {
            (code @ Code::UnknownSchemaVersion, Some(reason)) => Verdict::deny(code, reason),
            (code, _) => words.verdict(code, &self.proof.findings),
        };
        verdict.with(self)
    }

    /// The words for a format that this program is too old for.
    pub fn newer(&self) -> Option<String> {
        let format = self.newer_format?;
        Some(format!("bundle format {format} is newer than this program"))
    }

    /// The exit status of a command that answers with this report.
    pub fn exit(&self) -> Exit {
        exit(self.code(), &self.proof)
    }
}

/// The exit status for `code` and what it follows from.
///
/// An unknown key is an answer; another key than the required one is a forgery.
pub fn exit(code: Code, proof: &Proof) -> Exit {
    match code {
        Code::KeyUnknown if proof.key_was_asked_for => Exit::Untrusted,
        code => code.exit(),
    }
}

/// Messages for one kind of evidence.
pub struct Words {
    /// If all three answers are yes.
    pub whole: &'static str,
    /// If the run or change is still active.
    pub unfinished: &'static str,
}

impl Words {
    /// The verdict for `code` and the first of `findings`: an allow only for `OK`.
    pub fn verdict(&self, code: Code, findings: &[Finding]) -> Verdict {
        let because = |words: &str| match findings.first() {
            Some(finding) => format!("{words}: {} {}", finding.path, finding.problem),
            None => words.to_owned(),
        };
        match code {
            Code::Ok => Verdict::allow(self.whole),
            Code::EvidenceAltered => Verdict::deny(code, because("the evidence was altered")),
            Code::EvidenceIncomplete => Verdict::deny(code, because("the evidence is incomplete")),
            Code::RunUnfinished => Verdict::deny(code, self.unfinished),
            _ => Verdict::deny(code, because("the signature cannot be relied on")),
        }
    }
}
