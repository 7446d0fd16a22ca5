//! What a payload sees and what it can change.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use provost_sandbox::{HOME, How, Mount, Network, toolchain_mounts};

use crate::stage::{Stage, WORKSPACE, for_each_sandbox, for_each_user};

/// What a script prints in the minimal sandbox.
fn printed(stage: &Stage, script: &str) -> String {
    let answer = stage.shell(&stage.profile(), script);
    assert_eq!(answer.how(), How::Exited(0), "{script}: {answer:?}");
    answer.stdout.trim().to_owned()
}

#[test]
fn the_payload_is_an_ordinary_user_in_its_own_session() {
    for_each_user(|stage| {
        assert_eq!(printed(stage, "id -u; id -g; id -un"), "1000\n1000\nagent");
        assert_eq!(printed(stage, "umask"), "0022");
        assert_eq!(printed(stage, "uname -n"), "sandbox");
    });
}

#[test]
fn only_processes_of_the_sandbox_exist() {
    for_each_user(|stage| {
        let pids = printed(stage, "cd /proc && ls -d [0-9]*");
        let pids: Vec<u32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
        // The pid between them was that of a thread of init.
        assert_eq!(pids, [1, 3], "init and the shell, which becomes ls");
        // The payload can neither read nor end init.
        let script = "cat /proc/1/environ /proc/1/maps /proc/1/fd/*; readlink /proc/1/fd/*; true";
        assert_eq!(printed(stage, script), "");
        assert_eq!(printed(stage, "kill -KILL 1; echo alive"), "alive");
    });
}

#[test]
fn the_host_does_not_exist() {
    for_each_user(|stage| {
        let secret = stage.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        let script = format!("ls {0}; cat {0}", secret.display());
        let answer = stage.shell(&stage.profile(), &script);
        assert_eq!(answer.how(), How::Exited(1));
        assert_eq!(answer.stdout, "");
        assert_eq!(
            printed(stage, "ls /"),
            list(&[
                "bin",
                "dev",
                "etc",
                "home",
                "lib",
                "lib64",
                "proc",
                "run",
                "sbin",
                "tmp",
                "usr",
                "var",
                "workspace",
            ])
        );
        assert_eq!(
            printed(stage, "ls /home /run"),
            "/home:\nagent\n\n/run:\nprovost"
        );
        let dev = "fd\nfull\nnull\nrandom\nshm\nstderr\nstdin\nstdout\nurandom\nzero";
        assert_eq!(printed(stage, "ls /dev"), dev);
    });
}

/// The names there are on this host, as `ls` prints them.
fn list(names: &[&str]) -> String {
    let there =
        |name: &&&str| !name.starts_with("lib") || fs::symlink_metadata(format!("/{name}")).is_ok();
    let names: Vec<&str> = names.iter().filter(there).copied().collect();
    names.join("\n")
}

#[test]
fn of_etc_only_the_harmless_part_is_there() {
    for_each_user(|stage| {
        let allowed = [
            "alternatives",
            "ca-certificates",
            "group",
            "hosts",
            "ld.so.cache",
            "ld.so.conf",
            "localtime",
            "maven",
            "nsswitch.conf",
            "passwd",
            "pki",
            "ssl",
        ];
        for name in printed(stage, "ls -A /etc").lines() {
            let language = name.starts_with("java-") || name.starts_with("python");
            assert!(language || allowed.contains(&name), "{name}");
        }
        assert_eq!(printed(stage, "wc -l < /etc/passwd"), "3");
        assert_eq!(printed(stage, "ls /etc/ssl"), "certs");
        // Others may hold passwords.
        for name in printed(stage, "ls -A /etc/maven 2>/dev/null || true").lines() {
            assert!(["logging", "m2.conf"].contains(&name), "{name}");
        }
    });
}

#[test]
fn home_and_scratch_are_private_and_empty() {
    for_each_user(|stage| {
        let script = "for place in ~ /tmp /var/tmp /dev/shm; do \
            test -z \"$(ls -A $place)\" && echo x > $place/x && rm $place/x; done; echo $HOME";
        assert_eq!(printed(stage, script), HOME);
        let answer = stage.shell(&stage.profile(), "echo x > /x || echo x > /usr/x");
        assert_ne!(answer.how(), How::Exited(0));
    });
}

