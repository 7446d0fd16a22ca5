#![no_main]

#[path = "../../crates/provost-sandbox/tests/fuzz_corpus/promises.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::model_messages(bytes));
