//! Answers by the key of a person, what an agent asks for while it works, and the user's own files.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stage::{Running, Stage, lacks};

const PASSPHRASE: &str = "correct horse battery";

/// A stage whose policy asks for `needs`.
pub(super) fn stage(needs: &str) -> Stage {
    let stage = Stage::new();
    let policy = format!(
        "[commands]\nallow = [\"sh check.sh\"]\n[approve]\nneeds = \"{needs}\"\n[ask]\nwait = \"1m\"\n"
    );
    stage.commit(&[("provost.toml", &policy)]);
    stage.write("passphrase", PASSPHRASE);
    stage.write("wrong", "another passphrase");
    stage
}

pub(super) fn file(stage: &Stage, name: &str) -> String {
    stage.path(name).display().to_string()
}

pub(super) fn make_key(stage: &Stage) -> Value {
    let file = file(stage, "passphrase");
    let words = [
        "key",
        "new",
        "--person",
        "--name",
        "ann",
        "--passphrase-file",
        &file,
        "--json",
    ];
    let made = stage.ask(&words);
    assert_eq!(made.exit, 0, "{made:?}");
    made.json
}

/// The contract that all runs here have, with `more` in `x_provost`.
fn contract(stage: &Stage, more: Value) -> String {
    let mut contract: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    )))
    .unwrap();
    contract["allowed_paths"] = json!(["src/a.txt"]);
    contract["acceptance_tests"] =
        json!([{ "name": "check", "cmd": "sh check.sh", "must_pass": true }]);
    contract["x_provost"] = more;
    stage.write("contract.json", &contract.to_string());
    stage.path("contract.json").display().to_string()
}

pub(super) fn start(stage: &Stage, more: Value, script: &str) -> Running {
    let file = contract(stage, more);
    let agent = stage.agent(script);
    stage.spawn(stage.provost(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]))
}

/// The run and its question about `content`, once it is open.
pub(super) fn question(stage: &Stage, content: &str) -> (String, Value) {
    let until = Instant::now() + Duration::from_secs(40);
    loop {
        let status = stage.ask(&["status", "--json"]).json;
        let run = &status["open"][0];
        if run["questions"][0]["content"] == content {
            let id = run["run_id"].as_str().unwrap().to_owned();
            return (id, run["questions"][0].clone());
        }
        assert!(Instant::now() < until, "no question: {status}");
        sleep(Duration::from_millis(100));
    }
}

pub(super) fn events(stage: &Stage, run: &str, kind: &str) -> Vec<Value> {
    let ledger = fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
    let events = ledger
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap());
    let found = events.filter(|event| event["event_type"] == kind);
    found.map(|event| event["payload"].clone()).collect()
}

const GOOD: &str = "echo good > src/a.txt";

/// A run that waits for an approval; its id.
fn waiting(stage: &Stage) -> String {
    let agent = stage.agent(GOOD);
    let file = contract(stage, json!({ "permit": { "fewer_tests": true } }));
    let waits = stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]);
    assert_eq!(waits.code(), "APPROVAL_NEEDED", "{waits:?}");
    waits.json["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_waits_for_the_key_of_a_person_and_takes_nothing_weaker() {
    let stage = stage("person-key");
    let agent = stage.agent(GOOD);
    let contract = contract(&stage, json!({ "permit": { "fewer_tests": true } }));
    let none = stage.ask(&["run", "-f", &contract, "--agent-cmd", &agent, "--json"]);
    assert_eq!(
        (none.code(), none.exit),
        ("PERSON_KEY_NEEDED", 3),
        "{none:?}"
    );

    let made = make_key(&stage);
    let again = stage.ask(&[
        "key",
        "new",
        "--person",
        "--passphrase-file",
        &file(&stage, "wrong"),
    ]);
    assert_eq!(again.exit, 2, "a person key is never replaced: {again:?}");
    let shown = stage.ask(&["key", "show", "--json"]).json;
    assert_eq!(shown["person"]["place"], "passphrase", "{shown}");
    let run = waiting(&stage);
    // Without a terminal nothing types the passphrase.
    let weak = stage.ask(&["approve", &run, "--json"]);
    assert_eq!(weak.code(), "PERSON_KEY_NEEDED", "{weak:?}");
    let wrong = file(&stage, "wrong");
    let wrong = stage.ask(&["approve", &run, "--passphrase-file", &wrong, "--json"]);
    assert_eq!(wrong.code(), "PERSON_KEY_REFUSED", "{wrong:?}");
    let right = file(&stage, "passphrase");
    let other = [
        "approve",
        &run,
        "--passphrase-file",
        &right,
        "--digest",
        "00",
        "--json",
    ];
    assert_eq!(stage.ask(&other).code(), "NOTHING_TO_APPROVE");
    assert!(events(&stage, &run, "HUMAN_APPROVAL_COMPLETED").is_empty());

    let yes = stage.ask(&[
        "approve",
        &run,
        "--passphrase-file",
        &right,
        "--go",
        "--json",
    ]);
    assert_eq!((yes.code(), yes.exit), ("OK", 0), "{yes:?}");
    let given = &events(&stage, &run, "HUMAN_APPROVAL_COMPLETED")[0];
    assert_eq!(given["how"], "person-key");
    assert_eq!(given["signature"]["key"], made["person"]["key"]);
    let twice = stage.ask(&["approve", &run, "--passphrase-file", &right, "--json"]);
    assert_eq!(twice.exit, 1, "{twice:?}");
    assert_eq!(stage.verify(&run).exit, 0);
}