#[test]
fn writes_go_through_only_where_the_profile_says() {
    for_each_user(|stage| {
        stage.write("source/kept", "kept");
        let mut profile = stage.profile();
        profile.add(Mount::ReadOnly {
            source: stage.workspace().join("source"),
            target: "/reference".into(),
        });
        let script = "echo new > new; cat /reference/kept; \
            echo x > /reference/kept; echo x > /reference/new; rm -f /reference/kept; \
            chmod 777 /reference/kept; touch -d 2001-01-01 /reference/kept";
        let answer = stage.shell(&profile, script);
        assert_ne!(answer.how(), How::Exited(0));
        assert_eq!(answer.stdout, "kept");
        let text = |name: &str| fs::read_to_string(stage.workspace().join(name)).unwrap();
        assert_eq!(text("new"), "new\n");
        assert_eq!(text("source/kept"), "kept");
        assert_eq!(
            fs::read_dir(stage.workspace().join("source"))
                .unwrap()
                .count(),
            1
        );
    });
}

#[test]
fn a_protected_path_in_a_writable_place_stays() {
    for_each_user(|stage| {
        stage.write("rules.toml", "rules");
        stage.write("settings/agent.json", "settings");
        let mut profile = stage.profile();
        for name in ["rules.toml", "settings"] {
            profile.add(Mount::Protect {
                target: format!("{WORKSPACE}/{name}").into(),
            });
        }
        let attempts = [
            "echo x > rules.toml",
            "echo x >> rules.toml",
            "rm -f rules.toml",
            "mv rules.toml other",
            "ln -f rules.toml other",
            "chmod 777 rules.toml",
            "echo x > new && mv -f new rules.toml",
            "truncate -s 0 rules.toml",
            "echo x > settings/agent.json",
            "echo x > settings/new",
            "mv settings other",
            "rm -rf settings",
            "mkdir d && mv -T d settings",
        ];
        for attempt in attempts {
            let answer = stage.shell(&profile, attempt);
            assert_ne!(answer.how(), How::Exited(0), "{attempt}");
        }
        let text = |name: &str| fs::read_to_string(stage.workspace().join(name)).unwrap();
        assert_eq!(text("rules.toml"), "rules");
        assert_eq!(text("settings/agent.json"), "settings");
        assert_eq!(
            stage.shell(&profile, "echo x > beside").how(),
            How::Exited(0)
        );
    });
}

#[test]
fn what_an_agent_left_does_not_choose_what_is_mounted() {
    for_each_user(|stage| {
        symlink("/etc", stage.workspace().join("link")).unwrap();
        for (target, errno) in [("link/passwd", libc::ELOOP), ("missing", libc::ENOENT)] {
            let mut profile = stage.profile();
            let target = format!("{WORKSPACE}/{target}");
            profile.add(Mount::Protect {
                target: target.clone().into(),
            });
            let answer = stage.run(&profile, &["true"]);
            assert_eq!(answer.value["stage"], format!("protect {target}"));
            assert_eq!(answer.value["errno"], errno);
        }
        let mut profile = stage.profile();
        profile.add(Mount::ReadOnly {
            source: "/usr".into(),
            target: format!("{WORKSPACE}/link/made").into(),
        });
        assert_eq!(stage.run(&profile, &["true"]).value["errno"], libc::ENOTDIR);
    });
}

#[test]
fn a_protected_link_keeps_leading_where_it_leads() {
    for_each_user(|stage| {
        stage.write("AGENTS.md", "rules");
        let link = stage.workspace().join("CLAUDE.md");
        symlink("AGENTS.md", &link).unwrap();
        let mut profile = stage.profile();
        profile.add(Mount::Protect {
            target: format!("{WORKSPACE}/CLAUDE.md").into(),
        });
        let attempts = [
            "rm CLAUDE.md",
            "mv CLAUDE.md other",
            "ln -sfn other CLAUDE.md",
            "echo x > new && mv -f new CLAUDE.md",
        ];
        for attempt in attempts {
            let answer = stage.shell(&profile, attempt);
            assert_ne!(answer.how(), How::Exited(0), "{attempt}");
        }
        assert_eq!(stage.shell(&profile, "cat CLAUDE.md").stdout, "rules");
        assert_eq!(fs::read_link(link).unwrap().to_str(), Some("AGENTS.md"));
    });
}

