//! What a contract may leave to a person: questions while the agent works, and the user's own files.

use super::document::Document;
use super::problem::Problems;
use crate::approval;

/// Reports a contract whose agent could not ask, or not use the answer.
pub(super) fn asking(document: &Document, without_sockets: bool, problems: &mut Problems) {
    let place = "/x_provost/may_ask";
    if without_sockets {
        let problem = "needs a sandbox of tier `namespaces`, and the contract asks for `landlock`";
        problems.add(place, problem);
    }
    if document.audit_only == Some(true) {
        problems.add(
            place,
            "is for a contract that changes files, and this is an audit",
        );
    }
}

/// Reports a contract that cannot have access to everything of the user.
pub(super) fn wide(document: &Document, reason: &str, landlock: bool, problems: &mut Problems) {
    let place = approval::FULL_ACCESS;
    if reason.trim().is_empty() {
        problems.add(place, "needs a reason");
    }
    if landlock {
        let problem = "needs a sandbox of tier `namespaces`: `landlock` masks nothing";
        problems.add(place, problem);
    }
    if document.audit_only == Some(true) {
        problems.add(place, "is not for an audit, which changes nothing");
    }
    let extension = document.x_provost.as_ref();
    if extension.is_some_and(|extension| extension.children.is_some()) {
        problems.add(
            place,
            "does not go together with children, which would get it too",
        );
    }
    let author = extension.and_then(|extension| extension.author.as_deref());
    if author.is_some_and(approval::is_agent) {
        problems.add(
            place,
            "is asked for by a person only, and an agent wrote the contract",
        );
    }
}
