//! Requests that schemathesis makes from the `OpenAPI` document.

use std::path::PathBuf;
use std::process::Command;

use provost_testkit::stage::{Ask, Stage};
use serde_json::{Value, json};

use crate::server::Server;

fn fuzzer() -> Option<PathBuf> {
    let tools = std::env::var_os("PROVOST_TEST_TOOLS").map(PathBuf::from);
    let program = tools.map(|it| it.join("schemathesis/bin/schemathesis"));
    let found = program.filter(|it| it.is_file());
    if found.is_none() {
        provost_testkit::skip("there is no schemathesis");
    }
    found
}

/// The document, whose reading routes name the repository and the run that there are, or another.
fn document(repository: &str, run: &str) -> Value {
    let text = include_str!("../../../../schemas/openapi.v1.json");
    let mut document: Value = serde_json::from_str(text).unwrap();
    for methods in document["paths"].as_object_mut().unwrap().values_mut() {
        let Some(parameters) = methods.get_mut("get").map(|it| &mut it["parameters"]) else {
            continue;
        };
        for parameter in parameters.as_array_mut().unwrap() {
            let known = match parameter["name"].as_str().unwrap() {
                "repository" => repository,
                "run" => run,
                _ => continue,
            };
            parameter["schema"] = json!({ "anyOf": [{ "const": known }, { "type": "string" }] });
        }
    }
    document
}

#[test]
fn no_request_of_the_openapi_document_is_a_server_error() {
    let Some(program) = fuzzer() else {
        return;
    };
    let Some(stage) = Stage::with_sandbox() else {
        return;
    };
    let outcome = stage.run("echo good > src/a.txt", &Ask::default());
    let run = outcome.text("run_id").to_owned();
    let words = [
        "serve", "token", "new", "fuzz", "--scope", "command", "--json",
    ];
    let token = stage.ask(&words).text("token").to_owned();
    let server = Server::start(&stage);
    let all: Value =
        serde_json::from_str(&server.api("/api/v1/repositories", &token).body).unwrap();
    let repository = all["items"][0]["id"].as_str().unwrap();
    stage.write("openapi.json", &document(repository, &run).to_string());
    let (_, port) = server.host.rsplit_once(':').unwrap();
    let fuzzed = Command::new(program)
        .arg("run")
        .arg(stage.path("openapi.json"))
        .args(["--url", &format!("http://127.0.0.1:{port}")])
        .args(["--header", &format!("Host: {}", server.host)])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .args([
            "--checks",
            "not_a_server_error",
            "--phases",
            "coverage,fuzzing",
        ])
        .args(["--max-examples", "12", "--max-time", "30", "--no-shrink"])
        .args(["--generation-deterministic", "--warnings", "off"])
        .current_dir(stage.path("outside"))
        .env("HOME", stage.path("home"))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&fuzzed.stdout).into_owned();
    let errors = String::from_utf8_lossy(&fuzzed.stderr);
    assert!(fuzzed.status.success(), "{printed}\n{errors}");
    assert!(printed.contains("Test cases:"), "{printed}");
    let after = server.api("/api/v1/repositories", &token);
    assert_eq!(after.status, 200, "the server still answers");
    let shown = stage.ask(&["show", &run, "--json"]);
    assert_eq!(
        shown.json["status"], "SUCCESS",
        "nothing was done to the run"
    );
    println!("{printed}");
}
