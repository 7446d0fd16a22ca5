//! Caches facts by the digest of their bytes, and digests by stat data.
//!
//! Everything here can be made again. A damaged file, or one of another version, counts as none.
//! Files are replaced whole, so of two processes the later one wins and neither reads half a file.
//! Facts are spread over shards, so that one edited file costs the writing of one shard.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_core::path::RawPath;
use provost_fs::atomic::{self, Durability};
use provost_fs::stamp::StampBytes;
use rayon::iter::{IntoParallelIterator as _, IntoParallelRefIterator as _, ParallelIterator as _};
use sha2::{Digest as _, Sha256};

use crate::codec;
use crate::facts::{Facts, Quick, bytes_hash, long_hash};
use crate::language;
use crate::tree::{Entry, KnownFiles, Sha};

/// First bytes of a file; every version has its own.
const MAGIC: &[u8; 16] = b"provost-lens-03\n";

/// Bytes of the header: magic, and the hash of the rest.
const HEAD: usize = MAGIC.len() + size_of::<u64>();

/// Over how many files facts are spread.
const SHARDS: usize = 64;

/// The largest shard, in bytes; beyond it only facts of the last report are kept.
const LARGEST_SHARD: usize = 16 * 1024 * 1024;

/// The largest list of files, in bytes.
const LARGEST_MANIFEST: u64 = 1 << 30;

/// How many files of one kind are kept, one per root.
const MOST_MANIFESTS: usize = 32;

/// Prefixes of the files about one root: stat data of its files, memory of the file list, and
/// memory of the imports.
const FILES: &str = "files-";
const LISTS: &str = "list-";
const IMPORTS: &str = "imports-";

/// After this time an unfinished file counts as abandoned.
const ABANDONED: Duration = Duration::from_mins(10);

/// The name under which files of no language are kept.
const TEXT: &str = "text";

/// Key of facts: language and digest.
type Key = [u8; 40];

fn key(place: Option<usize>, sha: &Sha) -> Key {
    let name = place.map_or(TEXT, language::name);
    let mut key = [0; 40];
    key[..32].copy_from_slice(sha);
    key[32..].copy_from_slice(&bytes_hash(name.as_bytes()).to_le_bytes());
    key
}

#[derive(Debug)]
pub(crate) struct Cache {
    directory: Option<PathBuf>,
    shards: Vec<Shard>,
}

#[derive(Debug, Default)]
struct Shard {
    bytes: Vec<u8>,
    places: HashMap<Key, (usize, usize), Quick>,
}

impl Cache {
    /// The cache in `directory`, which need not exist; without a directory nothing is remembered.
    pub(crate) fn open(directory: Option<&Path>) -> Self {
        let directory = directory.map(Path::to_owned);
        let shard = |number: usize| match &directory {
            Some(directory) => Shard::read(&directory.join(shard_name(number))),
            None => Shard::default(),
        };
        let shards = (0..SHARDS).into_par_iter().map(shard).collect();
        Self { directory, shards }
    }

    /// The facts about bytes with this digest, if they are known.
    pub(crate) fn get(&self, place: Option<usize>, sha: &Sha) -> Option<Facts<'_>> {
        let key = key(place, sha);
        let shard = &self.shards[usize::from(sha[0]) % SHARDS];
        let (from, to) = *shard.places.get(&key)?;
        codec::decode(shard.bytes.get(from..to)?)
    }

    /// Keeps the facts of `entries`.
    pub(crate) fn save(&self, entries: &[Entry<'_>]) -> io::Result<()> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let mut fresh: Vec<Vec<&Entry<'_>>> = vec![Vec::new(); SHARDS];
        let mut used: HashSet<Key> = HashSet::new();
        for entry in entries {
            let Some(said) = &entry.said else { continue };
            used.insert(key(said.language, &entry.sha));
            if said.fresh {
                fresh[usize::from(entry.sha[0]) % SHARDS].push(entry);
            }
        }
        let todo: Vec<usize> = (0..SHARDS).filter(|at| !fresh[*at].is_empty()).collect();
        if todo.is_empty() {
            return Ok(());
        }
        make(directory)?;
        sweep(directory);
        todo.par_iter().try_for_each(|at| {
            let bytes = self.shards[*at].with(&fresh[*at], &used);
            replace(directory, &shard_name(*at), bytes)
        })
    }
}

