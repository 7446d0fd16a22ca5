//! `provost check bundle`: checks that the files of sealed directories fit their schemas.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::verdict::{FoundAt, Verdict};
use provost_core::wording::counted;
use provost_engine::bundle::file_kinds;
use provost_host::bundle::Directory;
use serde::Serialize;

use crate::answer::{Answer, Failure, Outcome};

/// The directories of a runtime root that hold sealed directories.
const HOLDERS: [&str; 4] = ["runs", "plans", "chains", "refused"];

#[derive(Args)]
#[command(after_help = "\
Only files that are as they were sealed are judged; `provost verify` tells whether they are. What is
not sealed, or was sealed by an earlier format, is left out.

Example:
  provost check bundle .provost")]
pub(in crate::cli) struct CheckBundle {
    /// The directory of a bundle, or a runtime root with many.
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
}

#[derive(Serialize)]
struct FilesFound<'a> {
    bundles: usize,
    documents: usize,
    others: usize,
    #[serde(skip_serializing_if = "<[FoundAt<'_>]>::is_empty")]
    findings: &'a [FoundAt<'a>],
}

pub(super) fn run(check: &CheckBundle) -> Outcome {
    let (mut bundles, mut documents, mut others) = (0, 0, 0);
    let mut rows = Vec::new();
    for directory in check.directories.iter().flat_map(|given| below(given)) {
        let files = Directory::open(&directory);
        let files = files.map_err(|error| Failure::of(Code::InputUnreadable, &error))?;
        let Some(checked) = file_kinds::check(&files) else {
            continue;
        };
        bundles += 1;
        documents += checked.documents;
        others += checked.others;
        for finding in checked.findings {
            let path = directory.join(&finding.path).display().to_string();
            rows.push((path, finding.problem));
        }
    }
    let findings: Vec<FoundAt<'_>> = rows
        .iter()
        .map(|(path, problem)| FoundAt { path, problem })
        .collect();
    let found = FilesFound {
        bundles,
        documents,
        others,
        findings: &findings,
    };
    let Some(first) = findings.first() else {
        let reason = format!(
            "{} of {} fit their schemas",
            counted(documents, "file"),
            counted(bundles, "sealed directory")
        );
        return Ok(Verdict::allow(reason).with(found).into());
    };
    let reason = format!("{}: {}", first.path, first.problem);
    let mut answer = Answer::from(Verdict::deny(Code::InputInvalid, reason).with(found));
    answer.exit = Exit::No;
    Ok(answer)
}

/// The sealed directories below `given`: itself, or those of a runtime root.
fn below(given: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for holder in HOLDERS {
        let entries = fs::read_dir(given.join(holder)).into_iter().flatten();
        let entries = entries.flatten().map(|entry| entry.path());
        found.extend(entries.filter(|path| path.is_dir()));
    }
    found.sort();
    if found.is_empty() {
        found.push(given.to_owned());
    }
    found
}
