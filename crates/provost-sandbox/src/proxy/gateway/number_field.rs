//! Finds the one number of a request that may be changed, without reading the rest again.
//!
//! The document was read before: it is JSON, no key is repeated, and its depth is limited.

use std::ops::Range;

use provost_core::json;
use provost_core::net::model_api::ModelApi;

/// The same body with its output limit set to `number`, if it has one.
pub fn with_output_limit(api: ModelApi, body: &[u8], number: u64) -> Option<Vec<u8>> {
    Some(NumberField::output_limit(api, body)?.replaced(body, number))
}

/// Where the output limit of a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NumberField(Range<usize>);

impl NumberField {
    fn output_limit(api: ModelApi, body: &[u8]) -> Option<Self> {
        let names: &[&str] = match api {
            ModelApi::Messages => &["max_tokens"],
            ModelApi::Responses => &["max_output_tokens"],
            ModelApi::Chat => &["max_completion_tokens", "max_tokens"],
            ModelApi::Content => {
                let outer = value_of(body, &["generationConfig", "generation_config"])?;
                let names = ["maxOutputTokens", "max_output_tokens"];
                let inner = value_of(&body[outer.clone()], &names)?;
                let found = outer.start + inner.start..outer.start + inner.end;
                return Self::of(body, found);
            }
        };
        Self::of(body, value_of(body, names)?)
    }

    fn of(body: &[u8], range: Range<usize>) -> Option<Self> {
        let is_number = body[range.clone()].iter().all(u8::is_ascii_digit);
        (is_number && !range.is_empty()).then_some(Self(range))
    }

    /// The same body with `number` there.
    fn replaced(&self, body: &[u8], number: u64) -> Vec<u8> {
        let number = number.to_string();
        [
            &body[..self.0.start],
            number.as_bytes(),
            &body[self.0.end..],
        ]
        .concat()
    }
}

/// Where the value of the first field of these names is, in the object that `text` is.
fn value_of(text: &[u8], names: &[&str]) -> Option<Range<usize>> {
    let mut at = text.iter().position(|byte| *byte == b'{')? + 1;
    loop {
        at += blanks(&text[at..]);
        let end = at + string(&text[at..])?;
        let name: String = json::parse_as(&text[at..end]).ok()?;
        at = end + blanks(&text[end..]);
        at += usize::from(*text.get(at)? == b':');
        at += blanks(&text[at..]);
        let end = at + value(&text[at..])?;
        if names.contains(&name.as_str()) {
            return Some(at..end);
        }
        at = end + blanks(&text[end..]);
        match text.get(at)? {
            b',' => at += 1,
            _ => return None,
        }
    }
}

fn blanks(text: &[u8]) -> usize {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    text.iter().take_while(blank).count()
}

/// The length of the string at the beginning of `text`, with its quotes.
fn string(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.first().filter(|byte| **byte == b'"')?;
    for (at, byte) in text.iter().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return Some(at + 1),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

/// The length of the value at the beginning of `text`.
fn value(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at += string(&text[at..])?;
                if depth == 0 {
                    return Some(at);
                }
                continue;
            }
            b'}' | b']' | b',' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return Some(at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    (depth == 0).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lowered(api: ModelApi, body: &str) -> Option<String> {
        let bytes = with_output_limit(api, body.as_bytes(), 7)?;
        Some(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn only_the_number_of_the_output_limit_changes() {
        let cases = [
            (
                ModelApi::Messages,
                r#"{ "a" : [ {"max_tokens":1} ,"}\"" ] , "max_tokens" : 128000 , "b":{}}"#,
                Some(r#"{ "a" : [ {"max_tokens":1} ,"}\"" ] , "max_tokens" : 7 , "b":{}}"#),
            ),
            (
                ModelApi::Responses,
                r#"{"max_output\u005ftokens":99}"#,
                Some(r#"{"max_output\u005ftokens":7}"#),
            ),
            (ModelApi::Chat, r#"{"stream":true,"max_tokens":null}"#, None),
            (
                ModelApi::Content,
                r#"{"contents":[],"generation_config":{"x":"\\","maxOutputTokens":65536}}"#,
                Some(r#"{"contents":[],"generation_config":{"x":"\\","maxOutputTokens":7}}"#),
            ),
            (ModelApi::Messages, "{}", None),
            (ModelApi::Messages, r#"{"max_tokens":"9"}"#, None),
        ];
        for (api, body, want) in cases {
            assert_eq!(lowered(api, body).as_deref(), want, "{body}");
        }
    }
}
