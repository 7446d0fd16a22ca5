//! The result of verifying the evidence of a change.

use serde::Serialize;

use provost_core::bundle::key::PublicKey;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::verdict::Verdict;
use provost_engine::bundle::verify::{
    Finding, Proof, ProofAnswer, Signer, ThreeAnswers, Words, exit,
};

/// The result of verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangeReport {
    /// The intent, if the evidence names it.
    pub intent_id: Option<String>,
    /// Result of the last `finish`; only as trustworthy as the three answers.
    pub status: Option<String>,
    /// Whether the change has ended; only as trustworthy as the three answers.
    pub ended: bool,
    #[serde(flatten)]
    pub proof: Proof,
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
        let otherwise = ThreeAnswers {
            intact: signer.anchors(said.stated),
            complete: if said.ended {
                ProofAnswer::Yes
            } else {
                ProofAnswer::Open
            },
            authentic: signer.vouches(),
        };
        Self {
            proof: Proof::of(otherwise, signer, want_key, findings),
            intent_id: said.intent_id,
            status: said.status,
            ended: said.ended,
        }
    }

    /// The deciding code, worst first. A change is signed from its first record on, so a missing
    /// signature weighs more than a change that is still active.
    pub fn code(&self) -> Code {
        if self.proof.intact == ProofAnswer::No {
            return Code::EvidenceAltered;
        }
        if self.proof.complete == ProofAnswer::No {
            return Code::EvidenceIncomplete;
        }
        match (&self.proof.signer, self.proof.authentic) {
            (Signer::Unsigned, _) | (Signer::Trusted(_), ProofAnswer::No | ProofAnswer::Open) => {
                Code::SignatureInvalid
            }
            (Signer::Another(_) | Signer::Unknown(_), _) => Code::KeyUnknown,
            (Signer::Trusted(_), ProofAnswer::Yes) if self.proof.intact != ProofAnswer::Yes => {
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
        let verdict = words.verdict(self.code(), &self.proof.findings);
        verdict.with(serde_json::to_value(self).unwrap_or_default())
    }

    /// The exit status of a command that answers with this report; the same as for runs.
    pub fn exit(&self) -> Exit {
        exit(self.code(), &self.proof)
    }
}