#[test]
fn nothing_is_created_inside_a_directory_of_the_host() {
    for_each_user(|stage| {
        let mut profile = stage.profile();
        profile.add(Mount::ReadOnly {
            source: "/usr".into(),
            target: format!("{WORKSPACE}/made").into(),
        });
        let answer = stage.run(&profile, &["true"]);
        assert_eq!(answer.value["errno"], libc::ENOENT, "{answer:?}");
        assert!(!stage.workspace().join("made").exists());
    });
}

#[test]
fn there_is_no_network_but_an_own_loopback() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for_each_user(|stage| {
        let connect = format!(
            "import socket; socket.create_connection(('127.0.0.1', {port}), 2); print('reached')"
        );
        let serve = "import socket; s = socket.create_server(('127.0.0.1', 0)); \
            socket.create_connection(s.getsockname(), 2); print('served')";
        let python = |script: &str, network| {
            let mut profile = stage.profile();
            profile.network = network;
            stage
                .run(&profile, &["/usr/bin/python3", "-c", script])
                .stdout
        };
        assert_eq!(python(&connect, Network::Deny), "");
        assert_eq!(python(&connect, Network::Loopback), "");
        assert_eq!(python(serve, Network::Deny), "");
        assert_eq!(python(serve, Network::Loopback), "served\n");
    });
}

#[test]
fn the_toolchains_of_the_user_work_inside() {
    // Those of the user who runs the tests; another one may not even see them.
    let home = std::env::home_dir().unwrap();
    let path = std::env::var("PATH").unwrap();
    let find = || toolchain_mounts(&path, &home, |name| std::env::var_os(name).map(Into::into));
    if !find().env["PATH"]
        .split(':')
        .any(|place| Path::new(place).join("cargo").exists())
    {
        provost_testkit::skip("there is no cargo along PATH");
        return;
    }
    for_each_user(|stage| {
        if stage.user.is_some() {
            return;
        }
        let mut profile = stage.profile();
        find().add_to(&mut profile);
        stage.write("main.c", "int main(void) { return 0; }\n");
        stage.write("main.rs", "fn main() { println!(\"built\"); }\n");
        let script = "cc main.c -o c && ./c && cargo --version >&2 && rustc main.rs && ./main";
        let answer = stage.shell(&profile, script);
        assert_eq!(answer.stdout, "built\n", "{answer:?}");
        let secrets = format!("ls {0}/.cargo/credentials.toml {0}/.ssh", home.display());
        assert_ne!(stage.shell(&profile, &secrets).how(), How::Exited(0));
    });
}

#[test]
fn nothing_that_stays_on_the_host_changes_the_user() {
    for_each_sandbox(|stage, profile| {
        let script = "import os\n\
            def refused(what, call):\n\
            \x20   try: call()\n\
            \x20   except PermissionError: return\n\
            \x20   print(what)\n\
            os.umask(0)\n\
            made = os.open('made', os.O_CREAT | os.O_RDWR, 0o644)\n\
            refused('chmod', lambda: os.chmod('made', 0o4755))\n\
            refused('group', lambda: os.chmod('made', 0o2755))\n\
            refused('fchmod', lambda: os.fchmod(made, 0o4755))\n\
            refused('open', lambda: os.open('born', os.O_CREAT | os.O_RDWR, 0o4755))\n\
            refused('nameless', lambda: os.open('.', os.O_TMPFILE | os.O_RDWR, 0o4755))\n\
            refused('node', lambda: os.mknod('node', 0o104755))\n\
            refused('directory', lambda: os.mkdir('directory', 0o2755))\n\
            os.chmod('made', 0o1755)\n\
            print('end')\n";
        stage.write("modes.py", script);
        let answer = stage.run(&profile, &["/usr/bin/python3", "modes.py"]);
        assert_eq!(answer.stdout, "end\n", "{answer:?}");
        for entry in fs::read_dir(stage.workspace()).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().mode();
            assert_eq!(mode & 0o6000, 0, "{entry:?}");
        }
        let made = fs::metadata(stage.workspace().join("made")).unwrap();
        assert_eq!(made.mode() & 0o7777, 0o1755);
    });
}
