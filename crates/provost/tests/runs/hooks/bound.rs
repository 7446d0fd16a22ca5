//! Every way by which work leaves a bound checkout or reaches a bound branch, with real git.

use std::fs;

use super::{contract, git};
use crate::stage::{Outcome, Stage};

/// What skips every hook; only the setting up of a test uses it.
pub(super) const UNHOOKED: &[&str] = &["-c", "core.hooksPath=/dev/null"];

/// A repository that is held to a contract for `src/greet`, with work inside and outside of it.
pub(super) struct BoundStage {
    pub(super) inner: Stage,
    pub(super) base: String,
    pub(super) inside: String,
    pub(super) outside: String,
    pub(super) remote: String,
}

/// What is bound, and whether everything has to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mode {
    Checkout,
    RequiredBranch,
}

impl BoundStage {
    pub(super) fn new(mode: Mode) -> Self {
        let stage = Stage::new();
        let remote = stage.path("remote").display().to_string();
        stage.git(&["init", "-q", "--bare", &remote]);
        let base = head(&stage);
        let inside = work(&stage, &base, "src/greet/a.txt");
        let outside = work(&stage, &base, "docs/a.txt");
        stage.git(&["reset", "-q", "--hard", &base]);
        let file = contract(&stage);
        let (bind, install): (&[&str], &[&str]) = match mode {
            Mode::Checkout => (&["hook", "bind", &file], &["hook", "install"]),
            Mode::RequiredBranch => (
                &["hook", "bind", &file, "--branch", "main"],
                &["hook", "install", "--require"],
            ),
        };
        for words in [bind, install] {
            let done = stage.ask(words);
            assert_eq!(done.exit, 0, "{done:?}");
        }
        Self {
            inner: stage,
            base,
            inside,
            outside,
            remote,
        }
    }

    /// Git without any hook; it must succeed.
    pub(super) fn plain(&self, words: &[&str]) {
        let all: Vec<&str> = UNHOOKED.iter().chain(words).copied().collect();
        self.inner.git(&all);
    }

    /// Puts everything back: `main` at `commit` and checked out, no operation under way.
    pub(super) fn reset(&self, commit: &str) {
        for name in ["rebase-merge", "rebase-apply", "sequencer"] {
            let _ = fs::remove_dir_all(self.inner.path("repo/.git").join(name));
        }
        for name in ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"] {
            let _ = fs::remove_file(self.inner.path("repo/.git").join(name));
        }
        self.plain(&["symbolic-ref", "HEAD", "refs/heads/main"]);
        self.plain(&["update-ref", "--no-deref", "refs/heads/main", commit]);
        self.plain(&["reset", "-q", "--hard"]);
    }

    /// Makes the remote empty again.
    fn forget(&self) {
        let _ = fs::remove_dir_all(&self.remote);
        self.plain(&["init", "-q", "--bare", &self.remote]);
    }

    pub(super) fn main(&self) -> String {
        self.value("refs/heads/main")
    }

    pub(super) fn value(&self, rev: &str) -> String {
        let outcome = git(&self.inner, &["rev-parse", "--verify", "-q", rev]);
        text(&outcome)
    }

    /// What stands in the remote.
    fn pushed(&self) -> String {
        let outcome = git(&self.inner, &["ls-remote", &self.remote]);
        assert_eq!(outcome.exit, 0, "{outcome:?}");
        text(&outcome)
    }
}

/// What git printed.
fn text(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.stdout).trim().to_owned()
}

fn head(stage: &Stage) -> String {
    let outcome = git(stage, &["rev-parse", "HEAD"]);
    text(&outcome)
}

/// A commit on `parent` that writes `path`.
fn work(stage: &Stage, parent: &str, path: &str) -> String {
    stage.git(&["reset", "-q", "--hard", parent]);
    stage.write(&format!("repo/{path}"), "work\n");
    stage.git(&["add", path]);
    stage.git(&["commit", "-q", "-m", path]);
    head(stage)
}

/// Fails unless git did what it was asked exactly where the work is inside the contract.
pub(super) fn check(what: &str, inside: bool, done: &Outcome) {
    assert_eq!(done.exit == 0, inside, "{what}, inside {inside}: {done:?}");
    if !inside {
        let why = done.stderr.contains("DIFF_REFUSED");
        assert!(why, "{what} has to say why: {done:?}");
    }
}

