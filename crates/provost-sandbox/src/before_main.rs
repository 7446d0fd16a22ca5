//! Becomes the fork server before the standard library sets up `main`.
//!
//! The set-up reads the memory map and prepares for stack overflows. That takes as long as the
//! start of a sandbox, and the fork server needs none of it. Where the C library does not pass the
//! arguments here, [`super::main_if_launcher`] does the same later.

#![expect(unsafe_code, reason = "the C library calls this with bare pointers")]

use std::ffi::{CStr, c_char, c_int};

use super::launcher;

/// The C library calls the functions in this section before `main`, with the same arguments.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn(c_int, *const *const c_char) = before_main;

extern "C" fn before_main(count: c_int, arguments: *const *const c_char) {
    if count < 2 {
        return;
    }
    // SAFETY: `arguments` has as many strings as `count` says, and they live as long as the
    // process.
    let first = unsafe { CStr::from_ptr(*arguments.add(1)) };
    if first.to_bytes() == launcher::LAUNCHER.as_bytes() {
        launcher::become_launcher();
    }
}
