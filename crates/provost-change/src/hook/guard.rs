//! Decides about one write before it happens: whether a declared change covers it.
//!
//! # Invariants
//!
//! - The files that restrict an agent are never the agent's to change, whatever it declared.

use crate::intent::{Intent, Ownership, State, Viewer};
use crate::scope::{Relation, is_state};
use provost_core::file_system_names::Reading;
use provost_core::path::{RawPath, RepoPath};
use provost_core::protect;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("no declared change is active here, so nothing may be edited")]
    NoIntent,
    #[error("the declared change {0} is expired, so nothing may be edited")]
    Expired(String),
    #[error("`{path}` {why}: only a person may change it")]
    Never { path: RepoPath, why: &'static str },
    #[error("`{path}` is forbidden by the declared change {intent_id}")]
    Forbidden { path: RepoPath, intent_id: String },
    #[error(
        "`{path}` lies outside of the declared change {intent_id}, which covers {covers}{}",
        if covers.contains(['*', '?']) {
            "; `*` and `?` are letters there, so declare files or directories by their names"
        } else {
            ""
        }
    )]
    Outside {
        path: RepoPath,
        /// The newest active change.
        intent_id: String,
        /// What it covers, shortened.
        covers: String,
    },
}

/// Whether an intent belongs to the agent that calls itself `named`; without a name all do.
fn is_meant(intent: &Intent, named: Option<&str>) -> bool {
    named.is_none_or(|name| intent.owner.session() == Some(name))
}

/// The change that was declared last, if its time is over; `past` are all changes.
pub fn expired<'a>(past: &'a [Intent], now: i64, named: Option<&str>) -> Option<&'a Intent> {
    let meant = past.iter().filter(|intent| is_meant(intent, named));
    let newest = meant.max_by_key(|intent| intent.declared_at);
    newest.filter(|intent| (*intent).clone().at(now).state == State::Expired)
}

/// The changes that permit edits.
///
/// `named` is the name that the agent gives itself. An agent without a name is held to all active
/// changes of the checkout together, because there is no way to know which of them is its own.
pub fn active<'a>(
    intents: &'a [Intent],
    viewer: &Viewer<'_>,
    named: Option<&str>,
) -> Vec<&'a Intent> {
    let may_edit = |intent: &&Intent| {
        let lives = match intent.ownership(viewer) {
            Ownership::OwnActive
            | Ownership::OwnStale
            | Ownership::ForeignActive
            | Ownership::ForeignStale => true,
            Ownership::Recoverable | Ownership::Expired => false,
        };
        intent.state == State::Active && intent.edit_allowed && lives
    };
    let meant = intents.iter().filter(|intent| is_meant(intent, named));
    meant.filter(may_edit).collect()
}

/// Why no change may cover `path`; `None` if one may.
///
/// The directory that holds the settings of an agent's hooks counts as well, because an agent that
/// moves the directory moves the settings. Other files in it can be declared.
pub fn never(path: &RepoPath) -> Option<&'static str> {
    const BASELINES: [&str; 3] = [
        "provost.baseline.json",
        "provost-baseline.json",
        "codeclone.baseline.json",
    ];
    if protect::control_directory(path).is_some() {
        return Some("belongs to git or provost");
    }
    let parts: Vec<Reading> = path.parts().map(Reading::of).collect();
    let name = parts.last()?;
    if is_state(path.as_str()) || BASELINES.iter().any(|own| name.is(own)) {
        return Some("says what the repository accepts, or belongs to provost");
    }
    if parts.len() == 1 && name.is("provost.toml") {
        return Some("says what runs here may do unasked");
    }
    let above = parts.len().checked_sub(2).and_then(|at| parts.get(at));
    let settings = above.is_some_and(|above| above.is(".claude")) && name.begins("settings.");
    let holds = settings || name.is(".claude") || parts.iter().any(|part| part.is(".codex"));
    holds.then_some("decides how agents are restricted")
}