/// All forms of a push of the commit that `main` is at; `@` stands for the remote, `%` for the commit.
const PUSHES: &[&[&str]] = &[
    &["@", "HEAD"],
    &["@", "main"],
    &["@", "HEAD:refs/heads/x"],
    &["@", "@:refs/heads/x"],
    &["@", "HEAD@{0 seconds ago}:refs/heads/x"],
    &["@", "%:refs/heads/x"],
    &["@", "main:refs/heads/x"],
    &["@", "main~0:refs/heads/x"],
    &["@", "+main:refs/heads/x"],
    &["@", "light"],
    &["@", "heavy"],
    &["@", "refs/heads/*:refs/heads/*"],
    &["@", "light:refs/heads/x", "main~1:refs/heads/y"],
    &["@", "main~1:refs/heads/y", "HEAD:refs/heads/x"],
    &["--all", "@"],
    &["--tags", "@"],
    &["--follow-tags", "@", "main"],
    &["--mirror", "@"],
    &["--atomic", "@", "main", "light"],
    &["--force", "@", "HEAD"],
];

pub(super) fn push(stage: &BoundStage, words: &[&str], commit: &str) -> Outcome {
    let mut all = vec!["push".to_owned(), "-q".to_owned()];
    all.extend(words.iter().map(|word| match *word {
        "@" => stage.remote.clone(),
        word => word.replace('%', commit),
    }));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    git(&stage.inner, &all)
}

fn every_push_is_judged(mode: Mode) {
    let stage = BoundStage::new(mode);
    for (commit, inside) in [(&stage.inside, true), (&stage.outside, false)] {
        stage.reset(commit);
        stage.plain(&["tag", "-f", "light"]);
        stage.plain(&["tag", "-f", "-a", "-m", "release", "heavy"]);
        // Half of them are enough to see that a binding which is required makes no difference.
        let step = if matches!(mode, Mode::Checkout) { 1 } else { 2 };
        for words in PUSHES.iter().step_by(step) {
            let what = format!("{mode:?} push {words:?}");
            check(&what, inside, &push(&stage, words, commit));
            if inside || !stage.pushed().is_empty() {
                assert_eq!(stage.pushed().contains(commit.as_str()), inside, "{what}");
                stage.forget();
            }
        }
        // On no branch at all, while `main` is inside.
        for words in [["@", "HEAD:refs/heads/x"], ["@", "%:refs/tags/x"]] {
            stage.reset(&stage.base);
            stage.forget();
            stage.plain(&["checkout", "-q", "--detach", commit]);
            let what = format!("{mode:?} detached push {words:?}");
            check(&what, inside, &push(&stage, &words, commit));
        }
        // A branch is deleted there: nothing leaves.
        stage.reset(&stage.base);
        stage.forget();
        stage.plain(&["push", "-q", &stage.remote, "main:gone"]);
        let gone = push(&stage, &["@", ":gone"], commit);
        assert_eq!(gone.exit, 0, "{gone:?}");
    }
    // What the base holds already is not judged.
    stage.reset(&stage.base);
    let old = push(&stage, &["@", "main:refs/heads/x"], "");
    assert_eq!(old.exit, 0, "{old:?}");
}

#[test]
fn every_push_from_a_bound_checkout_is_judged_whatever_names_it() {
    every_push_is_judged(Mode::Checkout);
}

#[test]
fn every_push_of_a_bound_branch_is_judged_also_where_a_binding_is_required() {
    every_push_is_judged(Mode::RequiredBranch);
}

/// Every way to move the bound branch from the base to something with `commit` in it.
const MOVES: &[&str] = &[
    "merge -q --ff-only %",
    "merge -q --no-ff --no-edit %",
    "merge -q --no-verify --no-ff --no-edit %",
    "pull -q --no-rebase --no-edit . other",
    "cherry-pick %",
    "cherry-pick --no-commit %; commit -q -m picked",
    "cherry-pick --no-commit %; commit -q --no-verify -m picked",
    "rebase -q %",
    "rebase -q --apply %",
    "checkout -q --detach %; rebase -q HEAD main",
    "am -q @patch",
    "am -q --3way @patch",
    "am -q --no-verify @patch",
    "reset -q --hard %",
    "reset -q --soft %",
    "checkout -q -B main %",
    "update-ref refs/heads/main %",
    "update-ref --no-deref refs/heads/main % =",
    "checkout -q --detach; branch -q -f main %",
    "checkout -q --detach; fetch -q . other:main",
    "checkout -q --detach; branch -q -D main; branch main %",
    "symbolic-ref refs/heads/main refs/heads/other",
];

