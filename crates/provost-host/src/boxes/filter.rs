//! The wall of seccomp: system calls that widen what a process can reach are refused.
//!
//! # Invariants
//!
//! - Internet sockets exist only where the profile has a network, other families never: some of
//!   them, such as vsock, are not confined by a network namespace.
//! - No new user namespace: `clone3`, whose flags a filter cannot see, is answered as unknown, so
//!   that the C library falls back to `clone`.
//! - Calls of another architecture end the process; those of x32 are unknown.

use std::collections::BTreeMap;

use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::error::Failure;
use super::profile::Network;

/// The same number on every architecture.
const CLONE3: u32 = 435;
/// Marks the calls of x32. They share the architecture's name, so a list of numbers would not see
/// them. No other call has a number that high.
const X32_BIT: u32 = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refused whatever their arguments.
const REFUSED: &[i64] = &[
    // Other processes and kernel memory.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_perf_event_open,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    // Calls past this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Keys are not confined by a namespace.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Mounts, roots and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Installs the filter in this process; its children inherit it.
pub(crate) fn install(network: Network) -> Result<(), Failure> {
    let program = compile(network).map_err(|_| Failure::at("seccomp")(Errno::INVAL))?;
    seccompiler::apply_filter(&program).map_err(|_| Failure::at("seccomp")(Errno::NOSYS))
}

fn compile(network: Network) -> Result<BpfProgram, seccompiler::BackendError> {
    let action = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let rules = denied(network)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture)?;
    let rest: BpfProgram = filter.try_into()?;
    Ok(unknown().into_iter().chain(rest).collect())
}

fn denied(network: Network) -> Result<Rules, seccompiler::BackendError> {
    let always = REFUSED.iter().chain(REFUSED_HERE);
    let mut rules: Rules = always.map(|call| (*call, Vec::new())).collect();
    let user_namespace = number(libc::CLONE_NEWUSER);
    let clone = argument(0, SeccompCmpOp::MaskedEq(user_namespace), user_namespace)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![clone])?]);

    // Writing into the input of a terminal.
    let ioctl = [libc::TIOCSTI, libc::TIOCLINUX]
        .into_iter()
        .map(|request| SeccompRule::new(vec![argument(1, SeccompCmpOp::Eq, request)?]))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, ioctl);

    // Asking for the personality, or for the ordinary one, is harmless.
    let personality = [0, u64::from(u32::MAX)]
        .into_iter()
        .map(|value| argument(0, SeccompCmpOp::Ne, value))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_personality, vec![SeccompRule::new(personality)?]);
    rules.insert(libc::SYS_socket, sockets(network)?);
    rules.insert(libc::SYS_socketpair, sockets(Network::Deny)?);
    Ok(rules)
}

/// Which calls of `socket` are refused: every family that is not named.
fn sockets(network: Network) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let families: &[i32] = match network {
        Network::Deny => &[libc::AF_UNIX],
        Network::Loopback => &[
            libc::AF_UNIX,
            libc::AF_INET,
            libc::AF_INET6,
            libc::AF_NETLINK,
        ],
    };
    let none_of = families
        .iter()
        .map(|family| argument(0, SeccompCmpOp::Ne, number(*family)))
        .collect::<Result<_, _>>()?;
    let mut rules = vec![SeccompRule::new(none_of)?];
    if families.contains(&libc::AF_NETLINK) {
        // Listing the interfaces, which programs do, and nothing else.
        rules.push(SeccompRule::new(vec![
            argument(0, SeccompCmpOp::Eq, number(libc::AF_NETLINK))?,
            argument(2, SeccompCmpOp::Ne, number(libc::NETLINK_ROUTE))?,
        ])?);
    }
    Ok(rules)
}

/// A condition on the lower half of an argument, which is all the kernel looks at in these calls.
fn argument(
    index: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)
}

fn number(value: i32) -> u64 {
    value.unsigned_abs().into()
}

/// Steps before all others, for calls that are to look unknown: a filter has one other answer.
///
/// They do not ask for the architecture; on a wrong one they refuse as well as what follows.
fn unknown() -> Vec<sock_filter> {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ANSWER_ERRNO: u32 = 0x0005_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD_NUMBER, 0, 0, 0),
        step(JUMP_IF_EQUAL, 1, 0, CLONE3),
        step(JUMP_IF_AT_LEAST, 0, 1, X32_BIT),
        step(RETURN, 0, 0, ANSWER_ERRNO | libc::ENOSYS.unsigned_abs()),
    ]
}
