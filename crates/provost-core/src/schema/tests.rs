//! Compares schemas and types with each other.

use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::leaf::PATTERNS;
use super::validate::validate;
use super::*;
use crate::json as text;
use crate::record::{Event, Head, Level};

/// Parses a document by its type, and renders it.
type Reader = fn(&Value) -> Result<Value, String>;

fn read<T: DeserializeOwned + Serialize + PartialEq>(value: &Value) -> Result<Value, String> {
    let document: T = text::from_value(value.clone()).map_err(|error| error.to_string())?;
    let rendered = serde_json::to_value(&document).map_err(|error| error.to_string())?;
    let again: T = text::from_value(rendered.clone()).map_err(|error| error.to_string())?;
    assert!(again == document, "does not read back: {rendered}");
    Ok(rendered)
}

const READERS: [(&str, Reader); 14] = [
    ("agent_registry.v1", read::<AgentRegistry>),
    ("evidence_bundle.v1", read::<EvidenceBundle>),
    ("evidence_report.v1", read::<EvidenceReport>),
    ("network_use.v1", read::<NetworkUse>),
    ("orchestrator_event.v1", read::<OrchestratorEvent>),
    ("reexec_report.v1", read::<ReexecReport>),
    ("review_report.v1", read::<ReviewReport>),
    ("run_manifest.v1", read::<RunManifest>),
    ("run_meta.v1", read::<RunMeta>),
    ("sandbox_selftest.v1", read::<SandboxTest>),
    ("task_contract.v1", read::<Document>),
    ("task_result.v1", read::<TaskResult>),
    ("test_report.v1", read::<TestReport>),
    ("work_report.v1", read::<WorkReport>),
];

const WORDS: [&str; 24] = [
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "const",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
];

/// Every keyword of `schema` that the validator does not know.
fn unknown(schema: &Value, found: &mut Vec<String>) {
    let Value::Object(words) = schema else { return };
    for (word, value) in words {
        if !WORDS.contains(&word.as_str()) {
            found.push(word.clone());
        }
        match word.as_str() {
            "properties" | "$defs" => {
                for field in value.as_object().unwrap().values() {
                    unknown(field, found);
                }
            }
            "anyOf" | "oneOf" => {
                for choice in value.as_array().unwrap() {
                    unknown(choice, found);
                }
            }
            "items" | "additionalProperties" => unknown(value, found),
            "pattern" => {
                let known = PATTERNS.iter().any(|known| value == known.pattern);
                assert!(known, "{value}");
            }
            _ => {}
        }
    }
}

#[test]
fn every_word_of_a_schema_is_checked() {
    for format in FORMATS {
        let mut found = Vec::new();
        unknown(&format.schema(), &mut found);
        assert_eq!(found, Vec::<String>::new(), "{}", format.name);
    }
}

#[test]
fn objects_are_closed_and_optional_fields_are_never_null() {
    let schema = find("review_report").unwrap().schema();
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["notes"]["type"], "string");
    assert_eq!(schema["properties"]["produced_diff"]["const"], false);
    let contract = TASK_CONTRACT.schema();
    assert_eq!(contract["properties"]["task_id"]["minLength"], 8);
    assert_eq!(contract["properties"]["allowed_paths"]["minItems"], 1);
}

#[test]
fn a_record_of_a_ledger_is_an_event_of_the_format() {
    let record = Head::genesis().append(Event {
        ts: "2026-01-01T00:00:00Z".to_owned(),
        level: Level::Info,
        event_type: "RUN_OPENED".to_owned(),
        run_id: "run_1".to_owned(),
        task_id: None,
        attempt: Some(1),
        payload: Map::new(),
        trace_id: "trace_1".to_owned(),
    });
    let value = serde_json::to_value(&record).unwrap();
    let format = find("orchestrator_event").unwrap();
    assert_eq!(validate(&format.schema(), &value), []);
    assert_eq!(read::<OrchestratorEvent>(&value), Ok(value));
}

#[test]
fn all_that_does_not_fit_is_found() {
    let schema = find("review_report").unwrap().schema();
    let value = json!({
        "run_id": 1, "reviewer": { "role": "WORKER", "x/y": 0 }, "reviewed_at": "today",
        "verdict": "OK", "summary": "s", "scope_check": { "passed": true, "violations": ["a", 1] },
        "produced_diff": true, "notes": null,
    });
    let rows = validate(&schema, &value);
    let rows: Vec<String> = rows
        .into_iter()
        .map(|row| format!("{} {}", row.path, row.problem))
        .collect();
    let want = [
        "/run_id is a number; string is asked for",
        "/reviewer/role is none of REVIEWER",
        "/reviewer/agent_id is missing",
        "/reviewer/x~1y is an unknown field",
        "/reviewed_at is not a time as RFC 3339 writes it",
        "/verdict is none of PASS, FAIL, BLOCKED",
        "/scope_check/violations/1 is a number; string is asked for",
        "/evidence is missing",
        "/notes is null; string is asked for",
        "/produced_diff is not false",
    ];
    assert_eq!(rows, want);
}