/// Does the steps of `script`; the answer is that of the last one.
fn steps(stage: &BoundStage, script: &str, commit: &str) -> Outcome {
    let mut last = None;
    for step in script.split("; ") {
        let words: Vec<String> = step
            .split(' ')
            .map(|word| match word {
                "%" => commit.to_owned(),
                "=" => stage.base.clone(),
                "@patch" => stage.inner.path("patch").display().to_string(),
                word => word.to_owned(),
            })
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        last = Some(git(&stage.inner, &words));
    }
    last.unwrap()
}

fn every_move_is_judged(mode: Mode) {
    let stage = BoundStage::new(mode);
    for (commit, inside) in [(&stage.inside, true), (&stage.outside, false)] {
        let patch = git(&stage.inner, &["format-patch", "-1", "--stdout", commit]);
        stage.inner.put("patch", &patch.stdout);
        // A branch that is bound by its name does not go.
        let stays = |script: &&&str| matches!(mode, Mode::Checkout) || !script.contains("-D main");
        for script in MOVES.iter().filter(stays) {
            stage.reset(&stage.base);
            stage.plain(&["branch", "-f", "other", commit]);
            let done = steps(&stage, script, commit);
            let what = format!("{mode:?} {script}");
            if script.contains("symbolic-ref") {
                // A branch that is another name for one moves where no hook looks.
                check(&what, false, &done);
                assert_eq!(stage.main(), stage.base, "{what}");
                continue;
            }
            check(&what, inside, &done);
            let moved = stage.main() != stage.base && !stage.main().is_empty();
            assert_eq!(moved, inside, "{what}: {done:?}");
        }
    }
}

#[test]
fn whatever_moves_the_branch_of_a_bound_checkout_is_judged() {
    every_move_is_judged(Mode::Checkout);
}

#[test]
fn whatever_moves_a_bound_branch_is_judged() {
    every_move_is_judged(Mode::RequiredBranch);
}

#[test]
fn a_revert_an_amended_commit_and_a_rebase_of_several_commits_are_judged_by_their_result() {
    let stage = BoundStage::new(Mode::Checkout);
    stage.reset(&stage.inside);
    let inside = git(&stage.inner, &["revert", "--no-edit", "HEAD"]);
    assert_eq!(inside.exit, 0, "{inside:?}");
    stage.reset(&stage.base);
    stage
        .inner
        .write("repo/docs/readme.md", "read me\nand this\n");
    stage.plain(&["commit", "-q", "-a", "-m", "outside"]);
    stage.plain(&["reset", "-q", "--hard", &stage.inside]);
    check(
        "cherry-pick",
        false,
        &git(&stage.inner, &["cherry-pick", "main@{1}"]),
    );

    // Taking back what the base did lies outside.
    stage.reset(&stage.base);
    stage.plain(&["commit", "-q", "--allow-empty", "-m", "empty"]);
    check(
        "revert",
        false,
        &git(&stage.inner, &["revert", "--no-edit", &stage.base]),
    );

    stage.reset(&stage.inside);
    stage.inner.write("repo/docs/a.txt", "work\n");
    stage.plain(&["add", "docs/a.txt"]);
    for words in [
        &["commit", "-q", "--amend", "--no-edit"][..],
        &["commit", "-q", "--amend", "--no-edit", "--no-verify"],
    ] {
        check("amend", false, &git(&stage.inner, words));
        assert_eq!(stage.main(), stage.inside);
    }

    // Commits on the way are not judged; what comes out of them is.
    stage.reset(&stage.outside);
    stage.plain(&["rm", "-q", "docs/a.txt"]);
    stage.plain(&["commit", "-q", "-m", "away again"]);
    stage.plain(&["branch", "-q", "-f", "other"]);
    stage.plain(&["reset", "-q", "--hard", &stage.inside]);
    let rebased = git(&stage.inner, &["rebase", "-q", "other"]);
    assert_eq!(rebased.exit, 0, "{rebased:?}");
}

#[test]
fn another_branch_that_is_pushed_onto_the_bound_one_is_judged() {
    let stage = BoundStage::new(Mode::RequiredBranch);
    for (commit, inside) in [(&stage.inside, true), (&stage.outside, false)] {
        stage.plain(&["branch", "-f", "side", commit]);
        let what = format!("side:main at {commit}");
        check(&what, inside, &push(&stage, &["@", "+side:main"], commit));
    }
}

