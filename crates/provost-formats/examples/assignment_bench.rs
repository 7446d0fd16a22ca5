//! Measures how long it takes to judge an assignment, in microseconds on average.

#![expect(clippy::disallowed_types, reason = "a measurement needs a clock")]

use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

use provost_formats::operator::{self, Kind, Strictness, Surroundings};

const PAYLOAD: &[u8] = include_bytes!("../../../tests/corpus/contracts/assignment_ok_serial.json");

const ROUNDS: u32 = 20_000;

fn main() -> std::io::Result<()> {
    let surroundings = Surroundings {
        file_exists: &|_| false,
    };
    let began = Instant::now();
    for _ in 0..ROUNDS {
        let payload = black_box(PAYLOAD);
        let kind = Kind::Assignment;
        let verdict = operator::check(kind, payload, Strictness::Literal, surroundings);
        assert!(black_box(verdict).allow);
    }
    let micros = began.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS);
    writeln!(std::io::stdout(), "assignment {micros:.3}")
}
