//! Finds claims that nothing became worse, and distinguishes them from denied and open ones.

use super::{
    ClaimFacts, ClaimViolation, ClaimWarning, ClaimsVerdict, NEGATION, is_negation, nearest,
};
use provost_lens::structure::health::Points;

const REGRESSION_FREE: &[&str] = &[
    "no regression",
    "no regressions",
    "without regression",
    "without regressions",
    "regression-free",
    "regression free",
    "zero regressions",
    "no quality loss",
    "health is unchanged",
    "health unchanged",
    "health improved",
    "nothing got worse",
];

/// The ends of sentences.
const ENDS: [char; 5] = ['.', '!', '?', ';', '\n'];

/// Words between two claims.
const JOINTS: &[&str] = &["and", "but", "or", "so", "yet", "though", "although"];

/// Words after a claim that take it back.
const REFUTES: &[&str] = &["false", "untrue", "wrong", "unlikely", "unknown", "unclear"];

/// Words before a claim that leave it open.
const DOUBTS: &[&str] = &[
    "if",
    "whether",
    "unless",
    "until",
    "might",
    "may",
    "could",
    "should",
    "would",
    "hope",
    "hopefully",
    "unsure",
    "unclear",
    "unknown",
    "doubt",
];

/// Words that follow "no regression" where it is about tests.
const TEST_WORDS: &[&str] = &["test", "tests", "testing", "suite", "suites", "coverage"];

/// Finds words that promise more than the health allows.
pub(super) fn judge(lower: &str, known: &ClaimFacts<'_>, found: &mut ClaimsVerdict) {
    let Some(delta) = known.health_delta.filter(|delta| delta.is_negative()) else {
        return;
    };
    let mut unclear = None;
    for sentence in lower.split_inclusive(ENDS) {
        for words in REGRESSION_FREE {
            match reading(sentence, words) {
                Reading::Claimed => return report_overclaim(words, delta, found),
                Reading::Unclear => unclear = unclear.or(Some(*words)),
                Reading::NotClaimed => {}
            }
        }
    }
    if let Some(words) = unclear {
        found.warnings.push(ClaimWarning {
            kind: "claim_not_understood",
            message: format!(
                "whether the text claims \"{words}\" is not clear; the health fell by this \
                 change ({})",
                delta.number()
            ),
        });
    }
}

fn report_overclaim(claim: &str, delta: Points, found: &mut ClaimsVerdict) {
    let reason = "the health fell";
    found.violations.push(ClaimViolation {
        pattern: "health_regression_overclaim",
        claim: claim.to_owned(),
        cited: None,
        reason,
        source: format!("health_delta {}", delta.number()),
    });
    found.warnings.push(ClaimWarning {
        kind: "health_regression_overclaim",
        message: format!("{reason} by this change ({})", delta.number()),
    });
}

/// Whether a sentence claims something that it has the words for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Claimed,
    /// The words are missing, denied, or part of another expression.
    NotClaimed,
    /// A question, a condition, or a negation whose object is not clear.
    Unclear,
}

/// Reads one sentence; of several places with `words` the clearest claim counts.
fn reading(sentence: &str, words: &str) -> Reading {
    let mut found = Reading::NotClaimed;
    for (at, _) in sentence.match_indices(words) {
        let (before, after) = (&sentence[..at], &sentence[at + words.len()..]);
        let joined = |letter: char| letter.is_alphanumeric() || letter == '\'';
        if before.ends_with(joined) || after.starts_with(joined) {
            continue;
        }
        let next = after.split_whitespace().next().unwrap_or_default();
        if TEST_WORDS.contains(&next.trim_matches(|letter: char| !letter.is_alphanumeric())) {
            continue;
        }
        match read_place(before, after, is_negation(words)) {
            Reading::Claimed => return Reading::Claimed,
            Reading::Unclear => found = Reading::Unclear,
            Reading::NotClaimed => {}
        }
    }
    found
}

/// Reads the words before and after a claim. `denies` says that the claim begins with a negation of
/// its own, as in "no regressions".
fn read_place(before: &str, after: &str, denies: bool) -> Reading {
    let near = nearest(before);
    let is_joint = |word: &&str| word.ends_with(',') || JOINTS.contains(word);
    let joint = near.iter().position(is_joint);
    // "no new warnings and no regressions" has two claims; "not fast and regression-free" is open.
    let own = match joint {
        Some(at) if denies => &near[..at],
        _ => &near[..],
    };
    let later = after.split(ENDS).next().unwrap_or_default();
    let later = later.split([',', ':', '(']).next().unwrap_or_default();
    let denied_later = later.split_whitespace().take(NEGATION.1);
    let denied_later = denied_later.filter(|word| is_negation(word) || REFUTES.contains(word));
    let doubt = before.split_whitespace().any(|word| DOUBTS.contains(&word));
    if after.ends_with('?') || doubt || denied_later.count() > 0 {
        return Reading::Unclear;
    }
    match own.iter().position(|word| is_negation(word)) {
        None => Reading::Claimed,
        Some(at) if joint.is_some_and(|joint| joint <= at) => Reading::Unclear,
        Some(_) => Reading::NotClaimed,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ClaimText, judge};
    use super::*;

    #[test]
    fn a_negated_claim_is_not_invented() {
        let known = ClaimFacts {
            report: None,
            earlier: None,
            health_delta: Some(Points::whole(-2)),
            wants_citations: false,
        };
        let cases: [(&str, &[&str]); 3] = [
            (
                "health_regression_overclaim",
                &[
                    "No regressions were introduced.",
                    "This is regression-free.",
                    "It does not touch the API. This is regression-free",
                    "No functional change and no regressions",
                    "Nothing got worse, and the API did not change",
                    "Without regressions, but not tested by hand",
                ],
            ),
            (
                "claim_not_understood",
                &[
                    "Is this regression-free?",
                    "I do not know if there are no regressions.",
                    "No regressions is not true.",
                    "It is not fast and regression-free.",
                    "This is not, in any way, regression-free.",
                ],
            ),
            (
                "",
                &[
                    "This is not regression-free.",
                    "This isn't regression-free",
                    "This isn\u{2019}t really regression free",
                    "I cannot claim no regressions",
                    "It never was regression-free!",
                    "It was not done without regressions.",
                    "No regression tests were added.",
                    "Health fell by two.",
                ],
            ),
        ];
        for (want, texts) in cases {
            for text in texts {
                let found = judge(&ClaimText::try_from(*text).unwrap(), &known);
                let kinds = found.warnings.iter().map(|one| one.kind);
                let kinds: Vec<&str> = kinds.filter(|kind| kind.contains("claim")).collect();
                assert_eq!(kinds.first().copied().unwrap_or_default(), want, "{text}");
                let valid = want != "health_regression_overclaim";
                assert_eq!(found.is_valid(), valid, "{text}");
            }
        }
    }
}
