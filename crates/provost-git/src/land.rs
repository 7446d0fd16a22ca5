//! Moves what belongs to the user: branches and a checkout. Only landing uses this.
//!
//! # Invariants
//!
//! - A ref moves by compare-and-swap, a checkout only forward, and nothing is ever forced.
//! - Only files that differ between the two commits are looked at and written, as by `git merge`.
//!   Other changes, staged or not, stay as they are.
//! - Some checkouts are refused with a reason and stay as they are. Such a file has changes, or
//!   files are in the way, or it cannot be written as the user's own git would.
//! - Doing it twice equals doing it once, also after an interruption between ref and files.
//!
//! The checkout is updated with our own settings: the user's filters, hooks and configuration do
//! not run. Line endings and encodings are applied as attributes ask, wherever the user's git
//! finds these; see [`super::attributes`].

mod fresh;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use provost_core::change::{Change, Node as Entry};
use provost_core::object::Oid;
use provost_core::path::RawPath;

use super::attributes::Attributes;
use super::refs::check;
use super::run::{Output, Place, failed, unexpected};
use super::side_directory::SideGit;
use super::{Expected, GitError, Repository};

const MOST_PATHS: usize = 20;

#[derive(Debug, thiserror::Error)]
pub enum LandError {
    #[error("the checkout has changes in files that would land: {}", list(paths))]
    Dirty {
        /// At most `MOST_PATHS` of them.
        paths: Vec<RawPath>,
    },
    #[error("untracked files are in the way: {}", list(paths))]
    InTheWay {
        /// At most `MOST_PATHS` of them.
        paths: Vec<RawPath>,
    },
    /// Files that the user's git would have passed through a filter.
    #[error("files need a filter that is not run here: {}", list(paths))]
    Filtered {
        /// At most `MOST_PATHS` of them.
        paths: Vec<RawPath>,
    },
    /// Index entries that hide the state on disk.
    #[error(
        "the index hides files (sparse checkout or assume-unchanged): {}",
        list(paths)
    )]
    Hidden {
        /// At most `MOST_PATHS` of them.
        paths: Vec<RawPath>,
    },
    /// The branch is a symbolic ref.
    #[error("`{name}` is only another name for `{real}`")]
    Alias { name: String, real: String },
    /// Several checkouts are on the branch, and only one could follow it.
    #[error("several checkouts are on `{branch}`: {}", places(checkouts))]
    Several {
        branch: String,
        checkouts: Vec<PathBuf>,
    },
    /// An operation, such as a rebase, will return to the branch.
    #[error("`{branch}` is in use by a {operation} in `{}`", checkout.display())]
    InUse {
        branch: String,
        operation: &'static str,
        checkout: PathBuf,
    },
    /// A merge, rebase or the like is under way in the checkout.
    #[error("an operation is under way in the checkout (`{what}`)")]
    Busy {
        /// The file in the git directory that shows it.
        what: String,
    },
    #[error("the checkout is at {found}, not at {expected}")]
    Elsewhere { expected: Oid, found: Oid },
    /// The new commit is not a descendant of the old one.
    #[error("{to} does not follow {from}")]
    NotForward { from: Oid, to: Oid },
    #[error("`{}` is not a checkout of this repository", path.display())]
    NotACheckout { path: PathBuf },
    /// Git refused; its own message is kept.
    #[error("git refused to update the checkout: {words}")]
    Refused { words: String },
    #[error("git failed while landing")]
    Git(#[from] GitError),
}

fn list(paths: &[RawPath]) -> String {
    let words: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
    words.join(", ")
}

fn places(checkouts: &[PathBuf]) -> String {
    let words = checkouts.iter().map(|path| format!("`{}`", path.display()));
    words.collect::<Vec<String>>().join(", ")
}

impl Repository {
    /// Sets a branch of the user, if it has the expected value.
    ///
    /// A checkout of that branch does not follow; see [`checkout_fast_forward`].
    pub fn land_ref(&self, name: &str, new: &Oid, expected: &Expected) -> Result<(), LandError> {
        check(name, &["refs/heads/"])?;
        self.refuse_alias(name)?;
        Ok(self.update_ref(name, new, expected)?)
    }

    /// Fails if the branch is a symbolic ref: moving it would detach it from its target.
    fn refuse_alias(&self, name: &str) -> Result<(), LandError> {
        match self.alias_of(name)? {
            Some(real) => Err(LandError::Alias {
                name: name.to_owned(),
                real,
            }),
            None => Ok(()),
        }
    }

