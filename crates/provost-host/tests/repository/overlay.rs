//! Capture of the upper layer of an overlay equals capture of the merged directory.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_host::capture::{Captured, Limits, Mode, Source, capture};
use provost_host::git::Repository;
use provost_host::sandbox::{Command, Control, How, LauncherProgram, Mount, Profile, Stdin};
use provost_host::workspace::{self, Dates, Lower, Lowers, PrivateGit, Workspace};

use crate::scratch::{Scratch, changed, chmod, found};

const WORKSPACE: &str = "/workspace";

/// A repository, and the checkout of its `HEAD` that overlays lie on.
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

    /// An unmodified overlay.
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

    /// Runs a script in `made` and returns its output.
    pub(crate) fn run(&self, made: &Workspace, script: &str) -> String {
        self.run_with(made, None, script)
    }

    /// Copies the merged directory.
    ///
    /// Through a mount of its own: hard links made on an overlay show as two files until then.
    pub(crate) fn merged(&self, made: &Workspace) -> Source {
        let copy = made.root.join("copy");
        std::fs::create_dir(&copy).unwrap();
        self.run_with(made, Some(&copy), "cp -a /workspace/. /copy/");
        Source::Directory(copy)
    }

    fn run_with(&self, made: &Workspace, copy: Option<&Path>, script: &str) -> String {
        let mut profile = Profile::minimal();
        profile.add(made.mount(WORKSPACE.as_ref()));
        profile.add(Mount::ReadOnly {
            source: self.repo.objects().to_owned(),
            target: "/objects".into(),
        });
        if let Some(copy) = copy {
            profile.add(Mount::Writable {
                source: copy.to_owned(),
                target: "/copy".into(),
            });
        }
        profile.workdir = WORKSPACE.into();
        profile.limits.wall_seconds = 60;
        let command = Command {
            argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            stdin: Stdin::Null,
            stdout: made.root.join("stdout"),
            stderr: made.root.join("stderr"),
        };
        let launcher = LauncherProgram {
            exe: env!("CARGO_BIN_EXE_launcher-fixture").into(),
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

/// An action of an agent.
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
    /// The step as a shell command; an impossible step does nothing.
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

/// The facts that must not depend on the source.
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

/// Lets an agent act at random in an overlay, `cases` times, and checks `promise` each time. The
/// argument of `promise` is the name of a directory it may use.
fn whatever_is_done(
    cases: u32,
    promise: impl Fn(&Layers, &Workspace, &str) -> Result<(), TestCaseError>,
) {
    let layers = Layers::of(base());
    let cache = layers.scratch.cache();
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    });
    let outcome = runner.run(&proptest::collection::vec(step(), 1..14), |steps| {
        for name in ["w", "v"] {
            workspace::remove(&cache, &cache.join(name)).unwrap();
        }
        let made = layers.workspace("w");
        let lines: Vec<String> = steps.iter().map(Step::render).collect();
        layers.run(
            &made,
            &format!("exec 2>/dev/null\n{}\ntrue", lines.join("\n")),
        );
        promise(&layers, &made, "v")
    });
    outcome.unwrap();
    // Whatever the agent did, the checkout is unmodified.
    let again = Lowers::new(&cache)
        .hold(&layers.repo, &layers.tree)
        .unwrap();
    assert_eq!(again.files(), layers.lower.files());
    assert!(aside(&layers.scratch).is_empty());
}

#[test]
fn the_upper_layer_tells_what_the_merged_directory_tells() {
    whatever_is_done(256, |layers, made, _| {
        let upper = layers.take(&made.source());
        let merged = layers.take(&layers.merged(made));
        prop_assert_eq!(facts(upper), facts(merged));
        Ok(())
    });
}

#[test]
fn a_layer_of_differences_shows_exactly_the_other_tree() {
    whatever_is_done(64, |layers, first, name| {
        let (repo, cache) = (&layers.repo, layers.scratch.cache());
        let tree = layers.take(&first.source()).tree;
        let private = PrivateGit {
            commit: layers.commit.clone(),
            objects: "/objects".into(),
        };
        let place = cache.join(name);
        let made = workspace::create_between(
            repo,
            &layers.lower,
            &tree,
            &place,
            &private,
            &Dates::default(),
        )
        .unwrap();
        let status = layers.run(&made, "git diff-files --name-only; git ls-files --others");
        prop_assert_eq!(status, "");
        let limits = Limits::default();
        for source in [made.source(), layers.merged(&made)] {
            let captured = capture(repo, &tree, &source, &limits, Mode::Compare).unwrap();
            prop_assert_eq!(captured.tree, tree.clone());
            prop_assert!(captured.changes.is_empty() && captured.findings.is_empty());
        }
        let plain = workspace::create(repo, &tree, &place.join("plain"), None).unwrap();
        prop_assert_eq!(directories(&place.join("copy")), directories(&plain.tree));
        Ok(())
    });
}

