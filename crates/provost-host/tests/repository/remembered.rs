//! What is remembered of a checkout equals a fresh answer of git.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use provost_core::path::RawPath;
use provost_host::git::Repository;

use crate::scratch::{Scratch, chmod, git};

/// A repository whose state is read repeatedly.
struct Watched {
    scratch: Scratch,
    repo: Repository,
    memory: Vec<u8>,
    /// How often a list was made from memory.
    remembered: usize,
}

/// Waits until everything is old enough to be trusted. The change time of a file cannot be set, so
/// there is no other way.
fn settle() {
    std::thread::sleep(Duration::from_millis(2_100));
}

impl Watched {
    fn new() -> Self {
        let scratch = Scratch::new();
        for path in ["a", "b", "c/d", "c/e", "f/g/h", "f/g/i", "keep/x", "odd/y"] {
            scratch.file(path, format!("{path}\n"));
        }
        scratch.file(".gitignore", "*.log\nbuilt/\n");
        scratch.file("f/.gitattributes", "h -text\n");
        scratch.commit();
        scratch.file("a", "dirty\n");
        scratch.file("new", "untracked\n");
        scratch.file("built/deep/out", "ignored\n");
        scratch.file("only/x.log", "ignored\n");
        scratch.file(":(top)/[x]*/y.log", "ignored\n");
        fs::create_dir(scratch.root().join("empty")).unwrap();
        settle();
        let repo = scratch.open();
        Self {
            scratch,
            repo,
            memory: Vec::new(),
            remembered: 0,
        }
    }

    /// Compares what is remembered with git's answer, after `what` happened.
    fn check(&mut self, what: &str) {
        let fresh = self.scratch.open();
        let state = fresh.workspace().unwrap();
        assert_eq!(self.repo.workspace().unwrap(), state, "{what}");
        let root = self.scratch.root();
        let sorted = |mut paths: Vec<RawPath>| {
            paths.sort_unstable();
            paths
        };
        let listed = fresh.project_files(&root, &self.memory).unwrap();
        let anew = fresh.project_files(&root, b"").unwrap();
        assert_eq!(sorted(listed.paths), sorted(anew.paths), "{what}");
        match listed.memory {
            Some(memory) => self.memory = memory,
            None => self.remembered += usize::from(!self.memory.is_empty()),
        }
    }

    fn put(&self, path: &str, text: &str) {
        self.scratch.file(path, text);
    }

    /// Writes the same number of bytes, and resets the modification time.
    fn forge(&self, path: &str) {
        let place = self.scratch.root().join(path);
        let before = fs::metadata(&place).unwrap();
        let turned: Vec<u8> = fs::read(&place)
            .unwrap()
            .iter()
            .map(|byte| byte ^ 1)
            .collect();
        fs::write(&place, turned).unwrap();
        let file = fs::File::options().write(true).open(&place).unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
    }

    fn act(&self, number: usize) {
        let (root, git) = (self.scratch.root(), |words: &[&str]| {
            self.scratch.git(words)
        });
        let text = format!("{number}\n");
        match number % 26 {
            0 => self.put("b", &text),
            1 => self.forge("b"),
            2 => drop(fs::remove_file(root.join("c/d"))),
            3 => self.put("c/d", "c/d\n"),
            4 => self.put("c/fresh", &text),
            5 => self.put("empty/first", &text),
            6 => self.put("built/deep/more", &text),
            7 => self.put("c/.gitignore", "fresh\n"),
            8 => self.put(".gitignore", "*.log\nbuilt/\nempty\n"),
            9 => self.put(".git/info/exclude", "new\n"),
            10 => self.put("f/.gitattributes", "h text eol=crlf\n"),
            11 => self.put("f/g/h", "one\r\ntwo\r\n"),
            12 => drop(git(&["add", "-A"])),
            13 => drop(git(&["commit", "-q", "--allow-empty", "-m", "x"])),
            14 => drop(git(&["rm", "-q", "--cached", "--ignore-unmatch", "keep/x"])),
            15 => chmod(&root.join("f/g/i"), 0o755),
            16 => {
                let _ = fs::remove_file(root.join("c/e"));
                symlink("../b", root.join("c/e")).unwrap();
            }
            17 => self.put("only/kept.txt", &text),
            18 => drop(git(&["update-index", "--skip-worktree", "f/g/i"])),
            19 => self.put("f/g/i", &text),
            20 => drop(git(&["update-index", "--no-skip-worktree", "f/g/i"])),
            21 => self.put("built/deep/out", &text),
            22 => drop(fs::rename(root.join("odd"), root.join("odder"))),
            23 => drop(git(&["stash", "-q", "--include-untracked"])),
            24 => drop(fs::create_dir(root.join("nest"))),
            _ => self.put("nest/z/z", &text),
        }
    }
}

#[test]
fn whatever_happens_memory_says_what_git_says() {
    let mut watched = Watched::new();
    watched.check("at first");
    watched.check("a second time");
    assert_eq!(watched.remembered, 1);
    let mut chance = 7_usize;
    for step in 0..60 {
        // A fixed order that meets every action, and most pairs of them, in another one.
        chance = (chance * 5 + 3) % 64;
        let number = if step < 26 { step } else { chance };
        watched.act(number);
        watched.check(&format!("step {step}: action {}", number % 26));
        if step % 8 == 7 {
            settle();
            watched.check(&format!("settled after step {step}"));
            watched.check(&format!("again after step {step}"));
        }
    }
    assert!(watched.remembered > 4, "{}", watched.remembered);
}

#[test]
fn a_file_that_was_edited_twice_in_an_instant_is_seen_each_time() {
    let mut watched = Watched::new();
    watched.check("at first");
    for number in 0..20 {
        watched.put("b", ["one\n", "two\n"][number % 2]);
        watched.check("edited");
    }
}

#[test]
fn a_repository_inside_of_another_is_asked_about_each_time() {
    let mut watched = Watched::new();
    let inner = watched.scratch.root().join("inner");
    fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q"]);
    settle();
    for _ in 0..2 {
        watched.check("nested");
    }
    git(&inner, &["commit", "-q", "--allow-empty", "-m", "x"]);
    watched.check("committed inside");
    assert_eq!(watched.remembered, 0);
}

#[test]
fn a_memory_that_is_damaged_or_of_another_repository_is_none() {
    let mut watched = Watched::new();
    watched.check("at first");
    let other = Watched::new();
    let root = other.scratch.root();
    let anew = other.repo.project_files(&root, b"").unwrap().paths;
    let whole = watched.memory.clone();
    let damages: [Vec<u8>; 5] = [
        whole.clone(),
        whole[..whole.len() / 2].to_vec(),
        [whole.as_slice(), b"more"].concat(),
        vec![0xff; whole.len()],
        [&whole[..40], &[0xff; 64], &whole[104..]].concat(),
    ];
    for memory in &damages {
        let listed = other.repo.project_files(&root, memory).unwrap();
        assert_eq!(listed.paths, anew);
        assert!(listed.memory.is_some());
    }
    for at in (0..whole.len()).step_by(97) {
        // Whatever it contains, reading it neither fails nor panics.
        let mut bent = whole.clone();
        bent[at] ^= 0x55;
        let _ = watched
            .repo
            .project_files(&watched.scratch.root(), &bent[..=at]);
    }
}
