//! Asks git once what differs in a checkout, trusting none of the repository's settings.
//!
//! # Invariants
//!
//! - Git passes over the files at most once. No hook, monitor or filter is started: a file that a
//!   filter would have rewritten is compared as it is, and is dirty if its times changed.
//! - Paths are bytes. A rename is reported as it is on disk: one path removed, one added.
//! - Files that git skips, and the content of submodules, are read by this module.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use provost_core::checkout::{ABSENT, CheckoutState, DirtyFile};
use provost_core::object::{Kind, Mode, ObjectFormat, Oid};
use provost_core::path::RawPath;
use provost_fs::stamp::{self, Stamp};
use rayon::prelude::*;
use rustix::fs::{FileType, Stat};

use super::attributes::{self, Attributes};
use super::checkout_cache::{self, Basis, Disks, Ground, Seen};
use super::file_list_cache::HERE;
use super::run::{Place, failed, unexpected};
use super::side_directory::SideGit;
use super::{GitError, Repository, submodules, system};
use crate::index;
use provost_fs::regular_file::read as read_file;

/// The largest file whose content is hashed, in bytes; larger ones count as unreadable.
const LARGEST: u64 = 256 << 20;

/// Runtime directory of Provost.
const RUNTIME: &[u8] = b".provost";

impl Repository {
    /// The state of the checkout of this repository, submodules included.
    pub fn workspace(&self) -> Result<CheckoutState, GitError> {
        self.workspace_at(0)
    }

