//! Promises of a contract about what is left and what is restored, which a run may be unable to keep.

use super::document::{Document, OutputType, RollbackStrategy};
use super::paths;
use super::problem::Problems;
use crate::path::RepoPath;

/// Refused work is dropped with its private workspace, in every case. A revert would need a commit,
/// and nothing is committed before it is accepted.
pub(super) fn rollback(document: &Document, problems: &mut Problems) {
    match document.rollback.strategy {
        RollbackStrategy::WorktreeDrop | RollbackStrategy::GitResetHard => {}
        RollbackStrategy::GitRevertCommit => problems.add(
            "/rollback/strategy",
            "needs a commit to revert, and nothing is committed before it is accepted",
        ),
    }
    let target = document.rollback.target_ref.as_ref();
    if target.is_some_and(|target| *target != document.rollback.baseline_ref) {
        let problem =
            "is not `baseline_ref`, and refused work is dropped: nothing else is restored";
        problems.add("/rollback/target_ref", problem);
    }
}

/// Reports required files that no run under the contract could leave.
pub(super) fn outputs(document: &Document, problems: &mut Problems) {
    let mut ignored = Problems::default();
    let scope = paths("", &document.allowed_paths, &mut ignored);
    for (at, output) in document.required_outputs.iter().enumerate() {
        if output.r#type != OutputType::File {
            continue;
        }
        let place = format!("/required_outputs/{at}");
        if document.audit_only == Some(true) {
            let problem = "is a new or changed file, and an audit leaves none";
            problems.add(format!("{place}/type"), problem);
        }
        let path = RepoPath::try_from(output.name.as_str());
        if !path.is_ok_and(|path| scope.covers(&path)) {
            let problem = "names the file that is required, and is no path below `allowed_paths`";
            problems.add(format!("{place}/name"), problem);
        }
    }
}
