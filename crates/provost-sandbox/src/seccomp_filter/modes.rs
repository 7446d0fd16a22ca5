//! Refuses set-user-id and set-group-id bits on files, and nodes of devices.
//!
//! No sandbox honours those bits. But writable files lie on the host, where another user who
//! executes such a file would act as its owner. A node of the device 0/0 would remove a file from
//! an overlay.

use std::collections::BTreeMap;

use super::{ALLOW, Decision, REFUSE, UNKNOWN, number};

const BITS: u32 = 0o6000;
/// The kinds of nodes with this bit are character and block devices, and links, which no such call
/// makes.
const DEVICE: u32 = 0o020_000;
/// Without one of these flags the kernel ignores the mode of an opening call. `O_TMPFILE` shares a
/// bit with `O_DIRECTORY`, which creates nothing.
const MAKING: u32 = libc::O_CREAT.cast_unsigned()
    | libc::O_TMPFILE.cast_unsigned() & !libc::O_DIRECTORY.cast_unsigned();

/// Calls by the argument that is a mode.
const MODES: &[(i64, u32)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (452, 2), // fchmodat2, with the same number on every architecture
    (libc::SYS_mkdirat, 2),
];
/// The same of calls that make nodes.
const NODES: &[(i64, u32)] = &[(libc::SYS_mknodat, 2)];
#[cfg(target_arch = "x86_64")]
const NODES_HERE: &[(i64, u32)] = &[(libc::SYS_mknod, 1)];
#[cfg(not(target_arch = "x86_64"))]
const NODES_HERE: &[(i64, u32)] = &[];
#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[(i64, u32)] = &[
    (libc::SYS_chmod, 1),
    (libc::SYS_creat, 1),
    (libc::SYS_mkdir, 1),
];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[(i64, u32)] = &[];

/// Adds to `rules` what sets modes.
pub(super) fn add(rules: &mut BTreeMap<u32, Decision>) {
    for (call, argument) in MODES.iter().chain(MODES_HERE) {
        rules.insert(number(*call), ordinary(*argument));
    }
    for (call, argument) in NODES.iter().chain(NODES_HERE) {
        rules.insert(number(*call), without(BITS | DEVICE, *argument));
    }
    rules.insert(number(libc::SYS_openat), opening(2));
    #[cfg(target_arch = "x86_64")]
    rules.insert(number(libc::SYS_open), opening(1));
    // Its mode is in memory, where a filter does not see it. Programs fall back to `openat`.
    rules.insert(number(libc::SYS_openat2), UNKNOWN);
}

/// Checks the mode argument, which follows these flags, if the call creates a file.
fn opening(flags: u32) -> Decision {
    Decision::AnyBit {
        argument: flags,
        bits: MAKING,
        then: Box::new(ordinary(flags + 1)),
        otherwise: Box::new(ALLOW),
    }
}

fn ordinary(mode: u32) -> Decision {
    without(BITS, mode)
}

/// Refused if the argument `mode` has one of `bits`.
fn without(bits: u32, mode: u32) -> Decision {
    Decision::AnyBit {
        argument: mode,
        bits,
        then: Box::new(REFUSE),
        otherwise: Box::new(ALLOW),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::bpf;
    use super::super::{program, rules};
    use super::*;
    use crate::profile::Network;

    fn answer(call: i64, arguments: [u64; 6]) -> u32 {
        let steps = program(&rules(&Network::Deny));
        bpf::run(&steps, bpf::NATIVE, number(call), arguments)
    }

    #[test]
    fn no_call_sets_a_bit_that_changes_the_user() {
        let refused = bpf::ERRNO | libc::EPERM.unsigned_abs();
        let nodes = NODES.iter().chain(NODES_HERE);
        for (call, argument) in MODES.iter().chain(MODES_HERE).chain(nodes) {
            for (mode, want) in [
                (0o4755, refused),
                (0o2755, refused),
                (0o1777, bpf::ALLOW),
                (0o644, bpf::ALLOW),
            ] {
                let mut arguments = [0; 6];
                arguments[*argument as usize] = mode;
                assert_eq!(answer(*call, arguments), want, "{call} {mode:o}");
            }
        }
    }

    #[test]
    fn pipes_and_sockets_are_made_but_no_devices() {
        let refused = bpf::ERRNO | libc::EPERM.unsigned_abs();
        let cases = [
            (libc::S_IFCHR, refused),
            (libc::S_IFBLK | 0o600, refused),
            (libc::S_IFIFO | 0o644, bpf::ALLOW),
            (libc::S_IFSOCK | 0o644, bpf::ALLOW),
            (libc::S_IFREG | 0o644, bpf::ALLOW),
        ];
        for (call, argument) in NODES.iter().chain(NODES_HERE) {
            for (mode, want) in cases {
                let mut arguments = [0; 6];
                arguments[*argument as usize] = mode.into();
                assert_eq!(answer(*call, arguments), want, "{call} {mode:o}");
            }
        }
    }

    #[test]
    fn a_mode_counts_where_an_opening_call_makes_a_file() {
        let refused = bpf::ERRNO | libc::EPERM.unsigned_abs();
        let cases = [
            (libc::O_CREAT | libc::O_WRONLY, 0o4755, refused),
            (libc::O_TMPFILE | libc::O_RDWR, 0o2755, refused),
            (libc::O_CREAT | libc::O_WRONLY, 0o644, bpf::ALLOW),
            (libc::O_DIRECTORY, 0o4755, bpf::ALLOW),
        ];
        for (flags, mode, want) in cases {
            let arguments = [0, 0, number(flags).into(), mode, 0, 0];
            let got = answer(libc::SYS_openat, arguments);
            assert_eq!(got, want, "{flags:o} {mode:o}");
        }
        let unknown = bpf::ERRNO | libc::ENOSYS.unsigned_abs();
        assert_eq!(answer(libc::SYS_openat2, [0; 6]), unknown);
    }
}
