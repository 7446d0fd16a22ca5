//! Reports for tests.

use std::collections::BTreeMap;

use super::graph::Graph;
use super::metrics::{Metrics, Parts};
use super::{
    Category, Confidence, Family, Finding, Function, Import, Parse, REPORT_VERSION, Report,
    Settings, Severity, SourceFile, Spot, health,
};
use provost_core::object::sha256;
use provost_core::path::RepoPath;

pub fn path(text: &str) -> RepoPath {
    RepoPath::try_from(text).unwrap()
}

pub fn function(file: &str, name: &str, cyclomatic: u32) -> Function {
    let code = sha256(format!("{name} {cyclomatic}").as_bytes());
    Function {
        id: code[..16].to_owned(),
        path: path(file),
        name: name.to_owned(),
        line: 1,
        end_line: 9,
        statements: 5,
        cyclomatic,
        cognitive: 0,
        nesting: 0,
        shape: code[16..32].to_owned(),
        text: code[32..48].to_owned(),
        unsound: false,
        test: false,
    }
}

pub fn spot(file: &str, symbol: &str) -> Spot {
    Spot {
        path: path(file),
        symbol: symbol.to_owned(),
        line: 1,
        end_line: 9,
    }
}

pub fn dead(file: &str, name: &str, shape: &str) -> Finding {
    Finding {
        id: format!("dead_code:{name}"),
        family: Family::DeadCode,
        category: Category::UnusedFunction,
        severity: Severity::Warning,
        confidence: Confidence::Medium,
        symbol: name.to_owned(),
        places: vec![spot(file, name)],
        value: 1,
        limit: 0,
        shape: shape.to_owned(),
        message: String::new(),
    }
}

pub fn clones(key: &str, members: &[(&str, &str)]) -> Finding {
    Finding {
        id: format!("clone:function:{key}"),
        family: Family::Clone,
        category: Category::Function,
        severity: Severity::Warning,
        confidence: Confidence::High,
        symbol: key.to_owned(),
        places: members
            .iter()
            .map(|(file, name)| spot(file, name))
            .collect(),
        value: u32::try_from(members.len()).unwrap(),
        limit: 1,
        shape: String::new(),
        message: String::new(),
    }
}

/// A report with these functions and findings, one file for each path.
pub fn report(functions: Vec<Function>, findings: Vec<Finding>) -> Report {
    with_imports(functions, findings, &[])
}

pub fn with_imports(
    functions: Vec<Function>,
    findings: Vec<Finding>,
    imports: &[(&str, &str)],
) -> Report {
    let mut paths: Vec<RepoPath> = functions.iter().map(|one| one.path.clone()).collect();
    paths.extend(imports.iter().flat_map(|(from, to)| [path(from), path(to)]));
    paths.sort();
    paths.dedup();
    let file = |path: RepoPath| SourceFile {
        digest: sha256(path.as_str().as_bytes()),
        path,
        language: "python".to_owned(),
        lines: 10,
        test: false,
        parse: Parse::Clean,
    };
    let files: Vec<SourceFile> = paths.into_iter().map(file).collect();
    let edge = |(from, to): &(&str, &str)| Import {
        from: path(from),
        to: path(to),
        deferred: false,
    };
    let imports: Vec<Import> = imports.iter().map(edge).collect();
    let metrics = Metrics::of(&Parts {
        files: &files.iter().map(SourceFile::size).collect::<Vec<_>>(),
        functions: &functions.iter().map(Function::size).collect::<Vec<_>>(),
        classes: &[],
        graph: &Graph::of(&imports),
        findings: &findings,
    });
    Report {
        version: REPORT_VERSION.to_owned(),
        analyser: "test".to_owned(),
        settings: Settings::default(),
        tree: sha256(b"tree"),
        tree_files: 1,
        languages: BTreeMap::new(),
        files,
        functions,
        classes: Vec::new(),
        imports,
        findings,
        health: health::standard(&metrics.debts),
        metrics,
    }
}
