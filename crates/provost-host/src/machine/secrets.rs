//! Finds the secrets of the user, and keeps them out of the bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use provost_core::agent::Adapted;
use provost_core::change::{Change, Finding, FindingKind, Node};
use provost_core::code::Code;
use provost_core::net::credential::{Credential, SecretSource};
use provost_core::object::{Mode, Oid, sha256};
use provost_core::path::RawPath;
use provost_core::run::fact::{AgentRun, ResultFile, Withheld};
use provost_core::secret::{self, Known, Planted, is_secret_variable};
use provost_engine::ports::PortError;
use provost_fs::atomic::{self, Durability};

use super::profile::outlet_for;
use super::{Machine, git, host, model_replay, read_result};
use crate::capture::Captured;
use crate::git::GitError;
use crate::login;
use crate::proxy::Outlet;

/// What a token of a login file is called where a secret is found.
const LOGIN: &str = "login";

/// How many bytes of a binary file are searched.
const MOST_BINARY: usize = 8 << 20;

/// The values that must not appear in a bundle: those of `credentials`, and of every variable of
/// this process whose name and value look like a secret.
pub fn known(credentials: &[&Credential]) -> Known {
    known_with(credentials, &[])
}

/// The same, and the tokens in `learned`.
fn known_with(credentials: &[&Credential], learned: &[String]) -> Known {
    let is_named = |name: &str| {
        let mut named = credentials.iter().filter_map(|it| it.source.variable());
        named.any(|one| one == name)
    };
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(text)
        .filter(|(name, value)| is_named(name) || is_secret_variable(name, value))
        .collect();
    let files = credentials.iter().filter_map(|it| match &it.source {
        SecretSource::Variable(_) => None,
        SecretSource::File(file) => Some(*file),
    });
    let tokens: Vec<String> = files.flat_map(login::secrets).collect();
    let tokens = tokens.iter().chain(learned);
    let tokens = tokens.map(|token| (LOGIN, token.as_str()));
    let variables = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    Known::new(variables.chain(tokens))
}

impl Machine {
    /// Keeps the secrets of `credentials` out of the bundle, too.
    pub fn know(&mut self, credentials: &[&Credential]) {
        self.brokered = credentials.iter().copied().cloned().collect();
        self.known = known(credentials);
    }

    /// Keeps tokens out of the bundle that the proxy read from a login file meanwhile, too.
    pub(super) fn learn(&mut self) {
        let brokered: Vec<&Credential> = self.brokered.iter().collect();
        self.known = known_with(&brokered, &self.learned.values());
    }

    /// Removes such tokens from what `run` left in the bundle; its streams were written while they
    /// were not known.
    pub(super) fn scrub_late(&self, mut run: AgentRun) -> Result<AgentRun, PortError> {
        let mut late = self.learned.values();
        late.retain(|token| !self.known.is_in(token.as_bytes()));
        if late.is_empty() {
            return Ok(run);
        }
        let known = Known::new(late.iter().map(|token| (LOGIN, token.as_str())));
        let events = run.claims.as_mut().map(|claims| &mut claims.events);
        let rows = run.model.as_mut().and_then(|model| model.rows.as_mut());
        let streams = [&mut run.stdout, &mut run.stderr].into_iter();
        for stream in streams.chain(events).chain(rows) {
            let path = self.bundle.join(&stream.file);
            let bytes = fs::read(&path).map_err(host("read a stream"))?;
            let (clean, redacted) = known.scrub(&bytes);
            if redacted > 0 {
                let mode = fs::metadata(&path).map_err(host("read a stream"))?.mode();
                atomic::replace(&path, &clean, mode & 0o777, Durability::Synced)
                    .map_err(host("write a stream"))?;
                stream.redacted += redacted;
                stream.kept = clean.len() as u64;
                stream.sha256 = sha256(&clean);
            }
        }
        model_replay::forget(&self.bundle, &known)?;
        if let ResultFile::Text(text) = &mut run.result {
            let (clean, redacted) = known.scrub_text(std::mem::take(text));
            *text = clean;
            run.redacted += redacted;
        }
        Ok(run)
    }

