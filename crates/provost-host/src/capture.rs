//! Turns the bytes an agent left on disk into a git tree.
//!
//! Git never reads the agent's directory: our own walker reads raw bytes. What the agent wrote into
//! `.gitignore`, `.gitattributes`, configuration, index or refs decides nothing.
//!
//! # Invariants
//!
//! - Symbolic links are never followed, nothing blocks, every number has a limit.
//! - Only the ignore rules of the base commit count, and never for a path of the base commit.
//! - What a tree cannot represent faithfully is a finding; every entry left out of the tree has
//!   one.
//! - An untouched workspace gives the base tree and no change.
//! - Every object named by the result is in the object store, except after a mere comparison. Refs
//!   are not touched.
//!
//! # Decisions
//!
//! - The `.git` at the top belongs to the workspace and is skipped. Any other one, in any spelling,
//!   is a finding about its directory, whose other files are captured.
//! - A file with a second name among the captured paths is a finding at both. A file with other
//!   names elsewhere is a finding unless its content equals that of the base.
//! - Set-id bits are findings on files; on a directory they only pass on the group.
//! - Names that are bad or collide in the base already are not attributed to the agent.
//! - Of an overlay only the upper layer is read. What it does not mention is taken from the base by
//!   tree ids, and counts towards no limit. The result equals that of reading the merged directory.
//! - An empty directory vanishes, except where the base has a gitlink, which it represents.

mod base;
mod colliding_names;
mod layer;
mod masks;
mod origin;
mod read;
mod rules;
mod walk;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use provost_core::change::{Change, Finding, FindingKind, Ignored, Node};
use provost_core::object::{Kind, Mode as FileMode, Oid};
use provost_core::pack;
use provost_core::path::RawPath;
use provost_core::tree::{self, TreeError};

use crate::git::{GitError, Repository};
use base::Base;
pub(crate) use base::has_below;
pub(crate) use colliding_names::name_twins;
use masks::Masks;
use provost_fs::beneath::Beneath;
use read::Content;

/// Limits of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Nesting of directories.
    pub depth: usize,
    /// Files and directories.
    pub count: u64,
    /// Ignored files and directories, which are only counted.
    pub ignored_count: u64,
    pub file_bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
    /// Bytes of all files whose content the base does not have.
    pub new_bytes: u64,
    /// Paths that differ from the base, and findings; beyond that the capture fails.
    pub changes: usize,
    /// Bytes of what differs, before and after together; beyond that the capture fails.
    pub changed_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 128,
            count: 200_000,
            ignored_count: 4_000_000,
            file_bytes: 64 << 20,
            total_bytes: 8 << 30,
            new_bytes: 512 << 20,
            changes: usize::MAX,
            changed_bytes: u64::MAX,
        }
    }
}

impl Limits {
    fn check(&self, changes: usize, findings: usize) -> Result<(), CaptureError> {
        let most = self.changes;
        if changes.saturating_add(findings) > most {
            return Err(CaptureError::TooManyChanges { most });
        }
        Ok(())
    }

