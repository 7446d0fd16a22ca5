//! Judges a change by what its contract wants to be left: the required files, or nothing at all.

use serde_json::{Value, json};

use crate::change::Change;
use crate::code::Code;
use crate::contract::Contract;
use crate::contract::document::OutputType;
use crate::path::RawPath;
use crate::verdict::Verdict;
use crate::wording::counted;

/// The refusal of a change that leaves out files that the contract requires.
pub(super) fn missing_files(contract: &Contract, changes: &[Change]) -> Option<Verdict> {
    let left = |name: &str| {
        let path = RawPath::new(name);
        let change = changes.iter().find(|change| change.path == path);
        change.is_some_and(|change| change.after.is_some())
    };
    let outputs = contract.document.required_outputs.iter();
    let files = outputs.filter(|output| output.r#type == OutputType::File);
    let missing: Vec<&str> = files
        .map(|output| output.name.as_str())
        .filter(|name| !left(name))
        .collect();
    let first = missing.first()?;
    let reason = format!("the contract requires the file `{first}`, and the change has none");
    let row = |path: &&str| json!({ "path": path, "problem": "is required and not in the change" });
    let rows: Vec<Value> = missing.iter().map(row).collect();
    Some(Verdict::deny(Code::OutputInvalid, reason).with(json!({ "findings": rows })))
}

/// Judges a change under a contract for an audit, which permits none.
pub(super) fn audited(verdict: Verdict, changes: &[Change]) -> Verdict {
    if !verdict.allow {
        return verdict;
    }
    if changes.is_empty() {
        return Verdict::allow("nothing changed, as the audit requires");
    }
    let files = counted(changes.len(), "file");
    let reason = format!("the contract is for an audit, and {files} changed");
    let row = |change: &Change| json!({ "path": change.path, "problem": "changed in an audit" });
    let rows: Vec<Value> = changes.iter().map(row).collect();
    Verdict::deny(Code::DiffRefused, reason).with(json!({ "findings": rows }))
}
