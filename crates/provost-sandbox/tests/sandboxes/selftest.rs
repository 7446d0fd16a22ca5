//! The self-test holds, and notices each missing restriction.

use std::collections::{BTreeMap, BTreeSet};

use provost_core::tier::Tier;
use provost_sandbox::{How, Mount, Network, Profile, Wall};

use crate::stage::{Request, Stage, WORKSPACE, for_each_user};

/// The names of the probes that did not hold.
fn leaks(stage: &Stage, profile: &Profile) -> BTreeSet<String> {
    let request = Request {
        selftest: true,
        ..Request::default()
    };
    let answer = stage.ask(profile, &request);
    // The filter cannot be installed alone, and without a sandbox there is nothing to escape from.
    if answer.value["stage"] == "seccomp" && profile.holes.contains(&Wall::NoNewPrivileges) {
        return BTreeSet::new();
    }
    let probes = answer.value["report"]["probes"].as_array();
    let probes = probes.unwrap_or_else(|| panic!("{:?}: {answer:?}", profile.holes));
    assert!(probes.len() > 1, "{:?}: the probe died", profile.holes);
    let leaks: BTreeSet<String> = probes
        .iter()
        .filter(|probe| probe["held"] != true)
        .map(|probe| probe["name"].as_str().unwrap().to_owned())
        .collect();
    let excused = |leak: &String| profile.tier.excuses(profile.processes, leak);
    assert_eq!(
        answer.value["held"],
        leaks.iter().all(excused),
        "{answer:?}"
    );
    leaks
}

/// A profile with a mount of every kind.
fn profile(stage: &Stage, network: Network) -> Profile {
    stage.write("protected", "\n");
    let mut profile = stage.profile();
    profile.add(Mount::Protect {
        target: format!("{WORKSPACE}/protected").into(),
    });
    profile.network = network;
    profile
}

fn proxy() -> Network {
    Network::Proxy(vec!["api.example.com:443".parse().unwrap()])
}

#[test]
fn the_sandbox_holds() {
    for_each_user(|stage| {
        for network in [Network::Deny, Network::Loopback, proxy()] {
            let leaks = leaks(stage, &profile(stage, network.clone()));
            assert_eq!(leaks, BTreeSet::new(), "{network:?}");
        }
    });
}

#[test]
fn the_sandbox_holds_with_an_older_landlock() {
    for_each_user(|stage| {
        for version in 1..6 {
            let mut profile = profile(stage, Network::Deny);
            profile.landlock = version;
            assert_eq!(leaks(stage, &profile), BTreeSet::new(), "{version}");
        }
        // The gaps of the first version are closed where there is a network, too.
        for network in [Network::Loopback, proxy()] {
            let mut profile = profile(stage, network.clone());
            profile.landlock = 1;
            assert_eq!(leaks(stage, &profile), BTreeSet::new(), "{network:?}");
        }
    });
}

#[test]
fn a_gap_of_an_older_landlock_is_closed_by_what_its_words_name() {
    // The newest version with the gap, the only restrictions left, and what gets out without them.
    let cases: [(u32, &[Wall], &str); 3] = [
        (3, &[Wall::Network, Wall::Seccomp], "tcp_connect"),
        (5, &[Wall::Processes], "signal_host"),
        (5, &[Wall::Network], "abstract_socket"),
    ];
    for_each_user(|stage| {
        let with = |version: u32, walls: &[Wall]| {
            let mut profile = profile(stage, Network::Deny);
            profile.landlock = version;
            profile.holes.extend(walls);
            profile
        };
        for (version, walls, probe) in cases {
            let open = leaks(stage, &with(version, walls));
            assert!(open.contains(probe), "{probe}: {open:?}");
            let closed = leaks(stage, &with(version + 1, walls));
            assert!(!closed.contains(probe), "{probe}: {closed:?}");
        }
        let cut = "import os; os.truncate('/etc/hosts', 0)";
        for (version, cuts) in [(2, true), (3, false)] {
            let profile = with(version, &[Wall::ReadOnly]);
            let answer = stage.run(&profile, &["/usr/bin/python3", "-c", cut]);
            assert_eq!(
                answer.how() == How::Exited(0),
                cuts,
                "{version}: {answer:?}"
            );
        }
        let moved =
            "mkdir a b && echo x > a/x && python3 -c \"import os; os.rename('a/x', 'b/x')\"";
        for (version, moves) in [(1, false), (2, true)] {
            let answer = stage.shell(
                &with(version, &[]),
                &format!("{moved}; rc=$?; rm -r a b; exit $rc"),
            );
            assert_eq!(
                answer.how() == How::Exited(0),
                moves,
                "{version}: {answer:?}"
            );
        }
    });
}