    /// Permits sandboxes to use these secrets, by name; the user named them in this very command.
    pub fn send(&mut self, credentials: &[&Credential]) {
        self.sent = credentials.iter().copied().cloned().collect();
    }

    /// What the proxy of a sandbox needs; reads only secrets that the user named.
    /// The login of `agent` is added to calls of its model alone.
    pub(super) fn outlet(
        &self,
        credentials: &[Credential],
        agent: Option<&Adapted>,
    ) -> Result<Outlet, PortError> {
        let stranger = credentials.iter().find(|it| !self.sent.contains(it));
        if let Some(Credential {
            source, endpoint, ..
        }) = stranger
        {
            let reason = format!(
                "{source} would be sent to {endpoint}, and you have not named that in this command"
            );
            let name = source.argument();
            let hint = format!("call it again with --send {name}@{endpoint}");
            return Err(PortError::new(Code::ConsentNeeded, reason).hint(hint));
        }
        outlet_for(credentials, agent, &self.learned)
    }

    /// The result in an attempt's `directory`, without secrets, and how many there were.
    pub(super) fn read_result(&self, directory: &Path) -> (ResultFile, u64) {
        self.scrubbed(read_result(&directory.join("out/result.json")))
    }

    /// `result` without secrets, and how many there were.
    pub(super) fn scrubbed(&self, result: ResultFile) -> (ResultFile, u64) {
        match result {
            ResultFile::Text(text) => {
                let (text, redacted) = self.known.scrub_text(text);
                (ResultFile::Text(text), redacted)
            }
            other @ (ResultFile::Absent | ResultFile::Unusable(_)) => (other, 0),
        }
    }
}

/// A secret that was found, with its value.
type Sighting = (Planted, Vec<u8>);

/// Secrets in the contents of a change.
#[derive(Default)]
struct Seen {
    /// The secrets in the new contents.
    after: BTreeMap<Oid, Vec<Sighting>>,
    /// The old contents that hold a known value.
    before: BTreeSet<Oid>,
}

impl Machine {
    /// Adds the new secrets in `captured` to its findings, and withholds their contents from the
    /// bundle.
    pub(super) fn find_secrets(
        &self,
        captured: &mut Captured,
        base: &Oid,
    ) -> Result<Withheld, PortError> {
        let seen = self.look_at(&captured.changes).map_err(git)?;
        let new = self
            .new_values(&captured.changes, &seen, base)
            .map_err(git)?;
        let mut withheld = Withheld {
            names: self.rename(captured),
            ..Withheld::default()
        };
        for change in &captured.changes {
            let held_one = oid(change.before.as_ref()).is_some_and(|it| seen.before.contains(it));
            let found = oid(change.after.as_ref()).and_then(|it| seen.after.get(it));
            let found = found.map_or(&[][..], Vec::as_slice);
            let fresh = found.iter().filter(|(_, value)| new.contains(value));
            let fresh: Vec<&Planted> = fresh.map(|(planted, _)| planted).collect();
            if !fresh.is_empty() {
                let note = secret::describe(&fresh);
                captured.findings.push(finding(&change.path, note));
            }
            if held_one || !fresh.is_empty() || found.iter().any(|(planted, _)| planted.is_known) {
                withheld.contents.insert(change.path.clone());
            }
        }
        let order = |finding: &Finding| (finding.path.clone(), finding.kind);
        captured.findings.sort_by_key(order);
        Ok(withheld)
    }

