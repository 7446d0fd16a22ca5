//! Git as the carrier of data: tickets, evidence and candidates are refs of a hub.
//!
//! # Invariants
//!
//! - Every attempt has refs of its own, so a late one overwrites nothing.
//! - Files are written and read as objects; no filter, attribute or hook of a repository counts.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use provost_core::code::Code;
use provost_core::contract;
use provost_core::object::Oid;
use provost_core::path::is_segment;
use provost_core::policy::{self, Policy, fleet};
use provost_ticket::fence::Fence;

use crate::command::{self, Finished};
use crate::failure::{FleetFailure, FleetResult, host};

/// The most bytes of one file of evidence.
const LARGEST_FILE: usize = 200 << 20;

/// The refs of one run at the hub.
#[derive(Debug, Clone, Copy)]
pub struct RunRefs<'a>(pub &'a str);

impl RunRefs<'_> {
    /// The ticket and the contract, on top of the base commit.
    pub fn ticket(self) -> String {
        format!("refs/provost/fleet/{}/ticket", self.0)
    }

    pub fn bundle(self, fence: Fence) -> String {
        format!("refs/provost/fleet/{}/{fence}/bundle", self.0)
    }

    pub fn candidate(self, fence: Fence) -> String {
        format!("refs/provost/fleet/{}/{fence}/candidate", self.0)
    }

    /// The signed statement about the landing; it exists at most once.
    pub fn landed(self) -> String {
        format!("refs/provost/fleet/{}/landed", self.0)
    }
}

/// A bare clone of a hub on this machine.
#[derive(Debug, Clone)]
pub struct HubClone {
    pub directory: PathBuf,
    pub url: String,
    pub limit: Duration,
}

/// A file of a commit that is made, as its path and content.
pub type NewFile = (String, Vec<u8>);

impl HubClone {
    /// The clone at `directory`, made if it does not exist.
    pub fn open(directory: PathBuf, url: &str, limit: Duration) -> FleetResult<Self> {
        let clone = Self {
            directory,
            url: url.to_owned(),
            limit,
        };
        if !clone.directory.join("HEAD").is_file() {
            let mut builder = fs::DirBuilder::new();
            let made = builder.recursive(true).mode(0o700).create(&clone.directory);
            made.map_err(host("making the clone of a hub"))?;
            clone.git(&["init", "-q", "--bare"])?;
        }
        Ok(clone)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut git = Command::new("git");
        for name in [
            "GIT_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
            "GIT_OBJECT_DIRECTORY",
        ] {
            git.env_remove(name);
        }
        git.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        git.current_dir(&self.directory);
        for setting in [
            "core.hooksPath=/dev/null",
            "protocol.ext.allow=never",
            "gc.auto=0",
        ] {
            git.args(["-c", setting]);
        }
        git.args(words);
        git
    }

    /// Runs git; its output counts only if it succeeds.
    pub fn git(&self, words: &[&str]) -> FleetResult<String> {
        self.finish(self.command(words), &[])
            .map(|done| done.text())
    }

    fn finish(&self, git: Command, input: &[u8]) -> FleetResult<Finished> {
        let words: Vec<_> = git
            .get_args()
            .map(|it| it.to_string_lossy().into_owned())
            .collect();
        let done = command::run(git, input, self.limit)?;
        if done.status.success() {
            return Ok(done);
        }
        let word = words.get(6).cloned().unwrap_or_default();
        let reason = format!("git {word} failed: {}", done.complaint());
        Err(FleetFailure::new(Code::GitFailed, reason))
    }

    /// Gets these refs of the hub, as `source:destination`.
    pub fn fetch(&self, refspecs: &[String]) -> FleetResult<()> {
        let mut words = vec![
            "fetch",
            "-q",
            "--no-tags",
            "--no-write-fetch-head",
            &self.url,
        ];
        words.extend(refspecs.iter().map(String::as_str));
        self.git(&words)
            .map(drop)
            .map_err(|error| self.unreachable(&error))
    }

    /// Gets the branch `target`, and returns where it is.
    pub fn fetch_target(&self, target: &str) -> FleetResult<Oid> {
        self.fetch(&[format!("+{target}:{target}")])?;
        self.resolve(target)
    }

    /// What the hub has under `name` now.
    pub fn remote(&self, name: &str) -> FleetResult<Option<Oid>> {
        let answer = self.git(&["ls-remote", &self.url, name]);
        let text = answer.map_err(|error| self.unreachable(&error))?;
        let line = text
            .lines()
            .find(|line| line.split('\t').nth(1) == Some(name));
        let id = line.and_then(|line| line.split('\t').next());
        id.map(oid).transpose()
    }

