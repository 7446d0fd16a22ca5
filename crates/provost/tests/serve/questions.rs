//! What a running agent asks is shown on pages and by the API, and answered there if no person key
//! is needed.

use std::fs;

use provost_testkit::stage::{Running, Stage, until};
use serde_json::{Value, json};

use crate::field;
use crate::server::Server;

/// A run whose agent asks for a path, under a policy that says what a yes `needs`; its id and the
/// digest of the question.
fn asking(needs: &str) -> Option<(Stage, Running, String, String)> {
    let stage = Stage::with_sandbox()?;
    let policy = format!("[commands]\nallow = [\"sh check.sh\"]\n[approve]\nneeds = \"{needs}\"\n");
    stage.commit(&[("provost.toml", &policy)]);
    stage.write("passphrase", "correct horse battery");
    let file = stage.path("passphrase").display().to_string();
    let made = stage.ask(&["key", "new", "--person", "--passphrase-file", &file]);
    assert_eq!(made.exit, 0, "{made:?}");
    let mut contract: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    )))
    .unwrap();
    contract["allowed_paths"] = json!(["src/a.txt"]);
    contract["x_provost"] = json!({ "may_ask": true });
    contract["acceptance_tests"] =
        json!([{ "name": "check", "cmd": "sh check.sh", "must_pass": true }]);
    stage.write("contract.json", &contract.to_string());
    let file = stage.path("contract.json").display().to_string();
    let agent = stage.agent(
        "/run/provost/self ask path src/c.txt '<i>why</i>' && echo more > src/c.txt; \
         echo good > src/a.txt",
    );
    let running = stage.provost(&["run", "-f", &file, "--agent-cmd", &agent, "--json"]);
    let running = stage.spawn(running);
    let mut asked = (String::new(), String::new());
    until("the agent asks", || {
        let status = stage.ask(&["status", "--json"]).json;
        let run = &status["open"][0];
        let digest = run["questions"][0]["digest"].as_str();
        let found = digest.is_some();
        asked = (
            run["run_id"].as_str().unwrap_or_default().to_owned(),
            digest.unwrap_or_default().to_owned(),
        );
        found
    });
    Some((stage, running, asked.0, asked.1))
}

/// How the question was answered.
fn how(stage: &Stage, run: &str) -> String {
    let ledger = fs::read_to_string(stage.evidence(run, "events.jsonl")).unwrap();
    let line = ledger.lines().find(|it| it.contains("QUESTION_ANSWERED"));
    let event: Value = serde_json::from_str(line.unwrap()).unwrap();
    event["payload"]["how"].as_str().unwrap().to_owned()
}

#[test]
fn a_question_of_an_agent_is_answered_on_its_page() {
    let Some((stage, running, run, digest)) = asking("terminal") else {
        return;
    };
    let server = Server::start(&stage);
    let cookie = server.enter();
    let inbox = server.get("/", &cookie);
    for part in [
        "asks you something",
        "src/c.txt",
        "&lt;i&gt;why&lt;/i&gt;",
        &digest,
    ] {
        assert!(inbox.body.contains(part), "{part}: {}", inbox.body);
    }
    let (_, path) = inbox.body.split_once("action=\"").unwrap();
    let path = path.split_once('"').unwrap().0;
    let page = server.get(path.trim_end_matches("/approve"), &cookie);
    assert!(page.body.contains("The agent asks"), "{}", page.body);
    let form = format!(
        "form_token={}&digest={digest}",
        field(&inbox.body, "form_token")
    );
    let done = server.post(path, &cookie, &form);
    assert_eq!(done.status, 303, "{done:?}");
    let outcome = running.wait();
    assert_eq!((outcome.code(), outcome.exit), ("OK", 0), "{outcome:?}");
    assert_eq!(how(&stage, &run), "serve-session");
}

#[test]
fn no_page_and_no_token_approves_what_needs_a_person_key() {
    let Some((stage, running, run, digest)) = asking("person-key") else {
        return;
    };
    let words = [
        "serve", "token", "new", "robot", "--scope", "command", "--json",
    ];
    let token = stage.ask(&words).text("token").to_owned();
    let server = Server::start(&stage);
    let cookie = server.enter();
    let inbox = server.get("/", &cookie);
    let command = format!("provost approve {run} {}", &digest[..12]);
    assert!(inbox.body.contains(&command), "{}", inbox.body);
    assert!(
        !inbox.body.contains(&format!("{run}/approve")),
        "{}",
        inbox.body
    );

    let listed = server.api("/api/v1/inbox", &token);
    let listed: Value = serde_json::from_str(&listed.body).unwrap();
    let item = &listed["items"][0];
    assert_eq!(item["reason"], "question", "{listed}");
    assert_eq!(item["questions"][0]["needs"], "person-key", "{listed}");
    let at = format!(
        "/api/v1/runs/{}/{run}",
        item["repository"].as_str().unwrap()
    );
    let body = json!({ "digest": digest }).to_string();
    let weak = server.api_send(&format!("{at}/approve"), &token, &body);
    assert!(weak.body.contains("PERSON_KEY_NEEDED"), "{weak:?}");
    let form = format!(
        "form_token={}&digest={digest}",
        field(&inbox.body, "form_token")
    );
    let page = at.replace("/api/v1/runs/", "/r/");
    let weak = server.post(&format!("{page}/approve"), &cookie, &form);
    assert_ne!(weak.status, 303, "{weak:?}");
    let no = server.api_send(&format!("{at}/reject"), &token, &body);
    assert_eq!(no.status, 200, "a no gives nothing: {no:?}");
    let outcome = running.wait();
    assert_eq!(outcome.code(), "OK", "{outcome:?}");
    assert_eq!(how(&stage, &run), "token");
}
