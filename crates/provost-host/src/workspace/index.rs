//! Writes a git index, so that `git status` in a workspace is clean without reading a file.

use std::collections::BTreeMap;

use provost_core::change::Node;
use provost_core::object::{Mode, ObjectFormat};
use provost_core::path::RawPath;

use super::checkout::Written;
use super::manifest::Facts;

/// The longest name whose length fits into its flags.
const LONGEST_NAME: u16 = 0x0fff;

/// The index, of version 2, of a checkout of `files` that was just written.
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
        let start = bytes.len();
        for word in facts(side.mode, written.get(path)) {
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
    let checksum = format.checksum(&bytes);
    bytes.extend_from_slice(&checksum);
    bytes
}

/// What git remembers of a file; of large numbers it keeps the low half.
///
/// Device and owner are left out: they differ in a box, and git is told not to look.
fn facts(mode: Mode, facts: Option<&Facts>) -> [u32; 10] {
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