    /// The commit that both sides come from; `None` if they have nothing in common.
    pub fn merge_base(&self, one: &Oid, other: &Oid) -> Result<Option<Oid>, GitError> {
        let arguments = ["merge-base", one.as_str(), other.as_str()];
        let output = self.git.call(&self.at_side(), &arguments, Vec::new())?;
        let failure = || failed("merge-base".to_owned(), &output);
        match output.status.code() {
            Some(0) => {
                let text = String::from_utf8_lossy(&output.stdout);
                let line = text.lines().next().unwrap_or_default();
                Oid::try_from(line).map(Some).map_err(|_| failure())
            }
            Some(1) => Ok(None),
            _ => Err(failure()),
        }
    }

    /// Whether `new` is `old` or a descendant of it.
    pub fn follows(&self, new: &Oid, old: &Oid) -> Result<bool, GitError> {
        let arguments = ["merge-base", "--is-ancestor", old.as_str(), new.as_str()];
        let output = self.git.call(&self.at_side(), &arguments, Vec::new())?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(failed("merge-base".to_owned(), &output)),
        }
    }
}

/// Files of the checkout that differ from its commit or are untracked; writes nothing.
pub fn uncommitted(repo: &Repository, checkout: &Path) -> Result<Vec<RawPath>, LandError> {
    let ground = Ground::new(repo, checkout)?;
    let head = ground.here.resolve("HEAD")?;
    let view = ground.view(&head)?;
    // With our settings git does not read the repository's own exclude file.
    let exclude = ground.here.common_dir.join("info/exclude");
    let exclude = format!("core.excludesFile={}", exclude.display());
    let arguments = [
        "-c",
        &exclude,
        "--no-optional-locks",
        "status",
        "--porcelain=v1",
        "-z",
        "--no-renames",
        "--untracked-files=normal",
        "--ignore-submodules=all",
    ];
    let fields = ground.fields(&view, &arguments, Vec::new())?;
    let path = |field: &Vec<u8>| RawPath::new(field.get(3..).unwrap_or_default());
    Ok(fields.iter().map(path).collect())
}

/// Moves a checkout, and its branch, from one commit to a later one. The files that differ must be
/// clean.
pub fn checkout_fast_forward(
    repo: &Repository,
    checkout: &Path,
    from: &Oid,
    to: &Oid,
) -> Result<(), LandError> {
    let ground = Ground::new(repo, checkout)?;
    ground.refuse_busy()?;
    if !repo.follows(to, from)? {
        let (from, to) = (from.clone(), to.clone());
        return Err(LandError::NotForward { from, to });
    }
    let (before, after) = (repo.commit_tree(from)?, repo.commit_tree(to)?);
    let changes = repo.differences(&before, &after)?;
    let touched = Touched::of(&changes);
    let found = ground.here.resolve("HEAD")?;
    if found == *to {
        let view = ground.view(to)?;
        if ground
            .refuse_hidden(&view, &touched)
            .and(ground.refuse_dirty(&view, &touched))
            .is_ok()
        {
            return Ok(());
        }
        // The ref had moved before an interruption; only the files are missing.
    } else if found != *from {
        let expected = from.clone();
        return Err(LandError::Elsewhere { expected, found });
    }
    let view = ground.view(from)?;
    ground.refuse_hidden(&view, &touched)?;
    ground.refuse_dirty(&view, &touched)?;
    ground.refuse_in_the_way(&changes, &repo.read_tree(&before)?.files)?;
    ground.refuse_filtered(&view, &changes)?;
    ground.refresh(&view)?;
    ground.update_files(&view, &["--dry-run"], from, to)?;
    if found == *from {
        ground.move_head(from, to)?;
    }
    ground.update_files(&view, &[], from, to).inspect_err(|_| {
        // Best effort: a checkout that agrees with its branch is easier to understand.
        let _ = ground.move_head(to, from);
    })
}

/// The paths that a landing writes or removes.
struct Touched(BTreeSet<RawPath>);

impl Touched {
    fn of(changes: &[Change]) -> Self {
        Self(changes.iter().map(|change| change.path.clone()).collect())
    }

