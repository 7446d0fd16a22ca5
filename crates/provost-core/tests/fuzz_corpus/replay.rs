//! Feeds the corpora of the fuzz targets, and pieces of them, to the guarantees of the targets.

use std::path::Path;

/// One target: its name, and its guarantee about any bytes.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// The smallest number of files in a corpus.
const FEWEST: usize = 10;

/// Checks every target against its corpus, whole, cut and with flipped bits.
pub(crate) fn replay(targets: &[Target]) {
    for (target, promise) in targets {
        let files = corpus(target);
        assert!(files.len() >= FEWEST, "{target}: {} files", files.len());
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

/// The files of a corpus, by name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.display().to_string(), std::fs::read(&path).unwrap())
    };
    let entries = std::fs::read_dir(root.join(target)).unwrap();
    entries.map(read).collect()
}
