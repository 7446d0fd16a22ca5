//! A terminal for the payload of a sandbox: its own, so that it cannot type into that of the user.

#![expect(unsafe_code, reason = "these calls have no safe wrapper")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Both ends of a new terminal.
#[derive(Debug)]
pub struct Terminal {
    near: File,
    far: PathBuf,
}

impl Terminal {
    /// Asks the kernel for a new terminal.
    pub fn open() -> io::Result<Self> {
        let near = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOCTTY | libc::O_CLOEXEC)
            .open("/dev/ptmx")?;
        let mut number: libc::c_uint = 0;
        let unlocked: libc::c_int = 0;
        // SAFETY: both calls read or write one integer that outlives them.
        let failed = unsafe {
            libc::ioctl(near.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked) != 0
                || libc::ioctl(near.as_raw_fd(), libc::TIOCGPTN, &raw mut number) != 0
        };
        if failed {
            return Err(io::Error::last_os_error());
        }
        let far = PathBuf::from(format!("/dev/pts/{number}"));
        Ok(Self { near, far })
    }

    /// The end of the driver.
    pub fn near(&self) -> &File {
        &self.near
    }

    /// Path of the payload's end.
    pub fn far(&self) -> &Path {
        &self.far
    }
}