impl Shard {
    fn read(path: &Path) -> Self {
        let Some(bytes) = whole(path, LARGEST_SHARD as u64 * 4) else {
            return Self::default();
        };
        let mut places = HashMap::default();
        let mut at = HEAD;
        while let Some((key, from, to)) = record(&bytes, at) {
            places.insert(key, (from, to));
            at = to;
        }
        Self { bytes, places }
    }

    /// The records of this shard and of `fresh`; if that is too much, only those `used`.
    fn with(&self, fresh: &[&Entry<'_>], used: &HashSet<Key>) -> Vec<u8> {
        let mut bytes = headed(self.bytes.len() + 4096);
        let mut seen = HashSet::new();
        for entry in fresh {
            let Some(said) = &entry.said else { continue };
            let key = key(said.language, &entry.sha);
            if seen.insert(key)
                && let Some(text) = codec::encode(&said.facts)
            {
                push(&mut bytes, &key, &text);
            }
        }
        let crowded = bytes.len() + self.bytes.len() > LARGEST_SHARD;
        let mut keys: Vec<(&Key, &(usize, usize))> = self.places.iter().collect();
        keys.sort_unstable();
        for (key, (from, to)) in keys {
            if seen.contains(key) || (crowded && !used.contains(key)) {
                continue;
            }
            push(&mut bytes, key, &self.bytes[*from..*to]);
        }
        bytes
    }
}

fn push(bytes: &mut Vec<u8>, key: &Key, text: &[u8]) {
    if let Ok(length) = u32::try_from(text.len()) {
        bytes.extend(key);
        bytes.extend(length.to_le_bytes());
        bytes.extend(text);
    }
}

/// The record at `at`: its key, and the range of its text.
fn record(bytes: &[u8], at: usize) -> Option<(Key, usize, usize)> {
    let (key, rest) = bytes.get(at..)?.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let from = at + size_of::<Key>() + size_of::<u32>();
    (rest.len() >= length).then_some((*key, from, from + length))
}

fn shard_name(number: usize) -> String {
    format!("facts-{number:02}")
}

/// Stat data and digests of the files of one root.
#[derive(Debug)]
pub(crate) struct Manifest {
    directory: Option<PathBuf>,
    name: String,
    bytes: Vec<u8>,
}

impl Manifest {
    /// The list for `root` in `directory`, which need not exist.
    pub(crate) fn open(directory: Option<&Path>, root: &Path) -> Self {
        let name = name_of(FILES, root);
        let bytes = directory.and_then(|place| whole(&place.join(&name), LARGEST_MANIFEST));
        Self {
            directory: directory.map(Path::to_owned),
            name,
            bytes: bytes.unwrap_or_default(),
        }
    }

    pub(crate) fn known(&self) -> KnownFiles<'_> {
        let mut known = KnownFiles::default();
        known.reserve(self.bytes.len() / 128);
        let mut rest = self.bytes.get(HEAD..).unwrap_or_default();
        while let Some((path, row, tail)) = row(rest) {
            known.insert(path, row);
            rest = tail;
        }
        known
    }

    /// The known paths, in their order.
    pub(crate) fn paths(&self) -> Vec<RawPath> {
        let mut rest = self.bytes.get(HEAD..).unwrap_or_default();
        let mut paths = Vec::with_capacity(rest.len() / 128);
        while let Some((path, _, tail)) = row(rest) {
            paths.push(RawPath::new(path));
            rest = tail;
        }
        paths
    }

    /// Keeps the stat data of `entries`.
    pub(crate) fn save(&self, entries: &[Entry<'_>]) -> io::Result<()> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let mut bytes = headed(entries.len() * 140);
        for entry in entries {
            let path = entry.path.as_bytes();
            if let Ok(length) = u32::try_from(path.len()) {
                // A file without trusted stat data is listed all the same, so that it is read
                // early.
                bytes.extend(entry.known.unwrap_or([0; 60]));
                bytes.extend(entry.sha);
                bytes.extend(length.to_le_bytes());
                bytes.extend(path);
            }
        }
        if bytes.get(HEAD..) == self.bytes.get(HEAD..) {
            return Ok(());
        }
        make(directory)?;
        if self.bytes.is_empty() {
            prune(directory, FILES);
        }
        replace(directory, &self.name, bytes)
    }
}

/// Bytes that another part of the analysis wants back at the next analysis of the same root.
#[derive(Debug)]
pub(crate) struct Memory {
    directory: Option<PathBuf>,
    kind: &'static str,
    name: String,
    bytes: Vec<u8>,
}

impl Memory {
    /// The memory of the file list of `root`, in `directory`, which need not exist.
    pub(crate) fn of_list(directory: Option<&Path>, root: &Path) -> Self {
        Self::open(LISTS, directory, root)
    }

