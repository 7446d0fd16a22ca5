//! Work with each kind of login, and a search for its tokens.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use provost_core::secret::Known;
use serde_json::{Value, json};

use super::stage::{ALL, By, LATER, LoginStage, Tokens, none_below, tokens};
use crate::agents::stage::traffic;
use crate::stage::Outcome;

/// The calls that mint keys, keep files, start work without an answer or show the account.
const FORBIDDEN: [&str; 13] = [
    "POST /api/oauth/claude_cli/create_api_key",
    "POST /v1/organizations/api_keys",
    "POST /v1/files",
    "POST /v1/messages/batches",
    "POST /v1/batches",
    "GET /api/oauth/profile",
    "GET /backend-api/wham/settings/user",
    "POST /backend-api/ps/mcp",
    "POST /upload/v1beta/files",
    "GET /v1beta/files",
    "POST /v1beta/cachedContents",
    "POST /v1beta/models/m:batchGenerateContent",
    "POST /v1beta/batches",
];

/// A turn that asks for everything that is forbidden, keeps everything that the sandbox shows in a
/// file, each letter moved by 13, and does the work.
fn look(place: &str) -> Value {
    let asked = FORBIDDEN.map(|call| {
        let (method, path) = call.split_once(' ').unwrap();
        format!("curl -s -m 5 -X {method} http://{place}{path}; ")
    });
    let asked = asked.concat();
    json!({ "shell": format!(
        "({asked} env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; ps aux; \
         find ~ /run/provost /tmp -type f -size -900k -exec cat {{}} +) 2>&1 | head -c 6000000 \
         | tr 'A-Za-z' 'N-ZA-Mn-za-m' | tr -cd '\\11\\12\\40-\\176' > src/look.txt; cat ~/.codex/auth.json \
         ~/.claude/.credentials.json; echo good > src/a.txt"
    ) })
}

fn moved(text: &str) -> String {
    let turn = |letter: char| match letter {
        'a'..='m' | 'A'..='M' => char::from(letter as u8 + 13),
        'n'..='z' | 'N'..='Z' => char::from(letter as u8 - 13),
        other => other,
    };
    text.chars().map(turn).collect()
}

#[test]
fn a_task_is_done_with_each_login_and_no_token_is_anywhere_else() {
    for by in ALL {
        let Some(stage) = LoginStage::new(by, &json!([])) else {
            return;
        };
        let turns = json!([look(&stage.agent.place), { "text": "I made it good." }]);
        stage.agent.inner.write("turns.json", &turns.to_string());
        let tokens = tokens(by, "quince", LATER);
        if by.variable().is_none() {
            stage.write(&tokens.content.to_string());
        }
        let before = fs::read(stage.agent.inner.path(by.file())).unwrap();
        let outcome = while_processes_are_watched(&tokens, || stage.run(&tokens));
        assert_eq!(
            (outcome.code(), outcome.exit),
            ("OK", 0),
            "{by:?} {outcome:?}"
        );
        let after = fs::read(stage.agent.inner.path(by.file())).unwrap();
        assert_eq!(before, after, "{by:?}: a login file is never written");
        the_model_got_the_token(&stage, &tokens);
        the_other_calls_were_refused(&stage, &outcome);
        no_token_is_anywhere(&stage, &tokens, &outcome);
    }
}

/// Does `work`, and looks for tokens in the arguments of every process of the machine meanwhile.
fn while_processes_are_watched(tokens: &Tokens, work: impl FnOnce() -> Outcome) -> Outcome {
    let known = Known::new(tokens.all.iter().map(|token| ("token", token.as_str())));
    let (done, curls) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for entry in fs::read_dir("/proc").unwrap().flatten() {
                    // A process may end meanwhile.
                    let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                    assert!(!known.is_in(&line), "{}", String::from_utf8_lossy(&line));
                    let is_curl = line.starts_with(b"curl\0");
                    curls.fetch_add(u64::from(is_curl), Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let outcome = work();
        done.store(true, Ordering::Relaxed);
        watch.join().unwrap();
        let curls = curls.load(Ordering::Relaxed);
        assert!(curls > 0, "no process of the sandbox was seen");
        outcome
    })
}

