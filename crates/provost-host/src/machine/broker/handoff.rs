//! Reads what a parent hands over to a child: its summary, what it refers to, or its history.
//!
//! # Invariants
//!
//! - A reference is read from the captured tree, from the ledger, or below one directory; no link
//!   is followed.
//! - What is handed over is text, and the secrets that are found in it are removed.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use provost_core::children::{
    AskedHandoff, ChildBase, ContextRef, Handed, HandedDocument, MOST_HANDED, ProjectionAudit,
};
use provost_core::code::Code;
use provost_core::object::{Mode, sha256};
use provost_core::path::RawPath;
use provost_core::record::Record;
use provost_core::verdict::Verdict;
use provost_core::{bundle::layout::LEDGER, json};
use provost_engine::ports::Watch;
use provost_fs::beneath::Beneath;
use rustix::fs::{Mode as FileMode, OFlags};

use super::Broker;

/// The largest ledger or history that is read, in bytes.
const LARGEST: u64 = 64 << 20;

/// The directory of an attempt with the result of its agent.
const OUT: &str = "out";

impl Broker<'_> {
    /// Everything that `asked` hands over.
    pub(super) fn handed(
        &self,
        asked: &AskedHandoff,
        base: &ChildBase,
        watch: &dyn Watch,
    ) -> Result<Handed, Verdict> {
        match asked {
            AskedHandoff::None {} => Ok(Handed::default()),
            AskedHandoff::SummaryOnly { summary, .. } => Ok(Handed {
                documents: vec![self.document("summary", summary.clone())],
                audit: None,
            }),
            AskedHandoff::SelectedRefs { refs, .. } => {
                let resolved = refs.iter().map(|one| self.resolved(one, base, watch));
                Ok(Handed {
                    documents: resolved.collect::<Result<_, _>>()?,
                    audit: None,
                })
            }
            AskedHandoff::FullHistory { .. } => self.history(),
        }
    }

    /// The document `name`, without secrets.
    fn document(&self, name: &str, text: String) -> HandedDocument {
        let (text, redacted) = self.machine.known.scrub_text(text);
        HandedDocument {
            name: name.to_owned(),
            text,
            redacted,
        }
    }

    fn resolved(
        &self,
        written: &str,
        base: &ChildBase,
        watch: &dyn Watch,
    ) -> Result<HandedDocument, Verdict> {
        let bytes = match ContextRef::parse(written)? {
            ContextRef::Tree(path) => self.in_tree(&RawPath::from(&path), base),
            ContextRef::Ledger(number) => self.in_ledger(number),
            ContextRef::File(name) => {
                let attempt = self.machine.places.attempt(self.order.attempt);
                beneath(&attempt.join(OUT), &name)
            }
            ContextRef::Child { run_id, name } => {
                let known = watch.state().and_then(|state| state.family.find(&run_id));
                let ended = known.filter(|member| !member.is_running());
                let place = ended.map(|_| self.shared.join(&run_id));
                place
                    .ok_or("names a child that has not ended".to_owned())
                    .and_then(|place| beneath(&place, &name))
            }
        };
        let refuse = |why: &str| {
            let reason = format!("the reference `{}` {why}", written.escape_debug());
            Verdict::deny(Code::HandoffRefUnresolved, reason)
        };
        let bytes = bytes.map_err(|why| refuse(&why))?;
        if bytes.len() > MOST_HANDED {
            let reason = format!(
                "`{written}` has {} bytes; at most {MOST_HANDED}",
                bytes.len()
            );
            return Err(Verdict::deny(Code::HandoffTooLong, reason));
        }
        let text = String::from_utf8(bytes).map_err(|_| refuse("is no text"))?;
        Ok(self.document(written, text))
    }

    fn in_tree(&self, path: &RawPath, base: &ChildBase) -> Result<Vec<u8>, String> {
        let repo = &self.machine.repo;
        let tree = repo.read_tree(&base.tree).map_err(|e| e.to_string())?;
        let node = tree.files.get(path).ok_or("is not in the tree")?;
        match node.mode {
            Mode::File | Mode::Executable => {}
            Mode::Symlink | Mode::Gitlink | Mode::Tree => {
                return Err("is no regular file".to_owned());
            }
        }
        repo.blob(&node.oid).map_err(|error| error.to_string())
    }

    fn in_ledger(&self, number: u64) -> Result<Vec<u8>, String> {
        let bytes = read(&self.machine.bundle.join(LEDGER))?;
        let is_it = |line: &&[u8]| {
            let record = json::parse_as::<Record>(line);
            record.is_ok_and(|record| record.seq == number)
        };
        let found = bytes.split(|byte| *byte == b'\n').find(is_it);
        found
            .map(<[u8]>::to_vec)
            .ok_or("is no event of the ledger".to_owned())
    }

    /// The end of what the agent said and did so far, and the audit of what was left out.
    fn history(&self) -> Result<Handed, Verdict> {
        let events = self.order.adaptation.as_ref().map(|known| &known.events);
        let source = events.unwrap_or(&self.order.stdout);
        let refuse = |why: String| Verdict::deny(Code::HandoffRefUnresolved, why);
        let bytes = read(&self.machine.bundle.join(source)).map_err(refuse)?;
        let (source_sha256, source_bytes) = (sha256(&bytes), bytes.len() as u64);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let document = self.document("history", text);
        let from = document.text.len().saturating_sub(MOST_HANDED);
        // From the beginning of a line on.
        let from = match from {
            0 => 0,
            from => {
                let rest = document.text.as_bytes().get(from..).unwrap_or_default();
                let end = rest.iter().position(|byte| *byte == b'\n');
                end.map_or(document.text.len(), |end| from + end + 1)
            }
        };
        let text = document.text.get(from..).unwrap_or_default().to_owned();
        let audit = ProjectionAudit {
            source: source.clone(),
            source_sha256,
            source_bytes,
            handed_sha256: sha256(text.as_bytes()),
            handed_bytes: text.len() as u64,
            omitted_bytes: from as u64,
            redacted: document.redacted,
        };
        Ok(Handed {
            documents: vec![HandedDocument { text, ..document }],
            audit: Some(audit),
        })
    }
}

/// A file of ours that may not be larger than we read.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let length = fs::metadata(path).map_or(0, |it| it.len());
    if length > LARGEST {
        return Err(format!("has {length} bytes; at most {LARGEST} are read"));
    }
    fs::read(path).map_err(|error| format!("cannot be read: {error}"))
}

/// The regular file `name` in `directory`, through no link.
fn beneath(directory: &Path, name: &str) -> Result<Vec<u8>, String> {
    let missing = |error: rustix::io::Errno| format!("cannot be read: {error}");
    let directory = Beneath::new(directory).map_err(missing)?;
    let file = directory.open(name.as_bytes(), OFlags::RDONLY, FileMode::empty());
    let file = File::from(file.map_err(missing)?);
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("is no regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let limit = MOST_HANDED as u64 + 1;
    let read = file.take(limit).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    Ok(bytes)
}
