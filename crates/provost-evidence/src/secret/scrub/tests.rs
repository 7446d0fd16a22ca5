use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|it| it == wanted)
}

/// `text` in pieces of at most these lengths, in turn.
fn pieces<'a>(text: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = text;
    let mut lengths = lengths.iter().cycle();
    std::iter::from_fn(move || {
        let length = (*lengths.next()?).clamp(1, rest.len().max(1));
        let (piece, left) = rest.split_at(length.min(rest.len()));
        rest = left;
        (!piece.is_empty()).then_some(piece)
    })
}

fn streamed(known: &Known, text: &[u8], lengths: &[usize]) -> (Vec<u8>, u64) {
    let mut scrubber = Scrubber::new(known.clone());
    let mut out = Vec::new();
    for piece in pieces(text, lengths) {
        out.extend(scrubber.push(piece));
    }
    out.extend(scrubber.finish());
    (out, scrubber.removed())
}

/// The spellings in which programs pass a value on.
fn spelled(value: &str, how: usize, around: (&str, &str)) -> Vec<u8> {
    let (before, after) = around;
    let json = |text: &str| serde_json::Value::from(text).to_string();
    let percent = |text: &str| -> String {
        let byte = |byte: u8| match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        };
        text.bytes().map(byte).collect()
    };
    match how {
        0 => format!("{before}{value}{after}").into_bytes(),
        1 => json(&format!("{before}{value}{after}")).into_bytes(),
        2 => json(&json(value)).into_bytes(),
        3 => percent(value).into_bytes(),
        _ => STANDARD
            .encode(format!("{before}{value}{after}"))
            .into_bytes(),
    }
}

/// The recognisable parts of a value in the spelling `how`.
fn traces(value: &str, how: usize) -> Vec<Vec<u8>> {
    if how < 4 {
        return vec![value.as_bytes().to_vec(), spelled(value, how, ("", ""))];
    }
    (0..3)
        .map(|before| {
            let text = format!("{}{value}", "\0".repeat(before));
            let from = (before * 8).div_ceil(6);
            STANDARD.encode(&text).as_bytes()[from..text.len() * 8 / 6].to_vec()
        })
        .collect()
}

proptest! {
    #[test]
    fn a_known_value_is_never_given_out(
        value in "[A-Za-z0-9+/=_$\"\\\\.-]{8,60}",
        how in 0_usize..5,
        before in "[ -~\n]{0,80}",
        after in "[ -~\n]{0,80}",
        inner in ("[a-z:]{0,4}", "[a-z]{0,4}"),
        lengths in prop::collection::vec(1_usize..50, 1..6),
    ) {
        let known = Known::new([("API_KEY", value.as_str())]);
        let mut text = before.into_bytes();
        text.extend(spelled(&value, how, (&inner.0, &inner.1)));
        text.extend(after.as_bytes());
        let (out, removed) = streamed(&known, &text, &lengths);
        for trace in traces(&value, how) {
            prop_assert!(!contains(&out, &trace), "{}", String::from_utf8_lossy(&out));
        }
        prop_assert!(removed > 0);
        prop_assert_eq!((out, removed), streamed(&known, &text, &[text.len()]));
        prop_assert!(!known.is_in(&known.scrub(&text).0));
    }

    #[test]
    fn where_bytes_are_split_changes_nothing(
        lines in prop::collection::vec(prop::sample::select(LINES), 0..12),
        lengths in prop::collection::vec(1_usize..70, 1..6),
    ) {
        let known = Known::new([("KEYS", "first line of many\nsecond line of many")]);
        let text = lines.concat();
        let (out, _) = streamed(&known, text.as_bytes(), &lengths);
        let (whole, _) = known.scrub(text.as_bytes());
        let (out, whole) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole));
        prop_assert_eq!(out, whole);
    }
}

