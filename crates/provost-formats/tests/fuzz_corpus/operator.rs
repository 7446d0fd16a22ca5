//! Properties of the operator-contract checks that hold for any bytes.
//!
//! The fuzz targets and the replay of their corpora share these functions.

use provost_core::code::Code;
use provost_core::verdict::Verdict;
use provost_formats::operator::{self, Kind, Strictness, Surroundings};

/// A verdict has one of the fourteen codes, and a reason.
fn is_whole(verdict: &Verdict) {
    assert_eq!(verdict.allow, verdict.code == Code::Ok);
    assert!(verdict.allow || Code::OF_BOARD.contains(&verdict.code));
    assert!(!verdict.reason.is_empty());
}

/// Strict mode never allows more than literal mode.
fn strict_is_stricter(judge: impl Fn(Strictness) -> Verdict) {
    let literal = judge(Strictness::Literal);
    let strict = judge(Strictness::Strict);
    is_whole(&literal);
    is_whole(&strict);
    assert!(literal.allow || !strict.allow, "{literal:?} {strict:?}");
}

fn check(kind: Kind, bytes: &[u8]) {
    for there in [true, false] {
        let surroundings = Surroundings {
            file_exists: &|_| there,
        };
        strict_is_stricter(|strictness| operator::check(kind, bytes, strictness, surroundings));
    }
}

/// The first byte chooses the kind, from `a`; the rest is the payload.
pub(crate) fn operator(bytes: &[u8]) {
    let Some((first, payload)) = bytes.split_first() else {
        return;
    };
    let at = usize::from(first.wrapping_sub(b'a')) % Kind::ALL.len();
    check(Kind::ALL[at], payload);
}

/// A report in Markdown.
pub(crate) fn operator_page(bytes: &[u8]) {
    check(Kind::Result, bytes);
}

/// The first byte chooses how the task ended, from `a`; the rest is the log.
pub(crate) fn worklog(bytes: &[u8]) {
    const OUTCOMES: [&str; 5] = ["done", "blocked", "failed", "canceled", "todo"];
    let Some((first, log)) = bytes.split_first() else {
        return;
    };
    let at = usize::from(first.wrapping_sub(b'a')) % OUTCOMES.len();
    strict_is_stricter(|strictness| operator::lines(log, Some(OUTCOMES[at]), strictness));
}
