//! Replays the corpora of the fuzz targets with a stable compiler.

#[cfg(test)]
mod promises;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a corpus is a directory")]
mod replay;

#[cfg(test)]
mod tests {
    use super::{promises, replay};

    #[test]
    fn every_reader_keeps_its_promises_about_its_corpus_and_pieces_of_it() {
        replay::replay(&[
            ("command", promises::command),
            ("contract", promises::contract),
            ("diff", promises::diff),
            ("pack", promises::pack),
            ("record", promises::record),
            ("scope", promises::scope),
            ("seal", promises::seal),
            ("secret", promises::secret),
            ("tree", promises::tree),
        ]);
    }
}
