//! What an agent asks for while it works, and the user's own files.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::json;

use crate::person_keys::{events, file, make_key, question, stage, start};
use crate::stage::{Outcome, Stage};

fn statement(stage: &Stage, run: &str) -> String {
    let shown = stage.ask(&["show", run, "--json"]).json;
    shown["granted"].to_string()
}

const BROAD: &str = "echo good > src/a.txt; echo more > src/c.txt";

#[test]
fn a_path_that_a_person_permits_is_judged_as_part_of_the_contract() {
    let stage = stage("person-key");
    make_key(&stage);
    let script = "/run/provost/self ask path src/c.txt 'the code moved' && echo more > src/c.txt; \
                  /run/provost/self ask path .git/config 'why not'; \
                  /run/provost/self ask path src/a.txt 'mine already'; echo good > src/a.txt";
    let running = start(&stage, json!({ "may_ask": true }), script);
    let (run, asked) = question(&stage, "src/c.txt");
    assert_eq!(
        (&asked["kind"], &asked["needs"]),
        (&json!("path"), &json!("person-key"))
    );
    assert_eq!(asked["reason"], "the code moved");
    let digest = asked["digest"].as_str().unwrap().to_owned();
    let weak = stage.ask(&["approve", &run, &digest, "--json"]);
    assert_eq!(weak.code(), "PERSON_KEY_NEEDED", "{weak:?}");
    let key = file(&stage, "passphrase");
    let yes = stage.ask(&[
        "approve",
        &run,
        &digest,
        "--passphrase-file",
        &key,
        "--json",
    ]);
    assert_eq!(
        (yes.exit, &yes.json["recorded"]),
        (0, &json!(true)),
        "{yes:?}"
    );
    let outcome = running.wait();
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    let answer = &events(&stage, &run, "QUESTION_ANSWERED")[0];
    assert_eq!(answer["how"], "person-key", "{answer}");
    assert_eq!(
        events(&stage, &run, "LEASE_GRANTED").len(),
        2,
        "the path is leased"
    );
    assert_eq!(
        events(&stage, &run, "QUESTION_ASKED").len(),
        1,
        "the others cannot be asked"
    );
    let printed = stage.printed_in(&run);
    assert!(printed.contains("ASK_REFUSED"), "{printed}");
    assert!(
        statement(&stage, &run).contains("src/c.txt"),
        "{}",
        statement(&stage, &run)
    );
    let report = fs::read_to_string(stage.evidence(&run, "reports/work_report.json")).unwrap();
    assert!(report.contains("src/c.txt"), "{report}");
    let verified = stage.ask(&["verify", &run]);
    assert!(
        verified.says("given by a person: write `src/c.txt`"),
        "{verified:?}"
    );
    assert_eq!(stage.verify(&run).exit, 0);
}

#[test]
fn a_no_and_silence_leave_the_contract_as_it_is() {
    let stage = stage("terminal");
    let script = format!("/run/provost/self ask path src/c.txt why; {BROAD}");
    let running = start(&stage, json!({ "may_ask": true }), &script);
    let (run, asked) = question(&stage, "src/c.txt");
    let digest = asked["digest"].as_str().unwrap();
    let no = stage.ask(&["reject", &run, digest, "--reason", "not here", "--json"]);
    assert_eq!(no.exit, 0, "{no:?}");
    let outcome = running.wait();
    assert_eq!(outcome.code(), "DIFF_REFUSED", "{outcome:?}");
    assert!(
        stage
            .printed_in(&run)
            .contains("a person said no: not here")
    );
    assert_eq!(stage.verify(&run).exit, 0);

    stage.commit(&[(
        "provost.toml",
        "[commands]\nallow = [\"sh check.sh\"]\n[ask]\nwait = \"1s\"\n",
    )]);
    let outcome = start(&stage, json!({ "may_ask": true }), &script).wait();
    assert_eq!(outcome.code(), "DIFF_REFUSED", "{outcome:?}");
    let run = stage.last_run().unwrap();
    assert_eq!(events(&stage, &run, "QUESTION_EXPIRED").len(), 1);
    let digest = events(&stage, &run, "QUESTION_ASKED")[0]["digest"].clone();
    let late = stage.ask(&["approve", &run, digest.as_str().unwrap(), "--json"]);
    assert_eq!(late.code(), "NOTHING_TO_APPROVE", "{late:?}");

    // A contract that does not let its agent ask.
    let outcome = start(&stage, json!({}), &script).wait();
    assert_eq!(outcome.code(), "DIFF_REFUSED", "{outcome:?}");
    assert!(events(&stage, &stage.last_run().unwrap(), "QUESTION_ASKED").is_empty());
}

#[test]
fn a_widening_that_was_asked_survives_its_driver() {
    let stage = stage("terminal");
    let script = format!("/run/provost/self ask path src/c.txt why; {BROAD}");
    let running = start(&stage, json!({ "may_ask": true }), &script);
    let (run, asked) = question(&stage, "src/c.txt");
    running.signal(Signal::KILL);
    let _ = running.wait();
    let digest = asked["digest"].as_str().unwrap();
    let yes = stage.ask(&["approve", &run, digest, "--json"]);
    assert_eq!(yes.exit, 0, "{yes:?}");
    let outcome = stage.ask(&["resume", &run, "--json"]);
    assert_eq!(outcome.exit, 0, "{outcome:?}");
    assert_eq!(events(&stage, &run, "QUESTION_ASKED").len(), 1);
    assert_eq!(stage.verify(&run).exit, 0);
}

