//! The result of verifying the evidence of a change.

use serde_json::json;

use provost_core::bundle::key::PublicKey;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::verdict::Verdict;
use provost_engine::bundle::verify::{Finding, ProofAnswer, Signer, ThreeAnswers, Words};

/// The result of verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeReport {
    /// The intent, if the evidence names it.
    pub intent_id: Option<String>,
    /// Result of the last `finish`; only as trustworthy as the three answers.
    pub status: Option<String>,
    /// Whether the change has ended; only as trustworthy as the three answers.
    pub ended: bool,
    pub intact: ProofAnswer,
    pub complete: ProofAnswer,
    /// Whether a trusted key signed it.
    pub authentic: ProofAnswer,
    pub signer: Signer,
    /// Whether the caller required one key.
    pub key_was_asked_for: bool,
    /// Every problem, ordered by question and place.
    pub findings: Vec<Finding>,
}

/// What the evidence says about itself.
pub(super) struct Said {
    pub(super) intent_id: Option<String>,
    pub(super) status: Option<String>,
    pub(super) ended: bool,
    /// Whether there is a statement to compare files with.
    pub(super) stated: bool,
}

impl ChangeReport {
    pub(super) fn of(
        said: Said,
        signer: Signer,
        want_key: Option<&PublicKey>,
        findings: Vec<Finding>,
    ) -> Self {
        let anchored = match (&signer, said.stated) {
            (Signer::Trusted(_) | Signer::Another(_), true) => ProofAnswer::Yes,
            (Signer::Unknown(_) | Signer::Unsigned, _) | (_, false) => ProofAnswer::Open,
        };
        let ended = if said.ended {
            ProofAnswer::Yes
        } else {
            ProofAnswer::Open
        };
        let vouched = match &signer {
            Signer::Trusted(_) => ProofAnswer::Yes,
            Signer::Another(_) | Signer::Unknown(_) | Signer::Unsigned => ProofAnswer::No,
        };
        let otherwise = ThreeAnswers {
            intact: anchored,
            complete: ended,
            authentic: vouched,
        };
        let (answers, findings) = otherwise.unless_found(findings);
        Self {
            intact: answers.intact,
            complete: answers.complete,
            authentic: answers.authentic,
            intent_id: said.intent_id,
            status: said.status,
            ended: said.ended,
            signer,
            key_was_asked_for: want_key.is_some(),
            findings,
        }
    }

    /// The deciding code, worst first. A change is signed from its first record on, so a missing
    /// signature weighs more than a change that is still active.
    pub fn code(&self) -> Code {
        if self.intact == ProofAnswer::No {
            return Code::EvidenceAltered;
        }
        if self.complete == ProofAnswer::No {
            return Code::EvidenceIncomplete;
        }
        match (&self.signer, self.authentic) {
            (Signer::Unsigned, _) | (Signer::Trusted(_), ProofAnswer::No | ProofAnswer::Open) => {
                Code::SignatureInvalid
            }
            (Signer::Another(_) | Signer::Unknown(_), _) => Code::KeyUnknown,
            (Signer::Trusted(_), ProofAnswer::Yes) if self.intact != ProofAnswer::Yes => {
                Code::SignatureInvalid
            }
            (Signer::Trusted(_), ProofAnswer::Yes) if !self.ended => Code::RunUnfinished,
            (Signer::Trusted(_), ProofAnswer::Yes) => Code::Ok,
        }
    }

    /// Whether all existing evidence can be trusted, whether the change has ended or not.
    pub fn holds(&self) -> bool {
        matches!(self.code(), Code::Ok | Code::RunUnfinished)
    }

    /// The report as a verdict: an allow only if all three answers are yes.
    pub fn verdict(&self) -> Verdict {
        let words = Words {
            whole: "the evidence is intact, complete and authentic",
            unfinished: "the change is not over yet",
        };
        words
            .verdict(self.code(), &self.findings)
            .with(self.facts())
    }

    /// The exit status of a command that answers with this report; the same as for runs.
    pub fn exit(&self) -> Exit {
        match self.code() {
            Code::KeyUnknown if self.key_was_asked_for => Exit::Untrusted,
            code => code.exit(),
        }
    }

    fn facts(&self) -> serde_json::Value {
        let (signer, key) = self.signer.word_and_key();
        json!({
            "intent_id": self.intent_id,
            "status": self.status,
            "ended": self.ended,
            "intact": self.intact,
            "complete": self.complete,
            "authentic": self.authentic,
            "signer": signer,
            "keyid": key,
            "findings": self.findings,
        })
    }
}
