//! The system calls that have no safe wrapper.
//!
//! Launcher, init and payload have one thread whenever they fork, so a forked child may allocate
//! and use everything its parent could.

#![expect(unsafe_code, reason = "these calls have no safe wrapper")]

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use rustix::thread::UnshareFlags;

/// Which of the two processes is running after a fork.
pub(crate) enum Fork {
    /// With the pid of the child.
    Parent(i32),
    Child,
}

/// Makes a child in new namespaces, as `fork` does. Only for single-threaded processes.
pub(crate) fn clone_into(namespaces: libc::c_int) -> Result<Fork, Errno> {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: without CLONE_VM and with no new stack this is a fork; the process has one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    forked(pid)
}

/// Gives the calling thread a network namespace of its own.
pub(crate) fn unshare_network() -> Result<(), Errno> {
    // SAFETY: the network is no part of what threads of one process must share.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
}

/// Makes a child. Only for single-threaded processes.
pub(crate) fn fork() -> Result<Fork, Errno> {
    // SAFETY: the process has one thread, so the child's memory is consistent.
    let pid = unsafe { libc::fork() };
    forked(pid.into())
}

/// Runs `life` in a child that shares this process's memory, and waits until the child has executed
/// another program or exited. Cheaper than a fork, which copies all page tables first.
///
/// This process sees afterwards what `life` stores; its return value is the child's exit code.
pub(crate) fn spawn(mut life: &mut dyn FnMut() -> i32) -> Result<i32, Errno> {
    extern "C" fn begin(life: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the pointer is to the reference below, whose owner is suspended until this child
        // is gone, so that no other code uses it.
        let life = unsafe { &mut *life.cast::<&mut dyn FnMut() -> i32>() };
        life()
    }
    const STACK: usize = 512 << 10;
    let mut stack: Vec<u128> = vec![0; STACK / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child has a stack of its own that grows down from its aligned end and outlives
    // it, because this process is suspended until the child has left this memory. There is one
    // thread, so nothing else runs in it meanwhile.
    let pid = unsafe {
        let top = stack.as_mut_ptr_range().end;
        libc::clone(begin, top.cast(), flags, (&raw mut life).cast())
    };
    match forked(pid.into())? {
        Fork::Parent(pid) => Ok(pid),
        Fork::Child => Err(Errno::PERM),
    }
}

fn forked(pid: libc::c_long) -> Result<Fork, Errno> {
    match i32::try_from(pid) {
        Ok(0) => Ok(Fork::Child),
        Ok(pid) if pid > 0 => Ok(Fork::Parent(pid)),
        _ => Err(last()),
    }
}

/// Ends this process without running anything registered by the process it was forked from.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Executes `program`; returns only if that fails.
pub(crate) fn execute(program: &CStr, argv: &[CString], env: &[CString]) -> Errno {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        let ends = [std::ptr::null()];
        strings
            .iter()
            .map(|text| text.as_ptr())
            .chain(ends)
            .collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both arrays end with a null pointer and point to strings that live until the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    last()
}

/// Sets mount attributes on `tree`, and on all mounts below it if `recursive`.
pub(crate) fn mount_attributes(
    tree: BorrowedFd<'_>,
    set: MountAttrFlags,
    recursive: bool,
) -> Result<(), Errno> {
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let attributes = MountAttr {
        set: set.bits().into(),
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    let recursion = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a string, the structure is as large as the size says and outlives the
    // call; the kernel only reads both.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursion,
            &raw const attributes,
            size_of::<MountAttr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(last()) }
}

/// A handle of the mount namespace of a process, if this one may have it.
pub(crate) fn mounts_of(process: BorrowedFd<'_>) -> Option<OwnedFd> {
    // SAFETY: the request takes no argument and answers with a new descriptor or an error.
    let handle = unsafe { libc::ioctl(process.as_raw_fd(), libc::PIDFD_GET_MNT_NAMESPACE, 0) };
    // SAFETY: the descriptor is new and has no other owner.
    (handle >= 0).then(|| unsafe { OwnedFd::from_raw_fd(handle) })
}

/// Makes the descriptor `number` refer to what `file` refers to.
pub(crate) fn place(file: impl AsFd, number: libc::c_int) -> Result<(), Errno> {
    let file = file.as_fd().as_raw_fd();
    // SAFETY: only called for 0, 1 and 2, which nothing in this process owns.
    if unsafe { libc::dup2(file, number) } < 0 {
        return Err(last());
    }
    Ok(())
}

/// Closes every descriptor from 3 on. Only for a process that has opened none.
pub(crate) fn close_inherited() -> Result<(), Errno> {
    // SAFETY: nothing in this process owns a descriptor yet.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    if result == 0 { Ok(()) } else { Err(last()) }
}

/// Marks every descriptor from 3 on to be closed by the next `exec`.
pub(crate) fn close_on_exec() -> Result<(), Errno> {
    // SAFETY: marks descriptors only; none is closed while this process owns it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if result == 0 { Ok(()) } else { Err(last()) }
}

/// Gives every signal its default action and blocks none.
pub(crate) fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: the default action involves no code of ours. The two signals that cannot be
        // changed, and those the C library keeps, answer with an error that does not matter.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: an all-zero set is a valid value that `sigemptyset` then fills in.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Brings the loopback interface of this network namespace up.
pub(crate) fn loopback_up() -> Result<(), Errno> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes plain numbers.
    let socket = unsafe { libc::socket(libc::AF_INET, kind, 0) };
    if socket < 0 {
        return Err(last());
    }
    // SAFETY: the descriptor is new and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: an all-zero request is valid: an empty name and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(*b"lo") {
        *place = byte.cast_signed();
    }
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(0);
    // SAFETY: the request is a whole `ifreq` that outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 { Ok(()) } else { Err(last()) }
}

/// Installs `program` as a seccomp filter for every later system call.
pub(crate) fn filter_calls(program: &[libc::sock_filter]) -> Result<(), Errno> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::TOOBIG)?,
        filter: program.as_ptr().cast_mut(),
    };
    let no_flags: libc::c_ulong = 0;
    // SAFETY: the structure names as many steps as there are and outlives the call; the kernel only
    // reads them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            no_flags,
            &raw const program,
        )
    };
    if result == 0 { Ok(()) } else { Err(last()) }
}

/// The Landlock version of the kernel; 0 if there is none.
pub(crate) fn landlock_version() -> i32 {
    const VERSION: libc::c_long = 1;
    // SAFETY: with no attributes and this flag the kernel only answers with a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0,
            VERSION,
        )
    };
    i32::try_from(version.max(0)).unwrap_or(0)
}

fn last() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
