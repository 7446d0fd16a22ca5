//! What is captured from the upper layer of an overlay is what was in the merged directory.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use provost_core::object::Oid;
use provost_host::boxes::{Command, Control, How, Launcher, Mount, Profile, Stdin};
use provost_host::capture::{Captured, Limits, Mode, Source, capture};
use provost_host::git::Repository;
use provost_host::workspace::{self, Lower, Lowers, PrivateGit, Workspace};

use crate::scratch::{Scratch, changed, chmod, found};

const WORKSPACE: &str = "/workspace";
const COPY: &str = "/copy";

/// A repository, and the checkout of its `HEAD` that overlays stand on.
pub(crate) struct Layers {
    pub(crate) scratch: Scratch,
    pub(crate) repo: Repository,
    pub(crate) commit: Oid,
    pub(crate) tree: Oid,
    pub(crate) lower: Lower,
}

impl Layers {
    pub(crate) fn of(scratch: Scratch) -> Self {
        let repo = scratch.open();
        let commit = repo.resolve("HEAD").unwrap();
        let tree = repo.commit_tree(&commit).unwrap();
        let lower = Lowers::new(&scratch.cache()).hold(&repo, &tree).unwrap();
        Self {
            scratch,
            repo,
            commit,
            tree,
            lower,
        }
    }

    /// An overlay that nobody wrote to.
    pub(crate) fn workspace(&self, name: &str) -> Workspace {
        let private = PrivateGit {
            commit: self.commit.clone(),
            objects: "/objects".into(),
        };
        let place = self.scratch.cache().join(name);
        workspace::create_over(&self.repo, &self.lower, &place, &private).unwrap()
    }

    pub(crate) fn take(&self, source: &Source) -> Captured {
        let limits = Limits::default();
        capture(&self.repo, &self.tree, source, &limits, Mode::Record).unwrap()
    }

    /// Runs a script in `made`, and leaves a copy of the merged directory in the new directory
    /// `copy`; what the script printed.
    pub(crate) fn run(&self, made: &Workspace, copy: &Path, script: &str) -> String {
        std::fs::create_dir(copy).unwrap();
        let mut profile = Profile::minimal();
        profile.add(made.mount(WORKSPACE.as_ref()));
        profile.add(Mount::Writable {
            source: copy.to_owned(),
            target: COPY.into(),
        });
        profile.add(Mount::ReadOnly {
            source: self.repo.objects().to_owned(),
            target: "/objects".into(),
        });
        profile.workdir = WORKSPACE.into();
        profile.limits.wall_seconds = 60;
        let script = format!("{script}\ncp -a {WORKSPACE}/. {COPY}/ || exit 9\nexit 0\n");
        let command = Command {
            argv: ["/bin/sh", "-c", &script].map(str::to_owned).to_vec(),
            stdin: Stdin::Null,
            stdout: made.root.join("stdout"),
            stderr: made.root.join("stderr"),
        };
        let launcher = Launcher {
            exe: env!("CARGO_BIN_EXE_box-fixture").into(),
        };
        let running = launcher.start(&profile, &command, |_| Ok(())).unwrap();
        let ended = running.wait(&mut |_| Control::Continue).unwrap();
        let words = std::fs::read_to_string(&command.stderr).unwrap();
        assert_eq!(ended.how, How::Exited(0), "{words}");
        std::fs::read_to_string(&command.stdout).unwrap()
    }
}