#[test]
fn a_landlock_that_is_too_old_or_too_new_is_refused() {
    for_each_user(|stage| {
        let cases = [
            (
                Tier::Namespaces,
                0,
                "version 1 is needed, the kernel has none",
            ),
            (Tier::Landlock, 5, "version 6 is needed, not 5"),
            (Tier::Namespaces, 1000, "version 1 is needed"),
        ];
        for (tier, version, words) in cases {
            let mut profile = profile(stage, Network::Deny);
            profile.tier = tier;
            profile.landlock = version;
            let answer = stage.run(&profile, &["true"]);
            let stage = answer.value["stage"].as_str().unwrap_or_default();
            assert!(stage.contains(words), "{answer:?}");
        }
    });
}

/// Restrictions that each stop one probe, which gets out only without all of them.
struct Case {
    network: Network,
    walls: &'static [Wall],
    /// Always left out: these would stop the probe before it reaches the others.
    also: &'static [Wall],
    probe: &'static str,
    who: Who,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    AllUsers,
    /// Only root can make such a sandbox, or has rights to lose in it.
    Root,
}

fn case(probe: &'static str, walls: &'static [Wall]) -> Case {
    Case {
        network: Network::Deny,
        walls,
        also: &[],
        probe,
        who: Who::AllUsers,
    }
}

impl Case {
    fn with(self, network: Network) -> Self {
        Self { network, ..self }
    }

    fn without(self, also: &'static [Wall]) -> Self {
        Self { also, ..self }
    }

    fn for_root(self) -> Self {
        let who = Who::Root;
        Self { who, ..self }
    }
}

/// Each restriction alone stops the probe, and without all of them it gets out.
fn check(cases: &[Case]) {
    for_each_user(|stage| {
        let mut known: BTreeMap<(String, BTreeSet<Wall>), BTreeSet<String>> = BTreeMap::new();
        let mut leaks = |network: &Network, holes: BTreeSet<Wall>| {
            let key = (format!("{network:?}"), holes.clone());
            known
                .entry(key)
                .or_insert_with(|| {
                    let mut profile = profile(stage, network.clone());
                    profile.holes = holes;
                    leaks(stage, &profile)
                })
                .clone()
        };
        let is_root = stage.user.is_none() && rustix::process::geteuid().is_root();
        for case in cases.iter().filter(|it| it.who == Who::AllUsers || is_root) {
            let all: BTreeSet<Wall> = case.walls.iter().chain(case.also).copied().collect();
            let open = leaks(&case.network, all.clone());
            assert!(
                open.contains(case.probe),
                "{} without {all:?}: {open:?}",
                case.probe
            );
            for wall in case.walls {
                let mut rest = all.clone();
                rest.remove(wall);
                let closed = leaks(&case.network, rest);
                assert!(
                    !closed.contains(case.probe),
                    "{} with {wall:?} alone",
                    case.probe
                );
            }
        }
    });
}

#[test]
fn a_sandbox_without_namespaces_holds_but_for_what_its_tier_declares() {
    for_each_user(|stage| {
        let mut profile = profile(stage, Network::Deny);
        profile.tier = Tier::Landlock;
        let leaks = leaks(stage, &profile);
        let declared = |leak: &String| profile.tier.excuses(profile.processes, leak);
        assert!(leaks.iter().all(declared), "{leaks:?}");
        // A declared hole must exist.
        for name in [
            "processes_hidden",
            "secret_chmod",
            "host_hidden",
            "ipc_host",
        ] {
            assert!(leaks.contains(name), "{name}: {leaks:?}");
        }
    });
}

#[test]
fn each_restriction_of_tier_landlock_is_needed() {
    let cases: [(Wall, &[&str]); 2] = [
        (
            Wall::Landlock,
            &["secret_read", "secret_write", "signal_host"],
        ),
        (Wall::Seccomp, &["path_socket", "udp_send", "keyctl"]),
    ];
    for_each_user(|stage| {
        for (wall, wanted) in cases {
            let mut profile = profile(stage, Network::Deny);
            profile.tier = Tier::Landlock;
            profile.holes.insert(wall);
            let leaks = leaks(stage, &profile);
            for name in wanted {
                assert!(leaks.contains(*name), "{wall:?}: {leaks:?}");
            }
        }
    });
}

