//! Tests of version 1 beside the corpus.

use provost_core::code::Code;
use provost_core::package::{Effect, Operation, Stage};
use provost_core::schema::validate::validate;
use serde_json::{Value, json};

use super::{FORMAT, answer, convert, render};

/// The input of a case of the corpus.
fn input(case: &str) -> Value {
    let whole: Value = serde_json::from_str(case).unwrap();
    whole["input"].clone()
}

fn typical() -> Value {
    input(include_str!(
        "../../../../tests/corpus/child-packages/002-typical-read-only.json"
    ))
}

#[test]
fn a_package_that_is_read_fits_its_schema_and_one_without_a_required_member_does_not() {
    let (schema, whole) = (FORMAT.schema(), typical());
    assert_eq!(validate(&schema, &whole["parent"]), []);
    let required = schema["required"].as_array().unwrap();
    assert!(required.len() > 5, "{required:?}");
    for name in required {
        let mut less = whole.clone();
        let members = less["parent"].as_object_mut().unwrap();
        members.remove(name.as_str().unwrap());
        assert_ne!(validate(&schema, &less["parent"]), [], "{name}");
        let refusal = answer(Operation::Fingerprint, &less).unwrap_err();
        assert_eq!(refusal.stage, Stage::Decode, "{name}");
    }
}

#[test]
fn a_list_where_an_object_belongs_is_refused() {
    let mut whole = typical();
    whole["tool_policy"] = json!(["read_only"]);
    let mut inner = typical();
    inner["parent"]["provider_route"] = json!(["route.main", "model.large", null]);
    let cases = [
        (Operation::Derive, whole, "tool_policy"),
        (Operation::Derive, inner, "parent"),
        (
            Operation::Depth,
            json!({ "depth_budget": [0, 1, 1] }),
            "depth_budget",
        ),
    ];
    for (operation, payload, field) in cases {
        let refusal = answer(operation, &payload).unwrap_err();
        assert_eq!(refusal.stage, Stage::Decode, "{field}");
        assert_eq!(refusal.field.as_deref(), Some(field));
        assert!(refusal.reason.contains("a list"), "{}", refusal.reason);
    }
}

#[test]
fn every_depth_has_an_answer() {
    let budget = |current: u32, max: u32, children: u32| {
        json!({ "depth_budget": {
            "current_depth": current, "max_depth": max, "max_children": children,
        } })
    };
    let cases = [
        (budget(0, 2, 3), Ok(budget(1, 2, 3))),
        (
            budget(u32::MAX - 1, u32::MAX, 1),
            Ok(budget(u32::MAX, u32::MAX, 1)),
        ),
        (budget(u32::MAX, u32::MAX, 1), Err(Code::DepthExhausted)),
        (budget(0, 0, 0), Err(Code::DepthExhausted)),
        (budget(0, 1, 0), Err(Code::ChildrenExhausted)),
    ];
    for (payload, want) in cases {
        let got = answer(Operation::Depth, &payload);
        let got = got.map(|answer| json!({ "depth_budget": answer.render()["child_budget"] }));
        assert_eq!(got.map_err(|refusal| refusal.code), want, "{payload}");
    }
}

#[test]
fn numbers_of_a_payload_are_hashed_as_they_are_written() {
    let mut package = typical();
    let numbers = "[1e16, 1e15, 1e-5, 1e-6, -0, 100.0, 18446744073709551616, 18446744073709551615]";
    package["parent"]["sidecars"] = json!([{
        "sidecar_id": "s", "kind": "k", "version": "v", "refs": [], "policy_refs": [],
        "content_hash": "h", "redacted_payload": serde_json::from_str::<Value>(numbers).unwrap(),
    }]);
    let answer = answer(Operation::Fingerprint, &package).unwrap().render();
    assert_eq!(
        answer["canonical"]["sidecars"][0]["redacted_payload"].to_string(),
        "[1e+16,1000000000000000.0,0.00001,1e-6,-0.0,100.0,1.8446744073709552e+19,\
         18446744073709551615]"
    );
}

#[test]
fn a_refusal_is_sorted_as_the_format_sorts_it() {
    let mut payload = typical();
    payload["child_policy"]["strip_recursive_subagents"] = json!(false);
    let refusal = answer(Operation::Derive, &payload).unwrap_err();
    let rendered = render(&refusal);
    assert_eq!(rendered["ok"], false);
    assert_eq!(rendered["code"], "recursion_not_stripped");
    assert_eq!(rendered["error"]["variant"], "ContractViolation");
    // A payload that could not be read has a field instead.
    let refusal = answer(Operation::Handoff, &json!({})).unwrap_err();
    let rendered = render(&refusal);
    assert_eq!(rendered["error"]["field"], "handoff_policy");
    assert_eq!(rendered["error"]["variant"], Value::Null);
}

#[test]
fn in_our_model_no_capability_of_the_format_only_reads() {
    let package = convert(&typical()).unwrap();
    let mut all = package.delegate.capabilities.iter();
    assert!(all.all(|capability| capability.effect() >= Effect::Delegate));
    assert_eq!(package.exercise.routes.iter().count(), 1);
    let twice = input(include_str!(
        "../../../../tests/corpus/child-packages/019-duplicate-capability-ids-swapped.json"
    ));
    assert_eq!(convert(&twice).unwrap_err().code, Code::PackageDuplicate);
}