/// A base with everything that an overlay could get wrong.
fn base() -> Scratch {
    let scratch = Scratch::new();
    let files = [
        "top",
        "a/x",
        "a/y",
        "a/b/z",
        "a/b/c/deep",
        "a/b/c/deeper",
        "dir/sub/one",
        "dir/sub/two",
        "dir/three",
        "Case",
        "build/tracked",
        "lone/file",
    ];
    for (number, path) in files.iter().enumerate() {
        scratch.file(
            path,
            format!("{path} is file number {number} of the base\n").repeat(3),
        );
    }
    scratch.file("a/empty", "");
    scratch.file("bin", b"\0binary");
    scratch.file("run", "#!/bin/sh\n");
    chmod(&scratch.root().join("run"), 0o755);
    symlink("top", scratch.root().join("link")).unwrap();
    scratch.file(".gitignore", "*.o\n/build/\n");
    scratch.file("a/.gitignore", "!keep.o\nignored\n");
    scratch.git(&["add", "-f", "build/tracked"]);
    let commit = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    scratch.git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{commit},sub"),
    ]);
    scratch.git(&[
        "add",
        "top",
        "a",
        "dir",
        "Case",
        "lone",
        "bin",
        "run",
        "link",
        ".gitignore",
    ]);
    scratch.git(&["commit", "-q", "-m", "x"]);
    scratch
}

