#![no_main]

#[path = "../../crates/provost-formats/tests/fuzz_corpus/promises.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::front_matter(bytes));
