//! Names of the header fields of HTTP.

/// Fields for one connection only; they are not forwarded.
pub const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];

/// `bytes` as the name of a field or method.
pub fn token(bytes: &[u8]) -> Option<&str> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let text = std::str::from_utf8(bytes).ok()?;
    (!bytes.is_empty() && bytes.iter().all(plain)).then_some(text)
}

/// Whether a field of this name controls the message and not its content.
pub fn is_structural(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    HOP_BY_HOP.contains(&name.as_str())
        || ["host", "content-length", "trailer", "expect"].contains(&name.as_str())
}
