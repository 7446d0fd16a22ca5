//! Finds the analysis that unfinished work is judged from.
//!
//! Work that no finish accepted keeps the analysis it began from. That holds whichever agent
//! declares its files next and however the first intent ended. The work ends when a finish accepts
//! it, or when a later intent finds its path clean. A commit ends it only if it holds exactly the
//! content that was on disk when its owner gave the intent back. A commit of other content leaves
//! the work where it was, on disk.

pub(crate) mod find;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::intent::{Intent, State};
use crate::scope::Relation;
use provost_core::checkout::{CheckoutState, Moved};
use provost_core::path::RawPath;

/// The intent that the work in the checkout began with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkBeginning {
    pub intent_id: String,
    /// When it was declared, in milliseconds since 1970.
    pub declared_at: i64,
}

/// An intent under which files could be edited, and what was committed since it was declared.
#[derive(Debug, Clone, Copy)]
pub struct Past<'a> {
    pub intent: &'a Intent,
    /// What differs between the tree it began from and the tree of the checkout.
    pub moved: &'a Moved,
    /// Whether the tree it began from is that of a commit that the checkout descends from.
    pub descends: bool,
}

impl Intent {
    /// The intent that its work began with: itself, or the one whose analysis it took over.
    pub fn beginning(&self) -> WorkBeginning {
        self.carried.clone().unwrap_or_else(|| WorkBeginning {
            intent_id: self.intent_id.clone(),
            declared_at: self.declared_at,
        })
    }

    /// Whether its agent declared `path`, or said that it touched it.
    fn concerns(&self, path: &RawPath) -> bool {
        self.scope.relation(path) != Relation::Outside || self.named.contains(path)
    }

    /// What is on disk in `now` at the dirty paths that it concerns; `None` where it cannot be
    /// read.
    pub fn dirty_in(&self, now: &CheckoutState) -> BTreeMap<RawPath, Option<String>> {
        let dirty = now.dirty.iter().filter(|(path, _)| self.concerns(path));
        dirty
            .map(|(path, file)| (path.clone(), file.disk.clone()))
            .collect()
    }

    /// Whether its owner gave it back, and all of its work at `path` is committed as `head`.
    fn ended_committed(&self, path: &RawPath, head: &str) -> bool {
        let left = self.left.as_ref();
        left.is_some_and(|left| match left.get(path) {
            None => true,
            Some(disk) => disk.as_deref() == Some(head),
        })
    }

    /// Whether it ended with a finish that accepted its work.
    fn ended_accepted(&self) -> bool {
        self.state == State::Clean && self.accepted.is_some()
    }
}

