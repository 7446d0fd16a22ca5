//! Finds by experiment what a field does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use provost_core::code::Code;
use provost_core::contract::additions::AdditionsFrom;
use provost_core::contract::check::{self, Purpose, Rules};
use provost_core::contract::{self, Contract};
use provost_core::document::{self, Format};
use provost_core::gate::command::{CommandPolicy, Trust};
use provost_core::package::Operation;
use provost_core::schema::validate::validate;
use provost_core::schema::{TASK_CONTRACT, find};
use provost_core::verdict::Verdict;
use provost_formats::child_package;
use provost_formats::schema::FOREIGN;
use serde_json::{Value, json};

use super::sample;
use crate::Result;

pub(super) struct Row {
    /// Whether it is required.
    pub(super) needed: &'static str,
    /// Its use: consumed, carried, refused, written or absent.
    pub(super) usage: &'static str,
    /// By which rules.
    pub(super) by: Vec<String>,
}

pub(super) type Rows = BTreeMap<String, Row>;

/// Answer of a reader to a document.
pub(super) enum Said {
    /// It is accepted, with this result.
    Holds(String),
    /// It is refused, by these rules.
    Refused(BTreeSet<String>),
}

/// Whether a field is probed, by its name.
pub(super) type Chosen<'a> = &'a dyn Fn(&str) -> bool;

/// The codes that are about shape alone.
const OF_SHAPE: [&str; 2] = ["INPUT_INVALID", "the schema"];

/// Changes every field of `document`, and asks `judge` each time.
fn probe(document: &Value, judge: &dyn Fn(&Value) -> Said) -> Result<Rows> {
    probe_some(document, (&[], &|_| true), judge)
}

/// The same for the fields that `chosen` selects by name, with `words` that the format knows.
pub(super) fn probe_some(
    document: &Value,
    (words, chosen): (&[Value], Chosen<'_>),
    judge: &dyn Fn(&Value) -> Said,
) -> Result<Rows> {
    let Said::Holds(before) = judge(document) else {
        return Err("the example itself is refused".into());
    };
    let mut places = Vec::new();
    walk(document, "", &mut places);
    let pool = pool(document, &places, words);
    let mut rows = Rows::new();
    for place in places {
        let name = general(document, &place);
        if !chosen(&name) {
            continue;
        }
        let mut codes = BTreeSet::new();
        let mut decides = false;
        let here = document.pointer(&place).unwrap_or(&Value::Null);
        for value in others(here, &pool) {
            let mut other = document.clone();
            if let Some(here) = other.pointer_mut(&place) {
                *here = value;
            }
            match judge(&other) {
                Said::Refused(by) => codes.extend(by),
                Said::Holds(after) => decides |= after != before,
            }
        }
        decides |= codes.iter().any(|code| !OF_SHAPE.contains(&code.as_str()));
        let needed = needed(document, &place, judge);
        let row = rows.entry(name).or_insert(Row {
            needed,
            usage: "carried",
            by: Vec::new(),
        });
        if decides {
            row.usage = "consumed";
        }
        codes.extend(row.by.drain(..));
        row.by = codes.into_iter().collect();
    }
    contain(&mut rows);
    Ok(rows)
}

/// What contains a consumed field is consumed itself.
fn contain(rows: &mut Rows) {
    let consumed: Vec<String> = rows
        .iter()
        .filter(|(_, row)| row.usage == "consumed")
        .map(|(name, _)| name.clone())
        .collect();
    for (name, row) in rows {
        let is_below = |other: &String| {
            let rest = other.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.starts_with('.') || rest.starts_with("[]"))
        };
        if consumed.iter().any(is_below) {
            row.usage = "consumed";
        }
    }
}

/// Values to try. Those of other fields show what must differ and what must be equal; `words` are
/// those that the format knows.
fn pool(document: &Value, places: &[String], words: &[Value]) -> Vec<Value> {
    let mut pool = vec![
        json!(3),
        json!(99_999_999),
        json!(true),
        json!(false),
        json!(""),
        json!(" "),
        json!("other"),
        json!("-x"),
        json!("ab".repeat(32)),
    ];
    let there = places.iter().filter_map(|place| document.pointer(place));
    for value in there.chain(words) {
        if (value.is_string() || value.is_number()) && !pool.contains(value) {
            pool.push(value.clone());
        }
    }
    pool
}

/// Replacements for `here`: other types, and other values of the same type.
fn others(here: &Value, pool: &[Value]) -> Vec<Value> {
    let mut others = vec![
        json!(null),
        json!(-1),
        json!("other"),
        json!([]),
        json!({}),
        json!(true),
    ];
    let same = |value: &&Value| match here {
        Value::String(_) => value.is_string(),
        // A field that may be null could be anything else.
        Value::Null => true,
        Value::Number(_) => value.is_number(),
        Value::Bool(_) => value.is_boolean(),
        Value::Array(_) | Value::Object(_) => false,
    };
    others.extend(pool.iter().filter(same).cloned());
    if let Value::Array(items) = here {
        for value in pool.iter().filter(|value| value.is_string()) {
            let mut longer = items.clone();
            longer.push(value.clone());
            others.push(Value::Array(longer));
        }
    }
    others
}

