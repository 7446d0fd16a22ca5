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
    fn the_readers_of_git_files_keep_their_promises_about_their_corpora_and_pieces_of_them() {
        replay::replay(&[("ignore", promises::ignore), ("index", promises::index)]);
    }
}