#[test]
fn what_concerns_no_contract_passes_and_a_push_says_so() {
    let stage = BoundStage::new(Mode::Checkout);
    // Other branches may be made and moved; what they hold is judged when it leaves.
    for words in [
        &["branch", "other", &stage.outside][..],
        &["branch", "-f", "other", &stage.inside],
        &["update-ref", "refs/heads/other", &stage.outside],
        &["tag", "light", &stage.outside],
        &["update-ref", "refs/notes/x", &stage.outside],
        &["reset", "-q", "--hard", "HEAD~0"],
        &["pack-refs", "--all"],
        &["gc", "-q", "--prune=now"],
        &["branch", "-D", "other"],
    ] {
        let done = git(&stage.inner, words);
        assert_eq!(done.exit, 0, "{words:?}: {done:?}");
    }
    check("a tag", false, &push(&stage, &["@", "light"], ""));
    let tree = push(&stage, &["@", "light^{tree}:refs/tags/tree"], "");
    check("a tree", false, &tree);

    // A line of work that has nothing to do with the base of the contract.
    stage.plain(&["checkout", "-q", "--orphan", "pages"]);
    stage.plain(&["commit", "-q", "-m", "pages"]);
    stage.plain(&["checkout", "-q", "main"]);
    let pages = push(&stage, &["@", "pages"], "");
    assert_eq!(pages.exit, 0, "{pages:?}");
    assert!(pages.stderr.contains("not judged"), "{pages:?}");
    // Unless it is what the bound checkout is on.
    stage.plain(&["checkout", "-q", "pages"]);
    check(
        "pages",
        false,
        &push(&stage, &["@", "HEAD:refs/heads/p"], ""),
    );
}

#[test]
fn a_branch_that_is_bound_is_no_matter_for_others_and_required_ones_are_refused() {
    let stage = BoundStage::new(Mode::RequiredBranch);
    stage.plain(&["branch", "other", &stage.outside]);
    let refused = push(&stage, &["@", "other"], "");
    assert!(
        refused.exit != 0 && refused.stderr.contains("HOOK_UNBOUND"),
        "{refused:?}"
    );
    // Nor may a commit come to be on a branch that is bound to nothing.
    stage.plain(&["checkout", "-q", "-b", "free", &stage.inside]);
    for words in [
        &["cherry-pick", &stage.outside][..],
        &["commit", "-q", "--no-verify", "--allow-empty", "-m", "x"],
    ] {
        let refused = git(&stage.inner, words);
        assert!(
            refused.exit != 0 && refused.stderr.contains("HOOK_UNBOUND"),
            "{refused:?}"
        );
    }
    stage.reset(&stage.base);
    let again = stage.inner.ask(&["hook", "install", "--no-require"]);
    assert_eq!(again.exit, 0);
    let passes = push(&stage, &["@", "other"], "");
    assert_eq!(passes.exit, 0, "{passes:?}");
    assert!(passes.stderr.contains("not judged"), "{passes:?}");
}

#[test]
fn another_worktree_and_another_directory_do_not_go_around_a_bound_branch() {
    let stage = BoundStage::new(Mode::Checkout);
    let beside = stage.inner.path("beside").display().to_string();
    stage.plain(&["worktree", "add", "-q", "--detach", &beside]);
    let git_dir = format!("--git-dir={}", stage.inner.path("repo/.git").display());
    let update = ["update-ref", "refs/heads/main", &stage.outside];
    let from_beside: Vec<&str> = ["-C", &beside].iter().chain(&update).copied().collect();
    let home = stage.inner.path("home").display().to_string();
    let from_home: Vec<&str> = ["-C", &home, &git_dir]
        .iter()
        .chain(&update)
        .copied()
        .collect();
    for words in [from_beside, from_home] {
        check("update-ref", false, &git(&stage.inner, &words));
        assert_eq!(stage.main(), stage.base);
    }
    stage.reset(&stage.outside);
    let pushed = git(
        &stage.inner,
        &["-C", &beside, "push", "-q", &stage.remote, "main"],
    );
    check("push of main", false, &pushed);
    // The worktree itself is bound to nothing.
    let free = git(
        &stage.inner,
        &["-C", &beside, "cherry-pick", &stage.outside],
    );
    assert_eq!(free.exit, 0, "{free:?}");
}
