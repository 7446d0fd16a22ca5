//! Facts of one file alone, independent of the other files.
//!
//! Facts are a function of the bytes, the language and the version of the analyser. So they are
//! cached by the digest of the bytes and used again for the same bytes. Cached facts borrow from
//! the cache file, because making thousands of small copies would take longer than everything else.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::structure::{Confidence, Parse};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts<'a> {
    pub(crate) lines: u32,
    pub(crate) parse: Parse,
    pub(crate) functions: Vec<FunctionFact<'a>>,
    pub(crate) classes: Vec<ClassFact<'a>>,
    pub(crate) imports: Vec<ImportFact<'a>>,
    /// Names that are used, outside their own definition.
    pub(crate) references: Hashes<'a>,
    /// Names that are used inside a definition of the same name, such as recursive calls.
    pub(crate) own: Hashes<'a>,
    /// Words in texts, which may be names.
    pub(crate) mentions: Hashes<'a>,
}

impl Facts<'_> {
    /// Facts of a file of which only the names are known.
    pub(crate) fn names_only(bytes: &[u8], parse: Parse) -> Self {
        Self {
            lines: line_count(bytes),
            parse,
            functions: Vec::new(),
            classes: Vec::new(),
            imports: Vec::new(),
            references: words(bytes).map(name_hash).collect(),
            own: Hashes::default(),
            mentions: Hashes::default(),
        }
    }

    /// Facts of a file that is no source code, but may contain names of it.
    pub(crate) fn mentions_only(bytes: &[u8]) -> Self {
        Self {
            lines: 0,
            parse: Parse::Clean,
            functions: Vec::new(),
            classes: Vec::new(),
            imports: Vec::new(),
            references: Hashes::default(),
            own: Hashes::default(),
            mentions: words(bytes).map(name_hash).collect(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunctionFact<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) line: u32,
    pub(crate) end_line: u32,
    pub(crate) statements: u32,
    pub(crate) cyclomatic: u32,
    pub(crate) cognitive: u32,
    pub(crate) nesting: u32,
    /// Hash of its tokens, with names replaced by their order of appearance and values by their
    /// kind.
    pub(crate) shape: u64,
    /// Hash of its tokens.
    pub(crate) text: u64,
    /// Number of tokens.
    pub(crate) tokens: u32,
    /// The smallest hashes of its shingles.
    pub(crate) sketch: Hashes<'a>,
    /// Its outermost statements.
    pub(crate) block: Block<'a>,
    /// How surely it is unused if no code names it; `None` if it is surely used.
    pub(crate) unused: Option<Confidence>,
    pub(crate) unsound: bool,
    pub(crate) test: bool,
}

/// One of the outermost statements of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatementFact(pub(crate) u64, pub(crate) u32, pub(crate) u32);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClassFact<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) line: u32,
    pub(crate) end_line: u32,
    pub(crate) methods: u32,
    /// Names in it that may be those of classes.
    pub(crate) uses: Hashes<'a>,
    pub(crate) cohesion: Option<u32>,
    pub(crate) unused: Option<Confidence>,
    pub(crate) test: bool,
}

/// One import, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ImportFact<'a> {
    /// The imported module, in the notation of the language.
    pub(crate) target: Cow<'a, str>,
    /// Whether it runs only when needed.
    pub(crate) deferred: bool,
}

/// The outermost statements of a function, as bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Block<'a>(pub(crate) Cow<'a, [[u8; 16]]>);

impl Block<'_> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<StatementFact> {
        self.0.get(at).map(StatementFact::of)
    }

    /// At most `count` statements from `first` on.
    pub(crate) fn run(
        &self,
        first: usize,
        count: usize,
    ) -> impl DoubleEndedIterator<Item = StatementFact> {
        let end = first.saturating_add(count).min(self.len());
        let run = self.0.get(first..end).unwrap_or_default();
        run.iter().map(StatementFact::of)
    }
}

impl FromIterator<StatementFact> for Block<'_> {
    fn from_iter<I: IntoIterator<Item = StatementFact>>(all: I) -> Self {
        Self(all.into_iter().map(StatementFact::bytes).collect())
    }
}

impl StatementFact {
    fn of(bytes: &[u8; 16]) -> Self {
        let part = |from: usize| {
            let part = bytes.get(from..).and_then(<[u8]>::first_chunk);
            u32::from_le_bytes(part.copied().unwrap_or_default())
        };
        let hash = u64::from(part(0)) | (u64::from(part(4)) << 32);
        Self(hash, part(8), part(12))
    }

    fn bytes(self) -> [u8; 16] {
        let upper = u128::from(self.2) << 96 | u128::from(self.1) << 64;
        (upper | u128::from(self.0)).to_le_bytes()
    }
}

/// A sorted set of short hashes, as bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hashes<'a>(pub(crate) Cow<'a, [[u8; 4]]>);

impl Hashes<'_> {
    /// The hashes, sorted.
    pub(crate) fn all(&self) -> impl ExactSizeIterator<Item = u32> {
        self.0.iter().map(|bytes| u32::from_le_bytes(*bytes))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<u32> {
        self.0.get(at).map(|bytes| u32::from_le_bytes(*bytes))
    }
}

