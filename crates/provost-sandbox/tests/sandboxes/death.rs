//! Whatever ends a sandbox, no process of it is left.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use provost_sandbox::{How, ProcessIdentity, SandboxError, reap};

use crate::stage::{Request, Stage, for_each_sandbox, for_each_user};

/// Moves from process to process and session to session, and writes a beat at each.
const HOP: &str = "import os, time\n\
    for _ in range(3):\n    if os.fork() == 0: break\n\
    beat = os.open('beat', os.O_CREAT | os.O_APPEND | os.O_WRONLY)\n\
    while True:\n    if os.fork(): os._exit(0)\n    os.setsid(); os.write(beat, b'.'); time.sleep(0.002)\n";

fn beats(stage: &Stage) -> u64 {
    fs::metadata(stage.workspace().join("beat")).map_or(0, |found| found.len())
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(15), "{what}");
        sleep(Duration::from_millis(5));
    }
}

fn assert_silent(stage: &Stage) {
    let before = beats(stage);
    assert_ne!(before, 0, "it never lived");
    sleep(Duration::from_millis(150));
    assert_eq!(beats(stage), before, "something still lives");
}

#[test]
fn a_daemon_dies_with_the_payload() {
    for_each_sandbox(|stage, profile| {
        let script = "setsid sh -c 'while :; do echo . >> beat; sleep 0.01; done' & \
            while ! test -s beat; do sleep 0.01; done; exit 3";
        let answer = stage.shell(&profile, script);
        assert_eq!(answer.how(), How::Exited(3));
        assert_silent(stage);
    });
}

#[test]
fn a_hopping_tree_dies_of_the_wall_clock() {
    for_each_sandbox(|stage, mut profile| {
        profile.limits.wall_seconds = 1;
        stage.write("hop.py", HOP);
        let since = Instant::now();
        let answer = stage.shell(&profile, "/usr/bin/python3 hop.py & sleep 60");
        assert_eq!(answer.how(), How::TimedOut);
        assert!(since.elapsed() < Duration::from_secs(5));
        assert!(answer.ended().wall >= Duration::from_secs(1));
        assert_silent(stage);
    });
}

#[test]
fn a_cancelled_sandbox_is_dead() {
    for_each_sandbox(|stage, profile| {
        stage.write("hop.py", HOP);
        let request = Request {
            argv: &["sh", "-c", "/usr/bin/python3 hop.py & sleep 60"],
            cancel_after: Some(Duration::from_millis(400)),
            ..Request::default()
        };
        let answer = stage.ask(&profile, &request);
        assert_eq!(answer.how(), How::Cancelled);
        assert_silent(stage);
    });
}

#[test]
fn a_killed_driver_ends_its_sandbox() {
    for_each_sandbox(|stage, profile| {
        stage.write("hop.py", HOP);
        let request = Request {
            argv: &["sh", "-c", "/usr/bin/python3 hop.py & sleep 60"],
            ..Request::default()
        };
        let mut driver = stage.drive(&profile, &request);
        until("beats", || beats(stage) > 3);
        driver.kill().unwrap();
        driver.wait().unwrap();
        let init = stage.init().unwrap();
        until("init is gone", || ProcessIdentity::of(init).is_none());
        assert_silent(stage);
        until("nothing runs from here", || !runs_from(&stage.fixture()));
    });
}

#[test]
fn a_killed_init_leaves_no_process() {
    for_each_sandbox(|stage, profile| {
        stage.write("hop.py", HOP);
        let request = Request {
            argv: &["sh", "-c", "/usr/bin/python3 hop.py & sleep 60"],
            ..Request::default()
        };
        let driver = stage.drive(&profile, &request);
        until("beats", || beats(stage) > 3);
        let init = stage.init().unwrap().to_string();
        let killed = Command::new("kill").args(["-KILL", &init]).status();
        assert!(killed.unwrap().success());
        let answer = stage.answer(driver);
        let text = "the launcher was lost before it said how the sandbox ended";
        assert_eq!(answer.value["error"], text);
        assert_silent(stage);
    });
}

