//! Becomes the nursery of launchers before the standard library gets ready for `main`.
//!
//! Getting ready means reading the map of the memory and preparing for overflows of the stack, which
//! takes as long as the start of a sandbox and is nothing it needs. Where the C library does not
//! say here what the arguments are, [`super::main_if_launcher`] comes soon enough.

#![expect(unsafe_code, reason = "the C library calls this with bare pointers")]

use std::ffi::{CStr, c_char, c_int};

use super::launcher;

/// The C library calls what stands in this section before `main`, with the same arguments.
#[used]
#[unsafe(link_section = ".init_array")]
static EARLY: extern "C" fn(c_int, *const *const c_char) = early;

extern "C" fn early(count: c_int, arguments: *const *const c_char) {
    if count < 2 {
        return;
    }
    // SAFETY: `arguments` has as many strings as `count` says, and they live as long as the process.
    let first = unsafe { CStr::from_ptr(*arguments.add(1)) };
    if first.to_bytes() == launcher::LAUNCHER.as_bytes() {
        launcher::become_launcher();
    }
}
