use proptest::prelude::*;

use super::*;

/// Texts with a secret, and its kind.
const SECRETS: &[(&str, SecretKind)] = &[
    ("key sk-a1a1a1a1a1a1a1a1a1a1a1a1", SecretKind::Token),
    ("sk-proj-a1B2c3D4e5F6g7H8i9J0", SecretKind::Token),
    ("sk-proj-abcdefghijklmnopqrst", SecretKind::Token),
    (
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        SecretKind::Token,
    ),
    (
        "Bearer abcdefghijklmnopqrstuvwxyz",
        SecretKind::Authorization,
    ),
    ("sk-ant-api03-abcdefghijklmnop", SecretKind::Token),
    ("sk-ant-abcdefgh", SecretKind::Token),
    ("sk-ant-oat-AbCdEfGh-IjKlMnOp_QrStUvWx", SecretKind::Token),
    ("sk-svcacct-AbCdEfGh-IjKlMnOp", SecretKind::Token),
    ("sk-or-v1-abcdefab", SecretKind::Token),
    (
        "pushed with ghp_abcdefghijklmnopqrstuvwxyz0123456789.",
        SecretKind::Token,
    ),
    ("github_pat_11ABCDEFG0abcdefghijkl_mnop", SecretKind::Token),
    ("glpat-abcdefghijklmnopqrst", SecretKind::Token),
    ("xoxb-123456789012-abcdef", SecretKind::Token),
    ("(AKIAIOSFODNN7EXAMPLE)", SecretKind::Token),
    ("ASIAIOSFODNN7EXAMPLE", SecretKind::Token),
    ("AIzaSyA1234567890abcdefghijklmnopqrstuv", SecretKind::Token),
    ("sk_live_abcdefghij1234", SecretKind::Token),
    (
        "npm_abcdefghijklmnopqrstuvwxyz0123456789",
        SecretKind::Token,
    ),
    ("eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.sig", SecretKind::Token),
    (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        SecretKind::Token,
    ),
    (
        "Authorization: Bearer abc123abc123abc123abc123abc123",
        SecretKind::Authorization,
    ),
    (
        "authorization: bearer abcdefghijkl",
        SecretKind::Authorization,
    ),
    (
        "curl -H 'Authorization: Basic dXNlcjpwYXNz'",
        SecretKind::Authorization,
    ),
    ("sent Bearer a1b2c3d4e5", SecretKind::Authorization),
    (
        "https://user:pa55word@example.invalid/repo",
        SecretKind::UrlPassword,
    ),
    ("postgres://app:hunter2@db:5432/x", SecretKind::UrlPassword),
    ("redis://:hunter2@cache", SecretKind::UrlPassword),
    (
        "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
        SecretKind::PrivateKey,
    ),
    (
        "-----BEGIN OPENSSH PRIVATE KEY----- b3BlbnNz",
        SecretKind::PrivateKey,
    ),
    ("api-key: zzz", SecretKind::Assigned),
    ("api key: zzz", SecretKind::Assigned),
    ("my API key = abcdef", SecretKind::Assigned),
    ("SECRET = qwerty", SecretKind::Assigned),
    ("secret=abc", SecretKind::Assigned),
    ("token=abcdef", SecretKind::Assigned),
    ("token: abcdef", SecretKind::Assigned),
    ("the token: a1b2c3d4", SecretKind::Assigned),
    ("{\"token\": \"abcdef123456\"}", SecretKind::Assigned),
    (
        "{\\\"token\\\": \\\"abcdef123456\\\"}",
        SecretKind::Assigned,
    ),
    ("{'client_secret': 'abc def'}", SecretKind::Assigned),
    ("SERVICE_API_KEY=qwertyuiop", SecretKind::Assigned),
    (
        "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI",
        SecretKind::Assigned,
    ),
    ("authToken=abcdef", SecretKind::Assigned),
    ("password=hunter2hunter2", SecretKind::Assigned),
    ("Password: hunter", SecretKind::Assigned),
    ("password := \"hunter2\"", SecretKind::Assigned),
    ("Server=db;Password=hunter2;", SecretKind::Assigned),
    ("mysql --password hunter2hunter2", SecretKind::Assigned),
    ("mysql --password=hunter2", SecretKind::Assigned),
    ("DB_PASSWD=x1", SecretKind::Assigned),
    ("passphrase: correct-horse", SecretKind::Assigned),
];