    /// Whether git ignores `path` of this checkout; a tracked file is never ignored.
    pub fn ignores(&self, path: &RawPath) -> Result<bool, GitError> {
        let checkout = self.checkout().ok_or_else(|| GitError::NotARepository {
            path: self.git_dir.clone(),
        })?;
        let view = self.view(&self.ground(None)?)?;
        let words = ["--no-literal-pathspecs", "check-ignore", "-z", "--stdin"];
        let input = [HERE, path.as_bytes(), b"\0"].concat();
        let index = self.git_dir.join("index");
        let place = Place {
            index: Some(&index),
            ..self.place(&view, checkout)
        };
        let output = self.git.call(&place, &words, input)?;
        // 0: it is ignored; 1: it is not.
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(failed("check-ignore".to_owned(), &output)),
        }
    }

    /// Like [`Self::workspace`], for a submodule at nesting `depth`.
    pub(super) fn workspace_at(&self, depth: usize) -> Result<CheckoutState, GitError> {
        let checkout = self.checkout().ok_or_else(|| GitError::NotARepository {
            path: self.git_dir.clone(),
        })?;
        let head = match self.resolve("HEAD") {
            Ok(commit) => Some(commit),
            // Before the first commit there is none; a dangling ref looks the same.
            Err(GitError::NoCommit { .. }) => None,
            Err(error) => return Err(error),
        };
        let tree = match &head {
            Some(commit) => Some(self.commit_tree(commit)?),
            None => None,
        };
        let ground = self.ground(head)?;
        // A concurrent caller finds nothing remembered, and asks git.
        let last = self.last_seen.lock().ok().and_then(|mut last| last.take());
        let again = last.and_then(|seen| self.again(seen, &ground, checkout));
        let mut seen = match again {
            Some(seen) => seen,
            None => self.anew(&ground, checkout, depth)?,
        };
        let mut lines = seen.lines.clone();
        self.add_hidden(checkout, &seen.aside, &mut lines);
        // Only the outermost checkout contains files of Provost.
        lines.retain(|path, line| depth > 0 || !is_runtime(path) || line.letters != "??");
        let mut dirty = self.on_disk(checkout, lines, &mut seen.disks);
        for entry in seen.aside.iter().filter(|entry| submodules::is_one(entry)) {
            for (path, file) in submodules::changes(checkout, entry, depth) {
                dirty.entry(path).or_insert(file);
            }
        }
        if seen.basis.is_some()
            && let Ok(mut last) = self.last_seen.lock()
        {
            *last = Some(seen);
        }
        Ok(CheckoutState {
            tree: tree.map(|tree| tree.as_str().to_owned()),
            dirty,
        })
    }

    /// What git's answer about `head` follows from, apart from the checkout.
    fn ground(&self, head: Option<Oid>) -> Result<Ground, GitError> {
        let mut ignored = attributes::read_if_there(&self.common_dir.join("info/exclude"))?;
        if let Some(path) = self.users_file("core.excludesFile", "ignore")? {
            // The user's own rules have lower precedence, so they come first.
            let mut outer = attributes::read_if_there(&path)?;
            outer.push(b'\n');
            outer.append(&mut ignored);
            ignored = outer;
        }
        Ok(Ground {
            head,
            attributes: self.attributes()?,
            ignored,
        })
    }

    /// The state if all but a few files are unchanged; git is asked about those.
    fn again(&self, mut seen: Seen, ground: &Ground, checkout: &Path) -> Option<Seen> {
        let doubted = seen.basis.as_mut()?.doubted(self, checkout, ground)?;
        if doubted.is_empty() {
            return Some(seen);
        }
        // On a failure the caller asks git about everything, and that call reports the error.
        let view = self.view(ground).ok()?;
        let lines = self.status(&view, checkout, &doubted).ok()?;
        for path in &doubted {
            seen.lines.remove(path);
        }
        seen.lines.extend(lines);
        Some(seen)
    }

    /// The state, with git asked about everything.
    fn anew(&self, ground: &Ground, checkout: &Path, depth: usize) -> Result<Seen, GitError> {
        let began = stamp::now();
        let view = self.view(ground)?;
        let place = self.place(&view, checkout);
        let entries = || -> Result<_, GitError> {
            let entries = self.index_entries()?;
            // A submodule is not remembered.
            let ground = (depth == 0).then(|| ground.clone());
            let basis =
                ground.and_then(|ground| Basis::begin(self, &place, ground, &entries, began));
            Ok((entries, basis))
        };
        let (lines, entries) = rayon::join(|| self.status(&view, checkout, &[]), entries);
        let (lines, (mut entries, basis)) = (lines?, entries?);
        entries.retain(|entry| checkout_cache::is_hidden(entry) || submodules::is_one(entry));
        Ok(Seen {
            lines,
            aside: entries,
            disks: Disks::new(),
            basis,
        })
    }

    /// A git directory of our own on the same commit, with the rules of `ground`.
    fn view(&self, ground: &Ground) -> Result<SideGit, GitError> {
        let scratch = self.side.path().parent().unwrap_or(Path::new("/"));
        let view = match &ground.head {
            Some(commit) => SideGit::at(scratch, self.format, commit)?,
            None => SideGit::unborn(scratch, self.format)?,
        };
        ground.attributes.put(view.path())?;
        let exclude = view.path().join("info/exclude");
        std::fs::write(&exclude, &ground.ignored)
            .map_err(system(format!("write `{}`", exclude.display())))?;
        Ok(view)
    }

    fn place<'a>(&'a self, view: &'a SideGit, checkout: &'a Path) -> Place<'a> {
        Place {
            git_dir: view.path(),
            objects: Some(&self.objects),
            work_tree: Some(checkout),
            index: None,
        }
    }

    /// Asks git about `paths`, or about everything if there are none.
    fn status(
        &self,
        view: &SideGit,
        checkout: &Path,
        paths: &[RawPath],
    ) -> Result<Lines, GitError> {
        let index = self.git_dir.join("index");
        let place = Place {
            index: Some(&index),
            ..self.place(view, checkout)
        };
        let setting = Attributes::setting(view.path());
        let words = [
            "status",
            "--porcelain=v2",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            // Inside a submodule git would obey that one's settings; see `submodules`.
            "--ignore-submodules=dirty",
            "--",
        ];
        let mut arguments = vec![OsStr::new("-c"), setting.as_os_str()];
        arguments.extend(words.iter().map(OsStr::new));
        arguments.extend(paths.iter().map(|path| OsStr::from_bytes(path.as_bytes())));
        let output = self.git.call(&place, &arguments, Vec::new())?;
        if !output.status.success() {
            return Err(failed("status".to_owned(), &output));
        }
        let mut lines = Lines::new();
        for line in output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty())
        {
            let (path, line) = parse(line).ok_or_else(|| unexpected("status"))?;
            lines.insert(path, line);
        }
        Ok(lines)
    }

    /// What is on disk at the paths of `lines`; what `known` has is not read again.
    fn on_disk(
        &self,
        checkout: &Path,
        lines: Lines,
        known: &mut Disks,
    ) -> BTreeMap<RawPath, DirtyFile> {
        let began = stamp::now();
        let look = |(path, line): (RawPath, Line)| {
            let place = checkout.join(OsStr::from_bytes(path.as_bytes()));
            let stat = rustix::fs::lstat(&place).ok();
            let now = stat.as_ref().map(|stat| Stamp::of(stat).bytes());
            let before = known.get(&path).filter(|(stamp, _)| Some(*stamp) == now);
            let disk = match before {
                Some((_, disk)) => Some(disk.clone()),
                None => line.disk(checkout, &path, self.format),
            };
            let keeps = |stat: Stat| {
                let kind = FileType::from_raw_mode(stat.st_mode);
                // The name of a directory's state follows from its content.
                kind != FileType::Directory && Stamp::of(&stat).is_settled(began)
            };
            let keep = now.filter(|_| stat.is_some_and(keeps)).zip(disk.clone());
            let file = DirtyFile {
                letters: line.letters,
                head: line.head,
                staged: line.staged,
                disk,
            };
            ((path.clone(), file), keep.map(|keep| (path, keep)))
        };
        let all: Vec<_> = lines.into_par_iter().map(look).collect();
        let (dirty, keep): (BTreeMap<_, _>, Vec<_>) = all.into_iter().unzip();
        *known = keep.into_iter().flatten().collect();
        dirty
    }

    /// The index entries; none if the index has a format that is not read here.
    fn index_entries(&self) -> Result<Vec<index::Entry>, GitError> {
        let path = self.git_dir.join("index");
        let limit = u64::try_from(index::LARGEST).unwrap_or(u64::MAX);
        let unread = |error: std::io::Error| GitError::System {
            what: format!("read `{}`", path.display()),
            source: error,
        };
        let bytes =
            read_file(&path, limit).map_err(|error| unread(std::io::Error::other(error)))?;
        let Some(bytes) = bytes else {
            return Ok(Vec::new());
        };
        index::parse(&bytes, self.format).map_err(|error| unread(std::io::Error::other(error)))
    }

    /// Adds files that git skips (skip-worktree, assume-unchanged) and that differ from the index.
    fn add_hidden(&self, checkout: &Path, entries: &[index::Entry], lines: &mut Lines) {
        for entry in entries
            .iter()
            .filter(|entry| checkout_cache::is_hidden(entry))
        {
            let staged = named(entry.mode, &entry.oid);
            let line = Line {
                letters: " M".to_owned(),
                head: staged.clone(),
                staged,
            };
            let disk = line.disk(checkout, &entry.path, self.format);
            let missing = disk.as_deref() == Some(ABSENT);
            if (missing && entry.skip_worktree) || disk.as_ref() == Some(&line.staged) {
                continue;
            }
            lines.entry(entry.path.clone()).or_insert(line);
        }
    }
}

