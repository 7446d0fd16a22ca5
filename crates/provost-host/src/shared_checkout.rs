//! Reads the checkout that agents share, for change control (docs/change-control.md).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use provost_core::checkout::{ABSENT, CheckoutState, Moved};
use provost_core::code::Code;
use provost_core::object::Oid;
use provost_engine::ports::{Checkout, FreshNames, PortError};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::git::{GitError, Repository};
use crate::ids;
use provost_fs::beneath::Beneath;

#[derive(Debug)]
pub struct SharedCheckout {
    repo: Repository,
    checkout: PathBuf,
}

impl SharedCheckout {
    pub fn find(directory: &Path) -> Result<Self, GitError> {
        let repo = Repository::discover(directory)?;
        let checkout = repo.checkout().map(Path::to_owned);
        let checkout = checkout.ok_or_else(|| GitError::NotARepository {
            path: directory.to_owned(),
        })?;
        Ok(Self { repo, checkout })
    }

    pub fn top(&self) -> &Path {
        &self.checkout
    }

    fn oid(text: &str) -> Result<Oid, PortError> {
        Oid::try_from(text.to_owned())
            .map_err(|_| PortError::new(Code::Bug, format!("`{text}` is no name of a tree")))
    }
}

fn refuse(error: GitError) -> PortError {
    let code = match error {
        GitError::NoProgram => Code::GitMissing,
        _ => Code::GitFailed,
    };
    PortError::of(code, error)
}

impl Checkout for SharedCheckout {
    fn workspace(&self) -> Result<CheckoutState, PortError> {
        self.repo.workspace().map_err(refuse)
    }

    fn moved(&self, before: Option<&str>, after: Option<&str>) -> Result<Moved, PortError> {
        if before == after {
            return Ok(Moved::new());
        }
        let all = |tree: &str| -> Result<Vec<_>, PortError> {
            let read = self.repo.read_tree(&Self::oid(tree)?).map_err(refuse)?;
            Ok(read.files.clone().into_iter().collect())
        };
        let node =
            |node: &provost_core::change::Node| format!("{} {}", node.mode.digits(), node.oid);
        let absent = || ABSENT.to_owned();
        Ok(match (before, after) {
            (Some(before), Some(after)) => {
                let (before, after) = (Self::oid(before)?, Self::oid(after)?);
                let changes = self.repo.differences(&before, &after).map_err(refuse)?;
                let side =
                    |side: Option<&provost_core::change::Node>| side.map_or_else(absent, node);
                changes
                    .into_iter()
                    .map(|one| {
                        let sides = (side(one.before.as_ref()), side(one.after.as_ref()));
                        (one.path, sides)
                    })
                    .collect()
            }
            (None, Some(tree)) => all(tree)?
                .into_iter()
                .map(|(path, file)| (path, (absent(), node(&file))))
                .collect(),
            (Some(tree), None) => all(tree)?
                .into_iter()
                .map(|(path, file)| (path, (node(&file), absent())))
                .collect(),
            (None, None) => Moved::new(),
        })
    }

    fn trees(&self) -> Result<BTreeSet<String>, PortError> {
        self.repo.trees().map_err(refuse)
    }

    fn tree_of(&self, rev: &str) -> Result<String, PortError> {
        let commit = self.repo.resolve(rev).map_err(refuse)?;
        let tree = self.repo.commit_tree(&commit).map_err(refuse)?;
        Ok(tree.as_str().to_owned())
    }

    fn read(&self, root: &str, path: &str, most: u64) -> Result<Option<Vec<u8>>, PortError> {
        let cannot = |error: std::io::Error| {
            let words = format!("`{path}` cannot be read: {error}");
            PortError::new(Code::InputUnreadable, words)
        };
        let base = Beneath::new(&self.place(root)).map_err(|error| cannot(error.into()))?;
        let file = match base.open(path.as_bytes(), OFlags::RDONLY, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(error) => return Err(cannot(error.into())),
        };
        if !file.metadata().map_err(cannot)?.is_file() {
            let words = format!("`{path}` is no regular file");
            return Err(PortError::new(Code::InputUnreadable, words));
        }
        let mut bytes = Vec::new();
        file.take(most + 1)
            .read_to_end(&mut bytes)
            .map_err(cannot)?;
        if bytes.len() as u64 > most {
            let words = format!("`{path}` has more than {most} bytes");
            return Err(PortError::new(Code::InputUnreadable, words));
        }
        Ok(Some(bytes))
    }

    fn link_on(&self, path: &str) -> Result<Option<String>, PortError> {
        let ends = path
            .match_indices('/')
            .map(|(at, _)| at)
            .chain([path.len()]);
        for part in ends.map(|end| &path[..end]) {
            match self.checkout.join(part).symlink_metadata() {
                Ok(found) if found.is_symlink() => return Ok(Some(part.to_owned())),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                // A file in the place of a directory: nothing is below it.
                Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(None),
                Err(error) => {
                    let words = format!("`{part}` cannot be looked at: {error}");
                    return Err(PortError::new(Code::InputUnreadable, words));
                }
            }
        }
        Ok(None)
    }

    fn place(&self, root: &str) -> PathBuf {
        self.checkout.join(root)
    }
}

/// Random names, from the kernel's generator.
#[derive(Debug, Clone, Copy)]
pub struct RandomNames;

impl FreshNames for RandomNames {
    fn intent_id(&self, now: i64) -> Result<String, PortError> {
        ids::ulid(now).map_err(|error| PortError::of(Code::HostFailed, error))
    }
}