    /// The memory of the imports in `root`.
    pub(crate) fn of_imports(directory: Option<&Path>, root: &Path) -> Self {
        Self::open(IMPORTS, directory, root)
    }

    fn open(kind: &'static str, directory: Option<&Path>, root: &Path) -> Self {
        let name = name_of(kind, root);
        let bytes = directory.and_then(|place| whole(&place.join(&name), LARGEST_MANIFEST));
        Self {
            directory: directory.map(Path::to_owned),
            kind,
            name,
            bytes: bytes.unwrap_or_default(),
        }
    }

    /// The kept bytes; empty if there are none.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(HEAD..).unwrap_or_default()
    }

    /// Keeps `bytes` for the next time.
    pub(crate) fn save(&self, bytes: &[u8]) -> io::Result<()> {
        let Some(directory) = self.directory.as_ref().filter(|_| bytes != self.bytes()) else {
            return Ok(());
        };
        make(directory)?;
        if self.bytes.is_empty() {
            prune(directory, self.kind);
        }
        let mut file = headed(bytes.len());
        file.extend(bytes);
        replace(directory, &self.name, file)
    }
}

/// The name of a file about `root`.
fn name_of(kind: &str, root: &Path) -> String {
    let digest = Sha256::digest(root.as_os_str().as_encoded_bytes());
    format!("{kind}{}", &provost_core::object::hex(&digest)[..16])
}

type Row<'a> = (&'a [u8], (&'a StampBytes, &'a Sha), &'a [u8]);

/// The first row of a list, and the rest.
fn row(bytes: &[u8]) -> Option<Row<'_>> {
    let (known, rest) = bytes.split_first_chunk()?;
    let (sha, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (path, rest) = rest.split_at_checked(length)?;
    Some((path, (known, sha), rest))
}

/// The bytes of a cache file, header included, if it is complete.
///
/// The hash detects damage only: a process that can write here can write anything.
fn whole(path: &Path, largest: u64) -> Option<Vec<u8>> {
    if fs::metadata(path).ok()?.len() > largest {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    let rest = bytes.strip_prefix(MAGIC.as_slice())?;
    let (hash, body) = rest.split_first_chunk()?;
    (long_hash(body) == u64::from_le_bytes(*hash)).then_some(bytes)
}

/// The header of a cache file, in a buffer for `capacity` bytes.
fn headed(capacity: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + capacity);
    bytes.extend(MAGIC);
    bytes.resize(HEAD, 0);
    bytes
}

/// Replaces a cache file whole by `bytes`, which begin with a header.
fn replace(directory: &Path, name: &str, mut bytes: Vec<u8>) -> io::Result<()> {
    let hash = long_hash(bytes.get(HEAD..).unwrap_or_default());
    for (place, byte) in bytes.iter_mut().skip(MAGIC.len()).zip(hash.to_le_bytes()) {
        *place = byte;
    }
    atomic::replace(&directory.join(name), &bytes, 0o600, Durability::Cache)
}

fn make(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// Removes what killed processes did not finish.
fn sweep(directory: &Path) {
    for (path, age) in aged(directory) {
        if atomic::is_unfinished(&path) && age > ABANDONED {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes the files of one kind that were written longest ago, if there are too many.
fn prune(directory: &Path, kind: &str) {
    let list = |(path, _): &(PathBuf, Duration)| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(kind))
    };
    let mut lists: Vec<(PathBuf, Duration)> = aged(directory).into_iter().filter(list).collect();
    lists.sort_by_key(|(_, age)| *age);
    for (path, _) in lists.into_iter().skip(MOST_MANIFESTS) {
        let _ = fs::remove_file(path);
    }
}

/// The files of a directory, and their age.
fn aged(directory: &Path) -> Vec<(PathBuf, Duration)> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let age = |entry: fs::DirEntry| {
        let written = entry.metadata().ok()?.modified().ok()?;
        Some((entry.path(), written.elapsed().unwrap_or_default()))
    };
    entries.flatten().filter_map(age).collect()
}
