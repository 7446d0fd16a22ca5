//! The control room of the real program: by hand-written HTTP, and in the real Chromium.

#![expect(clippy::unwrap_used, reason = "what goes wrong here is a failed test")]

mod browser;
mod chromium;
mod fuzzed;
mod killed;
mod many;
mod questions;
mod scene;
mod server;

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use provost_testkit::stage::{Stage, until};
use serde_json::{Value, json};

use crate::server::Server;

/// A stage with a run that waits for approval, and the id of the run.
fn waiting() -> Option<(Stage, String)> {
    let stage = Stage::with_sandbox()?;
    stage.commit(&[("provost.toml", "[commands]\nallow = [\"sh check.sh\"]\n")]);
    let mut contract: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    )))
    .unwrap();
    contract["allowed_paths"] = json!(["src"]);
    contract["acceptance_tests"] =
        json!([{ "name": "check", "cmd": "sh check.sh", "must_pass": true }]);
    stage.write("contract.json", &contract.to_string());
    let file = stage.path("contract.json").display().to_string();
    let agent = stage.agent("echo good > src/a.txt; echo '<b>done</b>'");
    let outcome = stage.ask(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]);
    assert_eq!(outcome.exit, 3, "{outcome:?}");
    let run = outcome.text("run_id").to_owned();
    Some((stage, run))
}

/// The value of the first field `name` on a page.
fn field<'a>(page: &'a str, name: &str) -> &'a str {
    let (_, rest) = page
        .split_once(&format!("name=\"{name}\" value=\""))
        .unwrap();
    rest.split_once('"').unwrap().0
}

#[test]
fn an_approval_on_a_page_lets_a_waiting_run_go_on() {
    let Some((stage, run)) = waiting() else {
        return;
    };
    let server = Server::start(&stage);
    let cookie = server.enter();
    let inbox = server.get("/", &cookie);
    assert_eq!(inbox.status, 200, "{inbox:?}");
    for part in ["waits for your approval", "/allowed_paths/0", "(1) Inbox"] {
        assert!(inbox.body.contains(part), "{part}: {}", inbox.body);
    }
    let (_, path) = inbox.body.split_once("action=\"").unwrap();
    let path = path.split_once('"').unwrap().0;
    assert!(path.ends_with(&format!("{run}/approve")), "{path}");
    let token = field(&inbox.body, "form_token");
    let digest = field(&inbox.body, "digest");

    let wrong = format!("form_token={token}&digest={}", "0".repeat(64));
    assert_ne!(
        server.post(path, &cookie, &wrong).status,
        303,
        "another question"
    );
    let form = format!("form_token={token}&digest={digest}");
    assert_eq!(server.post(path, &cookie, &form).status, 303);
    until(&format!("{run} is accepted"), || {
        let shown = stage.ask(&["show", &run, "--json"]);
        shown.json["status"] == "SUCCESS"
    });
    let shown = stage.ask(&["show", &run, "--json"]);
    let by = shown.json["approval"]["by"]["user"].as_str().unwrap();
    assert!(
        by.contains("(serve-session ") && by.contains(", command "),
        "{by}"
    );

    evidence(&stage, &server, &cookie, path.trim_end_matches("/approve"));
    let page = server.get(path.trim_end_matches("/approve"), &cookie);
    assert!(
        page.body.contains("&lt;b&gt;done&lt;/b&gt;"),
        "{}",
        page.body
    );
    let land = path.replace("/approve", "/land");
    let form = format!("form_token={token}");
    assert_eq!(server.post(&land, &cookie, &form).status, 303);
    until("it landed", || {
        stage.git(&["show", "main:src/a.txt"]).contains("good")
    });
}