/// Something an agent does.
#[derive(Debug, Clone)]
enum Step {
    Write(String, String),
    Rewrite(String),
    Append(String),
    Touch(String),
    Remove(String),
    Rename(String, String),
    Copy(String, String),
    Link(String, String),
    Symlink(String, &'static str),
    Mode(String, &'static str),
    Directory(String),
    Fifo(String),
    Anew(String),
}

impl Step {
    /// The step in the words of a shell; what cannot be done is left.
    fn render(&self) -> String {
        let under = |path: &str| match path.rsplit_once('/') {
            Some((parent, _)) => format!("mkdir -p {parent}; "),
            None => String::new(),
        };
        match self {
            Self::Write(path, text) => {
                format!("{}[ -p {path} ] || printf '{text}' > {path}", under(path))
            }
            Self::Rewrite(path) => {
                format!("[ -f {path} ] && cat {path} > /tmp/x && cat /tmp/x > {path}")
            }
            Self::Append(path) => format!("[ -f {path} ] && echo more >> {path}"),
            Self::Touch(path) => format!("[ -e {path} ] && touch {path}"),
            Self::Remove(path) => format!("rm -rf {path}"),
            Self::Rename(from, to) => format!("{}mv -fT {from} {to}", under(to)),
            Self::Copy(from, to) => format!("{}cp -aT {from} {to}", under(to)),
            Self::Link(from, to) => format!("{}ln {from} {to}", under(to)),
            Self::Symlink(path, to) => format!("{}ln -snf {to} {path}", under(path)),
            Self::Mode(path, mode) => format!("[ -f {path} ] && chmod {mode} {path}"),
            Self::Directory(path) => format!("mkdir -p {path}"),
            Self::Fifo(path) => format!("{}mkfifo {path}", under(path)),
            Self::Anew(path) => format!("rm -rf {path}; mkdir -p {path}; echo new > {path}/new"),
        }
    }
}

fn path() -> impl Strategy<Value = String> {
    let known = proptest::sample::select(vec![
        "top",
        "a",
        "a/x",
        "a/y",
        "a/b",
        "a/b/z",
        "a/b/c",
        "a/b/c/deep",
        "dir",
        "dir/sub",
        "dir/sub/one",
        "dir/three",
        "Case",
        "case",
        "build",
        "build/tracked",
        "lone",
        "lone/file",
        "a/empty",
        "bin",
        "run",
        "link",
        ".gitignore",
        "a/.gitignore",
        "sub",
        "A/x",
    ])
    .prop_map(str::to_owned);
    let name = proptest::sample::select(vec![
        "a", "b", "c", "x", "new", "x.o", "keep.o", "ignored", "build", "sub", "dir", ".git",
    ]);
    let made = proptest::collection::vec(name, 1..4)
        .prop_map(|parts| parts.join("/"))
        // The private git directory is skipped wherever it comes from.
        .prop_filter("not the private git directory", |path| {
            !path.starts_with(".git")
        });
    prop_oneof![3 => known, 2 => made]
}

fn step() -> impl Strategy<Value = Step> {
    let text = "[ab]{0,40}";
    let target = proptest::sample::select(vec!["top", "a/b", "nowhere", "b", "../dir/sub"]);
    let mode = proptest::sample::select(vec!["755", "644", "600", "4755"]);
    prop_oneof![
        4 => (path(), text).prop_map(|(path, text)| Step::Write(path, text)),
        1 => path().prop_map(Step::Rewrite),
        2 => path().prop_map(Step::Append),
        1 => path().prop_map(Step::Touch),
        3 => path().prop_map(Step::Remove),
        3 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => (path(), path()).prop_map(|(from, to)| Step::Copy(from, to)),
        2 => (path(), path()).prop_map(|(from, to)| Step::Link(from, to)),
        1 => (path(), target).prop_map(|(path, to)| Step::Symlink(path, to)),
        2 => (path(), mode).prop_map(|(path, mode)| Step::Mode(path, mode)),
        1 => path().prop_map(Step::Directory),
        1 => path().prop_map(Step::Fifo),
        2 => path().prop_map(Step::Anew),
    ]
}

/// What must not depend on where it was read.
fn facts(captured: Captured) -> impl PartialEq + std::fmt::Debug {
    let Captured {
        tree,
        changes,
        findings,
        ignored,
        ..
    } = captured;
    (tree, changes, findings, ignored)
}

#[test]
fn the_upper_layer_tells_what_the_merged_directory_tells() {
    let layers = Layers::of(base());
    let number = std::cell::Cell::new(0);
    let steps = proptest::collection::vec(step(), 1..14);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(256)
    });
    let outcome = runner.run(&steps, |steps| {
        number.set(number.get() + 1);
        let made = layers.workspace(&format!("w{}", number.get()));
        let copy = made.root.join("copy");
        let lines: Vec<String> = steps.iter().map(Step::render).collect();
        let script = format!("exec 2>/dev/null\n{}", lines.join("\n"));
        layers.run(&made, &copy, &script);
        let upper = layers.take(&made.source());
        let merged = layers.take(&Source::Directory(copy));
        prop_assert_eq!(facts(upper), facts(merged));
        workspace::remove(&layers.scratch.cache(), &made.root).unwrap();
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    // Whatever was done above, nobody wrote to the checkout.
    let again = Lowers::new(&layers.scratch.cache())
        .hold(&layers.repo, &layers.tree)
        .unwrap();
    assert_eq!(again.files(), layers.lower.files());
    assert!(aside(&layers.scratch).is_empty());
}

/// Checkouts that were set aside.
fn aside(scratch: &Scratch) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(scratch.cache().join("lower")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_aside = |path: &PathBuf| path.to_string_lossy().contains("gone.");
    paths.filter(is_aside).collect()
}

#[test]
fn an_untouched_overlay_gives_the_base() {
    let layers = Layers::of(base());
    let made = layers.workspace("w");
    let captured = layers.take(&made.source());
    assert_eq!(captured.tree, layers.tree);
    assert_eq!((changed(&captured).len(), found(&captured).len()), (0, 0));
    let status = layers.run(
        &made,
        &made.root.join("copy"),
        "touch a/x; cat a/y > /tmp/y; cat /tmp/y > a/y; git status --porcelain",
    );
    assert_eq!(status, "");
    let captured = layers.take(&made.source());
    assert_eq!(captured.tree, layers.tree);
    assert_eq!((changed(&captured).len(), found(&captured).len()), (0, 0));
}

#[test]
fn git_works_on_an_overlay() {
    let layers = Layers::of(base());
    let made = layers.workspace("w");
    let script = "echo more >> a/x; git mv top moved; git rm -q dir/three; git add a; \
                  git commit -q -m work; git log --format=%s; git status --porcelain";
    let said = layers.run(&made, &made.root.join("copy"), script);
    assert_eq!(said, "work\nx\n");
    let captured = layers.take(&made.source());
    assert_eq!(changed(&captured), ["a/x", "dir/three", "moved", "top"]);
}
