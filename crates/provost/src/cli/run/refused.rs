//! Records contracts that were refused before there was a run, and lists these records.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;

use provost_core::bundle::key::PublicKey;
use provost_core::bundle::layout::LEDGER;
use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::json;
use provost_core::path::RawPath;
use provost_core::record::Head;
use provost_core::run::fact::Names;
use provost_core::verdict::Verdict;
use provost_core::wording::clipped;
use provost_engine::bundle::sealed;
use provost_engine::bundle::verify::Files as _;
use provost_engine::query::{RunStatus, RunSummary};
use provost_engine::refused::{self, Ports, REQUEST, Refused};
use provost_host::bundle::Directory;
use provost_host::machine;
use serde::Serialize;

use crate::answer::{Answer, Failure, Outcome};
use crate::cli::verify::trusted;
use crate::places::Places;
use crate::session::{KeySigner, SystemClock};
use crate::show::{findings, one_line, print_message};
use crate::stores;

/// The most characters that are shown of another user's text.
const LONGEST: usize = 200;

/// The most records that are kept; a new one replaces the oldest.
const MOST: usize = 256;

/// Records that `document` was refused, if the refusal is about the document, and returns the
/// refusal with the name of its record.
///
/// A failure to write the record is only a note; the refusal is returned in any case.
pub(super) fn keep(place: &Places, run_id: &str, document: &[u8], failure: Failure) -> Failure {
    let about_machine = !matches!(failure.code.exit(), Exit::No | Exit::Usage);
    if about_machine || failure.code == Code::InputUnreadable {
        return failure;
    }
    match kept(place, run_id, document, failure.verdict()) {
        Ok(()) => failure.recorded(run_id),
        Err(other) => {
            print_message(&format!(
                "note: the refusal is not recorded: {}",
                other.reason
            ));
            failure
        }
    }
}

fn kept(place: &Places, run_id: &str, document: &[u8], verdict: Verdict) -> Result<(), Failure> {
    place.prepare_refused()?;
    let names = Names {
        run_id: run_id.to_owned(),
        task_id: run_id.to_owned(),
        trace_id: crate::trace::trace_id()?,
    };
    let words = serde_json::to_vec(&verdict).unwrap_or_default();
    let verdict = if machine::known(&[]).is_in(&words) {
        Verdict::deny(verdict.code, "the reason holds a secret and is withheld")
    } else {
        verdict
    };
    let signer = KeySigner::of(place)?;
    let record = place.refused().join(run_id);
    let made = DirBuilder::new().mode(0o700).create(&record);
    made.map_err(|error| Failure::of(Code::HostFailed, &error).about(&record))?;
    let mut bundle = stores::bundle(&record);
    let mut ports = Ports {
        bundle: bundle.as_mut(),
        signer: &signer,
        clock: &SystemClock,
        secret: &place.secret()?,
    };
    refused::keep(&mut ports, &names, document, verdict)?;
    let all = place.all_refused()?;
    for old in all.iter().rev().skip(MOST) {
        // A record that cannot be removed now is removed with the next.
        let _ = fs::remove_dir_all(place.refused().join(old));
    }
    Ok(())
}

struct Read {
    refused: Refused,
    /// Whether this user made it on this machine.
    own: bool,
}

/// The record of the refused request `run_id`, if it is unchanged since its seal.
fn read(place: &Places, run_id: &str) -> Result<Read, Failure> {
    let path = place.refused().join(run_id);
    if path.symlink_metadata().is_ok_and(|it| it.is_symlink()) {
        let reason = "is a symbolic link, not a record that Provost wrote";
        return Err(Failure::new(Code::RootUnsafe, reason).about(&path));
    }
    let files = Directory::open(&path);
    let files = files.map_err(|error| Failure::of(Code::InputUnreadable, &error))?;
    let keys: Vec<PublicKey> = trusted()?.iter().map(|known| known.key).collect();
    let verdict = sealed::verify(&files, &keys);
    if !verdict.allow && verdict.code != Code::KeyUnknown {
        return Err(Failure::new(verdict.code, verdict.reason).about(&path));
    }
    let altered = |words: String| Failure::new(Code::EvidenceAltered, words).about(&path);
    let bytes = files.read(&RawPath::new(REQUEST)).map_err(altered)?;
    let refused: Refused = json::parse_as(&bytes).map_err(|error| altered(error.to_string()))?;
    if refused.run_id != run_id {
        return Err(altered("holds the record of another request".to_owned()));
    }
    let own = verdict.allow && is_own(place, run_id);
    Ok(Read { refused, own })
}

/// Whether this user made the record `run_id` on this machine.
fn is_own(place: &Places, run_id: &str) -> bool {
    let Some(secret) = place.known_secret().filter(|_| !place.is_foreign()) else {
        return false;
    };
    let path = place.refused().join(run_id).join(LEDGER);
    let records = stores::read_ledger(&path, Head::genesis());
    let records = records.unwrap_or_default();
    matches!(records.as_slice(), [one] if one.event.run_id == run_id && one.is_by(secret))
}

/// The row of a refused request in `provost runs`.
pub(in crate::cli) fn row(place: &Places, run_id: &str) -> RunSummary {
    match read(place, run_id) {
        Err(failure) => {
            let code = Some(failure.code);
            RunSummary::without_facts(run_id, RunStatus::Unreadable, code, failure.reason)
        }
        Ok(read) => summary(place, run_id, &read),
    }
}

fn summary(place: &Places, run_id: &str, Read { refused, own }: &Read) -> RunSummary {
    let Verdict { code, reason, .. } = refused.verdict.clone();
    RunSummary {
        own: Some(*own),
        began: Some(refused.refused_at.clone()),
        record: Some(place.refused().join(run_id)),
        ..RunSummary::without_facts(run_id, RunStatus::Refused, Some(code), reason)
    }
}

/// A refused request with its whole verdict.
#[derive(Serialize)]
struct RefusedView {
    #[serde(flatten)]
    summary: RunSummary,
    verdict: Verdict,
}

/// The answer of `provost show` and `provost why` for a refused request.
pub(in crate::cli) fn show(place: &Places, run_id: &str) -> Outcome {
    let read = read(place, run_id)?;
    let Verdict { code, reason, .. } = &read.refused.verdict;
    let (reason, findings) = if read.own {
        (bounded_line(reason), findings(&read.refused.verdict))
    } else {
        (bounded_line(reason), Vec::new())
    };
    let mut text =
        format!("{run_id} was refused before there was a run\n  refused[{code}]: {reason}\n");
    for row in findings {
        text += &format!("    {}\n", bounded_line(&row));
    }
    text += &format!(
        "  document {} bytes, sha256 {}\n  record   {}\n",
        read.refused.document_bytes,
        bounded_line(&read.refused.document_sha256),
        place.refused().join(run_id).display()
    );
    if !read.own {
        text += "note: FOREIGN: it was not refused for you on this machine; \
                 provost explain RUN_FOREIGN\n";
    }
    let view = RefusedView {
        summary: summary(place, run_id, &read),
        verdict: read.refused.verdict,
    };
    Ok(Answer::data(view, text))
}

/// The text of another user as one line of bounded length.
fn bounded_line(text: &str) -> String {
    one_line(&clipped(text.to_owned(), LONGEST))
}
