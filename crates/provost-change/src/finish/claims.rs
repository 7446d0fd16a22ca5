//! Checks what an agent claims about a change against what the analyses say.
//!
//! Nothing here decides about a change: a claim that does not hold is reported beside the verdict.

mod regression_free;

use std::collections::BTreeSet;

use serde::Serialize;

use provost_lens::structure::health::{Dimension, Points};
use provost_lens::structure::{Confidence, Family, Report};

/// The longest text that is read, in characters.
pub const LONGEST: usize = 50_000;

/// How far around a citation words are searched, in characters.
const WINDOW: usize = 80;

/// How far before a word its negation may stand, in characters and in words.
const NEGATION: (usize, usize) = (48, 4);

/// Families that are reported and never decide.
const REPORT_ONLY: [&str; 4] = ["security", "overloaded_modules", "adoption", "structural"];

const NEGATIONS: &[&str] = &[
    "not", "no", "never", "without", "cannot", "nor", "neither", "hardly", "nothing", "none",
];

/// Why a text of claims is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error("the text of claims is empty")]
    Empty,
    #[error("the text of claims has more than {LONGEST} characters")]
    TooLong,
}

/// A text of claims that is not empty and not longer than [`LONGEST`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimText(String);

impl TryFrom<&str> for ClaimText {
    type Error = TextError;

    fn try_from(raw: &str) -> Result<Self, TextError> {
        if raw.trim().is_empty() {
            return Err(TextError::Empty);
        }
        if raw.chars().count() > LONGEST {
            return Err(TextError::TooLong);
        }
        Ok(Self(raw.to_owned()))
    }
}

/// A claim that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClaimViolation {
    /// The number of the rule.
    pub pattern: &'static str,
    /// The words that claim it.
    pub claim: String,
    /// The finding or metric they are about; `None` where they are about the whole change.
    #[serde(rename = "cited_id")]
    pub cited: Option<String>,
    pub reason: &'static str,
    /// The fact that contradicts the claim.
    #[serde(rename = "source_flag")]
    pub source: String,
}

/// A remark that does not make a claim invalid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClaimWarning {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub message: String,
}

/// The result of checking claims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimsVerdict {
    /// What the text cites, in its order.
    pub citations: Vec<String>,
    /// The citations that the analysis contains.
    pub known: Vec<String>,
    /// Claims that do not hold.
    pub violations: Vec<ClaimViolation>,
    pub warnings: Vec<ClaimWarning>,
}

impl ClaimsVerdict {
    /// Whether no claim is contradicted.
    pub fn is_valid(&self) -> bool {
        self.violations.is_empty()
    }
}

/// The facts that claims are checked against.
#[derive(Debug, Clone, Copy)]
pub struct ClaimFacts<'a> {
    /// The analysis that the claims are about.
    pub report: Option<&'a Report>,
    /// An earlier analysis to compare with.
    pub earlier: Option<&'a Report>,
    pub health_delta: Option<Points>,
    /// Whether a text without a citation gets a warning.
    pub wants_citations: bool,
}

pub fn judge(ClaimText(text): &ClaimText, known: &ClaimFacts<'_>) -> ClaimsVerdict {
    let lower = text.to_lowercase();
    let mut found = ClaimsVerdict::default();
    cite(text, &lower, known, &mut found);
    regression_free::judge(&lower, known, &mut found);
    if found.citations.is_empty() && known.wants_citations {
        found.warnings.push(ClaimWarning {
            kind: "no_citations",
            message: "the text names no finding and no metric".to_owned(),
        });
    }
    if known.report.is_none() {
        found.warnings.push(ClaimWarning {
            kind: "structural_checks_not_applicable",
            message: "there is no analysis to check the text against".to_owned(),
        });
    }
    found
}

/// Finds what the text cites, and checks the words around it.
fn cite(text: &str, lower: &str, known: &ClaimFacts<'_>, found: &mut ClaimsVerdict) {
    let is_part = |letter: char| letter.is_alphanumeric() || "_:-./".contains(letter);
    let mut seen = BTreeSet::new();
    let mut at = 0;
    for word in text.split(|letter: char| !is_part(letter)) {
        let begin = at;
        at += word.len();
        at += text[at..].chars().next().map_or(0, char::len_utf8);
        let name = word.trim_end_matches(['.', ':', '-', '/']);
        let Some(kind) = citation(name) else { continue };
        if !seen.insert(name.to_owned()) {
            continue;
        }
        found.citations.push(name.to_owned());
        // Lower case may move bytes; then the whole text is the window.
        let window = lower
            .get(begin..)
            .filter(|_| lower.len() == text.len())
            .map_or(lower, |_| around(lower, begin, name.len()));
        judge_citation(name, kind, window, known, found);
    }
}

