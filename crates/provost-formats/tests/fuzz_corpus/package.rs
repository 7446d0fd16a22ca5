//! Properties of the child-package readers that hold for any bytes.
//!
//! The fuzz targets and the replay of their corpora share these functions.

use provost_core::json;
use provost_core::package::{self, Operation};
use provost_formats::child_package;

const OPERATIONS: [Operation; 4] = [
    Operation::Derive,
    Operation::Fingerprint,
    Operation::Handoff,
    Operation::Depth,
];

/// Every payload has an answer by both algorithms, the same one each time. A refusal has a code
/// with a page, and a derived package can be read again.
pub(crate) fn child_package(bytes: &[u8]) {
    let Ok(payload) = json::parse(bytes) else {
        return;
    };
    for operation in OPERATIONS {
        let answers = [
            child_package::answer(operation, &payload),
            package::answer(operation, &payload),
        ];
        for answer in answers {
            match answer {
                Ok(value) => assert_eq!(value.render()["ok"], true),
                Err(refusal) => {
                    let rendered = child_package::render(&refusal);
                    assert_eq!(rendered["ok"], false);
                    assert!(!refusal.reason.is_empty());
                    assert!(refusal.code.page().contains("## What to do"));
                }
            }
        }
    }
    if let Ok(derived) = child_package::answer(Operation::Derive, &payload) {
        let child = serde_json::json!({ "parent": derived.render()["package"] });
        let again = child_package::answer(Operation::Fingerprint, &child);
        let again = again.map(|answer| answer.render()["fingerprint"].clone());
        assert_eq!(
            again.ok().as_ref(),
            Some(&derived.render()["child_fingerprint"])
        );
    }
    let _ = child_package::convert(&payload);
}
