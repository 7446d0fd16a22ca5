//! Finds the tokens of services by the forms that their documentation describes.
//!
//! A prefix alone is no evidence: `key-` begins ordinary names. What follows it must look
//! machine-made, with digits and letters, and be as long as such a token is.

use super::{FoundSecret, SecretKind, is_placeholder};

/// What follows the prefix of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Letters, digits, `_`, `-` and `.`, at least so many.
    Any(usize),
    /// Lower-case hexadecimal digits, exactly so many.
    Hex(usize),
}
use Rest::{Any, Hex};

/// Prefixes of tokens, in order.
const PREFIXES: &[(&str, Rest)] = &[
    ("AKCp", Any(60)),
    ("API-", Any(25)),
    ("ATATT3xFfGF0", Any(60)),
    ("ATBB", Any(30)),
    ("CCIPAT_", Any(30)),
    ("CCIPRJ_", Any(30)),
    ("CFPAT-", Any(40)),
    ("CLOJARS_", Any(50)),
    ("EZAK", Any(50)),
    ("EZTK", Any(50)),
    ("FLWSECK_TEST-", Any(12)),
    ("FLWSECK-", Any(12)),
    ("GOCSPX-", Any(20)),
    ("GR1348941", Any(20)),
    ("HRKU-", Any(30)),
    ("LTAI5t", Any(16)),
    ("NRAK-", Any(27)),
    ("NRJS-", Any(19)),
    ("PMAK-", Any(50)),
    ("SK", Hex(32)),
    ("bkua_", Any(30)),
    ("cio", Any(32)),
    ("dapi", Hex(32)),
    ("dckr_oat_", Any(20)),
    ("dckr_pat_", Any(20)),
    ("doo_v1_", Any(40)),
    ("dor_v1_", Any(40)),
    ("dp.pt.", Any(40)),
    ("dp.st.", Any(40)),
    ("dt0c01.", Any(60)),
    ("duffel_live_", Any(30)),
    ("figd_", Any(30)),
    ("fio-u-", Any(40)),
    ("fm1r_", Any(40)),
    ("fm2_", Any(40)),
    ("fo1_", Any(30)),
    ("fw_", Any(20)),
    ("glagent-", Any(30)),
    ("glc_", Any(32)),
    ("glcbt-", Any(20)),
    ("gldt-", Any(20)),
    ("glft-", Any(20)),
    ("glimt-", Any(20)),
    ("gloas-", Any(40)),
    ("glptt-", Any(30)),
    ("glrt-", Any(20)),
    ("glsoat-", Any(20)),
    ("gsk_", Any(40)),
    ("hvb.", Any(60)),
    ("hvr.", Any(60)),
    ("hvs.", Any(24)),
    ("ico-", Any(32)),
    ("key-", Hex(32)),
    ("lin_api_", Any(32)),
    ("lin_oauth_", Any(32)),
    ("lsv2_pt_", Any(32)),
    ("lsv2_sk_", Any(32)),
    ("napi_", Any(32)),
    ("nfp_", Any(30)),
    ("ntn_", Any(40)),
    ("nvapi-", Any(40)),
    ("ops_eyJ", Any(40)),
    ("pcsk_", Any(40)),
    ("pnu_", Any(36)),
    ("pplx-", Any(40)),
    ("pscale_oauth_", Any(32)),
    ("pscale_pw_", Any(32)),
    ("pscale_tkn_", Any(32)),
    ("pul-", Hex(40)),
    ("r8_", Any(36)),
    ("rdme_", Any(60)),
    ("re_", Any(28)),
    ("rubygems_", Any(40)),
    ("sb_secret_", Any(24)),
    ("sbp_", Any(36)),
    ("secret_", Any(43)),
    ("shippo_live_", Any(36)),
    ("shpca_", Any(30)),
    ("shppa_", Any(30)),
    ("shpss_", Any(30)),
    ("sntrys_", Any(60)),
    ("sntryu_", Any(60)),
    ("sq0atp-", Any(20)),
    ("sq0csp-", Any(40)),
    ("sqa_", Any(40)),
    ("sqp_", Any(40)),
    ("squ_", Any(40)),
    ("tfp_", Any(40)),
    ("tk-us-", Any(40)),
    ("tskey-", Any(20)),
    ("vcp_", Any(40)),
    ("xai-", Any(60)),
    ("xkeysib-", Any(60)),
    ("xoxe.xoxb-", Any(30)),
    ("xoxe.xoxp-", Any(30)),
];

/// The fewest letters of a token of a service, with its prefix: most words are shorter.
const SHORTEST: usize = 20;

/// The fewest letters and digits in a row that look machine-made: words in names are shorter, or
/// have no digits.
const LEAST_MADE: usize = 12;

/// Signs in addresses and in base64.
const PARTS: &[u8] = b"_-./+=~%:?&@";

/// Texts before a secret that name what it is, and the fewest letters that it has.
const MARKERS: &[(&str, usize)] = &[
    // Registries of npm: a token, or name and password in base64.
    (":_authToken=", 16),
    (":_auth=", 16),
    // Connection strings and signed addresses of Azure.
    ("AccountKey=", 40),
    ("sig=", 40),
    // Addresses that anybody who knows them can post to.
    ("hooks.slack.com/", 36),
    ("/api/webhooks/", 60),
    (".webhook.office.com/", 60),
    // Headers with a scheme of their own.
    ("Authorization: token", 20),
    ("Authorization: SSWS", 20),
    // Configuration of Docker and of Kubernetes.
    ("\"auth\":", 16),
    ("client-key-data:", 100),
];

