//! The commit messages of an accepted run.

use crate::object::Oid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitText {
    pub(super) objective: String,
    pub(super) run_id: String,
    pub(super) contract_sha256: String,
}

impl CommitText {
    /// The message of a commit of `tree`.
    pub fn message(&self, tree: &Oid) -> String {
        let (subject, body) = subject_and_body(&self.objective);
        let gap = if body.is_empty() { "" } else { "\n\n" };
        format!(
            "{subject}\n\n{body}{gap}Provost-Run: {}\nProvost-Contract: {}\nProvost-Tree: {tree}\n",
            self.run_id, self.contract_sha256,
        )
    }
}

/// The longest subject of a commit, in characters.
const SUBJECT: usize = 72;

/// The first line of an objective and the rest; a first line too long for a subject is cut there
/// and repeated in the body.
pub fn subject_and_body(objective: &str) -> (String, &str) {
    let objective = objective.trim();
    let (first, rest) = objective.split_once('\n').unwrap_or((objective, ""));
    let first = first.trim_end();
    if first.chars().count() <= SUBJECT {
        return (first.to_owned(), rest.trim());
    }
    let kept: String = first.chars().take(SUBJECT - 1).collect();
    (format!("{}…", kept.trim_end()), objective)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_says_its_subject_once() {
        let long = "word ".repeat(20);
        let cut = format!("{}w…", "word ".repeat(14));
        let cases = [
            ("Fix it", "Fix it", ""),
            ("  Fix it\n", "Fix it", ""),
            ("Fix it\r\n\n- here\n- there\n", "Fix it", "- here\n- there"),
            (long.as_str(), cut.as_str(), long.trim()),
        ];
        for (objective, subject, body) in cases {
            assert_eq!(subject_and_body(objective), (subject.to_owned(), body));
        }
    }
}