    /// Whether `path` is one of them, or one of them is above or below it.
    fn meets(&self, path: &RawPath) -> bool {
        let bytes = path.as_bytes();
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut above = slashes.map(|(at, _)| RawPath::new(&bytes[..at]));
        let inside = [bytes, b"/"].concat();
        let below = || {
            let mut from = self.0.range(RawPath::new(inside.as_slice())..);
            from.next()
                .is_some_and(|next| next.as_bytes().starts_with(&inside))
        };
        self.0.contains(path) || above.any(|it| self.0.contains(&it)) || below()
    }
}

/// A checkout of the user, read with our settings.
struct Ground {
    here: Repository,
    checkout: PathBuf,
    index: PathBuf,
    attributes: Attributes,
    /// Whether the checkout ignores the executable bit.
    modeless: bool,
}

impl Ground {
    fn new(repo: &Repository, checkout: &Path) -> Result<Self, LandError> {
        let foreign = || LandError::NotACheckout {
            path: checkout.to_owned(),
        };
        let scratch = repo.side.path().parent().unwrap_or(Path::new("/"));
        let here = Repository::discover_with(checkout, scratch)?;
        let top = here.checkout.clone().ok_or_else(foreign)?;
        if here.common_dir != repo.common_dir {
            return Err(foreign());
        }
        let index = here.git_dir.join("index");
        Ok(Self {
            attributes: here.attributes()?,
            modeless: fresh::lacks_modes(&here)?,
            here,
            checkout: top,
            index,
        })
    }

    /// A git directory of ours that is on `commit`.
    fn view(&self, commit: &Oid) -> Result<SideGit, LandError> {
        let scratch = self.here.side.path().parent().unwrap_or(Path::new("/"));
        let view = SideGit::at(scratch, self.here.format, commit)?;
        self.attributes.put(view.path())?;
        Ok(view)
    }

    fn call(&self, view: &SideGit, arguments: &[&str], input: Vec<u8>) -> Result<Output, GitError> {
        let mut words = vec![OsString::from("-c"), Attributes::setting(view.path())];
        if self.modeless {
            words.extend(["-c", "core.fileMode=false"].map(OsString::from));
        }
        words.extend(arguments.iter().map(OsString::from));
        let place = Place {
            git_dir: view.path(),
            objects: Some(&self.here.objects),
            work_tree: Some(&self.checkout),
            index: Some(&self.index),
        };
        self.here.git.call(&place, &words, input)
    }

    /// The NUL-terminated fields that a call prints.
    fn fields(
        &self,
        view: &SideGit,
        arguments: &[&str],
        input: Vec<u8>,
    ) -> Result<Vec<Vec<u8>>, GitError> {
        let output = self.call(view, arguments, input)?;
        if !output.status.success() {
            let name = arguments.first().copied().unwrap_or_default();
            return Err(failed(name.to_owned(), &output));
        }
        let mut fields: Vec<Vec<u8>> = output
            .stdout
            .split(|byte| *byte == 0)
            .map(<[u8]>::to_vec)
            .collect();
        fields.pop();
        Ok(fields)
    }

