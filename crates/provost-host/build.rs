//! Links the unwinder of the C compiler into the program itself.
//!
//! A sandbox is started by a re-exec of the program, and each shared library costs every start. The
//! standard library asks for `libgcc_s`; a linker script of that name gives it the same code from
//! the archives. Where the compiler has no such archives, the shared library is used.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_gnu = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|name| name == "gnu");
    let is_native = env::var("HOST").ok() == env::var("TARGET").ok();
    let Ok(out) = env::var("OUT_DIR") else { return };
    if is_gnu && is_native && has_archives() {
        let script = Path::new(&out).join("libgcc_s.so");
        if fs::write(script, "GROUP ( -lgcc_eh -lgcc -lc )\n").is_ok() {
            println!("cargo::rustc-link-search=native={out}");
        }
    }
}

/// Whether the C compiler knows where both archives are; else it answers with the bare name.
fn has_archives() -> bool {
    ["libgcc_eh.a", "libgcc.a"].iter().all(|name| {
        let asked = Command::new("cc")
            .arg(format!("-print-file-name={name}"))
            .output();
        asked.is_ok_and(|answer| answer.stdout.starts_with(b"/"))
    })
}
