//! Lists the files of a checkout that belong to the project.
//!
//! Each list comes with a memory, from which the next list is made without git as long as nothing
//! relevant changed. The caller keeps the memory. A damaged memory, or one of another repository or
//! version, counts as none.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use provost_core::path::RawPath;

use super::file_list_cache::{self, Watch};
use super::run::Place;
use super::{GitError, Repository};
use provost_fs::stamp::{self, StampBytes};

/// First bytes of a memory; every version has its own.
const MAGIC: &[u8] = b"provost-list-1\n";

/// Runtime directory of Provost.
const RUNTIME: &[u8] = b".provost/";

#[derive(Debug)]
pub struct Listed {
    /// Relative to the requested root, deleted files that are not yet committed included.
    pub paths: Vec<RawPath>,
    /// Speeds up the next list; `None` if it is unchanged or cannot be had.
    pub memory: Option<Vec<u8>>,
}

impl Repository {
    /// The files below `root` that git tracks, and new ones that it does not ignore. `memory` came
    /// with an earlier list for the same root; empty means none.
    ///
    /// `root` is the checkout from which this repository was discovered, or a directory in it.
    pub fn project_files(&self, root: &Path, memory: &[u8]) -> Result<Listed, GitError> {
        let nowhere = || GitError::NotARepository {
            path: root.to_owned(),
        };
        let checkout = self.checkout().ok_or_else(nowhere)?;
        if let Some(kept) = Kept::read(memory)
            && kept.git_dir == self.git_dir.as_os_str().as_bytes()
            && kept.watch.holds(self, checkout)
        {
            return Ok(Listed {
                paths: kept.paths,
                memory: None,
            });
        }
        let began = stamp::now();
        let real = root.canonicalize().map_err(|_| nowhere())?;
        let top = checkout.canonicalize().map_err(|_| nowhere())?;
        let below = real.strip_prefix(&top).map_err(|_| nowhere())?;
        let mut prefix = below.as_os_str().as_encoded_bytes().to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        let place = Place {
            git_dir: self.git_dir(),
            objects: None,
            work_tree: Some(checkout),
            index: None,
        };
        let arguments = [
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ];
        let output = self.git().run(&place, &arguments, Vec::new())?;
        let all = || {
            let paths = output.stdout.split(|byte| *byte == 0);
            paths.filter(|path| !path.is_empty() && !path.starts_with(RUNTIME))
        };
        let within = all().filter_map(|path| path.strip_prefix(prefix.as_slice()));
        let paths: Vec<RawPath> = within.map(RawPath::new).collect();
        let watch = Watch::begin(self, &place, &file_list_cache::homes(all()), began);
        let memory = watch.map(|watch| {
            let git_dir = self.git_dir.as_os_str().as_bytes();
            write(git_dir, &watch, &paths)
        });
        Ok(Listed { paths, memory })
    }
}

/// A decoded memory.
struct Kept<'a> {
    git_dir: &'a [u8],
    watch: Watch,
    paths: Vec<RawPath>,
}

/// Encodes a memory: texts and lists are preceded by their length.
fn write(git_dir: &[u8], watch: &Watch, paths: &[RawPath]) -> Vec<u8> {
    let mut out = Vec::with_capacity((watch.places.len() + paths.len()) * 96);
    out.extend(MAGIC);
    text(&mut out, git_dir);
    count(&mut out, watch.own.len());
    for stamp in &watch.own {
        out.push(u8::from(stamp.is_some()));
        out.extend(stamp.unwrap_or([0; stamp::LENGTH]));
    }
    count(&mut out, watch.places.len());
    for (path, stamp) in &watch.places {
        text(&mut out, path.as_bytes());
        out.extend(stamp);
    }
    count(&mut out, paths.len());
    for path in paths {
        text(&mut out, path.as_bytes());
    }
    out
}

fn text(out: &mut Vec<u8>, text: &[u8]) {
    count(out, text.len());
    out.extend(text);
}

fn count(out: &mut Vec<u8>, count: usize) {
    out.extend((count as u64).to_le_bytes());
}

impl<'a> Kept<'a> {
    /// Decodes `bytes`, of which every byte must belong to the memory.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut input = Input(bytes.strip_prefix(MAGIC)?);
        let git_dir = input.text()?;
        let own = input.list(|input| {
            let [there] = *input.chunk()?;
            let stamp: &StampBytes = input.chunk()?;
            Some((there != 0).then_some(*stamp))
        })?;
        let places = input.list(|input| Some((input.path()?, *input.chunk()?)))?;
        let paths = input.list(Input::path)?;
        let watch = Watch { places, own };
        input.0.is_empty().then_some(Self {
            git_dir,
            watch,
            paths,
        })
    }
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn chunk<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(chunk)
    }

    /// How many elements follow, each of at least one byte.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(u64::from_le_bytes(*self.chunk()?)).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let count = self.count()?;
        let (text, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(text)
    }

    fn path(&mut self) -> Option<RawPath> {
        self.text().map(RawPath::new)
    }

    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count()?;
        (0..count).map(|_| one(self)).collect()
    }
}
