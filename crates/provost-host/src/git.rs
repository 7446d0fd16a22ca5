//! Reads and writes git repositories through the git program, believing little of them.
//!
//! # Invariants
//!
//! - Every call starts from an empty environment and our own settings, has a time limit and bounded
//!   output; inherited `GIT_*` variables, system and user configuration have no effect, and no
//!   hook, filter, pager, helper or transport is ever started.
//! - Objects are read and written through a *side* git directory of our own, so that neither the
//!   configuration, attributes, grafts, replacements nor refs of the repository count. The
//!   repository's own git directory is used only for its refs.
//! - Commits, trees and blobs handed out have the id that was asked for; a forged object is an
//!   error.
//! - Refs outside `refs/provost/` and `refs/heads/provost/` and the user's checkout are written
//!   only by the functions of [`land`].

mod attributes;
mod batch;
mod checkout_cache;
mod checkouts;
mod file_list_cache;
mod files;
mod keep_files;
pub mod land;
mod line_counts;
mod locate;
mod loose_objects;
mod merge;
mod read;
mod ref_files;
mod refs;
mod run;
mod side_directory;
mod stamp;
mod status;
mod submodules;
mod tracked;
mod write;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use provost_core::object::{Collision, Kind, ObjectFormat, Oid};
use provost_core::tree::TreeError;

pub use batch::Batch;
pub use checkouts::Checkout;
pub use files::Listed;
pub use line_counts::Lines;
pub use merge::Merged;
pub use read::TreeRead;
pub use refs::Expected;
pub use run::{Git, Version};
pub use write::Person;

pub(crate) use side_directory::config;

use run::Place;
use side_directory::SideGit;

/// Why git could not do it.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git program outside the repository.
    #[error("no git program is in PATH outside the repository")]
    NoProgram,
    /// The directory is in no repository.
    #[error("`{}` is not inside a git repository", path.display())]
    NotARepository {
        /// The directory.
        path: PathBuf,
    },
    /// A file of the repository is not what git would write.
    #[error("`{}` is not what git writes there", path.display())]
    BadLayout {
        /// The file.
        path: PathBuf,
    },
    /// The system refused something.
    #[error("cannot {what}")]
    System {
        /// What was tried.
        what: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A call did not end in time and was killed.
    #[error("`git {command}` took longer than {limit:?}")]
    TimedOut {
        /// The subcommand.
        command: String,
        /// The limit.
        limit: Duration,
    },
    /// A call said more than we read.
    #[error("`git {command}` printed more than {most} bytes")]
    TooMuch {
        /// The subcommand.
        command: String,
        /// The limit.
        most: u64,
    },
    /// A call failed.
    #[error("`git {command}` failed ({status}): {words}")]
    Failed {
        /// The subcommand.
        command: String,
        /// How it ended.
        status: String,
        /// What it said, cut.
        words: String,
    },
    /// A call printed something we do not understand.
    #[error("`git {command}` printed something unexpected")]
    Unexpected {
        /// The subcommand.
        command: String,
    },
    /// A revision that names no commit.
    #[error("`{rev}` names no commit")]
    NoCommit {
        /// The revision.
        rev: String,
    },
    /// An object the repository lacks.
    #[error("the repository has no object {oid}")]
    Missing {
        /// Its id.
        oid: Oid,
    },
    /// An object of another kind than needed.
    #[error("the object {oid} is not a {}", wanted.word())]
    WrongKind {
        /// Its id.
        oid: Oid,
        /// The kind needed.
        wanted: Kind,
    },
    /// An object whose bytes have another id.
    #[error("the repository holds forged bytes for the object {oid}")]
    Forged {
        /// The id it is filed under.
        oid: Oid,
    },
    /// An object larger than we read.
    #[error("the object {oid} has {size} bytes, more than we read")]
    TooLarge {
        /// Its id.
        oid: Oid,
        /// Its size.
        size: u64,
    },
    /// A tree that cannot be used.
    #[error("the tree {oid} cannot be used")]
    Tree {
        /// Its id.
        oid: Oid,
        /// Why.
        #[source]
        source: TreeError,
    },
    /// Bytes made to collide.
    #[error(transparent)]
    Collision(#[from] Collision),
    /// A ref that we do not write, or not a name of a ref.
    #[error("`{name}` is not a ref that may be written here")]
    RefRefused {
        /// The name.
        name: String,
    },
    /// A ref that is not where it was expected.
    #[error("the ref `{name}` has moved: expected {expected}, found {}", words(found.as_ref()))]
    RefMoved {
        /// The name.
        name: String,
        /// Where it should have been.
        expected: String,
        /// Where it is.
        found: Option<Oid>,
    },
    /// A name or address that a commit cannot hold.
    #[error("`{text}` cannot stand in a commit")]
    BadPerson {
        /// The text.
        text: String,
    },
}

/// An id, or the word for none.
fn words(oid: Option<&Oid>) -> &str {
    oid.map_or("nothing", Oid::as_str)
}

/// Wraps an error of the system with what was tried.
pub(crate) fn system<E: Into<std::io::Error>>(
    what: impl Into<String>,
) -> impl FnOnce(E) -> GitError {
    move |error| GitError::System {
        what: what.into(),
        source: error.into(),
    }
}

/// A repository on this machine.
#[derive(Debug)]
pub struct Repository {
    /// Before the rest, so that its process ends before its directory goes.
    idle: batch::Idle,
    git: Git,
    side: SideGit,
    git_dir: PathBuf,
    common_dir: PathBuf,
    objects: PathBuf,
    checkout: Option<PathBuf>,
    top: Option<PathBuf>,
    format: ObjectFormat,
    /// The tree that was read last, with its id.
    last_tree: Mutex<Option<(Oid, Arc<TreeRead>)>>,
    last_seen: Mutex<Option<checkout_cache::Seen>>,
    /// What keeps new objects until a ref leads to them.
    held: keep_files::KeepFiles,
    /// Whether refs are plain files of git's oldest layout.
    is_plain: bool,
}

impl Repository {
    /// The git program in use.
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// The git directory of the checkout it was found from.
    pub fn git_dir(&self) -> &std::path::Path {
        &self.git_dir
    }

    /// The git directory that all checkouts share.
    pub fn common_dir(&self) -> &std::path::Path {
        &self.common_dir
    }

    /// The object store.
    pub fn objects(&self) -> &std::path::Path {
        &self.objects
    }

    /// The checkout it was found from; a bare repository has none.
    pub fn checkout(&self) -> Option<&std::path::Path> {
        self.checkout.as_deref()
    }

    /// The main checkout, also when it was found from a linked one; a bare repository has none.
    pub fn top(&self) -> Option<&std::path::Path> {
        self.top.as_deref()
    }

    /// How its objects are named.
    pub fn format(&self) -> ObjectFormat {
        self.format
    }

    /// Where calls about objects happen: our settings, the repository's objects.
    fn at_side(&self) -> Place<'_> {
        Place {
            git_dir: self.side.path(),
            objects: Some(&self.objects),
            work_tree: None,
            index: None,
        }
    }

    /// Where calls about refs happen.
    fn at_refs(&self) -> Place<'_> {
        Place {
            git_dir: &self.git_dir,
            objects: None,
            work_tree: None,
            index: None,
        }
    }
}
