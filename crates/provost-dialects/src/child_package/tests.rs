//! Facts about version 1 beside the corpus.