const LINES: &[&str] = &[
    "plain words\n",
    "no end of line",
    "\r",
    "token=q7Zp2Lx9Vb4Nw8Rt1Ks6\n",
    "Authorization: Bearer q7Zp2Lx9Vb4Nw8Rt1Ks6\r\n",
    "-----BEGIN PRIVATE KEY-----\n",
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n",
    "-----END PRIVATE KEY-----\n",
    "first line of many\n",
    "second line of many\n",
    "\u{e9}\u{20ac}\n",
];

#[test]
fn what_is_not_evident_stays_readable() {
    let known = Known::default();
    let harmless = [
        "let token = lexer.next(input)",
        "token = parser",
        "password = input",
        "if text.starts_with(\"-----BEGIN PRIVATE KEY-----\") { ended(\"-----END PRIVATE KEY-----\") }",
        "postgres://postgres:postgres@localhost:5432/app",
        "api_key: \"your-api-key-goes-here-1\"",
        "token: 7b0c2f1e-9a4d-4c3b-8f21-5d6e7a8b9c0d",
        "session_token = previous_session_token_of_user_2",
        "error[E0425]: cannot find value `token` in this scope",
        "secret=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "AKIAIOSFODNN7EXAMPLE",
        "password=hunter2",
        "{\"token\": 12345678901234567890}",
    ];
    for text in harmless {
        assert_eq!(known.scrub(text.as_bytes()).1, 0, "{text}");
    }
    let secrets = [
        (
            "key ghp_q7Zp2Lx9Vb4Nw8Rt1Ks6Jd3Fg5Hj0Cm\n",
            "key [redacted]\n",
        ),
        (
            "{\"api_key\":\"q7Zp2Lx9Vb4Nw8Rt1Ks6\",\"n\":1}",
            "{\"api_key\":\"[redacted]\",\"n\":1}",
        ),
        (
            "{\"text\":\"-----BEGIN RSA PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\",\"n\":1}",
            "{\"text\":\"[redacted]\",\"n\":1}",
        ),
        (
            "https://u:q7Zp2Lx9Vb4Nw8Rt@example.invalid",
            "https://u:[redacted]@example.invalid",
        ),
    ];
    for (text, want) in secrets {
        let (clean, removed) = known.scrub(text.as_bytes());
        assert_eq!((&*String::from_utf8_lossy(&clean), removed), (want, 1));
    }
}

#[test]
fn a_variable_is_secret_by_its_name_and_its_value() {
    let cases = [
        ("OPENAI_API_KEY", "q7Zp2Lx9Vb4N", true),
        ("DB_PASSWORD", "hunter2hunter2", true),
        ("STRIPE_KEY", "q7Zp2Lx9Vb4Nw8Rt", true),
        ("STRIPE_KEY", "enter", false),
        ("GITHUB_TOKEN", "short1", false),
        ("GITHUB_TOKEN", "kept-outside-the-box", true),
        ("PWD", "/srv/app1", false),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/x/Key1.json", false),
        ("MYSQL_PASSWORD", "password", false),
        ("HOME", "q7Zp2Lx9Vb4Nw8Rt", false),
        ("TOKEN", "${TOKEN}1aB", false),
    ];
    for (name, value, want) in cases {
        let found = super::super::is_secret_variable(name, value);
        assert_eq!(found, want, "{name}={value}");
    }
    // The placeholder for a secret in a sandbox is not a secret.
    assert!(Known::new([("TOKEN", "kept-outside-the-box")]).is_empty());
    assert_eq!(format!("{:?}", Known::default()), "Known(0 spellings)");
}

#[test]
fn long_lines_are_not_waited_for() {
    let value = "q7Zp2Lx9Vb4Nw8Rt1Ks6";
    let known = Known::new([("TOKEN", value)]);
    let mut scrubber = Scrubber::new(known);
    let mut out = Vec::new();
    // In steps that put the value across every place where a long line can be cut.
    let line = format!("{value} {}", "a".repeat(977));
    for _ in 0..2500 {
        out.extend(scrubber.push(line.as_bytes()));
    }
    assert!(out.len() > LONGEST_LINE, "{}", out.len());
    out.extend(scrubber.finish());
    assert!(!contains(&out, value.as_bytes()));
    assert_eq!(scrubber.removed(), 2500);
}
