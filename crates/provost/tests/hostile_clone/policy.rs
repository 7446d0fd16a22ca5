//! What the policy of a cloned repository may reach: nothing before its user agreed.

use std::fs;

use serde_json::{Value, json};

use provost_testkit::stage::Outcome;

use crate::stage::Users;

fn victim(stage: &Users, words: &[&str]) -> Outcome {
    stage.ask("victim", "victim/repo", words)
}

/// A repository whose policy is `policy`, as the victim cloned it.
fn cloned(policy: &str) -> Users {
    let stage = Users::new();
    let policy = policy.replace("PLACE", &stage.place);
    stage.repository(
        "author/repo",
        &[
            ("src/a.txt", "base\n"),
            ("lock", "1\n"),
            ("check.sh", "true\n"),
            ("provost.toml", &policy),
        ],
    );
    let from = stage.path("author/repo").display().to_string();
    stage.git_in("victim", &["clone", "-q", &from, "repo"]);
    stage
}

/// The digest that a refusal names in its hint.
fn digest(outcome: &Outcome) -> String {
    assert_eq!(outcome.code(), "CONSENT_NEEDED", "{outcome:?}");
    let hint = outcome.json["details"]["hint"].as_str().unwrap().to_owned();
    hint.strip_prefix("provost init --trust ")
        .unwrap()
        .to_owned()
}

const RUN: &[&str] = &[
    "run",
    "x",
    "--allow",
    "src",
    "--accept",
    "sh check.sh",
    "--json",
];

#[test]
fn a_step_reaches_a_place_only_after_its_user_agreed_to_exactly_it() {
    let stage = cloned(
        "[[prepare]]\nname = \"deps\"\nrun = [\"sh -c 'mkdir -p dep; curl -s http://PLACE/step > \
         dep/x'\"]\ninputs = [\"lock\"]\noutputs = [\"dep\"]\nnet = [\"PLACE\"]\n",
    );
    let run = [RUN, &["--agent-cmd", "sh -c 'echo good > src/a.txt'"]].concat();
    let refused = victim(&stage, &run);
    assert!(refused.says(&stage.place), "{refused:?}");
    let trust = digest(&refused);
    assert_eq!(digest(&victim(&stage, &["prepare", "--json"])), trust);
    assert_eq!(stage.requests(), [""; 0]);
    let wrong = victim(&stage, &["init", "--trust", &"0".repeat(64), "--json"]);
    assert_eq!(wrong.code(), "NOT_FOUND", "{wrong:?}");
    assert_eq!(victim(&stage, &["init", "--trust", &trust]).exit, 0);
    let done = victim(&stage, &run);
    assert_eq!(done.code(), "OK", "{done:?}");
    assert_eq!(stage.requests().len(), 1);
    // Another text is another question.
    let policy = stage.path("victim/repo/provost.toml");
    let text = fs::read_to_string(&policy).unwrap();
    fs::write(&policy, text.replace("/step", "/more")).unwrap();
    let git = |words: &[&str]| stage.git_in("victim/repo", words);
    for (name, value) in [("user.name", "x"), ("user.email", "x@localhost")] {
        git(&["config", name, value]);
    }
    git(&["commit", "-q", "-a", "-m", "more"]);
    assert_ne!(digest(&victim(&stage, &run)), trust);
}

#[test]
fn a_command_in_a_sandbox_without_network_needs_no_question() {
    let stage = cloned("[agents.default]\ncommand = \"sh -c 'echo good > src/a.txt'\"\n");
    let done = victim(&stage, RUN);
    assert_eq!(done.code(), "OK", "{done:?}");
    // A file of the host that the policy names is not there for it.
    let private = stage.path("victim/private").display().to_string();
    let policy = format!("[agents.default]\ncommand = \"cp {private} src/a.txt\"\n");
    let stage = cloned(&policy);
    let done = victim(&stage, RUN);
    assert_eq!(done.code(), "AGENT_FAILED", "{done:?}");
}

#[test]
fn an_agent_of_the_policy_gets_no_key_before_its_user_agreed() {
    let stage = cloned("[agents.default]\nadapter = \"claude\"\nmodel = \"m\"\n");
    let words = [RUN, &["--agent", "default"]].concat();
    for words in [RUN, &words] {
        let refused = victim(&stage, words);
        digest(&refused);
        assert!(refused.says("ANTHROPIC_API_KEY"), "{refused:?}");
        assert!(refused.says("api.anthropic.com:443"), "{refused:?}");
    }
    let plan = victim(&stage, &["plan", "x", "--json"]);
    digest(&plan);
}

#[test]
fn a_place_that_the_policy_lets_pass_is_agreed_to_first() {
    let stage = cloned(
        "[commands]\nallow = [\"sh check.sh\"]\n[approve]\nnet = [\"PLACE\"]\npaths = [\"src\"]\n",
    );
    let mut contract: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract-minimal.json"
    )))
    .unwrap();
    contract["allowed_paths"] = json!(["src"]);
    contract["acceptance_tests"] =
        json!([{ "name": "check", "cmd": "sh check.sh", "must_pass": true }]);
    contract["tool_permissions"]["network"] = json!("allow");
    contract["x_provost"] = json!({ "net": [stage.place] });
    stage.write("victim/contract.json", &contract.to_string());
    let agent = format!("sh -c 'curl -s http://{} > src/a.txt'", stage.place);
    let words = [
        "run",
        "-f",
        "../contract.json",
        "--agent-cmd",
        &agent,
        "--json",
    ];
    let trust = digest(&victim(&stage, &words));
    assert_eq!(stage.requests(), [""; 0]);
    assert_eq!(victim(&stage, &["init", "--trust", &trust]).exit, 0);
    let done = victim(&stage, &words);
    assert_eq!(done.code(), "OK", "{done:?}");
    assert_eq!(stage.requests().len(), 1);
}