/// Whether `path` belongs to Provost itself.
fn is_runtime(path: &RawPath) -> bool {
    let inside = path.as_bytes().strip_prefix(RUNTIME);
    inside.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

pub(super) type Lines = BTreeMap<RawPath, Line>;

#[derive(Debug, Clone)]
pub(super) struct Line {
    letters: String,
    head: String,
    staged: String,
}

impl Line {
    /// What is on disk, if it can be read.
    fn disk(&self, checkout: &Path, path: &RawPath, format: ObjectFormat) -> Option<String> {
        if self.letters.ends_with('D') {
            return Some(ABSENT.to_owned());
        }
        let place = checkout.join(OsStr::from_bytes(path.as_bytes()));
        let data = match place.symlink_metadata() {
            Ok(data) => data,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Some(ABSENT.to_owned());
            }
            Err(_) => return None,
        };
        if data.is_symlink() {
            let target = std::fs::read_link(&place).ok()?;
            let oid = format.oid(Kind::Blob, target.as_os_str().as_bytes()).ok()?;
            return Some(named(Mode::Symlink, &oid));
        }
        if data.is_dir() {
            return submodule(&place);
        }
        let bytes = read_file(&place, LARGEST).ok()??;
        let mode = if data.permissions().mode() & 0o100 == 0 {
            Mode::File
        } else {
            Mode::Executable
        };
        Some(named(mode, &format.oid(Kind::Blob, &bytes).ok()?))
    }
}