/// A stage where the repository, the keys and everything else of the user are in one home.
struct HomeStage {
    stage: Stage,
    home: PathBuf,
}

impl HomeStage {
    fn new() -> Self {
        let stage = stage("terminal");
        let home = stage.path("repo").parent().unwrap().to_owned();
        for (name, text) in [
            (".ssh/id", "secret"),
            (".netrc", "secret"),
            ("notes.txt", "mine"),
            (".config/other", "x"),
        ] {
            fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
            fs::write(home.join(name), text).unwrap();
        }
        Self { stage, home }
    }

    fn ask(&self, words: &[&str]) -> Outcome {
        let mut command = self.stage.provost(words);
        let places = [
            "XDG_CACHE_HOME",
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "PROVOST_KEYS",
        ];
        for name in places {
            command.env_remove(name);
        }
        command.env("HOME", &self.home);
        self.stage.spawn(command).wait()
    }

    /// A run whose agent changes a note, and tries to reach what is masked.
    fn run(&self, more: &[&str]) -> Outcome {
        let home = self.home.display().to_string();
        let script = format!(
            "H={home}; echo got > $H/notes.txt; cat $H/.netrc $H/.ssh/id; \
             ls $H/.config/provost $H/.local/state/provost $H/.cache/provost; \
             mv $H/.config $H/.config2 || echo unmoved; \
             echo x > $H/.ssh/authorized_keys || echo unwritten; \
             ls @REPO@/.git @REPO@/.provost; echo good > src/a.txt"
        );
        let agent = self.stage.agent(&script);
        let first = [
            "run",
            "do it",
            "--allow",
            "src/a.txt",
            "--accept",
            "sh check.sh",
        ];
        let all = first.into_iter().chain(["--agent-cmd", &agent, "--json"]);
        let all: Vec<&str> = all.chain(more.iter().copied()).collect();
        self.ask(&all)
    }

    /// What the agent did, and what it could not.
    fn check(&self, run: &str) {
        let home = &self.home;
        assert_eq!(fs::read_to_string(home.join("notes.txt")).unwrap(), "got\n");
        let printed = self.stage.printed_in(run);
        for hidden in ["secret", "signing.key", "HEAD"] {
            assert!(!printed.contains(hidden), "{hidden}: {printed}");
        }
        for want in ["unmoved", "unwritten"] {
            assert!(printed.contains(want), "{want}: {printed}");
        }
        assert!(home.join(".config/other").exists() && !home.join(".ssh/authorized_keys").exists());
    }
}

#[test]
fn the_files_of_the_user_need_a_key_and_secrets_stay_masked() {
    let stage = HomeStage::new();
    let ask = |words: &[&str]| stage.ask(words);
    let full = ["--danger-full-access", "the notes are wrong"];
    let none = stage.run(&full);
    assert_eq!(
        (none.code(), none.exit),
        ("PERSON_KEY_NEEDED", 3),
        "{none:?}"
    );
    let weaker = stage.run(&[&full[..], &["--tier", "landlock"]].concat());
    assert_ne!(weaker.exit, 0, "{weaker:?}");

    let key = file(&stage.stage, "passphrase");
    let made = ask(&[
        "key",
        "new",
        "--person",
        "--passphrase-file",
        &key,
        "--json",
    ]);
    assert_eq!(made.exit, 0, "{made:?}");
    let waits = stage.run(&full);
    assert_eq!(waits.code(), "APPROVAL_NEEDED", "{waits:?}");
    let run = waits.json["run_id"].as_str().unwrap().to_owned();
    assert!(ask(&["show", &run]).says("DANGER"), "it is shown");
    let terminal = ask(&["approve", &run, "--reason", "yes", "--json"]);
    assert_eq!(terminal.code(), "PERSON_KEY_NEEDED", "{terminal:?}");
    let reasonless = ask(&["approve", &run, "--passphrase-file", &key, "--json"]);
    assert_eq!(reasonless.exit, 2, "{reasonless:?}");
    let yes = [
        "approve",
        &run,
        "--passphrase-file",
        &key,
        "--reason",
        "fix my notes",
        "--for",
        "7d",
        "--go",
        "--json",
    ];
    let outcome = ask(&yes);
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    stage.check(&run);
    let granted = ask(&["show", &run, "--json"]).json["granted"].to_string();
    assert!(
        granted.contains("DANGER") && granted.contains("fix my notes"),
        "{granted}"
    );
    assert!(ask(&["log", &run]).says("person-key"));
    let verified = ask(&["verify", &run]);
    assert!(verified.says("given by a person: DANGER"), "{verified:?}");
    let given = &events(&stage.stage, &run, "HUMAN_APPROVAL_COMPLETED")[0];
    let until = given["until"].as_str().unwrap().to_owned();
    let began = events(&stage.stage, &run, "HUMAN_APPROVAL_REQUIRED").len();
    assert_eq!(began, 1);
    let hours = |text: &str| text[11..13].parse::<u32>().unwrap();
    let asked = outcome.json["began"].as_str().unwrap_or(&until).to_owned();
    assert!(
        (hours(&until) + 24 - hours(&asked)) % 24 <= 1,
        "{asked} {until}"
    );
}
