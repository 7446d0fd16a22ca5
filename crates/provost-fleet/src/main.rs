//! The program; everything is in the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    provost_fleet::main()
}