/// The commit that a submodule is on; `None` if the directory is no submodule.
fn submodule(place: &Path) -> Option<String> {
    if place.join(".git").symlink_metadata().is_err() {
        return None;
    }
    let repo = Repository::discover(place).ok()?;
    let commit = repo.resolve("HEAD").ok()?;
    Some(named(Mode::Gitlink, &commit))
}

pub(super) fn named(mode: Mode, oid: &Oid) -> String {
    format!("{} {oid}", mode.digits())
}

/// Parses one line of `git status --porcelain=v2 -z`.
fn parse(line: &[u8]) -> Option<(RawPath, Line)> {
    let (kind, rest) = (line.first()?, line.get(2..)?);
    // Number of fields before the path, and which of them name head and index.
    let (count, head, staged) = match kind {
        b'?' => {
            let path = rest.strip_suffix(b"/").unwrap_or(rest);
            let line = Line {
                letters: "??".to_owned(),
                head: ABSENT.to_owned(),
                staged: ABSENT.to_owned(),
            };
            return Some((RawPath::new(path), line));
        }
        b'1' => (7, (2, 5), (3, 6)),
        b'u' => (9, (2, 6), (3, 7)),
        _ => return None,
    };
    let mut fields: Vec<&[u8]> = rest.splitn(count + 1, |byte| *byte == b' ').collect();
    let path = fields.pop().filter(|path| !path.is_empty())?;
    if fields.len() != count {
        return None;
    }
    let text = |at: usize| std::str::from_utf8(fields[at]).ok();
    let object = |(mode, oid): (usize, usize)| {
        let mode = text(mode)?;
        if mode.bytes().all(|digit| digit == b'0') {
            return Some(ABSENT.to_owned());
        }
        Some(format!("{mode} {}", text(oid)?))
    };
    Some((
        RawPath::new(path),
        Line {
            letters: text(0)?.replace('.', " "),
            head: object(head)?,
            staged: object(staged)?,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_git_are_read_as_bytes() {
        let oid = "e".repeat(40);
        let cases = [
            (
                format!("1 .M N... 100644 100644 100644 {oid} {oid} a b -> c").into_bytes(),
                (
                    "a b -> c",
                    " M",
                    format!("100644 {oid}"),
                    format!("100644 {oid}"),
                ),
            ),
            (
                format!("1 A. N... 000000 100755 100755 {oid} {oid} new").into_bytes(),
                ("new", "A ", ABSENT.to_owned(), format!("100755 {oid}")),
            ),
            (
                b"? d/\xff\n".to_vec(),
                ("d/\\xff\\x0a", "??", ABSENT.to_owned(), ABSENT.to_owned()),
            ),
            (
                b"? nested/".to_vec(),
                ("nested", "??", ABSENT.to_owned(), ABSENT.to_owned()),
            ),
            (
                format!("u UU N... 100644 100644 100644 100644 {oid} {oid} {oid} both")
                    .into_bytes(),
                (
                    "both",
                    "UU",
                    format!("100644 {oid}"),
                    format!("100644 {oid}"),
                ),
            ),
        ];
        for (line, (path, letters, head, staged)) in cases {
            let (found, line) = parse(&line).unwrap();
            assert_eq!(found.to_string(), path);
            assert_eq!(
                (line.letters, line.head, line.staged),
                (letters.to_owned(), head, staged)
            );
        }
        for bad in ["", "1", "2 R. x", "1 .M N... 100644", "x"] {
            assert!(parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