    /// The secrets in the contents of `changes`.
    fn look_at(&self, changes: &[Change]) -> Result<Seen, GitError> {
        let after = changes.iter().filter_map(|it| oid(it.after.as_ref()));
        let before = changes.iter().filter_map(|it| oid(it.before.as_ref()));
        let (after, before): (BTreeSet<&Oid>, BTreeSet<&Oid>) = (after.collect(), before.collect());
        let mut seen = Seen::default();
        self.repo.batch()?.each(
            after.union(&before).copied(),
            |oid, _, mut bytes| -> Result<(), GitError> {
                if before.contains(oid) && self.known.is_in(&bytes) {
                    seen.before.insert(oid.clone());
                }
                if !after.contains(oid) {
                    return Ok(());
                }
                if bytes.contains(&0) {
                    bytes.truncate(MOST_BINARY);
                }
                let found = self.known.planted(&bytes).into_iter();
                let found = found.map(|one| {
                    let value = bytes[one.range.clone()].to_vec();
                    (one, value)
                });
                let found: Vec<Sighting> = found.collect();
                if !found.is_empty() {
                    seen.after.insert(oid.clone(), found);
                }
                Ok(())
            },
        )?;
        Ok(seen)
    }

    /// The values that the base does not have, in the paths that changed or were copied from.
    fn new_values(
        &self,
        changes: &[Change],
        seen: &Seen,
        base: &Oid,
    ) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let values = seen.after.values().flatten();
        let mut new: BTreeSet<Vec<u8>> = values.map(|(_, value)| value.clone()).collect();
        if new.is_empty() {
            return Ok(new);
        }
        let files = &self.repo.read_tree(base)?.files;
        let origins = changes.iter().filter_map(|change| change.origin.as_ref());
        let origins = origins.filter_map(|origin| files.get(&origin.path));
        let before = changes.iter().filter_map(|change| change.before.as_ref());
        let old = before.chain(origins).filter_map(|node| oid(Some(node)));
        let old: BTreeSet<&Oid> = old.collect();
        self.repo
            .batch()?
            .each(old, |_, _, bytes| -> Result<(), GitError> {
                let holds = |value: &[u8]| bytes.windows(value.len()).any(|it| it == value);
                new.retain(|value| !holds(value));
                Ok(())
            })?;
        Ok(new)
    }

    /// Removes secrets from the names in `captured`; returns whether there were any.
    fn rename(&self, captured: &mut Captured) -> bool {
        let mut taken: BTreeSet<RawPath> = BTreeSet::new();
        let mut brought = Vec::new();
        let mut any = false;
        for change in &mut captured.changes {
            let is_new = change.before.is_none();
            if let Some(clean) = self.clean_name(&change.path, is_new) {
                any = true;
                // Names that differed must still differ.
                let text = clean.to_string();
                let numbered = (2..).map(|number| RawPath::new(format!("{text}-{number}")));
                let mut free = std::iter::once(clean).chain(numbered);
                let path = free.find(|path| !taken.contains(path));
                change.path = path.unwrap_or_else(|| RawPath::new(text));
                taken.insert(change.path.clone());
                if is_new {
                    brought.push(finding(&change.path, "in its name".to_owned()));
                }
            }
            if let Some(origin) = &mut change.origin
                && let Some(clean) = self.clean_name(&origin.path, false)
            {
                origin.path = clean;
                any = true;
            }
            if let Some(link) = &mut change.link
                && let Some(clean) = self.clean_name(link, true)
            {
                *link = clean;
            }
        }
        for found in &mut captured.findings {
            if let Some(clean) = self.clean_name(&found.path, true) {
                found.path = clean;
                any = true;
            }
            found.note = self.known.scrub_text(std::mem::take(&mut found.note)).0;
        }
        captured.findings.extend(brought);
        any
    }

    /// `name` without secrets, if it has some; of an old name only known values count.
    fn clean_name(&self, name: &RawPath, is_new: bool) -> Option<RawPath> {
        let text = name.as_bytes();
        if !is_new && !self.known.is_in(text) {
            return None;
        }
        let (clean, removed) = self.known.scrub(text);
        (removed > 0).then(|| RawPath::new(clean))
    }
}

fn finding(path: &RawPath, note: String) -> Finding {
    Finding {
        path: path.clone(),
        kind: FindingKind::Secret,
        note,
    }
}

/// The id of the content, if the node is a file.
fn oid(node: Option<&Node>) -> Option<&Oid> {
    node.filter(|node| node.mode != Mode::Gitlink)
        .map(|node| &node.oid)
}
