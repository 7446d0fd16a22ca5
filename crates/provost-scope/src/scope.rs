//! Decides which paths a contract covers.
//!
//! A path entry covers itself and everything below it, on component boundaries; there are no
//! wildcards. `./a`, `a//b` and `a/` are normalised first. Any other ambiguous entry is refused
//! with its reason.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::code::Code;
use crate::file_system_names;
use crate::path::{LONGEST, PathError, RawPath, RepoPath};
use crate::protect::{self, Extra, Protection};
use crate::verdict::Verdict;

/// The paths of a contract: sorted, without entries that another one covers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<RepoPath>", into = "Vec<RepoPath>")]
pub struct Scope {
    entries: Vec<RepoPath>,
    /// The entries in their folded spelling.
    folded: BTreeSet<Vec<u8>>,
}

impl From<Vec<RepoPath>> for Scope {
    fn from(paths: Vec<RepoPath>) -> Self {
        Self::of(paths)
    }
}

impl From<Scope> for Vec<RepoPath> {
    fn from(scope: Scope) -> Self {
        scope.entries
    }
}

pub const MOST: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("is empty")]
    Empty,
    /// A space at either end, which an editor may add or drop.
    #[error("begins or ends with a blank")]
    BlankEdged,
    #[error("holds a wildcard (`*`, `?` or `[`); name the file or its directory")]
    Wildcard,
    #[error("is the whole repository; name what may be written")]
    Root,
    #[error("lies in a control directory ({0}) that no contract permits")]
    Control(&'static str),
    #[error("comes after {MOST} others, and a longer list is not read")]
    TooMany,
    /// It is not a path inside the repository.
    #[error(transparent)]
    Path(PathError),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The entry as written.
    pub entry: String,
    pub why: EntryError,
}

pub fn parse_entry(entry: &str) -> Result<RepoPath, EntryError> {
    if entry.chars().all(char::is_whitespace) {
        return Err(EntryError::Empty);
    }
    if entry.len() > LONGEST {
        return Err(EntryError::Path(PathError::TooLong));
    }
    if is_blank_edged(entry) {
        return Err(EntryError::BlankEdged);
    }
    if entry.contains(['*', '?', '[']) {
        return Err(EntryError::Wildcard);
    }
    if entry.starts_with('/') {
        return Err(EntryError::Path(PathError::Absolute));
    }
    let parts: Vec<&str> = entry
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    if parts.is_empty() {
        return Err(EntryError::Root);
    }
    let path = RepoPath::try_from(parts.join("/")).map_err(EntryError::Path)?;
    // Normalising may have moved a space to the edge, as in `a /`.
    if is_blank_edged(path.as_str()) {
        return Err(EntryError::BlankEdged);
    }
    match protect::control_directory(&path) {
        Some(directory) => Err(EntryError::Control(directory)),
        None => Ok(path),
    }
}

fn is_blank_edged(text: &str) -> bool {
    text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace)
}

impl Scope {
    /// Parses all entries; one invalid entry refuses the whole list, and all invalid ones are
    /// named.
    pub fn parse<S: AsRef<str>>(entries: &[S]) -> Result<Self, Vec<Refusal>> {
        if let Some(entry) = entries.get(MOST) {
            return Err(vec![Refusal {
                entry: entry.as_ref().to_owned(),
                why: EntryError::TooMany,
            }]);
        }
        let mut paths = Vec::new();
        let mut refusals = Vec::new();
        for entry in entries {
            match parse_entry(entry.as_ref()) {
                Ok(path) => paths.push(path),
                Err(why) => refusals.push(Refusal {
                    entry: entry.as_ref().to_owned(),
                    why,
                }),
            }
        }
        if refusals.is_empty() {
            Ok(Self::of(paths))
        } else {
            Err(refusals)
        }
    }

    pub fn of(mut paths: Vec<RepoPath>) -> Self {
        // By components, so that everything below a path follows it immediately.
        paths.sort_by(|a, b| a.parts().cmp(b.parts()));
        paths.dedup_by(|later, earlier| later.is_within(earlier));
        let folded = |path: &RepoPath| file_system_names::fold_path(path.as_str().as_bytes());
        Self {
            folded: paths.iter().map(folded).collect(),
            entries: paths,
        }
    }

