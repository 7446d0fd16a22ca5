//! Makes the report about a tree from the facts of its files.

use std::collections::{BTreeMap, HashSet};

use crate::structure::metrics::{FileSize, FunctionSize, Metrics, Parts};
use crate::structure::{
    Formula, Function, LanguageCount, Parse, REPORT_VERSION, Report, Settings, SourceFile, health,
};
use provost_core::object::hex;
use provost_core::path::RepoPath;
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use sha2::{Digest as _, Sha256};

use crate::edges::{Edges, Importer};
use crate::facts::{Facts, bytes_hash, mix};
use crate::found::{self, Placed, digits, numbered};
use crate::language;
use crate::tree::{Entry, Sha};
use crate::unused::{self, Names};
use crate::{clones, design};

struct Source<'a> {
    path: RepoPath,
    language: usize,
    sha: &'a Sha,
    test: bool,
    facts: &'a Facts<'a>,
}

/// Whether the report includes the lists of all functions, files and imports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lists {
    /// A complete report, which is kept and compared.
    Wanted,
    /// A summary for display; lists are as large as the tree.
    Unwanted,
}

impl Lists {
    fn of<T>(self, list: impl FnOnce() -> Vec<T>) -> Vec<T> {
        match self {
            Self::Wanted => list(),
            Self::Unwanted => Vec::new(),
        }
    }
}

/// A report, and the memory for the next one.
pub(crate) struct Reported {
    /// With lists only if wanted.
    pub(crate) report: Report,
    pub(crate) source_files: u64,
    /// Of the imports.
    pub(crate) memory: Vec<u8>,
}

/// The report about `entries`, which are sorted by path. `memory` came with the last one, if any.
pub(crate) fn report(
    settings: &Settings,
    entries: &[Entry<'_>],
    memory: &[u8],
    lists: Lists,
) -> Reported {
    let said = || entries.iter().filter_map(|entry| entry.said.as_ref());
    let (sources, blind) = sources(entries);
    let functions: Vec<found::Function<'_>> = sources.iter().flat_map(placed_functions).collect();
    let classes: Vec<found::Class<'_>> = sources.iter().flat_map(placed_classes).collect();
    let importers: Vec<Importer<'_>> = sources.iter().map(Source::importer).collect();
    let clones = || (clones::find(&functions, settings), tree_digest(entries));
    let unused = || {
        let names = Names::of(said().map(|said| &said.facts), blind);
        unused::find(&functions, &classes, &names)
    };
    let imports = || {
        let edges = Edges::of(&importers, memory);
        let graph = edges.graph(&importers);
        let imports = lists.of(|| edges.named(&importers));
        (graph, imports, edges.memory(&importers))
    };
    let shown = || lists.of(|| functions.par_iter().map(function).collect());
    let design = || {
        let coupled = design::coupled(&classes);
        let tests: Vec<bool> = classes.iter().map(|class| class.test).collect();
        let mut drafts = design::functions(&functions, settings);
        drafts.extend(design::classes(&coupled, &tests, settings));
        let files = lists.of(|| sources.iter().map(source_file).collect());
        (coupled, drafts, files)
    };
    let rest = || rayon::join(imports, || rayon::join(design, shown));
    let ((mut drafts, tree), (unused, (imports, ((coupled, designed, files), shown)))) =
        rayon::join(clones, || rayon::join(unused, rest));
    let (graph, imports, memory) = imports;
    drafts.extend(unused);
    drafts.extend(designed);
    drafts.extend(design::cycles(&graph));
    let findings = numbered(drafts);
    let metrics = Metrics::of(&Parts {
        files: &sources.iter().map(file_size).collect::<Vec<_>>(),
        functions: &functions.iter().map(function_size).collect::<Vec<_>>(),
        classes: &coupled,
        graph: &graph,
        findings: &findings,
    });
    let report = Report {
        version: REPORT_VERSION.to_owned(),
        analyser: crate::ANALYSER.to_owned(),
        settings: settings.clone(),
        tree,
        tree_files: entries.len() as u64,
        languages: languages(&sources),
        files,
        functions: shown,
        classes: coupled,
        imports,
        findings,
        health: match settings.profile {
            Formula::Standard => health::standard(&metrics.debts),
            Formula::Compat => health::compat(&metrics.python),
        },
        metrics,
    };
    Reported {
        report,
        source_files: sources.len() as u64,
        memory,
    }
}

impl Source<'_> {
    fn importer(&self) -> Importer<'_> {
        Importer {
            path: &self.path,
            language: self.language,
            sha: self.sha,
            facts: self.facts,
        }
    }
}