/// What kind of thing a word can cite.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cited {
    Finding,
    Family,
}

fn citation(word: &str) -> Option<Cited> {
    let families = ["clone:", "dead_code:", "design:", "structural:"];
    if families.iter().any(|family| word.starts_with(family)) {
        return Some(Cited::Finding);
    }
    let known = Dimension::ALL.iter().any(|one| one.word() == word);
    (known || REPORT_ONLY.contains(&word)).then_some(Cited::Family)
}

/// Words that make a claim, and why it does not hold.
struct Rule {
    pattern: &'static str,
    words: &'static [&'static str],
    reason: &'static str,
}

const VULNERABLE: Rule = Rule {
    pattern: "P-1",
    words: &["vulnerability", "vulnerabilities", "exploit"],
    reason: "a list of locations does not prove a vulnerability",
};
const GATING: Rule = Rule {
    pattern: "P-2",
    words: &["gate", "gates", "blocking", "blocks"],
    reason: "this family is reported and never decides",
};
const NEW: Rule = Rule {
    pattern: "P-3",
    words: &["new", "introduced", "newly"],
    reason: "it was there before",
};
const CERTAIN: Rule = Rule {
    pattern: "P-4",
    words: &["certainly", "definitely", "guaranteed", "provably"],
    reason: "something may still reach it",
};
const FIXED: Rule = Rule {
    pattern: "P-5",
    words: &["fixed", "resolved", "removed", "eliminated"],
    reason: "no comparison shows that it is gone",
};

fn judge_citation(
    name: &str,
    kind: Cited,
    window: &str,
    known: &ClaimFacts<'_>,
    found: &mut ClaimsVerdict,
) {
    let (rules, source) = match kind {
        Cited::Family => (of_family(name), name.to_owned()),
        Cited::Finding => {
            let Some(finding) = known.report.and_then(|report| report.finding(name)) else {
                let gone = known.earlier.and_then(|report| report.finding(name));
                if gone.is_none() {
                    found.warnings.push(ClaimWarning {
                        kind: "unknown_finding",
                        message: format!("`{name}` is no finding of this analysis"),
                    });
                }
                return;
            };
            let before = known.earlier.and_then(|report| report.finding(name));
            let sure = finding.family != Family::DeadCode || finding.confidence == Confidence::High;
            let rules = [
                (before.is_some(), NEW),
                (!sure, CERTAIN),
                // It is in this analysis, so it is not fixed.
                (true, FIXED),
            ];
            (
                rules
                    .into_iter()
                    .filter(|(on, _)| *on)
                    .map(|(_, rule)| rule)
                    .collect(),
                finding.id.clone(),
            )
        }
    };
    found.known.push(name.to_owned());
    for rule in rules {
        if let Some(word) = says(window, rule.words) {
            found.violations.push(ClaimViolation {
                pattern: rule.pattern,
                claim: word.to_owned(),
                cited: Some(name.to_owned()),
                reason: rule.reason,
                source: source.clone(),
            });
        }
    }
}

fn of_family(name: &str) -> Vec<Rule> {
    let rules = [
        (name == "security", VULNERABLE),
        (REPORT_ONLY.contains(&name), GATING),
    ];
    rules
        .into_iter()
        .filter(|(on, _)| *on)
        .map(|(_, rule)| rule)
        .collect()
}

/// The sentence around a place, at most [`WINDOW`] characters to each side.
fn around(text: &str, begin: usize, length: usize) -> &str {
    let end = (begin + length).min(text.len());
    let left: Vec<(usize, char)> = text[..begin].char_indices().rev().take(WINDOW).collect();
    let from = left
        .iter()
        .find(|(_, letter)| matches!(letter, '.' | '!' | '?' | '\n'))
        .map_or(left.last().map_or(begin, |(at, _)| *at), |(at, letter)| {
            at + letter.len_utf8()
        });
    let mut to = end;
    for letter in text[end..].chars().take(WINDOW) {
        if matches!(letter, '.' | '!' | '?' | '\n') {
            break;
        }
        to += letter.len_utf8();
    }
    &text[from..to]
}