    fn refuse_busy(&self) -> Result<(), LandError> {
        let signs = [
            "MERGE_HEAD",
            "CHERRY_PICK_HEAD",
            "REVERT_HEAD",
            "BISECT_LOG",
            "rebase-merge",
            "rebase-apply",
            "sequencer",
            "index.lock",
        ];
        let found = signs
            .iter()
            .find(|sign| self.here.git_dir.join(sign).exists());
        match found {
            Some(what) => Err(LandError::Busy {
                what: (*what).to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn refuse_hidden(&self, view: &SideGit, touched: &Touched) -> Result<(), LandError> {
        let fields = self.fields(view, &["ls-files", "-v", "-z"], Vec::new())?;
        let hidden = fields.iter().filter_map(|field| {
            let tag = *field.first()?;
            let shown = matches!(tag, b'H' | b'M');
            (!shown).then(|| RawPath::new(field.get(2..).unwrap_or_default()))
        });
        let hidden = hidden.filter(|path| touched.meets(path));
        refuse(hidden, |paths| LandError::Hidden { paths })
    }

    fn refuse_dirty(&self, view: &SideGit, touched: &Touched) -> Result<(), LandError> {
        let arguments = [
            "status",
            "--porcelain=v1",
            "-z",
            "--no-renames",
            "--untracked-files=no",
            "--ignore-submodules=all",
        ];
        let fields = self.fields(view, &arguments, Vec::new())?;
        let dirty = fields
            .iter()
            .map(|field| RawPath::new(field.get(3..).unwrap_or_default()))
            .filter(|path| touched.meets(path));
        refuse(dirty, |paths| LandError::Dirty { paths })
    }

    /// Refuses to overwrite ignored files, which git itself would overwrite.
    fn refuse_in_the_way(
        &self,
        changes: &[Change],
        known: &BTreeMap<RawPath, Entry>,
    ) -> Result<(), LandError> {
        let mut blocking = BTreeSet::new();
        for change in changes {
            if change.before.is_none() && change.after.is_some() {
                blocking.extend(self.blocking(&change.path, known));
            }
        }
        refuse(blocking.into_iter(), |paths| LandError::InTheWay { paths })
    }

    /// What is at the path of a new file and is not known to git.
    fn blocking(&self, path: &RawPath, known: &BTreeMap<RawPath, Entry>) -> Option<RawPath> {
        let bytes = path.as_bytes();
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for place in slashes.map(|(at, _)| &bytes[..at]) {
            let place = RawPath::new(place);
            let data = self.place(&place).symlink_metadata();
            if data.is_ok_and(|data| !data.is_dir()) && !known.contains_key(&place) {
                return Some(place);
            }
        }
        self.unknown(path, known)
    }

    /// The first file at or below `path` that is not known to git.
    fn unknown(&self, path: &RawPath, known: &BTreeMap<RawPath, Entry>) -> Option<RawPath> {
        let place = self.place(path);
        let data = place.symlink_metadata().ok()?;
        if !data.is_dir() {
            return (!known.contains_key(path)).then(|| path.clone());
        }
        let Ok(entries) = std::fs::read_dir(&place) else {
            return Some(path.clone());
        };
        entries
            .filter_map(Result::ok)
            .find_map(|entry| self.unknown(&path.join(entry.file_name().as_bytes()), known))
    }

    fn place(&self, path: &RawPath) -> PathBuf {
        self.checkout.join(OsStr::from_bytes(path.as_bytes()))
    }

    fn refuse_filtered(&self, view: &SideGit, changes: &[Change]) -> Result<(), LandError> {
        let mut input = Vec::new();
        for change in changes.iter().filter(|change| change.after.is_some()) {
            input.extend_from_slice(change.path.as_bytes());
            input.push(0);
        }
        if input.is_empty() {
            return Ok(());
        }
        // Path, attribute, value.
        let fields = self.fields(view, &["check-attr", "-z", "--stdin", "filter"], input)?;
        if fields.len() % 3 != 0 {
            return Err(unexpected("check-attr").into());
        }
        let filtered = fields.chunks(3).filter_map(|triple| {
            let none = matches!(triple[2].as_slice(), b"unspecified" | b"unset");
            (!none).then(|| RawPath::new(triple[0].as_slice()))
        });
        refuse(filtered, |paths| LandError::Filtered { paths })
    }

    /// Brings index and files from one commit to the other; git refuses to lose a change.
    fn update_files(
        &self,
        view: &SideGit,
        options: &[&str],
        from: &Oid,
        to: &Oid,
    ) -> Result<(), LandError> {
        let mut arguments = vec!["read-tree", "-m", "-u"];
        arguments.extend(options);
        arguments.extend([from.as_str(), to.as_str()]);
        let output = self.call(view, &arguments, Vec::new())?;
        if output.status.success() {
            return Ok(());
        }
        // Git's advice is meant for a user who calls git by hand.
        let lines = output.words.lines();
        let said: Vec<&str> = lines.filter(|line| !line.starts_with("hint:")).collect();
        Err(LandError::Refused {
            words: said.join(" "),
        })
    }

    /// Moves the branch of the checkout, or its `HEAD` if it is detached.
    fn move_head(&self, from: &Oid, to: &Oid) -> Result<(), LandError> {
        let branch = self.here.head_branch()?;
        let name = branch.as_deref().unwrap_or("HEAD");
        if branch.is_some() {
            self.here.refuse_alias(name)?;
        }
        let expected = Expected::Is(from.clone());
        Ok(self.here.update_ref(name, to, &expected)?)
    }
}

fn refuse(
    paths: impl Iterator<Item = RawPath>,
    error: impl FnOnce(Vec<RawPath>) -> LandError,
) -> Result<(), LandError> {
    let paths: Vec<RawPath> = paths.take(MOST_PATHS).collect();
    if paths.is_empty() {
        return Ok(());
    }
    Err(error(paths))
}
