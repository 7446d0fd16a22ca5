//! How a sandbox starts, what the payload inherits, how it ends.

use std::time::{Duration, Instant};

use provost_core::object::sha256;
use provost_core::tier::Tier;
use provost_sandbox::{How, LauncherProgram};

use crate::stage::{Request, for_each_user};

#[test]
fn a_payload_prints_and_returns_its_code() {
    for_each_user(|stage| {
        let answer = stage.shell(&stage.profile(), "echo out; echo err >&2; exit 7");
        assert_eq!(answer.how(), How::Exited(7));
        assert_eq!(answer.stdout, "out\n");
        assert_eq!(answer.stderr, "err\n");
        let facts = answer.ended().stdout;
        assert_eq!(
            (facts.total_bytes, facts.kept_bytes, facts.file_bytes),
            (4, 4, 4)
        );
        assert_eq!(facts.sha256, sha256(b"out\n"));
        assert!(!facts.truncated);
    });
}

#[test]
fn a_signal_is_reported_apart_from_a_code() {
    for_each_user(|stage| {
        let answer = stage.shell(&stage.profile(), "kill -TERM $$");
        assert_eq!(answer.how(), How::Signalled(15));
        // Ignored in the launcher, but not inherited.
        let answer = stage.shell(&stage.profile(), "kill -PIPE $$; echo alive");
        assert_eq!(answer.how(), How::Signalled(13));
    });
}

#[test]
fn a_program_that_cannot_be_executed_is_not_an_exit_code() {
    for_each_user(|stage| {
        let profile = stage.profile();
        stage.write("text", "no program\n");
        let cases = [
            ("no-such-program", libc::ENOENT),
            ("/usr/bin/no-such-program", libc::ENOENT),
            ("/workspace/text", libc::EACCES),
            ("/usr", libc::EACCES),
        ];
        for (program, errno) in cases {
            let answer = stage.run(&profile, &[program]);
            assert_eq!(answer.value["errno"], errno, "{program}: {answer:?}");
            assert_eq!(
                answer.value["stage"],
                format!("exec {program}"),
                "{program}"
            );
        }
        let answer = stage.run(&profile, &[]);
        assert_eq!(answer.value["stage"], "exec nothing");
    });
}

#[test]
fn a_set_up_that_fails_names_its_step() {
    for_each_user(|stage| {
        let mut profile = stage.profile();
        profile.workdir = "/nowhere".into();
        let answer = stage.run(&profile, &["true"]);
        assert_eq!(answer.value["stage"], "workdir /nowhere");

        let mut profile = stage.profile();
        profile.add(provost_sandbox::Mount::ReadOnly {
            source: "/no/such/source".into(),
            target: "/x".into(),
        });
        let answer = stage.run(&profile, &["true"]);
        assert_eq!(answer.value["stage"], "mount /no/such/source");
        assert_eq!(answer.value["errno"], libc::ENOENT);
        assert_ne!(answer.value["hint"], "");
    });
}

#[test]
fn a_program_is_found_along_the_path_of_the_sandbox() {
    for_each_user(|stage| {
        let mut profile = stage.profile();
        assert_eq!(stage.run(&profile, &["true"]).how(), How::Exited(0));
        profile.env.remove("PATH");
        assert_eq!(stage.run(&profile, &["true"]).value["stage"], "exec true");
    });
}

#[test]
fn the_environment_holds_only_what_was_given() {
    for_each_user(|stage| {
        let mut profile = stage.profile();
        profile.env = [("ONE", "1"), ("TWO", "a b")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let answer = stage.run(&profile, &["/usr/bin/env"]);
        assert_eq!(answer.stdout, "ONE=1\nTWO=a b\n");
    });
}

#[test]
fn stdin_arrives_and_may_be_left_unread() {
    for_each_user(|stage| {
        let text = "line\n".repeat(200_000);
        let request = |argv| Request {
            argv,
            stdin: Some(text.clone()),
            ..Request::default()
        };
        let answer = stage.ask(&stage.profile(), &request(&["wc", "-l"]));
        assert_eq!(answer.stdout.trim(), "200000");

        let since = Instant::now();
        let answer = stage.ask(&stage.profile(), &request(&["true"]));
        assert_eq!(answer.how(), How::Exited(0));
        assert!(since.elapsed() < Duration::from_secs(5));

        let answer = stage.run(&stage.profile(), &["wc", "-c"]);
        assert_eq!(answer.stdout.trim(), "0");
    });
}

#[test]
fn an_init_that_cannot_be_recorded_ends_the_sandbox() {
    for_each_user(|stage| {
        let request = Request {
            argv: &["sh", "-c", "echo ran > ran"],
            refuse_birth: true,
            ..Request::default()
        };
        let answer = stage.ask(&stage.profile(), &request);
        assert_eq!(
            answer.value["error"],
            "the init process of the sandbox could not be recorded"
        );
        assert!(!stage.workspace().join("ran").exists());
    });
}

#[test]
fn a_machine_says_whether_it_has_sandboxes() {
    for_each_user(|stage| {
        if stage.user.is_some() {
            return;
        }
        let launcher = LauncherProgram {
            exe: stage.fixture(),
        };
        let found = launcher.availability(Tier::Namespaces).unwrap();
        assert!(found.landlock_version >= 1);

        let launcher = LauncherProgram {
            exe: "/bin/true".into(),
        };
        let blocker = launcher.availability(Tier::Namespaces).unwrap_err();
        assert_eq!(blocker.errno, 0, "{blocker:?}");
        assert_ne!(blocker.remedy, "");
    });
}
