//! Verifies a bundle from its bytes alone, and gives three answers.
//!
//! *Intact*: no byte differs from what was sealed, and the documents agree with each other.
//! *Complete*: nothing that must be there is missing, and nothing is there that was not sealed.
//! *Authentic*: signed by a key the reader trusts.
//!
//! Records after the seal are checked as well. They count as far as a statement vouches for them.
//!
//! # Invariants
//!
//! - Every file is read once, so the bytes that were hashed are the bytes that were judged.
//! - A check whose input is missing reports nothing, because the missing input is itself a finding.
//! - For any bytes the answer is a report: no check panics, recurses with the input, or uses more
//!   memory than a small multiple of it.

mod after;
mod agree;
mod bytes;
mod ledger;
pub(super) mod presence;
mod proof;
mod read;
mod replay;
mod report;
mod review;
mod seal;

pub use after::After;
pub use read::{Bundle, File, Reports};
pub use report::{Report, State, Words, exit};

use provost_core::bundle::key::PublicKey;
use provost_core::record::Head;

pub use provost_evidence::files::Files;
pub use provost_evidence::verification::{
    Finding, OpenedSeal, Proof, ProofAnswer, Question, Rejudged, Signer, ThreeAnswers, compare,
    open, words,
};

/// The `event_type` of the first record of every run's ledger.
pub const FIRST_EVENT: &str = "RUN_OPENED";

/// The `event_type` of the last record of every finished ledger.
pub const FINAL_EVENT: &str = "RUN_FINISHED";

/// The known ends of a run's chains, from elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    /// The end of its ledger.
    pub ledger: Option<Head>,
    /// The last known end of the chain after the seal.
    pub after: Option<Head>,
}

/// One check, independent of all others.
type Check = fn(&Bundle<'_>) -> Vec<Finding>;

/// The checks for every state of a run.
const ALWAYS: &[Check] = &[ledger::chain, ledger::pin];

/// The checks for a run that says it ended.
const ENDED: &[Check] = &[
    seal::signature,
    seal::statement_fits_itself,
    presence::required,
    presence::expected,
    presence::unnamed,
    presence::lock,
    presence::children,
    presence::evidence_report,
    bytes::named_files,
    bytes::manifest,
    bytes::integrity,
    bytes::references,
    bytes::copies,
    ledger::head,
];

/// What of a run that says it ended has to follow from its ledger, its trees and the rules.
const REJUDGED: &[Check] = &[
    agree::names,
    agree::base,
    agree::tree,
    agree::contract,
    agree::source,
    agree::commands,
    agree::verdict,
    review::review,
    proof::pack,
    proof::attempts,
    replay::decisions,
];

impl Rejudged for Bundle<'_> {
    fn rejudge(&self) -> Vec<Finding> {
        match ledger::state(self) {
            State::Running => Vec::new(),
            State::Sealed | State::Unsealed | State::TailMissing => {
                REJUDGED.iter().flat_map(|check| check(self)).collect()
            }
        }
    }
}

/// Verifies with the keys that the caller trusts (`trusted`) and the known ends of the run's chains
/// (`pins`). With `want_key`, no other key is accepted.
pub fn verify(
    files: &dyn Files,
    trusted: &[PublicKey],
    pins: &Pins,
    want_key: Option<&PublicKey>,
) -> Report {
    let (bundle, mut findings) = Bundle::read(files, trusted, pins, want_key);
    let state = ledger::state(&bundle);
    let checks = match state {
        State::Running => [ALWAYS, &[]],
        State::Sealed | State::Unsealed | State::TailMissing => [ALWAYS, ENDED],
    };
    for check in checks.into_iter().flatten() {
        findings.extend(check(&bundle));
    }
    let (after, found) = match state {
        State::Running => (After::default(), Vec::new()),
        State::Sealed | State::Unsealed | State::TailMissing => after::follow(&bundle),
    };
    findings.extend(found);
    Report::of(&bundle, state, after, findings)
}
