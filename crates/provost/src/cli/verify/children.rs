//! Follows a bundle to the bundles of its children, which lie beside it.

use std::fs;
use std::path::Path;

use provost_core::bundle::key::PublicKey;
use provost_core::bundle::layout::ATTESTATION;
use provost_core::children::MOST_LEVELS;
use provost_core::code::Code;
use provost_core::json;
use provost_core::object::sha256;
use provost_core::path::is_segment;
use provost_core::verdict::Verdict;
use provost_engine::bundle::verify::{self, Pins};
use provost_host::bundle::Directory;
use serde_json::Value;

use crate::show::one_line;

/// The largest file about a child.
const LARGEST: usize = 1 << 20;

/// What became of the bundles of children, for people, and the first that cannot be trusted.
#[derive(Debug, Default)]
pub(super) struct Followed {
    pub(super) text: String,
    pub(super) refusal: Option<Verdict>,
}

/// Verifies the bundles of the children of the bundle in `directory`, and theirs.
pub(super) fn follow(directory: &Path, keys: &[PublicKey]) -> Followed {
    let mut followed = Followed::default();
    followed.below(directory, keys, 1);
    followed
}

impl Followed {
    fn below(&mut self, directory: &Path, keys: &[PublicKey], level: u32) {
        let entries = fs::read_dir(directory.join("children"));
        let mut names: Vec<_> = entries.into_iter().flatten().flatten().collect();
        names.sort_by_key(fs::DirEntry::file_name);
        if level > MOST_LEVELS && !names.is_empty() {
            self.refuse("children are nested deeper than a contract can grant".to_owned());
            return;
        }
        for entry in names {
            // A file that is not read here was compared with the ledger.
            let read = fs::read(entry.path()).ok().filter(|it| it.len() <= LARGEST);
            let Some(file) = read.and_then(|bytes| json::parse(&bytes).ok()) else {
                continue;
            };
            self.child(directory, &file, keys, level);
        }
    }

    fn child(&mut self, parent: &Path, file: &Value, keys: &[PublicKey], level: u32) {
        let text = |name: &str| file.get(name).and_then(Value::as_str);
        let (Some(run_id), Some(beside)) = (text("run_id"), parent.parent()) else {
            return;
        };
        let (shown, directory) = (one_line(run_id), beside.join(run_id));
        let indent = "  ".repeat(level as usize);
        if !is_segment(run_id) || !directory.is_dir() {
            self.text += &format!("{indent}child {shown}: its bundle is not beside this one\n");
            return;
        }
        let Some(sealed) = text("attestation_sha256") else {
            self.text += &format!("{indent}child {shown}: it has no seal\n");
            return;
        };
        let attestation = fs::read(directory.join(ATTESTATION)).unwrap_or_default();
        if sha256(&attestation) != sealed {
            self.text += &format!("{indent}child {shown}: not the bundle that its parent names\n");
            self.refuse(format!(
                "the bundle of the child {shown} is not the one that is named"
            ));
            return;
        }
        let verdict = match Directory::open(&directory) {
            Ok(files) => verify::verify(&files, keys, &Pins::default(), None).verdict(),
            Err(error) => Verdict::deny(Code::InputUnreadable, error.to_string()),
        };
        self.text += &format!("{indent}child {shown}: {}\n", verdict.code);
        if !verdict.allow {
            self.refuse(format!(
                "the bundle of the child {shown}: {}",
                verdict.reason
            ));
        }
        self.below(&directory, keys, level + 1);
    }

    fn refuse(&mut self, reason: String) {
        let verdict = Verdict::deny(Code::EvidenceAltered, reason);
        self.refusal.get_or_insert(verdict);
    }
}
