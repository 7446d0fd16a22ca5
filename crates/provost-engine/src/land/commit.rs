//! The commit that lands, as people read it in `git log`: the user is its author, the agent a
//! co-author, and trailers name the run and its bundle.
//!
//! It is written once, recorded with a signature of this user before the target moves, and reused
//! by every later landing of the same tree on the same parent.

use provost_core::bundle::layout::MANIFEST;
use provost_core::code::Code;
use provost_core::foreign_text::{neutralise, one_line};
use provost_core::object::{Oid, sha256};
use provost_core::path::RawPath;
use provost_core::run::State;
use provost_core::run::effect::subject_and_body;
use provost_core::run::refs::Kind;
use provost_core::time;

use super::LandAfterSeal;
use crate::bundle::after::{Candidate, LandCommit};
use crate::ports::PortError;

/// A name and an address, as git writes them into a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitPerson {
    pub name: String,
    pub email: String,
}

/// The user who lands, as `git commit` would name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitPeople {
    pub author: CommitPerson,
    pub committer: CommitPerson,
}

/// A commit to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitOrder {
    pub tree: Oid,
    pub parent: Oid,
    pub people: CommitPeople,
    /// Seconds since 1970, for both dates.
    pub seconds: i64,
    pub message: String,
    /// The ref prefix for commits of this run.
    pub refs: String,
}

impl CommitOrder {
    /// The bytes of the commit without a signature.
    pub fn object(&self) -> String {
        let person = |person: &CommitPerson| {
            let CommitPerson { name, email } = person;
            format!("{name} <{email}> {} +0000", self.seconds)
        };
        let (tree, parent, message) = (&self.tree, &self.parent, &self.message);
        let CommitPeople { author, committer } = &self.people;
        let (author, committer) = (person(author), person(committer));
        format!("tree {tree}\nparent {parent}\nauthor {author}\ncommitter {committer}\n\n{message}")
    }
}

/// The ref prefix for commits of this run.
pub(super) fn refs(state: &State) -> String {
    Kind::Merged.of_run(&state.names.run_id)
}

/// Writes and records the commit that brings `candidate` to its parent.
pub(super) fn write(
    after_seal: &mut LandAfterSeal<'_, '_>,
    candidate: &Candidate,
    people: CommitPeople,
) -> Result<LandCommit, PortError> {
    let manifest = after_seal.ports.sealed.files()?;
    let manifest = manifest.read(&RawPath::new(MANIFEST));
    let manifest = manifest.map_err(|what| PortError::new(Code::EvidenceIncomplete, what))?;
    let now = after_seal.now()?;
    let millis = time::parse(now.as_str()).map_err(|error| PortError::of(Code::Bug, error))?;
    let order = CommitOrder {
        tree: candidate.tree.clone(),
        parent: candidate.parent.clone(),
        people,
        seconds: millis / 1000,
        message: message(&after_seal.state, &sha256(&manifest)),
        refs: refs(&after_seal.state),
    };
    let commit = after_seal.ports.target.write_commit(&order)?;
    if !commit.is_consistent() || !commit.is_of(candidate) {
        let reason = "git made another commit than it was asked for";
        return Err(PortError::new(Code::GitFailed, reason));
    }
    after_seal.written(&commit)?;
    Ok(commit)
}

/// The message of the commit. A user or an agent wrote the objective, so it is neutralised; only
/// the last paragraph is read as trailers.
fn message(state: &State, manifest_sha256: &str) -> String {
    let run_id = &state.names.run_id;
    let objective = &state.opened.contract.inputs.spec;
    let mut trailers = format!("Provost-Run: {run_id}\nProvost-Bundle: sha256:{manifest_sha256}\n");
    // Work that exists already may be a person's own.
    if !state.opened.agent.is_empty() {
        trailers += &format!("Co-authored-by: {}\n", co_author(state));
    }
    text(objective, run_id, &trailers)
}

fn text(objective: &str, run_id: &str, trailers: &str) -> String {
    let objective = neutralise(&objective.replace("\r\n", "\n"));
    let (subject, body) = subject_and_body(&objective);
    let subject = match subject.as_str() {
        "" => format!("Land {run_id}"),
        _ => subject.replace('\t', " "),
    };
    let gap = if body.is_empty() { "" } else { "\n\n" };
    format!("{subject}\n\n{body}{gap}{trailers}")
}

/// The agent, with the address that it signs its own commits with. Another program gets an address
/// that can belong to no account.
fn co_author(state: &State) -> String {
    let adapter = state.opened.adapted.as_ref().map(|it| it.adapter.name());
    match adapter {
        Some("claude") => "Claude <noreply@anthropic.com>".to_owned(),
        Some("codex") => "Codex <noreply@openai.com>".to_owned(),
        Some("gemini") => "Gemini <noreply@google.com>".to_owned(),
        Some(_) | None => {
            let program = state.opened.agent.first().map_or("", String::as_str);
            let program = program.rsplit('/').next().unwrap_or_default();
            let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
            let name: String = one_line(program).chars().filter(|it| plain(*it)).collect();
            let name = if name.is_empty() { "agent" } else { &name };
            format!("{name} <{name}@provost.invalid>")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAILERS: &str = "Provost-Run: run_x\n";

    #[test]
    fn a_message_has_one_subject_and_trailers_of_our_own() {
        let long = "word ".repeat(20);
        let cut = format!("{}w…", "word ".repeat(14));
        let cases = [
            ("Fix it", "Fix it\n\n".to_owned()),
            ("Fix\tit\r\n\r\nWhy.\r\n", "Fix it\n\nWhy.\n\n".to_owned()),
            ("\u{1b}[2JFix", "\\u{1b}[2JFix\n\n".to_owned()),
            ("  ", "Land run_x\n\n".to_owned()),
            (
                "Fix\n\nSigned-off-by: X <x@y>\n",
                "Fix\n\nSigned-off-by: X <x@y>\n\n".to_owned(),
            ),
            (&long, format!("{cut}\n\n{}\n\n", long.trim())),
        ];
        for (objective, want) in cases {
            let message = text(objective, "run_x", TRAILERS);
            assert_eq!(message, want + TRAILERS, "{objective:?}");
            assert!(message.lines().next().unwrap().chars().count() <= 72);
        }
    }
}
