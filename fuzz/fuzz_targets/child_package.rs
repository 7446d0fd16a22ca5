#![no_main]

#[path = "../../crates/provost-formats/tests/fuzz_corpus/package.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::child_package(bytes));
