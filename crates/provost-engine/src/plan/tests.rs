//! Answers of planners: what is taken fits the schema that the planner was given.

use proptest::prelude::*;
use provost_core::json;
use provost_core::schema::validate::validate;
use provost_testkit::broken_documents::{change, spelled};
use serde_json::{Value, json};

use super::{Task, contract, split};

struct Taken {
    schema: &'static Value,
    valid: Value,
    takes: fn(&str) -> bool,
}

fn planned(text: &str) -> bool {
    let request = "Greet".to_owned();
    let asked = split::tests::asked(Task::Plan { request });
    contract::contract(&asked, text, 1_767_225_600_000).is_ok()
}

fn divided(text: &str) -> bool {
    split::tests::answered(text).is_ok()
}

fn all() -> [Taken; 2] {
    let plan = Taken {
        schema: contract::schema(),
        valid: json!({
            "verdict": "PLAN", "summary": "s", "objective": "Greet", "allow": ["src/a"],
            "forbid": [], "accept": ["pytest -q"], "forbidden_actions": ["x"],
            "permit_oracle": [], "permit_governing": [], "net": [], "minutes": 20,
        }),
        takes: planned,
    };
    let division = Taken {
        schema: split::schema(),
        valid: json!({ "verdict": "PLAN", "summary": "s", "children": [{
            "id": "a", "objective": "a part", "allow": ["lib/a"],
            "accept": ["pytest -q", "cargo test"], "drops": [], "net": [], "minutes": 20,
            "needs": [], "shares": [], "tools": [] }] }),
        takes: divided,
    };
    [plan, division]
}

#[test]
fn a_valid_answer_is_taken_and_one_that_lacks_a_field_is_not() {
    for taken in all() {
        assert_eq!(validate(taken.schema, &taken.valid), []);
        assert!((taken.takes)(&taken.valid.to_string()), "{}", taken.valid);
        let fields = taken.valid.as_object().unwrap();
        let list = Value::Array(fields.values().cloned().collect());
        assert!(!(taken.takes)(&list.to_string()), "{list}");
        for name in taken.schema["required"].as_array().unwrap() {
            let mut lacking = fields.clone();
            lacking.remove(name.as_str().unwrap());
            let text = Value::Object(lacking).to_string();
            assert!(!(taken.takes)(&text), "without {name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_taken_from_a_planner_fits_the_schema_it_was_given(
        which in 0..2_usize, how in 0..24_u8,
        changes in prop::collection::vec(change(), 0..3),
    ) {
        let taken = &all()[which];
        let mut document = taken.valid.clone();
        for change in &changes {
            change.apply(&mut document);
        }
        let text = spelled(&document, how);
        if (taken.takes)(&text) {
            let read = json::parse(text.as_bytes());
            prop_assert!(read.is_ok(), "{text}");
            let misfits = validate(taken.schema, &read.unwrap());
            prop_assert!(misfits.is_empty(), "{text}: {misfits:?}");
        }
    }
}
