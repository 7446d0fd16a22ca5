//! Decides which runs can be swept away: their refs, their branch, what they left in caches; and which
//! records of plans and chains.
//!
//! # Invariants
//!
//! - A run that goes on, waits to be resumed or cannot be read stays as it is.
//! - Work that is on no branch goes only where somebody named an age and the run is older.
//! - What a cache holds stays while somebody may soon want it again.

use std::time::Duration;

/// How long something in a cache stays after its last use.
pub const CACHED: Duration = Duration::from_hours(24);

/// How long a run that never began is left alone: its driver may be about to begin it.
pub const NOT_BEGUN: Duration = Duration::from_hours(1);

/// Where a run stands, as far as keeping it is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Somebody drives it, or it waits to be resumed.
    Open,
    /// Its result is on the branch it was meant for.
    Landed,
    /// It ended and left nothing.
    Empty,
    /// It left work that is on no branch.
    Unlanded,
    /// Its driver died before the first record, long ago.
    NeverBegan,
    /// Nobody can tell.
    Unknown,
}

/// A run that may be swept away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// When it began, in milliseconds since 1970, if that is known.
    pub began: Option<i64>,
    pub standing: Standing,
    /// Whether an attempt that was lost left work beside the result.
    pub salvaged: bool,
}

/// What somebody wants kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionRequest {
    /// This many of the newest runs.
    pub keep: usize,
    /// Everything that began at this time or later.
    pub since: Option<i64>,
}

/// What becomes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Stays(Reason),
    /// Everything but the work of lost attempts goes.
    GoesButSalvage,
    /// Everything goes.
    Goes,
}

/// Why a run stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Somebody drives it, or it waits to be resumed.
    Open,
    /// Nobody can tell what it is.
    Unreadable,
    /// As many of the newest were to be kept.
    Newest,
    /// An age was named, and it is younger.
    Young,
    /// Its work is on no branch.
    Unlanded,
}

impl Reason {
    /// The reason, said of so many runs.
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

/// Where something stands that is made of several runs: the one that most stands in its way decides.
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

/// Decides about the run that is number `place` of all, counted from the newest, which is 0.
pub fn judge(run: &Candidate, place: usize, wish: RetentionRequest) -> Fate {
    let old = wish
        .since
        .map(|since| run.began.is_some_and(|began| began < since));
    match (run.standing, old) {
        (Standing::Open, _) => Fate::Stays(Reason::Open),
        // Nothing of it is anywhere, so no wish is about it.
        (Standing::NeverBegan, _) => Fate::Goes,
        (Standing::Unknown, _) => Fate::Stays(Reason::Unreadable),
        _ if place < wish.keep => Fate::Stays(Reason::Newest),
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
        let wish = |since| RetentionRequest {
            keep: 0,
            since: Some(since),
        };
        let goes = |standing| judge(&run(standing), 0, wish(1001)) == Fate::Goes;
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
            let fate = judge(&run(standing), 0, wish(1000));
            assert!(matches!(fate, Fate::Stays(_)), "{standing:?}");
            let mut ageless = run(standing);
            ageless.began = None;
            let fate = judge(&ageless, 0, wish(i64::MAX));
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
        let wish = RetentionRequest {
            keep: 2,
            since: None,
        };
        let fate = |place| judge(&run(Standing::Landed), place, wish);
        assert!(matches!(fate(1), Fate::Stays(_)));
        assert_eq!(fate(2), Fate::Goes);
        let mut lost = run(Standing::Landed);
        lost.salvaged = true;
        assert_eq!(judge(&lost, 2, wish), Fate::GoesButSalvage);
        let aged = RetentionRequest {
            keep: 2,
            since: Some(1001),
        };
        assert_eq!(judge(&lost, 2, aged), Fate::Goes);
    }
}
