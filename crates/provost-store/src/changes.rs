//! Keeps the evidence of controlled changes, and the analyses at their start and end.
//!
//! ```text
//! changes/<intent>/    intent.json events.jsonl before.json after.json receipt.json …
//! changes/reports/     what analyses found, by digest; evidence links to these files
//! changes/sessions/    which analyses a named session has
//! ```
//!
//! # Invariants
//!
//! - A file exists whole or not at all.
//! - One process at a time appends to a chain and seals it.
//! - A report that does not match the requested digest is an error, never an answer.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_change::analysis::run::RunHead;
use provost_change::ports::{AnalysisStore, ChangeEvidence, Seal};
use provost_core::bundle::layout::{ATTESTATION, LEDGER};
use provost_core::code::Code;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::path::is_segment;
use provost_core::record::{Event, Head};
use provost_engine::ports::{Bundle as _, Ledger as _, PortError};
use provost_fs::atomic;
use provost_lens::structure::Report;
use rustix::fs::OFlags;

use crate::bundle::{DirBundle, refuse};
use crate::driven::DrivenLedger;
use crate::error::StoreError;
use crate::{file, lock};

/// How long an append waits for another writer of the same chain.
const PATIENCE: Duration = Duration::from_secs(5);

/// The largest report that is read back, in bytes.
const LARGEST: u64 = 1 << 30;

#[derive(Debug, Clone)]
pub struct ChangeFiles {
    root: PathBuf,
}

impl ChangeFiles {
    /// The changes below `root`, which is made if missing.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        file::make_directories(&root.join("reports"))?;
        Ok(Self {
            root: root.to_owned(),
        })
    }

    fn place(&self, intent_id: &str) -> Result<PathBuf, PortError> {
        if is_segment(intent_id) && !matches!(intent_id, "reports" | "sessions") {
            return Ok(self.root.join(intent_id));
        }
        let words = format!("`{}` names no intent", intent_id.escape_default());
        Err(PortError::new(Code::NotFound, words))
    }

    fn bundle(&self, intent_id: &str) -> Result<DirBundle, PortError> {
        Ok(DirBundle::new(&self.place(intent_id)?))
    }

    fn report_name(digest: &str) -> Result<String, PortError> {
        if digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(format!("reports/{digest}.json"));
        }
        Err(PortError::new(Code::Bug, "a report without a digest"))
    }

    fn ledger(&self, intent_id: &str) -> Result<DrivenLedger, PortError> {
        let path = self.place(intent_id)?.join(LEDGER);
        let ledger = if path.exists() {
            DrivenLedger::open(&path, Head::genesis())
        } else {
            DrivenLedger::create(&path, Head::genesis())
        };
        ledger.map_err(refuse)
    }

    /// Removes unlinked reports that are older than `seconds`; returns their number.
    pub fn sweep_reports(&self, seconds: u64) -> Result<usize, StoreError> {
        use std::os::unix::fs::MetadataExt as _;
        let directory = self.root.join("reports");
        let entries = fs::read_dir(&directory).map_err(StoreError::io("list", &directory))?;
        let mut gone = 0;
        for entry in entries.flatten() {
            let Ok(data) = entry.metadata() else { continue };
            let age = data.modified().ok().and_then(|time| time.elapsed().ok());
            let old = age.is_some_and(|age| age.as_secs() > seconds);
            if data.is_file() && data.nlink() == 1 && old && fs::remove_file(entry.path()).is_ok() {
                gone += 1;
            }
        }
        Ok(gone)
    }
}

impl ChangeEvidence for ChangeFiles {
    fn append(
        &mut self,
        intent_id: &str,
        event: Event,
        seal: &Seal<'_>,
    ) -> Result<Head, PortError> {
        let place = self.place(intent_id)?;
        file::make_directories(&place).map_err(refuse)?;
        let _turn = lock::directory(&place, PATIENCE).map_err(refuse)?;
        let mut ledger = self.ledger(intent_id)?;
        ledger.append(event)?;
        let envelope = seal(ledger.records())?;
        self.put(intent_id, ATTESTATION, &envelope)?;
        Ok(ledger.head())
    }

    fn put(&mut self, intent_id: &str, name: &str, bytes: &[u8]) -> Result<(), PortError> {
        self.bundle(intent_id)?.put(name, bytes)
    }

