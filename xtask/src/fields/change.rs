//! Finds the use of the fields of change control (docs/change-control.md).
//!
//! Requests of tools are changed and parsed again. Answers are made by the same writers that serve
//! agents, and searched.

mod answers;

use std::collections::BTreeSet;

use provost_change::finish::claims::{ClaimFacts, ClaimText, judge};
use provost_change::tools::arguments::{ArgumentError, Mode};
use provost_change::tools::{self, Request};
use provost_core::schema::validate::validate;
use serde_json::{Map, Value, json};

use super::probe::{Row, Rows, Said, absent, general, probe_some, walk, words_of};
use crate::Result;

/// What a call of `tool` is understood as.
fn understood(tool: &str, given: &Map<String, Value>) -> Result<String, ArgumentError> {
    let request = Request::read(tool, given)?;
    Ok(match &request {
        Request::Start(asked) => {
            let detail = asked.blast_radius_detail;
            format!("{} {:?} {detail:?}", asked.root, asked.request("")?)
        }
        Request::Finish(asked) => format!("{:?} {:?}", asked.request()?, asked.shown()),
        Request::Contract(asked) if asked.mode == Mode::Budget => {
            format!("{:?} {:?}", asked.budget_run(), asked.strictness)
        }
        Request::Contract(asked) => format!("{:?}", asked.verify()?),
        Request::Claims(asked) => {
            // A text is judged at once, so what the judge refuses is refused here, too.
            let known = ClaimFacts {
                report: None,
                earlier: None,
                health_delta: None,
                wants_citations: asked.require_citations.unwrap_or(true),
            };
            let words = ClaimText::try_from(asked.text.as_str());
            let words = words.map_err(|error| ArgumentError(error.to_string()))?;
            format!("{asked:?} {:?}", judge(&words, &known))
        }
        Request::Analyse(asked) => format!(
            "{} {:?} {:?} {:?} {:?}",
            asked.root,
            asked.settings(),
            asked.baseline()?,
            asked.changed()?,
            asked.ignored()
        ),
        other => format!("{other:?}"),
    })
}

/// Valid requests that have all arguments of a tool between them.
fn examples(tool: &str) -> Option<Vec<Value>> {
    Some(match tool {
        "start_controlled_change" => vec![whole_start()],
        "finish_controlled_change" => {
            let mut by_commit = whole_finish();
            by_commit["diff_ref"] = json!("HEAD");
            vec![whole_finish(), without_files(by_commit)]
        }
        "check_patch_contract" => {
            let mut by_commit = whole_contract();
            by_commit["diff_ref"] = json!("HEAD");
            // Only one name of the earlier run counts, so each must be alone once.
            by_commit["before_run_id"] = Value::Null;
            vec![whole_contract(), without_files(by_commit)]
        }
        "validate_review_claims" => {
            let whole = json!({
                "text": "it is fine", "run_id": "0123abcd", "require_citations": true,
                "patch_health_delta": 3,
            });
            vec![whole]
        }
        "analyze_repository" => {
            let mut by_commit = whole_analysis();
            if let Some(fields) = by_commit.as_object_mut() {
                fields.remove("changed_paths");
            }
            by_commit["git_diff_ref"] = json!("HEAD");
            vec![whole_analysis(), by_commit]
        }
        _ => return None,
    })
}

fn without_files(mut example: Value) -> Value {
    if let Some(fields) = example.as_object_mut() {
        fields.remove("changed_files");
        fields.retain(|_, value| !value.is_null());
    }
    example
}

fn whole_start() -> Value {
    json!({
        "root": ".",
        "scope": {
            "allowed_files": ["src/a.py"], "allowed_related": ["src/b.py"],
            "forbidden": ["secret/*"],
        },
        "intent": "fix it",
        "expected_effects": ["it works"],
        "on_conflict": "block",
        "strictness": "ci",
        "ttl_seconds": 600,
        "blast_radius_depth": "auto",
        "blast_radius_detail": "summary",
        "dirty_scope_policy": "block",
    })
}

fn whole_finish() -> Value {
    json!({
        "intent_id": "one",
        "changed_files": ["src/a.py"],
        "after_run_id": "0123abcd",
        "review_text": "it is fine",
        "claims_text": "nothing is worse",
        "create_receipt": true,
        "auto_clear": true,
        "strictness": "ci",
        "propose_memory": false,
        "detail_level": "summary",
        "patch_trail_detail": "summary",
    })
}

fn whole_contract() -> Value {
    json!({
        "mode": "verify",
        "run_id": "0123abcd",
        "before_run_id": "1123abcd",
        "after_run_id": "2123abcd",
        "intent_id": "one",
        "strictness": "ci",
        "changed_files": ["src/a.py"],
    })
}