/// Checkouts that were taken out of use.
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
    let said = layers.run(&made, script);
    assert_eq!(said, "work\nx\n");
    let captured = layers.take(&made.source());
    assert_eq!(changed(&captured), ["a/x", "dir/three", "moved", "top"]);
}

#[test]
fn an_agent_cannot_forge_the_marks_of_the_kernel() {
    let layers = Layers::of(base());
    let made = layers.workspace("w");
    let script = "import os\n\
        def mark(path, name, value):\n\
        \x20   try: os.setxattr(path, name, value)\n\
        \x20   except OSError: pass\n\
        for name in ('opaque', 'whiteout', 'redirect', 'overlay.opaque', 'overlay.whiteout'):\n\
        \x20   mark('a', 'user.overlay.' + name, b'y')\n\
        \x20   mark('a/b', 'trusted.overlay.' + name, b'y')\n\
        \x20   mark('a/empty', 'user.overlay.' + name, b'y')\n\
        try: os.mknod('top2', 0o20000, 0)\n\
        except OSError: pass\n";
    std::fs::write(made.tree.join(".git/forge.py"), script).unwrap();
    let python = "command -v python3 > /dev/null || { echo none; exit 0; }; python3 .git/forge.py";
    if layers.run(&made, python) == "none\n" {
        provost_testkit::skip("there is no python3 to set attributes with");
        return;
    }
    let captured = layers.take(&made.source());
    assert_eq!(changed(&captured), [""; 0]);
    assert_eq!(found(&captured), [].into());
}

#[test]
fn what_cannot_be_read_is_a_finding_and_can_be_removed() {
    let layers = Layers::of(base());
    let made = layers.workspace("w");
    layers.run(&made, "rm a/x; chmod 000 dir; chmod 000 a/y; chmod 100 a/b");
    let captured = layers.take(&made.source());
    let root = rustix::process::geteuid().is_root();
    let want: &[&str] = if root { &[] } else { &["a/b", "a/y", "dir"] };
    let paths: Vec<String> = found(&captured).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, want);
    let gone: &[&str] = if root {
        &["a/x"]
    } else {
        &[
            "a/b/c/deep",
            "a/b/c/deeper",
            "a/b/z",
            "a/x",
            "a/y",
            "dir/sub/one",
            "dir/sub/two",
            "dir/three",
        ]
    };
    assert_eq!(changed(&captured), gone);
    // The kernel leaves a directory there without permission to enter.
    assert!(made.root.join("work/work").exists());
    workspace::remove(&layers.scratch.cache(), &made.root).unwrap();
    assert!(!made.root.exists());
}

#[test]
fn work_on_an_overlay_is_salvaged() {
    let layers = Layers::of(base());
    let made = layers.workspace("w");
    layers.run(
        &made,
        "echo precious > a/new; rm top; mkfifo a/pipe; echo x > x.o",
    );
    let left = workspace::left_in(&made.root).unwrap();
    assert_eq!(left, made.source());
    let saved = workspace::salvage(&layers.repo, &layers.tree, &left).unwrap();
    let read = layers.repo.read_tree(&saved.tree).unwrap();
    let files = &read.files;
    let has = |path: &str| files.contains_key(&RawPath::new(path));
    assert!(has("a/new") && has("dir/three") && has("sub"));
    assert!(!has("top") && !has("x.o") && !has("a/pipe"));
    assert_eq!(saved.findings.len(), 1);
}

/// All directories below `root` but the private git directory, sorted.
fn directories(root: &Path) -> Vec<PathBuf> {
    let mut open = vec![root.to_owned()];
    let mut found = Vec::new();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() && entry.file_name() != ".git" {
                found.push(entry.path().strip_prefix(root).unwrap().to_owned());
                open.push(entry.path());
            }
        }
    }
    found.sort();
    found
}
