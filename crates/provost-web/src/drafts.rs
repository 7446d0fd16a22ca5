//! Words for the next attempt that were written on a page and not sent yet.
//!
//! They are kept by the server, so that leaving the page loses none; they end with the server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many runs have such words; the ones that were written longest ago are dropped.
const MOST: usize = 200;

/// The most bytes of the words about one run, as many as a form has.
const LONGEST: usize = 64 * 1024;

/// A repository and a run.
type About = (String, String);

#[derive(Debug, Clone, Default)]
pub(crate) struct Drafts(Arc<Mutex<VecDeque<(About, String)>>>);

impl Drafts {
    /// Keeps `words` in place of earlier ones; empty words keep none.
    pub(crate) fn keep(&self, about: About, words: &str) {
        let mut all = self.all();
        all.retain(|(known, _)| *known != about);
        if !words.trim().is_empty() && words.len() <= LONGEST {
            all.push_back((about, words.to_owned()));
        }
        if all.len() > MOST {
            all.pop_front();
        }
    }

    pub(crate) fn of(&self, repository: &str, run: &str) -> String {
        let all = self.all();
        let mut all = all.iter();
        let found = all.find(|((in_repository, of), _)| in_repository == repository && of == run);
        found.map(|(_, words)| words.clone()).unwrap_or_default()
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<(About, String)>> {
        // A panic ends the program, so that no other thread sees what it left.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_words_about_a_run_are_kept_within_limits() {
        let drafts = Drafts::default();
        let about = |run: usize| ("r".to_owned(), format!("run_{run}"));
        for run in 0..=MOST {
            drafts.keep(about(run), "first");
        }
        drafts.keep(about(7), "second");
        assert_eq!(drafts.of("r", "run_7"), "second");
        assert_eq!(drafts.of("r", "run_0"), "", "the oldest");
        assert_eq!(drafts.of("other", "run_7"), "");
        assert_eq!(drafts.all().len(), MOST);
        drafts.keep(about(7), " \n");
        assert_eq!(drafts.of("r", "run_7"), "");
        drafts.keep(about(8), &"x".repeat(LONGEST + 1));
        assert_eq!(drafts.of("r", "run_8"), "");
    }
}
