//! The control room of one user: all registered repositories, through the queries of the engine.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_core::approval::Person;
use provost_core::bundle::key::PublicKey;
use provost_core::bundle::layout::{AFTER, ATTESTATION, LEDGER, MANIFEST, PATCH};
use provost_core::bundle::report::RunManifest;
use provost_core::code::Code;
use provost_core::gate::command;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::path::{RawPath, is_segment};
use provost_core::run::fact::Cancel;
use provost_core::run::{Gate, State, Step};
use provost_core::verdict::Verdict;
use provost_engine::bundle::verify::{self, Files as _};
use provost_engine::ports::{Observer, ObserverChoice, PortError, Progress};
use provost_engine::query::{
    self, LiveView, QuestionView, RunArchive as _, RunStatus, RunView, Surroundings,
};
use provost_host::bundle::Directory;
use provost_host::cancel_request::CancelRequest;
use provost_host::clock;
use provost_host::user_state::UserState;
use provost_web::{
    ControlRoom, EvidenceFile, EvidenceView, LedgerLine, RepositoryRow, RoomCommand, RoomRow,
    RunPage, TokenRow, TranscriptPage,
};

use super::super::log::transcript::read_page;
use super::super::verify::trusted;
use super::super::why;
use super::{detached, registered, tokens};
use crate::answer::Failure;
use crate::history::has_driver;
use crate::places::Places;
use crate::report::RunDirectory;
use crate::session::{self, Session};
use crate::{input, parts, permit};

/// How long an approval that is given on a page is valid for the start of the work.
const APPROVAL_LASTS: Duration = Duration::from_hours(1);

/// Who asked, in the ledger, beside the name of the account.
const ASKED_THROUGH: &str = "serve-session";

pub(super) struct UserRoom {
    state: UserState,
    repositories: Vec<Registered>,
}

struct Registered {
    id: String,
    path: PathBuf,
}

impl UserRoom {
    /// All registered repositories; the one around the current directory is registered first.
    pub(super) fn new(state: UserState) -> Result<Self, Failure> {
        if let Ok(place) = Places::look() {
            registered::add(&state, top(&place))?;
        }
        let known = registered::list(&state)?.into_iter();
        let known = known.map(|path| Registered {
            id: sha256(path.as_os_str().as_encoded_bytes())[..16].to_owned(),
            path,
        });
        Ok(Self {
            state,
            repositories: known.collect(),
        })
    }

    fn place(&self, repository: &str) -> Result<Places, PortError> {
        let found = self.repositories.iter().find(|it| it.id == repository);
        let found = found.ok_or_else(|| missing("there is no such repository"))?;
        Places::look_at(&found.path).map_err(Failure::into_port_error)
    }

    /// The places of a repository, and the run there with exactly this id.
    fn run_in(&self, repository: &str, run: &str) -> Result<Places, PortError> {
        let place = self.place(repository)?;
        let named = run.starts_with("run_") && is_segment(run);
        let there = named
            .then(|| place.run(run).symlink_metadata().ok())
            .flatten();
        match there {
            Some(metadata) if metadata.is_dir() => Ok(place),
            _ => Err(missing("there is no such run")),
        }
    }
}

fn top(place: &Places) -> &Path {
    place.repo.top().unwrap_or_else(|| place.repo.common_dir())
}

fn missing(reason: &str) -> PortError {
    PortError::new(Code::NotFound, reason)
}

impl ControlRoom for UserRoom {
    fn repositories(&self) -> Vec<RepositoryRow> {
        let row = |it: &Registered| RepositoryRow {
            id: it.id.clone(),
            name: it.path.file_name().map_or_else(
                || it.path.display().to_string(),
                |name| name.to_string_lossy().into_owned(),
            ),
            path: it.path.display().to_string(),
            problem: Places::look_at(&it.path)
                .err()
                .map(|failure| failure.reason),
        };
        self.repositories.iter().map(row).collect()
    }

    fn rows(&self, repository: &str, skip: usize, most: usize) -> Result<Vec<RoomRow>, PortError> {
        let place = self.place(repository)?;
        let runs = place.runs().map_err(Failure::into_port_error)?;
        let runs: Vec<String> = runs.into_iter().rev().skip(skip).take(most).collect();
        let rows = query::summaries(&place, &runs).into_iter();
        Ok(rows.map(|summary| row(&place, summary)).collect())
    }

