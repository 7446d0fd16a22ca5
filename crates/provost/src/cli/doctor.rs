//! `provost doctor`: checks that this machine has what runs need, and how to get what is missing.
//!
//! # Invariants
//!
//! - Nothing is guessed: a sandbox is made and attacked, not deduced from version numbers.
//! - Without `--fix` nothing on the machine changes; with it, only our own directories are made
//!   and their permissions narrowed.

mod agents;
mod limits;
mod machine;
mod places;

use clap::Args;
use provost_core::exit::Exit;
use serde::Serialize;

use crate::answer::{Answer, Answered};
use crate::show::neutralise;

/// Check that this machine has what runs need.
#[derive(Args)]
pub(super) struct Doctor {
    /// Create missing directories, and close our directories to other users.
    #[arg(long)]
    fix: bool,
}

/// One thing that was checked.
#[derive(Debug, Clone, Serialize)]
struct Row {
    name: String,
    state: State,
    /// What was found; if something is missing, its exact cause.
    found: String,
    /// The answer of the kernel, where the kernel refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<String>,
    /// The remedy, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    /// No run is possible before this is changed.
    Missing,
    /// Runs are possible, but this limit is not enforced.
    NotEnforced,
    /// Something that it depends on is missing.
    NotTried,
    /// A tier of the sandbox does not stop this on any machine.
    Hole,
    /// A gap of this machine's Landlock that other restrictions of the sandbox close.
    Sealed,
}

impl State {
    fn words(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Missing => "missing",
            Self::NotEnforced => "not enforced",
            Self::NotTried => "not tried",
            Self::Hole => "hole",
            Self::Sealed => "sealed",
        }
    }
}

impl Row {
    fn ok(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state: State::Ok,
            found: found.into(),
            errno: None,
            remedy: None,
        }
    }

    fn missing(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            state: State::Missing,
            ..Self::ok(name, found)
        }
    }

    fn not_enforced(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            state: State::NotEnforced,
            ..Self::ok(name, found)
        }
    }

    fn not_tried(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            state: State::NotTried,
            ..Self::ok(name, found)
        }
    }

    fn hole(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            state: State::Hole,
            ..Self::ok(name, found)
        }
    }

    fn sealed(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            state: State::Sealed,
            ..Self::ok(name, found)
        }
    }

    fn errno(mut self, errno: String) -> Self {
        self.errno = Some(errno);
        self
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

pub(super) fn run(doctor: &Doctor) -> Answer {
    let mut rows = places::programs();
    rows.extend(machine::rows());
    rows.extend(places::directories(doctor.fix));
    rows.extend(policy());
    rows.extend(agents::rows());
    Checkup::of(rows).into()
}

/// Whether the policy that runs take from HEAD can be used.
fn policy() -> Option<Row> {
    let failure = super::agent::policy().err()?;
    let row = Row::missing(provost_core::policy::FILE, failure.reason);
    Some(row.remedy("correct the file and commit it; runs take it from HEAD"))
}

#[derive(Serialize)]
struct Checkup {
    ready: bool,
    rows: Vec<Row>,
}

impl Checkup {
    fn of(rows: Vec<Row>) -> Self {
        Self {
            ready: rows.iter().all(|row| row.state != State::Missing),
            rows,
        }
    }
}

impl Answered for Checkup {
    fn exit(&self) -> Exit {
        if self.ready { Exit::Yes } else { Exit::Lacking }
    }

    fn text(&self) -> String {
        let rows = &self.rows;
        let count = |state| rows.iter().filter(|row| row.state == state).count();
        let width = |row: &Row| row.name.len();
        let width = rows.iter().map(width).max().unwrap_or_default();
        let mut text = String::new();
        for row in rows {
            let words = row.state.words();
            text += &neutralise(&format!("{words:12}  {:width$}  {}\n", row.name, row.found));
            if let Some(remedy) = &row.remedy {
                text += &neutralise(&format!("{:12}  {:width$}  remedy: {remedy}\n", "", ""));
            }
        }
        let elsewhere = rows.iter().any(|row| row.name == places::NO_REPOSITORY);
        let ready = if elsewhere {
            "the machine is ready; a run needs a git repository, and here is none"
        } else {
            "everything that runs need is here"
        };
        text + &match (count(State::Missing), count(State::NotEnforced)) {
            (0, 0) => format!("{ready}\n"),
            (0, open) => format!("{ready}; not enforced: {open}\n"),
            (missing, _) => format!("no run is possible here yet; missing: {missing}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_keeps_a_machine_from_being_ready() {
        let ok = || Row::ok("a", "here");
        let open = || Row::not_enforced("b", "never");
        let missing = || Row::missing("c", "gone").remedy("get it");
        let cases = [
            ("nothing open", vec![ok()], Exit::Yes),
            ("a limit is not kept", vec![ok(), open()], Exit::Yes),
            (
                "one is missing",
                vec![ok(), open(), missing()],
                Exit::Lacking,
            ),
        ];
        for (name, rows, exit) in cases {
            let answer = Answer::from(Checkup::of(rows));
            assert_eq!(answer.exit, exit, "{name}");
            assert_eq!(answer.json["ready"], exit == Exit::Yes, "{name}");
        }
    }

    #[test]
    fn a_row_says_what_is_in_the_way_and_what_to_do() {
        let rows = vec![
            Row::ok("git", "2.40"),
            Row::missing("landlock", "version 3").remedy("a newer kernel"),
        ];
        insta::assert_snapshot!(Checkup::of(rows).text(), @r"
        ok            git       2.40
        missing       landlock  version 3
                                remedy: a newer kernel
        no run is possible here yet; missing: 1
        ");
    }
}