/// The words that `schema` knows.
pub(super) fn words_of(schema: &Value, found: &mut Vec<Value>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| words_of(item, found)),
        Value::Object(words) => {
            let list = words.get("enum").and_then(Value::as_array);
            let only = words.get("const");
            found.extend(list.into_iter().flatten().chain(only).cloned());
            words.values().for_each(|word| words_of(word, found));
        }
        _ => {}
    }
}

fn needed(document: &Value, place: &str, judge: &dyn Fn(&Value) -> Said) -> &'static str {
    let mut without = document.clone();
    let Some((parent, field)) = place.rsplit_once('/') else {
        return "yes";
    };
    match without.pointer_mut(parent) {
        Some(Value::Object(fields)) => fields.remove(&plain(field)),
        _ => return "",
    };
    match judge(&without) {
        Said::Refused(_) => "yes",
        Said::Holds(_) => "no",
    }
}

pub(super) fn walk(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                found.push(format!("{at}/{name}"));
                walk(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                walk(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

fn plain(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// Names of objects whose keys are data.
const MAPS: [&str; 2] = ["files", "evidence_hashes"];

/// The JSON pointer as a field name, with `*` for elements of lists and keys of maps.
pub(super) fn general(document: &Value, place: &str) -> String {
    let mut name = String::new();
    let mut here = Some(document);
    let mut above = String::new();
    for step in place.split('/').skip(1) {
        let is_list = here.is_some_and(Value::is_array);
        let is_map = MAPS.contains(&above.as_str());
        here = here.and_then(|here| match here {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            other => other.get(plain(step)),
        });
        above = plain(step);
        if is_list {
            name += "[]";
        } else if is_map {
            name += ".*";
        } else {
            let gap = if name.is_empty() { "" } else { "." };
            name += &format!("{gap}{above}");
        }
    }
    name
}

fn read(root: &Path, path: &str) -> Result<Value> {
    let bytes = fs::read(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
    let format = Format::of_name(path).unwrap_or(Format::Json);
    Ok(document::parse(format, &bytes).map_err(|error| format!("{path}: {error}"))?)
}

/// The fields of a foreign format.
pub(super) fn foreign(root: &Path, name: &str) -> Result<Rows> {
    let mut all = FOREIGN.iter();
    let foreign = all.find(|foreign| foreign.format.is_called(name));
    let foreign = foreign.ok_or_else(|| format!("there is no format `{name}`"))?;
    let example = read(root, &format!("docs/examples/{}", foreign.example))?;
    let mut words = Vec::new();
    words_of(&foreign.format.schema(), &mut words);
    probe_some(&example, (&words, &|_| true), &|value| {
        let verdict = (foreign.judge)(value);
        if verdict.allow {
            return Said::Holds(String::new());
        }
        let rows = verdict
            .details
            .as_ref()
            .and_then(|details| details.get("findings"));
        let rows = rows.and_then(Value::as_array).cloned().unwrap_or_default();
        let code = |row: &Value| row.get("code").and_then(Value::as_str).map(str::to_owned);
        let mut codes: BTreeSet<String> = rows.iter().filter_map(code).collect();
        if codes.is_empty() {
            codes.insert(verdict.code.name().to_owned());
        }
        Said::Refused(codes)
    })
}

/// The fields of the task contract: those of a full example, and those that no run keeps.
pub(super) fn contract(root: &Path, elsewhere: &[(String, String)]) -> Result<Rows> {
    let policy = CommandPolicy::shipped()?;
    let mut example = read(root, "docs/examples/contract-full.json")?;
    example["role_contract"] = read(root, "docs/examples/role_contract.json")?;
    let judge = |value: &Value| {
        let rules = Rules {
            policy: &policy,
            trust: Trust::FromFile,
            purpose: Purpose::Run,
            additions: AdditionsFrom::Nowhere,
        };
        let found = check::check(value, &rules);
        if !found.is_empty() {
            return Said::Refused(found.iter().map(|one| one.code.name().to_owned()).collect());
        }
        let document = contract::from_value(value).ok();
        let held = document
            .and_then(|document| contract::resolve(document, &policy, Trust::FromFile).ok())
            .map(|contract| held_to(&contract));
        Said::Holds(held.unwrap_or_default())
    };
    let mut words = Vec::new();
    words_of(&TASK_CONTRACT.schema(), &mut words);
    let mut rows = probe_some(&example, (&words, &|_| true), &judge)?;
    let whole = sample::of(&TASK_CONTRACT.schema());
    let mut places = Vec::new();
    walk(&whole, "", &mut places);
    for place in places {
        let name = general(&whole, &place);
        if rows.contains_key(&name) {
            continue;
        }
        let refused = refused(&example, &whole, &place, &judge);
        let row = Row {
            needed: "no",
            usage: if refused { "refused" } else { "carried" },
            by: Vec::new(),
        };
        rows.insert(name, row);
    }
    for (field, by) in elsewhere {
        let row = rows.get_mut(field);
        let row = row.ok_or_else(|| format!("`{field}` has no row"))?;
        row.usage = "consumed";
        row.by.push(by.clone());
    }
    contain(&mut rows);
    Ok(rows)
}

/// What a contract requires of a run.
fn held_to(contract: &Contract) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        // The fix loop takes its bounds from the document as written.
        contract.document.timeout_retry,
        contract.scope,
        contract.forbid,
        contract.permit,
        contract.tests,
        contract.time_limit,
        contract.limits,
        contract.result,
        contract.audit,
        contract.loopback,
        contract.accept_mode,
        contract.shares,
        // Requests for children are judged by the document as written.
        contract
            .document
            .x_provost
            .as_ref()
            .map(|more| &more.children),
    )
}

/// Whether a contract with the field of `whole` at `place`, and everything in it, is refused.
fn refused(example: &Value, whole: &Value, place: &str, judge: &dyn Fn(&Value) -> Said) -> bool {
    // The first step that the example lacks brings the field in.
    let mut at = String::new();
    for step in place.split('/').skip(1) {
        let above = at.clone();
        at = format!("{at}/{step}");
        if example.pointer(&at).is_some() {
            continue;
        }
        let mut changed = example.clone();
        let (Some(Value::Object(fields)), Some(value)) =
            (changed.pointer_mut(&above), whole.pointer(&at))
        else {
            return false;
        };
        fields.insert(plain(step), value.clone());
        return matches!(judge(&changed), Said::Refused(_));
    }
    false
}

/// The fields of a report, by its schema; a test compares the schema with the type.
pub(super) fn report(name: &str) -> Result<Rows> {
    let format = find(name).ok_or_else(|| format!("there is no format `{name}`"))?;
    let schema = format.schema();
    let whole = sample::of(&schema);
    let mut rows = probe(&whole, &|value| {
        let misfits = validate(&schema, value);
        if misfits.is_empty() {
            return Said::Holds(String::new());
        }
        Said::Refused(BTreeSet::from(["the schema".to_owned()]))
    })?;
    for row in rows.values_mut() {
        row.usage = "written";
    }
    Ok(rows)
}

/// The fields of a payload about packages.
pub(super) fn package(
    root: &Path,
    operation: Operation,
    payload: &Value,
    fields: &[&str],
) -> Result<Rows> {
    let payload = match payload.as_str() {
        Some(path) => read(root, path)?["input"].clone(),
        None => payload.clone(),
    };
    let chosen = |name: &str| fields.contains(&name);
    probe_some(
        &payload,
        (&[], &chosen),
        &|value| match child_package::answer(operation, value) {
            Ok(answer) => Said::Holds(answer.render().to_string()),
            Err(refusal) => Said::Refused(BTreeSet::from([refusal.code.name().to_owned()])),
        },
    )
}

/// The fields of the answer of deriving a package, below `place`.
pub(super) fn answer(root: &Path, place: &str) -> Result<Rows> {
    let payload = read(root, super::source::DERIVE)?["input"].clone();
    let answer = child_package::answer(Operation::Derive, &payload);
    let answer = answer.map_err(|refusal| refusal.reason)?.render();
    let part = answer.pointer(place).ok_or("the answer has no such part")?;
    let deep = usize::from(!place.is_empty());
    Ok(written(part, deep))
}

/// The fields of the answer of every check.
pub(super) fn verdict() -> Rows {
    let verdict = Verdict::deny(Code::ContractInvalid, "no").with(json!({}));
    written(&serde_json::to_value(&verdict).unwrap_or_default(), 1)
}

/// The fields of `value` that Provost writes, down to depth `deep`; 0 is the first.
fn written(value: &Value, deep: usize) -> Rows {
    let mut places = Vec::new();
    walk(value, "", &mut places);
    let row = |at: &String| {
        let row = Row {
            needed: "",
            usage: "written",
            by: Vec::new(),
        };
        (general(value, at), row)
    };
    let near = |at: &&String| at.matches('/').count() <= deep + 1;
    places.iter().filter(near).map(row).collect()
}

/// The fields of a document that nothing reads or writes.
pub(super) fn absent(fields: &[&str]) -> Rows {
    let row = |field: &&str| {
        let row = Row {
            needed: "",
            usage: "absent",
            by: Vec::new(),
        };
        ((*field).to_owned(), row)
    };
    fields.iter().map(row).collect()
}
