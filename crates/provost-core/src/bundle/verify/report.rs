//! The result of verification, and what follows from it.

use serde::Serialize;
use serde_json::json;

use super::after::After;
use super::read::Bundle;
use crate::bundle::key::PublicKey;
use crate::bundle::statement::SealedVerdict;
use crate::code::Code;
use crate::exit::Exit;
use crate::object::Oid;
use crate::verdict::Verdict;

/// One of the three questions of verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Whether a byte differs.
    Intact,
    /// Whether something is missing, or exists and was not sealed.
    Complete,
    /// Whether a trusted key signed it.
    Authentic,
}

/// A problem that verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The question that it answers with no.
    pub question: Question,
    /// The place: a file of the bundle, with the field or line where there is one.
    pub path: String,
    pub problem: String,
}

impl Finding {
    /// The content at `path` differs from what was sealed, or contradicts it.
    pub fn altered(path: impl ToString, problem: impl Into<String>) -> Self {
        Self::new(Question::Intact, path, problem)
    }

    /// A file is missing at `path`, or exists and was not sealed.
    pub fn incomplete(path: impl ToString, problem: impl Into<String>) -> Self {
        Self::new(Question::Complete, path, problem)
    }

    /// `path` is not signed by a trusted key.
    pub fn unsigned(path: impl ToString, problem: impl Into<String>) -> Self {
        Self::new(Question::Authentic, path, problem)
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers pass what they have")]
    fn new(question: Question, path: impl ToString, problem: impl Into<String>) -> Self {
        Self {
            question,
            path: path.to_string(),
            problem: problem.into(),
        }
    }
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Yes,
    No,
    /// The existing files do not show it.
    Open,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signer {
    /// The required key, or a trusted one if none is required.
    Trusted(PublicKey),
    /// A trusted key, but not the required one.
    Another(PublicKey),
    /// An unknown key, so nothing it signed was checked.
    Unknown(String),
    /// No valid signature.
    Unsigned,
}

/// The result of verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The run, if the bundle names it.
    pub run_id: Option<String>,
    pub state: State,
    pub intact: Answer,
    pub complete: Answer,
    /// Whether a trusted key signed it.
    pub authentic: Answer,
    pub signer: Signer,
    /// Whether the caller required one key.
    pub key_was_asked_for: bool,
    /// The sealed decision of the gates; only as trustworthy as the three answers.
    pub sealed_verdict: Option<SealedVerdict>,
    /// The tree that would land.
    pub tree: Option<Oid>,
    /// What followed the seal; only as trustworthy as the three answers.
    pub after: After,
    /// The bundle format, if this program is too old for it, so that decisions were not repeated.
    pub newer_format: Option<u64>,
    /// Every problem, ordered by question and place.
    pub findings: Vec<Finding>,
}

impl Report {
    pub(super) fn of(
        bundle: &Bundle<'_>,
        state: State,
        after: After,
        mut findings: Vec<Finding>,
    ) -> Self {
        findings.sort_by(|a, b| (a.question, &a.path).cmp(&(b.question, &b.path)));
        findings.dedup();
        let fails = |question| findings.iter().any(|finding| finding.question == question);
        let unless = |question, otherwise| {
            if fails(question) {
                Answer::No
            } else {
                otherwise
            }
        };
        let anchored = match (state, &bundle.signer, &bundle.statement) {
            (State::Running, ..) | (_, Signer::Trusted(_) | Signer::Another(_), Some(_)) => {
                Answer::Yes
            }
            // A statement with an unchecked signature may itself have been changed, and without one
            // the files can only be compared with each other.
            (_, Signer::Unknown(_) | Signer::Unsigned, _) | (_, _, None) => Answer::Open,
        };
        let ended = match state {
            _ if bundle.course.newer.is_some() => Answer::Open,
            State::Running => Answer::Open,
            State::Sealed => Answer::Yes,
            State::Unsealed | State::TailMissing => Answer::No,
        };
        let signed = match (state, &bundle.signer) {
            (State::Running, _) => Answer::Open,
            (_, Signer::Trusted(_)) => Answer::Yes,
            (_, Signer::Another(_) | Signer::Unknown(_) | Signer::Unsigned) => Answer::No,
        };
        Self {
            run_id: bundle.run_id(),
            state,
            intact: unless(Question::Intact, anchored),
            complete: unless(Question::Complete, ended),
            authentic: unless(Question::Authentic, signed),
            signer: bundle.signer.clone(),
            key_was_asked_for: bundle.want_key.is_some(),
            sealed_verdict: bundle.predicate().map(|predicate| predicate.verdict),
            tree: bundle
                .predicate()
                .and_then(|predicate| predicate.candidate_tree.clone()),
            after,
            newer_format: bundle.course.newer,
            findings,
        }
    }

    /// The deciding code, worst first.
    fn code(&self) -> Code {
        if self.intact == Answer::No {
            Code::EvidenceAltered
        } else if self.complete == Answer::No && self.has(Question::Complete) {
            Code::EvidenceIncomplete
        } else if self.newer_format.is_some() {
            Code::UnknownSchemaVersion
        } else if self.state == State::Running {
            Code::RunUnfinished
        } else {
            match self.signer {
                Signer::Unsigned => Code::SignatureInvalid,
                Signer::Another(_) | Signer::Unknown(_) => Code::KeyUnknown,
                Signer::Trusted(_) => {
                    let holds = [self.intact, self.complete, self.authentic];
                    if holds.iter().all(|answer| *answer == Answer::Yes) {
                        Code::Ok
                    } else if self.authentic == Answer::Yes {
                        Code::EvidenceIncomplete
                    } else {
                        Code::SignatureInvalid
                    }
                }
            }
        }
    }

    fn has(&self, question: Question) -> bool {
        self.findings.iter().any(|one| one.question == question)
    }

    /// The report as a verdict: an allow only if all three answers are yes.
    pub fn verdict(&self) -> Verdict {
        let words = Words {
            whole: "the bundle is intact, complete and authentic",
            unfinished: "the run has not ended yet",
        };
        let verdict = match (self.code(), self.newer()) {
            (code @ Code::UnknownSchemaVersion, Some(reason)) => Verdict::deny(code, reason),
            (code, _) => words.verdict(code, &self.findings),
        };
        verdict.with(self.facts())
    }

    /// The words for a format that this program is too old for.
    pub fn newer(&self) -> Option<String> {
        let format = self.newer_format?;
        Some(format!("bundle format {format} is newer than this program"))
    }

    /// The exit status of a command that answers with this report.
    ///
    /// An unknown key is an answer; another key than the required one is a forgery.
    pub fn exit(&self) -> Exit {
        match self.code() {
            Code::KeyUnknown if self.key_was_asked_for => Exit::Untrusted,
            code => code.exit(),
        }
    }

    fn facts(&self) -> serde_json::Value {
        let (signer, key) = self.signer.word_and_key();
        json!({
            "run_id": self.run_id,
            "state": self.state,
            "intact": self.intact,
            "complete": self.complete,
            "authentic": self.authentic,
            "signer": signer,
            "keyid": key,
            "sealed_verdict": self.sealed_verdict,
            "tree": self.tree,
            "after": self.after,
            "findings": self.findings,
        })
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

impl Signer {
    /// The machine-readable word for the signer, and the key id if there is one.
    pub fn word_and_key(&self) -> (&'static str, Option<String>) {
        match self {
            Self::Trusted(key) => ("trusted", Some(key.id())),
            Self::Another(key) => ("another", Some(key.id())),
            Self::Unknown(id) => ("unknown", Some(id.clone())),
            Self::Unsigned => ("nobody", None),
        }
    }
}
