//! Chores of the project: tidy tests, corpora, benches.

fn main() {}
