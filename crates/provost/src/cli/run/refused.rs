//! Keeps a record of a contract that was refused before there was a run, and lists these records.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;

use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::json::LARGEST;
use provost_core::run::fact::Names;
use provost_core::verdict::Verdict;
use provost_engine::refused::{self, Ports, REQUEST, Refused};
use provost_host::{ids, machine};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::input;
use crate::place::Place;
use crate::session::{KeySigner, RunBundle, SystemClock};
use crate::show::{plain, tell};

/// The most records that are kept; the oldest goes for a new one.
const MOST: usize = 256;

/// Keeps that `document` was refused, if that says something about the document.
///
/// The refusal is answered in any case, so that what cannot be kept is only said.
pub(super) fn keep(place: &Place, run_id: &str, document: &[u8], verdict: &Verdict) {
    let about_machine = !matches!(verdict.code.exit(), Exit::No | Exit::Usage);
    if about_machine || verdict.code == Code::InputUnreadable {
        return;
    }
    if let Err(failure) = kept(place, run_id, document, verdict.clone()) {
        let words = format!("note: the refusal is not recorded: {}", failure.reason);
        tell(&words);
    }
}

fn kept(place: &Place, run_id: &str, document: &[u8], verdict: Verdict) -> Result<(), Failure> {
    place.prepare_with(&place.refused())?;
    let unlucky = |error: ids::NoRandomness| Failure::of(Code::HostFailed, &error);
    let names = Names {
        run_id: run_id.to_owned(),
        task_id: run_id.to_owned(),
        trace_id: ids::trace_id().map_err(unlucky)?,
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
    let mut ports = Ports {
        bundle: &mut RunBundle::new(&record),
        signer: &signer,
        clock: &SystemClock,
    };
    refused::keep(&mut ports, &names, document, verdict)?;
    let all = place.all_refused()?;
    for old in all.iter().rev().skip(MOST) {
        // One that stays for now goes with the next.
        let _ = fs::remove_dir_all(place.refused().join(old));
    }
    Ok(())
}

/// The record of a refused request.
pub(in crate::cli) fn read(place: &Place, run_id: &str) -> Result<Refused, Failure> {
    let path = place.refused().join(run_id).join(REQUEST);
    let bytes = input::read(&path, LARGEST)?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Failure::of(Code::EvidenceAltered, &error).about(&path))
}

/// What `provost runs` says of a refused request.
pub(in crate::cli) fn row(place: &Place, run_id: &str) -> Value {
    match read(place, run_id) {
        Err(failure) => json!({ "run_id": run_id, "status": "UNREADABLE", "code": failure.code,
            "objective": failure.reason }),
        Ok(refused) => json!({ "run_id": run_id, "status": "REFUSED",
            "code": refused.verdict.code, "objective": refused.verdict.reason,
            "began": refused.refused_at, "record": place.refused().join(run_id) }),
    }
}

/// What `provost show` says of a refused request.
pub(in crate::cli) fn show(place: &Place, run_id: &str) -> Outcome {
    let refused = read(place, run_id)?;
    let Verdict { code, reason, .. } = &refused.verdict;
    let record = place.refused().join(run_id);
    let text = format!(
        "{run_id} was refused before there was a run\n  refused[{code}]: {}\n  \
         document {} bytes, sha256 {}\n  record   {}\n",
        plain(reason),
        refused.document_bytes,
        refused.document_sha256,
        record.display()
    );
    let mut json = row(place, run_id);
    json["verdict"] = json!(refused.verdict);
    Ok(Answer::data(json, text))
}