#[test]
fn a_killed_launcher_is_reported_and_ends_the_sandbox() {
    for_each_sandbox(|stage, profile| {
        stage.write("hop.py", HOP);
        let request = Request {
            argv: &["sh", "-c", "/usr/bin/python3 hop.py & sleep 60"],
            ..Request::default()
        };
        let driver = stage.drive(&profile, &request);
        until("beats", || beats(stage) > 3);
        let init = stage.init().unwrap();
        let stat = fs::read_to_string(format!("/proc/{init}/stat")).unwrap();
        let fields = stat.rsplit_once(')').unwrap().1;
        let launcher = fields.split_whitespace().nth(1).unwrap();
        let killed = Command::new("kill").args(["-KILL", launcher]).status();
        assert!(killed.unwrap().success());
        let answer = stage.answer(driver);
        let text = "the launcher was lost before it said how the sandbox ended";
        assert_eq!(answer.value["error"], text);
        assert!(ProcessIdentity::of(init).is_none());
        assert_silent(stage);
    });
}

/// Whether any process runs this program.
fn runs_from(program: &Path) -> bool {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(Result::ok)
        .any(|entry| fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program))
}

#[test]
fn a_flood_is_cut_in_the_middle_and_counted() {
    for_each_user(|stage| {
        let mut profile = stage.profile();
        profile.limits.output_bytes = 1000;
        let script = "echo first; head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo last; \
            echo small >&2";
        let answer = stage.shell(&profile, script);
        assert_eq!(answer.how(), How::Exited(0));
        let facts = answer.ended().stdout;
        assert_eq!(facts.total_bytes, 3_000_012);
        assert_eq!(facts.kept_bytes, 1000);
        assert!(facts.truncated);
        assert_eq!(facts.file_bytes, answer.stdout.len() as u64);
        assert!(answer.stdout.starts_with("first\nxxx"));
        assert!(answer.stdout.ends_with("xxx\nlast\n"));
        assert!(
            answer
                .stdout
                .contains("[provost: 2999012 bytes are missing here]")
        );
        assert_eq!(answer.stderr, "small\n");
        assert!(!answer.ended().stderr.truncated);
    });
}

#[test]
fn an_endless_flood_ends_the_sandbox() {
    for_each_user(|stage| {
        let mut profile = stage.profile();
        profile.limits.output_bytes = 10_000;
        profile.limits.output_kill_bytes = 1_000_000;
        let answer = stage.run(&profile, &["yes"]);
        assert_eq!(answer.how(), How::OutputLimit);
        let facts = answer.ended().stdout;
        assert!(
            (1_000_001..3_000_000).contains(&facts.total_bytes),
            "{facts:?}"
        );
        assert_eq!(facts.kept_bytes, 10_000);
    });
}

#[test]
fn limits_hold() {
    for_each_user(|stage| {
        let mut profile = stage.profile();
        profile.limits.file_bytes = 1 << 20;
        profile.limits.open_files = 20;
        let answer = stage.shell(&profile, "ulimit -n; head -c 2000000 /dev/zero > big");
        assert_ne!(answer.how(), How::Exited(0));
        assert_eq!(answer.stdout, "20\n");
        let length = fs::metadata(stage.workspace().join("big")).unwrap().len();
        assert_eq!(length, 1 << 20);
    });
}

#[test]
fn a_process_is_reaped_once_and_never_another_one() {
    let mut child = Command::new("sleep")
        .arg("60")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let birth = ProcessIdentity::of(i32::try_from(child.id()).unwrap()).unwrap();
    let another = ProcessIdentity {
        start_time: birth.start_time + 1,
        ..birth.clone()
    };
    let patience = Duration::from_secs(5);
    let reap = |birth: &ProcessIdentity| -> Result<bool, SandboxError> { reap(birth, patience) };
    assert!(!reap(&another).unwrap());
    assert!(child.try_wait().unwrap().is_none());
    assert!(reap(&birth).unwrap());
    assert!(!reap(&birth).unwrap(), "only a zombie is left");
    child.wait().unwrap();
    assert!(!reap(&birth).unwrap());
}