    /// Sorted.
    pub fn entries(&self) -> &[RepoPath] {
        &self.entries
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether `path` is an entry or below one.
    pub fn covers(&self, path: &RepoPath) -> bool {
        self.entries.iter().any(|entry| path.is_within(entry))
    }

    /// Whether `path` is covered; a path that is not UTF-8 never is.
    pub fn covers_raw(&self, path: &RawPath) -> bool {
        RepoPath::try_from(path).is_ok_and(|path| self.covers(&path))
    }

    /// Whether `path`, or another one that some file system treats as the same, is an entry or
    /// below one.
    pub fn covers_alias(&self, path: &RawPath) -> bool {
        if self.folded.is_empty() {
            return false;
        }
        let path = file_system_names::fold_path(path.as_bytes());
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut ends = ends.map(|(at, _)| at).chain([path.len()]);
        ends.any(|end| self.folded.contains(&path[..end]))
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        let meets = |a: &RepoPath, b: &RepoPath| a.is_within(b) || b.is_within(a);
        self.entries
            .iter()
            .any(|mine| other.entries.iter().any(|theirs| meets(mine, theirs)))
    }
}

/// Judges a list of entries as a contract would have them.
pub fn judge<S: AsRef<str>>(entries: &[S]) -> Verdict {
    if entries.is_empty() {
        return refused(
            "the scope is empty: name at least one path that may be written",
            &[],
        );
    }
    match Scope::parse(entries) {
        Ok(scope) => {
            let notes: Vec<String> = scope.entries().iter().filter_map(note).collect();
            Verdict::allow("every entry can be used")
                .with(json!({ "entries": scope.entries(), "notes": notes }))
        }
        Err(refusals) => {
            let first = &refusals[0];
            let reason = match refusals.len() {
                1 => format!("`{}` {}", first.entry.escape_debug(), first.why),
                count => format!(
                    "{count} entries cannot be used; `{}` {}",
                    first.entry.escape_debug(),
                    first.why
                ),
            };
            refused(&reason, &refusals)
        }
    }
}

/// A note about a valid entry: that a scope alone does not permit it.
fn note(path: &RepoPath) -> Option<String> {
    let needs = match protect::classify(path, &Extra::default())? {
        Protection::Control => "steers git, Provost or secrets; no contract lets it change",
        Protection::Oracle => {
            "decides what passing means; it changes only with `--permit-oracle` as well"
        }
        Protection::Governing => {
            "instructs agents; it changes only with `--permit-governing` as well"
        }
    };
    Some(format!("`{path}` {needs}"))
}

fn refused(reason: &str, refusals: &[Refusal]) -> Verdict {
    let row = |refusal: &Refusal| -> Value {
        json!({ "path": refusal.entry, "problem": refusal.why.to_string() })
    };
    Verdict::deny(Code::ScopeInvalid, reason).with(json!({
        "reasons": ["invalid_allowed_paths"],
        "violations": refusals.iter().map(|refusal| &refusal.entry).collect::<Vec<_>>(),
        "findings": refusals.iter().map(row).collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_list_that_is_too_long_is_refused() {
        let list: Vec<String> = (0..=MOST).map(|number| format!("a/{number}")).collect();
        assert!(Scope::parse(&list[1..]).is_ok());
        let refusals = Scope::parse(&list).unwrap_err();
        assert_eq!(refusals[0].why, EntryError::TooMany);
    }

    #[test]
    fn entries_that_could_be_read_in_two_ways_are_refused() {
        let cases = [
            ("", EntryError::Empty),
            ("   ", EntryError::Empty),
            (" app", EntryError::BlankEdged),
            ("app\t", EntryError::BlankEdged),
            ("app /", EntryError::BlankEdged),
            ("./ app", EntryError::BlankEdged),
            ("**", EntryError::Wildcard),
            ("app/*.txt", EntryError::Wildcard),
            ("app/?.txt", EntryError::Wildcard),
            ("app/[ab]", EntryError::Wildcard),
            (".", EntryError::Root),
            ("./", EntryError::Root),
            ("/", EntryError::Path(PathError::Absolute)),
            ("/etc", EntryError::Path(PathError::Absolute)),
            ("..", EntryError::Path(PathError::Climbs)),
            ("app/../other", EntryError::Path(PathError::Climbs)),
            ("app\0b", EntryError::Path(PathError::BadCharacter)),
            ("a\\b", EntryError::Path(PathError::BadCharacter)),
            (".git/hooks", EntryError::Control(".git")),
            (".GIT", EntryError::Control(".git")),
            (".provost/runs", EntryError::Control(".provost")),
            ("vendor/.git/config", EntryError::Control(".git")),
            ("git~1/hooks", EntryError::Control(".git")),
            (".git./hooks", EntryError::Control(".git")),
            (".g\u{200d}it", EntryError::Control(".git")),
            ("PROVOS~1", EntryError::Control(".provost")),
            (
                ".runtime-cache/cortexpilot",
                EntryError::Control(".runtime-cache"),
            ),
        ];
        for (entry, want) in cases {
            assert_eq!(parse_entry(entry), Err(want), "{entry:?}");
        }
        let long = "a/".repeat(LONGEST);
        assert_eq!(
            parse_entry(&long),
            Err(EntryError::Path(PathError::TooLong))
        );
    }

    #[test]
    fn spellings_of_one_entry_are_one_entry() {
        for entry in ["app/sub", "./app/sub", "app//sub", "app/sub/", "app/./sub"] {
            assert_eq!(parse_entry(entry).unwrap().as_str(), "app/sub", "{entry}");
        }
    }

    #[test]
    fn another_spelling_of_an_entry_is_found() {
        let scope = Scope::parse(&["app/frozen", "caf\u{e9}"]).unwrap();
        let cases = [
            ("app/frozen", true),
            ("APP/Frozen./x", true),
            ("cafe\u{301}/x", true),
            ("CAF\u{c9}", true),
            ("app/frozen2", false),
            ("app", false),
            ("cafe", false),
        ];
        for (path, want) in cases {
            assert_eq!(scope.covers_alias(&RawPath::new(path)), want, "{path}");
        }
        assert!(!Scope::default().covers_alias(&RawPath::new("")));
    }

    #[test]
    fn an_empty_scope_is_refused() {
        assert!(!judge::<&str>(&[]).allow);
        assert!(!judge(&["app", "**"]).allow);
        assert!(judge(&["app", "docs/a b.md", "café"]).allow);
    }

    #[test]
    fn an_entry_that_a_scope_alone_does_not_open_has_a_note() {
        let notes = |entries: &[&str]| {
            let verdict = judge(entries);
            assert!(verdict.allow);
            verdict.details.unwrap()["notes"].clone()
        };
        assert_eq!(notes(&["src", "docs"]), json!([]));
        for (entry, want) in [
            (".env", "no contract"),
            ("provost.toml", "no contract"),
            ("app/package.json", "--permit-oracle"),
            ("CLAUDE.md", "--permit-governing"),
        ] {
            let note = notes(&["src", entry])[0].to_string();
            assert!(note.contains(entry) && note.contains(want), "{note}");
        }
    }

    #[test]
    fn covered_entries_are_dropped() {
        let scope = Scope::parse(&["app/sub", "app-2", "app", "app/x"]).unwrap();
        let entries: Vec<_> = scope.entries().iter().map(RepoPath::as_str).collect();
        assert_eq!(entries, ["app", "app-2"]);
    }

    fn part() -> impl Strategy<Value = String> {
        "[a-zA-Zé_. -]{1,6}".prop_filter("usable", |part| parse_entry(part).is_ok())
    }

    proptest! {
        #[test]
        fn a_prefix_never_matches_a_sibling(parts in prop::collection::vec(part(), 1..4), tail in "[a-z_.-]{1,4}") {
            let entry = parts.join("/");
            let scope = Scope::parse(&[&entry]).unwrap();
            prop_assume!(RepoPath::try_from(format!("{entry}{tail}")).is_ok());
            let sibling = RepoPath::try_from(format!("{entry}{tail}")).unwrap();
            let below = RepoPath::try_from(format!("{entry}/x{tail}")).unwrap();
            prop_assert!(!scope.covers(&sibling));
            prop_assert!(scope.covers(&below));
        }

        #[test]
        fn normalisation_is_idempotent(entry in ".{0,24}") {
            if let Ok(path) = parse_entry(&entry) {
                prop_assert_eq!(parse_entry(path.as_str()), Ok(path));
            }
        }

        #[test]
        fn overlap_is_symmetric_and_means_a_shared_path(
            one in prop::collection::vec(part(), 1..4),
            two in prop::collection::vec(part(), 1..4),
        ) {
            let a = Scope::parse(&[one.join("/")]).unwrap();
            let b = Scope::parse(&[two.join("/")]).unwrap();
            prop_assert_eq!(a.overlaps(&b), b.overlaps(&a));
            let shared = a.covers(&b.entries()[0]) || b.covers(&a.entries()[0]);
            prop_assert_eq!(a.overlaps(&b), shared);
        }
    }
}
