//! What the fields of a request say about the form of its body.

use super::Request;

/// The charsets in which a document reads as it does in UTF-8.
const CHARSETS: [&[u8]; 3] = [b"utf-8", b"utf8", b"us-ascii"];

impl Request {
    /// Why the body may be something else than JSON in UTF-8, if a field says so: a server could
    /// read another document out of the same bytes then.
    pub fn foreign_body(&self) -> Option<&'static str> {
        self.fields.lower().find_map(|(name, value)| {
            // Many servers read `_` in the name of a field as `-`.
            match &*name.replace('_', "-") {
                "content-encoding" if !value.eq_ignore_ascii_case(b"identity") => {
                    Some("is encoded")
                }
                "content-type" if !is_json(value) => Some("is not JSON in UTF-8"),
                _ => None,
            }
        })
    }
}

fn is_json(value: &[u8]) -> bool {
    let mut parts = value.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let is_media = |kind: &[u8]| kind.eq_ignore_ascii_case(b"application/json");
    parts.next().is_some_and(is_media) && parts.all(is_plain_charset)
}

/// Whether a parameter of a media type names a charset that is no other than UTF-8.
fn is_plain_charset(parameter: &[u8]) -> bool {
    let at = parameter.iter().position(|byte| *byte == b'=');
    let Some((name, value)) = at.and_then(|at| parameter.split_at_checked(at)) else {
        return parameter.is_empty();
    };
    let value = value.get(1..).unwrap_or_default();
    let quoted = value.strip_prefix(b"\"");
    let value = quoted
        .and_then(|it| it.strip_suffix(b"\""))
        .unwrap_or(value);
    let known = |charset: &[u8]| value.eq_ignore_ascii_case(charset);
    name.eq_ignore_ascii_case(b"charset") && CHARSETS.into_iter().any(known)
}
