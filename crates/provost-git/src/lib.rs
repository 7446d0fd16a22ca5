//! Reads and writes git repositories through the git program, trusting their content as little as
//! possible.
//!
//! # Invariants
//!
//! - Every call starts from an empty environment and our own settings, has a time limit and bounded
//!   output; inherited `GIT_*` variables, system and user configuration have no effect, and no
//!   hook, filter, pager, helper or transport is ever started. The exceptions are in `user_commit`:
//!   who the user is, and the signature of a commit that lands.
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
pub mod ignore;
pub mod index;
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
mod status;
mod submodules;
mod tracked;
mod user_commit;
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
pub use user_commit::{Signing, SigningError};
pub use write::Person;

pub use side_directory::config;

use run::Place;
use side_directory::SideGit;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("no git program is in PATH outside the repository")]
    NoProgram,
    #[error("`{}` is not inside a git repository", path.display())]
    NotARepository { path: PathBuf },
    #[error("`{}` is not what git writes there", path.display())]
    BadLayout { path: PathBuf },
    /// A system call failed.
    #[error("cannot {what}")]
    System {
        /// What was tried, after "cannot".
        what: String,
        #[source]
        source: std::io::Error,
    },
    #[error("`git {command}` took longer than {limit:?}")]
    TimedOut { command: String, limit: Duration },
    #[error("`git {command}` printed more than {most} bytes")]
    TooMuch { command: String, most: u64 },
    #[error("`git {command}` failed ({status}): {words}")]
    Failed {
        command: String,
        status: String,
        /// What git printed on its error stream, cut.
        words: String,
    },
    #[error("`git {command}` printed something unexpected")]
    Unexpected { command: String },
    #[error("`{rev}` names no commit")]
    NoCommit { rev: String },
    #[error("the repository has no object {oid}")]
    Missing { oid: Oid },
    #[error("the object {oid} is not a {}", wanted.word())]
    WrongKind { oid: Oid, wanted: Kind },
    /// An object whose bytes hash to another id.
    #[error("the bytes of the object {oid} do not match its id")]
    Forged {
        /// The id it is stored under.
        oid: Oid,
    },
    /// An object larger than the reader accepts.
    #[error("the object {oid} has {size} bytes, more than the limit")]
    TooLarge {
        oid: Oid,
        /// In bytes.
        size: u64,
    },
    #[error("the tree {oid} cannot be used")]
    Tree {
        oid: Oid,
        #[source]
        source: TreeError,
    },
    /// Bytes that were made to collide under SHA-1.
    #[error(transparent)]
    Collision(#[from] Collision),
    /// A ref that Provost does not write, or a text that names no ref.
    #[error("`{name}` is not a ref that may be written here")]
    RefRefused { name: String },
    #[error("the ref `{name}` has moved: expected {expected}, found {}", words(found.as_ref()))]
    RefMoved {
        name: String,
        expected: String,
        found: Option<Oid>,
    },
    /// A name or address that a commit cannot contain.
    #[error("`{text}` cannot be written into a commit")]
    BadPerson { text: String },
}

/// The id as text, or the word that stands for no id.
fn words(oid: Option<&Oid>) -> &str {
    oid.map_or("nothing", Oid::as_str)
}

/// Wraps an error of the system with what was tried.
pub fn system<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> GitError {
    move |error| GitError::System {
        what: what.into(),
        source: error.into(),
    }
}

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
    last_tree: Mutex<Option<(Oid, Arc<TreeRead>)>>,
    last_seen: Mutex<Option<checkout_cache::Seen>>,
    /// Keeps new objects until a ref leads to them.
    held: keep_files::KeepFiles,
    /// Whether refs are plain files in git's oldest layout.
    is_plain: bool,
}

impl Repository {
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// The git directory of the checkout from which the repository was discovered.
    pub fn git_dir(&self) -> &std::path::Path {
        &self.git_dir
    }

    /// The git directory that all checkouts share.
    pub fn common_dir(&self) -> &std::path::Path {
        &self.common_dir
    }

    pub fn objects(&self) -> &std::path::Path {
        &self.objects
    }

    /// The checkout from which the repository was discovered; a bare repository has none.
    pub fn checkout(&self) -> Option<&std::path::Path> {
        self.checkout.as_deref()
    }

    /// The main checkout, also if a linked one was discovered; a bare repository has none.
    pub fn top(&self) -> Option<&std::path::Path> {
        self.top.as_deref()
    }

    /// The hash function that names its objects.
    pub fn format(&self) -> ObjectFormat {
        self.format
    }

    /// Place of calls about objects: our settings, the repository's objects.
    fn at_side(&self) -> Place<'_> {
        Place {
            git_dir: self.side.path(),
            objects: Some(&self.objects),
            work_tree: None,
            index: None,
        }
    }

    /// Place of calls about refs: the repository's own git directory.
    fn at_refs(&self) -> Place<'_> {
        Place {
            git_dir: &self.git_dir,
            objects: None,
            work_tree: None,
            index: None,
        }
    }
}
