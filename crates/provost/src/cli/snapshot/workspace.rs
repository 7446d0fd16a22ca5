//! The snapshot of a workspace: the digest of every file, and the changes since an earlier one.

use std::fmt::Write as _;
use std::path::Path;
use std::thread;

use provost_core::code::Code;
use provost_core::json::LARGEST;
use provost_core::object::{hex, sha256};
use provost_core::path::RepoPath;
use provost_formats::packet::{Difference, Snapshot, snapshot};
use provost_host::clock;
use provost_host::inventory::{self, Cache, Inventory, Sha};
use serde::Serialize;
use serde_json::Value;

use crate::answer::{Answer, Answered, Failure, Outcome};
use crate::input;
use crate::places::cache_root;

pub(super) fn run(directory: &Path, out: Option<&Path>, before: Option<&Path>) -> Outcome {
    let before = match before {
        Some(file) => Some(read(file)?),
        None => None,
    };
    let (found, cache) = found(directory)?;
    let now = clock::now();
    let text = thread::scope(|scope| {
        // The cache only speeds up the next snapshot, so a failure is ignored.
        let keep = || cache.map(|mut cache| cache.keep(&found));
        let _ = thread::Builder::new().spawn_scoped(scope, keep);
        snapshot::render(Some(&now), found.iter().map(row))
    });
    if let Some(out) = out {
        super::write(out, &text)?;
    }
    let difference = before.map(|before| before.difference(&of(found.iter())));
    if out.is_none() && difference.is_none() {
        let json = serde_json::from_str::<Value>(&text).unwrap_or(Value::Null);
        return Ok(Answer::data(json, text));
    }
    let recorded = RecordedWorkspace {
        out: out.map(|out| out.display().to_string()),
        captured_at: now,
        files: found.iter().len(),
        difference,
    };
    Ok(recorded.into())
}

#[derive(Serialize)]
struct RecordedWorkspace {
    out: Option<String>,
    captured_at: String,
    files: usize,
    #[serde(flatten)]
    difference: Option<Difference>,
}

impl Answered for RecordedWorkspace {
    fn text(&self) -> String {
        match &self.difference {
            Some(difference) => render(difference),
            None => format!("recorded {} files\n", self.files),
        }
    }
}

/// Every file of `directory` now; files that did not change since the last time are not read.
///
/// The returned cache is not written yet.
fn found(directory: &Path) -> Result<(Inventory, Option<Cache>), Failure> {
    let failed = |error: &dyn std::error::Error| Failure::of(Code::HostFailed, error);
    let real = directory.canonicalize().map_err(|error| {
        let reason = format!("`{}`: {error}", directory.display());
        Failure::new(Code::InputUnreadable, reason)
    })?;
    let name = sha256(real.as_os_str().as_encoded_bytes());
    // The cache only saves time: without a place for it every file is read.
    let place = cache_root().ok();
    let cache = place.map(|place| Cache::open(&place.join("files").join(&name[..32])));
    let found = inventory::take(&real, cache.as_ref()).map_err(|error| failed(&error))?;
    Ok((found, cache))
}

/// The snapshot of these files, taken now.
pub(in crate::cli) fn of<'a>(files: impl Iterator<Item = (&'a RepoPath, &'a Sha)>) -> Snapshot {
    let owned = |(path, digest): (&str, String)| (path.to_owned(), digest);
    Snapshot {
        captured_at: Some(clock::now()),
        files: files.map(row).map(owned).collect(),
    }
}

fn row<'a>((path, digest): (&'a RepoPath, &Sha)) -> (&'a str, String) {
    (path.as_str(), hex(digest))
}

fn read(file: &Path) -> Result<Snapshot, Failure> {
    let bytes = input::read(file, LARGEST)?;
    Snapshot::parse(&file.display().to_string(), &bytes).map_err(|verdict| {
        Failure::new(Code::InputInvalid, verdict.reason)
            .hint("make it with `provost snapshot [DIR] --out FILE`, before the work begins")
    })
}

fn render(difference: &Difference) -> String {
    let rows = [
        ("added", &difference.added),
        ("changed", &difference.changed),
        ("removed", &difference.removed),
    ];
    let mut text = String::new();
    for (word, paths) in rows {
        for path in paths {
            let _ = writeln!(text, "{word} {path}");
        }
    }
    if text.is_empty() {
        text.push_str("nothing changed\n");
    }
    text
}