    fn put_report(&mut self, intent_id: &str, name: &str, head: &RunHead) -> Result<(), PortError> {
        let report = self.root.join(Self::report_name(&head.report_digest)?);
        let directory = self.place(intent_id)?;
        file::make_directories(&directory).map_err(refuse)?;
        let target = directory.join(name);
        if atomic::link(&report, &target).is_err() {
            // On a file system without links the evidence is a copy.
            let bytes = fs::read(&report).map_err(StoreError::io("read", &report));
            return self.put(intent_id, name, &bytes.map_err(refuse)?);
        }
        Ok(())
    }

    fn get(&self, intent_id: &str, name: &str) -> Result<Option<Vec<u8>>, PortError> {
        let path = self.place(intent_id)?.join(name);
        read(&path).map_err(refuse)
    }
}

/// The bytes of a regular file, if it exists.
fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let file = match file::open(path, OFlags::RDONLY) {
        Ok((file, _)) => file,
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(StoreError::io("read", path))?;
    if bytes.len() as u64 > LARGEST {
        return Err(StoreError::TooLarge {
            path: path.to_owned(),
            limit: LARGEST,
        });
    }
    Ok(Some(bytes))
}

/// Where the list of a session's runs is kept.
#[derive(Debug)]
enum Heads {
    /// In memory, as long as the process lives.
    Memory(Vec<RunHead>),
    /// In a file, for sessions of many short processes.
    File(PathBuf),
}

/// The analysis runs of one session.
#[derive(Debug)]
pub struct AnalysisFiles {
    files: ChangeFiles,
    heads: Heads,
}

impl AnalysisFiles {
    /// The runs of a process; the list ends with it.
    pub fn of_process(files: ChangeFiles) -> Self {
        Self {
            files,
            heads: Heads::Memory(Vec::new()),
        }
    }

    /// The runs of the session `name`, which outlives the process.
    pub fn of_session(files: ChangeFiles, name: &str) -> Self {
        let path = format!("sessions/{}.json", &sha256(name.as_bytes())[..32]);
        Self {
            heads: Heads::File(files.root.join(path)),
            files,
        }
    }

    fn save(&mut self, heads: Vec<RunHead>) -> Result<(), PortError> {
        match &mut self.heads {
            Heads::Memory(kept) => *kept = heads,
            Heads::File(path) => {
                let value = serde_json::to_value(&heads).unwrap_or_default();
                let name = path
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned());
                let bytes = json::canonical(&value).into_bytes();
                let directory = file::directory_of(path).to_owned();
                file::make_directories(&directory).map_err(refuse)?;
                DirBundle::new(&directory).put(&name.unwrap_or_default(), &bytes)?;
            }
        }
        Ok(())
    }
}

impl AnalysisStore for AnalysisFiles {
    fn heads(&self) -> Result<Vec<RunHead>, PortError> {
        match &self.heads {
            Heads::Memory(heads) => Ok(heads.clone()),
            Heads::File(path) => match read(path).map_err(refuse)? {
                None => Ok(Vec::new()),
                // A damaged list counts as missing: the session analyses again.
                Some(bytes) => Ok(json::parse_own(&bytes).unwrap_or_default()),
            },
        }
    }

    fn report(&self, head: &RunHead) -> Result<Report, PortError> {
        let name = ChangeFiles::report_name(&head.report_digest)?;
        let path = self.files.root.join(&name);
        let gone = || {
            let words = format!("the report of the run {} is gone or changed", head.short());
            PortError::new(Code::EvidenceAltered, words).hint("analyse the repository again")
        };
        let bytes = read(&path).map_err(refuse)?.ok_or_else(gone)?;
        if sha256(&bytes) != head.report_digest {
            return Err(gone());
        }
        json::parse_own(&bytes).map_err(|_| gone())
    }

    fn put(&mut self, head: RunHead, report: &Report) -> Result<(), PortError> {
        let name = ChangeFiles::report_name(&head.report_digest)?;
        let whole = read(&self.files.root.join(&name))
            .ok()
            .flatten()
            .is_some_and(|bytes| sha256(&bytes) == head.report_digest);
        if !whole {
            let value = serde_json::to_value(report).unwrap_or_default();
            let bytes = json::canonical(&value).into_bytes();
            DirBundle::new(&self.files.root).put(&name, &bytes)?;
        }
        let mut heads = self.heads()?;
        heads.retain(|kept| kept.run_id != head.run_id);
        heads.push(head);
        self.save(heads)
    }

