//! Replays the corpora of the fuzz targets with a stable compiler.

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

    #[test]
    fn the_readers_of_the_gateway_keep_their_promises_about_their_corpora_and_pieces_of_them() {
        replay::replay(&[
            ("model_messages", promises::model_messages),
            ("model_responses", promises::model_responses),
            ("model_chat", promises::model_chat),
            ("model_content", promises::model_content),
            ("model_events", promises::model_events),
        ]);
    }
}
