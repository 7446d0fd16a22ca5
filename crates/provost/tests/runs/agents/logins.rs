//! Agents that use the subscription of their user: by a token, or by the login file of the program.

mod stage;
mod work;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use provost_core::secret::Known;
use serde_json::{Value, json};

use stage::{ALL, By, LATER, LoginStage, none_below, tokens};

#[test]
fn a_login_that_cannot_be_used_is_said_before_anything_starts() {
    type Spoil = fn(&LoginStage, &Path, &str);
    let cases: [(&str, Spoil, &str, &str); 6] = [
        (
            "readable by others",
            |_, path, _| {
                fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
            },
            "has the mode 0644",
            "chmod 600",
        ),
        (
            "a link",
            |_, path, _| {
                fs::rename(path, path.with_extension("real")).unwrap();
                symlink(path.with_extension("real"), path).unwrap();
            },
            "a link leads to it",
            "no link",
        ),
        (
            "torn",
            |stage, _, text| stage.write(&text[..text.len() / 2]),
            "is not a login that",
            "log in with `",
        ),
        (
            "huge",
            |stage, _, text| stage.write(&format!("{text}{}", " ".repeat(300 << 10))),
            "larger than any login",
            "see what is at",
        ),
        (
            "expired",
            |stage, _, _| {
                let old = tokens(stage.by, "old", [1_700_000_000_000, 1_700_000_000]);
                stage.write(&old.content.to_string());
            },
            "(2023-11-14 22:13:20 UTC)",
            "log in again with `",
        ),
        (
            "missing",
            |_, path, _| fs::remove_file(path).unwrap(),
            "there is no login file",
            "log in with `",
        ),
    ];
    for by in [By::ClaudeFile, By::CodexFile] {
        let Some(stage) = LoginStage::new(by, &json!([])) else {
            return;
        };
        let fine = tokens(by, "fine", LATER);
        let path = stage.agent.inner.path(by.file());
        for (name, spoil, reason, hint) in &cases {
            let _ = fs::remove_file(&path);
            stage.write(&fine.content.to_string());
            spoil(&stage, &path, &fine.content.to_string());
            let outcome = stage.run(&fine);
            let found = (outcome.code(), outcome.exit);
            assert_eq!(found, ("LOGIN_UNUSABLE", 4), "{name}: {outcome:?}");
            let said = outcome.text("reason");
            assert!(said.contains(reason), "{name}: {said}");
            let advice = outcome.json["details"]["hint"].as_str().unwrap_or_default();
            assert!(advice.contains(hint), "{name}: {outcome:?}");
        }
        assert!(stage.agent.inner.runs().is_empty() && stage.agent.requests().is_empty());
    }
}

#[test]
fn a_user_without_a_login_learns_how_to_get_one() {
    let cases = [
        (
            By::ClaudeFile,
            "claude",
            [
                "$ANTHROPIC_API_KEY and $CLAUDE_CODE_OAUTH_TOKEN",
                "claude setup-token",
            ],
        ),
        (
            By::CodexFile,
            "codex",
            ["$OPENAI_API_KEY is not set", "codex login"],
        ),
    ];
    for (by, agent, wants) in cases {
        let Some(stage) = LoginStage::new(by, &json!([])) else {
            return;
        };
        fs::remove_file(stage.agent.inner.path(by.file())).unwrap();
        let words = [
            "run", "x", "--json", "--agent", agent, "--allow", "src", "--accept", "true",
        ];
        let outcome = stage.agent.inner.spawn(stage.agent.command(&words)).wait();
        assert_eq!(
            (outcome.code(), outcome.exit),
            ("LOGIN_UNUSABLE", 4),
            "{outcome:?}"
        );
        let said = format!(
            "{} {}",
            outcome.text("reason"),
            outcome.json["details"]["hint"]
        );
        for want in wants {
            assert!(said.contains(want), "{want}: {said}");
        }
    }
}