/// Texts that mention secrets, or look like them, and hold none.
const HARMLESS: &[&str] = &[
    "",
    "refreshed the token cache and rotated secretary contact",
    "No conflicts, ready for merge",
    "the token: it expires tomorrow",
    "expected token: semicolon",
    "password: required",
    "password: was changed by the user",
    "token: none",
    "token=<redacted>",
    "token=$TOKEN",
    "token=${TOKEN}",
    "token={{ token }}",
    "password=********",
    "api_key=xxxxxxxx",
    "let token = lexer.next(input)",
    "token = self.peek",
    "token == EOF",
    "token => match",
    "token::SecretKind",
    "api_key = os.environ['KEY']",
    "secret: &str",
    "max_tokens=4096",
    "tokens: 1200",
    "token_count=17",
    "tokenizer=fast",
    "keyboard=us",
    "primary_key=17",
    "PWD=/srv/app",
    "secretary: alice",
    "uses bearer authentication for every call",
    "Bearer tokens are rotated",
    "a basic understanding",
    "basic authentication-and-authorization",
    "https://example.invalid/a:b@c",
    "https://user@example.invalid/repo",
    "ssh://git@example.invalid/repo",
    "https://user:<password>@example.invalid",
    "http://[::1]:8080/x",
    "sk-learn estimators",
    "sk-estimator-checks-for-all-modules",
    "task-a1a1a1a1a1a1a1a1a1a1a1a1",
    "-----BEGIN CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----",
    "AKIA is a prefix",
    "AKIAIOSFODNN7EXAMPLEX",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "7b0c2f1e-9a4d-4c3b-8f21-5d6e7a8b9c0d",
    "cargo test -p lexer: 41 passed",
    "npm_config_registry is set in the environment",
];

#[test]
fn secrets_are_found_and_named() {
    for (text, want) in SECRETS {
        let found = find(text);
        assert_eq!(found.first().map(|one| one.kind), Some(*want), "{text}");
    }
}

#[test]
fn talk_about_secrets_is_left_alone() {
    for text in HARMLESS {
        assert_eq!(find(text), [], "{text}");
        assert_eq!(redact(text), *text);
    }
}

#[test]
fn what_was_redacted_holds_no_secret() {
    for (text, _) in SECRETS {
        let clean = redact(text);
        assert_eq!(find(&clean), [], "{text} → {clean}");
        assert!(clean.contains(REDACTED), "{text} → {clean}");
    }
    let text = "use token=abcdef and https://a:hunter2@b/ then go";
    assert_eq!(
        redact(text),
        "use token=[redacted] and https://a:[redacted]@b/ then go"
    );
}

#[test]
#[expect(
    clippy::disallowed_types,
    reason = "the time it takes is what is shown"
)]
fn a_long_text_is_looked_through_quickly() {
    // A linear search takes a moment; one that restarts at each place takes minutes.
    const MOST: std::time::Duration = std::time::Duration::from_secs(10);
    for piece in [
        "token ",
        "://",
        "bearer ",
        "-----BEGIN ",
        "api-key",
        "a_",
        "sig=",
        "password ",
        "é=",
        "\\\"'",
    ] {
        let text = piece.repeat(200_000 / piece.len());
        let began = std::time::Instant::now();
        let found = find(&text);
        assert!(began.elapsed() < MOST, "{piece}: {:?}", began.elapsed());
        assert!(found.is_empty(), "{piece}: {found:?}");
    }
}

const PIECES: &[&str] = &[
    "token",
    "password",
    "api",
    "key",
    "bearer",
    "sk-",
    "-----BEGIN ",
    "PRIVATE KEY-----",
    "://",
    "--",
    ":",
    "=",
    "\"",
    "\\",
    "'",
    " ",
    "@",
    "/",
    ".",
    "é",
    "a",
    "Z",
    "7",
    "abcdefgh1234",
];

proptest! {
    #[test]
    fn no_text_makes_the_search_panic(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12)
    ) {
        let text = pieces.concat();
        let clean = redact(&text).into_owned();
        prop_assert_eq!(find(&clean), vec![], "{}", clean);
    }
}