pub(super) fn is_token(word: &str) -> bool {
    let by_prefix = |(prefix, rest): &(&str, Rest)| {
        word.strip_prefix(prefix).is_some_and(|after| match rest {
            Any(least) => after.len() >= *least && is_made(after),
            Hex(length) => after.len() == *length && is_hex(after) && is_mixed(after),
        })
    };
    word.len() >= SHORTEST && (PREFIXES.iter().any(by_prefix) || is_of_parts(word))
}

/// Whether `value` has a part that no person would choose as a name.
fn is_made(value: &str) -> bool {
    let mut parts = value.split(|letter: char| !letter.is_ascii_alphanumeric());
    parts.any(|part| part.len() >= LEAST_MADE && is_mixed(part))
}

/// Whether `word` has at least two digits and two letters.
fn is_mixed(word: &str) -> bool {
    let count = |kind: fn(&u8) -> bool| word.bytes().filter(kind).take(2).count() == 2;
    count(u8::is_ascii_digit) && count(u8::is_ascii_alphabetic)
}

fn is_hex(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
}

/// Tokens that are known by the lengths of their parts.
fn is_of_parts(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    let alphanumeric = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match parts[..] {
        // Terraform Cloud.
        [name, "atlasv1", secret] => name.len() == 14 && secret.len() >= 60,
        // A bot of Discord: its id in base64, a time, a code.
        [id, time, code] => {
            (24..=28).contains(&id.len())
                && id.starts_with(['M', 'N', 'O'])
                && alphanumeric(id)
                && time.len() == 6
                && (27..=38).contains(&code.len())
                && is_mixed(id)
        }
        // Airtable.
        [name, secret] if name.starts_with("pat") => {
            name.len() == 17 && alphanumeric(name) && secret.len() == 64 && is_hex(secret)
        }
        // Mailchimp: a code, and the data centre.
        [_] => word.rsplit_once("-us").is_some_and(|(code, centre)| {
            let is_centre = matches!(centre.len(), 1 | 2);
            let digits = centre.bytes().all(|byte| byte.is_ascii_digit());
            code.len() == 32 && is_hex(code) && is_mixed(code) && is_centre && digits
        }),
        _ => false,
    }
}

/// Whether `word`, which follows `before`, is the second part of a token with a separator that no
/// other token has.
pub(super) fn is_second_part(before: &str, word: &str) -> bool {
    if let Some(id) = before.strip_suffix(':') {
        // A bot of Telegram: its number and a code.
        let digits = id.bytes().rev().take_while(u8::is_ascii_digit).count();
        return (8..=10).contains(&digits) && word.len() == 35 && word.starts_with("AA");
    }
    let Some(start) = before.strip_suffix("Q~") else {
        return false;
    };
    // A client secret of Azure.
    start.ends_with(|letter: char| letter.is_ascii_digit())
        && (31..=34).contains(&word.len())
        && is_mixed(word)
}

/// Secrets after a text that says what they are.
pub(super) fn marked(text: &str, found: &mut Vec<FoundSecret>) {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || PARTS.contains(byte);
    for (marker, least) in MARKERS {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(marker) {
            let after = after.trim_start_matches([' ', '"']);
            let start = text.len() - after.len();
            let (value, others) = after.split_at(after.bytes().take_while(is_part).count());
            if value.len() >= *least && is_made(value) && !is_placeholder(value) {
                found.push(FoundSecret {
                    range: start..start + value.len(),
                    kind: SecretKind::Token,
                });
            }
            rest = others;
        }
    }
    netrc(text, found);
}

/// `machine HOST login NAME password VALUE`, on one line or several.
fn netrc(text: &str, found: &mut Vec<FoundSecret>) {
    /// How far before the password the host may be.
    const NEAR: usize = 300;
    for (at, word) in text.match_indices("password") {
        let before = &text[..at];
        let near = before.len().saturating_sub(NEAR);
        let near = before
            .char_indices()
            .map(|(start, _)| start)
            .rfind(|start| *start <= near)
            .unwrap_or(0);
        let mut words = before[near..].split_ascii_whitespace().rev();
        let is_login = words.next().is_some() && words.next() == Some("login");
        let is_entry = is_login && words.nth(1).is_some_and(|word| word.ends_with("machine"));
        let rest = &text[at + word.len()..];
        let value = rest.trim_start_matches([' ', '\t']);
        let blanks = rest.len() - value.len();
        let is_end = |letter: char| letter.is_ascii_whitespace() || "\"'".contains(letter);
        let value = value.split(is_end).next().unwrap_or_default();
        if is_entry && blanks > 0 && value.len() >= 6 && !is_placeholder(value) {
            let start = at + word.len() + blanks;
            found.push(FoundSecret {
                range: start..start + value.len(),
                kind: SecretKind::Assigned,
            });
        }
    }
}

#[cfg(test)]
mod tests;