    fn run(&self, repository: &str, run: &str) -> Result<RunPage, PortError> {
        let place = self.run_in(repository, run)?;
        let state = query::state(&place, run)?;
        let around = Surroundings {
            part: parts::withheld(&place, &state),
            ..Surroundings::read(&place, &state, clock::now_millis())
        };
        let bundle = place.run(run);
        let contract = serde_json::to_string_pretty(&state.opened.contract);
        Ok(RunPage {
            view: RunView::of(&state, &bundle, &RunDirectory(&bundle), around),
            why: why::view(&place, run).ok(),
            events: lines(&place, run)?,
            contract: contract.unwrap_or_default(),
        })
    }

    fn remedy(&self, repository: &str, run: &str) -> Option<String> {
        let place = self.run_in(repository, run).ok()?;
        let view = why::view(&place, run).ok()?;
        let words = view.permit_with.as_deref().map(permit::pasted);
        Some(words.unwrap_or_else(|| format!("provost why {run}")))
    }

    fn transcript(
        &self,
        repository: &str,
        run: &str,
        from: usize,
        most: usize,
    ) -> Result<TranscriptPage, PortError> {
        let place = self.run_in(repository, run)?;
        let (entries, more) = read_page(&place, run, from, most)?;
        Ok(TranscriptPage {
            entries,
            next: more.then_some(from.saturating_add(most)),
        })
    }

    fn patch(&self, repository: &str, run: &str) -> Result<Vec<u8>, PortError> {
        let place = self.run_in(repository, run)?;
        let state = query::state(&place, run)?;
        let captured = state
            .captured
            .ok_or_else(|| missing("nothing was captured"))?;
        let patch = place.repo.patch(&state.opened.base_tree, &captured.tree);
        // The trees may be removed from git by now; a sealed bundle has the patch.
        let sealed = || input::read(&place.run(run).join(PATCH), json::LARGEST);
        patch.or_else(|_| sealed().map_err(Failure::into_port_error))
    }

    fn evidence(&self, repository: &str, run: &str) -> Result<EvidenceView, PortError> {
        let place = self.run_in(repository, run)?;
        let directory = opened(&place, run)?;
        let keys = trusted().map_err(Failure::into_port_error)?;
        let keys: Vec<PublicKey> = keys.iter().map(|known| known.key).collect();
        let pins = place.pins(run).map_err(Failure::into_port_error)?;
        let records = place.records(run)?;
        Ok(EvidenceView {
            report: verify::verify(&directory, &keys, &pins, None),
            files: files(&directory),
            events: lines(&place, run)?,
            head: records.last().map(|record| record.hash.clone()),
        })
    }

    fn file(&self, repository: &str, run: &str, name: &str) -> Result<Vec<u8>, PortError> {
        let place = self.run_in(repository, run)?;
        let directory = opened(&place, run)?;
        if !files(&directory).iter().any(|file| file.name == name) {
            return Err(missing("the manifest of the run names no such file"));
        }
        let bytes = directory.read(&RawPath::new(name));
        bytes.map_err(|reason| PortError::new(Code::InputUnreadable, reason))
    }

    fn carry_out(
        &self,
        repository: &str,
        run: &str,
        command: &RoomCommand,
    ) -> Result<String, PortError> {
        self.run_in(repository, run)?;
        let found = self.repositories.iter().find(|it| it.id == repository);
        let path = found.map(|it| it.path.clone()).unwrap_or_default();
        carried_out(&path, run, command).map_err(Failure::into_port_error)
    }

    fn stamp(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for registered in &self.repositories {
            let Ok(place) = Places::look_at(&registered.path) else {
                continue;
            };
            for run in place.runs().unwrap_or_default() {
                let directory = place.run(&run);
                let size = |name: &str| fs::metadata(directory.join(name)).map_or(0, |it| it.len());
                let sealed = size(ATTESTATION) > 0;
                (&run, sealed, size(LEDGER), size(AFTER)).hash(&mut hasher);
                // What an active agent does is not in the ledger; its page is renewed with time.
                if !sealed && has_driver(&directory) {
                    (clock::now_millis() / 2000).hash(&mut hasher);
                }
            }
        }
        hasher.finish()
    }

    fn now(&self) -> i64 {
        clock::now_millis()
    }

    fn tokens(&self) -> Result<Vec<TokenRow>, PortError> {
        tokens::read(&self.state).map_err(Failure::into_port_error)
    }
}

