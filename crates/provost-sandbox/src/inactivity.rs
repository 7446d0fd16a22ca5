//! Decides for how long a sandbox has made no progress.
//!
//! # Invariants
//!
//! - Only a changed sign counts as progress. Unobserved time is never counted as silence, so a slow
//!   scan of the files postpones the answer and does not change it.

use std::time::Duration;

/// The activity of a sandbox, seen from outside. All times are since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Inactivity {
    said: u64,
    files: Option<u64>,
    /// When a sign last changed.
    stirred: Duration,
    /// The time up to which the files are known.
    known: Duration,
}

impl Inactivity {
    /// Records the output until `now`: bytes, or events of an agent whose stream distinguishes work
    /// from waiting.
    pub(super) fn hear(&mut self, now: Duration, said: u64) {
        if self.said != said {
            self.said = said;
            self.stirred = self.stirred.max(now);
        }
    }

    /// Records the state of the files: a number that differs if any of them does, from a scan that
    /// began at `at`.
    pub(super) fn look(&mut self, at: Duration, files: u64) {
        // The first scan has nothing to compare with.
        if self.files.is_some_and(|before| before != files) {
            self.stirred = self.stirred.max(at);
        }
        self.files = Some(files);
        self.known = self.known.max(at);
    }

    /// For how long no sign has changed, as far as that is known.
    pub(super) fn lasting(&self) -> Duration {
        self.known.saturating_sub(self.stirred)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Sign {
        Said(u64),
        Files(u64),
    }
    use Sign::{Files, Said};

    fn lasting(signs: &[(u64, Sign)]) -> u64 {
        let mut stillness = Inactivity::default();
        for (second, sign) in signs {
            let at = Duration::from_secs(*second);
            match sign {
                Said(said) => stillness.hear(at, *said),
                Files(files) => stillness.look(at, *files),
            }
        }
        stillness.lasting().as_secs()
    }

    #[test]
    fn only_what_differs_ends_a_silence() {
        type Case<'a> = (&'a str, &'a [(u64, Sign)], u64);
        let cases: [Case<'_>; 7] = [
            ("nothing is known", &[], 0),
            ("files stay", &[(1, Files(7)), (9, Files(7))], 9),
            (
                "a file differs",
                &[(1, Files(7)), (6, Files(8)), (9, Files(8))],
                3,
            ),
            (
                "something is said",
                &[(1, Files(7)), (6, Said(5)), (9, Files(7))],
                3,
            ),
            (
                "the same is said",
                &[(2, Said(5)), (6, Said(5)), (9, Files(7))],
                7,
            ),
            ("said after the look", &[(9, Files(7)), (12, Said(1))], 0),
            ("no look at the files", &[(600, Said(0))], 0),
        ];
        for (name, signs, want) in cases {
            assert_eq!(lasting(signs), want, "{name}");
        }
    }
}
