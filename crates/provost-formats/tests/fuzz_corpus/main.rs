//! Replays the corpora of the fuzz targets with a stable compiler.

#[cfg(test)]
mod operator;
#[cfg(test)]
mod package;
#[cfg(test)]
mod promises;
#[cfg(test)]
#[path = "../../../provost-core/tests/fuzz_corpus/replay.rs"]
#[expect(clippy::disallowed_methods, reason = "a corpus is a directory")]
mod replay;

#[cfg(test)]
mod tests {
    use super::{operator, package, promises, replay};

    #[test]
    fn every_reader_keeps_its_promises_about_its_corpus_and_pieces_of_it() {
        replay::replay(&[
            ("child_package", package::child_package),
            ("front_matter", promises::front_matter),
            ("operator", operator::operator),
            ("operator_page", operator::operator_page),
            ("packet", promises::packet),
            ("worklog", operator::worklog),
            ("yaml", promises::yaml),
        ]);
    }
}
