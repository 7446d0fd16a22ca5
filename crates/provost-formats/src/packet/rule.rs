//! Decides which paths a rule of a task card covers.
//!
//! A rule with `*`, `?` or `[` is a glob over the whole path. `**` matches anything, and `**/` may
//! match no directory at all; `*`, `?` and `[]` match within one name. A path that is spelled like
//! the rule is covered as well.
//! Any other rule is a path that covers itself and everything below it. Case counts.

use provost_core::path::{PathError, RepoPath};

/// The one spelling of a path: no outer blanks, `/` between names, no `./` in front, no `/` at the
/// end. `None` for a blank.
pub(super) fn normal(text: &str) -> Result<Option<RepoPath>, PathError> {
    let slashed = text.trim().replace('\\', "/");
    let mut rest = slashed.as_str();
    while let Some(shorter) = rest.strip_prefix("./") {
        rest = shorter;
    }
    // A lone `/` stays, and is refused as absolute.
    let trimmed = rest.trim_end_matches('/');
    let path = if trimmed.is_empty() { rest } else { trimmed };
    if path.is_empty() {
        return Ok(None);
    }
    RepoPath::try_from(path).map(Some)
}

/// How much matching may still be done: rules and paths are untrusted input.
#[derive(Debug)]
pub(super) struct Effort {
    left: usize,
    spent: bool,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            left: 50_000_000,
            spent: false,
        }
    }
}

impl Effort {
    pub(super) const PROBLEM: &str = "has so many or so long rules that matching them is given up";

    pub(super) fn is_spent(&self) -> bool {
        self.spent
    }

    /// Takes `steps` from what is left; false if there is not enough.
    fn pay(&mut self, steps: usize) -> bool {
        match self.left.checked_sub(steps) {
            Some(left) => self.left = left,
            None => self.spent = true,
        }
        !self.spent
    }
}

#[derive(Debug, Clone)]
pub(super) enum Rule {
    Path(RepoPath),
    /// A pattern.
    Glob {
        text: String,
        /// The characters before the first wildcard.
        begins: String,
        rest: Vec<Token>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    One(char),
    Any,
    Set {
        inverted: bool,
        ranges: Vec<(char, char)>,
    },
    /// Any characters of one name.
    Name,
    /// Any characters.
    Many,
    /// The next two tokens may be left out.
    Maybe,
}

impl Rule {
    pub(super) fn of(path: &RepoPath) -> Self {
        let text = path.as_str();
        if text.contains(['*', '?', '[']) {
            let tokens = tokens(text);
            let letter = |token: &Token| match token {
                Token::One(letter) => Some(*letter),
                _ => None,
            };
            let begins: String = tokens.iter().map_while(letter).collect();
            Self::Glob {
                text: text.to_owned(),
                rest: tokens[begins.chars().count()..].to_vec(),
                begins,
            }
        } else {
            Self::Path(path.clone())
        }
    }

    /// Whether the rule covers everything.
    pub(super) fn is_everything(&self) -> bool {
        matches!(self, Self::Glob { text, .. } if text.chars().all(|letter| "*/".contains(letter)))
    }

