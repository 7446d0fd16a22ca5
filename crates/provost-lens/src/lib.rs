//! Analyses the structure of source code.
//!
//! Files are parsed by tree-sitter, one at a time, into facts. Facts depend only on the bytes of
//! the file and are cached by their digest. What concerns several files (copies, unused names) is
//! computed from the facts each time, which is fast. The file that an import means is remembered as
//! long as the set of files is the same. [`structure`] is what a report says, and how two of them
//! are compared.
//!
//! # Invariants
//!
//! - A report is a function of the files, the settings and [`ANALYSER`]; limits count steps and
//!   bytes, never time.
//! - No input overflows the stack: nothing here recurses over input.
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
pub mod structure;
mod tree;
mod unused;
mod walk;

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::structure::{Report, Settings, Summary};
use provost_core::code::{Code, Coded};
use provost_core::path::RawPath;

use cache::{Cache, Manifest, Memory};
use report::{Lists, Reported};
use tree::Reader;

/// Name of the analyser, with a version that changes whenever its facts do.
pub const ANALYSER: &str = "provost-lens/1";

/// The most files that are read.
pub const MOST_FILES: usize = 2_000_000;

#[derive(Debug)]
pub struct Listed {
    /// Relative to the root.
    pub paths: Vec<RawPath>,
    /// Input for the next list of this root, if it changed.
    pub memory: Option<Vec<u8>>,
}

/// Lists the files below a root. Its second argument is the memory of the last list of that root,
/// or empty.
pub type List = Box<dyn Fn(&Path, &[u8]) -> Result<Listed, LensError> + Send + Sync>;

/// A lens that parses by tree-sitter.
pub struct TreeSitterLens {
    pub list: List,
    /// Directory for cached facts; without it nothing is cached.
    pub cache: Option<PathBuf>,
}

impl std::fmt::Debug for TreeSitterLens {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("TreeSitterLens");
        shown.field("cache", &self.cache).finish_non_exhaustive()
    }
}

/// Why files cannot be analysed.
#[derive(Debug)]
pub struct LensError {
    code: Code,
    error: Box<dyn Error + Send + Sync>,
}

impl LensError {
    pub fn of(code: Code, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let error = error.into();
        Self { code, error }
    }
}

impl fmt::Display for LensError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(out)
    }
}

impl Error for LensError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl Coded for LensError {
    fn code(&self) -> Code {
        self.code
    }
}

impl TreeSitterLens {
    /// Reads from disk what git tracks below `root`, and new files that it does not ignore. Equal
    /// trees and settings give equal reports.
    pub fn analyze(&self, root: &Path, settings: &Settings) -> Result<Report, LensError> {
        let reported = self.look(root, settings, Lists::Wanted)?;
        Ok(reported.report)
    }

    /// The summary of the report that [`Self::analyze`] makes, at lower cost. Only for a process
    /// that ends afterwards: memory is not freed.
    pub fn summarize(&self, root: &Path, settings: &Settings) -> Result<Summary, LensError> {
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

    fn look(&self, root: &Path, settings: &Settings, lists: Lists) -> Result<Reported, LensError> {
        settings
            .check()
            .map_err(|error| LensError::of(Code::InputInvalid, error))?;
        let opened = tree::open(root).map_err(|error| {
            let reason = format!("`{}` cannot be opened: {error}", root.display());
            LensError::of(Code::InputUnreadable, reason)
        })?;
        // Another version encodes facts in another way.
        let place = self
            .cache
            .as_ref()
            .map(|cache| cache.join("lens").join("2"));
        let manifest = Manifest::open(place.as_deref(), root);
        let known = manifest.known();
        // While git lists the files, the files of the last list are read.
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
        // A cache that cannot be written costs only time.
        let save = || {
            let _ = cache().save(&entries);
            let _ = manifest.save(&entries);
        };
        let report = || report::report(settings, &entries, imports.bytes(), lists);
        let (reported, ()) = rayon::join(report, save);
        let _ = imports.save(&reported.memory);
        if lists == Lists::Unwanted {
            // A caller without lists ends soon; freeing all of this would take longer.
            std::mem::forget(entries);
        }
        Ok(reported)
    }

    /// The files below `root`, sorted.
    fn listed(&self, root: &Path, place: Option<&Path>) -> Result<Vec<RawPath>, LensError> {
        let memory = Memory::of_list(place, root);
        let listed = (self.list)(root, memory.bytes())?;
        if let Some(bytes) = &listed.memory {
            // A memory that cannot be kept costs only time.
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
            return Err(LensError::of(Code::InputTooLarge, reason));
        }
        Ok(paths)
    }
}

/// The language of headers: that of the sources beside them, if there is only one.
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
