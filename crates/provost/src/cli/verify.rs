//! `provost verify`: checks that a bundle is intact, complete and authentic.

mod case;
mod changed;
mod children;

use std::path::{Path, PathBuf};

use clap::Args;
use provost_change::evidence as change;
use provost_core::bundle::key::{NamedKey, PublicKey};
use provost_core::bundle::layout::{ATTESTATION, CONTRACT, LEDGER, MANIFEST};
use provost_core::code::Code;
use provost_core::path::RawPath;
use provost_engine::bundle::sealed;
use provost_engine::bundle::verify::{
    self, Files as _, Finding, Pins, ProofAnswer, Question, Report, Signer, State,
};
use provost_host::bundle::Directory;
use provost_host::keys::{Keys, KeysError};

use super::key;
use crate::answer::{Answer, Failure, Outcome};
use crate::places::Evidence;
use crate::show::one_line;

/// The most findings that the text output lists; JSON has all of them.
const MOST_SHOWN: usize = 50;

/// Check that a bundle is intact, complete and authentic.
#[derive(Args)]
pub(super) struct Verify {
    /// The directory of a bundle, or a run, a plan, a chain or a controlled change: its id, a part
    /// of it, or `last` for the last run.
    #[arg(value_name = "DIR|RUN", default_value = "last")]
    bundle: PathBuf,

    /// The only key that may have signed it: the public key, or a file that holds it.
    #[arg(long, value_name = "PUBKEY")]
    key: Option<String>,
}

pub(super) fn run(verify: &Verify) -> Outcome {
    let want = verify.key.as_deref().map(key::parse).transpose()?;
    let known = match &want {
        // With `--key`, no other key is trusted.
        Some(_) => Vec::new(),
        None => trusted()?,
    };
    let place = bundle_directory(&verify.bundle)?;
    let directory = Directory::open(&place.directory)
        .map_err(|error| Failure::of(Code::InputUnreadable, &error))?;
    let mut keys: Vec<PublicKey> = known.iter().map(|known| known.key).collect();
    let kind = match place.kind {
        Kind::Unknown if change::is_one(&directory) => Kind::Change,
        Kind::Unknown if sealed::is_one(&directory) => Kind::Record,
        kind => kind,
    };
    if kind == Kind::Record {
        keys.extend(want.iter().map(|want| want.key));
        if case::is_one(&place.directory) {
            return case::answer(&place.directory, &directory, &keys);
        }
        return Ok(sealed::verify(&directory, &keys).into());
    }
    let want_key = want.as_ref().map(|want| &want.key);
    let names: Vec<&NamedKey> = known.iter().chain(&want).collect();
    if kind == Kind::Change {
        let pin = place.pins.ledger.as_ref();
        let report = change::verify(&directory, &keys, pin, want_key);
        return Ok(changed::answer(&report, &names));
    }
    let report = verify::verify(&directory, &keys, &place.pins, want_key);
    let mut answer = Answer {
        exit: report.exit(),
        json: serde_json::to_value(report.verdict()).unwrap_or_default(),
        text: match kind {
            Kind::Unknown if !has_bundle_files(&directory) => not_a_bundle(&report, verify),
            _ => render(&report, &names),
        },
    };
    if report.verdict().allow {
        keys.extend(want_key);
        let followed = children::follow(&place.directory, &keys);
        answer.text += &followed.text;
        if let Some(refusal) = followed.refusal {
            answer.text += &format!("error[{}]: {}\n", refusal.code, one_line(&refusal.reason));
            answer.text += &format!("hint: provost explain {}\n", refusal.code);
            answer.exit = refusal.code.exit();
            answer.json = serde_json::to_value(refusal).unwrap_or_default();
        }
    }
    Ok(answer)
}

/// The answer about a directory that has nothing of a bundle.
fn not_a_bundle(report: &Report, verify: &Verify) -> String {
    let code = report.verdict().code;
    let directory = one_line(&verify.bundle.display().to_string());
    format!(
        "error[{code}]: {directory} has none of the files of a bundle\n\
         hint: name a run of `provost runs`, or the directory that its answer calls `bundle`\n"
    )
}

/// Whether a directory has any of the files that every bundle has.
fn has_bundle_files(directory: &Directory) -> bool {
    let names = directory.names();
    let has = |name: &str| names.contains(&RawPath::new(name));
    [LEDGER, MANIFEST, ATTESTATION, CONTRACT]
        .into_iter()
        .any(has)
}

/// The place of a bundle, and what is known about it from elsewhere.
struct Place {
    directory: PathBuf,
    pins: Pins,
    kind: Kind,
}