    /// Whether `path` is covered; a path rule covers everything below it.
    pub(super) fn covers(&self, path: &str, effort: &mut Effort) -> bool {
        match self {
            Self::Path(rule) => {
                let below = path.strip_prefix(rule.as_str());
                effort.pay(rule.as_str().len())
                    && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            Self::Glob { .. } => self.matches(path, effort),
        }
    }

    /// Whether `path` fits the pattern; a path rule fits only itself.
    pub(super) fn matches(&self, path: &str, effort: &mut Effort) -> bool {
        match self {
            Self::Path(rule) => effort.pay(path.len()) && rule.as_str() == path,
            Self::Glob { text, begins, rest } => {
                // The prefix alone decides for most rules.
                let Some(tail) = path.strip_prefix(begins.as_str()) else {
                    effort.pay(begins.len());
                    return false;
                };
                let anything = rest.iter().all(|token| *token == Token::Many);
                let cost = begins.len() + if anything { 0 } else { rest.len() * tail.len() };
                text == path || effort.pay(cost) && (anything || fits(rest, tail))
            }
        }
    }
}

fn tokens(pattern: &str) -> Vec<Token> {
    let letters: Vec<char> = pattern.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let begins_name = at == 0 || letters[at - 1] == '/';
        match letters[at] {
            '*' if begins_name && letters[at..].starts_with(&['*', '*', '/']) => {
                tokens.extend([Token::Maybe, Token::Many, Token::One('/')]);
                at += 3;
                continue;
            }
            '*' => {
                let stars = letters[at..].iter().take_while(|it| **it == '*').count();
                tokens.push(if stars > 1 { Token::Many } else { Token::Name });
                at += stars;
                continue;
            }
            '?' => tokens.push(Token::Any),
            '[' => {
                if let Some((set, length)) = set(&letters[at..]) {
                    tokens.push(set);
                    at += length;
                    continue;
                }
                tokens.push(Token::One('['));
            }
            letter => tokens.push(Token::One(letter)),
        }
        at += 1;
    }
    tokens
}

/// The set at the start of `letters`, and its length in characters; `None` if it does not end.
fn set(letters: &[char]) -> Option<(Token, usize)> {
    let inverted = letters.get(1) == Some(&'!');
    let first = if inverted { 2 } else { 1 };
    // A bracket in the first place stands for itself.
    let end = (first + 1..letters.len()).find(|at| letters[*at] == ']')?;
    let mut ranges = Vec::new();
    let mut inner = &letters[first..end];
    while let [from, rest @ ..] = inner {
        if let ['-', to, rest @ ..] = rest {
            ranges.push((*from, *to));
            inner = rest;
        } else {
            ranges.push((*from, *from));
            inner = rest;
        }
    }
    Some((Token::Set { inverted, ranges }, end + 1))
}

/// Follows all matches of the pattern at once, so that the time is bounded by the length of the
/// pattern times that of the path.
fn fits(tokens: &[Token], path: &str) -> bool {
    let mut here = vec![false; tokens.len() + 1];
    here[0] = true;
    skip(tokens, &mut here);
    for letter in path.chars() {
        let mut next = vec![false; tokens.len() + 1];
        for (at, token) in tokens.iter().enumerate().filter(|(at, _)| here[*at]) {
            match token {
                Token::One(wanted) => next[at + 1] |= *wanted == letter,
                Token::Any => next[at + 1] |= letter != '/',
                Token::Set { inverted, ranges } => {
                    let inside = ranges
                        .iter()
                        .any(|(from, to)| (*from..=*to).contains(&letter));
                    next[at + 1] |= letter != '/' && inside != *inverted;
                }
                Token::Name => next[at] |= letter != '/',
                Token::Many => next[at] = true,
                Token::Maybe => {}
            }
        }
        here = next;
        skip(tokens, &mut here);
    }
    here[tokens.len()]
}

/// Skips tokens that may match nothing.
fn skip(tokens: &[Token], here: &mut [bool]) {
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Many | Token::Name if here[at] => here[at + 1] = true,
            Token::Maybe if here[at] => {
                here[at + 1] = true;
                here[at + 3] = true;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        Rule::of(&RepoPath::try_from(text).unwrap())
    }

    #[test]
    fn a_rule_covers_what_its_text_says() {
        let cases = [
            ("src", "src", true),
            ("src", "src/a/b.rs", true),
            ("src", "src2/a", false),
            ("src/**", "src/a/b.rs", true),
            ("src/**", "src", false),
            ("src/**", "src2/a", false),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*", "src/a", true),
            ("src/*", "src/a/b", false),
            ("src/?b", "src/ab", true),
            ("src?b", "src/b", false),
            ("src[!a]b", "src/b", false),
            ("*/x", "a/x", true),
            ("*/x", "a/b/x", false),
            ("src/**.rs", "src/a/b.rs", true),
            ("src/*.rs", "src/a.py", false),
            ("src/?/x.rs", "src/a/x.rs", true),
            ("src/?/x.rs", "src/ab/x.rs", false),
            ("src/[a-c].rs", "src/b.rs", true),
            ("src/[a-c].rs", "src/d.rs", false),
            ("src/[!a-c].rs", "src/d.rs", true),
            ("src/[!a-c].rs", "src/a.rs", false),
            ("src/[]].rs", "src/].rs", true),
            ("src/[a", "src/[a", true),
            ("app/[id].tsx", "app/[id].tsx", true),
            ("app/[id].tsx", "app/i.tsx", true),
            ("**/x/**", "x/y", true),
            ("**/x/**", "a/b/x/y", true),
            ("**/x/**", "ax/y", false),
            ("src/**/x", "src/x", true),
            ("src/**/x", "src/a/b/x", true),
            ("src/**/x", "src/ax", false),
            ("**", "a/b", true),
            ("SRC/**", "src/a", false),
        ];
        for (text, path, want) in cases {
            let mut effort = Effort::default();
            assert_eq!(rule(text).covers(path, &mut effort), want, "{text} {path}");
        }
    }

    #[test]
    fn a_path_has_one_spelling() {
        let good = [
            (" ./src/a ", "src/a"),
            ("././src\\a/", "src/a"),
            ("src//", "src"),
        ];
        for (text, want) in good {
            assert_eq!(normal(text).unwrap().unwrap().as_str(), want, "{text:?}");
        }
        for blank in ["", "  ", "./", "././"] {
            assert_eq!(normal(blank), Ok(None), "{blank:?}");
        }
        for bad in [
            "/a", "/", "\\a", "a/../b", "..", "a//b", "a/./b", ".", "a\nb", "./../a",
        ] {
            assert!(normal(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_pattern_made_to_take_long_is_given_up() {
        let slow = rule(&"*a".repeat(500));
        let path = "a".repeat(1000);
        let mut effort = Effort {
            left: 1_500_000,
            spent: false,
        };
        assert!(slow.covers(&path, &mut effort));
        assert!(!effort.is_spent());
        assert!(!slow.covers(&path, &mut effort));
        assert!(effort.is_spent());
    }
}
