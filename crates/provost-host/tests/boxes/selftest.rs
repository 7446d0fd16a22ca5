//! The self-test holds, and notices each wall that is missing.

use provost_host::boxes::{Hole, Mount, Network, Profile};

use crate::stage::{Request, Stage, WORKSPACE, for_each_user};

/// The names of the probes that did not hold.
fn leaks(stage: &Stage, profile: &Profile) -> Vec<String> {
    let request = Request {
        selftest: true,
        ..Request::default()
    };
    let answer = stage.ask(profile, &request);
    let probes = answer.value["report"]["probes"].as_array();
    let probes = probes.unwrap_or_else(|| panic!("{answer:?}"));
    let leaks: Vec<String> = probes
        .iter()
        .filter(|probe| probe["held"] != true)
        .map(|probe| probe["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(answer.value["held"], leaks.is_empty(), "{answer:?}");
    leaks
}

/// A profile with something of every kind in it.
fn profile(stage: &Stage, network: Network) -> Profile {
    stage.write("protected", "\n");
    let mut profile = stage.profile();
    profile.add(Mount::Protect {
        target: format!("{WORKSPACE}/protected").into(),
    });
    profile.network = network;
    profile
}

#[test]
fn the_box_holds() {
    for_each_user(|stage| {
        let grants = vec!["api.example.com:443".parse().unwrap()];
        for network in [Network::Deny, Network::Loopback, Network::Proxy(grants)] {
            let none: [String; 0] = [];
            assert_eq!(
                leaks(stage, &profile(stage, network.clone())),
                none,
                "{network:?}"
            );
        }
    });
}

#[test]
fn a_missing_wall_is_noticed() {
    let cases: [(Hole, Network, &[&str]); 8] = [
        (Hole::Landlock, Network::Deny, &["device_nodes"]),
        (
            Hole::Seccomp,
            Network::Deny,
            &["keyctl", "unshare_user", "clone3", "terminal"],
        ),
        (
            Hole::Network,
            Network::Loopback,
            &["tcp_connect", "udp_send"],
        ),
        (Hole::Proc, Network::Deny, &["processes_hidden"]),
        (Hole::Capabilities, Network::Deny, &["capabilities"]),
        (Hole::ReadOnly, Network::Deny, &["read_only"]),
        (Hole::Descriptors, Network::Deny, &["descriptors"]),
        (Hole::Ids, Network::Deny, &["ids"]),
    ];
    for_each_user(|stage| {
        for (hole, network, wanted) in cases.clone() {
            let mut profile = profile(stage, network);
            profile.holes.insert(hole);
            let leaks = leaks(stage, &profile);
            for name in wanted {
                assert!(leaks.iter().any(|leak| leak == name), "{hole:?}: {leaks:?}");
            }
        }
    });
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
        for name in ["secret_read", "secret_write", "secret_chmod", "path_socket"] {
            assert!(leaks.iter().any(|leak| leak == name), "{name}: {leaks:?}");
        }
    });
}