/// Documents that match `schema`.
fn documents(root: &Value, schema: &Value) -> BoxedStrategy<Value> {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(&name[1..]).unwrap().clone();
        return documents(root, &target);
    }
    if let Some(only) = schema.get("const") {
        return Just(only.clone()).boxed();
    }
    if let Some(Value::Array(list)) = schema.get("enum") {
        return proptest::sample::select(list.clone()).boxed();
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(Value::Array(choices)) = schema.get(word) {
            let all: Vec<_> = choices.iter().map(|one| documents(root, one)).collect();
            return proptest::strategy::Union::new(all).boxed();
        }
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => objects(root, schema),
        Some("array") => {
            let least = usize::from(schema.get("minItems").is_some());
            let item = documents(root, &schema["items"]);
            let list = proptest::collection::vec(item, least..3);
            list.prop_map(Value::Array).boxed()
        }
        Some("string") => texts(schema),
        Some("integer") => {
            let least = schema["minimum"].as_i64().unwrap_or(-9);
            let most = schema["maximum"].as_i64().unwrap_or(9);
            (least..=most).prop_map(Value::from).boxed()
        }
        Some("number") => {
            let most = schema["maximum"].as_f64().unwrap_or(1e6);
            (0.0..most).prop_map(Value::from).boxed()
        }
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("null") => Just(Value::Null).boxed(),
        // Anything matches.
        _ => proptest::sample::select(vec![json!(1), json!("x"), json!({ "a": [] })]).boxed(),
    }
}

fn objects(root: &Value, schema: &Value) -> BoxedStrategy<Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let fields = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let mut members = Vec::new();
    for (name, field) in &fields {
        let value = documents(root, field);
        let value = if required.contains(&json!(name)) {
            value.prop_map(Some).boxed()
        } else {
            proptest::option::weighted(0.4, value).boxed()
        };
        let name = name.clone();
        let member = value.prop_map(move |value| value.map(|value| (name.clone(), value)));
        members.push(member.boxed());
    }
    if fields.is_empty() && schema["additionalProperties"].is_object() {
        for name in &required {
            let name = name.as_str().unwrap().to_owned();
            let value = documents(root, &schema["additionalProperties"]);
            members.push(
                value
                    .prop_map(move |value| Some((name.clone(), value)))
                    .boxed(),
            );
        }
    }
    members
        .prop_map(|members| Value::Object(members.into_iter().flatten().collect()))
        .boxed()
}

fn texts(schema: &Value) -> BoxedStrategy<Value> {
    let pattern = schema.get("pattern").and_then(Value::as_str);
    let words = match pattern {
        Some("^[0-9A-Fa-f]{64}$") => "[0-9a-f]{64}",
        Some("^([0-9a-f]{40}|[0-9a-f]{64})$") => "[0-9a-f]{40}",
        Some(_) => "[A-Za-z0-9._-]{1,8}",
        None if schema["format"] == "date-time" => {
            "20[0-9]{2}-0[1-9]-[12][0-9]T0[0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,3})?Z"
        }
        None => "[ -~é]{8,12}",
    };
    words.prop_map(Value::from).boxed()
}

