#![no_main]

#[path = "../../crates/provost-dialects/tests/fuzz_corpus/operator.rs"]
mod promises;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| promises::worklog(bytes));
