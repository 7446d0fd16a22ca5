//! Tells the user that a run has ended: by the bell of the terminal, on the desktop, or by a command
//! of the user.
//!
//! # Invariants
//!
//! - A command comes from the user's own `config.toml` alone; no file of a repository names one.
//! - A message holds the outcome and a short id, and no word of an agent.
//! - A notification that fails changes nothing about the answer.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};
use provost_core::policy::Notify;
use provost_engine::query::short_id;
use provost_host::user_file;
use serde_json::Value;

use crate::answer::{Answer, Failure, Outcome};
use crate::show::{one_line, print_message};

/// The flag of commands that drive runs.
#[derive(Debug, Clone, Copy, Args)]
pub struct Notified {
    /// Say when a run ends: by the bell of the terminal, on the desktop, or by the command in your
    /// own config.toml.
    #[arg(long, global = true, hide = true, value_name = "HOW", value_enum, num_args = 0..=1,
        require_equals = true, default_missing_value = "bell")]
    notify: Option<How>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum How {
    Bell,
    Desktop,
    Command,
}

impl Notified {
    /// Gives `outcome` back, after the user was notified of it.
    pub fn after(self, outcome: Outcome) -> Outcome {
        let own = match own_setting() {
            Ok(own) => own,
            Err(problem) => {
                print_message(&format!("note: no notification: {problem}"));
                return outcome;
            }
        };
        let how = match (self.notify, own) {
            (None, None) => return outcome,
            (None, Some(own)) | (Some(How::Command), Some(own @ Notify::Command(_))) => own,
            (Some(How::Bell), _) => Notify::Bell,
            (Some(How::Desktop), _) => Notify::Desktop,
            (Some(How::Command), _) => {
                let line = "notify = [\"COMMAND\", \"ARGUMENT\"]";
                print_message(&format!(
                    "note: no notification: your config.toml names no command; add {line}"
                ));
                return outcome;
            }
        };
        if let Err(error) = send(&how, &message(&outcome)) {
            print_message(&format!("note: no notification: {error}"));
        }
        outcome
    }
}

/// What the user's own file says; `None` if it says nothing.
fn own_setting() -> Result<Option<Notify>, String> {
    let file = user_file::read().map_err(|error| error.reason)?;
    Ok(file.notify)
}

/// The outcome in a few words.
fn message(outcome: &Outcome) -> String {
    match outcome {
        Err(Failure { code, .. }) => format!("provost: {code}"),
        Ok(Answer { json, .. }) => {
            let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str);
            let id = text("/run_id").or(text("/chain_id")).map_or("", short_id);
            let word = match (json.pointer("/verdict/allow"), text("/status")) {
                (Some(Value::Bool(true)), _) => "accepted",
                (_, Some("WAITING")) => "waits for approval",
                (Some(_), _) => text("/verdict/code").unwrap_or("refused"),
                (None, _) => "done",
            };
            let words = one_line(&format!("provost: {word} {id}"));
            words.trim_end().to_owned()
        }
    }
}

fn send(how: &Notify, message: &str) -> io::Result<()> {
    let (program, arguments) = match how {
        Notify::Bell => {
            if io::stderr().is_terminal() {
                let mut out = io::stderr().lock();
                out.write_all(b"\x07")?;
                out.flush()?;
            }
            return Ok(());
        }
        Notify::Desktop => ("notify-send".to_owned(), vec!["--".to_owned()]),
        Notify::Command(words) => match words.split_first() {
            Some((program, rest)) => (program.clone(), rest.to_vec()),
            None => return Ok(()),
        },
    };
    let mut command = Command::new(&program);
    command.args(arguments).arg(message);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null());
    // It is not waited for: a notification may stay on the screen.
    let started = command.spawn().map(drop);
    started.map_err(|error| io::Error::other(format!("`{program}`: {error}")))
}

#[cfg(test)]
mod tests {
    use provost_core::code::Code;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_has_the_outcome_and_a_short_id() {
        let id = "run_20260131_235959_999_0123456789ab";
        let accepted = json!({ "run_id": id, "verdict": { "allow": true, "code": "OK" } });
        let refused = json!({ "run_id": id, "verdict": { "allow": false, "code": "EMPTY_DIFF" } });
        let waits = json!({ "run_id": id, "status": "WAITING", "verdict": { "allow": false } });
        let cases = [
            (Ok(accepted), "provost: accepted 01234567"),
            (Ok(refused), "provost: EMPTY_DIFF 01234567"),
            (Ok(waits), "provost: waits for approval 01234567"),
            (Ok(json!(null)), "provost: done"),
            (Err(Code::LeaseHeld), "provost: LEASE_HELD"),
        ];
        for (outcome, want) in cases {
            let outcome = outcome.map(|json| Answer::data(json, ""));
            let outcome = outcome.map_err(|code| Failure::new(code, "it is held"));
            assert_eq!(message(&outcome), want);
        }
    }
}
