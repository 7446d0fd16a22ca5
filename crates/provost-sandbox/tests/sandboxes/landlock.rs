//! Tier `landlock`: what it permits, what it restricts, and which profiles it refuses.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use provost_core::tier::Tier;
use provost_sandbox::{How, Mount, Network, Profile};
use rustix::io::Errno;

use crate::stage::{Stage, WORKSPACE, for_each_user};

fn profile(stage: &Stage) -> Profile {
    let mut profile = stage.profile();
    profile.tier = Tier::Landlock;
    profile.network = Network::Deny;
    profile
}

#[test]
fn a_payload_works_in_its_own_places() {
    for_each_user(|stage| {
        let mut profile = profile(stage);
        profile.add(Mount::File {
            target: "/run/provost/contract.json".into(),
            content: "the contract".to_owned(),
        });
        let place = format!("{WORKSPACE}/sub");
        profile.env.insert("PLACE".into(), place.clone());
        profile
            .env
            .insert("CONTRACT".into(), "/run/provost/contract.json".into());
        let script = "set -e; mkdir sub; echo a > \"$PLACE/a\"; echo b > \"$HOME/b\"; \
            echo c > \"$TMPDIR/c\"; cat \"$1/a\" \"$HOME/b\" \"$TMPDIR/c\" \"$CONTRACT\"; \
            echo x > /dev/null; test -r /proc/self/exe";
        let answer = stage.run(&profile, &["/bin/sh", "-c", script, "sh", &place]);
        assert_eq!(answer.how(), How::Exited(0), "{answer:?}");
        assert_eq!(answer.stdout, "a\nb\nc\nthe contract");
        let kept = fs::read_to_string(stage.workspace().join("sub/a")).unwrap();
        assert_eq!(kept, "a\n");
    });
}

#[test]
fn nothing_else_is_read_or_written() {
    for_each_user(|stage| {
        let beside = stage.path().join("beside");
        fs::write(&beside, "secret").unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o666)).unwrap();
        let beside = beside.display();
        // Every user may write there, but not the sandbox.
        let shared = ["/tmp", "/dev/shm"].map(|place| {
            let made = tempfile::tempdir_in(place).unwrap();
            fs::set_permissions(made.path(), fs::Permissions::from_mode(0o777)).unwrap();
            made
        });
        let cases = [
            format!("cat {beside}"),
            format!("echo x > {beside}"),
            format!("mv {beside} stolen"),
            format!("ln {beside} linked"),
            "ls /".to_owned(),
            "ls /home".to_owned(),
            format!("echo x > {}/new", shared[0].path().display()),
            format!("echo x > {}/new", shared[1].path().display()),
            // Opens a file for writing, and writes nothing.
            ": >> /usr/bin/env".to_owned(),
        ];
        for script in cases {
            let answer = stage.shell(&profile(stage), &script);
            assert_ne!(answer.how(), How::Exited(0), "{script}: {answer:?}");
        }
        let kept = stage.path().join("beside");
        assert_eq!(fs::read_to_string(kept).unwrap(), "secret");
    });
}

#[test]
fn no_process_outside_is_touched() {
    for_each_user(|stage| {
        let script = "import os, resource, signal, socket\n\
            outside = os.getppid()\n\
            def refused(what, call):\n\
            \x20   try: call()\n\
            \x20   except OSError as error: return\n\
            \x20   print(what)\n\
            refused('signal', lambda: os.kill(outside, signal.SIGTERM))\n\
            refused('limit', lambda: resource.prlimit(outside, resource.RLIMIT_CPU, (1, 1)))\n\
            refused('priority', lambda: os.setpriority(os.PRIO_PROCESS, outside, 19))\n\
            refused('affinity', lambda: os.sched_setaffinity(outside, [0]))\n\
            refused('unix', lambda: socket.socket(socket.AF_UNIX))\n\
            datagram, raw = socket.SOCK_DGRAM, socket.SOCK_RAW\n\
            refused('datagrams', lambda: socket.socketpair(socket.AF_UNIX, datagram))\n\
            refused('raw', lambda: socket.socketpair(socket.AF_UNIX, raw))\n\
            refused('inet', lambda: socket.socket(socket.AF_INET))\n\
            a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n\
            a, b = socket.socketpair(); a.send(b'x')\n\
            print('end', b.recv(1).decode())\n";
        stage.write("touch.py", script);
        let answer = stage.run(&profile(stage), &["/usr/bin/python3", "touch.py"]);
        assert_eq!(answer.stdout, "end x\n", "{answer:?}");
    });
}

#[test]
fn a_promise_that_cannot_be_kept_is_refused() {
    for_each_user(|stage| {
        let grants = vec!["api.example.com:443".parse().unwrap()];
        for network in [Network::Loopback, Network::Proxy(grants)] {
            let mut profile = profile(stage);
            profile.network = network;
            let answer = stage.run(&profile, &["/bin/true"]);
            assert_eq!(answer.value["stage"], "network in tier landlock");
            assert_eq!(answer.value["errno"], Errno::OPNOTSUPP.raw_os_error());
        }
        let mut profile = profile(stage);
        profile.add(Mount::Overlay {
            lowers: vec![stage.workspace()],
            upper: stage.workspace(),
            work: stage.workspace(),
            target: WORKSPACE.into(),
        });
        let answer = stage.run(&profile, &["/bin/true"]);
        assert_eq!(answer.value["stage"], format!("place {WORKSPACE}"));
        let hint = answer.value["hint"].as_str().unwrap();
        assert!(hint.contains("overlay"), "{hint}");
    });
}

#[test]
fn scratch_directories_are_private_and_gone_with_the_sandbox() {
    for_each_user(|stage| {
        let script = "mkdir \"$HOME/closed\"; touch \"$HOME/closed/x\"; chmod 0 \"$HOME/closed\"; \
            stat -c %a \"$HOME\"; echo \"$HOME\"";
        let answer = stage.shell(&profile(stage), script);
        let mut lines = answer.stdout.lines();
        assert_eq!(lines.next(), Some("700"), "{answer:?}");
        let home = Path::new(lines.next().unwrap());
        assert!(home.starts_with(std::env::temp_dir().canonicalize().unwrap()));
        assert!(!home.exists(), "{}", home.display());
        assert!(!home.parent().unwrap().exists(), "{}", home.display());
    });
}