/// Every place in `value`, as a JSON pointer.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(member, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(list) => {
            for (index, item) in list.iter().enumerate() {
                places(item, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// Removes, adds or replaces a value.
fn damage(document: &mut Value, at: usize, kind: u8, other: &Value) {
    let mut all = Vec::new();
    places(document, "", &mut all);
    let place = &all[at % all.len()];
    if kind == 0 {
        let (parent, name) = place.rsplit_once('/').unwrap_or_default();
        let name = name.replace("~1", "/").replace("~0", "~");
        if let Some(Value::Object(members)) = document.pointer_mut(parent) {
            members.remove(&name);
        }
        return;
    }
    let here = document.pointer_mut(place).unwrap();
    match here {
        Value::Object(members) if kind == 1 => {
            members.insert("unknown_field".to_owned(), json!(1));
        }
        _ => *here = other.clone(),
    }
}

fn anything() -> impl Strategy<Value = Value> {
    let values = [
        json!(null),
        json!(-1),
        json!(0.5),
        json!(5_000_000_000_u64),
        json!(""),
        json!("x"),
        json!({}),
        json!(true),
    ];
    proptest::sample::select(values.to_vec())
}

fn any_document() -> impl Strategy<Value = (usize, Value)> {
    (0..READERS.len()).prop_flat_map(|which| {
        let schema = find(READERS[which].0).unwrap().schema();
        documents(&schema, &schema).prop_map(move |document| (which, document))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_fits_a_schema_is_read_and_rendered_and_read_again((which, document) in any_document()) {
        let (name, read) = READERS[which];
        let schema = find(name).unwrap().schema();
        prop_assert_eq!(validate(&schema, &document), []);
        let rendered = read(&document);
        prop_assert!(rendered.is_ok(), "{name}: {rendered:?} {document}");
        prop_assert_eq!(validate(&schema, &rendered.unwrap()), []);
    }

    #[test]
    fn schema_and_type_refuse_the_same(
        (which, mut document) in any_document(), at in any::<usize>(), kind in 0..3u8,
        other in anything(),
    ) {
        let (name, read) = READERS[which];
        damage(&mut document, at, kind, &other);
        let problems = validate(&find(name).unwrap().schema(), &document);
        let answer = read(&document);
        // The type of a contract accepts more: its other rules are checked when it is resolved.
        let looser = name == "task_contract.v1" && answer.is_ok();
        prop_assert!(
            problems.is_empty() == answer.is_ok() || looser,
            "{name}: {problems:?} {answer:?} {document}"
        );
    }
}

mod foreign {
    use serde::Deserialize;

    use super::*;
    use crate::json::Node;
    use crate::schema::leaf::{Cause, Filled, Strictly, UtcTime, Version1};
    use crate::schema::read::FormatReader;

    /// A format with every kind of rule.
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Letter {
        #[schemars(with = "Filled", length(max = 5))]
        title: String,
        #[schemars(length(min = 1))]
        lines: Vec<String>,
        #[schemars(with = "Version1")]
        schema_version: String,
        #[schemars(with = "Option<UtcTime>")]
        sent_at: Option<String>,
        #[serde(default)]
        #[schemars(with = "Strictly<Filled>")]
        sender: Value,
    }

    static LETTER: FormatReader<Letter> = FormatReader::new();

    fn problems(strictness: Strictness, value: Value) -> Vec<(Cause, String)> {
        let misfits = LETTER.read(&Node::from(value), strictness).err();
        let line = |one: validate::Misfit| (one.cause, format!("{} {}", one.path, one.problem));
        misfits.into_iter().flatten().map(line).collect()
    }

    #[test]
    fn all_that_is_wrong_is_found_with_its_cause() {
        let value = json!({
            "schema_version": 1, "title": " ", "lines": [], "sent_at": "2026-01-01T00:00:00+01:00",
        });
        let want = [
            (
                Cause::Wrong,
                "/schema_version is a number; string is asked for",
            ),
            (Cause::Absent, "/title is blank"),
            (Cause::Absent, "/lines is an empty list"),
            (
                Cause::Wrong,
                "/sent_at is not a time in UTC like 2026-01-31T12:00:00Z",
            ),
        ];
        let want = want.map(|(cause, words)| (cause, words.to_owned()));
        assert_eq!(problems(Strictness::Literal, value), want);
        // What follows an unknown version means nothing.
        let value = json!({ "schema_version": "2.0.0", "title": "" });
        let want = "/schema_version is not a version that begins with `1.`";
        assert_eq!(
            problems(Strictness::Literal, value),
            [(Cause::Version, want.to_owned())]
        );
    }

    #[test]
    fn strict_mode_adds_rules() {
        let good = || json!({ "schema_version": "1.0.0", "title": "é́abc", "lines": ["x"] });
        let cases: [(&str, Value, &str); 4] = [
            ("x_colour", json!(1), ""),
            ("colour", json!(1), "/colour is an unknown field"),
            (
                "sender",
                json!(null),
                "/sender is null; string is asked for",
            ),
            (
                "schema_version",
                json!("1.x"),
                "/schema_version is not a version like `1.0.0`",
            ),
        ];
        for (name, other, want) in cases {
            let mut value = good();
            value[name] = other;
            assert_eq!(problems(Strictness::Literal, value.clone()), [], "{name}");
            let found = problems(Strictness::Strict, value);
            let found = found.first().map_or("", |(_, words)| words);
            assert_eq!(found, want, "{name}");
        }
        let read = LETTER
            .read(&Node::from(good()), Strictness::Strict)
            .unwrap();
        assert_eq!(read.lines, ["x"]);
        let published = Format::foreign::<Letter>("letter.v1").schema();
        assert_eq!(published["additionalProperties"], false);
        assert_eq!(published["properties"]["sender"]["pattern"], r"\S");
        assert!(!published.to_string().contains(STRICT));
    }
}