/// Files are given by a name from the manifest only.
fn evidence(stage: &Stage, server: &Server, cookie: &str, at: &str) {
    let page = server.get(&format!("{at}/evidence"), cookie);
    assert!(page.body.contains("the evidence holds"), "{}", page.body);
    let file = |name: &str| server.get(&format!("{at}/file?name={name}"), cookie).status;
    assert_eq!(file("attestation.dsse.json"), 200);
    assert_eq!(file("events.jsonl"), 200);
    stage.write("repo/.provost/runs/secret", "xyzzy");
    for name in ["driver.lock", "../secret", "..%2Fsecret", "/etc/passwd", ""] {
        assert_eq!(file(name), 404, "{name}");
    }
    let (above, _) = at.rsplit_once('/').unwrap();
    for run in ["..", "run_..", "%2E%2E", "last", "run_%2F..%2F.."] {
        assert_eq!(
            server.get(&format!("{above}/{run}"), cookie).status,
            404,
            "{run}"
        );
    }
}

#[test]
fn a_token_reads_and_the_socket_is_for_its_owner_alone() {
    let stage = Stage::new();
    let made = stage.ask(&["serve", "token", "new", "ci", "--expires", "1h", "--json"]);
    assert_eq!(made.exit, 0, "{made:?}");
    let token = made.text("token").to_owned();
    let listed = stage.ask(&["serve", "token", "list", "--json"]);
    assert!(!listed.out().contains(&token), "{listed:?}");

    let server = Server::start(&stage);
    let answer = server.api("/api/v1/repositories", &token);
    assert_eq!(answer.status, 200, "{answer:?}");
    let all: Value = serde_json::from_str(&answer.body).unwrap();
    let id = all["items"][0]["id"].as_str().unwrap();
    let runs = server.api(&format!("/api/v1/runs/{id}"), &token);
    assert_eq!(runs.status, 200, "{runs:?}");
    let absent = server.api(&format!("/api/v1/runs/{id}/run_none"), &token);
    assert_eq!(absent.status, 404, "{absent:?}");
    assert!(absent.body.contains("NOT_FOUND"), "{absent:?}");
    let cancel = server.api_post(&format!("/api/v1/runs/{id}/run_none/cancel"), &token);
    assert_eq!(cancel.status, 403, "{cancel:?}");
    let words = [
        "serve", "token", "new", "robot", "--scope", "command", "--json",
    ];
    let robot = stage.ask(&words).text("token").to_owned();
    let cancel = server.api_post(&format!("/api/v1/runs/{id}/run_none/cancel"), &robot);
    assert_eq!(cancel.status, 404, "{cancel:?}");
    for path in [
        "inbox".to_owned(),
        format!("ground/{id}"),
        format!("cases/{id}"),
    ] {
        let answer = server.api(&format!("/api/v1/{path}"), &token);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(stage.ask(&["serve", "token", "revoke", "ci"]).exit, 0);
    assert_eq!(server.api("/api/v1/repositories", &token).status, 401);

    let mut child = server::spawn(&stage, &["serve", "--json"]);
    let at = server::announced(&mut child);
    let socket = std::path::Path::new(at["place"].as_str().unwrap()).to_owned();
    let permissions = socket.metadata().unwrap().permissions();
    assert_eq!(permissions.mode() & 0o777, 0o600);
    let second = stage.ask(&["serve", "--json"]);
    assert_eq!((second.exit, second.code()), (3, "RUN_BUSY"), "{second:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    std::thread::sleep(Duration::from_millis(10));
}

#[test]
fn a_new_link_opens_a_running_server_and_a_removed_repository_vanishes() {
    let stage = Stage::new();
    let none = stage.ask(&["serve", "link", "--json"]);
    assert_eq!((none.exit, none.code()), (2, "NOT_FOUND"), "{none:?}");
    let mut server = Server::start(&stage);
    let first = server.enter();
    let link = stage.ask(&["serve", "link", "--json"]);
    assert_eq!(link.exit, 0, "{link:?}");
    let path = link
        .text("link")
        .split_once(&server.host)
        .unwrap()
        .1
        .to_owned();
    let opened = server.get(&path, "");
    assert_eq!(opened.status, 303, "{opened:?}");
    assert_eq!(server.get(&path, "").status, 401, "a second use");
    assert_eq!(
        server.get("/", &first).status,
        200,
        "the first session stays"
    );
    let directory = stage.path("state/provost/serve");
    for entry in std::fs::read_dir(&directory).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{entry:?}");
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let (_, code) = path.split_once("code=").unwrap();
        assert!(!text.contains(code), "{text}");
    }

    let listed = stage.ask(&["serve", "repositories", "list", "--json"]);
    let id = listed.json[0]["id"].as_str().unwrap().to_owned();
    assert!(server.get("/runs", &first).body.contains("<h2>repo "));
    let removed = stage.ask(&["serve", "repositories", "remove", &id, "--json"]);
    assert_eq!(removed.exit, 0, "{removed:?}");
    assert!(!server.get("/runs", &first).body.contains("<h2>repo "));
    let again = stage.ask(&["serve", "repositories", "remove", &id]);
    assert_eq!(again.exit, 2, "{again:?}");
    assert!(stage.path("repo/src/a.txt").exists());

    server.kill();
    let gone = stage.ask(&["serve", "link", "--json"]);
    assert_eq!(gone.code(), "NOT_FOUND", "{gone:?}");
}

#[test]
fn a_write_that_a_hook_denied_is_on_the_ground() {
    let Some((stage, _)) = waiting() else {
        return;
    };
    let event = json!({ "hook_event_name": "PreToolUse", "cwd": stage.path("repo"),
        "session_id": "s1", "tool_name": "Write",
        "tool_input": { "file_path": "src/<b>.txt", "content": "x" } });
    let mut hook = stage.provost(&["hook", "claude"]);
    hook.env("PROVOST_AGENT", "scribe")
        .stdin(std::process::Stdio::piped());
    let mut child = hook.spawn().unwrap();
    std::io::Write::write_all(
        &mut child.stdin.take().unwrap(),
        event.to_string().as_bytes(),
    )
    .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let server = Server::start(&stage);
    let cookie = server.enter();
    let page = server.get("/ground", &cookie).body;
    for part in [
        "scribe",
        "src/&lt;b&gt;.txt",
        "no declared change is active",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_later_refusal_of_a_command_and_who_asked_are_on_the_page() {
    let Some((stage, run)) = waiting() else {
        return;
    };
    let server = Server::start(&stage);
    let cookie = server.enter();
    let inbox = server.get("/", &cookie).body;
    let (_, path) = inbox.split_once("action=\"").unwrap();
    let at = path.split_once("/approve\"").unwrap().0.to_owned();
    let token = field(&inbox, "form_token");
    let form = format!("form_token={token}");
    // A run that waits has nothing that could land.
    assert_ne!(
        server.post(&format!("{at}/land"), &cookie, &form).status,
        303
    );
    let page = server.get(&at, &cookie).body;
    for part in ["Commands", "land", "by serve-session "] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // What a killed server, or a process that refused later, leaves is read from the records.
    let directory = stage.path(&format!("repo/.provost/detached/serve/{run}"));
    let kept = r#"{"at":"2026-01-01T00:00:00Z","command":"resume","by":"serve-session 0a"}"#;
    let refusal = r#"{"allow":false,"code":"LEASE_HELD","reason":"src is held by another"}"#;
    for (name, outcome) in [("7A", None), ("7B", Some("")), ("7C", Some(refusal))] {
        std::fs::write(directory.join(format!("{name}.json")), kept).unwrap();
        if let Some(text) = outcome {
            std::fs::write(directory.join(format!("{name}.stdout")), text).unwrap();
        }
    }
    let page = server.get(&at, &cookie).body;
    for part in [
        "NOT BEGUN",
        "NO ANSWER",
        "LEASE_HELD",
        "src is held by another",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let inbox = server.get("/", &cookie).body;
    assert!(inbox.contains("src is held by another"), "{inbox}");
}