#[test]
fn a_missing_restriction_of_files_is_noticed() {
    check(&[
        case("secret_read", &[Wall::Root]),
        case("host_hidden", &[Wall::Root]),
        case("path_datagram", &[Wall::Root]),
        case("read_only", &[Wall::ReadOnly]),
        case("read_only_mode", &[Wall::ReadOnly]),
        case("mount_flags", &[Wall::MountFlags]),
        case("read_only_truncate", &[Wall::ReadOnly]),
        case("secret_truncate", &[Wall::Root]),
        case("device_nodes", &[Wall::Seccomp, Wall::Landlock]),
    ]);
}

#[test]
fn a_missing_restriction_of_the_network_is_noticed() {
    check(&[
        case("tcp_connect", &[Wall::Network]).with(Network::Loopback),
        case("udp_send", &[Wall::Network]).with(Network::Loopback),
        case("resolve", &[Wall::Network]).with(Network::Loopback),
        case("udp_send", &[Wall::Network, Wall::Seccomp]),
        case("resolve", &[Wall::Network, Wall::Seccomp]).without(&[Wall::Landlock]),
        case(
            "tcp_connect",
            &[Wall::Network, Wall::Seccomp, Wall::Landlock],
        ),
        case("abstract_socket", &[Wall::Network, Wall::Landlock]),
        case("proxy", &[Wall::Grants]).with(proxy()),
        case("inet_socket", &[Wall::Seccomp]),
        case("other_sockets", &[Wall::Seccomp]),
    ]);
}

#[test]
fn a_missing_restriction_of_processes_is_noticed() {
    const OTHERS: &[Wall] = &[
        Wall::Processes,
        Wall::Landlock,
        Wall::Users,
        Wall::Capabilities,
        Wall::NoNewPrivileges,
    ];
    check(&[
        case("processes_hidden", &[Wall::Proc]),
        case("processes_hidden", &[Wall::Processes]),
        case("signal_host", &[Wall::Processes, Wall::Landlock]),
        case("environ_host", OTHERS)
            .without(&[Wall::Seccomp])
            .for_root(),
        case("trace_host", OTHERS)
            .without(&[Wall::Seccomp])
            .for_root(),
        case("memory_host", OTHERS)
            .without(&[Wall::Seccomp])
            .for_root(),
        case("trace_host", &[Wall::Seccomp])
            .without(OTHERS)
            .for_root(),
        case("memory_host", &[Wall::Seccomp])
            .without(OTHERS)
            .for_root(),
        case("ipc_host", &[Wall::Ipc]),
        case("host_name", &[Wall::HostName]),
        // Without the others the payload has every right that init has.
        case("init_hidden", &[Wall::Init])
            .without(&[
                Wall::Ids,
                Wall::Capabilities,
                Wall::NoNewPrivileges,
                Wall::Landlock,
                Wall::Seccomp,
            ])
            .for_root(),
    ]);
}

#[test]
fn a_missing_restriction_of_rights_is_noticed() {
    check(&[
        case("capabilities", &[Wall::Capabilities]),
        // The other two need it and set it themselves.
        case("no_new_privileges", &[Wall::NoNewPrivileges])
            .without(&[Wall::Landlock, Wall::Seccomp]),
        case("ids", &[Wall::Ids]),
        case("ids", &[Wall::Users]).for_root(),
        case("groups", &[Wall::Groups]).for_root(),
        case("descriptors", &[Wall::Descriptors]),
        case("environment", &[Wall::Environment]),
        case("session", &[Wall::Session]),
        case("limits", &[Wall::Limits]),
    ]);
}

#[test]
fn a_missing_filter_is_noticed() {
    let calls = [
        "keyctl",
        "io_uring",
        "unshare_user",
        "clone_user",
        "clone3",
        "terminal",
        "userfaultfd",
    ];
    check(&calls.map(|call| case(call, &[Wall::Seccomp])));
    check(&[case(
        "mount",
        &[
            Wall::Seccomp,
            Wall::Landlock,
            Wall::Ids,
            Wall::Capabilities,
            Wall::NoNewPrivileges,
        ],
    )
    .for_root()]);
}

#[test]
fn a_mount_too_many_is_noticed() {
    for_each_user(|stage| {
        let mut profile = profile(stage, Network::Deny);
        profile
            .mounts
            .retain(|mount| mount.target().to_str() != Some("/tmp"));
        profile.mounts.push(Mount::Writable {
            source: std::env::temp_dir(),
            target: std::env::temp_dir(),
        });
        let leaks = leaks(stage, &profile);
        for name in [
            "secret_read",
            "secret_write",
            "secret_chmod",
            "git_write",
            "path_socket",
        ] {
            assert!(leaks.contains(name), "{name}: {leaks:?}");
        }
    });
}
