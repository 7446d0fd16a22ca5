//! Finds values that are assigned to the name of a secret.

use super::{FoundSecret, SecretKind, is_placeholder};

/// The endings of secrets' names, without case, dashes and underscores.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "signingkey",
    "encryptionkey",
    "credential",
    "credentials",
];

/// Values that describe a secret and are none.
pub(super) const TELLING: &str = "\
    a absent an any bool bytes cached changed cleared default disabled empty enabled env \
    environment expired false found hidden int integer invalid is it masked missing n/a needed \
    new nil no none not null number object ok optional present redacted refreshed rejected \
    removed required revoked rotated see set str string tbd text the this todo true undefined \
    unknown unset unused valid was yes";

/// How a value follows its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// `name=value`.
    Equals,
    /// `name: value`.
    Colon,
    /// `--name value`.
    Flag,
}

pub(super) fn find(text: &str, found: &mut Vec<FoundSecret>) {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_name_byte(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_name_byte(bytes[at]) {
            at += 1;
        }
        // `api key: value` is two words.
        let name = &text[start..at];
        let before = text[..start].trim_end_matches(' ');
        let is_spaced_key = name.eq_ignore_ascii_case("key") && {
            let last = before
                .rsplit(|letter: char| !letter.is_ascii_alphanumeric())
                .next();
            last.is_some_and(|word| {
                ["api", "access", "secret", "private"]
                    .iter()
                    .any(|wanted| word.eq_ignore_ascii_case(wanted))
            })
        };
        let Some(ending) = ending(name).or(is_spaced_key.then_some("apikey")) else {
            continue;
        };
        if let Some(value) = value_after(text, at, name.starts_with("--"))
            && is_secret(text, start, name, ending, &value)
        {
            found.push(FoundSecret {
                range: value.start..value.start + value.text.len(),
                kind: SecretKind::Assigned,
            });
            at = value.start + value.text.len();
        }
    }
}

/// Whether `name` ends like the name of a secret.
pub(super) fn is_name(name: &str) -> bool {
    ending(name).is_some()
}

/// The name of a secret that `name` ends with, at a word boundary.
fn ending(name: &str) -> Option<&'static str> {
    // The longest name has 13 letters and at most a few separators.
    let mut tail = String::new();
    let mut starts = Vec::new();
    for (at, byte) in name.bytes().enumerate().rev() {
        if tail.len() >= 16 {
            break;
        }
        let is_start = at == 0 || !name.as_bytes()[at - 1].is_ascii_alphanumeric();
        let is_hump =
            byte.is_ascii_uppercase() && at > 0 && name.as_bytes()[at - 1].is_ascii_lowercase();
        if byte.is_ascii_alphanumeric() {
            tail.insert(0, char::from(byte.to_ascii_lowercase()));
            if is_start || is_hump {
                starts.push(tail.len());
            }
        }
    }
    let by_length = |length: &usize| tail.len().checked_sub(*length).map(|from| &tail[from..]);
    starts
        .iter()
        .filter_map(by_length)
        .find_map(|word| NAMES.iter().copied().find(|wanted| *wanted == word))
}

struct Value<'a> {
    start: usize,
    text: &'a str,
    sign: Sign,
    is_quoted: bool,
}

/// The value that is assigned to a name that ends at `at`.
fn value_after(text: &str, at: usize, is_flag: bool) -> Option<Value<'_>> {
    let rest = &text[at..];
    let skip = |rest: &str, letters: &[char]| {
        rest.len()
            - rest
                .trim_start_matches(|letter| letters.contains(&letter))
                .len()
    };
    let quote = skip(rest, &['"', '\'', '`', '\\']).min(4);
    let blanks = skip(&rest[quote..], &[' ', '\t']).min(8);
    let mut from = quote + blanks;
    let after = &rest[from..];
    let sign = if after.starts_with("==") || after.starts_with("=>") || after.starts_with("::") {
        return None;
    } else if after.starts_with(":=") {
        from += 2;
        Sign::Equals
    } else if after.starts_with('=') {
        from += 1;
        Sign::Equals
    } else if after.starts_with(':') {
        from += 1;
        Sign::Colon
    } else if is_flag && blanks > 0 && quote == 0 {
        Sign::Flag
    } else {
        return None;
    };
    from += skip(&rest[from..], &[' ', '\t']).min(8);
    let opened = skip(&rest[from..], &['"', '\'', '`', '\\']);
    from += opened;
    let is_quoted = opened > 0;
    let is_end = |letter: char| {
        matches!(letter, '"' | '\'' | '`' | '\n' | '\r' | '\\')
            || (!is_quoted && (letter.is_whitespace() || ",;|)}]".contains(letter)))
    };
    let value = &rest[from..];
    let value = &value[..value.find(is_end).unwrap_or(value.len())];
    (!value.is_empty()).then_some(Value {
        start: at + from,
        text: value,
        sign,
        is_quoted,
    })
}

/// Whether the assigned value is a secret and not a word, a placeholder or code.
fn is_secret(text: &str, start: usize, name: &str, ending: &str, value: &Value<'_>) -> bool {
    let bare = value.text.trim_end_matches(['.', '!', '?', ':']);
    if bare.is_empty() || is_placeholder(bare) {
        return false;
    }
    if TELLING
        .split(' ')
        .any(|word| word.eq_ignore_ascii_case(bare))
    {
        return false;
    }
    let code = [
        "self.", "this.", "os.", "env.", "std.", "process.", "config.", "secrets.",
    ];
    if !value.is_quoted
        && (bare.contains(['(', '<'])
            || bare.contains("::")
            || code.iter().any(|begin| bare.starts_with(begin)))
    {
        return false;
    }
    // `PWD` is also the working directory of a shell.
    if ending == "pwd" && bare.starts_with(['/', '.', '~']) {
        return false;
    }
    let is_lower_word = bare
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let has_shape = bare.len() >= 8 && bare.bytes().any(|byte| byte.is_ascii_digit());
    match value.sign {
        Sign::Equals => true,
        Sign::Flag => has_shape || (bare.len() >= 6 && !bare.starts_with('-')),
        Sign::Colon if value.is_quoted || has_shape => true,
        // `expected token: semicolon` and `password: it was changed` are sentences.
        Sign::Colon => {
            let before = text[..start].trim_end_matches([' ', '\t']);
            let follows_word = before.ends_with(char::is_alphanumeric);
            let is_bare_name = name.len() == ending.len();
            let talks = follows_word && is_bare_name && matches!(ending, "token" | "secret");
            let after = &text[value.start + value.text.len()..];
            let continues = after
                .strip_prefix(' ')
                .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_alphanumeric()));
            !(is_lower_word && (talks || continues))
        }
    }
}
