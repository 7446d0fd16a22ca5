//! The seccomp filter: refuses system calls that widen what a process can reach.
//!
//! # Invariants
//!
//! - Internet sockets exist only where the profile has a network, other families never: some of
//!   them, such as vsock, are not confined by a network namespace.
//! - No new user namespace: `clone3`, whose flags a filter cannot see, fails with ENOSYS, so that
//!   the C library falls back to `clone`.
//! - No set-user-id or set-group-id bit is set: `openat2`, whose mode a filter cannot see, fails
//!   with ENOSYS too.
//! - A call of another architecture kills the process; those of x32 fail with ENOSYS.

mod lone;
mod modes;

use std::collections::BTreeMap;

use provost_core::tier::Tier;

use super::bpf::{self, Decision, Step};
use super::error::Failure;
use super::profile::{Network, Profile};
use super::sys;

const ALLOW: Decision = Decision::Allow;
const REFUSE: Decision = Decision::Errno(libc::EPERM.unsigned_abs());
const UNKNOWN: Decision = Decision::Errno(libc::ENOSYS.unsigned_abs());

/// The same number on every architecture.
const CLONE3: u32 = 435;
/// Marks the calls of x32. They share the architecture's number, so a list of call numbers would
/// miss them. No other call has a number that high.
const X32_BIT: u32 = 0x4000_0000;

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
    // Keeps pages in a pipe after the process has unmapped them, where no count finds them.
    libc::SYS_vmsplice,
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
pub(crate) fn install(profile: &Profile) -> Result<(), Failure> {
    let mut rules = rules(&profile.network);
    if profile.tier == Tier::Landlock {
        lone::add(&mut rules);
    }
    sys::filter_calls(&program(&rules)).map_err(Failure::at("seccomp"))
}

fn program(rules: &BTreeMap<u32, Decision>) -> Vec<Step> {
    bpf::program(rules, X32_BIT, &UNKNOWN)
}

fn rules(network: &Network) -> BTreeMap<u32, Decision> {
    let always = REFUSED.iter().chain(REFUSED_HERE);
    let mut rules: BTreeMap<u32, Decision> = always.map(|call| (number(*call), REFUSE)).collect();
    rules.insert(CLONE3, UNKNOWN);
    rules.insert(number(libc::SYS_clone), no_user_namespace());
    rules.insert(number(libc::SYS_ioctl), no_terminal_input());
    rules.insert(number(libc::SYS_personality), ordinary_personality());
    rules.insert(number(libc::SYS_socket), sockets(network));
    rules.insert(number(libc::SYS_socketpair), sockets(&Network::Deny));
    modes::add(&mut rules);
    rules
}

fn no_user_namespace() -> Decision {
    Decision::AnyBit {
        argument: 0,
        bits: libc::CLONE_NEWUSER.cast_unsigned(),
        then: Box::new(REFUSE),
        otherwise: Box::new(ALLOW),
    }
}

/// A write into the input of a terminal would type in the user's name.
fn no_terminal_input() -> Decision {
    let requests = [libc::TIOCSTI, libc::TIOCLINUX];
    Decision::Equal {
        argument: 1,
        cases: requests.map(|request| (number(request), REFUSE)).into(),
        otherwise: Box::new(ALLOW),
    }
}

/// Asking for the personality, or for the ordinary one, is harmless.
fn ordinary_personality() -> Decision {
    Decision::Equal {
        argument: 0,
        cases: vec![(0, ALLOW), (u32::MAX, ALLOW)],
        otherwise: Box::new(REFUSE),
    }
}

/// Every family that is not named is refused.
fn sockets(network: &Network) -> Decision {
    // Listing the interfaces, which programs do, and nothing else.
    let routes = Decision::Equal {
        argument: 2,
        cases: vec![(libc::NETLINK_ROUTE.cast_unsigned(), ALLOW)],
        otherwise: Box::new(REFUSE),
    };
    let families = match network {
        Network::Deny => vec![(libc::AF_UNIX, ALLOW)],
        Network::Loopback | Network::Proxy(_) => vec![
            (libc::AF_UNIX, ALLOW),
            (libc::AF_INET, ALLOW),
            (libc::AF_INET6, ALLOW),
            (libc::AF_NETLINK, routes),
        ],
    };
    let unsigned = |(family, decision): (i32, Decision)| (family.cast_unsigned(), decision);
    Decision::Equal {
        argument: 0,
        cases: families.into_iter().map(unsigned).collect(),
        otherwise: Box::new(REFUSE),
    }
}

