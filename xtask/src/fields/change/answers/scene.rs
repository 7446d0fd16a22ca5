//! A checkout, the agents that share it, and the analyses of it.

use std::collections::BTreeMap;

use provost_change::analysis::run::digest;
use provost_change::intent::{Intent, State, VERSION, Viewer};
use provost_change::scope::ChangeScope;
use provost_core::checkout::{CheckoutState, DirtyFile, Snapshot};
use provost_core::lease::Owner;
use provost_core::object::sha256;
use provost_core::path::RawPath;
use provost_lens::structure::graph::Graph;
use provost_lens::structure::metrics::{Metrics, Parts};
use provost_lens::structure::{Function, REPORT_VERSION, Report, Settings, SourceFile, health};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A made-up value, or why it cannot be made.
pub(super) type Answer<T> = Result<T, String>;

/// Time of every event, in milliseconds since 1970.
pub(super) const NOW: i64 = 1_000_000;

/// The edited file.
pub(super) const MINE: &str = "src/mine.py";

/// A file in scope that the agent does not report.
pub(super) const FORGOTTEN: &str = "src/forgotten.py";

/// A file in the scope of another agent.
pub(super) const THEIRS: &str = "src/theirs.py";

/// Dirty files before the change: path, and content on disk if it can be read.
pub(super) const DIRTY: &[(&str, Option<&str>)] = &[
    ("same", Some("x")),
    ("altered", Some("x")),
    ("unreadable", None),
];

/// Dirty files after it, beside the change itself.
pub(super) const DIRTY_AFTER: &[(&str, Option<&str>)] = &[
    ("same", Some("x")),
    ("altered", Some("y")),
    ("unreadable", None),
    ("new", Some("x")),
    (THEIRS, Some("x")),
];

pub(super) fn text(why: impl std::fmt::Display) -> String {
    why.to_string()
}

fn parse<T: DeserializeOwned>(value: Value) -> Answer<T> {
    serde_json::from_value(value).map_err(text)
}

/// The analysis of a tree with a function of so many branches, and an unused one in `dead`.
pub(super) fn report(branches: u32, dead: Option<&str>) -> Answer<Report> {
    let parse_of_mine = if branches > 1 { "errors" } else { "clean" };
    let file = |path: &str, parse: &str| {
        json!({
            "path": path, "digest": sha256(path.as_bytes()), "language": "python", "lines": 10,
            "parse": parse,
        })
    };
    let files = json!([file(MINE, parse_of_mine), file(THEIRS, "clean")]);
    let functions = json!([{
        "id": format!("work {branches}"), "path": MINE, "name": "work", "line": 1, "end_line": 9,
        "statements": 5, "cyclomatic": branches, "cognitive": branches, "nesting": 1,
        "shape": format!("shape {branches}"), "text": format!("text {branches}"),
    }]);
    let findings = dead.map(|path| {
        json!({
            "id": "dead_code:idle", "family": "dead_code", "category": "unused_function",
            "severity": "warning", "confidence": "medium", "symbol": "idle",
            "places": [{ "path": path, "symbol": "idle", "line": 1, "end_line": 2 }],
            "value": 1, "limit": 0, "message": "`idle` is never used",
        })
    });
    let (files, functions) = (parse::<Vec<_>>(files)?, parse::<Vec<_>>(functions)?);
    let findings = parse::<Vec<_>>(findings.into_iter().collect())?;
    let imports = parse::<Vec<_>>(json!([{ "from": THEIRS, "to": MINE }]))?;
    let metrics = Metrics::of(&Parts {
        files: &files.iter().map(SourceFile::size).collect::<Vec<_>>(),
        functions: &functions.iter().map(Function::size).collect::<Vec<_>>(),
        classes: &[],
        graph: &Graph::of(&imports),
        findings: &findings,
    });
    Ok(Report {
        version: REPORT_VERSION.to_owned(),
        analyser: "example".to_owned(),
        settings: Settings::default(),
        tree: sha256(format!("{branches} {dead:?}").as_bytes()),
        tree_files: 2,
        languages: BTreeMap::new(),
        files,
        functions,
        classes: Vec::new(),
        imports,
        findings,
        health: health::standard(&metrics.debts),
        metrics,
    })
}

/// A checkout with these dirty files.
pub(super) fn workspace(paths: &[(&str, Option<&str>)]) -> CheckoutState {
    let object = |word: &str| format!("100644 {}", sha256(word.as_bytes()));
    let dirty = |(path, disk): &(&str, Option<&str>)| {
        let file = DirtyFile {
            letters: " M".to_owned(),
            head: object("committed"),
            staged: object("committed"),
            disk: disk.map(object),
        };
        (RawPath::new(*path), file)
    };
    CheckoutState {
        tree: Some(sha256(b"tree")),
        dirty: paths.iter().map(dirty).collect(),
    }
}

fn owner(pid: u32) -> Owner {
    Owner {
        host: "host".to_owned(),
        boot: "boot".to_owned(),
        pid_namespace: "space".to_owned(),
        pid,
        started: 1,
    }
}

/// The intent of the agent `pid`.
pub(super) fn intent(pid: u32, scope: ChangeScope, state: State) -> Answer<Intent> {
    let report = report(1, None)?;
    Ok(Intent {
        version: VERSION,
        intent_id: format!("intent-{pid}"),
        owner: owner(pid),
        agent_label: format!("agent {pid}"),
        agent_start_epoch: 1,
        root: String::new(),
        run_id: report.digest(),
        report_digest: digest(&report),
        intent: "fix it".to_owned(),
        expected_effects: Vec::new(),
        scope,
        state,
        edit_allowed: state == State::Active,
        scope_status: None,
        declared_at: NOW,
        expires_at: NOW + 1_000_000,
        ttl_seconds: 1000,
        lease_renewed_at: NOW,
        lease_seconds: 300,
        request_digest: String::new(),
        workspace_digest: workspace(DIRTY).digest(),
        peers_digest: String::new(),
        radius_level: "medium".to_owned(),
        snapshot: Some(Snapshot {
            captured_at: NOW,
            workspace: workspace(DIRTY),
        }),
        baseline_sha256: None,
        strictness: provost_lens::structure::budget::Strictness::default(),
        was_violated: false,
        carried: None,
        named: Vec::new(),
        accepted: None,
        left: None,
    })
}

/// The same for one file.
pub(super) fn other(pid: u32, allowed: &str, forbidden: &[&str], state: State) -> Answer<Intent> {
    let scope = ChangeScope::parse(&[allowed], &[], forbidden, "").map_err(text)?;
    intent(pid, scope, state)
}

/// Calls `look` with the view of the first agent.
pub(super) fn seen<T>(look: impl FnOnce(&Viewer<'_>) -> T) -> T {
    look(&Viewer {
        me: &owner(1),
        now: NOW,
        alive: &|_| true,
    })
}
