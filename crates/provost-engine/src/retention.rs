//! Decides which runs `provost gc` removes (their refs, branch and cache entries), and which
//! records of plans and chains.
//!
//! # Invariants
//!
//! - A run that is active, waits to be resumed or cannot be read stays as it is.
//! - Work that is on no branch is removed only if the user gave an age and the run is older.
//! - A cache entry stays for [`CACHED`] after its last use.

use std::time::Duration;

/// How long a cache entry stays after its last use.
pub const CACHED: Duration = Duration::from_hours(24);

/// How long a run without a first record is kept: its driver may be about to begin it.
pub const NOT_BEGUN: Duration = Duration::from_hours(1);

/// The state of a run, as far as retention is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// A process drives it, or it waits to be resumed.
    Open,
    /// Its result is on the target branch.
    Landed,
    /// It ended and left nothing.
    Empty,
    /// It left work that is on no branch.
    Unlanded,
    /// Its driver died before the first record, long ago.
    NeverBegan,
    /// Its record cannot be read.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// In milliseconds since 1970, if that is known.
    pub began: Option<i64>,
    pub standing: Standing,
    /// Whether a lost attempt left work beside the result.
    pub salvaged: bool,
}

/// What the user wants to keep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionRequest {
    /// This many of the newest runs.
    pub keep: usize,
    /// Every run that began at this time or later.
    pub since: Option<i64>,
}

/// Result for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Stays(Reason),
    /// Everything but the work of lost attempts is removed.
    GoesButSalvage,
    /// Everything is removed.
    Goes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A process drives it, or it waits to be resumed.
    Open,
    /// Its record cannot be read.
    Unreadable,
    /// It is one of the newest runs that the user keeps.
    Newest,
    /// It is younger than the age that the user gave.
    Young,
    Unlanded,
}

impl Reason {
    /// The reason as text, for `count` runs.
    pub fn words(self, count: usize) -> &'static str {
        let one = count == 1;
        match self {
            Self::Open if one => "it has not ended",
            Self::Open => "they have not ended",
            Self::Unreadable if one => "it cannot be read",
            Self::Unreadable => "they cannot be read",
            Self::Newest if one => "it is among the newest",
            Self::Newest => "they are among the newest",
            Self::Young if one => "it is not that old",
            Self::Young => "they are not that old",
            Self::Unlanded if one => "its work has not landed",
            Self::Unlanded => "their work has not landed",
        }
    }
}

/// The standing of something that consists of several runs: the strongest reason to keep decides.
pub fn together(runs: impl IntoIterator<Item = Standing>) -> Standing {
    let rank = |standing: &Standing| match standing {
        // A run that never began left nothing.
        Standing::NeverBegan | Standing::Empty => 0,
        Standing::Landed => 1,
        Standing::Unlanded => 2,
        Standing::Unknown => 3,
        Standing::Open => 4,
    };
    match runs.into_iter().max_by_key(rank) {
        None | Some(Standing::NeverBegan) => Standing::Empty,
        Some(standing) => standing,
    }
}

/// Decides about the run at `place`, counted from the newest, which is 0.
pub fn judge(run: &Candidate, place: usize, request: RetentionRequest) -> Fate {
    let old = request
        .since
        .map(|since| run.began.is_some_and(|began| began < since));
    match (run.standing, old) {
        (Standing::Open, _) => Fate::Stays(Reason::Open),
        // It left nothing, so no request to keep applies.
        (Standing::NeverBegan, _) => Fate::Goes,
        (Standing::Unknown, _) => Fate::Stays(Reason::Unreadable),
        _ if place < request.keep => Fate::Stays(Reason::Newest),
        (_, Some(false)) => Fate::Stays(Reason::Young),
        (Standing::Unlanded, None) => Fate::Stays(Reason::Unlanded),
        (Standing::Landed | Standing::Empty, None) if run.salvaged => Fate::GoesButSalvage,
        (Standing::Landed | Standing::Empty | Standing::Unlanded, _) => Fate::Goes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Standing; 6] = [
        Standing::Open,
        Standing::Landed,
        Standing::Empty,
        Standing::Unlanded,
        Standing::NeverBegan,
        Standing::Unknown,
    ];

    fn run(standing: Standing) -> Candidate {
        Candidate {
            began: Some(1000),
            standing,
            salvaged: false,
        }
    }

    #[test]
    fn only_what_is_done_with_goes() {
        let goes = |standing| judge(&run(standing), 0, RetentionRequest::default()) == Fate::Goes;
        let gone: Vec<Standing> = ALL.into_iter().filter(|it| goes(*it)).collect();
        assert_eq!(
            gone,
            [Standing::Landed, Standing::Empty, Standing::NeverBegan]
        );
    }

    #[test]
    fn an_age_opens_work_that_has_not_landed_and_nothing_that_goes_on() {
        let request = |since| RetentionRequest {
            keep: 0,
            since: Some(since),
        };
        let goes = |standing| judge(&run(standing), 0, request(1001)) == Fate::Goes;
        let gone: Vec<Standing> = ALL.into_iter().filter(|it| goes(*it)).collect();
        assert_eq!(
            gone,
            [
                Standing::Landed,
                Standing::Empty,
                Standing::Unlanded,
                Standing::NeverBegan
            ]
        );
        for standing in ALL.into_iter().filter(|it| *it != Standing::NeverBegan) {
            let fate = judge(&run(standing), 0, request(1000));
            assert!(matches!(fate, Fate::Stays(_)), "{standing:?}");
            let mut ageless = run(standing);
            ageless.began = None;
            let fate = judge(&ageless, 0, request(i64::MAX));
            assert!(matches!(fate, Fate::Stays(_)), "{standing:?}");
        }
    }

    #[test]
    fn the_run_that_is_least_done_with_decides_for_all() {
        use Standing::{Empty, Landed, NeverBegan, Open, Unknown, Unlanded};
        let cases: [(&[Standing], Standing); 6] = [
            (&[], Empty),
            (&[NeverBegan, NeverBegan], Empty),
            (&[Landed, Empty], Landed),
            (&[Unlanded, Landed], Unlanded),
            (&[Unknown, Unlanded, Landed], Unknown),
            (&[Landed, Open, Unknown], Open),
        ];
        for (runs, want) in cases {
            assert_eq!(together(runs.iter().copied()), want, "{runs:?}");
        }
    }

    #[test]
    fn the_newest_and_the_work_of_lost_attempts_stay() {
        let request = RetentionRequest {
            keep: 2,
            since: None,
        };
        let fate = |place| judge(&run(Standing::Landed), place, request);
        assert!(matches!(fate(1), Fate::Stays(_)));
        assert_eq!(fate(2), Fate::Goes);
        let mut lost = run(Standing::Landed);
        lost.salvaged = true;
        assert_eq!(judge(&lost, 2, request), Fate::GoesButSalvage);
        let aged = RetentionRequest {
            keep: 2,
            since: Some(1001),
        };
        assert_eq!(judge(&lost, 2, aged), Fate::Goes);
    }
}
