//! Every limit is reached once, and what stays within it is left alone.

use std::fs;
use std::time::{Duration, Instant};

use provost_sandbox::{How, Mount, Profile};

use crate::stage::{Stage, for_each_user};

/// Lasts long enough for any limit to be noticed.
const HOLD: &str = "import os, time\n";

fn python(stage: &Stage, profile: &Profile, lines: &str) -> How {
    stage.write("work.py", &format!("{HOLD}{lines}"));
    let since = Instant::now();
    let answer = stage.run(profile, &["/usr/bin/python3", "work.py"]);
    assert!(since.elapsed() < Duration::from_secs(15), "{answer:?}");
    answer.how()
}

#[test]
fn too_much_memory_ends_the_sandbox() {
    for_each_user(|stage| {
        let mut profile = stage.profile();
        profile.limits.memory_bytes = 200 << 20;
        let alone = "x = b'x' * (300 << 20)\ntime.sleep(20)\n";
        assert_eq!(python(stage, &profile, alone), How::MemoryLimit);
        let together = "for _ in range(4):\n\
            \x20   if os.fork() == 0:\n        x = b'x' * (60 << 20)\n        time.sleep(20)\n\
            time.sleep(20)\n";
        assert_eq!(python(stage, &profile, together), How::MemoryLimit);
    });
}

#[test]
fn memory_that_is_shared_counts_once() {
    for_each_user(|stage| {
        let mut profile = stage.profile();
        profile.limits.memory_bytes = 200 << 20;
        let lines = "x = b'x' * (100 << 20)\n\
            for _ in range(4):\n    if os.fork() == 0: time.sleep(1.2); os._exit(0)\n\
            time.sleep(1)\n";
        assert_eq!(python(stage, &profile, lines), How::Exited(0));
    });
}

#[test]
fn too_many_processes_end_the_sandbox() {
    let lines = "count = open('count', 'wb', buffering=0)\n\
        try:\n    for _ in range(2000):\n        if os.fork() == 0: time.sleep(20); os._exit(0)\n\
        \x20       count.write(b'.')\n\
        except OSError: pass\n\
        time.sleep(20)\n";
    for_each_user(|stage| {
        let mut profile = stage.profile();
        profile.limits.processes = 40;
        assert_eq!(python(stage, &profile, lines), How::ProcessLimit);
        let count = fs::read(stage.workspace().join("count")).unwrap().len();
        // For root the kernel itself enforces a coarse limit only, and before 6.14 none.
        let is_root = stage.user.is_none() && rustix::process::geteuid().is_root();
        assert!(count < if is_root { 2000 } else { 40 }, "{count}");

        profile.limits.processes = 400;
        let few = lines
            .replace("2000", "30")
            .replace("sleep(20)", "sleep(0.6)");
        assert_eq!(python(stage, &profile, &few), How::Exited(0));
    });
}

#[test]
fn too_much_on_disk_ends_the_sandbox() {
    let with_name = "file = open('big', 'wb')\n";
    let without = "file = open('big', 'wb')\nos.unlink('big')\n";
    let fill = "for _ in range(120): file.write(b'x' * (1 << 20)); time.sleep(0.005)\n\
        file.flush()\ntime.sleep(20)\n";
    for_each_user(|stage| {
        let mut profile = stage.profile();
        profile.limits.disk_bytes = Some(40 << 20);
        for begin in [with_name, without] {
            let how = python(stage, &profile, &format!("{begin}{fill}"));
            assert_eq!(how, How::DiskLimit, "{begin}");
            let _ = fs::remove_file(stage.workspace().join("big"));
        }
        // A hole takes nothing, and scratch space is not the disk.
        let within = "open('hole', 'wb').truncate(1 << 30)\n\
            open('/tmp/big', 'wb').write(b'x' * (60 << 20))\ntime.sleep(0.8)\n";
        assert_eq!(python(stage, &profile, within), How::Exited(0));
    });
}

#[test]
fn too_many_files_end_the_sandbox() {
    let lines = "for number in range(600): open(f'f{number}', 'w').close()\ntime.sleep(20)\n";
    for_each_user(|stage| {
        let mut profile = stage.profile();
        profile.limits.inodes = Some(500);
        assert_eq!(python(stage, &profile, lines), How::InodeLimit);
        profile.limits.inodes = Some(5000);
        let within = lines.replace("20", "0.8");
        assert_eq!(python(stage, &profile, &within), How::Exited(0));
    });
}

#[test]
fn a_layer_is_counted_without_what_it_stands_on() {
    for_each_user(|stage| {
        for name in ["lower", "upper", "work"] {
            let place = stage.path().join(name);
            fs::create_dir(&place).unwrap();
            std::os::unix::fs::chown(&place, stage.user, stage.user).unwrap();
        }
        for number in 0..300 {
            fs::write(stage.path().join("lower").join(number.to_string()), "").unwrap();
        }
        let place = |name: &str| stage.path().join(name);
        let mut profile = stage.profile();
        profile.add(Mount::Overlay {
            lowers: vec![place("lower")],
            upper: place("upper"),
            work: place("work"),
            target: "/layer".into(),
        });
        profile.limits.inodes = Some(200);
        let within = "assert len(os.listdir('/layer')) == 300\ntime.sleep(0.8)\n";
        assert_eq!(python(stage, &profile, within), How::Exited(0));
        let beyond = "for number in range(300): open(f'/layer/n{number}', 'w').close()\n\
            time.sleep(20)\n";
        assert_eq!(python(stage, &profile, beyond), How::InodeLimit);
    });
}

#[test]
fn silence_ends_the_sandbox_and_work_does_not() {
    for_each_user(|stage| {
        let mut profile = stage.profile();
        profile.limits.no_progress_seconds = Some(2);
        let prints = "for _ in range(8): print('.', flush=True); time.sleep(0.4)\n";
        assert_eq!(python(stage, &profile, prints), How::Exited(0));
        let writes = "for number in range(8): open('note', 'w').write('x'); time.sleep(0.4)\n";
        assert_eq!(python(stage, &profile, writes), How::Exited(0));
        // A payload that only computes, or reads, makes no progress.
        let hangs = "while True: open('note').read()\n";
        assert_eq!(python(stage, &profile, hangs), How::NoProgress);
    });
}
