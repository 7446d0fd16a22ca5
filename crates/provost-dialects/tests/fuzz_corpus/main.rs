//! Replays the corpora of the fuzz targets with a stable compiler.

#[cfg(test)]
mod promises;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::promises;

    /// One target: its name, and what it promises about any bytes.
    type Target = (&'static str, fn(&[u8]));

    const TARGETS: &[Target] = &[
        ("front_matter", promises::front_matter),
        ("packet", promises::packet),
        ("yaml", promises::yaml),
    ];

    /// The files of a corpus, by name.
    #[expect(clippy::disallowed_methods, reason = "a corpus is a directory")]
    fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        let read = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            (path.display().to_string(), std::fs::read(&path).unwrap())
        };
        let entries = std::fs::read_dir(root.join(target)).unwrap();
        entries.map(read).collect()
    }

    #[test]
    fn every_reader_keeps_its_promises_about_its_corpus_and_pieces_of_it() {
        for (target, promise) in TARGETS {
            let files = corpus(target);
            assert!(
                files.len() >= 10,
                "{target}: a corpus of {} files",
                files.len()
            );
            for (name, bytes) in files {
                let kept = std::panic::catch_unwind(|| promise(&bytes));
                assert!(kept.is_ok(), "{name}");
                let step = bytes.len() / 64 + 1;
                for cut in (0..bytes.len()).step_by(step) {
                    let mut flipped = bytes.clone();
                    flipped[cut] ^= 0x21;
                    let kept = std::panic::catch_unwind(|| {
                        promise(&bytes[..cut]);
                        promise(&bytes[cut..]);
                        promise(&flipped);
                    });
                    assert!(kept.is_ok(), "{name}, at byte {cut}");
                }
            }
        }
    }
}