/// Waits until the model got `count` requests.
fn wait_for(stage: &LoginStage, count: usize) {
    let until = Instant::now() + Duration::from_secs(40);
    while stage.agent.requests().len() < count {
        assert!(Instant::now() < until, "the model was not asked");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_login_that_is_renewed_while_the_agent_works_is_used_from_then_on() {
    for by in [By::ClaudeFile, By::CodexFile] {
        let [first, second] = ["first", "second"].map(|name| tokens(by, name, LATER));
        // A provider that sends tokens back which were not known when the agent was started. One of
        // Codex' has no shape by which it would be found anyway.
        let words = format!("I was asked with {}", second.all.join(" and "));
        let turns = json!([{ "shell": "sleep 3; echo good > src/a.txt" }, { "text": words }]);
        let Some(stage) = LoginStage::new(by, &turns) else {
            return;
        };
        stage.write(&first.content.to_string());
        let running = stage.start(&first);
        wait_for(&stage, 1);
        stage.write(&second.content.to_string());
        let outcome = running.wait();
        assert_eq!(outcome.code(), "OK", "{by:?} {outcome:?}");
        let requests = stage.agent.requests();
        let keys: Vec<Value> = requests.iter().map(|it| it["key"].clone()).collect();
        let want = [&first, &second].map(|it| json!(format!("Bearer {}", it.sent)));
        assert_eq!(keys, want, "{by:?}");
        let all = first.all.iter().chain(&second.all);
        let known = Known::new(all.map(|token| ("token", token.as_str())));
        for name in ["repo", "cache"] {
            none_below(&stage.agent.inner.path(name), &known);
        }
        let verified = stage.agent.inner.verify(outcome.text("run_id"));
        assert_eq!(verified.exit, 0, "{verified:?}");
    }
}

#[test]
fn a_login_that_expires_while_the_agent_works_ends_the_attempt() {
    for by in [By::ClaudeFile, By::CodexFile] {
        let turns = json!([{ "shell": "sleep 3; echo good > src/a.txt" }, { "text": "done" }]);
        let Some(stage) = LoginStage::new(by, &turns) else {
            return;
        };
        let first = tokens(by, "first", LATER);
        stage.write(&first.content.to_string());
        let running = stage.start(&first);
        wait_for(&stage, 1);
        let old = tokens(by, "old", [1_700_000_000_000, 1_700_000_000]);
        stage.write(&old.content.to_string());
        let outcome = running.wait();
        assert_eq!(
            (outcome.code(), outcome.exit),
            ("LOGIN_UNUSABLE", 4),
            "{by:?} {outcome:?}"
        );
        let reason = outcome
            .json
            .pointer("/verdict/reason")
            .unwrap()
            .as_str()
            .unwrap();
        assert!(reason.contains("2023-11-14 22:13:20 UTC"), "{reason}");
        assert_eq!(
            stage.agent.requests().len(),
            1,
            "{by:?}: the login was not spent"
        );
        let why = stage.agent.inner.ask(&["why", outcome.text("run_id")]);
        let why = String::from_utf8_lossy(&why.stdout);
        assert!(why.contains("log in again"), "{why}");
    }
}

#[test]
fn a_login_that_the_model_refuses_is_named() {
    for (by, login) in [
        (By::ClaudeFile, "the login of Claude Code"),
        (By::CodexFile, "the login of Codex"),
    ] {
        let turns = json!(vec![json!({ "status": 401 }); 40]);
        let Some(stage) = LoginStage::new(by, &turns) else {
            return;
        };
        let tokens = tokens(by, "quince", LATER);
        stage.write(&tokens.content.to_string());
        let outcome = stage.run(&tokens);
        assert_eq!(outcome.code(), "MODEL_UNAUTHORIZED", "{by:?} {outcome:?}");
        let reason = outcome
            .json
            .pointer("/verdict/reason")
            .unwrap()
            .as_str()
            .unwrap();
        assert!(reason.contains(login), "{reason}");
    }
}

#[test]
fn the_login_of_an_agent_is_listed_and_tried_without_its_token() {
    for by in ALL {
        let Some(stage) = LoginStage::new(by, &json!([{ "text": "ok" }])) else {
            return;
        };
        let tokens = tokens(by, "quince", LATER);
        if by.variable().is_none() {
            stage.write(&tokens.content.to_string());
        }
        let ask = |words: &[&str]| {
            let mut command = stage.agent.command(words);
            if let Some(variable) = by.variable() {
                command.env(variable, &tokens.sent);
            }
            stage.agent.inner.spawn(command).wait()
        };
        let credential = stage.credential();
        let tried = ask(&[
            "agent",
            "test",
            "it",
            "--login",
            "--credential",
            &credential,
            "--json",
        ]);
        assert_eq!(tried.exit, 0, "{by:?} {tried:?}");
        assert_eq!(tried.json["works"], json!(true), "{by:?} {tried:?}");
        assert_eq!(stage.agent.requests().len(), 1, "{by:?}");
        assert_eq!(stage.agent.requests()[0]["key"], by.sent(&tokens.sent));
        let listed = ask(&["agent", "list"]);
        let doctor = ask(&["doctor"]);
        for outcome in [&listed, &doctor] {
            let text = String::from_utf8_lossy(&outcome.stdout);
            let want = match by {
                By::ClaudeToken => "login by $CLAUDE_CODE_OAUTH_TOKEN",
                By::ClaudeKey => "login by $ANTHROPIC_API_KEY",
                By::GeminiKey => "login by $GEMINI_API_KEY",
                By::ClaudeFile => ".credentials.json (max), expires in 2",
                By::CodexFile => "auth.json (plus), expires in 2",
                By::CodexFileKey => "auth.json",
            };
            assert!(text.contains(want), "{by:?}: {text}");
        }
        let known = Known::new(tokens.all.iter().map(|token| ("token", token.as_str())));
        let all = format!("{tried:?}{listed:?}{doctor:?}");
        assert_eq!(known.find(all.as_bytes()), [], "{by:?}");
    }
}
