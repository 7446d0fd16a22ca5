//! Properties of the readers of foreign formats that hold for any bytes.
//!
//! The fuzz targets and the replay of their corpora share these functions.

use std::collections::BTreeMap;

use provost_core::document::{front_matter, toml, yaml};
use provost_core::json::{self, DEEPEST, LARGEST, MOST};
use provost_core::path::RepoPath;
use provost_formats::packet::seal::Stage;
use provost_formats::packet::{self, Evidence, Found, Packet, Source, Strictness};
use serde_json::Value;

/// A value that was read stays within the limits and survives writing and reading; a JSON text that
/// both readers accept has the same value in both.
pub(crate) fn yaml(bytes: &[u8]) {
    // TOML is not the subject of this target, but it must have an answer as well.
    let _ = toml::parse(bytes);
    let Ok(value) = yaml::parse(bytes) else {
        return;
    };
    assert!(bytes.len() <= LARGEST);
    let (values, depth) = measure(&value);
    assert!(values <= MOST && depth <= DEEPEST + 1);
    let again = yaml::parse(yaml::render(&value).as_bytes());
    assert_eq!(again.ok(), Some(value.clone()));
    if let Ok(json) = json::parse(bytes) {
        assert!(same(&json, &value), "{json} is not {value}");
    }
}

/// Whether two values are equal; `-0` is a float to JSON's reader and an integer to YAML.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let in_other = |(key, value): (&String, &Value)| {
                other.get(key).is_some_and(|found| same(value, found))
            };
            one.len() == other.len() && one.iter().all(in_other)
        }
        _ => one == other,
    }
}

/// How many values there are, and how deep.
fn measure(value: &Value) -> (usize, usize) {
    let below: Vec<(usize, usize)> = match value {
        Value::Array(items) => items.iter().map(measure).collect(),
        Value::Object(entries) => entries.values().map(measure).collect(),
        _ => return (1, 0),
    };
    let values = below.iter().map(|(values, _)| values).sum::<usize>();
    let depth = below.iter().map(|(_, depth)| depth).max();
    (values + 1, depth.copied().unwrap_or(0) + 1)
}

/// The body is the end of the text, and the text before it is valid YAML.
pub(crate) fn front_matter(bytes: &[u8]) {
    if let Ok(page) = front_matter::parse(bytes) {
        assert!(bytes.ends_with(page.body.as_bytes()));
        let front = &bytes[..bytes.len() - page.body.len()];
        assert!(
            front
                .strip_prefix(b"\xef\xbb\xbf")
                .unwrap_or(front)
                .starts_with(b"---")
        );
    }
}

/// A packet whose files are parts of the bytes has an answer. It is allowed only with a card,
/// reports and evidence that all exist, and never in the strict profile alone.
pub(crate) fn packet(bytes: &[u8]) {
    let mut parts = bytes.split(|byte| *byte == 0);
    let mut next = || {
        let part = parts.next();
        part.map_or(Source::Missing, |part| Source::Bytes(part.to_vec()))
    };
    let names = Stage::Sealed.files().iter();
    let files: BTreeMap<&str, Source> = names.map(|name| (*name, next())).collect();
    let of = |name: &str| files.get(name).cloned().unwrap_or(Source::Missing);
    let task_card = of(packet::TASK_CARD);
    let found = |(evidence, path): (Evidence, RepoPath)| Found {
        evidence,
        in_repository: of(path.name()),
        in_packet: Source::Missing,
        path,
    };
    let packet = Packet {
        phase_id: "p1",
        directory: RepoPath::try_from("artifacts/subagent_control/p1").ok(),
        evidence: packet::wanted(&task_card).into_iter().map(found).collect(),
        task_card,
        executor_report: of(packet::EXECUTOR_REPORT),
        validator_report: of(packet::VALIDATOR_REPORT),
        seal: None,
    };
    let literal = packet::judge(&packet, Strictness::Literal, None);
    let strict = packet::judge(&packet, Strictness::Strict, None);
    assert!(literal.allow || !strict.allow);
    if literal.allow {
        let there = |source: &Source| matches!(source, Source::Bytes(_));
        assert!(there(&packet.task_card) && there(&packet.executor_report));
        assert!(there(&packet.validator_report));
    }
}
