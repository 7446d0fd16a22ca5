//! Parses plainly valid JSON in one pass over its bytes.
//!
//! `serde_json` parses a text again that is refused here for any reason, and then reports what is
//! wrong and where. So this parser may give up at any point. It must never accept a text that the
//! other one refuses, or read it differently.

use std::borrow::Cow;

use serde_json::Number;

use super::DEEPEST;
use super::node::{Fields, Node, Seen};

/// The number of fields that most objects have at most.
const USUAL_FIELDS: usize = 11;

/// Parses one document of up to `most` values; `None` if it is not JSON or exceeds a limit.
pub(super) fn read(text: &str, most: usize) -> Option<Node<'_>> {
    let mut reader = Reader {
        text,
        at: 0,
        left: most,
    };
    let mut node = Node::Null;
    reader.value(0, &mut node)?;
    reader.next().is_none().then_some(node)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// How many more values are allowed.
    left: usize,
}

impl<'a> Reader<'a> {
    /// Parses the next value in place, which costs less than returning it.
    fn value(&mut self, depth: usize, into: &mut Node<'a>) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        *into = match self.next()? {
            b'"' => Node::Text(self.text()?),
            b'{' => Node::Object(Fields::of(self.object(depth)?)),
            b'[' => Node::List(self.list(depth)?),
            b't' => self.word("true", Node::Bool(true))?,
            b'f' => self.word("false", Node::Bool(false))?,
            b'n' => self.word("null", Node::Null)?,
            _ => self.number()?,
        };
        Some(())
    }

    fn object(&mut self, depth: usize) -> Option<Vec<(Cow<'a, str>, Node<'a>)>> {
        self.at += 1;
        let mut fields: Vec<(Cow<'a, str>, Node<'a>)> = Vec::new();
        if self.next()? == b'}' {
            self.at += 1;
            return Some(fields);
        }
        // Most objects get no more, and growing step by step costs more than the space.
        fields.reserve_exact(USUAL_FIELDS);
        let mut seen = Seen::default();
        loop {
            if self.next()? != b'"' {
                return None;
            }
            let key = self.text()?;
            if self.next()? != b':' || seen.has(&fields, &key) {
                return None;
            }
            self.at += 1;
            let (_, node) = fields.push_mut((key, Node::Null));
            self.value(depth + 1, node)?;
            if self.ends(b'}')? {
                return Some(fields);
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Vec<Node<'a>>> {
        self.at += 1;
        let mut items = Vec::new();
        if self.next()? == b']' {
            self.at += 1;
            return Some(items);
        }
        loop {
            self.value(depth + 1, items.push_mut(Node::Null))?;
            if self.ends(b']')? {
                return Some(items);
            }
        }
    }

    /// Whether the list or object ends here with `end`; otherwise consumes a comma.
    #[inline]
    fn ends(&mut self, end: u8) -> Option<bool> {
        let next = self.next()?;
        self.at += 1;
        (next == end || next == b',').then_some(next == end)
    }

    /// The string whose opening quote is next.
    #[expect(
        clippy::inline_always,
        reason = "a text is handed over in registers, or each costs a trip through memory"
    )]
    #[inline(always)]
    fn text(&mut self) -> Option<Cow<'a, str>> {
        match self.borrowed() {
            Some(text) => Some(Cow::Borrowed(text)),
            None => self.escaped().map(Cow::Owned),
        }
    }

    /// The string whose opening quote is next, if it has no escapes.
    fn borrowed(&mut self) -> Option<&'a str> {
        let rest = self.text.get(self.at + 1..)?;
        let (text, end) = rest.split_at_checked(plain(rest.as_bytes()))?;
        if !end.starts_with('"') {
            return None;
        }
        self.at += text.len() + 2;
        Some(text)
    }

    /// The string whose opening quote is next, with escapes.
    #[cold]
    fn escaped(&mut self) -> Option<String> {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        loop {
            match bytes.get(at)? {
                b'\\' => at += 2,
                b'"' => break,
                _ => at += 1,
            }
        }
        let written = self.text.get(self.at..=at)?;
        self.at = at + 1;
        serde_json::from_str(written).ok()
    }

    fn number(&mut self) -> Option<Node<'a>> {
        let rest = &self.text[self.at..];
        let is_part = |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.bytes().take_while(|byte| is_part(*byte)).count();
        let written = &rest[..length];
        self.at += length;
        // Eighteen digits always fit; a zero may only stand alone.
        let is_count = (1..=18).contains(&length)
            && written.bytes().all(|byte| byte.is_ascii_digit())
            && (length == 1 || !written.starts_with('0'));
        if is_count {
            let digit = |sum: u64, byte: u8| sum * 10 + u64::from(byte - b'0');
            return Some(Node::Number(written.bytes().fold(0, digit).into()));
        }
        serde_json::from_str::<Number>(written)
            .ok()
            .map(Node::Number)
    }

    fn word(&mut self, word: &str, node: Node<'a>) -> Option<Node<'a>> {
        let is_next = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += word.len();
        is_next.then_some(node)
    }

    /// The next byte that is not whitespace, without consuming it.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }
}