fn row(place: &Places, summary: query::RunSummary) -> RoomRow {
    let state = query::state(place, &summary.run_id).ok();
    let directory = place.run(&summary.run_id);
    let known = state.as_ref();
    let now = clock::now_millis();
    let is_live = summary.status == RunStatus::Running;
    let waits = summary.status == RunStatus::Waiting;
    RoomRow {
        live: known
            .filter(|_| is_live)
            .map(|it| LiveView::of(it, place, &RunDirectory(&directory), now)),
        question: known.filter(|_| waits).and_then(QuestionView::of),
        parent: known.and_then(|it| it.opened.parent.clone()),
        agent: known.map(|it| command::line(&it.opened.agent)),
        summary,
    }
}

fn lines(place: &Places, run: &str) -> Result<Vec<LedgerLine>, PortError> {
    let mut records = place.records(run)?;
    records.extend(place.after(run).unwrap_or_default());
    Ok(records.iter().map(LedgerLine::of).collect())
}

fn opened(place: &Places, run: &str) -> Result<Directory, PortError> {
    let directory = Directory::open(&place.run(run));
    directory.map_err(|error| PortError::new(Code::InputUnreadable, error.to_string()))
}

/// The files that the manifest names, and the documents beside it.
fn files(directory: &Directory) -> Vec<EvidenceFile> {
    let manifest = directory.read(&RawPath::new(MANIFEST)).unwrap_or_default();
    let manifest = json::parse_as::<RunManifest>(&manifest).ok();
    let hashes = manifest.into_iter().flat_map(|it| it.evidence_hashes);
    let named = hashes.map(|(name, digest)| EvidenceFile {
        name,
        sha256: Some(digest.to_string()),
    });
    let beside = [ATTESTATION, MANIFEST, AFTER].map(|name| EvidenceFile {
        name: name.to_owned(),
        sha256: None,
    });
    let there = directory.names();
    let is_there = |file: &EvidenceFile| there.contains(&RawPath::new(file.name.as_str()));
    beside.into_iter().chain(named).filter(is_there).collect()
}

/// The user, who asked through this server.
fn person() -> Result<Person, Failure> {
    let person = session::person()?;
    Ok(Person {
        user: format!("{} ({ASKED_THROUGH})", person.user),
        ..person
    })
}

/// Answers are recorded here; what drives a run is a process of its own.
fn carried_out(path: &Path, run: &str, command: &RoomCommand) -> Result<String, Failure> {
    let place = Places::of(path)?;
    query::require_own(&place, run)?;
    match command {
        RoomCommand::Approve { digest } => {
            let mut session = Session::open(place, run)?;
            session.approve(person()?, Some(digest), APPROVAL_LASTS, &mut QuietObserver)?;
            drop(session);
            detached::start(&Places::of(path)?, &["resume", run])
        }
        RoomCommand::Reject { digest, reason } => {
            let session = Session::open(place, run)?;
            session.reject(person()?, Some(digest), reason, &mut QuietObserver)?;
            Ok("rejected".to_owned())
        }
        RoomCommand::Cancel { reason } if place.is_driven(run) => {
            CancelRequest::of(&place.root, run).leave(&Cancel {
                by: Some(person()?),
                at: clock::now(),
                reason: reason.clone(),
            })?;
            Ok("asked to end".to_owned())
        }
        RoomCommand::Cancel { reason } => {
            let reason = format!("--reason={reason} ({ASKED_THROUGH})");
            detached::start(&place, &["cancel", run, &reason])
        }
        RoomCommand::Retry { words: None } => detached::start(&place, &["retry", run]),
        // Words that begin like a flag are words.
        RoomCommand::Retry { words: Some(words) } => {
            detached::start(&place, &["retry", run, "--", words])
        }
        RoomCommand::KeepWork => {
            let view = why::view(&place, run)?;
            let words = view.permit_with.unwrap_or_default();
            let flags = words.iter().skip(4).map(String::as_str);
            let words: Vec<&str> = ["retry", run, "--keep-work"]
                .into_iter()
                .chain(flags)
                .collect();
            detached::start(&place, &words)
        }
        RoomCommand::Land => detached::start(&place, &["land", run]),
        RoomCommand::Resume => detached::start(&place, &["resume", run]),
    }
}

/// Shows nothing and cancels nothing: no person watches the steps of an answer.
struct QuietObserver;

impl Observer for QuietObserver {
    fn begins(&mut self, _: &State, _: Step) -> ObserverChoice {
        ObserverChoice::Continue
    }

    fn cancel(&mut self) -> Option<Cancel> {
        None
    }

    fn judged(&mut self, _: Gate, _: &Verdict) {}

    fn progressed(&mut self, _: &Progress) -> ObserverChoice {
        ObserverChoice::Continue
    }
}
