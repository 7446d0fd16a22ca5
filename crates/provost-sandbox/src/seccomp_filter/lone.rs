//! What the filter refuses in addition in tier `landlock`, where no namespace hides it.

use std::collections::BTreeMap;

use super::{ALLOW, Decision, REFUSE, number};

const UNSUPPORTED: Decision = Decision::Errno(libc::EOPNOTSUPP.unsigned_abs());

/// Refused whatever their arguments.
const REFUSED: &[i64] = &[
    // Landlock does not restrict connections to a socket in the file system, and some of those lead
    // out of every sandbox: a container engine's, a key agent's. Another call makes pairs, see
    // [`pairs`].
    libc::SYS_socket,
    // Memory, semaphores and queues that all programs of a user share by number or name.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Other processes of the user.
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
];

/// Landlock does not restrict these: they fail as on a file system without such attributes.
const ATTRIBUTES: &[i64] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // Their newer forms, with the same number on every architecture.
    463, // setxattrat
    466, // removexattrat
    469, // file_setattr
];

/// Requests that change flags of a file that is only open for reading; the last one forbids writing
/// it for ever. The numbers are from the kernel's headers, and the same on all 64-bit
/// architectures.
const FLAGS: [u32; 4] = [
    0x4008_6602, // FS_IOC_SETFLAGS
    0x4008_7602, // FS_IOC_SETVERSION
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x4080_6685, // FS_IOC_ENABLE_VERITY
];

/// Calls about a process, with the argument that names it: only the caller itself is permitted.
const ABOUT: [(i64, u32); 7] = [
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_migrate_pages, 0),
    (libc::SYS_move_pages, 0),
];

/// Adds to `rules` what namespaces would have restricted.
pub(super) fn add(rules: &mut BTreeMap<u32, Decision>) {
    let all = |calls: &[i64], decision: &Decision| -> Vec<(u32, Decision)> {
        let rule = |call: &i64| (number(*call), decision.clone());
        calls.iter().map(rule).collect()
    };
    rules.extend(all(REFUSED, &REFUSE));
    rules.extend(all(ATTRIBUTES, &UNSUPPORTED));
    rules.insert(number(libc::SYS_socketpair), pairs());
    if let Some(Decision::Equal { cases, .. }) = rules.get_mut(&number(libc::SYS_ioctl)) {
        cases.extend(FLAGS.map(|request| (request, UNSUPPORTED)));
    }
    rules.extend(ABOUT.map(|(call, argument)| (number(call), only(argument, &ALLOW))));
    // The first argument says what the second one names: a process, or all processes of a user.
    let own = only(1, &ALLOW);
    for call in [libc::SYS_setpriority, libc::SYS_ioprio_set] {
        let first = u32::from(call == libc::SYS_ioprio_set);
        let kinds = vec![(first, own.clone())];
        rules.insert(number(call), equal(0, kinds));
    }
}

/// Permits only pairs of streams. One end of a datagram pair could send or connect to any socket in
/// the file system. The kernel knows two flags beside the type.
fn pairs() -> Decision {
    let flags = [
        0,
        libc::SOCK_CLOEXEC,
        libc::SOCK_NONBLOCK,
        libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
    ];
    let of = |kind: i32| flags.map(|flags| (number(kind | flags), ALLOW));
    let kinds = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(of).concat();
    equal(0, vec![(number(libc::AF_UNIX), equal(1, kinds))])
}

/// Allowed as `then` says if the argument is 0.
fn only(argument: u32, then: &Decision) -> Decision {
    equal(argument, vec![(0, then.clone())])
}

fn equal(argument: u32, cases: Vec<(u32, Decision)>) -> Decision {
    Decision::Equal {
        argument,
        cases,
        otherwise: Box::new(REFUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::bpf;
    use super::super::{program, rules};
    use super::*;
    use crate::profile::Network;

    fn answer(call: i64, arguments: [u64; 6]) -> u32 {
        let mut rules = rules(&Network::Deny);
        add(&mut rules);
        bpf::run(&program(&rules), bpf::NATIVE, number(call), arguments)
    }

    #[test]
    fn what_no_namespace_hides_is_refused() {
        let refused = bpf::ERRNO | libc::EPERM.unsigned_abs();
        let unsupported = bpf::ERRNO | libc::EOPNOTSUPP.unsigned_abs();
        let unix = libc::AF_UNIX.unsigned_abs().into();
        let cases = [
            ("a socket", libc::SYS_socket, [unix, 0], refused),
            ("memory", libc::SYS_shmget, [0, 0], refused),
            ("an attribute", libc::SYS_setxattr, [0, 0], unsupported),
            ("flags", libc::SYS_ioctl, [3, 0x4008_6602], unsupported),
            (
                "asking for flags",
                libc::SYS_ioctl,
                [3, 0x8008_6601],
                bpf::ALLOW,
            ),
            ("typing", libc::SYS_ioctl, [0, libc::TIOCSTI], refused),
            ("own limits", libc::SYS_prlimit64, [0, 7], bpf::ALLOW),
            ("another's limits", libc::SYS_prlimit64, [1, 7], refused),
            ("own priority", libc::SYS_setpriority, [0, 0], bpf::ALLOW),
            ("another's priority", libc::SYS_setpriority, [0, 9], refused),
            (
                "the user's priority",
                libc::SYS_setpriority,
                [2, 0],
                refused,
            ),
            (
                "own disk priority",
                libc::SYS_ioprio_set,
                [1, 0],
                bpf::ALLOW,
            ),
            ("the user's disk", libc::SYS_ioprio_set, [3, 0], refused),
            ("reading", libc::SYS_read, [0, 0], bpf::ALLOW),
        ];
        for (name, call, [first, second], want) in cases {
            let got = answer(call, [first, second, 0, 0, 0, 0]);
            assert_eq!(got, want, "{name}");
        }
    }
    #[test]
    fn only_pairs_that_cannot_be_connected_elsewhere_are_made() {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let cases = [
            ("a stream", libc::AF_UNIX, libc::SOCK_STREAM, true),
            ("with flags", libc::AF_UNIX, libc::SOCK_STREAM | flags, true),
            (
                "packets",
                libc::AF_UNIX,
                libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC,
                true,
            ),
            ("datagrams", libc::AF_UNIX, libc::SOCK_DGRAM, false),
            (
                "datagrams with flags",
                libc::AF_UNIX,
                libc::SOCK_DGRAM | flags,
                false,
            ),
            ("raw", libc::AF_UNIX, libc::SOCK_RAW, false),
            ("no type", libc::AF_UNIX, 0, false),
            ("internet", libc::AF_INET, libc::SOCK_STREAM, false),
        ];
        for (name, family, kind, allowed) in cases {
            let arguments = [number(family).into(), number(kind).into(), 0, 0, 0, 0];
            let want = if allowed {
                bpf::ALLOW
            } else {
                bpf::ERRNO | libc::EPERM.unsigned_abs()
            };
            assert_eq!(answer(libc::SYS_socketpair, arguments), want, "{name}");
        }
    }
}
