//! Sees the structure of source code.
//!
//! Files are parsed by tree-sitter, one at a time, into facts that depend on nothing but their bytes
//! and are therefore kept by their digest. What concerns several files (copies, unused names) is put
//! together from the facts each time, which is quick; which file an import means is remembered as
//! long as the same files are there. The rules about what follows from it are in
//! `provost_core::structure`.
//!
//! # Invariants
//!
//! - A report is a function of the files, the settings and [`ANALYSER`]; limits count steps and
//!   bytes, never time.
//! - No input takes the stack down: nothing here recurses over what was read.
//! - Links are never followed and nothing outside the root is read. No file of the repository is
//!   ever written.

mod cache;
mod clones;
mod codec;
mod design;
mod edges;
mod facts;
mod found;
mod groups;
mod imports;
mod language;
mod parse;
mod report;
mod tree;
mod unused;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use provost_core::code::Code;
use provost_core::path::RawPath;
use provost_core::structure::{Report, Settings, Summary};
use provost_engine::ports::{Lens, PortError};

use cache::{Cache, Manifest, Memory};
use report::{Lists, Reported};
use tree::Reader;

/// The analyser, with a version that changes whenever its facts do.
pub const ANALYSER: &str = "provost-lens/1";

/// The most files that are looked at.
pub const MOST_FILES: usize = 2_000_000;

/// The files below a root.
#[derive(Debug)]
pub struct Listed {
    /// Relative to the root.
    pub paths: Vec<RawPath>,
    /// What is to be handed in when the files of this root are listed next, if that is new.
    pub memory: Option<Vec<u8>>,
}

/// Says which files there are below a root. It is handed what came with the last list for that
/// root, or nothing.
pub type List = Box<dyn Fn(&Path, &[u8]) -> Result<Listed, PortError> + Send + Sync>;

/// A lens that parses by tree-sitter.
pub struct TreeSitterLens {
    /// Says which files there are.
    pub list: List,
    /// Where facts are kept; nowhere if there is no such place.
    pub cache: Option<PathBuf>,
}

impl std::fmt::Debug for TreeSitterLens {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("TreeSitterLens");
        shown.field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl Lens for TreeSitterLens {
    fn analyze(&self, root: &Path, settings: &Settings) -> Result<Report, PortError> {
        let reported = self.look(root, settings, Lists::Wanted)?;
        Ok(reported.report)
    }
}

impl TreeSitterLens {
    /// What a person is told of the report that [`Lens::analyze`] gives, for less than it costs. It
    /// is for a process that ends afterwards: what was read is not given back.
    pub fn summarize(&self, root: &Path, settings: &Settings) -> Result<Summary, PortError> {
        let reported = self.look(root, settings, Lists::Unwanted)?;
        let report = reported.report;
        Ok(Summary {
            tree_files: report.tree_files,
            source_files: reported.source_files,
            languages: report.languages,
            findings: report.findings,
            health: report.health,
        })
    }

    fn look(&self, root: &Path, settings: &Settings, lists: Lists) -> Result<Reported, PortError> {
        settings
            .check()
            .map_err(|error| PortError::of(Code::InputInvalid, error))?;
        let opened = tree::open(root).map_err(|error| {
            let reason = format!("`{}` cannot be opened: {error}", root.display());
            PortError::new(Code::InputUnreadable, reason)
        })?;
        // Facts of another version are of another shape.
        let place = self
            .cache
            .as_ref()
            .map(|cache| cache.join("lens").join("2"));
        let manifest = Manifest::open(place.as_deref(), root);
        let known = manifest.known();
        // While git says which files there are, those that were there last are looked at.
        let cache = OnceLock::new();
        let cache = || cache.get_or_init(|| Cache::open(place.as_deref()));
        let expect = || {
            let paths = manifest.paths();
            let headers = headers(&paths);
            let entries = Reader::new(&opened, &known, cache(), headers).all(&paths, Vec::new());
            (paths, headers, entries)
        };
        let list = || self.listed(root, place.as_deref());
        let (listed, (expected, of_expected, early)) = rayon::join(list, expect);
        let paths = listed?;
        let entries = if paths == expected {
            early
        } else {
            let headers = headers(&paths);
            let same = of_expected == headers;
            let early = if same { early } else { Vec::new() };
            Reader::new(&opened, &known, cache(), headers).all(&paths, early)
        };
        let imports = Memory::of_imports(place.as_deref(), root);
        // A cache that cannot be written costs time and nothing else.
        let save = || {
            let _ = cache().save(&entries);
            let _ = manifest.save(&entries);
        };
        let report = || report::report(settings, &entries, imports.bytes(), lists);
        let (reported, ()) = rayon::join(report, save);
        let _ = imports.save(&reported.memory);
        if lists == Lists::Unwanted {
            // Who wants no lists ends soon; taking all of this apart takes longer than that.
            std::mem::forget(entries);
        }
        Ok(reported)
    }

    /// The files below `root`, sorted.
    fn listed(&self, root: &Path, place: Option<&Path>) -> Result<Vec<RawPath>, PortError> {
        let memory = Memory::of_list(place, root);
        let listed = (self.list)(root, memory.bytes())?;
        if let Some(bytes) = &listed.memory {
            // One that cannot be kept costs time and nothing else.
            let _ = memory.save(bytes);
        }
        let mut paths = listed.paths;
        paths.sort_unstable();
        paths.dedup();
        if paths.len() > MOST_FILES {
            let reason = format!(
                "there are {} files; at most {MOST_FILES} are read",
                paths.len()
            );
            return Err(PortError::new(Code::InputTooLarge, reason));
        }
        Ok(paths)
    }
}

/// The language of headers: that of the sources beside them, if it is only one.
fn headers(paths: &[RawPath]) -> Option<usize> {
    let (mut c, mut cpp) = (false, false);
    for path in paths {
        let mut parts = path.as_bytes().rsplitn(2, |byte| *byte == b'.');
        let ending = parts.next().filter(|_| parts.next().is_some());
        match ending {
            Some(b"c") => c = true,
            Some(b"cc" | b"cpp" | b"cxx" | b"hpp" | b"hh" | b"hxx") => cpp = true,
            _ => {}
        }
    }
    let name = if cpp && !c { "cpp" } else { "c" };
    language::named(name)
}
