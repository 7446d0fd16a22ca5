//! The control room of one user: all registered repositories, through the queries of the engine.

mod ground;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use provost_core::bundle::dsse::Envelope;
use provost_core::bundle::key::PublicKey;
use provost_core::bundle::layout::{AFTER, ATTESTATION, MANIFEST, PATCH};
use provost_core::bundle::report::RunManifest;
use provost_core::code::Code;
use provost_core::gate::command;
use provost_core::json;
use provost_core::object::Oid;
use provost_core::path::{RawPath, is_segment};
use provost_core::run::State;
use provost_engine::bundle::verify::{self, Files as _};
use provost_engine::case::{CONTRACT as CASE_CONTRACT, CaseReport};
use provost_engine::ports::PortError;
use provost_engine::query::{
    self, CaseStatus, ChangeGroup, ComparedRun, ComparisonView, GroundView, LiveView,
    RunArchive as _, RunView, Surroundings, WorkflowCaseModel,
};
use provost_fs::stamp::Stamp;
use provost_host::bundle::Directory;
use provost_host::clock;
use provost_host::user_state::UserState;
use provost_room::changes::ChangeLog;
use provost_room::index::RepositoryIndex;
use provost_room::{commands, registered, running};
use provost_web::{
    AskedBy, AskedCommand, CasePage, ChangeRow, ControlRoom, EvidenceFile, EvidenceView,
    LedgerLine, OfferedCode, RepositoryRow, RoomChanges, RoomCommand, RoomListing, RunPage,
    SpendView, TokenRow, TranscriptPage,
};

use super::super::log::transcript::read_page;
use super::super::verify::trusted;
use super::super::why;
use super::{carry_out, tokens};
use crate::answer::Failure;
use crate::places::Places;
use crate::report::RunDirectory;
use crate::{input, parts, permit};

pub(super) struct UserRoom {
    state: UserState,
    registered: Mutex<(Option<Stamp>, Arc<Vec<Registered>>)>,
    known: Mutex<KnownRepositories>,
    /// The patch that was shown last, with its trees.
    patch: Mutex<Option<KnownPatch>>,
}

/// A patch between two trees.
type KnownPatch = ((Oid, Oid), Arc<Vec<u8>>);

/// The largest patch that is kept for its next page, in bytes.
const LARGEST_KEPT: usize = 32 * 1024 * 1024;

/// How long the directories of a repository are taken as found, in milliseconds.
const PLACE_LASTS: i64 = 10_000;