/// The intent that the work in the dirty `path` began with; `None` if it is no unfinished work of
/// an intent. `past` are all intents, the oldest first.
pub fn first<'a>(path: &RawPath, now: &CheckoutState, past: &[Past<'a>]) -> Option<&'a Intent> {
    let file = now.dirty.get(path)?;
    let disk = file.disk.as_deref();
    let accepted = |content: Option<&str>| {
        let all = past.iter().filter_map(|one| one.intent.accepted.as_ref());
        let mut all = all.filter_map(|one| one.get(path));
        content.is_some() && all.any(|one| one.as_deref() == content)
    };
    if accepted(disk) {
        return None;
    }
    let mut found: Option<(&Intent, Option<&str>)> = None;
    let concerned = |one: &&Past<'_>| one.intent.edit_allowed && one.intent.concerns(path);
    for one in past.iter().filter(concerned) {
        let start = one.intent.snapshot.as_ref().map(|it| &it.workspace);
        let was = start.and_then(|start| start.before(path, now, one.moved));
        let moved = one.moved.contains_key(path);
        // What it found committed is over, unless the checkout has left that commit again.
        let stands = one.descends || !moved;
        let clean = start.is_some_and(|start| !start.dirty.contains_key(path));
        if (clean && stands) || accepted(was) {
            found = None;
        }
        let committed = moved && one.intent.ended_committed(path, &file.head);
        if found.is_none() && !committed && !one.intent.ended_accepted() {
            found = Some((one.intent, was));
        }
    }
    // Changes that were there before the first intent, and did not change since, belong to none.
    let untouched = |was: Option<&str>| was.is_some() && was == disk;
    found
        .filter(|(intent, was)| intent.carried.is_some() || !untouched(*was))
        .map(|(intent, _)| intent)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::intent::tests::intent;
    use crate::sample::{checkout, dirty_file};
    use provost_core::checkout::{ABSENT, Snapshot};

    fn begun(id: &str, at: i64, files: &[&str], dirty: Option<&str>) -> Intent {
        let dirty = dirty.map(|disk| ("a", dirty_file(" M", "1", disk)));
        let mut begun = intent(id, 1, files);
        begun.declared_at = at;
        begun.snapshot = Some(Snapshot {
            captured_at: at,
            workspace: checkout(dirty.as_slice()),
        });
        begun
    }

    fn at<'a>(intent: &'a Intent, moved: &'a Moved, descends: bool) -> Past<'a> {
        Past {
            intent,
            moved,
            descends,
        }
    }

    fn named(past: &[Intent], disk: &str, moved: &Moved) -> Option<String> {
        let now = checkout(&[("a", dirty_file(" M", "1", disk))]);
        let past: Vec<Past<'_>> = past.iter().map(|intent| at(intent, moved, true)).collect();
        first(&RawPath::new("a"), &now, &past).map(|one| one.intent_id.clone())
    }

    fn accepting(mut one: Intent, disk: &str, state: State) -> Intent {
        let content = Some(disk.to_owned());
        one.accepted = Some(BTreeMap::from([(RawPath::new("a"), content)]));
        one.state = state;
        one
    }

    #[test]
    fn unfinished_work_began_with_the_oldest_intent_that_nothing_ended() {
        let none = Moved::new();
        let one = begun("one", 1, &["a"], None);
        let two = begun("two", 2, &["a"], Some("2"));
        assert_eq!(
            named(std::slice::from_ref(&one), "2", &none).as_deref(),
            Some("one")
        );
        let both = [one.clone(), two.clone()];
        assert_eq!(named(&both, "2", &none).as_deref(), Some("one"));
        assert_eq!(named(&both, "3", &none).as_deref(), Some("one"));
        for state in [
            State::Clean,
            State::Expired,
            State::Orphaned,
            State::Replaced,
        ] {
            let mut one = one.clone();
            one.state = state;
            assert_eq!(
                named(&[one], "2", &none).as_deref(),
                Some("one"),
                "{}",
                state.name()
            );
        }
        let mut refused = one.clone();
        refused.edit_allowed = false;
        assert_eq!(
            named(&[refused], "2", &none),
            None,
            "no agent could edit under it"
        );
        assert_eq!(
            named(&[begun("x", 1, &["b"], None)], "2", &none),
            None,
            "of another file"
        );
        let mut said = begun("x", 1, &["b"], None);
        said.named = vec![RawPath::new("a")];
        assert_eq!(
            named(&[said], "2", &none).as_deref(),
            Some("x"),
            "not declared, but said"
        );
        assert_eq!(
            named(std::slice::from_ref(&two), "2", &none),
            None,
            "uncommitted changes from before, unchanged"
        );
        let mut took = two;
        took.carried = Some(one.beginning());
        assert_eq!(
            named(&[took], "2", &none).as_deref(),
            Some("two"),
            "its analysis is older"
        );
    }

    #[test]
    fn a_checkout_that_went_back_to_before_a_commit_has_its_work_again() {
        let none = Moved::new();
        let moved = Moved::from([(RawPath::new("a"), ("2".to_owned(), "1".to_owned()))]);
        let one = begun("one", 1, &["a"], None);
        // Declared while the work was committed, before `git reset HEAD~1`.
        let between = begun("between", 2, &["a"], None);
        let now = checkout(&[("a", dirty_file(" M", "1", "2"))]);
        let found = |past: &[Past<'_>], now: &CheckoutState| {
            let found = first(&RawPath::new("a"), now, past);
            found.map(|one| one.intent_id.clone())
        };
        let past = [at(&one, &none, true), at(&between, &moved, false)];
        assert_eq!(found(&past, &now).as_deref(), Some("one"));
        // Another content that is committed after the reset hides nothing.
        let other = Moved::from([(RawPath::new("a"), ("1".to_owned(), "5".to_owned()))]);
        let both = [at(&one, &other, true), at(&between, &moved, false)];
        assert_eq!(found(&both, &now).as_deref(), Some("one"));
        // Without a reset, what the second one found committed is over.
        let both = [at(&one, &other, true), at(&between, &moved, true)];
        let more = checkout(&[("a", dirty_file(" M", "1", "3"))]);
        assert_eq!(found(&both, &more).as_deref(), Some("between"));
    }

    #[test]
    fn committed_undone_or_accepted_work_is_over() {
        let none = Moved::new();
        let one = begun("one", 1, &["a"], None);
        let moved = Moved::from([(RawPath::new("a"), (ABSENT.to_owned(), "1".to_owned()))]);
        let gave_back = |left: &[(&str, Option<&str>)]| {
            let entry = |(path, disk): &(&str, Option<&str>)| {
                (RawPath::new(*path), disk.map(str::to_owned))
            };
            let mut one = one.clone();
            one.state = State::Clean;
            one.left = Some(left.iter().map(entry).collect());
            named(&[one], "2", &moved)
        };
        assert_eq!(gave_back(&[("a", Some("1"))]), None, "committed");
        assert_eq!(gave_back(&[]), None, "committed before it was given back");
        let other = [("a", Some("2"))];
        assert_eq!(gave_back(&other).as_deref(), Some("one"), "other content");
        let unread = [("a", None)];
        assert_eq!(gave_back(&unread).as_deref(), Some("one"), "unknown");
        let open = std::slice::from_ref(&one);
        assert_eq!(named(open, "2", &moved).as_deref(), Some("one"), "not over");
        assert_eq!(named(open, ABSENT, &moved), None, "as it was when it began");
        let fresh = begun("fresh", 2, &["a"], None);
        let undone = [one.clone(), fresh];
        assert_eq!(
            named(&undone, "2", &none).as_deref(),
            Some("fresh"),
            "undone"
        );
        let done = accepting(one.clone(), "2", State::Clean);
        assert_eq!(
            named(std::slice::from_ref(&done), "2", &none),
            None,
            "accepted"
        );
        assert_eq!(
            named(std::slice::from_ref(&done), "3", &none),
            None,
            "edited by no intent"
        );
        let next = begun("next", 2, &["a"], Some("2"));
        assert_eq!(named(&[done, next], "3", &none).as_deref(), Some("next"));
        let open = accepting(one, "2", State::Active);
        assert_eq!(
            named(&[open], "3", &none).as_deref(),
            Some("one"),
            "edited again under it"
        );
    }
}
