//! Verifies a bundle from its bytes alone, and gives three answers.
//!
//! *Intact*: no byte differs from what was sealed, and the documents agree with each other.
//! *Complete*: nothing that must be there is missing, and nothing is there that was not sealed.
//! *Authentic*: signed by a key the reader trusts.
//!
//! # Invariants
//!
//! - Every file is read once, so what was hashed is what was judged.
//! - A check whose input is missing says nothing, because the missing input is itself a finding.
//! - Whatever the bytes are, the answer is a report: no check panics, recurses with the input, or
//!   takes more memory than a small multiple of it.

mod agree;
mod bytes;
mod ledger;
pub(super) mod presence;
mod proof;
mod read;
mod replay;
mod report;
mod seal;

use std::collections::BTreeMap;

pub use read::{Bundle, File, Reports};
pub use report::{Answer, Finding, Question, Report, Signer, State};

use super::key::PublicKey;
use crate::path::RawPath;
use crate::record::Head;

/// The last record of every ledger that came to its end has this `event_type`.
pub const FINAL_EVENT: &str = "RUN_FINISHED";

/// The field of a payload in `after.jsonl` that holds a signed statement.
pub const AFTER_STATEMENT: &str = "attestation";

/// The files of a bundle, read within bounds by whoever has them.
pub trait Files {
    /// The name of everything in the bundle that is not a directory, from its root.
    fn names(&self) -> Vec<RawPath>;

    /// The bytes of a file, or in words why there are none: it is no regular file, it is too
    /// large, it cannot be read.
    fn read(&self, name: &RawPath) -> Result<Vec<u8>, String>;
}

impl Files for BTreeMap<RawPath, Vec<u8>> {
    fn names(&self) -> Vec<RawPath> {
        self.keys().cloned().collect()
    }

    fn read(&self, name: &RawPath) -> Result<Vec<u8>, String> {
        self.get(name).cloned().ok_or_else(|| "is missing".into())
    }
}

/// One thing that is looked at, independent of all others.
type Check = fn(&Bundle<'_>) -> Vec<Finding>;

/// What is looked at whatever the state of the run.
const ALWAYS: &[Check] = &[ledger::chain, ledger::pin];

/// What is looked at once a run says that it ended.
const ENDED: &[Check] = &[
    seal::signature,
    seal::spelling,
    seal::statement_fits_itself,
    presence::required,
    presence::expected,
    presence::unnamed,
    presence::evidence_report,
    bytes::named_files,
    bytes::manifest,
    bytes::integrity,
    bytes::references,
    bytes::copies,
    ledger::head,
    ledger::after,
    agree::names,
    agree::base,
    agree::tree,
    agree::contract,
    agree::commands,
    agree::verdict,
    proof::pack,
    replay::decisions,
    replay::later_files,
];

/// Verifies a bundle.
///
/// `trusted` are the keys the reader trusts; `pin` is the head of the run's ledger if it is known
/// from elsewhere; with `want_key`, no other key will do.
pub fn verify(
    files: &dyn Files,
    trusted: &[PublicKey],
    pin: Option<&Head>,
    want_key: Option<&PublicKey>,
) -> Report {
    let (bundle, mut findings) = Bundle::read(files, trusted, pin, want_key);
    let state = ledger::state(&bundle);
    let checks = match state {
        State::Running => [ALWAYS, &[]],
        State::Sealed | State::Unsealed | State::TailMissing => [ALWAYS, ENDED],
    };
    for check in checks.into_iter().flatten() {
        findings.extend(check(&bundle));
    }
    Report::of(&bundle, state, findings)
}