/// The length of the plain text at the start of `bytes`: up to a quote, an escape, or an invalid
/// byte.
///
/// Eight bytes are examined together. Subtracting one from each byte borrows only from those after
/// it, so the first marked byte is always one of these.
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = ONES << 7;
    let below = |word: u64, least: u8| word.wrapping_sub(ONES * u64::from(least)) & !word & TOPS;
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (at, chunk) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        let marks = is(b'"') | is(b'\\') | below(word, 0x20);
        if marks != 0 {
            return at * 8 + (marks.trailing_zeros() / 8) as usize;
        }
    }
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | ..0x20);
    let within = rest.iter().position(ends).unwrap_or(rest.len());
    chunks.len() * 8 + within
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::MOST;
    use super::*;

    fn read(text: &str) -> Option<Node<'_>> {
        super::read(text, MOST)
    }

    fn careful(text: &str) -> Option<Node<'_>> {
        super::super::careful(text, MOST).ok()
    }

    /// Both parsers must agree whenever the quick one accepts.
    fn agree(text: &str) -> bool {
        let (quick, careful) = (read(text), careful(text));
        quick.is_none() || quick == careful
    }

    #[test]
    fn plain_documents_are_read_and_doubtful_ones_are_not() {
        let good = [
            r#"{"a":[null,true,false,-1,1.5e3,"x\n\u00e9\ud83d\ude00",{}],"b":{"c":[]}}"#,
            "[ 1 , 0, 18446744073709551615,-9223372036854775808, 0.1 ]",
            "\t\"\u{7f}\"\r\n",
            "999999999999999999",
            "-0",
        ];
        for text in good {
            assert_eq!(read(text), careful(text), "{text}");
            assert!(read(text).is_some(), "{text}");
        }
        let bad = [
            "",
            " ",
            "01",
            "-",
            "+1",
            "1.",
            ".5",
            "1e",
            "tru",
            "truex",
            "nul",
            "[1,]",
            "[,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\":1,\"a\":2}",
            "\"\u{1}\"",
            "\"a",
            "\"\\\"",
            "\"\\x\"",
            "\"\\ud800\"",
            "[1]]",
            "1 2",
            "\u{a0}1",
            "NaN",
            "1e999",
            "\u{feff}1",
        ];
        for text in bad {
            assert_eq!(read(text), None, "{text}");
            assert_eq!(careful(text), None, "{text}");
        }
    }

    #[test]
    fn limits_are_kept() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&deep(DEEPEST + 1)).is_some());
        assert_eq!(read(&deep(DEEPEST + 2)), None);
        let long = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        assert!(read(&long(MOST - 1)).is_some());
        assert_eq!(read(&long(MOST)), None);
    }

    #[test]
    fn plain_text_ends_where_it_ends() {
        for length in 0..40 {
            for end in ["\"", "\\", "\n", "\u{1f}", "\0"] {
                for fill in [
                    "a",
                    " ",
                    "!",
                    "#",
                    "[",
                    "]",
                    "\u{7f}",
                    "\u{e9}",
                    "\u{10ffff}",
                ] {
                    let text = format!("{}{end}\"\\\u{1}", fill.repeat(length));
                    assert_eq!(plain(text.as_bytes()), length * fill.len(), "{text:?}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn both_readers_agree(text in r#"([\[\]{},: ]|"[a-b\\"u0-9]{0,3}"?|[0-9.eE+-]{1,4}|true|null|[ -~]){0,14}"#) {
            prop_assert!(agree(&text), "{}", text);
        }

        #[test]
        fn both_readers_agree_about_changed_documents(at in 0_usize..900, byte in 0_u8..128) {
            const WHOLE: &[u8] =
                include_bytes!("../../../../tests/corpus/contracts/assignment_ok_serial.json");
            let mut bytes = WHOLE.to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            let text = String::from_utf8_lossy(&bytes);
            prop_assert!(agree(&text), "{}", text);
        }
    }
}
