//! Finds a board, and locks it for one request.

use std::fs;
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_core::record::{GENESIS, Head, Record};
use provost_core::verdict::Verdict;
use provost_engine::ports::Clock as _;
use provost_formats::board::ask::ask;
use provost_formats::board::decide::Request;
use provost_formats::board::state::Board;
use provost_formats::operator::{self, board as payload};

use provost_surface::answer::{Answer, Failure};
use provost_surface::input;
use provost_surface::places::Places;
use provost_surface::session::{self, SystemClock};
use provost_surface::stores::{self, DriverGuard, Expected, board};

use super::Which;

/// The largest payload that a board accepts, in bytes: it is kept for good.
const LARGEST: usize = 1024 * 1024;

/// Why a command of the board stops early.
pub(super) enum Stop {
    /// The answer is no.
    Refused(Verdict),
    /// There is no answer.
    Failed(Failure),
}

impl From<Verdict> for Stop {
    fn from(verdict: Verdict) -> Self {
        Self::Refused(verdict)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Reads a payload; one that is too large is refused by a verdict, a missing file is a failure.
pub(super) fn read(file: &Path) -> Result<Vec<u8>, Stop> {
    input::read(file, LARGEST).map_err(too_large)
}

/// The log that a result names, if that file exists; no symbolic link is followed.
pub(super) fn read_log(path: &str) -> Result<Option<Vec<u8>>, Stop> {
    input::read_named(Path::new(path), LARGEST).map_err(too_large)
}

fn too_large(failure: Failure) -> Stop {
    if failure.code == Code::InputTooLarge {
        return operator::unreadable(&failure.reason).into();
    }
    failure.into()
}

/// The board of one run.
pub(super) struct BoardSession {
    run_id: String,
    directory: PathBuf,
    place: Places,
}

impl BoardSession {
    /// The board of the run `run_id`, which may not exist yet.
    pub(super) fn of(run_id: String) -> Result<Self, Stop> {
        Ok(Self::at(Places::find()?, run_id))
    }

    /// The board of the run `run_id`, which must exist.
    pub(super) fn begun(run_id: String) -> Result<Self, Stop> {
        let session = Self::of(run_id)?;
        if session.is_begun() {
            return Ok(session);
        }
        let reason = format!("the run {} has no board", session.run_id);
        Err(Verdict::deny(Code::LedgerInconsistent, reason).into())
    }

    fn at(place: Places, run_id: String) -> Self {
        Self {
            directory: place.boards().join(&run_id),
            run_id,
            place,
        }
    }

    /// The board that `which` names, or the only one; it must exist.
    pub(super) fn find(which: &Which) -> Result<Self, Stop> {
        Self::look(which)?.ok_or_else(|| {
            let failure = Failure::new(Code::NotFound, "there is no board yet");
            failure.hint("provost board assign --help").into()
        })
    }

    /// The board that `which` names, or the only one; nothing if there is none.
    pub(super) fn look(which: &Which) -> Result<Option<Self>, Stop> {
        let place = Places::find()?;
        if let Some(named) = &which.run {
            let run_id = payload::read_run(named)?;
            let session = Self::at(place, run_id);
            return Ok(session.is_begun().then_some(session));
        }
        let mut runs = begun(&place)?;
        match runs.len() {
            0 | 1 => Ok(runs.pop().map(|run_id| Self::at(place, run_id))),
            count => {
                let runs = runs.join(", ");
                let reason = format!("there are {count} boards, of the runs {runs}");
                let failure = Failure::new(Code::UsageError, reason);
                Err(failure.hint("name one with --run RUN_ID").into())
            }
        }
    }

    fn is_begun(&self) -> bool {
        is_begun(&self.directory)
    }

    /// The current board, and the hash of its last event.
    pub(super) fn board(&self) -> Result<(Board, String), Failure> {
        let records = board::records(&self.directory)?;
        let head = records.last().map_or(GENESIS, |record| &record.hash);
        Ok((self.fold(&records)?, head.to_owned()))
    }

    fn fold(&self, records: &[Record]) -> Result<Board, Failure> {
        Board::fold(&self.run_id, records)
            .map_err(|error| Failure::of(Code::EvidenceAltered, &error))
    }

    /// Applies the request that `order` makes from the board, under the lock.
    pub(super) fn ask(
        &self,
        now: i64,
        order: impl FnOnce(&Board) -> Result<Request, Verdict>,
    ) -> Result<Answer, Stop> {
        let _turn = self.enter()?;
        let path = self.directory.join(board::RECORDS);
        let mut ledger = stores::open_ledger(&path, Expected::Either, Head::genesis(), None)
            .map_err(Failure::from)?;
        let board = self.fold(ledger.records())?;
        let (verdict, fact) = ask(&board, order(&board)?, now);
        if let Some(fact) = fact {
            let event = fact.event(&self.run_id, SystemClock.timestamp());
            ledger.append(event).map_err(Failure::from)?;
        }
        Ok(verdict.into())
    }

    /// Waits for the lock of the board.
    pub(super) fn enter(&self) -> Result<DriverGuard, Failure> {
        self.place.prepare_boards()?;
        let owner = session::owner()?;
        Ok(board::enter(&self.directory, &owner)?)
    }

    /// The default directory of hand-offs.
    pub(super) fn handoffs(&self) -> PathBuf {
        self.directory.join("handoffs")
    }
}

/// The runs that have a board.
fn begun(place: &Places) -> Result<Vec<String>, Failure> {
    let directory = place.boards();
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let reason = format!("`{}`: {error}", directory.display());
            return Err(Failure::new(Code::StoreFailed, reason));
        }
    };
    let names = entries
        .flatten()
        .filter(|entry| is_begun(&entry.path()))
        .filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names
        .filter(|name| payload::read_run(name).is_ok())
        .collect())
}

/// Whether the board in `directory` has an event; a refused request leaves an empty file.
fn is_begun(directory: &Path) -> bool {
    fs::symlink_metadata(directory.join(board::RECORDS))
        .is_ok_and(|entry| !entry.is_file() || entry.len() > 0)
}