/// The number of a call or a request as the kernel sees it. One that does not fit never occurs.
fn number(value: impl TryInto<u32>) -> u32 {
    value.try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NATIVE: u32 = bpf::NATIVE;

    fn answer(network: &Network, call: i64, arguments: [u64; 6]) -> u32 {
        bpf::run(&program(&rules(network)), NATIVE, number(call), arguments)
    }

    fn errno(value: i32) -> u32 {
        bpf::ERRNO | value.unsigned_abs()
    }

    #[test]
    fn a_call_is_refused_exactly_if_it_is_listed() {
        let listed: Vec<i64> = REFUSED.iter().chain(REFUSED_HERE).copied().collect();
        let conditional = [
            libc::SYS_clone,
            libc::SYS_ioctl,
            libc::SYS_personality,
            libc::SYS_socket,
            libc::SYS_socketpair,
        ];
        for call in (0..1000).filter(|call| !conditional.contains(call)) {
            let want = if listed.contains(&call) {
                errno(libc::EPERM)
            } else if [i64::from(CLONE3), libc::SYS_openat2].contains(&call) {
                errno(libc::ENOSYS)
            } else {
                bpf::ALLOW
            };
            assert_eq!(answer(&Network::Deny, call, [0; 6]), want, "{call}");
        }
    }

    /// Arguments of a call that are 0 but for one.
    fn only(index: usize, value: impl Into<i64>) -> [u64; 6] {
        let mut arguments = [0; 6];
        arguments[index] = value.into().cast_unsigned();
        arguments
    }

    #[test]
    fn arguments_decide_where_a_call_has_harmless_uses() {
        use libc::{SYS_clone as clone, SYS_ioctl as ioctl, SYS_personality as personality};
        let typing = number(libc::TIOCSTI);
        let cases = [
            ("a clone", clone, only(0, libc::SIGCHLD), true),
            ("a user", clone, only(0, libc::CLONE_NEWUSER), false),
            ("a size", ioctl, only(1, number(libc::TIOCGWINSZ)), true),
            ("typing", ioctl, only(1, typing), false),
            (
                "high bits",
                ioctl,
                only(1, i64::from(typing) + (1 << 32)),
                false,
            ),
            ("asking", personality, only(0, u32::MAX), true),
            ("fixed places", personality, only(0, 0x0004_0000), false),
        ];
        for (name, call, arguments, allowed) in cases {
            let want = if allowed {
                bpf::ALLOW
            } else {
                errno(libc::EPERM)
            };
            assert_eq!(answer(&Network::Deny, call, arguments), want, "{name}");
        }
    }

    #[test]
    fn sockets_are_of_the_families_a_network_has() {
        let cases = [
            ("unix", Network::Deny, libc::AF_UNIX, 0, true),
            ("internet", Network::Deny, libc::AF_INET, 0, false),
            ("own internet", Network::Loopback, libc::AF_INET6, 0, true),
            (
                "routes",
                Network::Loopback,
                libc::AF_NETLINK,
                libc::NETLINK_ROUTE,
                true,
            ),
            (
                "audit",
                Network::Loopback,
                libc::AF_NETLINK,
                libc::NETLINK_AUDIT,
                false,
            ),
            ("vsock", Network::Loopback, libc::AF_VSOCK, 0, false),
            (
                "to a proxy",
                Network::Proxy(Vec::new()),
                libc::AF_INET,
                0,
                true,
            ),
            (
                "past it",
                Network::Proxy(Vec::new()),
                libc::AF_VSOCK,
                0,
                false,
            ),
        ];
        for (name, network, family, protocol, allowed) in cases {
            let mut arguments = only(0, family);
            arguments[2] = u64::from(protocol.cast_unsigned());
            let want = if allowed {
                bpf::ALLOW
            } else {
                errno(libc::EPERM)
            };
            assert_eq!(
                answer(&network, libc::SYS_socket, arguments),
                want,
                "{name}"
            );
        }
        let pair = answer(
            &Network::Loopback,
            libc::SYS_socketpair,
            only(0, libc::AF_INET),
        );
        assert_eq!(pair, errno(libc::EPERM));
    }

    #[test]
    fn another_architecture_is_killed_and_x32_is_unknown() {
        let steps = program(&rules(&Network::Deny));
        let foreign = bpf::run(&steps, NATIVE ^ 1, 0, [0; 6]);
        assert_eq!(foreign, bpf::KILL);
        let x32 = bpf::run(&steps, NATIVE, X32_BIT | 1, [0; 6]);
        assert_eq!(x32, errno(libc::ENOSYS));
    }
}
