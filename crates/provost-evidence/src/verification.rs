//! The three questions about a sealed directory, whatever was sealed: is it intact, complete and
//! authentic?
//!
//! Every verifier collects [`Finding`]s, opens the signed file with [`open`], and gets its
//! [`Proof`] from what it found. Whether decisions follow from the evidence is judged by the
//! crates that know the rules, as [`Rejudged`]; what they find are findings as well.

use serde::{Serialize, Serializer};

use crate::dsse::{Envelope, OpenError};
use crate::key::PublicKey;
use crate::record::Record;
use crate::statement::LedgerHead;
use crate::wording::counted;

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

/// The answer to one of the questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofAnswer {
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

/// The answers to all questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreeAnswers {
    pub intact: ProofAnswer,
    pub complete: ProofAnswer,
    pub authentic: ProofAnswer,
}

/// A kind of sealed directory whose decisions can be made again from its evidence.
pub trait Rejudged {
    /// Where a decision or a document does not follow from the evidence.
    fn rejudge(&self) -> Vec<Finding>;
}

/// The answers about one sealed directory, and what they follow from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    pub intact: ProofAnswer,
    pub complete: ProofAnswer,
    /// Whether a trusted key signed it.
    pub authentic: ProofAnswer,
    #[serde(flatten)]
    pub signer: Signer,
    /// Whether the caller required one key.
    #[serde(skip)]
    pub key_was_asked_for: bool,
    /// Every problem, ordered by question and place.
    pub findings: Vec<Finding>,
}

impl Proof {
    /// The answers of `otherwise`, with a no to every question that `findings` are about. The
    /// findings are ordered by question and place, each of them once.
    pub fn of(
        otherwise: ThreeAnswers,
        signer: Signer,
        want_key: Option<&PublicKey>,
        mut findings: Vec<Finding>,
    ) -> Self {
        findings.sort_by(|a, b| (a.question, &a.path).cmp(&(b.question, &b.path)));
        findings.dedup();
        let unless = |question: Question, otherwise: ProofAnswer| {
            let fails = findings.iter().any(|one| one.question == question);
            if fails { ProofAnswer::No } else { otherwise }
        };
        Self {
            intact: unless(Question::Intact, otherwise.intact),
            complete: unless(Question::Complete, otherwise.complete),
            authentic: unless(Question::Authentic, otherwise.authentic),
            signer,
            key_was_asked_for: want_key.is_some(),
            findings,
        }
    }
}

impl Serialize for Signer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (signer, keyid) = self.word_and_key();
        SignerFields { signer, keyid }.serialize(serializer)
    }
}

#[derive(Serialize)]
struct SignerFields {
    signer: &'static str,
    keyid: Option<String>,
}

impl Signer {
    /// Whether it vouches for the evidence.
    pub fn vouches(&self) -> ProofAnswer {
        match self {
            Self::Trusted(_) => ProofAnswer::Yes,
            Self::Another(_) | Self::Unknown(_) | Self::Unsigned => ProofAnswer::No,
        }
    }

    /// Whether the files can be compared with a statement: one with an unchecked signature may
    /// itself have been changed, and without one the files can only be compared with each other.
    pub fn anchors(&self, is_stated: bool) -> ProofAnswer {
        match (self, is_stated) {
            (Self::Trusted(_) | Self::Another(_), true) => ProofAnswer::Yes,
            (Self::Unknown(_) | Self::Unsigned, _) | (_, false) => ProofAnswer::Open,
        }
    }

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

/// A signed file, opened.
#[derive(Debug)]
pub struct OpenedSeal {
    pub signer: Signer,
    /// The signed bytes, unless a signature is wrong. With an unknown key they are only a claim.
    pub payload: Option<Vec<u8>>,
    pub findings: Vec<Finding>,
}

/// Opens the envelope `bytes` of the file `name`, which must have the canonical spelling, so that a
/// change of any byte is detected. The keys are those of [`examine`].
pub fn open(
    name: &str,
    bytes: &[u8],
    trusted: &[PublicKey],
    want_key: Option<&PublicKey>,
) -> OpenedSeal {
    let envelope = match Envelope::parse(bytes) {
        Ok(envelope) => envelope,
        Err(error) => {
            return OpenedSeal {
                signer: Signer::Unsigned,
                payload: None,
                findings: vec![Finding::unsigned(name, words(&error))],
            };
        }
    };
    let mut opened = examine(name, &envelope, trusted, want_key);
    if envelope.render().as_bytes() != bytes {
        let finding = Finding::altered(name, "is not in canonical form");
        opened.findings.push(finding);
    }
    opened
}

/// Opens `envelope` with the caller's keys, of which only `want_key` is accepted if it is given.
pub fn examine(
    name: &str,
    envelope: &Envelope,
    trusted: &[PublicKey],
    want_key: Option<&PublicKey>,
) -> OpenedSeal {
    let keys: Vec<PublicKey> = want_key.into_iter().chain(trusted).copied().collect();
    let refused = |signer, payload, problem: String| OpenedSeal {
        signer,
        payload,
        findings: vec![Finding::unsigned(name, problem)],
    };
    match envelope.open(&keys) {
        Ok(opened) if want_key.is_some_and(|key| *key != opened.key) => {
            let problem = format!(
                "is signed by another key than the one asked for: {}",
                opened.key
            );
            refused(Signer::Another(opened.key), Some(opened.payload), problem)
        }
        Ok(opened) => {
            let misnamed = || Finding::altered(name, "names another key than the one that signed");
            OpenedSeal {
                findings: (!opened.hint_fits).then(misnamed).into_iter().collect(),
                signer: Signer::Trusted(opened.key),
                payload: Some(opened.payload),
            }
        }
        Err(OpenError::UnknownKey { keyid }) => {
            let problem = format!("is signed by a key that is not trusted here: {keyid}");
            let payload = envelope.unverified_payload().ok();
            refused(Signer::Unknown(keyid), payload, problem)
        }
        Err(error) => refused(Signer::Unsigned, None, words(&error)),
    }
}

/// Whether the records of the chain `name` reach `known` and have its hash there.
pub fn compare(name: &str, records: &[Record], known: &LedgerHead, who: &str) -> Vec<Finding> {
    let at = usize::try_from(known.seq)
        .ok()
        .and_then(|at| records.get(at));
    match at {
        Some(record) if record.hash == known.hash => Vec::new(),
        Some(_) => {
            let place = format!("{name} record {}", known.seq);
            vec![Finding::altered(place, format!("is not the record {who}"))]
        }
        None => {
            let count = counted(records.len(), "record");
            let problem = format!(
                "its tail is missing: it has {count}, {who} record {}",
                known.seq
            );
            vec![Finding::incomplete(name, problem)]
        }
    }
}

/// The message of an error, with its causes.
pub fn words(error: &impl std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