    fn check_bytes(&self, before: u64, after: u64) -> Result<(), CaptureError> {
        let most = self.changed_bytes;
        if before.saturating_add(after) > most {
            return Err(CaptureError::TooMuch { most });
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A directory that contains everything.
    Directory(PathBuf),
    /// The upper layer of an overlay on a checkout of the base; it must not be mounted.
    Upper(PathBuf),
}

impl Source {
    fn path(&self) -> &Path {
        match self {
            Self::Directory(path) | Self::Upper(path) => path,
        }
    }
}

/// Whether a capture writes objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Objects are written to the store; copies and colliding names are searched in the whole base.
    Record,
    /// Only ids are computed, to see whether anything changed.
    Compare,
}

/// Result of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Captured {
    /// The tree of everything that could be captured.
    pub tree: Oid,
    /// What differs from the base, sorted by path.
    pub changes: Vec<Change>,
    /// What a tree cannot represent faithfully, sorted by path.
    pub findings: Vec<Finding>,
    /// What the base's ignore rules left out.
    pub ignored: Ignored,
    /// Number of objects that the opened part of the base does not have.
    pub new_objects: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("cannot open the workspace `{}`", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// More differs than [`Limits::changes`].
    #[error("more than {most} paths changed")]
    TooManyChanges { most: usize },
    /// More differs than [`Limits::changed_bytes`].
    #[error("the change has more than {most} bytes, before and after together")]
    TooMuch { most: u64 },
    #[error("git failed during capture")]
    Git(#[from] GitError),
    #[error("the captured files make no tree")]
    Tree(#[from] TreeError),
}

/// Captures the content of `source`, compared with the tree `base_tree`.
///
/// No process may write there meanwhile; a file that changes during the capture is a finding.
pub fn capture(
    repo: &Repository,
    base_tree: &Oid,
    source: &Source,
    limits: &Limits,
    mode: Mode,
) -> Result<Captured, CaptureError> {
    let root = Beneath::new(source.path()).map_err(|error| CaptureError::Open {
        path: source.path().to_owned(),
        source: error.into(),
    })?;
    let mut base = Base::new(repo, base_tree);
    let walk = walk::walk(repo, (&root, source), &mut base, limits)?;
    open_for(&mut base, &walk, (limits, mode))?;
    let kept = kept(&base, &walk.masks);
    let base_files = base.files();
    let mut findings = walk.findings;
    // The names alone may exceed the limit, before any file is read.
    let moved = came_and_gone(&walk.seen, kept.len(), base_files);
    limits.check(moved, findings.len())?;
    let known: HashSet<&Oid> = base.known_files().map(|(_, side)| &side.oid).collect();
    let reader = read::Reader::new(&root, base_files, known, limits, mode, repo.format());
    let contents = reader.read(&walk.seen, &mut findings);
    findings.extend(colliding_names::hard_links(
        &walk.seen, &contents, base_files,
    ));
    let mut files = kept;
    files.extend(sides(&contents));
    findings.extend(name_twins(
        files.keys().filter(|path| !base_files.contains_key(*path)),
        files
            .keys()
            .chain(base.closed_files().map(|(path, _)| path)),
        |place| base.has(place),
    ));

    let differing = differing(base_files, &files);
    limits.check(differing.len(), findings.len())?;
    let (tree, trees) = build(repo, &files, &base)?;
    let sizes = sizes(&walk.seen);
    let after = differing.iter().filter_map(|path| sizes.get(*path)).sum();
    let (mut changes, before) = compare(repo, differing, base_files, &contents)?;
    limits.check_bytes(before, after)?;
    // A base with file modes of old repositories has another id than its files give today.
    let tree = if changes.is_empty() {
        base_tree.clone()
    } else {
        tree
    };
    let new_objects = store(repo, &base, contents, &trees, mode)?;
    if mode == Mode::Record {
        let origins = origin::Origins {
            base: &base,
            files: &files,
            sizes: &sizes,
        };
        origins.set(repo, &mut changes, (base_tree, &tree))?;
    }
    findings.sort_by(|one, other| (&one.path, one.kind).cmp(&(&other.path, other.kind)));
    findings.dedup();
    Ok(Captured {
        tree,
        changes,
        findings,
        ignored: walk.ignored,
        new_objects,
    })
}

fn finding(path: &RawPath, kind: FindingKind, note: impl Into<String>) -> Finding {
    Finding {
        path: path.clone(),
        kind,
        note: note.into(),
    }
}

/// Opens and lists the parts of the base that the rest of the capture needs.
fn open_for(
    base: &mut Base<'_>,
    walk: &walk::Walk,
    (limits, mode): (&Limits, Mode),
) -> Result<(), GitError> {
    // Every removed file is reported by its own path.
    base.open_all(|path| walk.masks.hide(path))?;
    let is_new = |one: &walk::Seen| !base.files().contains_key(&one.path);
    let bytes = walk.seen.iter().map(|one| one.size);
    let bytes = bytes.fold(0, u64::saturating_add);
    // A new path may be a copy of any other, or collide with it; a comparison does not check that.
    let asks = mode == Mode::Record && walk.seen.iter().any(is_new);
    // Which content is new is known only after listing the whole base.
    if asks || bytes > limits.new_bytes {
        base.list_all()?;
    }
    Ok(())
}

/// The opened files of the base that the walk neither found nor saw removed.
fn kept(base: &Base<'_>, masks: &Masks) -> BTreeMap<RawPath, Node> {
    let files = base.files().iter().filter(|(path, _)| !masks.hide(path));
    files
        .map(|(path, node)| (path.clone(), node.clone()))
        .collect()
}

/// Makes the trees of `files` and of the directories that were not opened.
fn build(
    repo: &Repository,
    files: &BTreeMap<RawPath, Node>,
    base: &Base<'_>,
) -> Result<(Oid, tree::Trees), TreeError> {
    if base.closed.is_empty() {
        return tree::build(files, repo.format());
    }
    let mut nodes = files.clone();
    nodes.extend(base.closed.iter().map(|(path, oid)| {
        let node = Node {
            mode: FileMode::Tree,
            oid: oid.clone(),
        };
        (path.clone(), node)
    }));
    tree::build(&nodes, repo.format())
}

/// The tree `root` with `edits` applied, and its new tree objects; `None` if there can be no such
/// tree.
pub(crate) fn edited<'a>(
    repo: &Repository,
    root: &Oid,
    edits: impl Iterator<Item = (&'a RawPath, Option<&'a Node>)>,
) -> Result<Option<(Oid, tree::Trees)>, GitError> {
    let edits: Vec<(&RawPath, Option<&Node>)> = edits.collect();
    let mut base = Base::new(repo, root);
    let places = edits
        .iter()
        .flat_map(|(path, _)| colliding_names::places(path.as_bytes()));
    // The top is opened in any case, because the root tree is made from its entries.
    let places: BTreeSet<&[u8]> = places.chain([&b""[..]]).collect();
    base.open_all(|directory| places.contains(directory.as_bytes()))?;
    let mut files = base.files().clone();
    for (path, node) in edits {
        match node {
            Some(node) => files.insert(path.clone(), node.clone()),
            None => files.remove(path),
        };
    }
    let Ok((made, mut trees)) = build(repo, &files, &base) else {
        return Ok(None);
    };
    trees.retain(|oid, _| !base.open.trees.contains_key(oid));
    Ok(Some((made, trees)))
}

/// The node at each captured path.
fn sides(contents: &BTreeMap<RawPath, Content>) -> impl Iterator<Item = (RawPath, Node)> {
    contents
        .iter()
        .map(|(path, content)| (path.clone(), content.side.clone()))
}

/// Size of each captured file.
fn sizes(seen: &[walk::Seen]) -> HashMap<&RawPath, u64> {
    seen.iter().map(|seen| (&seen.path, seen.size)).collect()
}

/// How many paths were added to or removed from the base.
fn came_and_gone(seen: &[walk::Seen], kept: usize, base: &BTreeMap<RawPath, Node>) -> usize {
    let stayed = seen.iter().filter(|one| base.contains_key(&one.path));
    let stayed = stayed.count();
    (seen.len() - stayed) + base.len().saturating_sub(stayed + kept)
}

/// The paths that differ, sorted.
fn differing<'a>(
    base: &'a BTreeMap<RawPath, Node>,
    files: &'a BTreeMap<RawPath, Node>,
) -> BTreeSet<&'a RawPath> {
    let differs = |path: &&RawPath| base.get(*path) != files.get(*path);
    let gone = base.keys().filter(|path| !files.contains_key(*path));
    files.keys().filter(differs).chain(gone).collect()
}