/// What was read of all repositories.
#[derive(Default)]
struct KnownRepositories {
    /// The directories, and when they were found.
    places: BTreeMap<String, (i64, Arc<Places>)>,
    repositories: BTreeMap<String, RepositoryIndex>,
    log: ChangeLog,
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
        registered::list(&state)?;
        Ok(Self {
            state,
            registered: Mutex::default(),
            known: Mutex::default(),
            patch: Mutex::default(),
        })
    }

    /// The registered repositories, read again if the list changed; a list that cannot be read
    /// leaves what was known.
    fn registered(&self) -> Arc<Vec<Registered>> {
        let mut known = self
            .registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let stamp = registered::stamp(&self.state);
        if (stamp.is_none() || known.0 != stamp)
            && let Ok(list) = registered::list(&self.state)
        {
            let all = list.into_iter().map(|path| Registered {
                id: registered::id(&path),
                path,
            });
            *known = (stamp, Arc::new(all.collect()));
        }
        Arc::clone(&known.1)
    }

    fn place(&self, repository: &str) -> Result<Arc<Places>, PortError> {
        let all = self.registered();
        let found = all.iter().find(|it| it.id == repository);
        let found = found.ok_or_else(|| missing("there is no such repository"))?;
        let now = clock::now_millis();
        let known = self.known().places.get(repository).cloned();
        if let Some((_, place)) = known.filter(|(then, _)| now - then < PLACE_LASTS) {
            return Ok(place);
        }
        let place = Places::look_at(&found.path).map_err(Failure::into_port_error)?;
        let place = Arc::new(place);
        let known = (now, Arc::clone(&place));
        self.known().places.insert(repository.to_owned(), known);
        Ok(place)
    }

    /// The places of a repository, and the run there with exactly this id.
    fn run_in(&self, repository: &str, run: &str) -> Result<Arc<Places>, PortError> {
        self.in_runs(repository, run, "run_")
    }

    fn in_runs(&self, repository: &str, id: &str, prefix: &str) -> Result<Arc<Places>, PortError> {
        let place = self.place(repository)?;
        let named = id.starts_with(prefix) && is_segment(id);
        let there = named
            .then(|| place.run(id).symlink_metadata().ok())
            .flatten();
        match there {
            Some(metadata) if metadata.is_dir() => Ok(place),
            _ => Err(missing("there is no such run")),
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownRepositories> {
        // A panic ends the program, so that no other thread sees what it left.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn look<'a>(
    repository: &str,
    place: &Places,
    known: &'a mut KnownRepositories,
) -> Result<&'a mut RepositoryIndex, PortError> {
    let KnownRepositories {
        repositories, log, ..
    } = known;
    let kept = || RepositoryIndex::kept_in(place.cache().ok());
    let index = repositories.entry(repository.to_owned());
    let index = index.or_insert_with(kept);
    index.look((repository, place), clock::now_millis(), log)?;
    Ok(index)
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
            problem: self.place(&it.id).err().map(|error| error.reason),
        };
        self.registered().iter().map(row).collect()
    }

    fn listing(&self, repository: &str) -> Result<Arc<RoomListing>, PortError> {
        let place = self.place(repository)?;
        let mut known = self.known();
        Ok(look(repository, &place, &mut known)?.listing())
    }

    fn live(&self, repository: &str, run: &str) -> Option<LiveView> {
        let place = self.place(repository).ok()?;
        let mut known = self.known();
        // The listing of the page that shows it has looked at the files.
        let index = known.repositories.get_mut(repository)?;
        index.live(&place, run, clock::now_millis())
    }

    fn commands(&self, repository: &str, id: &str) -> Vec<AskedCommand> {
        let Ok(place) = self.place(repository) else {
            return Vec::new();
        };
        let records = || {
            if id.starts_with(parts::CASE) {
                parts::case_records(&place, id).unwrap_or_default()
            } else {
                place.records(id).unwrap_or_default()
            }
        };
        if is_segment(id) {
            commands::list(&place, id, records)
        } else {
            Vec::new()
        }
    }

    fn compare(&self, repository: &str, runs: &[String]) -> Result<ComparisonView, PortError> {
        let place = self.place(repository)?;
        let compared = |run: &String| {
            let agent =
                query::state(place.as_ref(), run).map(|state| command::line(&state.opened.agent));
            ComparedRun::of(place.as_ref(), &agent.unwrap_or_default(), run)
        };
        Ok(ComparisonView {
            runs: runs.iter().map(compared).collect(),
        })
    }

    fn case(&self, repository: &str, case: &str) -> Result<CasePage, PortError> {
        let place = self.in_runs(repository, case, "case_")?;
        let state = parts::case_state(&place, case).map_err(Failure::into_port_error)?;
        let records = parts::case_records(&place, case).map_err(Failure::into_port_error)?;
        let report = CaseReport::of(case, &state);
        let contract = input::read(&place.run(case).join(CASE_CONTRACT), json::LARGEST);
        let contract = contract.unwrap_or_default();
        Ok(CasePage {
            case_id: case.to_owned(),
            status: CaseStatus::of(&state, place.is_driven(case)),
            model: WorkflowCaseModel::of(place.as_ref(), &report),
            events: records.iter().map(LedgerLine::of).collect(),
            contract: String::from_utf8_lossy(&contract).into_owned(),
            state,
        })
    }

    fn ground(&self, repository: &str) -> Result<GroundView<ChangeRow>, PortError> {
        let place = self.place(repository)?;
        let listing = self.listing(repository)?;
        ground::ground(&place, &listing)
    }

    fn spend(&self) -> Result<SpendView, PortError> {
        ground::spent(&self.state)
    }

    fn run(&self, repository: &str, run: &str) -> Result<RunPage, PortError> {
        let place = self.run_in(repository, run)?;
        let state = query::state(place.as_ref(), run)?;
        let around = Surroundings {
            part: parts::withheld(place.as_ref(), &state),
            ..Surroundings::read(place.as_ref(), &state, clock::now_millis())
        };
        let bundle = place.run(run);
        let contract = serde_json::to_string_pretty(&state.opened.contract);
        Ok(RunPage {
            view: RunView::of(&state, &bundle, &RunDirectory(&bundle), around),
            why: why::view(place.as_ref(), run).ok(),
            events: lines(&place, run)?,
            steps: query::waterfall(&place.records(run)?, clock::now_millis()),
            groups: groups(&state),
            live: self
                .listing(repository)
                .ok()
                .filter(|_| place.is_driven(run))
                .and_then(|_| self.live(repository, run)),
            contract: contract.unwrap_or_default(),
        })
    }

    fn remedy(&self, repository: &str, run: &str) -> Option<String> {
        let place = self.run_in(repository, run).ok()?;
        let view = why::view(place.as_ref(), run).ok()?;
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
        let (entries, more) = read_page(place.as_ref(), run, from, most)?;
        Ok(TranscriptPage {
            entries,
            next: more.then_some(from.saturating_add(most)),
        })
    }

    fn patch(&self, repository: &str, run: &str) -> Result<Arc<Vec<u8>>, PortError> {
        let place = self.run_in(repository, run)?;
        let state = query::state(place.as_ref(), run)?;
        let captured = state
            .captured
            .ok_or_else(|| missing("nothing was captured"))?;
        let trees = (state.opened.base_tree, captured.tree);
        let known = self.patch.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, patch)) = known.as_ref().filter(|(of, _)| *of == trees) {
            return Ok(Arc::clone(patch));
        }
        drop(known);
        let patch = place.repo.patch(&trees.0, &trees.1);
        // The trees may be removed from git by now; a sealed bundle has the patch.
        let sealed = || input::read(&place.run(run).join(PATCH), json::LARGEST);
        let patch = patch.or_else(|_| sealed().map_err(Failure::into_port_error))?;
        let patch = Arc::new(patch);
        // The pages of one patch are asked for one after the other.
        let mut known = self.patch.lock().unwrap_or_else(PoisonError::into_inner);
        *known = (patch.len() <= LARGEST_KEPT).then(|| (trees, Arc::clone(&patch)));
        Ok(patch)
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

    fn signer(&self, repository: &str, run: &str) -> Option<String> {
        let place = self.run_in(repository, run).ok()?;
        let bytes = opened(&place, run)
            .ok()?
            .read(&RawPath::new(ATTESTATION))
            .ok()?;
        let envelope = json::parse_as::<Envelope>(&bytes).ok()?;
        let keys = envelope.signatures.iter().map(|it| it.keyid.clone());
        Some(keys.collect::<Vec<_>>().join(", "))
    }

    fn carry_out(
        &self,
        repository: &str,
        id: &str,
        command: &RoomCommand,
        asked: &AskedBy,
    ) -> Result<String, PortError> {
        let all = self.registered();
        let found = all.iter().find(|it| it.id == repository);
        let path = found.map(|it| it.path.clone()).unwrap_or_default();
        if id.starts_with(parts::CASE) {
            self.in_runs(repository, id, parts::CASE)?;
        } else {
            self.run_in(repository, id)?;
        }
        let done = carry_out::carry_out(&path, id, command, asked);
        // The page after a command shows what it did.
        if let Some(index) = self.known().repositories.get_mut(repository) {
            index.forget_look();
        }
        done.map_err(Failure::into_port_error)
    }

    fn changes(&self, after: u64) -> RoomChanges {
        for registered in self.registered().iter() {
            if let Ok(place) = self.place(&registered.id) {
                // A repository that cannot be read now is read again at the next look.
                let _ = look(&registered.id, &place, &mut self.known());
            }
        }
        self.known().log.after(after)
    }

    fn offered_code(&self, instance: &str) -> Option<OfferedCode> {
        running::offered(&self.state, instance)
    }

    fn now(&self) -> i64 {
        clock::now_millis()
    }

    fn tokens(&self) -> Result<Vec<TokenRow>, PortError> {
        tokens::read(&self.state).map_err(Failure::into_port_error)
    }
}

/// The group of each changed file.
fn groups(state: &State) -> Vec<ChangeGroup> {
    let changes = state.captured.iter().flat_map(|it| &it.changes);
    changes
        .map(|change| ChangeGroup::of(state, &change.path))
        .collect()
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
