//! What active runs do now, kept for a second as long as their files are the same.

use std::path::{Path, PathBuf};

use provost_core::run::State;
use provost_engine::query::{LiveView, transcripts};
use provost_fs::stamp::Stamp;
use provost_surface::places::Places;
use provost_surface::report::RunDirectory;

/// How long a view is shown at most, in milliseconds: what the model cost has no stamp here.
const LASTS: i64 = 1_000;

/// A view, and the files that it was computed from.
#[derive(Debug)]
pub(crate) struct KnownLive {
    view: LiveView,
    at: i64,
    event: u64,
    /// What the active worker prints.
    files: Vec<(PathBuf, Option<Stamp>)>,
}

impl KnownLive {
    /// The view of `state`, whose last event has the number `event`.
    pub(crate) fn of(place: &Places, state: &State, event: u64, now: i64) -> Self {
        let directory = place.run(&state.names.run_id);
        let all = transcripts(state);
        let files = all.last().map(|source| source.files()).unwrap_or_default();
        let files = files.into_iter().map(|(name, _)| directory.join(name));
        Self {
            files: files.map(|path| (path.clone(), stamp(&path))).collect(),
            view: LiveView::of(state, place, &RunDirectory(&directory), now),
            at: now,
            event,
        }
    }

    /// The view as of `now`, unless something changed since.
    pub(crate) fn now(&self, event: u64, now: i64) -> Option<LiveView> {
        let later = now - self.at;
        let is_same = event == self.event
            && (0..LASTS).contains(&later)
            && self.files.iter().all(|(path, known)| stamp(path) == *known);
        let later = u64::try_from(later).ok().filter(|_| is_same)?;
        let mut view = self.view.clone();
        view.step_ms = view.step_ms.map(|time| time + later);
        view.took_ms = view.took_ms.map(|time| time + later);
        Some(view)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let stat = rustix::fs::lstat(path).ok()?;
    Some(Stamp::of(&stat))
}
