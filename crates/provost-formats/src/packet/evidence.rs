//! Compares a hardened packet with its snapshots and its log.

use std::collections::{BTreeMap, BTreeSet};

use provost_core::path::RepoPath;
use provost_core::time;

use super::card::{Card, NOISE_FIELD};
use super::finding::Findings;
use super::log;
use super::rule::{Effort, Rule};
use super::snapshot::{self, Snapshot};
use super::{EXECUTOR_REPORT, Evidence, Found, Packet, Source, TASK_CARD};

/// Files that tools leave behind and that never count.
const EPHEMERAL: [&str; 4] = [
    ".pytest_cache/**",
    ".ruff_cache/**",
    ".mypy_cache/**",
    "**/__pycache__/**",
];

/// The result of comparing the snapshots.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) counted: BTreeSet<String>,
    /// Changed files that do not count: caches and noise.
    pub(super) ignored: BTreeSet<String>,
    /// The digests of all files before the work.
    pub(super) before: BTreeMap<String, String>,
}

/// The input for judging a hardened packet.
pub(super) struct Bench<'a> {
    pub(super) packet: &'a Packet<'a>,
    pub(super) card: &'a Card,
    pub(super) findings: &'a mut Findings,
    pub(super) effort: &'a mut Effort,
    pub(super) ephemeral: &'a [Rule],
    /// Whether Provost took the snapshots itself, so that they hold every file.
    pub(super) measured: bool,
}

/// The rules for what tools leave behind.
pub(super) fn ephemeral() -> Vec<Rule> {
    let rule = |pattern: &&str| {
        RepoPath::try_from(*pattern)
            .ok()
            .map(|path| Rule::of(&path))
    };
    EPHEMERAL.iter().filter_map(rule).collect()
}

