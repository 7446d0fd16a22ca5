//! The size of the program and of its machine code, against their limits.

use std::io;
use std::path::Path;

/// The largest program, in bytes.
const PROGRAM: u64 = 25_000_000;

/// The most machine code, in bytes.
const CODE: u64 = 14_000_000;

/// One line about the program at `path`.
pub(super) fn describe(path: &Path) -> io::Result<String> {
    let bytes = std::fs::read(path)?;
    let program = bytes.len() as u64;
    let code = machine_code(&bytes).ok_or_else(|| io::Error::other("it is no ELF program"))?;
    let part = |name: &str, size: u64, most: u64| {
        let kept = if size <= most { "within" } else { "OVER" };
        format!("{name} {}, {kept} {}", megabytes(size), megabytes(most))
    };
    Ok(format!(
        "{}; {}",
        part("the program has", program, PROGRAM),
        part("its machine code", code, CODE)
    ))
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

/// The bytes of the segments that are executed, of a 64-bit ELF file.
fn machine_code(elf: &[u8]) -> Option<u64> {
    let number = |at: usize, length: usize| {
        let bytes = elf.get(at..at + length)?;
        let digits = bytes.iter().rev();
        Some(digits.fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let place = |at: usize, length: usize| usize::try_from(number(at, length)?).ok();
    if elf.get(..4)? != b"\x7fELF" {
        return None;
    }
    let (table, size, count) = (place(0x20, 8)?, place(0x36, 2)?, place(0x38, 2)?);
    let mut code = 0;
    for row in 0..count {
        let at = table + row * size;
        let (is_loaded, is_executed) = (number(at, 4)? == 1, number(at + 4, 4)? & 1 == 1);
        if is_loaded && is_executed {
            code += number(at + 0x20, 8)?;
        }
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_code_is_counted_in_a_program_and_in_nothing_else() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let code = machine_code(&own).unwrap();
        assert!(code > 10_000 && code < own.len() as u64, "{code}");
        assert_eq!(machine_code(b"#!/bin/sh\n"), None);
        assert_eq!(machine_code(&own[..100]), None);
        assert_eq!(megabytes(24_960_000), "24.9 MB");
    }
}
