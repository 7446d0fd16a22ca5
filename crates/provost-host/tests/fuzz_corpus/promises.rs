//! The guarantees of the readers of git's own files, whatever the bytes are.
//!
//! The fuzz targets and the replay of their corpora share these functions.

use provost_core::object::ObjectFormat;
use provost_host::git::ignore::Patterns;
use provost_host::git::index;

const FORMATS: [ObjectFormat; 2] = [ObjectFormat::Sha1, ObjectFormat::Sha256];

/// The entries of an index are sorted and unique, and none leads outside.
pub(crate) fn index(bytes: &[u8]) {
    for format in FORMATS {
        // Git may leave the checksum out, so no fuzzer has to guess one.
        let mut bare = bytes.to_vec();
        bare.resize(bytes.len() + format.width(), 0);
        for index in [bytes, &bare] {
            let Ok(entries) = index::parse(index, format) else {
                continue;
            };
            let keys: Vec<_> = entries
                .iter()
                .map(|entry| (&entry.path, entry.stage))
                .collect();
            assert!(keys.is_sorted_by(|one, other| one < other));
            for entry in &entries {
                let mut parts = entry.path.as_bytes().split(|byte| *byte == b'/');
                assert!(parts.all(|part| !matches!(part, b"" | b"." | b"..")));
            }
        }
    }
}

/// Patterns are parsed and matched in bounded time; without a pattern nothing is ignored.
pub(crate) fn ignore(bytes: &[u8]) {
    // The first lines are the paths, the rest is the file.
    let mut lines = bytes.splitn(3, |byte| *byte == b'\n');
    let (one, other) = (lines.next().unwrap_or(b""), lines.next().unwrap_or(b""));
    let patterns = Patterns::parse(lines.next().unwrap_or(b""));
    for path in [one, other] {
        for is_directory in [false, true] {
            assert_eq!(
                patterns.decide(path, is_directory),
                patterns.decide(path, is_directory)
            );
            assert_eq!(Patterns::parse(b"").decide(path, is_directory), None);
        }
    }
}