impl Bench<'_> {
    /// Judges the evidence; gives the changes if the snapshots can be read.
    pub(super) fn judge(&mut self, reported: Option<&BTreeSet<String>>) -> Option<Changes> {
        self.log();
        let changes = self.snapshots()?;
        self.compare(&changes, reported);
        Some(changes)
    }

    /// The difference of the two snapshots.
    pub(super) fn snapshots(&mut self) -> Option<Changes> {
        self.two_files();
        let before = self.snapshot(Evidence::Before);
        let after = self.snapshot(Evidence::After);
        let (before, after) = (before?, after?);
        self.in_order(&before, &after);
        Some(self.changes(before, &after))
    }

    fn found(&self, evidence: Evidence) -> Option<&Found> {
        let mut all = self.packet.evidence.iter();
        all.find(|found| found.evidence == evidence)
    }

    /// Refuses one file as both snapshots.
    fn two_files(&mut self) {
        let place = |found: &Found| match (&self.packet.directory, &found.in_repository) {
            (Some(directory), Source::Missing) => format!("{directory}/{}", found.path),
            (None, Source::Missing) => format!("packet: {}", found.path),
            _ => found.path.to_string(),
        };
        let before = self.found(Evidence::Before).map(place);
        let after = self.found(Evidence::After).map(place);
        if before.is_some() && before == after {
            let problem = format!("is the same file as {}", Evidence::Before.key());
            let field = Evidence::After.field();
            self.findings.add(TASK_CARD, &field, problem);
        }
    }

    /// The bytes of a piece of evidence, and its name in findings.
    fn bytes(&mut self, evidence: Evidence) -> Option<(String, Vec<u8>)> {
        // Evidence without a name was refused with the card.
        let found = self.found(evidence)?.clone();
        let name = found.path.name().to_owned();
        let inside = match &self.packet.directory {
            Some(directory) => found.path.is_within(directory),
            None => false,
        };
        let source = match (&found.in_repository, &found.in_packet) {
            (Source::Missing, source) => source,
            (source, Source::Missing) => {
                if !inside {
                    let problem = "lies outside the packet";
                    self.findings.add(TASK_CARD, &evidence.field(), problem);
                }
                source
            }
            _ => {
                let problem = format!(
                    "`{}` is in the repository and in the packet; one of them hides the other",
                    found.path
                );
                self.findings.add(TASK_CARD, &evidence.field(), problem);
                return None;
            }
        };
        let bytes = self.findings.of(&name).bytes(source, evidence.key())?;
        Some((name, bytes.to_vec()))
    }

    fn snapshot(&mut self, evidence: Evidence) -> Option<Snapshot> {
        let (name, bytes) = self.bytes(evidence)?;
        let file = format!("{}: {name}", evidence.key());
        snapshot::read(&file, &bytes, self.findings)
    }

    /// Checks that the times of the snapshots are in order.
    fn in_order(&mut self, before: &Snapshot, after: &Snapshot) {
        let time = |text: &Option<String>| read_time(text.as_deref()?);
        let published = time(&self.card.published_at);
        let (first, last) = (time(&before.captured_at), time(&after.captured_at));
        let unreadable = [
            (TASK_CARD, "published_at", published),
            (Evidence::Before.key(), "captured_at", first),
            (Evidence::After.key(), "captured_at", last),
        ];
        for (file, field, time) in unreadable {
            if time.is_none() {
                self.findings.doubt(file, field, "is not a time");
            }
        }
        if let (Some(first), Some(last)) = (first, last)
            && last < first
        {
            let problem = format!("is earlier than that of {}", Evidence::Before.key());
            let file = Evidence::After.key();
            self.findings.doubt(file, "captured_at", problem);
        }
    }

    fn changes(&mut self, before: Snapshot, after: &Snapshot) -> Changes {
        let paths: BTreeSet<&String> = before.files.keys().chain(after.files.keys()).collect();
        let mut changes = Changes {
            counted: BTreeSet::new(),
            ignored: BTreeSet::new(),
            before: BTreeMap::new(),
        };
        let mut witnesses = 0;
        for path in paths {
            if before.files.get(path) == after.files.get(path) {
                witnesses += 1;
            } else if self.is_ignored(path) {
                changes.ignored.insert(path.clone());
                self.noise_hides(path);
            } else if !self.is_packet(path) {
                changes.counted.insert(path.clone());
            }
        }
        if witnesses == 0 && !self.measured {
            let problem = "holds no file beside those that changed, so it can show nothing";
            self.findings
                .doubt(Evidence::Before.key(), "files", problem);
        }
        changes.before = before.files;
        changes
    }

    fn is_packet(&self, path: &str) -> bool {
        let directory = self.packet.directory.as_ref();
        let rest = directory.and_then(|directory| path.strip_prefix(directory.as_str()));
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    fn is_ignored(&mut self, path: &str) -> bool {
        let mut ephemeral = self.ephemeral.iter();
        ephemeral.any(|rule| rule.matches(path, self.effort)) || self.is_noise(path)
    }

    fn is_noise(&mut self, path: &str) -> bool {
        let mut noise = self.card.noise.iter();
        noise.any(|rule| rule.matches(path, self.effort))
    }

    /// Refuses noise rules that hide a file in scope.
    fn noise_hides(&mut self, path: &str) {
        let mut allowed = self.card.allowed.iter();
        if allowed.any(|rule| rule.covers(path, self.effort)) && self.is_noise(path) {
            let problem = format!("hides `{path}`, which is in allowed_paths");
            self.findings.doubt(TASK_CARD, NOISE_FIELD, problem);
        }
    }

    /// Checks that the changes are those that were reported, and that all of them are in scope.
    pub(super) fn compare(&mut self, changes: &Changes, reported: Option<&BTreeSet<String>>) {
        let field = "changed_files";
        for path in &changes.counted {
            let place = (Evidence::After.key(), "files");
            super::in_scope(self.card, path, place, self.findings, self.effort);
        }
        let Some(reported) = reported else {
            return;
        };
        for path in reported {
            if changes.counted.contains(path) || self.is_packet(path) || self.is_ignored(path) {
                continue;
            }
            let problem = format!("mismatch: `{path}` is reported and did not change");
            self.findings.add(EXECUTOR_REPORT, field, problem);
            let place = (EXECUTOR_REPORT, field);
            super::in_scope(self.card, path, place, self.findings, self.effort);
        }
        for path in changes.counted.difference(reported) {
            let problem = format!("mismatch: `{path}` changed and is not reported");
            self.findings.add(EXECUTOR_REPORT, field, problem);
        }
        if self.effort.is_spent() {
            self.findings.add(TASK_CARD, NOISE_FIELD, Effort::PROBLEM);
        }
    }

    /// Checks that every acceptance command has a row that says it succeeded.
    pub(super) fn log(&mut self) {
        let Some((name, bytes)) = self.bytes(Evidence::Log) else {
            return;
        };
        let published = self.card.published_at.as_deref();
        let published = published.and_then(read_time);
        let rows = log::rows(&name, &bytes, published, self.findings);
        for command in &self.card.commands {
            let mut codes = rows.iter().filter(|row| row.command == *command);
            let last = codes.next_back().map(|row| row.exit_code);
            if last != Some(0) && !codes.any(|row| row.exit_code == 0) {
                let problem = format!("no row says that the acceptance command `{command}` passed");
                self.findings.add(&name, "", problem);
            } else if last != Some(0) {
                let problem = format!("the acceptance command `{command}` failed the last time");
                self.findings.doubt(&name, "", problem);
            }
        }
    }
}

/// A time in milliseconds; `None` for a text that is no time.
fn read_time(text: &str) -> Option<i64> {
    time::parse(text).ok()
}