fn the_model_got_the_token(stage: &LoginStage, tokens: &Tokens) {
    let requests = stage.agent.requests();
    assert_eq!(requests.len(), 2, "one for each turn");
    for request in &requests {
        assert_eq!(request["key"], stage.by.sent(&tokens.sent));
        let account = matches!(stage.by, By::CodexFile).then_some("acct-9");
        assert_eq!(request["account"], json!(account));
        // The API takes such a token only with this word.
        let beta = request["beta"].as_str().unwrap_or_default();
        let subscription = matches!(stage.by, By::ClaudeToken | By::ClaudeFile);
        assert_eq!(beta.contains("oauth-2025-04-20"), subscription, "{beta}");
    }
    let model = requests[0]["request"]["model"].as_str().unwrap();
    // Claude Code chooses its model by the plan, which the dummy has from the file.
    let plan = match stage.by {
        By::ClaudeToken => "sonnet",
        By::ClaudeKey | By::ClaudeFile => "opus",
        By::CodexFile | By::CodexFileKey => "gpt",
        By::GeminiKey => "gemini",
    };
    assert!(model.contains(plan), "{model}");
}

fn the_other_calls_were_refused(stage: &LoginStage, outcome: &Outcome) {
    let others = stage.others();
    let lists = |line: &&str| !line.ends_with("/models");
    let others: Vec<&str> = others.lines().filter(lists).collect();
    assert_eq!(others, [""; 0], "{:?}", stage.by);
    let lines = outcome.json["network"].as_array().unwrap();
    let refused = |method: &str| {
        let of = |line: &&Value| {
            line["target"] == stage.agent.place.as_str()
                && line["method"] == method
                && line["code"] == "NETWORK_REFUSED"
        };
        let count = lines
            .iter()
            .filter(of)
            .map(|line| line["count"].as_u64().unwrap());
        count.sum::<u64>()
    };
    let asked = |method: &str| {
        FORBIDDEN
            .iter()
            .filter(|call| call.starts_with(method))
            .count()
    };
    for method in ["POST", "GET"] {
        assert!(
            refused(method) >= asked(method) as u64,
            "{method}: {lines:?}"
        );
    }
    let run = outcome.text("run_id");
    let events = fs::read_to_string(stage.agent.inner.evidence(run, "events.jsonl")).unwrap();
    assert!(events.contains("policy_violation"), "{:?}", stage.by);
    let brief = traffic(outcome);
    assert!(
        brief.contains(&json!(["POST", stage.agent.place, "OK"])),
        "{brief:?}"
    );
}

fn no_token_is_anywhere(stage: &LoginStage, tokens: &Tokens, outcome: &Outcome) {
    let inner = &stage.agent.inner;
    let branch = format!("{}:src/look.txt", outcome.text("branch"));
    let seen = provost_testkit::git(&inner.path("repo"), &["show", &branch]);
    assert!(
        seen.contains(&moved("kept-outside-the-box")),
        "{:?}",
        stage.by
    );
    let known = Known::new(tokens.all.iter().map(|token| ("token", token.as_str())));
    let seen = moved(&seen);
    assert_eq!(
        known.find(seen.as_bytes()),
        [],
        "{:?}: in the sandbox",
        stage.by
    );
    let printed = format!("{outcome:?}");
    assert_eq!(
        known.find(printed.as_bytes()),
        [],
        "{:?}: printed",
        stage.by
    );
    for name in ["repo", "cache"] {
        none_below(&inner.path(name), &known);
    }
    let verified = inner.verify(outcome.text("run_id"));
    assert_eq!(verified.exit, 0, "{verified:?}");
}