/// The changes at `paths`, with facts that need the contents, and the bytes they had before.
fn compare(
    repo: &Repository,
    paths: BTreeSet<&RawPath>,
    base: &BTreeMap<RawPath, Node>,
    contents: &BTreeMap<RawPath, Content>,
) -> Result<(Vec<Change>, u64), CaptureError> {
    let mut changes = Vec::new();
    for path in paths {
        let content = contents.get(path);
        let (before, after) = (base.get(path), content.map(|content| &content.side));
        let mut change = tree::change(path.clone(), before.cloned(), after.cloned());
        if let Some(content) = content {
            change.binary = content.binary;
            change.link.clone_from(&content.link);
        }
        changes.push(change);
    }
    // Removed content counts too: a binary file turned into text must show.
    let is_blob = |side: &&Node| side.mode != FileMode::Gitlink;
    let before = |change: &Change| {
        change
            .before
            .as_ref()
            .filter(is_blob)
            .map(|it| it.oid.clone())
    };
    let wanted: BTreeSet<Oid> = changes.iter().filter_map(before).collect();
    let mut binary = BTreeSet::new();
    let mut total = 0_u64;
    repo.batch()?.each(&wanted, |oid, _, bytes| {
        total = total.saturating_add(bytes.len() as u64);
        if bytes.contains(&0) {
            binary.insert(oid);
        }
        Ok::<(), GitError>(())
    })?;
    for change in &mut changes {
        change.binary |= before(change).is_some_and(|oid| binary.contains(&oid));
    }
    Ok((changes, total))
}

/// Writes the objects that the base does not have, and counts them.
fn store(
    repo: &Repository,
    base: &Base<'_>,
    contents: BTreeMap<RawPath, Content>,
    trees: &tree::Trees,
    mode: Mode,
) -> Result<usize, CaptureError> {
    let mut writer = pack::Writer::new(repo.format());
    let mut count = BTreeSet::new();
    for content in contents.into_values() {
        if content.new {
            count.insert(content.side.oid);
        }
        if let Some(entry) = content.entry {
            writer.push(entry);
        }
    }
    for (oid, bytes) in trees {
        if !base.open.trees.contains_key(oid) {
            count.insert(oid.clone());
            if mode == Mode::Record {
                writer.push(pack::Entry::named(oid.clone(), Kind::Tree, bytes));
            }
        }
    }
    if mode == Mode::Record {
        repo.write_pack(writer.finish())?;
    }
    Ok(count.len())
}
