//! Writes and reads git packs without deltas.
//!
//! Packs transport objects: captured blobs into a repository, changed objects into a bundle.
//!
//! # Invariants
//!
//! - Both [`read`] and git can read the output of [`Writer`].
//! - [`read`] treats its input as untrusted: counts and sizes are limited before memory is
//!   allocated, the trailer is checked, deltas and unknown kinds are refused, and every id is
//!   computed from the bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};

use crate::object::{Collision, Kind, ObjectFormat, Oid};

/// The most objects a pack may announce.
pub const MOST_OBJECTS: u32 = 1_000_000;

/// The most inflated bytes of all objects of a pack.
pub const MOST_BYTES: u64 = 1 << 30;

/// Signature, version, count.
const HEADER: usize = 12;

/// One object in its packed form; made on any thread, then pushed into a [`Writer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    oid: Oid,
    encoded: Vec<u8>,
}

impl Entry {
    /// Hashes and deflates the object of `kind` with these `bytes`.
    pub fn new(format: ObjectFormat, kind: Kind, bytes: &[u8]) -> Result<Self, Collision> {
        let oid = format.oid(kind, bytes)?;
        Ok(Self::named(oid, kind, bytes))
    }

    /// Deflates an object with a known id. A wrong id does not make the pack invalid, because no
    /// reader takes ids from it.
    pub fn named(oid: Oid, kind: Kind, bytes: &[u8]) -> Self {
        let mut encoded = announce(kind, bytes.len());
        deflate(&mut encoded, &[bytes]);
        Self { oid, encoded }
    }

    pub fn oid(&self) -> &Oid {
        &self.oid
    }

    /// Its size in a pack, in bytes.
    pub fn size(&self) -> usize {
        self.encoded.len()
    }
}

/// The object of `kind` with these `bytes`, as a loose object of git.
pub fn loose(kind: Kind, bytes: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let head = format!("{} {}\0", kind.word(), bytes.len());
    deflate(&mut file, &[head.as_bytes(), bytes]);
    file
}

/// Appends `parts` to `target`, deflated as one stream.
fn deflate(target: &mut Vec<u8>, parts: &[&[u8]]) {
    let mut deflater = flate2::write::ZlibEncoder::new(target, flate2::Compression::fast());
    // Writing into memory does not fail.
    for part in parts {
        let _ = deflater.write_all(part);
    }
    let _ = deflater.finish();
}

/// The header of an object: its kind and inflated size.
fn announce(kind: Kind, size: usize) -> Vec<u8> {
    let kind: u8 = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let low = |value: usize, mask: usize| u8::try_from(value & mask).unwrap_or(0);
    let mut rest = size >> 4;
    let mut bytes = vec![kind << 4 | low(size, 0x0f)];
    while rest > 0 {
        if let Some(last) = bytes.last_mut() {
            *last |= 0x80;
        }
        bytes.push(low(rest, 0x7f));
        rest >>= 7;
    }
    bytes
}

#[derive(Debug)]
pub struct Writer {
    format: ObjectFormat,
    known: BTreeSet<Oid>,
    body: Vec<u8>,
}

impl Writer {
    pub fn new(format: ObjectFormat) -> Self {
        Self {
            format,
            known: BTreeSet::new(),
            body: vec![0; HEADER],
        }
    }

    /// Adds the object of `kind` with these `bytes`; a duplicate is ignored.
    pub fn add(&mut self, kind: Kind, bytes: &[u8]) -> Result<Oid, Collision> {
        let oid = self.format.oid(kind, bytes)?;
        if !self.known.contains(&oid) {
            self.push(Entry::named(oid.clone(), kind, bytes));
        }
        Ok(oid)
    }

