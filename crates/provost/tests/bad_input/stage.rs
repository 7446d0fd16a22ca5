//! A small repository for each test, and what is seen of it before and after a call.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use provost_core::code::Code;
use provost_testkit::stage::{Outcome, Stage};
use serde_json::Value;

/// A small repository, a home, a cache and keys.
pub(crate) fn stage() -> Stage {
    let stage = Stage::with(&[]);
    for name in ["cache", "config/keys"] {
        fs::create_dir_all(stage.path(name)).unwrap();
    }
    let closed = Permissions::from_mode(0o700);
    fs::set_permissions(stage.path("config/keys"), closed).unwrap();
    stage.script("repo/check.sh", "#!/bin/sh\ntest -f src/new\n");
    stage.commit(&[("src/old", "old\n")]);
    stage
}

/// A stage that is looked at closely.
pub(crate) trait Watched {
    /// Calls the program; it must end by itself, in time, within its memory, and not as a bug.
    fn call(&self, argv: &[&str], what: &str) -> Outcome;

    /// Everything in the repository at `place` that belongs to its user, and not to runs: the checkout,
    /// and of git all but objects, refs and the one line of ours.
    fn checkout(&self, place: &str) -> BTreeMap<PathBuf, String>;

    /// What a run that is over must not have left: leases, workspaces, worktrees.
    fn assert_nothing_is_held(&self, place: &str, what: &str);

    /// Everything below `place` that a call could have written: kind, mode, length and bytes.
    fn listing(&self, place: &str) -> BTreeMap<PathBuf, String>;

    /// The same as a listing without what `provost run -f` keeps of a contract that it refuses: the sealed record
    /// of the refusal, the runtime root around it, the key and the empty cache of the repository.
    fn listing_beside_refusals(&self, place: &str) -> BTreeMap<PathBuf, String>;
}

impl Watched for Stage {
    fn call(&self, argv: &[&str], what: &str) -> Outcome {
        self.spawn(self.provost(argv)).measured(what)
    }

    fn checkout(&self, place: &str) -> BTreeMap<PathBuf, String> {
        let top = self.path(place);
        let mut all = self.listing(place);
        for git in [top.join(".git"), top.clone()] {
            let ours = [
                "objects",
                "refs/provost",
                "refs/heads/provost",
                "logs/refs/heads/provost",
                "info/exclude",
            ];
            all.retain(|path, _| !ours.iter().any(|name| path.starts_with(git.join(name))));
        }
        all.retain(|path, _| !path.starts_with(top.join(".provost")));
        all
    }

    fn assert_nothing_is_held(&self, place: &str, what: &str) {
        let mut leases = self.provost(&["--json", "lease", "list"]);
        leases.current_dir(self.path(place));
        let leases = self.spawn(leases).measured(what);
        assert_eq!(leases.out().trim(), "[]", "{what}");
        let trees = self.git_in(place, &["worktree", "list"]);
        assert_eq!(trees.lines().count(), 1, "{what}: {trees}");
        let within = |path: &Path| path.parent().is_some_and(|it| it.ends_with("workspaces"));
        let left: Vec<PathBuf> = self.listing("cache").into_keys().collect();
        let left: Vec<&PathBuf> = left.iter().filter(|path| within(path)).collect();
        assert!(left.is_empty(), "{what}: {left:?}");
    }

    fn listing(&self, place: &str) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        list(&self.path(place), &mut found);
        found
    }

    fn listing_beside_refusals(&self, place: &str) -> BTreeMap<PathBuf, String> {
        let root = self.path("repo/.provost");
        let made = [
            root.clone(),
            root.join("own"),
            root.join("runs"),
            self.path("repo/.git/info/exclude"),
            self.path("config/keys/signing.key"),
            self.path("config/keys/signing.pub"),
        ];
        let cache = self.path("cache/provost");
        let mut all = self.listing(place);
        all.retain(|path, _| !made.contains(path) && !path.starts_with(root.join("refused")));
        all.retain(|path, _| *path != cache && path.parent() != Some(&cache));
        all
    }
}

/// The command line of a run that is accepted.
pub(crate) fn good_run() -> [&'static str; 9] {
    [
        "--json",
        "run",
        "write a file",
        "--allow",
        "src",
        "--accept",
        "./check.sh",
        "--agent-cmd",
        "sh -c 'echo new > src/new'",
    ]
}

/// Shows that two pictures are the same, or what differs.
pub(crate) fn assert_same(
    before: &BTreeMap<PathBuf, String>,
    after: &BTreeMap<PathBuf, String>,
    what: &str,
) {
    let mut paths: Vec<&PathBuf> = before.keys().chain(after.keys()).collect();
    paths.retain(|path| before.get(*path) != after.get(*path));
    paths.dedup();
    assert!(paths.is_empty(), "{what}: differs: {paths:?}");
}

fn list(path: &Path, found: &mut BTreeMap<PathBuf, String>) {
    let Ok(facts) = path.symlink_metadata() else {
        return;
    };
    let mut line = format!("{:o}", facts.permissions().mode());
    if facts.is_file() {
        line += &match fs::read(path) {
            Ok(bytes) => format!(" {} {}", bytes.len(), provost_core::object::sha256(&bytes)),
            Err(error) => error.to_string(),
        };
    }
    found.insert(path.to_owned(), line);
    if facts.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten() {
            list(&entry.unwrap().path(), found);
        }
    }
}

/// An answer that must be a refusal.
pub(crate) trait Refusal {
    /// The answer as the one verdict object it must be: not an allow, by a code that has a page.
    fn verdict(&self, what: &str) -> (i32, Code);
}

impl Refusal for Outcome {
    fn verdict(&self, what: &str) -> (i32, Code) {
        let text = self.out().trim_end();
        assert_eq!(
            text.lines().count(),
            1,
            "{what}: {text:.200} {:.400}",
            self.stderr
        );
        let value: Value = serde_json::from_str(text).unwrap_or_else(|error| {
            panic!("{what}: {error}: {text:.200}");
        });
        assert_eq!(value["allow"], false, "{what}: {text:.200}");
        let reason = value["reason"].as_str().unwrap_or_default();
        assert!(!reason.is_empty(), "{what}: {text:.200}");
        let code = value["code"].as_str().and_then(Code::parse);
        let code = code.unwrap_or_else(|| panic!("{what}: {text:.200}"));
        (self.exit, code)
    }
}
