//! Writes a git index, so that `git status` in a workspace is clean without reading a file.

use std::collections::BTreeMap;

use provost_core::change::{Change, Node};
use provost_core::object::{Mode, ObjectFormat};
use provost_core::path::RawPath;
use provost_fs::stamp::Stamp;

use super::checkout::Written;

/// Bytes of the header: signature, version, number of entries.
const HEAD: usize = 12;

/// Bytes of an entry before the object id: ten numbers.
const NUMBERS: usize = 40;

/// The longest name whose length fits into the flags of an entry.
const LONGEST_NAME: u16 = 0x0fff;

/// The index, version 2, of a checkout of `files` that was just written.
pub(super) fn render(
    format: ObjectFormat,
    files: &BTreeMap<RawPath, Node>,
    written: &Written,
) -> Vec<u8> {
    let mut bytes = b"DIRC".to_vec();
    let count = u32::try_from(files.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&2_u32.to_be_bytes());
    bytes.extend_from_slice(&count.to_be_bytes());
    for (path, side) in files {
        push(&mut bytes, path, side, written.get(path));
    }
    let checksum = format.checksum(&bytes);
    bytes.extend_from_slice(&checksum);
    bytes
}

/// `index`, made by [`render`], with `changes` applied; `None` if it does not parse.
pub(super) fn spliced(
    format: ObjectFormat,
    index: &[u8],
    changes: &[Change],
    written: &Written,
) -> Option<Vec<u8>> {
    let (body, _) = index.split_at_checked(index.len().checked_sub(format.width())?)?;
    let mut rest = body.get(HEAD..)?;
    let mut bytes = body.get(..HEAD)?.to_vec();
    let mut count = 0_u32;
    let mut changes = changes.iter().peekable();
    let mut enter = |bytes: &mut Vec<u8>, change: &Change| {
        if let Some(after) = &change.after {
            push(bytes, &change.path, after, written.get(&change.path));
            count += 1;
        }
    };
    let mut kept = 0_u32;
    while !rest.is_empty() {
        let (entry, name) = first_entry(rest, format)?;
        while let Some(change) = changes.next_if(|change| change.path.as_bytes() < name) {
            enter(&mut bytes, change);
        }
        if let Some(change) = changes.next_if(|change| change.path.as_bytes() == name) {
            enter(&mut bytes, change);
        } else {
            bytes.extend_from_slice(entry);
            kept += 1;
        }
        rest = rest.get(entry.len()..)?;
    }
    for change in changes {
        enter(&mut bytes, change);
    }
    bytes[HEAD - 4..HEAD].copy_from_slice(&(kept + count).to_be_bytes());
    let checksum = format.checksum(&bytes);
    bytes.extend_from_slice(&checksum);
    Some(bytes)
}

/// The first entry of `rest`, and its name.
fn first_entry(rest: &[u8], format: ObjectFormat) -> Option<(&[u8], &[u8])> {
    let start = NUMBERS + format.width() + 2;
    let length = rest.get(start..)?.iter().position(|byte| *byte == 0)?;
    let whole = (start + length) / 8 * 8 + 8;
    Some((rest.get(..whole)?, rest.get(start..start + length)?))
}

fn push(bytes: &mut Vec<u8>, path: &RawPath, side: &Node, written: Option<&Stamp>) {
    let start = bytes.len();
    for word in facts(side.mode, written) {
        bytes.extend_from_slice(&word.to_be_bytes());
    }
    bytes.extend_from_slice(&side.oid.to_bytes());
    let name = path.as_bytes();
    let length = u16::try_from(name.len()).unwrap_or(LONGEST_NAME);
    bytes.extend_from_slice(&length.min(LONGEST_NAME).to_be_bytes());
    bytes.extend_from_slice(name);
    // One to eight zeros, up to a multiple of eight.
    let length = bytes.len() - start;
    bytes.resize(bytes.len() + 8 - length % 8, 0);
}

/// What git stores about a file; of large numbers only the low half.
///
/// Device and owner are left out: they differ in a sandbox, and `core.checkStat` ignores them.
fn facts(mode: Mode, facts: Option<&Stamp>) -> [u32; 10] {
    let mode = u32::from_str_radix(mode.digits(), 8).unwrap_or(0);
    let Some(facts) = facts else {
        return [0, 0, 0, 0, 0, 0, mode, 0, 0, 0];
    };
    let low = |value: u64| u32::try_from(value & u64::from(u32::MAX)).unwrap_or(0);
    let signed = |value: i64| low(u64::try_from(value).unwrap_or(0));
    [
        signed(facts.changed.0),
        low(facts.changed.1),
        signed(facts.modified.0),
        low(facts.modified.1),
        0,
        low(facts.inode),
        mode,
        0,
        0,
        low(facts.size),
    ]
}

#[cfg(test)]
mod tests {
    use crate::git::index;
    use proptest::prelude::*;
    use provost_core::object::Oid;

    use super::*;

    type Files = BTreeMap<RawPath, Node>;

    fn files() -> impl Strategy<Value = Files> {
        let name = prop::sample::select(vec![
            "a",
            "a.b",
            "a/b",
            "a/c",
            "ab",
            "b/a",
            "c",
            "long/name-1",
        ]);
        let node = (0_u8..4).prop_map(|number| Node {
            mode: if number == 0 {
                Mode::Executable
            } else {
                Mode::File
            },
            oid: Oid::try_from(format!("{number:040}")).unwrap(),
        });
        prop::collection::btree_map(name.prop_map(RawPath::new), node, 0..8)
    }

    proptest! {
        #[test]
        fn a_spliced_index_is_the_one_of_the_new_files(before in files(), after in files()) {
            let written = Written::default();
            let paths = before.keys().chain(after.keys());
            let differ = |path: &&RawPath| before.get(*path) != after.get(*path);
            let paths: std::collections::BTreeSet<&RawPath> = paths.filter(differ).collect();
            let change = |path: &RawPath| provost_core::tree::change(
                path.clone(), before.get(path).cloned(), after.get(path).cloned());
            let changes: Vec<Change> = paths.into_iter().map(change).collect();
            let sha1 = ObjectFormat::Sha1;
            let old = render(sha1, &before, &written);
            let new = spliced(sha1, &old, &changes, &written).unwrap();
            prop_assert_eq!(&new, &render(sha1, &after, &written));
            prop_assert_eq!(index::parse(&new, sha1).unwrap().len(), after.len());
        }
    }

    #[test]
    fn what_is_no_index_is_not_spliced() {
        let none = Written::default();
        for bytes in [&b""[..], b"DIRC", &[0; 40], &[1; 80]] {
            assert_eq!(spliced(ObjectFormat::Sha1, bytes, &[], &none), None);
        }
    }
}
