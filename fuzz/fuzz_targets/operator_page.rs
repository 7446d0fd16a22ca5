#![no_main]

#[path = "../../crates/provost-formats/tests/fuzz_corpus/operator.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::operator_page(bytes));
