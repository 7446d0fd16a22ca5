//! Sandboxes of one thread share one fork server, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command as Process;
use std::thread;

use provost_sandbox::{Command, Control, How, LauncherProgram, ProcessIdentity, Running, Stdin};

use crate::death::until;
use crate::stage::{Stage, for_each_user};

/// Starts `script` in a sandbox of the calling thread; both streams go to files of that `name`.
fn start(stage: &Stage, name: &str, script: &str) -> Running {
    let launcher = LauncherProgram {
        exe: stage.fixture(),
    };
    let command = Command {
        argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        stdin: Stdin::Bytes(name.as_bytes().to_vec()),
        stdout: stage.path().join(format!("{name}.out")),
        stderr: stage.path().join(format!("{name}.err")),
    };
    launcher
        .start(&stage.profile(), &command, |_| Ok(()))
        .unwrap()
}

/// The numbers in `stat` after the name: the parent first, then group and session.
fn stat(pid: i32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = text.rsplit_once(')').unwrap().1.split_whitespace();
    fields
        .skip(1)
        .take(3)
        .map(|it| it.parse().unwrap())
        .collect()
}

/// The open files of a process.
fn open_files(pid: i32) -> BTreeSet<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let names = links.map(|link| link.to_string_lossy().into_owned());
    names.filter(|name| name != "/dev/null").collect()
}

/// The pipes and sockets among them, whose names are unique.
fn channels(pid: i32) -> BTreeSet<String> {
    let mut names = open_files(pid);
    names.retain(|name| name.starts_with("pipe:") || name.starts_with("socket:"));
    names
}

/// The children of this process that run `program`.
fn children(program: &Path) -> BTreeSet<i32> {
    let own = i32::try_from(std::process::id()).unwrap();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program))
        .filter(|pid| stat(*pid)[0] == own)
        .collect()
}

fn init_of(running: &Running) -> i32 {
    running.birth().unwrap().pid
}

#[test]
fn sandboxes_of_one_thread_share_no_session_and_no_descriptor() {
    for_each_user(|stage| {
        if stage.user.is_some() {
            return;
        }
        let sandboxes = ["one", "two"].map(|name| start(stage, name, "cat; sleep 60"));
        let launchers = sandboxes
            .each_ref()
            .map(|running| stat(init_of(running))[0]);
        let mut others = children(&stage.fixture());
        for launcher in launchers {
            assert!(others.remove(&launcher), "a launcher is the driver's child");
            assert_eq!(stat(launcher)[2], launcher, "and has a session of its own");
        }
        let server = others.pop_first().unwrap();
        assert!(others.is_empty(), "there is one fork server");
        assert_eq!(open_files(server).len(), 1, "it has its socket");

        let inits = sandboxes.each_ref().map(init_of);
        for [one, two] in [launchers, inits].map(|pair| pair.map(channels)) {
            assert_ne!(one.len(), 0);
            assert!(one.is_disjoint(&two), "{one:?} {two:?}");
            assert!(one.is_disjoint(&channels(server)));
        }
    });
}

#[test]
fn sandboxes_of_one_thread_die_with_it() {
    for_each_user(|stage| {
        if stage.user.is_some() {
            return;
        }
        let inits = thread::scope(|scope| {
            let driver = scope.spawn(|| {
                ["one", "two"].map(|name| {
                    let running = start(stage, name, "sleep 60");
                    let init = init_of(&running);
                    // No socket closes: they can notice only the end of the thread.
                    std::mem::forget(running);
                    init
                })
            });
            driver.join().unwrap()
        });
        for init in inits {
            until("init is gone", || ProcessIdentity::of(init).is_none());
        }
    });
}

#[test]
fn a_killed_fork_server_is_replaced_and_its_sandboxes_stay_alive() {
    for_each_user(|stage| {
        if stage.user.is_some() {
            return;
        }
        let one = start(stage, "one", "cat; sleep 0.3; echo done");
        let launcher = stat(init_of(&one))[0];
        let server = children(&stage.fixture())
            .into_iter()
            .find(|pid| *pid != launcher)
            .unwrap();
        let killed = Process::new("kill")
            .args(["-KILL", &server.to_string()])
            .status();
        assert!(killed.unwrap().success());
        until("the fork server is gone", || {
            ProcessIdentity::of(server).is_none()
        });
        let two = start(stage, "two", "cat");
        for (running, out) in [(one, "onedone\n"), (two, "two")] {
            let name = &out[..3];
            let ended = running.wait(&mut |_| Control::Continue).unwrap();
            assert_eq!(ended.how, How::Exited(0));
            let file = stage.path().join(format!("{name}.out"));
            assert_eq!(fs::read_to_string(file).unwrap(), out);
        }
        let remains = fs::read_to_string(format!("/proc/{server}/stat"));
        assert!(
            remains.is_err(),
            "the fork server was not reaped: {remains:?}"
        );
    });
}
