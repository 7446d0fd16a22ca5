//! Finds which file imports which, and remembers it.
//!
//! The meaning of an import follows from the content of its file and from the set of files. As long
//! as the set is the same, only files with other content are resolved again.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use crate::structure::Import;
use crate::structure::graph::Graph;
use provost_core::path::RepoPath;
use rayon::iter::{
    IndexedParallelIterator as _, IntoParallelRefIterator as _, ParallelIterator as _,
};
use sha2::{Digest as _, Sha256};

use crate::facts::Facts;
use crate::imports::Files;
use crate::language;
use crate::tree::Sha;

/// A file that may import others.
pub(crate) struct Importer<'a> {
    pub(crate) path: &'a RepoPath,
    pub(crate) language: usize,
    pub(crate) sha: &'a Sha,
    pub(crate) facts: &'a Facts<'a>,
}

/// One import: index of the imported file, and whether the import is deferred.
type Edge = (u32, bool);

/// The imports of some files, by the index of the importing file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edges(Vec<Vec<Edge>>);

impl Edges {
    /// The imports of `files`, which are sorted by path. `memory` is an earlier result of
    /// [`Self::memory`]; anything else is ignored.
    pub(crate) fn of(files: &[Importer<'_>], memory: &[u8]) -> Self {
        let known = known(files, memory);
        let finder = OnceLock::new();
        let finder = || finder.get_or_init(|| Finder::new(files));
        let edges = |(at, file): (usize, &Importer<'_>)| match known.get(at) {
            Some((sha, edges)) if *sha == file.sha => edges.clone(),
            _ if file.facts.imports.is_empty() => Vec::new(),
            _ => finder().edges(file),
        };
        Self(files.par_iter().enumerate().map(edges).collect())
    }

    /// Speeds up finding the imports of the same files again.
    pub(crate) fn memory(&self, files: &[Importer<'_>]) -> Vec<u8> {
        let mut bytes = digest(files).to_vec();
        for (file, edges) in files.iter().zip(&self.0) {
            bytes.extend(file.sha);
            let count = u32::try_from(edges.len()).unwrap_or(u32::MAX);
            bytes.extend(count.to_le_bytes());
            for (to, deferred) in edges {
                bytes.extend(to.to_le_bytes());
                bytes.push(u8::from(*deferred));
            }
        }
        bytes
    }

    /// The graph of the imports that are not deferred.
    pub(crate) fn graph<'a>(&self, files: &[Importer<'a>]) -> Graph<'a> {
        let paths: Vec<&RepoPath> = files.iter().map(|file| file.path).collect();
        let at_once = |edges: &Vec<Edge>| {
            let edges = edges.iter().filter(|(_, deferred)| !deferred);
            edges.map(|(to, _)| *to as usize).collect()
        };
        let edges: Vec<Vec<usize>> = self.0.iter().map(at_once).collect();
        Graph::numbered(&paths, &edges)
    }

    /// The imports by name.
    pub(crate) fn named(&self, files: &[Importer<'_>]) -> Vec<Import> {
        let mut imports = Vec::with_capacity(self.0.iter().map(Vec::len).sum());
        for (file, edges) in files.iter().zip(&self.0) {
            for (to, deferred) in edges {
                if let Some(to) = files.get(*to as usize) {
                    imports.push(Import {
                        from: file.path.clone(),
                        to: to.path.clone(),
                        deferred: *deferred,
                    });
                }
            }
        }
        imports
    }
}

/// What is remembered of each of `files`; empty if it is about others.
fn known<'a>(files: &[Importer<'_>], memory: &'a [u8]) -> Vec<(&'a Sha, Vec<Edge>)> {
    let rest = memory.strip_prefix(&digest(files));
    rest.and_then(|rest| rows(rest, files.len()))
        .unwrap_or_default()
}

/// The rows of a memory about `count` files, if every byte of it is valid.
fn rows(mut rest: &[u8], count: usize) -> Option<Vec<(&Sha, Vec<Edge>)>> {
    let mut rows = Vec::with_capacity(count);
    for _ in 0..count {
        let (sha, tail) = rest.split_first_chunk()?;
        let (length, tail) = tail.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (edges, tail) = tail.split_at_checked(length.checked_mul(5)?)?;
        let edge = |bytes: &[u8]| match *bytes {
            [a, b, c, d, deferred] => {
                let to = u32::from_le_bytes([a, b, c, d]);
                ((to as usize) < count).then_some((to, deferred != 0))
            }
            _ => None,
        };
        rows.push((sha, edges.chunks(5).map(edge).collect::<Option<_>>()?));
        rest = tail;
    }
    rest.is_empty().then_some(rows)
}

/// Digest of the set of files with their languages, and of this version's rules.
fn digest(files: &[Importer<'_>]) -> Sha {
    let mut sha = Sha256::new();
    sha.update(crate::ANALYSER);
    for file in files {
        let path = file.path.as_str();
        sha.update((path.len() as u64).to_le_bytes());
        sha.update(path);
        let language = language::name(file.language);
        sha.update((language.len() as u64).to_le_bytes());
        sha.update(language);
    }
    sha.finalize().into()
}

/// Resolves imports to files.
struct Finder<'a> {
    files: Files<'a>,
    numbers: HashMap<&'a str, u32>,
}

impl<'a> Finder<'a> {
    fn new(files: &[Importer<'a>]) -> Self {
        let paths = || files.iter().map(|file| file.path.as_str());
        Self {
            files: Files::new(paths()),
            numbers: paths().zip(0..).collect(),
        }
    }

    fn edges(&self, file: &Importer<'_>) -> Vec<Edge> {
        let Some(spec) = language::spec(file.language) else {
            return Vec::new();
        };
        let from = file.path.as_str();
        // Whether every import of a file is deferred.
        let mut found: BTreeMap<&str, bool> = BTreeMap::new();
        for import in &file.facts.imports {
            for to in self.files.resolve(spec.imports, from, &import.target) {
                if to != from {
                    let deferred = found.entry(to).or_insert(true);
                    *deferred &= import.deferred;
                }
            }
        }
        let numbered = |(to, deferred)| Some((*self.numbers.get(to)?, deferred));
        found.into_iter().filter_map(numbered).collect()
    }
}
