use proptest::prelude::*;
use serde_json::json;

use super::*;

fn refusal(text: &str) -> String {
    match parse(text.as_bytes()) {
        Ok(value) => panic!("read as {value}: {text:.200}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn plain_text_is_typed_by_the_core_schema() {
    let cases = [
        ("", json!(null)),
        ("# nothing\n", json!(null)),
        ("---\n...\n", json!(null)),
        ("~", json!(null)),
        ("nUll", json!("nUll")),
        ("no", json!("no")),
        ("yes", json!("yes")),
        ("Off", json!("Off")),
        ("TRUE", json!(true)),
        ("tRue", json!("tRue")),
        ("017", json!(17)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("0b11", json!("0b11")),
        ("1_000", json!("1_000")),
        ("-0", json!(0)),
        ("+12", json!(12)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551615", json!(u64::MAX)),
        ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
        ("1.", json!(1.0)),
        (".5", json!(0.5)),
        ("1e3", json!(1000.0)),
        (".", json!(".")),
        ("1e", json!("1e")),
        ("+", json!("+")),
        ("12:30", json!("12:30")),
        ("2026-02-14", json!("2026-02-14")),
        ("2026-02-14T10:00:00Z", json!("2026-02-14T10:00:00Z")),
        ("'017'", json!("017")),
        ("\"true\"", json!("true")),
        ("!!str 1", json!("1")),
        ("!!int '1'", json!(1)),
        ("!!float 1", json!(1)),
        ("\u{feff}a: 1", json!({"a": 1})),
        ("a: 1\r\nb: 2\r\n", json!({"a": 1, "b": 2})),
        ("%YAML 1.2\n---\na", json!("a")),
        (
            "x: &a [1, &b 2]\ny: *a\nz: *b",
            json!({"x": [1, 2], "y": [1, 2], "z": 2}),
        ),
        ("&k key: 1\nother: *k", json!({"key": 1, "other": "key"})),
        ("'<<': 1", json!({"<<": 1})),
    ];
    for (text, want) in cases {
        assert_eq!(parse(text.as_bytes()).unwrap(), want, "{text:?}");
    }
}

#[test]
fn a_text_with_two_meanings_is_refused() {
    let cases = [
        ("a: 1\na: 2", "line 2, column 1: the key `a` is there twice"),
        (
            "{a: 1, \"a\": 1}",
            "line 1, column 8: the key `a` is there twice",
        ),
        ("a\n---\nb", "line 2, column 1: a second document begins"),
        (
            "1: a",
            "line 1, column 1: a key must be text; put it in quotes",
        ),
        (
            "~: a",
            "line 1, column 1: a key must be text; put it in quotes",
        ),
        ("? [a]\n: b", "line 1, column 3: a key must be text"),
        (
            "a: &x {b: 1}\nc:\n  <<: *x",
            "line 3, column 3: the merge key `<<` is not read",
        ),
        (".nan", "line 1, column 1: `.nan` is not a finite number"),
        ("-.INF", "line 1, column 1: `-.INF` is not a finite number"),
        ("1e999", "line 1, column 1: `1e999` is not a finite number"),
        ("!!int x", "line 1, column 7: `x` does not fit its tag"),
        (
            "!!binary aGk=",
            "line 1, column 10: the tag `!!binary` is not read here",
        ),
        (
            "!custom a",
            "line 1, column 9: the tag `!custom` is not read here",
        ),
        (
            "!!set {a}",
            "line 1, column 7: the tag `!!set` is not read here",
        ),
        (
            "%YAML 1.1\n---\na",
            "line 2, column 1: YAML 1.1 is not read, only 1.2",
        ),
        (
            "a: &x [*x]",
            "line 1, column 8: an alias stands inside of what it names",
        ),
    ];
    for (text, want) in cases {
        assert_eq!(refusal(text), want, "{text:?}");
    }
    for text in [
        "a: *nowhere",
        "a: b: c",
        "[1, 2",
        "\"open",
        "a:\n\t- b",
        "a: \u{1}",
        "- a\nb",
    ] {
        assert!(refusal(text).starts_with("line "), "{text:?}");
    }
    assert!(matches!(parse(b"a: \xff"), Err(ReadError::NotText(3))));
    let large = vec![b' '; LARGEST + 1];
    assert!(matches!(parse(&large), Err(ReadError::TooLarge { .. })));
}

#[test]
fn nesting_ends_where_it_ends_in_json() {
    let flow = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(flow(DEEPEST + 1).as_bytes()).is_ok());
    assert!(provost_evidence::json::parse(flow(DEEPEST + 1).as_bytes()).is_ok());
    assert!(parse(flow(DEEPEST + 2).as_bytes()).is_err());
    assert!(provost_evidence::json::parse(flow(DEEPEST + 2).as_bytes()).is_err());
    // An alias must not nest deeper than written-out text.
    let deep = format!("- &a {}\n- [*a]", flow(DEEPEST));
    assert!(refusal(&deep).ends_with("nested deeper than 64 levels"));
    for opening in [
        "[", "{a: ", "- ", "? ", "a:\n", "&a [", "!!seq [", "{? ", "[{",
    ] {
        let endless = opening.repeat(1_000_000 / opening.len());
        assert!(parse(endless.as_bytes()).is_err(), "{opening:?}");
    }
}

#[test]
fn aliases_cannot_multiply_beyond_the_limits() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let list = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb += &format!("a{level}: &a{level} [{list}]\n");
    }
    assert!(refusal(&bomb).ends_with("more than 500000 values"));
    let long = "x".repeat(1_000_000);
    let heavy = format!("- &a {long}\n{}", "- *a\n".repeat(100));
    assert!(refusal(&heavy).ends_with("aliases copy more than 16777216 bytes"));
    let anchors = "&a [".repeat(64);
    let nested = format!("{anchors}{}", "x, ".repeat(100_000));
    assert!(parse(nested.as_bytes()).is_err());
    let many = format!("[{}0]", "0,".repeat(MOST));
    assert!(refusal(&many).ends_with("more than 500000 values"));
}

proptest! {
    /// JSON is YAML, so both readers must agree about every JSON text.
    #[test]
    fn json_reads_the_same(value in any_json(), pretty in any::<bool>()) {
        let text = if pretty {
            serde_json::to_string_pretty(&value).unwrap()
        } else {
            value.to_string()
        };
        prop_assert_eq!(parse(text.as_bytes()).unwrap(), value);
    }

    /// What is written is read as the same value.
    #[test]
    fn what_is_written_reads_the_same(value in any_json(), odd in any::<String>()) {
        let value = json!({ "value": value, "odd": odd, odd.clone(): [odd, {}, []] });
        prop_assert_eq!(parse(render(&value).as_bytes()).unwrap(), value);
    }

    #[test]
    fn any_text_has_an_answer(text in "[-a-c0-9:{}\\[\\]&*!?|>'\"%#@` \t\r\n,.~<\u{feff}\u{85}]{0,60}") {
        let _ = parse(text.as_bytes());
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|number| json!(number)),
        any::<u64>().prop_map(|number| json!(number)),
        "[ -~\u{e9}\u{1f600}]{0,12}".prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            proptest::collection::btree_map("[ -~]{0,8}", inner, 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}