impl FromIterator<u32> for Hashes<'_> {
    fn from_iter<I: IntoIterator<Item = u32>>(hashes: I) -> Self {
        let mut list = Vec::new();
        let mut most = MOST_REPEATED;
        for hash in hashes {
            // Repeated hashes are removed, so that memory stays small however much is read.
            if list.len() >= most {
                list.sort_unstable();
                list.dedup();
                most = MOST_REPEATED.max(list.len() * 2);
            }
            list.push(hash);
        }
        list.sort_unstable();
        list.dedup();
        Self(list.into_iter().map(u32::to_le_bytes).collect())
    }
}

/// How many hashes are collected before duplicates are removed.
const MOST_REPEATED: usize = 1 << 16;

/// Adds `value` to the running hash `hash`.
pub(crate) fn mix(hash: u64, value: u64) -> u64 {
    let mixed = (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

pub(crate) fn bytes_hash(bytes: &[u8]) -> u64 {
    folded(0x51_7c_c1_b7, bytes)
}

fn folded(start: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let start = mix(start, bytes.len() as u64);
    let hash = words
        .iter()
        .fold(start, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    if rest.is_empty() {
        return hash;
    }
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    mix(hash, u64::from_le_bytes(word))
}

/// A hash of many bytes, several times faster.
pub(crate) fn long_hash(bytes: &[u8]) -> u64 {
    const LANES: usize = 8;
    // A step depends on the one before; several lanes run in parallel.
    let (blocks, rest) = bytes.as_chunks::<{ LANES * 8 }>();
    let mut lanes = [0; LANES];
    for block in blocks {
        let (words, _) = block.as_chunks();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    let start = mix(bytes.len() as u64, bytes_hash(rest));
    lanes.iter().fold(start, |hash, lane| mix(hash, *lane))
}

/// What follows the last `mark` in a name, or all of it.
pub(crate) fn after_last(name: &str, mark: u8) -> &str {
    // Names are short, so a bytewise search is fastest.
    let at = name.bytes().rposition(|byte| byte == mark);
    at.and_then(|at| name.get(at + 1..)).unwrap_or(name)
}

/// Hashers for internal maps. Each process has its own seed, so that an input cannot be made to
/// collide.
#[derive(Debug, Clone)]
pub(crate) struct Quick(u64);

impl Default for Quick {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for Quick {
    type Hasher = QuickHasher;

    fn build_hasher(&self) -> QuickHasher {
        QuickHasher(self.0)
    }
}

/// A running hash.
#[derive(Debug)]
pub(crate) struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = folded(self.0, bytes);
    }

    fn finish(&self) -> u64 {
        // Maps use both the upper and the lower bits.
        self.0 ^ (self.0 >> 32)
    }
}

/// The upper half of a hash, which is mixed better.
pub(crate) fn short(hash: u64) -> u32 {
    let [a, b, c, d, ..] = mix(hash, 0).to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

pub(crate) fn name_hash(name: &[u8]) -> u32 {
    short(bytes_hash(name))
}

/// Words in a text that may be names.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    bytes
        .split(move |byte| !part(byte))
        .filter(|word| word.first().is_some_and(|first| !first.is_ascii_digit()))
}

pub(crate) fn line_count(bytes: &[u8]) -> u32 {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').count();
    u32::try_from(lines).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_a_sorted_set() {
        let hashes: Hashes<'_> = [7, 3, u32::MAX, 3].into_iter().collect();
        assert_eq!(hashes.all().collect::<Vec<_>>(), [3, 7, u32::MAX]);
        assert_eq!([hashes.get(1), hashes.get(3)], [Some(7), None]);
    }

    #[test]
    fn statements_come_back_from_their_bytes() {
        let all = [1, 2, 3, 4].map(|at| StatementFact(u64::MAX - at, 7, u32::MAX));
        let block: Block<'_> = all.into_iter().collect();
        assert_eq!((block.get(3), block.get(4)), (Some(all[3]), None));
        assert_eq!(block.run(1, 2).collect::<Vec<_>>(), all[1..3]);
        assert_eq!(block.run(3, 9).collect::<Vec<_>>(), all[3..]);
        assert_eq!(block.run(9, 1).count(), 0);
    }

    #[test]
    fn every_bit_of_many_bytes_counts() {
        let bytes: Vec<u8> = (0..300_u32).map(|at| at.to_le_bytes()[0]).collect();
        let whole = long_hash(&bytes);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_ne!(long_hash(&other), whole, "{at}");
            assert_ne!(long_hash(&bytes[..at]), whole, "{at}");
        }
        let mut turned = bytes.clone();
        turned.rotate_left(64);
        assert_ne!(long_hash(&turned), whole);
    }

    #[test]
    fn the_last_part_of_a_name_is_what_follows_the_mark() {
        let parts = ["a.b.c", "c", "a.", ".ä"].map(|name| after_last(name, b'.'));
        assert_eq!(parts, ["c", "c", "", "ä"]);
    }

    #[test]
    fn words_are_what_could_be_names() {
        let found: Vec<&[u8]> = words(b"app.views:run_it 9x a \"nav\"").collect();
        assert_eq!(found, [&b"app"[..], b"views", b"run_it", b"a", b"nav"]);
    }

    #[test]
    fn lines_are_counted_with_and_without_an_end() {
        assert_eq!(
            [line_count(b""), line_count(b"a"), line_count(b"a\nb\n")],
            [0, 1, 2]
        );
    }
}