#[test]
fn the_settings_of_the_user_can_only_make_it_stricter() {
    let stage = stage("terminal");
    let settings = "config/provost/config.toml";
    stage.write(settings, "[approve]\nneeds = \"person-key\"\n");
    make_key(&stage);
    let run = waiting(&stage);
    let weak = stage.ask(&["approve", &run, "--json"]);
    assert_eq!(weak.code(), "PERSON_KEY_NEEDED", "{weak:?}");
    let no = stage.ask(&["reject", &run, "--reason", "no", "--json"]);
    assert_eq!(no.code(), "APPROVAL_REJECTED", "a no gives nothing: {no:?}");
    // What permits more is no setting of a user.
    stage.write(settings, "[approve]\npaths = [\"src\"]\n");
    let file = stage.path("contract.json").display().to_string();
    let wider = stage.ask(&["run", "-f", &file, "--agent-cmd", "true", "--json"]);
    assert_eq!(wider.code(), "INPUT_INVALID", "{wider:?}");
}

/// A real ssh-agent with one key, which ends with this value.
struct RealAgent {
    child: Child,
    socket: PathBuf,
}

impl RealAgent {
    fn start(stage: &Stage) -> Self {
        let socket = PathBuf::from(file(stage, "agent.sock"));
        let child = Command::new("ssh-agent")
            .args(["-D", "-a"])
            .arg(&socket)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let agent = Self { child, socket };
        let until = Instant::now() + Duration::from_secs(20);
        while !agent.socket.exists() {
            assert!(Instant::now() < until, "no agent");
            sleep(Duration::from_millis(50));
        }
        agent
    }

    fn add(&self, stage: &Stage, name: &str, kind: &str) -> String {
        let key = file(stage, name);
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", kind, "-N", "", "-C", name, "-f", &key])
            .status();
        assert!(made.unwrap().success());
        let added = Command::new("ssh-add")
            .arg("-q")
            .arg(&key)
            .env("SSH_AUTH_SOCK", &self.socket)
            .status();
        assert!(added.unwrap().success());
        let printed = Command::new("ssh-keygen").args(["-lf", &key]).output();
        let printed = String::from_utf8(printed.unwrap().stdout).unwrap();
        printed.split_whitespace().nth(1).unwrap().to_owned()
    }

    fn ask(&self, stage: &Stage, words: &[&str]) -> crate::stage::Outcome {
        let mut command = stage.provost(words);
        command.env("SSH_AUTH_SOCK", &self.socket);
        stage.spawn(command).wait()
    }
}

impl Drop for RealAgent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_key_of_a_real_ssh_agent_signs_and_ssh_keygen_agrees() {
    if lacks("ssh-agent") || lacks("ssh-keygen") {
        return;
    }
    let stage = stage("person-key");
    let no_agent = stage.ask(&["key", "new", "--person", "--ssh-agent", "--json"]);
    assert_eq!(no_agent.code(), "PERSON_KEY_REFUSED", "{no_agent:?}");
    let agent = RealAgent::start(&stage);
    agent.add(&stage, "other", "ecdsa");
    let first = agent.add(&stage, "first", "ed25519");
    let second = agent.add(&stage, "second", "ed25519");
    let many = agent.ask(&stage, &["key", "new", "--person", "--ssh-agent", "--json"]);
    assert_eq!(many.code(), "PERSON_KEY_REFUSED", "{many:?}");
    let made = agent.ask(
        &stage,
        &["key", "new", "--person", "--ssh-agent", &second, "--json"],
    );
    assert_eq!(made.exit, 0, "{made:?}");
    assert_eq!(made.json["person"]["fingerprint"], second.as_str());
    assert_ne!(first, second);

    let run = waiting(&stage);
    let absent = stage.ask(&["approve", &run, "--json"]);
    assert_eq!(absent.code(), "PERSON_KEY_REFUSED", "{absent:?}");
    let yes = agent.ask(&stage, &["approve", &run, "--go", "--json"]);
    assert_eq!((yes.code(), yes.exit), ("OK", 0), "{yes:?}");
    assert_eq!(stage.verify(&run).exit, 0);

    // Another implementation checks the same signature.
    let given = &events(&stage, &run, "HUMAN_APPROVAL_COMPLETED")[0];
    let text =
        json!({ "allow": true, "digest": given["digest"], "reason": "", "until": given["until"] });
    let public = fs::read_to_string(file(&stage, "second.pub")).unwrap();
    fs::write(file(&stage, "signers"), format!("ann {public}")).unwrap();
    fs::write(
        file(&stage, "answer.sig"),
        armoured(&public, given["signature"]["signature"].as_str().unwrap()),
    )
    .unwrap();
    let mut check = Command::new("ssh-keygen");
    check.args(["-Y", "verify", "-n", "provost-answer", "-I", "ann", "-f"]);
    check
        .arg(file(&stage, "signers"))
        .arg("-s")
        .arg(file(&stage, "answer.sig"));
    let mut child = check.stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(
        &mut child.stdin.take().unwrap(),
        text.to_string().as_bytes(),
    )
    .unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
}

/// A signature in the file format of SSH.
fn armoured(public: &str, signature: &str) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let put = |bytes: &mut Vec<u8>, text: &[u8]| {
        bytes.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
        bytes.extend(text);
    };
    let mut blob = b"SSHSIG\x00\x00\x00\x01".to_vec();
    put(
        &mut blob,
        &STANDARD.decode(public.split(' ').nth(1).unwrap()).unwrap(),
    );
    put(&mut blob, b"provost-answer");
    put(&mut blob, b"");
    put(&mut blob, b"sha512");
    let mut inner = Vec::new();
    put(&mut inner, b"ssh-ed25519");
    put(&mut inner, &STANDARD.decode(signature).unwrap());
    put(&mut blob, &inner);
    let text = STANDARD.encode(blob);
    format!("-----BEGIN SSH SIGNATURE-----\n{text}\n-----END SSH SIGNATURE-----\n")
}