fn file_size<'a>(source: &'a Source<'_>) -> FileSize<'a> {
    FileSize {
        path: &source.path,
        language: language::name(source.language),
        lines: source.facts.lines,
        parse: source.facts.parse,
    }
}

fn function_size<'a>(function: &found::Function<'a>) -> FunctionSize<'a> {
    FunctionSize {
        path: function.path,
        cyclomatic: function.fact.cyclomatic,
        cognitive: function.fact.cognitive,
        nesting: function.fact.nesting,
    }
}

/// The source files among `entries`, and the languages of which a file could not be read.
fn sources<'a>(entries: &'a [Entry<'a>]) -> (Vec<Source<'a>>, HashSet<usize>) {
    let mut blind = HashSet::new();
    let mut sources = Vec::new();
    for entry in entries {
        let Some(said) = &entry.said else { continue };
        let Some(language) = said.language else {
            continue;
        };
        if said.facts.parse == Parse::Unread {
            blind.insert(language);
        }
        if let Ok(path) = RepoPath::try_from(&entry.path) {
            sources.push(Source {
                language,
                sha: &entry.sha,
                test: is_test(path.as_str()) || is_foreign(path.as_str()),
                facts: &said.facts,
                path,
            });
        }
    }
    (sources, blind)
}

fn placed_functions<'a>(source: &'a Source<'a>) -> impl Iterator<Item = found::Function<'a>> {
    source.facts.functions.iter().map(move |fact| Placed {
        path: &source.path,
        language: source.language,
        test: source.test || fact.test,
        fact,
    })
}

fn placed_classes<'a>(source: &'a Source<'a>) -> impl Iterator<Item = found::Class<'a>> {
    source.facts.classes.iter().map(move |fact| Placed {
        path: &source.path,
        language: source.language,
        test: source.test || fact.test,
        fact,
    })
}

fn source_file(source: &Source<'_>) -> SourceFile {
    SourceFile {
        path: source.path.clone(),
        digest: hex(source.sha),
        language: language::name(source.language).to_owned(),
        lines: source.facts.lines,
        test: source.test,
        parse: source.facts.parse,
    }
}

fn function(one: &found::Function<'_>) -> Function {
    let fact = one.fact;
    let name = bytes_hash(fact.name.as_bytes());
    let language = bytes_hash(language::name(one.language).as_bytes());
    Function {
        id: digits(mix(mix(language, name), fact.text)),
        path: one.path.clone(),
        name: fact.name.clone().into_owned(),
        line: fact.line,
        end_line: fact.end_line,
        statements: fact.statements,
        cyclomatic: fact.cyclomatic,
        cognitive: fact.cognitive,
        nesting: fact.nesting,
        shape: digits(fact.shape),
        text: digits(fact.text),
        unsound: fact.unsound,
        test: one.test,
    }
}

fn languages(sources: &[Source<'_>]) -> BTreeMap<String, LanguageCount> {
    let mut languages: BTreeMap<String, LanguageCount> = BTreeMap::new();
    for source in sources {
        let count = languages
            .entry(language::name(source.language).to_owned())
            .or_default();
        count.files += 1;
        count.lines += u64::from(source.facts.lines);
        count.functions += source.facts.functions.len() as u64;
        count.unsound += u64::from(source.facts.parse != Parse::Clean);
    }
    languages
}

/// The identity of a tree: path, kind and content of every file.
fn tree_digest(entries: &[Entry<'_>]) -> String {
    let mut sha = Sha256::new();
    for entry in entries {
        let path = entry.path.as_bytes();
        sha.update((path.len() as u64).to_le_bytes());
        sha.update(path);
        sha.update([entry.kind]);
        sha.update(entry.sha);
    }
    hex(&sha.finalize())
}

/// Whether a file is vendored code, by its path and name.
fn is_foreign(path: &str) -> bool {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let within = |part: &str| {
        matches!(
            part,
            "vendor" | "vendored" | "node_modules" | "third_party" | "third-party" | "dist"
        )
    };
    directory.split('/').any(within) || name.contains(".min.")
}

/// Whether a file is test code, by its path and name.
fn is_test(path: &str) -> bool {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let within = |part: &str| {
        matches!(
            part,
            "test" | "tests" | "__tests__" | "testing" | "testdata" | "spec"
        )
    };
    let stem = name.split('.').next().unwrap_or(name);
    directory.split('/').any(within)
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("Test")
        || stem.ends_with("Tests")
        || name.contains(".test.")
        || name.contains(".spec.")
        || matches!(name, "conftest.py" | "tests.py" | "tests.rs" | "test.rs")
}