    /// Adds an object made elsewhere; a duplicate is ignored.
    pub fn push(&mut self, entry: Entry) {
        if self.known.insert(entry.oid) {
            self.body.extend_from_slice(&entry.encoded);
        }
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub fn finish(self) -> Vec<u8> {
        let mut pack = self.body;
        let count = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        pack[..4].copy_from_slice(b"PACK");
        pack[4..8].copy_from_slice(&2_u32.to_be_bytes());
        pack[8..HEADER].copy_from_slice(&count.to_be_bytes());
        let trailer = self.format.checksum(&pack);
        pack.extend_from_slice(&trailer);
        pack
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    #[error("the bytes are not a git pack of version 2")]
    NotAPack,
    #[error("the pack's checksum does not fit its bytes")]
    Checksum,
    /// It is truncated or has trailing bytes.
    #[error("the pack ends in the wrong place")]
    Length,
    #[error("the pack holds {objects} objects, more than {MOST_OBJECTS}")]
    TooMany { objects: u32 },
    #[error("the objects of the pack are larger than {MOST_BYTES} bytes")]
    TooLarge,
    /// An object is a delta, or of an unknown kind.
    #[error("object {index} of the pack has the kind {kind}, which is not a whole object")]
    Kind {
        /// From 0.
        index: u32,
        kind: u8,
    },
    #[error("object {index} of the pack does not inflate to its announced size")]
    Damaged {
        /// From 0.
        index: u32,
    },
    #[error("the pack holds {oid} twice")]
    Twice { oid: Oid },
    #[error(transparent)]
    Collision(#[from] Collision),
}

pub type Objects = BTreeMap<Oid, (Kind, Vec<u8>)>;

/// Reads every object of a pack; the ids are computed, not read.
pub fn read(bytes: &[u8], format: ObjectFormat) -> Result<Objects, PackError> {
    let mut objects = Objects::new();
    each(bytes, format, |oid, object, _| {
        objects.insert(oid, object);
    })?;
    Ok(objects)
}

/// The range of an object's bytes in a pack.
type Part = std::ops::Range<usize>;

/// Passes every object of a pack to `take`, with its range in the pack; a duplicate is an error.
fn each(
    bytes: &[u8],
    format: ObjectFormat,
    mut take: impl FnMut(Oid, (Kind, Vec<u8>), Part),
) -> Result<(), PackError> {
    let end = bytes
        .len()
        .checked_sub(format.width())
        .filter(|end| *end >= HEADER)
        .ok_or(PackError::NotAPack)?;
    let (content, trailer) = bytes.split_at(end);
    let word = |at: usize| {
        let mut word = [0; 4];
        word.copy_from_slice(&content[at..at + 4]);
        u32::from_be_bytes(word)
    };
    if &content[..4] != b"PACK" || word(4) != 2 {
        return Err(PackError::NotAPack);
    }
    let count = word(8);
    if count > MOST_OBJECTS {
        return Err(PackError::TooMany { objects: count });
    }
    if format.checksum(content) != trailer {
        return Err(PackError::Checksum);
    }
    let mut rest = &content[HEADER..];
    let mut room = MOST_BYTES;
    let mut known = BTreeSet::new();
    for index in 0..count {
        let begin = content.len() - rest.len();
        let (kind, object) = next(&mut rest, &mut room, index)?;
        let oid = format.oid(kind, &object)?;
        if !known.insert(oid.clone()) {
            return Err(PackError::Twice { oid });
        }
        take(oid, (kind, object), begin..content.len() - rest.len());
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(PackError::Length)
    }
}

/// The index that git needs for a pack, in version 2; every object is read for it.
pub fn index(bytes: &[u8], format: ObjectFormat) -> Result<Vec<u8>, PackError> {
    let mut parts: BTreeMap<Oid, Part> = BTreeMap::new();
    each(bytes, format, |oid, _, part| {
        parts.insert(oid, part);
    })?;
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    let (mut names, mut sums, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
    let mut fan = [0_u32; 256];
    for (oid, part) in &parts {
        let name = oid.to_bytes();
        for count in &mut fan[usize::from(name[0])..] {
            *count += 1;
        }
        names.extend(name);
        let mut sum = flate2::Crc::new();
        sum.update(&bytes[part.clone()]);
        sums.extend(sum.sum().to_be_bytes());
        // The highest bit would mark a 64-bit offset.
        let offset = u32::try_from(part.start).ok().filter(|at| at >> 31 == 0);
        offsets.extend(offset.ok_or(PackError::TooLarge)?.to_be_bytes());
    }
    index.extend(fan.iter().flat_map(|count| count.to_be_bytes()));
    for table in [names, sums, offsets] {
        index.extend(table);
    }
    index.extend_from_slice(&bytes[bytes.len() - format.width()..]);
    let trailer = format.checksum(&index);
    index.extend_from_slice(&trailer);
    Ok(index)
}

/// Reads one object at the start of `rest`, and subtracts its size from `room`.
fn next(rest: &mut &[u8], room: &mut u64, index: u32) -> Result<(Kind, Vec<u8>), PackError> {
    let mut byte = || {
        let (first, others) = rest.split_first().ok_or(PackError::Length)?;
        *rest = others;
        Ok::<u8, PackError>(*first)
    };
    let first = byte()?;
    let mut size = u64::from(first & 0x0f);
    let mut shift = 4;
    let mut more = first & 0x80 != 0;
    while more {
        let part = byte()?;
        // Seven groups of seven bits are far beyond the limit.
        if shift > 46 {
            return Err(PackError::TooLarge);
        }
        size |= u64::from(part & 0x7f) << shift;
        shift += 7;
        more = part & 0x80 != 0;
    }
    let kind = match first >> 4 & 7 {
        1 => Kind::Commit,
        2 => Kind::Tree,
        3 => Kind::Blob,
        4 => Kind::Tag,
        kind => return Err(PackError::Kind { index, kind }),
    };
    *room = room.checked_sub(size).ok_or(PackError::TooLarge)?;
    let mut object = Vec::new();
    let mut inflater = flate2::bufread::ZlibDecoder::new(*rest);
    // One byte beyond the size is read, so that the end of the stream is reached and checked.
    let read = inflater
        .by_ref()
        .take(size + 1)
        .read_to_end(&mut object)
        .map_err(|_| PackError::Damaged { index })?;
    if u64::try_from(read) != Ok(size) {
        return Err(PackError::Damaged { index });
    }
    *rest = inflater.into_inner();
    Ok((kind, object))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORMATS: [ObjectFormat; 2] = [ObjectFormat::Sha1, ObjectFormat::Sha256];

    fn pack_of(blobs: &[&[u8]]) -> Vec<u8> {
        let mut writer = Writer::new(ObjectFormat::Sha1);
        for blob in blobs {
            writer.add(Kind::Blob, blob).unwrap();
        }
        writer.finish()
    }

    fn resealed(mut content: Vec<u8>) -> Vec<u8> {
        let trailer = ObjectFormat::Sha1.checksum(&content);
        content.extend_from_slice(&trailer);
        content
    }

    #[test]
    fn a_pack_that_lies_is_refused() {
        let good = pack_of(&[b"hello"]);
        let content = good[..good.len() - 20].to_vec();
        let altered = |at: usize, value: u8| {
            let mut content = content.clone();
            content[at] = value;
            resealed(content)
        };
        let longer = resealed([content.as_slice(), b"x"].concat());
        let mut bomb = content[..HEADER].to_vec();
        bomb.extend_from_slice(&[0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
        let cases = [
            ("empty", Vec::new(), PackError::NotAPack),
            ("no signature", altered(0, b'p'), PackError::NotAPack),
            ("version 3", altered(7, 3), PackError::NotAPack),
            ("no trailer", content.clone(), PackError::NotAPack),
            (
                "a flipped byte",
                {
                    let mut bad = good.clone();
                    bad[15] ^= 1;
                    bad
                },
                PackError::Checksum,
            ),
            ("one too many announced", altered(11, 2), PackError::Length),
            ("none announced", altered(11, 0), PackError::Length),
            ("bytes after the last", longer, PackError::Length),
            (
                "millions announced",
                altered(8, 1),
                PackError::TooMany {
                    objects: (1 << 24) + 1,
                },
            ),
            (
                "a delta",
                altered(12, 0x75),
                PackError::Kind { index: 0, kind: 7 },
            ),
            (
                "a wrong size",
                altered(12, 0x34),
                PackError::Damaged { index: 0 },
            ),
            ("terabytes announced", resealed(bomb), PackError::TooLarge),
        ];
        for (name, bytes, want) in cases {
            let got = read(&bytes, ObjectFormat::Sha1);
            assert_eq!(got, Err(want), "{name}");
        }
    }

    #[test]
    fn an_object_is_held_once() {
        let objects = read(&pack_of(&[b"a", b"b", b"a"]), ObjectFormat::Sha1).unwrap();
        assert_eq!(objects.len(), 2);
    }

    proptest! {
        #[test]
        fn a_pack_comes_back(
            objects in proptest::collection::vec(
                (0..4_usize, proptest::collection::vec(any::<u8>(), 0..3000)), 0..12),
            sha256: bool,
        ) {
            const KINDS: [Kind; 4] = [Kind::Commit, Kind::Tree, Kind::Blob, Kind::Tag];
            let format = FORMATS[usize::from(sha256)];
            let mut writer = Writer::new(format);
            let mut want = Objects::new();
            for (kind, bytes) in objects {
                let oid = writer.add(KINDS[kind], &bytes).unwrap();
                want.insert(oid, (KINDS[kind], bytes));
            }
            prop_assert_eq!(read(&writer.finish(), format).unwrap(), want);
        }

        #[test]
        fn no_bytes_make_the_reader_fail_otherwise(bytes: Vec<u8>) {
            let content = [b"PACK\0\0\0\x02\0\0\0\x02", bytes.as_slice()].concat();
            let _ = read(&resealed(content), ObjectFormat::Sha1);
        }
    }
}
