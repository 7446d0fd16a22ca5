//! Checks a worklog after a worker wrote to it.

use provost_core::code::Code;

use super::row::Status;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorklogError {
    /// The position, from 0, of an earlier line that was removed or changed.
    #[error("line {} was there before and is not as it was", .0 + 1)]
    Rewritten(usize),
    /// A task that did not succeed must say why in its last entry.
    #[error("the last entry of a {0} task has no `{1}`")]
    NoEnd(Status, &'static str),
    #[error("the log has no entry")]
    Empty,
}

impl WorklogError {
    pub fn code(&self) -> Code {
        match self {
            Self::Rewritten(_) => Code::NonCompliant,
            Self::NoEnd(..) | Self::Empty => Code::MissingRequiredInput,
        }
    }
}

/// The lines that were added to `before` to get `after`.
pub fn added<'a>(before: &[&str], after: &'a [&'a str]) -> Result<&'a [&'a str], WorklogError> {
    let same = |(one, two): &(&&str, &&str)| one == two;
    let kept = before.iter().zip(after).take_while(same).count();
    if kept < before.len() {
        return Err(WorklogError::Rewritten(kept));
    }
    Ok(&after[kept..])
}

/// The fields of the last entry that are judged.
#[derive(Debug, Clone, Copy)]
pub struct LastEntry<'a> {
    /// Why the task stopped.
    pub code: Option<Code>,
    pub next_step: &'a str,
}

/// Checks that the log of a task with this outcome ends as required.
pub fn end(outcome: Status, last: Option<LastEntry<'_>>) -> Result<(), WorklogError> {
    let last = last.ok_or(WorklogError::Empty)?;
    match outcome {
        Status::Blocked | Status::Failed => {}
        Status::Todo | Status::InProgress | Status::Done | Status::Canceled => return Ok(()),
    }
    if last.code.is_none() {
        return Err(WorklogError::NoEnd(outcome, "code"));
    }
    if last.next_step.trim().is_empty() {
        return Err(WorklogError::NoEnd(outcome, "next_step"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_only_ever_added() {
        type Case<'a> = (&'a [&'a str], &'a [&'a str], Result<usize, usize>);
        let cases: [Case<'_>; 7] = [
            (&[], &["a"], Ok(1)),
            (&["a"], &["a"], Ok(0)),
            (&["a"], &["a", "b"], Ok(1)),
            (&["a", "b"], &["b", "a"], Err(0)),
            (&["a", "b"], &["a"], Err(1)),
            (&["a", "b"], &["a", "x", "b"], Err(1)),
            (&["a"], &["A"], Err(0)),
        ];
        for (before, after, want) in cases {
            let got = match added(before, after) {
                Ok(new) => Ok(new.len()),
                Err(WorklogError::Rewritten(line)) => Err(line),
                Err(other) => panic!("{other}"),
            };
            assert_eq!(got, want, "{before:?} → {after:?}");
        }
    }

    #[test]
    fn a_task_that_did_not_succeed_says_why_and_what_next() {
        let entry = |code, next_step| Some(LastEntry { code, next_step });
        let why = Some(Code::LockConflict);
        let cases = [
            (Status::Done, entry(None, ""), true),
            (Status::Done, None, false),
            (Status::Blocked, entry(why, "ask"), true),
            (Status::Blocked, entry(None, "ask"), false),
            (Status::Failed, entry(why, " "), false),
            (Status::Failed, None, false),
        ];
        for (outcome, last, want) in cases {
            assert_eq!(end(outcome, last).is_ok(), want, "{outcome} {last:?}");
        }
    }
}