/// What a directory holds evidence of. Where its place decides that, its files are not consulted:
/// one kind must not pass for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Run,
    Change,
    /// A plan or a chain.
    Record,
    /// It lies outside of every runtime root.
    Unknown,
}

/// Finds the bundle that `argument` names. A directory needs neither repository nor registry.
fn bundle_directory(argument: &Path) -> Result<Place, Failure> {
    if argument.is_dir() {
        let (pins, kind) = pins_beside(argument)?;
        return Ok(Place {
            directory: argument.to_owned(),
            pins,
            kind,
        });
    }
    let place = crate::places::Places::look().map_err(|failure| {
        if failure.code == Code::RootUnsafe {
            return failure;
        }
        let reason = match argument.to_str() {
            Some("last") => "this is no repository, so there is no last run".to_owned(),
            _ => format!("there is no directory `{}`", argument.display()),
        };
        Failure::new(Code::NotFound, reason).hint("give the directory of a bundle")
    })?;
    let name = argument.to_string_lossy();
    let (directory, pins, kind) = match place.find_evidence(&name)? {
        Evidence::Record(directory) => (directory, Pins::default(), Kind::Record),
        Evidence::Change(id) => {
            let pins = place.pins_of_change(&id)?;
            (place.changes().join(id), pins, Kind::Change)
        }
        Evidence::Run(id) => (place.run(&id), place.pins(&id)?, Kind::Run),
    };
    Ok(Place {
        directory,
        pins,
        kind,
    })
}

/// The pins and the kind of a bundle among the evidence of a repository; no pins for any other
/// directory.
fn pins_beside(directory: &Path) -> Result<(Pins, Kind), Failure> {
    let nothing = (Pins::default(), Kind::Unknown);
    let Ok(place) = crate::places::Places::look_at(directory) else {
        return Ok(nothing);
    };
    let real = |path: &Path| path.canonicalize().ok();
    let here = real(directory);
    let name = here.as_ref().and_then(|path| path.file_name()?.to_str());
    match name {
        Some(id) if real(&place.run(id)) == here && case::is_one(directory) => {
            Ok((Pins::default(), Kind::Record))
        }
        Some(id) if real(&place.run(id)) == here => Ok((place.pins(id)?, Kind::Run)),
        Some(id) if real(&place.changes().join(id)) == here => {
            Ok((place.pins_of_change(id)?, Kind::Change))
        }
        Some(id) if records(&place).any(|records| real(&records.join(id)) == here) => {
            Ok((Pins::default(), Kind::Record))
        }
        _ => Ok(nothing),
    }
}

/// The directories of sealed records that are not runs.
fn records(place: &crate::places::Places) -> impl Iterator<Item = PathBuf> {
    [place.plans(), place.chains(), place.refused()].into_iter()
}

pub(super) fn trusted() -> Result<Vec<NamedKey>, Failure> {
    match Keys::find().and_then(|keys| keys.trusted()) {
        Ok(keys) => Ok(keys),
        // Without a directory for keys no key is trusted, and the answer says so.
        Err(KeysError::NoPlace) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

fn render(report: &Report, names: &[&NamedKey]) -> String {
    let mut text = String::new();
    text += &line("intact", report.proof.intact, intact(report));
    text += &rows(&report.proof.findings, Question::Intact);
    let newer = report.newer();
    let words = newer.as_deref().unwrap_or_else(|| complete(report));
    text += &line("complete", report.proof.complete, words);
    text += &rows(&report.proof.findings, Question::Complete);
    text += &line(
        "authentic",
        report.proof.authentic,
        &authentic(report, names),
    );
    text += &rows(&report.proof.findings, Question::Authentic);
    text += &about(report);
    text += &unvouched(report);
    let code = report.verdict().code;
    if code != Code::Ok {
        let hint = match code {
            Code::KeyUnknown => "if you trust its signer: provost key trust PUBKEY".to_owned(),
            _ => format!("provost explain {code}"),
        };
        text += &format!("error[{code}]: {}\nhint: {hint}\n", verdict_words(code));
    }
    text
}

fn line(question: &str, answer: ProofAnswer, words: &str) -> String {
    let (mark, answer) = match answer {
        ProofAnswer::Yes => ('✓', "yes"),
        ProofAnswer::No => ('✗', "no"),
        ProofAnswer::Open => ('?', "unknown"),
    };
    format!("{mark} {question}: {answer}, {}\n", one_line(words))
}

fn intact(report: &Report) -> &'static str {
    match (report.proof.intact, report.state) {
        (ProofAnswer::Yes, State::Running) => "no byte of the ledger differs so far",
        (ProofAnswer::Yes, _) => "no byte differs from what was sealed",
        (ProofAnswer::No, _) => "something differs from what was sealed",
        (ProofAnswer::Open, _) if matches!(report.proof.signer, Signer::Unknown(_)) => {
            "every file fits a statement whose signature cannot be checked here"
        }
        (ProofAnswer::Open, _) => "there is no seal to hold the files against",
    }
}

fn complete(report: &Report) -> &'static str {
    match (report.state, report.proof.complete) {
        (State::Running, _) => "the run has not ended yet",
        (State::Sealed, ProofAnswer::Yes) => "the run is sealed and nothing is missing",
        (State::Sealed, _) => "the run is sealed, but files are missing or were added",
        (State::Unsealed, _) => "the run ended and its seal is missing",
        (State::TailMissing, _) => "the end of the ledger is missing",
    }
}

