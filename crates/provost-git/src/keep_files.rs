//! Stores objects so that no clean-up removes them before a ref leads to them.
//!
//! `git gc --prune=now` removes loose objects and packs that no ref led to when it began, also
//! while a run makes that ref. It leaves alone only packs that have a `.keep` file.
//!
//! # Invariants
//!
//! - The `.keep` file is written before the pack, and the index last. So git never sees an
//!   incomplete pack, nor one that a clean-up may remove.
//! - Every pack has a new name. A running clean-up may have an existing one on its list.
//! - A `.keep` file is removed when refs lead to its objects. That of a dead process is removed by
//!   the next process that writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use provost_core::json;
use provost_core::lease::Owner;
use provost_core::object::hex;
use provost_core::pack;
use provost_fs::atomic;

use super::run::unexpected;
use super::{GitError, Repository, loose_objects, system};
use provost_sandbox::process_owner;

/// From this many objects on, git makes the index, on all cores.
const MANY: u32 = 100;

/// First bytes of our `.keep` files.
const MARK: &str = "provost ";

/// The longest `.keep` file that may be one of ours, in bytes.
const LONGEST: u64 = 4096;

/// The `.keep` files of this process; dropping this removes them.
#[derive(Debug, Default)]
pub(super) struct KeepFiles(Mutex<Files>);

#[derive(Debug, Default)]
struct Files {
    paths: Vec<PathBuf>,
    /// Whether the `.keep` files of dead processes were removed.
    swept: bool,
}

impl Drop for KeepFiles {
    fn drop(&mut self) {
        self.release();
    }
}

impl KeepFiles {
    fn release(&self) {
        let paths = self
            .0
            .lock()
            .map(|mut files| std::mem::take(&mut files.paths));
        for path in paths.unwrap_or_default() {
            let _ = fs::remove_file(path);
        }
    }
}

impl Repository {
    /// Lets a clean-up remove what was written and has no ref.
    pub fn release(&self) {
        self.held.release();
    }

    /// Writes the `count` objects of a pack to disk, held until [`Self::release`].
    pub(super) fn hold(&self, pack: Vec<u8>, count: u32) -> Result<(), GitError> {
        let place = self.objects.join("pack");
        let mut files = self.held.0.lock().map_err(|_| unexpected("pack"))?;
        if !files.swept {
            sweep(&place);
            files.swept = true;
        }
        let name = number().map_err(system("name a pack"))?;
        let stem = place.join(format!("pack-{name}"));
        let made = loose_objects::is_ours_alone(&self.objects)
            && put_pack(&place, &stem, &pack, &mut files.paths)
                .inspect_err(|_| withdraw(&stem))
                .is_ok();
        if !made {
            return self.hold_by_git(pack, &mut files.paths);
        }
        let indexed = self.put_index(&place, &stem, &pack, count);
        indexed.inspect_err(|_| withdraw(&stem))
    }

    /// Writes the index of a pack that exists.
    fn put_index(
        &self,
        place: &Path,
        stem: &Path,
        pack: &[u8],
        count: u32,
    ) -> Result<(), GitError> {
        if count >= MANY {
            let path = stem.with_extension("pack");
            let path = path.to_string_lossy();
            // A clean-up removes git's unfinished files; then the index is made here.
            let arguments = ["index-pack", &path];
            if self
                .git
                .run(&self.at_side(), &arguments, Vec::new())
                .is_ok()
            {
                return Ok(());
            }
        }
        let index = pack::index(pack, self.format).map_err(|_| unexpected("pack"))?;
        atomic::create_unnamed(&stem.with_extension("idx"), &index, 0o444)
            .map_err(system(format!("write objects into `{}`", place.display())))
    }

    /// Like [`Self::hold`], by git, which knows the file modes of a shared object store.
    fn hold_by_git(&self, pack: Vec<u8>, paths: &mut Vec<PathBuf>) -> Result<(), GitError> {
        let mark = format!("--keep={}", mark());
        let arguments = ["index-pack", "--stdin", &mark];
        let output = self.git.run(&self.at_side(), &arguments, pack)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // Git prints `keep` if it made the file, `pack` if the pack existed.
        if let Some(name) = text.trim().strip_prefix("keep\t") {
            paths.push(self.objects.join(format!("pack/pack-{name}.keep")));
        }
        Ok(())
    }
}

/// Writes the `.keep` file, then the pack.
fn put_pack(place: &Path, stem: &Path, pack: &[u8], paths: &mut Vec<PathBuf>) -> io::Result<()> {
    match fs::create_dir(place) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let keep = stem.with_extension("keep");
    paths.push(keep.clone());
    // Without a name until they are whole: git's clean-up removes unfinished files by name.
    atomic::link_unnamed(&keep, mark().as_bytes(), 0o644)?;
    atomic::link_unnamed(&stem.with_extension("pack"), pack, 0o444)
}

/// Removes what was written of an incomplete pack.
fn withdraw(stem: &Path) {
    for extension in ["idx", "pack", "keep"] {
        let _ = fs::remove_file(stem.with_extension(extension));
    }
}

/// The content of a `.keep` file of this process.
fn mark() -> String {
    let owner = process_owner::current().ok();
    let owner = owner.and_then(|owner| serde_json::to_string(&owner).ok());
    format!("{MARK}{}", owner.unwrap_or_default())
}

/// Removes the `.keep` files of processes that are dead.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = path.extension().is_some_and(|it| it == "keep")
            && entry
                .metadata()
                .is_ok_and(|it| it.is_file() && it.len() <= LONGEST);
        let text = is_ours.then(|| fs::read_to_string(&path).ok()).flatten();
        let text = text.as_deref().and_then(|text| text.strip_prefix(MARK));
        let dead = text.is_some_and(|text| {
            let owner: Option<Owner> = json::parse_as(text.trim().as_bytes()).ok();
            owner.is_none_or(|owner| !process_owner::alive(&owner))
        });
        if dead {
            let _ = fs::remove_file(path);
        }
    }
}

/// Forty hexadecimal digits for a unique name.
fn number() -> io::Result<String> {
    let mut number = [0; 20];
    getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(hex(&number))
}
