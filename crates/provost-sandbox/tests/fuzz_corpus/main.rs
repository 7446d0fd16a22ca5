//! Replays the corpus of the fuzz target with a stable compiler.

#[cfg(test)]
mod promises;
#[cfg(test)]
#[path = "../../../provost-core/tests/fuzz_corpus/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::{promises, replay};

    #[test]
    fn the_reader_of_messages_keeps_its_promises_about_its_corpus_and_pieces_of_it() {
        replay::replay(&[("message", promises::message)]);
    }
}