/// Whether one of the `active` changes covers a write to `path`.
pub fn judge(path: &RepoPath, active: &[&Intent]) -> Result<(), Denied> {
    if let Some(why) = never(path) {
        let path = path.clone();
        return Err(Denied::Never { path, why });
    }
    let raw = RawPath::new(path.as_str());
    let declares = |intent: &&&Intent| intent.scope.relation(&raw) != Relation::Outside;
    let mut declaring = active.iter().filter(declares);
    let mut forbidding = None;
    for intent in declaring.by_ref() {
        if !intent.scope.forbids(path.as_str()) {
            return Ok(());
        }
        forbidding = Some(intent.intent_id.clone());
    }
    if let Some(intent_id) = forbidding {
        return Err(Denied::Forbidden {
            path: path.clone(),
            intent_id,
        });
    }
    let Some(newest) = active.iter().max_by_key(|intent| intent.declared_at) else {
        return Err(Denied::NoIntent);
    };
    let entries = &newest.scope.allowed_files;
    let mut names: Vec<&str> = entries.iter().take(5).map(RepoPath::as_str).collect();
    if entries.len() > names.len() {
        names.push("…");
    }
    Err(Denied::Outside {
        path: path.clone(),
        intent_id: newest.intent_id.clone(),
        covers: names.join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intent::tests::{alive, intent, owner};
    use crate::scope::ChangeScope;

    fn path(text: &str) -> RepoPath {
        RepoPath::try_from(text).unwrap()
    }

    #[test]
    fn only_a_live_active_change_that_may_edit_counts() {
        let me = owner(1);
        let viewer = Viewer {
            me: &me,
            now: 10,
            alive: &alive,
        };
        let mut all = vec![intent("live", 2, &["a"]), intent("dead", 9, &["b"])];
        let mut refused = intent("refused", 2, &["c"]);
        refused.edit_allowed = false;
        let mut waiting = intent("waiting", 2, &["d"]);
        waiting.state = State::Queued;
        let mut over = intent("over", 2, &["e"]);
        over.expires_at = 10;
        all.extend([refused, waiting, over]);
        let names = |named| -> Vec<&str> {
            let found = active(&all, &viewer, named);
            found.iter().map(|one| one.intent_id.as_str()).collect()
        };
        assert_eq!(names(None), ["live"]);
        let is_over = |now| expired(&all[4..], now, None).map(|one| one.intent_id.as_str());
        assert_eq!(is_over(9), None);
        assert_eq!(is_over(10), Some("over"));
        assert_eq!(expired(&all, 10, Some("ada")), None);
        assert!(names(Some("ada")).is_empty(), "another name's is no name's");
    }

    #[test]
    fn a_write_is_covered_by_what_was_declared_and_by_nothing_else() {
        let mut one = intent("one", 2, &["docs", "a.txt"]);
        one.scope = ChangeScope::parse(&["docs", "a.txt"], &["b"], &["docs/key*"], "").unwrap();
        let active = [&one];
        for inside in ["docs/x.md", "a.txt", "b/c"] {
            assert_eq!(judge(&path(inside), &active), Ok(()), "{inside}");
        }
        assert!(matches!(
            judge(&path("docs/key.pem"), &active),
            Err(Denied::Forbidden { .. })
        ));
        assert!(matches!(
            judge(&path(".provost/registry.db"), &active),
            Err(Denied::Never { .. })
        ));
        for outside in ["a.txt.bak", "documents", "c"] {
            assert!(
                matches!(judge(&path(outside), &active), Err(Denied::Outside { .. })),
                "{outside}"
            );
        }
        assert_eq!(judge(&path("c"), &[]), Err(Denied::NoIntent));
        let pattern = intent("two", 2, &["src/*.rs"]);
        let denied = judge(&path("src/a.rs"), &[&pattern]).unwrap_err();
        assert!(denied.to_string().contains("are letters there"), "{denied}");
    }

    #[test]
    fn what_holds_an_agent_is_never_declared() {
        let held = [
            ".git",
            ".git/config",
            "sub/.GIT/hooks/pre-commit",
            ".provost/registry.db",
            ".claude",
            ".claude/settings.json",
            "sub/.Claude/settings.local.json",
            ".codex/hooks.json",
            ".codex",
            "provost.baseline.json",
            "sub/provost.baseline.json",
            ".codeclone/x",
        ];
        for held in held {
            assert!(never(&path(held)).is_some(), "{held}");
        }
        let free = [
            ".claude/skills/a.md",
            "settings.json",
            ".github/x",
            "codex/a",
        ];
        for free in free {
            assert_eq!(never(&path(free)), None, "{free}");
        }
    }
}