fn authentic(report: &Report, names: &[&NamedKey]) -> String {
    match report.state {
        State::Running => "a run is signed when it ends".into(),
        State::Sealed | State::Unsealed | State::TailMissing => signed(&report.proof.signer, names),
    }
}

fn signed(signer: &Signer, names: &[&NamedKey]) -> String {
    let called = |key: &PublicKey| {
        let known = names.iter().find(|known| known.key == *key);
        known.map_or_else(|| key.to_string(), ToString::to_string)
    };
    match signer {
        Signer::Trusted(key) => format!("signed by {}", called(key)),
        Signer::Another(key) => format!("signed by {}, not by the key asked for", called(key)),
        Signer::Unknown(_) => "signed by a key that is not trusted here".into(),
        Signer::Unsigned => "there is no signature that holds".into(),
    }
}

fn rows(findings: &[Finding], question: Question) -> String {
    let of_question = || findings.iter().filter(|one| one.question == question);
    let mut text = String::new();
    for finding in of_question().take(MOST_SHOWN) {
        let row = format!("{}: {}", finding.path, finding.problem);
        // One line for each finding, whatever the file contains.
        text += &format!("  {}\n", one_line(&row));
    }
    let more = of_question().count().saturating_sub(MOST_SHOWN);
    if more > 0 {
        text += &format!("  and {more} more\n");
    }
    text
}

/// What the bundle says about the run, if it can be trusted.
fn about(report: &Report) -> String {
    let (Some(run_id), Some(verdict)) = (&report.run_id, &report.sealed_verdict) else {
        return String::new();
    };
    if !report.verdict().allow {
        return String::new();
    }
    let word = if verdict.allow { "accepted" } else { "refused" };
    let tree = report.tree.as_ref().map(|tree| format!(", tree {tree}"));
    let tree = tree.unwrap_or_default();
    let mut text = format!(
        "run {}: {word} ({}){tree}\n",
        one_line(run_id),
        verdict.code
    );
    for grant in &report.granted {
        text += &format!("given by a person: {}\n", one_line(&grant.words()));
    }
    for landing in report.after.landings.iter().rev().take(MOST_SHOWN) {
        text += &format!(
            "landed: {} on {}\n",
            landing.commit,
            one_line(&landing.target)
        );
    }
    for replay in report.after.replays.iter().rev().take(MOST_SHOWN) {
        let word = if replay.hard_equal {
            "equal"
        } else {
            "differs"
        };
        text += &format!("replayed: {word}, {}\n", one_line(&replay.report));
    }
    text
}

/// Events that were added after the seal without a signature; they change no answer.
fn unvouched(report: &Report) -> String {
    let lines = &report.after.unvouched;
    if lines.is_empty() {
        return String::new();
    }
    let mut text = "after the seal, not signed, and nothing follows from it:\n".to_owned();
    for line in lines.iter().take(MOST_SHOWN) {
        text += &format!("  {}\n", one_line(line));
    }
    let more = lines.len().saturating_sub(MOST_SHOWN);
    if more > 0 {
        text += &format!("  and {more} more\n");
    }
    text
}

fn verdict_words(code: Code) -> &'static str {
    match code {
        Code::EvidenceAltered => "the evidence was altered",
        Code::EvidenceIncomplete => "the evidence is incomplete",
        Code::RunUnfinished => "the run has not ended yet",
        Code::UnknownSchemaVersion => "the bundle has a format that is newer than this program",
        Code::KeyUnknown => "the key that signed it is not one that is trusted",
        _ => "the evidence carries no valid signature",
    }
}