/// The first of `words` that occurs in `window` without a negation.
fn says<'a>(window: &str, words: &[&'a str]) -> Option<&'a str> {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '\'';
    words.iter().copied().find(|word| {
        window.match_indices(word).any(|(at, _)| {
            let before = window[..at].chars().next_back();
            let after = window[at + word.len()..].chars().next();
            let whole = !before.is_some_and(is_letter) && !after.is_some_and(is_letter);
            whole && !negated(&window[..at])
        })
    })
}

/// Whether the words at the end of `before` negate what follows.
fn negated(before: &str) -> bool {
    nearest(before).iter().any(|word| is_negation(word))
}

/// The words at the end of `before` in which a negation counts, the last one first.
fn nearest(before: &str) -> Vec<&str> {
    let (letters, words) = NEGATION;
    let from = before.char_indices().rev().take(letters).last();
    let near = &before[from.map_or(before.len(), |(at, _)| at)..];
    near.split_whitespace().rev().take(words + 1).collect()
}

/// Whether a text begins with a word that negates.
fn is_negation(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    NEGATIONS.contains(&word) || word.ends_with("n't") || word.ends_with("n\u{2019}t")
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_lens::structure::sample::{dead, function, report};

    fn judged(text: &str, known: &ClaimFacts<'_>) -> ClaimsVerdict {
        judge(&ClaimText::try_from(text).unwrap(), known)
    }

    fn patterns(text: &str, known: &ClaimFacts<'_>) -> Vec<&'static str> {
        let found = judged(text, known);
        found.violations.iter().map(|one| one.pattern).collect()
    }

    #[test]
    fn claims_are_held_against_what_is_known() {
        let with = report(vec![function("a.py", "f", 1)], vec![dead("a.py", "f", "s")]);
        let known = ClaimFacts {
            report: Some(&with),
            earlier: Some(&with),
            health_delta: None,
            wants_citations: true,
        };
        let alone = ClaimFacts {
            earlier: None,
            ..known
        };
        let cases: [(&str, &ClaimFacts<'_>, &[&str]); 10] = [
            ("dead_code:f is new.", &known, &["P-3"]),
            ("dead_code:f is not new.", &known, &[]),
            ("dead_code:f is there. Something else is new.", &known, &[]),
            ("dead_code:f is certainly unused", &known, &["P-4"]),
            ("I fixed dead_code:f", &known, &["P-5"]),
            ("I fixed dead_code:f", &alone, &["P-5"]),
            ("security shows a vulnerability", &known, &["P-1"]),
            ("security is a gate here", &known, &["P-2"]),
            ("complexity is a gate here", &known, &[]),
            ("nothing to see", &known, &[]),
        ];
        for (text, known, want) in cases {
            assert_eq!(patterns(text, known), want, "{text}");
        }
        let found = judged("dead_code:nothing", &known);
        assert_eq!(found.warnings[0].kind, "unknown_finding");
        assert!(found.is_valid(), "a warning does not invalidate");
        assert_eq!(
            judged("all is well", &known).warnings[0].kind,
            "no_citations"
        );
    }

    #[test]
    fn a_claim_that_nothing_got_worse_fails_when_the_health_fell() {
        let known = |delta| ClaimFacts {
            report: None,
            earlier: None,
            health_delta: delta,
            wants_citations: false,
        };
        let fell = known(Some(Points::whole(-2)));
        let text = "No regressions were introduced.";
        assert_eq!(patterns(text, &fell), ["health_regression_overclaim"]);
        assert!(patterns(text, &known(Some(Points::whole(0)))).is_empty());
        assert!(patterns("Health fell by two.", &fell).is_empty());
    }

    #[test]
    fn a_text_has_bounds() {
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(ClaimText::try_from(" "), Err(TextError::Empty));
        assert_eq!(ClaimText::try_from(&*long), Err(TextError::TooLong));
        assert!(ClaimText::try_from(&long[1..]).is_ok());
        let known = ClaimFacts {
            report: None,
            earlier: None,
            health_delta: None,
            wants_citations: false,
        };
        assert!(judged(&"ü: design:".repeat(900), &known).is_valid());
    }
}