    fn drop(&mut self, run_ids: &[String]) -> Result<(), PortError> {
        if run_ids.is_empty() {
            return Ok(());
        }
        let mut heads = self.heads()?;
        heads.retain(|head| !run_ids.contains(&head.run_id));
        self.save(heads)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use provost_change::event::IntentEvent;
    use provost_core::checkout::CheckoutState;
    use provost_core::record::Record;
    use provost_lens::structure::baseline::Seen;
    use provost_lens::structure::metrics::Metrics;
    use provost_lens::structure::{REPORT_VERSION, Settings};

    use super::*;

    fn run(tree: &str) -> (RunHead, Report) {
        let report = Report {
            version: REPORT_VERSION.to_owned(),
            analyser: "test".to_owned(),
            settings: Settings::default(),
            tree: sha256(tree.as_bytes()),
            tree_files: 0,
            languages: BTreeMap::new(),
            files: Vec::new(),
            functions: Vec::new(),
            classes: Vec::new(),
            imports: Vec::new(),
            findings: Vec::new(),
            metrics: Metrics::default(),
            health: None,
        };
        let workspace = CheckoutState {
            tree: None,
            dirty: BTreeMap::new(),
        };
        let head = RunHead::of(&report, "", workspace, Seen::default(), 1);
        (head, report)
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn a_report_takes_the_place_of_another_and_leaves_nothing_beside_it() {
        let scratch = tempfile::tempdir().unwrap();
        let mut files = ChangeFiles::open(scratch.path()).unwrap();
        let mut analyses = AnalysisFiles::of_process(files.clone());
        let (first, second) = (run("first"), run("second"));
        for (head, report) in [&first, &second] {
            analyses.put(head.clone(), report).unwrap();
        }
        // The same one twice is a rename that does nothing.
        for (head, _) in [&first, &first, &second] {
            let left = scratch
                .path()
                .join(format!("i1/a.json{}", atomic::UNFINISHED));
            if left.parent().is_some_and(Path::exists) {
                fs::write(&left, "left by a process that died").unwrap();
            }
            files.put_report("i1", "a.json", head).unwrap();
            let bytes = files.get("i1", "a.json").unwrap().unwrap();
            assert_eq!(sha256(&bytes), head.report_digest);
            assert_eq!(names(&scratch.path().join("i1")), ["a.json"]);
        }
    }

    #[test]
    fn a_record_whose_writer_died_before_sealing_it_is_sealed_with_the_next() {
        let scratch = tempfile::tempdir().unwrap();
        let mut files = ChangeFiles::open(scratch.path()).unwrap();
        let event = || IntentEvent::Checked.event("i1", "now".to_owned(), serde_json::json!({}));
        let dead = |_: &[Record]| Err(PortError::new(Code::Bug, "died"));
        assert!(files.append("i1", event(), &dead).is_err());
        assert_eq!(files.get("i1", ATTESTATION).unwrap(), None);
        let seal = |records: &[Record]| Ok(records.len().to_string().into_bytes());
        assert_eq!(files.append("i1", event(), &seal).unwrap().next, 2);
        let sealed = files.get("i1", ATTESTATION).unwrap();
        assert_eq!(sealed.as_deref(), Some(&b"2"[..]));
    }

    #[test]
    fn a_report_that_cannot_be_linked_leaves_the_one_before() {
        let scratch = tempfile::tempdir().unwrap();
        let mut files = ChangeFiles::open(scratch.path()).unwrap();
        let mut analyses = AnalysisFiles::of_process(files.clone());
        let (head, report) = run("first");
        analyses.put(head.clone(), &report).unwrap();
        files.put_report("i1", "a.json", &head).unwrap();
        let (gone, _) = run("never kept");
        assert!(files.put_report("i1", "a.json", &gone).is_err());
        let bytes = files.get("i1", "a.json").unwrap().unwrap();
        assert_eq!(sha256(&bytes), head.report_digest);
    }
}
