//! Finds the repository around a directory, by reading files only.

use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use provost_core::object::ObjectFormat;

use super::run::{Place, unexpected};
use super::side_directory::SideGit;
use super::{Git, GitError, Repository, ref_files, system};

/// The longest `.git` or `commondir` file that is read, in bytes.
const LONGEST: u64 = 8192;

impl Repository {
    /// Finds the repository that contains `directory`: a checkout, a linked worktree or a bare one.
    ///
    /// Private files go to the system's temporary directory.
    pub fn discover(directory: &Path) -> Result<Self, GitError> {
        Self::discover_with(directory, &std::env::temp_dir())
    }

    /// Like [`Self::discover`], with private files in `scratch`.
    pub fn discover_with(directory: &Path, scratch: &Path) -> Result<Self, GitError> {
        let (git_dir, checkout) = locate(directory)?;
        let common_dir = match line_of(&git_dir.join("commondir"))? {
            Some(relative) => absolute(&git_dir, &relative)?,
            None => git_dir.clone(),
        };
        let objects = absolute(&common_dir, Path::new("objects"))?;
        if objects.as_os_str().as_bytes().contains(&b'\n') {
            return Err(GitError::BadLayout { path: objects });
        }
        let top = if common_dir == git_dir {
            checkout.clone()
        } else {
            let named = common_dir.file_name().is_some_and(|name| name == ".git");
            common_dir.parent().filter(|_| named).map(Path::to_owned)
        };
        let mut avoid = vec![common_dir.clone()];
        avoid.extend(checkout.clone());
        avoid.extend(top.clone());
        avoid.retain(|place| place.parent().is_some());
        refuse_waiting(&[&git_dir, &common_dir])?;
        let git = Git::find(&avoid)?;
        let is_plain = ref_files::is_plain(&common_dir);
        let format = if is_plain {
            ObjectFormat::Sha1
        } else {
            format_of(&git, &git_dir)?
        };
        let scratch = absolute(scratch, Path::new(""))?;
        Ok(Self {
            idle: super::batch::Idle::default(),
            side: SideGit::shared(&scratch, format)?,
            git,
            git_dir,
            common_dir,
            objects,
            checkout,
            top,
            format,
            is_plain,
            last_tree: Mutex::default(),
            last_seen: Mutex::default(),
            held: super::keep_files::KeepFiles::default(),
        })
    }
}

/// The git directory around `directory`, and the checkout it belongs to.
pub(super) fn locate(directory: &Path) -> Result<(PathBuf, Option<PathBuf>), GitError> {
    let nowhere = || GitError::NotARepository {
        path: directory.to_owned(),
    };
    let start = directory.canonicalize().map_err(|_| nowhere())?;
    for place in start.ancestors() {
        let dot_git = place.join(".git");
        if is_git_dir(&dot_git) {
            return Ok((absolute(&dot_git, Path::new(""))?, Some(place.to_owned())));
        }
        if dot_git.is_file() {
            let bad = || GitError::BadLayout {
                path: dot_git.clone(),
            };
            let line = line_of(&dot_git)?.ok_or_else(bad)?;
            let target = line
                .as_os_str()
                .as_bytes()
                .strip_prefix(b"gitdir: ")
                .ok_or_else(bad)?;
            let target = PathBuf::from(std::ffi::OsStr::from_bytes(target));
            let git_dir = absolute(place, &target).map_err(|_| bad())?;
            if !is_git_dir(&git_dir) {
                return Err(bad());
            }
            return Ok((git_dir, Some(place.to_owned())));
        }
        if is_git_dir(place) {
            let inside = place.file_name().is_some_and(|name| name == ".git");
            let checkout = place.parent().filter(|_| inside).map(Path::to_owned);
            return Ok((place.to_owned(), checkout));
        }
    }
    Err(nowhere())
}

/// Whether git would take `path` for a git directory.
pub(super) fn is_git_dir(path: &Path) -> bool {
    let linked = path.join("commondir").is_file();
    let whole = path.join("objects").is_dir() && path.join("refs").is_dir();
    // A symbolic HEAD may dangle, as a link as well as by its text.
    path.join("HEAD").symlink_metadata().is_ok() && (linked || whole)
}

/// Files that git opens on its way to every answer.
const OPENED: &[&str] = &["HEAD", "config", "packed-refs", "commondir"];

/// Fails if one of git's own files is a fifo or the like, whose reading may never end.
fn refuse_waiting(directories: &[&Path]) -> Result<(), GitError> {
    for directory in directories {
        for name in OPENED {
            let path = directory.join(name);
            // A link may dangle; git would open its target.
            let waits = path
                .metadata()
                .is_ok_and(|data| !data.is_file() && !data.is_dir());
            if waits {
                return Err(GitError::BadLayout { path });
            }
        }
    }
    Ok(())
}

/// `relative` resolved from `base`, without links.
fn absolute(base: &Path, relative: &Path) -> Result<PathBuf, GitError> {
    let path = base.join(relative);
    path.canonicalize()
        .map_err(system(format!("find `{}`", path.display())))
}

/// The only line of a small file; `None` if the file does not exist.
fn line_of(path: &Path) -> Result<Option<PathBuf>, GitError> {
    // Opening a fifo would block until a writer appears.
    if path.metadata().is_ok_and(|data| !data.is_file()) {
        return Err(GitError::BadLayout {
            path: path.to_owned(),
        });
    }
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(system(format!("read `{}`", path.display()))(error)),
    };
    let mut bytes = Vec::new();
    file.take(LONGEST)
        .read_to_end(&mut bytes)
        .map_err(system(format!("read `{}`", path.display())))?;
    while bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    if bytes.is_empty() || bytes.contains(&b'\n') || bytes.contains(&0) {
        return Err(GitError::BadLayout {
            path: path.to_owned(),
        });
    }
    Ok(Some(PathBuf::from(std::ffi::OsString::from_vec(bytes))))
}

/// Asks git which hash function names the objects.
fn format_of(git: &Git, git_dir: &Path) -> Result<ObjectFormat, GitError> {
    let place = Place {
        git_dir,
        objects: None,
        work_tree: None,
        index: None,
    };
    let output = git.run(&place, &["rev-parse", "--show-object-format"], Vec::new())?;
    match output.stdout.trim_ascii() {
        b"sha1" => Ok(ObjectFormat::Sha1),
        b"sha256" => Ok(ObjectFormat::Sha256),
        _ => Err(unexpected("rev-parse")),
    }
}