    fn unreachable(&self, error: &FleetFailure) -> FleetFailure {
        let reason = format!("the hub does not answer as expected: {}", error.reason);
        FleetFailure::new(Code::HubUnreachable, reason).hint(format!("git ls-remote {}", self.url))
    }

    /// Pushes all of `refspecs` or none of them; each of `leases` says what the hub must have.
    pub fn push(&self, refspecs: &[String], leases: &[String]) -> FleetResult<()> {
        let mut words = vec!["push".to_owned(), "-q".to_owned(), "--atomic".to_owned()];
        words.extend(
            leases
                .iter()
                .map(|lease| format!("--force-with-lease={lease}")),
        );
        words.push(self.url.clone());
        words.extend(refspecs.iter().cloned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.git(&words)
            .map(drop)
            .map_err(|error| self.unreachable(&error))
    }

    pub fn resolve(&self, revision: &str) -> FleetResult<Oid> {
        let name = format!("{revision}^{{commit}}");
        oid(&self.git(&["rev-parse", "--verify", "-q", "--end-of-options", &name])?)
    }

    pub fn tree_of(&self, commit: &Oid) -> FleetResult<Oid> {
        oid(&self.git(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")])?)
    }

    /// Whether `ancestor` is `commit` or a part of its history.
    pub fn contains(&self, commit: &Oid, ancestor: &Oid) -> FleetResult<bool> {
        let words = [
            "merge-base",
            "--is-ancestor",
            ancestor.as_str(),
            commit.as_str(),
        ];
        let done = command::run(self.command(&words), &[], self.limit)?;
        match done.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(FleetFailure::new(Code::GitFailed, done.complaint())),
        }
    }

    /// The tree of a merge; `None` if there is a conflict.
    pub fn merge_tree(&self, base: &str, one: &str, other: &str) -> FleetResult<Option<Oid>> {
        let words = ["merge-tree", "--write-tree", base, one, other];
        let done = command::run(self.command(&words), &[], self.limit)?;
        match done.status.code() {
            Some(0) => oid(done.text().lines().next().unwrap_or_default()).map(Some),
            Some(1) => Ok(None),
            _ => Err(FleetFailure::new(Code::GitFailed, done.complaint())),
        }
    }

    /// The bytes of a file at the top of a commit or tree; `None` if there is no such file.
    pub fn file(&self, object: &str, path: &str) -> FleetResult<Option<Vec<u8>>> {
        let listed = self.git(&["ls-tree", "--full-tree", object, "--", path])?;
        let Some(id) = listed.split_whitespace().nth(2) else {
            return Ok(None);
        };
        Ok(Some(
            self.finish(self.command(&["cat-file", "blob", id]), &[])?
                .out,
        ))
    }

    /// The policy of a commit with the digest of its rules; an empty one if it has none.
    pub fn policy(&self, commit: &Oid) -> FleetResult<(Policy, String)> {
        let bytes = self
            .file(commit.as_str(), policy::FILE)?
            .unwrap_or_default();
        let wrong = |error: &dyn std::error::Error| {
            FleetFailure::of(Code::InputInvalid, "reading the policy of a commit", error)
        };
        let parsed = policy::parse(&bytes).map_err(|error| wrong(&error))?;
        let digest = fleet::rules_digest(&bytes).map_err(|error| wrong(&error))?;
        Ok((parsed, digest))
    }

    /// A commit of exactly these files.
    pub fn commit(&self, files: &[NewFile], parents: &[&Oid], message: &str) -> FleetResult<Oid> {
        let index = tempfile_in(&self.directory)?;
        let made = self.write_tree(files, &index);
        // It holds nothing that is needed later.
        let _ = fs::remove_file(&index);
        self.commit_tree(&made?, parents, message, &Author::fleet())
    }

    fn write_tree(&self, files: &[NewFile], index: &Path) -> FleetResult<Oid> {
        let mut rows = String::new();
        for (path, bytes) in files {
            let git = self.command(&["hash-object", "-w", "--no-filters", "--stdin"]);
            let id = self.finish(git, bytes)?.text();
            rows += &format!("100644 {id}\t{path}\0");
        }
        let mut git = self.command(&["update-index", "-z", "--index-info"]);
        git.env("GIT_INDEX_FILE", index);
        self.finish(git, rows.as_bytes())?;
        let mut git = self.command(&["write-tree"]);
        git.env("GIT_INDEX_FILE", index);
        oid(&self.finish(git, &[])?.text())
    }

    /// A commit of a tree; the same arguments give the same commit.
    pub fn commit_tree(
        &self,
        tree: &Oid,
        parents: &[&Oid],
        message: &str,
        author: &Author,
    ) -> FleetResult<Oid> {
        let mut words = vec!["commit-tree", tree.as_str()];
        for parent in parents {
            words.extend(["-p", parent.as_str()]);
        }
        let mut git = self.command(&words);
        let date = format!("@{} +0000", author.seconds);
        for part in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{part}_NAME"), &author.name);
            git.env(format!("GIT_{part}_EMAIL"), &author.email);
            git.env(format!("GIT_{part}_DATE"), &date);
        }
        oid(&self.finish(git, message.as_bytes())?.text())
    }

    /// Writes the files of `commit` into `directory`, which is empty.
    pub fn export(&self, commit: &Oid, directory: &Path) -> FleetResult<()> {
        let wrong = |what: &str| FleetFailure::new(Code::EvidenceAltered, what);
        let listed = self.git(&["ls-tree", "-r", "-z", "--full-tree", commit.as_str()])?;
        for row in listed.split('\0').filter(|row| !row.is_empty()) {
            let (head, path) = row
                .split_once('\t')
                .ok_or_else(|| wrong("a tree cannot be read"))?;
            let id = head.split(' ').nth(2).unwrap_or_default();
            if !head.starts_with("100644 blob ") || !path.split('/').all(is_segment) {
                return Err(wrong("the evidence holds what is no ordinary file"));
            }
            let bytes = self
                .finish(self.command(&["cat-file", "blob", id]), &[])?
                .out;
            if bytes.len() > LARGEST_FILE {
                return Err(wrong("the evidence holds a file that is too large"));
            }
            let file = directory.join(path);
            let parent = file.parent().unwrap_or(directory);
            fs::create_dir_all(parent).map_err(host("writing evidence"))?;
            fs::write(&file, bytes).map_err(host("writing evidence"))?;
        }
        Ok(())
    }

    /// The contract beside a ticket.
    pub fn contract(&self, commit: &Oid) -> FleetResult<contract::document::Document> {
        let bytes = self
            .file(commit.as_str(), "contract.json")?
            .unwrap_or_default();
        contract::parse(&bytes).map_err(|error| {
            FleetFailure::of(
                Code::ContractInvalid,
                "reading the contract of a ticket",
                &error,
            )
        })
    }
}

/// Who a commit is by, and when it was made.
#[derive(Debug, Clone)]
pub struct Author {
    pub name: String,
    pub email: String,
    /// Since 1970.
    pub seconds: i64,
}

impl Author {
    /// For commits that only carry files; the same files give the same commit.
    fn fleet() -> Self {
        Self {
            name: "provost-fleet".to_owned(),
            email: "provost-fleet@localhost".to_owned(),
            seconds: 0,
        }
    }
}

fn tempfile_in(directory: &Path) -> FleetResult<PathBuf> {
    let number = provost_fs::atomic::unused_number().map_err(host("naming a file"))?;
    Ok(directory.join(format!("index-{number}")))
}

pub fn oid(text: &str) -> FleetResult<Oid> {
    Oid::try_from(text)
        .map_err(|_| FleetFailure::new(Code::GitFailed, "git answered with what is no object id"))
}

/// The files of a directory, without the lock of its driver, as paths with `/`.
pub fn files_of(directory: &Path) -> FleetResult<Vec<NewFile>> {
    let mut found = Vec::new();
    let mut open = vec![(directory.to_owned(), String::new())];
    while let Some((at, prefix)) = open.pop() {
        for entry in fs::read_dir(&at).map_err(host("reading evidence"))? {
            let entry = entry.map_err(host("reading evidence"))?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| is_segment(name)) else {
                let reason = "the evidence holds a file whose name cannot be pushed";
                return Err(FleetFailure::new(Code::HostFailed, reason));
            };
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(host("reading evidence"))?;
            if kind.is_dir() {
                open.push((entry.path(), format!("{path}/")));
            } else if kind.is_file() && path != "driver.lock" {
                let bytes = fs::read(entry.path()).map_err(host("reading evidence"))?;
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    Ok(found)
}
