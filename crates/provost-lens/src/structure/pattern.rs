//! Matches paths against the patterns of scopes in a shared checkout.
//!
//! `*` matches `/` as well, `?` is any one character, `[…]` one of a set, `[!…]` one outside of it.
//! A `[` without its `]` is literal. Case counts.

/// Whether `pattern` matches all of `text`. Takes time in proportion to the product of both
/// lengths.
pub fn fits(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut seen) = (0, 0);
    // Where the last `*` was, and how much of the text it stands for so far.
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at, seen));
            at += 1;
            continue;
        }
        if let Some(next) = one(&pattern, at, text[seen]) {
            at = next;
            seen += 1;
            continue;
        }
        let Some((place, covered)) = star else {
            return false;
        };
        star = Some((place, covered + 1));
        at = place + 1;
        seen = covered + 1;
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

/// Whether an entry of a scope covers `path`: it is the path, a directory above it, or a pattern
/// that matches it.
pub fn covers(entry: &str, path: &str) -> bool {
    let below = path
        .strip_prefix(entry)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    below || fits(entry, path)
}

/// The position in the pattern after it matched `letter` at `at`; `None` if it does not match.
fn one(pattern: &[char], at: usize, letter: char) -> Option<usize> {
    match *pattern.get(at)? {
        '?' => Some(at + 1),
        '[' => match set(pattern, at + 1) {
            Some((end, negated)) => {
                let body = &pattern[at + 1 + usize::from(negated)..end];
                (holds(body, letter) != negated).then_some(end + 1)
            }
            None => (letter == '[').then_some(at + 1),
        },
        other => (other == letter).then_some(at + 1),
    }
}

/// The end of the set that begins at `from`, and whether it is negated.
fn set(pattern: &[char], from: usize) -> Option<(usize, bool)> {
    let negated = pattern.get(from) == Some(&'!');
    let body = from + usize::from(negated);
    // A `]` at the very beginning belongs to the set.
    let found = pattern.iter().skip(body + 1).position(|c| *c == ']')?;
    Some((body + 1 + found, negated))
}

fn holds(body: &[char], letter: char) -> bool {
    let mut at = 0;
    while at < body.len() {
        if at + 2 < body.len() && body[at + 1] == '-' {
            if (body[at]..=body[at + 2]).contains(&letter) {
                return true;
            }
            at += 3;
        } else {
            if body[at] == letter {
                return true;
            }
            at += 1;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_a_shell_would_say() {
        let cases = [
            ("pkg/a.py", "pkg/a.py", true),
            ("pkg/a.py", "pkg/A.py", false),
            ("pkg/b*", "pkg/b.py", true),
            ("pkg/*", "pkg/sub/deep.py", true),
            ("**/x.py", "a/b/x.py", true),
            ("**/x.py", "x.py", false),
            ("*.py", "a/b.py", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[ab].py", "b.py", true),
            ("[!ab].py", "b.py", false),
            ("[!ab].py", "c.py", true),
            ("[a-c]x", "bx", true),
            ("[]]x", "]x", true),
            ("[ab", "[ab", true),
            ("[ab", "a", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("", "", true),
            ("*", "", true),
            ("", "x", false),
        ];
        for (pattern, text, want) in cases {
            assert_eq!(fits(pattern, text), want, "{pattern} {text}");
        }
    }

    #[test]
    fn a_directory_covers_what_is_below_it_and_nothing_beside_it() {
        assert!(covers("docs/book", "docs/book/x.md"));
        assert!(covers("docs/book", "docs/book"));
        assert!(!covers("docs/bo", "docs/book/x.md"));
    }

    #[test]
    fn many_stars_take_no_time() {
        let text = "a".repeat(2_000);
        assert!(!fits(&"*a".repeat(500), &format!("{text}b")));
    }
}
