//! System calls that must not work inside a sandbox, each tried once.

#![expect(unsafe_code, reason = "the calls to be refused have no safe wrapper")]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};

use super::sys::{self, Fork};

/// Mounts over `/tmp`.
pub(crate) fn mount() -> Result<(), Errno> {
    // SAFETY: all strings end with a null byte and outlive the call.
    answer(unsafe {
        libc::syscall(
            libc::SYS_mount,
            c"none".as_ptr(),
            c"/tmp".as_ptr(),
            c"tmpfs".as_ptr(),
            0,
            std::ptr::null::<libc::c_void>(),
        )
    })
}

/// Asks for the session keyring, which no namespace confines.
pub(crate) fn keyctl() -> Result<(), Errno> {
    const GET_KEYRING_ID: libc::c_long = 0;
    const SESSION_KEYRING: libc::c_long = -3;
    // SAFETY: the call takes plain numbers.
    answer(unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, SESSION_KEYRING, 0) })
}

/// Sets up a ring that would make calls past the filter.
pub(crate) fn io_uring() -> Result<(), Errno> {
    let mut parameters = [0u8; 120];
    // SAFETY: the parameters are as large as the kernel's structure and outlive the call; the
    // ring's descriptor, if there is one, ends with the process.
    answer(unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) })
}

/// Makes a map for kernel programs.
pub(crate) fn bpf() -> Result<(), Errno> {
    const MAP_CREATE: libc::c_long = 0;
    const ARRAY: u32 = 2;
    let attributes: [u32; 18] = std::array::from_fn(|at| match at {
        0 => ARRAY,
        1..=3 => 4,
        _ => 0,
    });
    let size = size_of_val(&attributes);
    // SAFETY: the attributes are as large as the size says and outlive the call.
    answer(unsafe { libc::syscall(libc::SYS_bpf, MAP_CREATE, attributes.as_ptr(), size) })
}

/// Sets the length of a file by its path.
pub(crate) fn truncate(path: &Path, length: u64) -> Result<(), Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
    let length = i64::try_from(length).map_err(|_| Errno::FBIG)?;
    // SAFETY: the path ends with a null byte and outlives the call.
    answer(unsafe { libc::truncate(path.as_ptr(), length) }.into())
}

/// Attaches to a process without stopping it.
pub(crate) fn trace(pid: i32) -> Result<(), Errno> {
    // SAFETY: seizing neither reads nor writes memory of this process.
    answer(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0) })
}

/// Reads memory of a process. That nothing is at that address says that reading is allowed.
pub(crate) fn read_memory(pid: i32) -> Result<(), Errno> {
    let mut byte = 0u8;
    let local = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(1 << 16),
        iov_len: 1,
    };
    // SAFETY: the local vector is one byte that outlives the call; the remote address is only used
    // in the other process.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    match answer(read as libc::c_long) {
        Err(Errno::FAULT) => Ok(()),
        answer => answer,
    }
}

/// Opens the root by its handle, without a path.
pub(crate) fn open_by_handle() -> Result<(), Errno> {
    // A size, a kind and 128 bytes.
    let mut handle = [0u32; 34];
    handle[0] = 128;
    let mut mount = 0;
    let here = libc::AT_FDCWD;
    // SAFETY: the path ends with a null byte; handle and number outlive the call and are as large
    // as they say.
    answer(unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            here,
            c"/".as_ptr(),
            handle.as_mut_ptr(),
            &raw mut mount,
            0,
        )
    })?;
    // SAFETY: the handle outlives the call and says its size; the descriptor ends with the process.
    answer(unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            here,
            handle.as_mut_ptr(),
            libc::O_RDONLY,
        )
    })
}

/// Makes a handle by which user space handles its own page faults.
pub(crate) fn userfault() -> Result<(), Errno> {
    const USER_MODE_ONLY: libc::c_int = 1;
    // SAFETY: the call takes a plain number; the descriptor ends with the process.
    answer(unsafe { libc::syscall(libc::SYS_userfaultfd, USER_MODE_ONLY | libc::O_CLOEXEC) })
}

/// Sends signal 0 to a process.
pub(crate) fn signal(pid: i32) -> Result<(), Errno> {
    let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    rustix::process::test_kill_process(pid)
}

/// Makes a user namespace, in a child so that this process keeps its own.
pub(crate) fn unshare_user() -> Result<(), Errno> {
    let child = match sys::fork()? {
        Fork::Child => {
            // SAFETY: the call takes plain numbers.
            let result = answer(unsafe { libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER) });
            sys::leave(result.map_or_else(Errno::raw_os_error, |()| 0));
        }
        Fork::Parent(pid) => pid,
    };
    let pid = Pid::from_raw(child).ok_or(Errno::SRCH)?;
    let status = rustix::process::waitpid(Some(pid), WaitOptions::empty())?;
    match status.and_then(|(_, status)| status.exit_status()) {
        Some(0) | None => Ok(()),
        Some(errno) => Err(Errno::from_raw_os_error(errno)),
    }
}

/// Makes a child in a user namespace.
pub(crate) fn clone_user() -> Result<(), Errno> {
    match sys::clone_into(libc::CLONE_NEWUSER)? {
        Fork::Child => sys::leave(0),
        Fork::Parent(_) => Ok(()),
    }
}

/// Makes a child by the call whose flags a filter cannot see.
pub(crate) fn clone_hidden() -> Result<(), Errno> {
    let mut arguments = [0u64; 11];
    arguments[0] = libc::CLONE_NEWUSER.unsigned_abs().into();
    let size = size_of_val(&arguments);
    // SAFETY: the arguments are as large as the size says; without a stack this is a fork of a
    // process with one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size) };
    if pid == 0 {
        sys::leave(0);
    }
    answer(pid)
}

/// Makes a socket of `family`.
pub(crate) fn socket(family: libc::c_int) -> Result<(), Errno> {
    // SAFETY: the call takes plain numbers; the descriptor ends with the process.
    answer(unsafe { libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) }.into())
}

/// Types a letter into the terminal behind the standard input.
pub(crate) fn type_letter() -> Result<(), Errno> {
    let letter = b'x';
    // SAFETY: the letter outlives the call.
    answer(unsafe { libc::ioctl(0, libc::TIOCSTI, &raw const letter) }.into())
}

/// Makes the one device node that needs no privilege, the whiteout of an overlay.
pub(crate) fn whiteout(path: &str) -> Result<(), Errno> {
    let path = CString::new(path).map_err(|_| Errno::INVAL)?;
    // SAFETY: the path ends with a null byte and outlives the call.
    answer(unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR | 0o600, 0) }.into())
}

fn answer(result: libc::c_long) -> Result<(), Errno> {
    if result >= 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
