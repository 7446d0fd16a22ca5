//! Finds the secrets that a change would add: those that are not in the base.

use std::ops::Range;

use super::evident::evident;
use super::known::Known;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted {
    /// In bytes.
    pub range: Range<usize>,
    /// The line it begins in, from 1.
    pub line: usize,
    /// The kind of secret; never its value.
    pub what: String,
    /// Whether its value is known, and not only its shape.
    pub is_known: bool,
}

impl Known {
    /// The secrets in a file, in order.
    pub fn planted(&self, bytes: &[u8]) -> Vec<Planted> {
        let mut all: Vec<Planted> = Vec::new();
        let mut add = |range: Range<usize>, what: String, is_known: bool| {
            let before = &bytes[..range.start];
            let line = before.split(|byte| *byte == b'\n').count();
            all.push(Planted {
                range,
                line,
                what,
                is_known,
            });
        };
        for (range, name) in self.find(bytes) {
            add(range, format!("the value of `{name}`"), true);
        }
        let mut from = 0;
        for chunk in bytes.utf8_chunks() {
            let text = chunk.valid();
            for secret in evident(text) {
                let Range { start, end } = secret.range;
                add(
                    from + start..from + end,
                    secret.kind.words().to_owned(),
                    false,
                );
            }
            from += text.len() + chunk.invalid().len();
        }
        all.sort_by_key(|one| (one.range.start, !one.is_known));
        // A known secret that also has a shape is reported once.
        all.dedup_by(|next, first| next.range.start < first.range.end);
        all
    }
}

/// The most secrets of one file that are reported.
const MOST_REPORTED: usize = 5;

/// The secrets of one file, as text.
pub fn describe(planted: &[&Planted]) -> String {
    let row = |one: &&Planted| format!("line {}, {}", one.line, one.what);
    let rows: Vec<String> = planted.iter().take(MOST_REPORTED).map(row).collect();
    match planted.len().saturating_sub(MOST_REPORTED) {
        0 => rows.join("; "),
        more => format!("{}; and {more} more", rows.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_reported_by_line_and_never_by_value() {
        let known = Known::new([("DB_PASSWORD", "tr0ub4dor&3")]);
        let text = "a = 1\nurl = \"x\"\npassword = \"tr0ub4dor&3\"\n\
                    t = \"ghp_q7Zp2Lx9Vb4Nw8Rt1Ks6Jd3Fg5Hj0Cm\"\n";
        let found = known.planted(text.as_bytes());
        let shown = describe(&found.iter().collect::<Vec<_>>());
        assert_eq!(shown, "line 3, the value of `DB_PASSWORD`; line 4, a token");
        assert_eq!(&text[found[0].range.clone()], "tr0ub4dor&3");
        assert!(found[0].is_known && !found[1].is_known);
    }
}
