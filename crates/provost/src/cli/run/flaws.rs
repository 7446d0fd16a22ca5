//! Refuses flags that break a rule of contracts, and names the flag.
//!
//! # Invariants
//!
//! - The rules are those of the policy gate; only the place is named differently.
//! - A refused flag starts no run.

use std::path::Path;

use provost_core::code::Code;
use provost_core::contract::document::Document;
use provost_core::contract::{self, Problem};
use provost_core::gate::command::{CommandPolicy, Trust, quote};

use super::Run;
use crate::answer::Failure;

/// Checks `document`, which the flags of `run` describe, in the repository at `checkout`.
pub(super) fn check(
    run: &Run,
    document: &Document,
    checkout: Option<&Path>,
) -> Result<(), Failure> {
    let policy = CommandPolicy::shipped().map_err(|error| Failure::of(Code::Bug, &error))?;
    let checked = contract::resolve(document.clone(), &policy, Trust::TypedByPerson);
    let Err(problems) = checked else {
        return Ok(());
    };
    let work = Work { run, document };
    let words: Vec<String> = problems.iter().map(|it| words(&work, it)).collect();
    let failure = Failure::new(Code::UsageError, words.join("; also "));
    let hint = problems.iter().find_map(|problem| {
        let (flag, value) = flag(&work, &problem.path)?;
        Some(instead(flag, &value, checkout))
    });
    Err(match hint {
        Some(hint) => failure.hint(hint),
        None => failure.hint("provost run --help"),
    })
}

/// The flags, and the contract that they and the answers of the person make.
struct Work<'a> {
    run: &'a Run,
    document: &'a Document,
}

/// The flag behind a place of the contract, and its value.
fn flag(Work { run, document }: &Work<'_>, place: &str) -> Option<(&'static str, String)> {
    let tests = document.acceptance_tests.iter();
    let accept: Vec<String> = tests.map(|test| test.cmd.clone()).collect();
    let lists = [
        ("/allowed_paths/", "--allow", &document.allowed_paths),
        ("/acceptance_tests/", "--accept", &accept),
        ("/x_provost/forbid/", "--forbid", &run.forbid),
        (
            "/x_provost/permit/oracle/",
            "--permit-oracle",
            &run.permit_oracle,
        ),
        (
            "/x_provost/permit/governing/",
            "--permit-governing",
            &run.permit_governing,
        ),
        (
            "/x_provost/permit/binary/",
            "--allow-binary",
            &run.allow_binary,
        ),
        (
            "/x_provost/permit/symlink/",
            "--permit-symlink",
            &run.permit_symlink,
        ),
    ];
    lists.into_iter().find_map(|(beginning, flag, values)| {
        let number = place.strip_prefix(beginning)?.split('/').next()?;
        Some((flag, values.get(number.parse::<usize>().ok()?)?.clone()))
    })
}

fn words(work: &Work<'_>, problem: &Problem) -> String {
    let what = problem.problem.as_str();
    if let Some((flag, value)) = flag(work, &problem.path) {
        // The problem names the entry, and so does the flag.
        let entry = format!("(`{}`) ", value.escape_debug());
        let what = what.strip_prefix(&entry).unwrap_or(what);
        return format!("`{flag} {}`: {what}", quote(&value));
    }
    let single = SINGLE.iter().find(|(place, _)| *place == problem.path);
    let name = single.map_or(problem.path.as_str(), |(_, flag)| flag);
    format!("`{name}` {what}")
}

/// Flags with one value, and their places in a contract.
const SINGLE: [(&str, &str); 4] = [
    ("/timeout_retry/timeout_sec", "--timeout"),
    ("/timeout_retry/max_retries", "--retries"),
    ("/rollback/baseline_ref", "--base"),
    ("/x_provost/target", "--target"),
];

/// What to write instead of `value`.
fn instead(flag: &str, value: &str, checkout: Option<&Path>) -> String {
    if flag == "--accept" {
        return "give each command its own --accept; it starts at the top of the repository. \
                What needs a shell goes into a script there: --accept 'sh check.sh'"
            .to_owned();
    }
    if let Some(at) = value.find(['*', '?', '[']) {
        let (directory, _) = value[..at].rsplit_once('/').unwrap_or_default();
        return match directory {
            "" => format!("name files or directories: {flag} src"),
            directory => {
                let directory = quote(directory);
                format!("a directory covers all below it: {flag} {directory}")
            }
        };
    }
    if value.starts_with('/') {
        let inside = checkout.and_then(|top| Path::new(value).strip_prefix(top).ok());
        let inside = inside.and_then(Path::to_str);
        return match inside.filter(|path| !path.is_empty()) {
            Some(path) => format!("{flag} {}", quote(path)),
            None => format!("name a path from the top of the repository: {flag} src"),
        };
    }
    format!("name a file or directory from the top of the repository, for example {flag} src")
}