fn whole_analysis() -> Value {
    json!({
        "root": ".",
        "analysis_mode": "full",
        "respect_pyproject": true,
        "changed_paths": ["src/a.py"],
        "processes": 1,
        "min_loc": 6,
        "min_stmt": 6,
        "block_min_loc": 20,
        "block_min_stmt": 8,
        "coverage_xml": "coverage.xml",
        "complexity_threshold": 20,
        "coupling_threshold": 10,
        "cohesion_threshold": 4,
        "baseline_path": "baseline.json",
        "metrics_baseline_path": "metrics.json",
        "cache_policy": "reuse",
    })
}

/// The input schema of `tool` in `tools/list`.
fn listed(tool: &str) -> Value {
    let mut all = tools::list().into_iter();
    let found = all.find(|one| one.name == tool);
    found.map(|one| one.input_schema).unwrap_or_default()
}

/// The fields of a request to `tool`; each argument in its schema must be tried.
pub(super) fn request(tool: &str) -> Result<Rows> {
    let examples = examples(tool).ok_or_else(|| format!("no example for `{tool}`"))?;
    let schema = listed(tool);
    let mut words = Vec::new();
    words_of(&schema, &mut words);
    let judge = |value: &Value| {
        let read = value.as_object().map(|given| understood(tool, given));
        if let Some(Ok(read)) = read {
            return Said::Holds(read);
        }
        let mut by = BTreeSet::from(["INPUT_INVALID".to_owned()]);
        // What has a valid shape and is refused nevertheless is refused for its value.
        if validate(&schema, value).is_empty() {
            by.insert("the rules of the tool".to_owned());
        }
        Said::Refused(by)
    };
    let mut all = Vec::new();
    for example in &examples {
        all.push(probe_some(example, (&words, &|_| true), &judge)?);
    }
    let rows = together(&all);
    let names = schema["properties"].as_object().into_iter().flatten();
    for (name, _) in names {
        if !rows.contains_key(name) {
            return Err(format!("`{tool}` takes `{name}`, and no example has it").into());
        }
    }
    Ok(rows)
}

/// Merged rows of several examples; a field that one example lacks is not needed.
fn together(all: &[Rows]) -> Rows {
    let mut rows = Rows::new();
    let names: BTreeSet<String> = all.iter().flat_map(|one| one.keys().cloned()).collect();
    for name in names {
        let found: Vec<&Row> = all.iter().filter_map(|one| one.get(&name)).collect();
        let always = found.len() == all.len() && found.iter().all(|row| row.needed == "yes");
        let consumed = found.iter().any(|row| row.usage == "consumed");
        let by: BTreeSet<&String> = found.iter().flat_map(|row| &row.by).collect();
        let row = Row {
            needed: if always { "yes" } else { "no" },
            usage: if consumed { "consumed" } else { "carried" },
            by: by.into_iter().cloned().collect(),
        };
        rows.insert(name, row);
    }
    rows
}

/// The fields of the answers of `tool`: those that an answer has with a value, and those of
/// `fields` that none has.
pub(super) fn answer(tool: &str, fields: &[&str]) -> Result<Rows> {
    let mut rows = absent(fields);
    for answer in answers::of(tool)? {
        let mut places = Vec::new();
        walk(&answer, "", &mut places);
        for place in places {
            if answer.pointer(&place).is_none_or(Value::is_null) {
                continue;
            }
            let row = Row {
                needed: "",
                usage: "written",
                by: Vec::new(),
            };
            rows.insert(general(&answer, &place), row);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(rows: &Rows, field: &str) -> (&'static str, &'static str) {
        let row = rows.get(field).unwrap();
        (row.needed, row.usage)
    }

    #[test]
    fn an_argument_that_nothing_follows_from_is_not_called_consumed() {
        let rows = request("finish_controlled_change").unwrap();
        assert_eq!(usage(&rows, "propose_memory"), ("no", "carried"));
        assert_eq!(usage(&rows, "detail_level"), ("no", "consumed"));
        assert_eq!(usage(&rows, "intent_id"), ("yes", "consumed"));
    }

    #[test]
    fn of_two_ways_to_say_the_same_neither_is_needed() {
        let rows = request("finish_controlled_change").unwrap();
        for field in ["changed_files", "diff_ref"] {
            assert_eq!(usage(&rows, field), ("no", "consumed"), "{field}");
        }
    }

    #[test]
    fn a_field_that_no_answer_has_is_absent() {
        let rows = answer("finish_controlled_change", &["status", "thanks"]).unwrap();
        assert_eq!(usage(&rows, "status"), ("", "written"));
        assert_eq!(usage(&rows, "thanks"), ("", "absent"));
    }

    #[test]
    fn the_snapshot_has_its_files_in_full_detail_only() {
        let snapshot = |detail| answers::snapshot(detail).unwrap();
        let (full, summary) = (snapshot("full"), snapshot("summary"));
        assert_eq!(full["paths"].as_array().unwrap().len(), 3);
        assert!(summary.get("paths").is_none());
        assert_eq!(full["paths_count"], summary["paths_count"]);
    }
}
