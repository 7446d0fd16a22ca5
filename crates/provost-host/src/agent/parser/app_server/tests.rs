//! The conversation with the app server, message by message.

use provost_core::agent::sum::End;
use provost_core::agent::{Adapter, Plane};
use provost_core::contract::document::Shell;
use serde_json::json;

use super::*;
use crate::agent::reader::Reader;
use provost_core::agent::launch::Answer;

const ASKED: &str = "item/commandExecution/requestApproval";

fn client(shell: Shell, thread: Option<&str>) -> Reader {
    let mut agent = Adapter::named("codex").and_then(Adapter::plain).unwrap();
    agent.shell = shell;
    agent.plane = Plane::AppServer;
    let task = AgentTask {
        prompt: "do it",
        thread,
        answer: Answer::Bound,
    };
    Reader::new(&agent, &task)
}

fn push(reader: &mut Reader, message: &Value) -> Vec<Event> {
    reader.push(format!("{message}\n").as_bytes())
}

/// The messages that were sent since the last call.
fn sent(reader: &mut Reader) -> Vec<Value> {
    let words = String::from_utf8(reader.take_words()).unwrap();
    let parse = |line| serde_json::from_str(line).unwrap();
    words.lines().map(parse).collect()
}

/// A client whose turn has begun in the thread `t-1`.
fn working(shell: Shell) -> Reader {
    let mut reader = client(shell, None);
    push(&mut reader, &json!({ "id": 1, "result": {} }));
    push(
        &mut reader,
        &json!({ "id": 2, "result": { "thread": { "id": "t-1" } } }),
    );
    push(
        &mut reader,
        &json!({ "id": 3, "result": { "turn": { "id": "u-1" } } }),
    );
    sent(&mut reader);
    reader
}

fn asked(id: u64, command: &str) -> Value {
    json!({ "method": ASKED, "id": id, "params": {
        "kind": "command", "threadId": "t-1", "turnId": "u-1", "itemId": format!("i-{id}"),
        "command": command, "availableDecisions": ["accept", "cancel"] } })
}

fn ended(status: &str) -> Value {
    let turn = json!({ "id": "u-1", "status": status, "error": { "message": "no model" } });
    json!({ "method": "turn/completed", "params": { "threadId": "t-1", "turn": turn } })
}

#[test]
fn a_thread_is_opened_with_the_rules_of_the_contract_and_one_turn() {
    for (shell, rule) in [
        (Shell::Untrusted, "untrusted"),
        (Shell::OnRequest, "on-request"),
        (Shell::Never, "never"),
    ] {
        let mut reader = client(shell, None);
        let greeting = sent(&mut reader);
        assert_eq!(greeting[0]["method"], "initialize");
        push(&mut reader, &json!({ "id": 1, "result": {} }));
        let opening = sent(&mut reader);
        assert_eq!(opening[0], json!({ "method": "initialized", "params": {} }));
        let rules = json!({ "approvalPolicy": rule, "approvalsReviewer": "user" });
        let want = json!({ "id": 2, "method": "thread/start", "params": rules });
        assert_eq!(opening[1], want);
        push(
            &mut reader,
            &json!({ "id": 2, "result": { "thread": { "id": "t-1" } } }),
        );
        let turn = &sent(&mut reader)[0];
        assert_eq!(turn["method"], "turn/start");
        let params = &turn["params"];
        assert_eq!(params["threadId"], "t-1");
        assert_eq!(
            params["input"],
            json!([{ "type": "text", "text": "do it" }])
        );
        assert_eq!(params["approvalPolicy"], rule);
        assert_eq!(params["outputSchema"]["type"], "object");
        assert_eq!(reader.sum().thread.as_deref(), Some("t-1"));
    }
}

#[test]
fn a_thread_is_resumed_and_opened_anew_where_it_is_lost() {
    let mut reader = client(Shell::Never, Some("t-0"));
    push(&mut reader, &json!({ "id": 1, "result": {} }));
    let resume = &sent(&mut reader)[2];
    assert_eq!(resume["method"], "thread/resume");
    assert_eq!(resume["params"]["threadId"], "t-0");
    let lost = json!({ "id": 2, "error": { "code": -32600, "message": "no rollout found" } });
    let events = push(&mut reader, &lost);
    assert!(matches!(&events[..], [Event::Error { text }] if text == "no rollout found"));
    assert_eq!(sent(&mut reader)[0]["method"], "thread/start");
    push(
        &mut reader,
        &json!({ "id": 3, "result": { "thread": { "id": "t-1" } } }),
    );
    assert_eq!(sent(&mut reader)[0]["method"], "turn/start");
    assert_eq!(reader.sum().end, None);
}

#[test]
fn a_question_is_answered_once_and_the_reason_of_a_no_reaches_the_model() {
    let mut reader = working(Shell::Untrusted);
    push(&mut reader, &asked(0, "/bin/bash -lc 'make x'"));
    push(&mut reader, &asked(1, "/workspace/bash -lc 'make y'"));
    let open = reader.asked_commands();
    let shown: Vec<&str> = open.iter().map(|it| it.1.as_str()).collect();
    assert_eq!(shown, ["make x", "/workspace/bash -lc 'make y'"]);
    reader.answer_command(&open[0].0, Ok(()));
    reader.answer_command(&open[0].0, Err("too late"));
    let want = json!({ "id": 0, "result": { "decision": "accept" } });
    assert_eq!(sent(&mut reader), [want]);
    reader.answer_command(&open[1].0, Err("a person said no"));
    let answer = sent(&mut reader);
    assert_eq!(
        answer[0],
        json!({ "id": 1, "result": { "decision": "decline" } })
    );
    assert_eq!(answer[1]["method"], "turn/steer");
    assert!(answer[1].to_string().contains("a person said no"));
    let item = json!({ "type": "commandExecution", "id": "i-1", "command": "make y",
                       "status": "declined" });
    let params = json!({ "threadId": "t-1", "item": item });
    let events = push(
        &mut reader,
        &json!({ "method": "item/completed", "params": params }),
    );
    let want = Event::ToolResult {
        ok: false,
        text: "the command was not permitted: a person said no".to_owned(),
    };
    assert_eq!(events[1], want);
    assert!(reader.asked_commands().is_empty());
}

#[test]
fn what_is_no_question_about_a_command_is_declined_or_refused() {
    let with = |name: &str, value: Value| {
        let mut message = asked(7, "make x");
        message["params"][name] = value;
        message
    };
    let other = |method: &str| json!({ "method": method, "id": 7, "params": {} });
    let file = |root: Value| {
        json!({ "method": "item/fileChange/requestApproval", "id": 7,
                "params": { "threadId": "t-1", "grantRoot": root } })
    };
    for (shell, message, want) in [
        (Shell::Never, asked(7, "make x"), "decline"),
        (
            Shell::Untrusted,
            with("kind", json!("writeStdin")),
            "decline",
        ),
        (Shell::Untrusted, with("command", Value::Null), "decline"),
        (Shell::Untrusted, with("threadId", json!("t-2")), "decline"),
        (
            Shell::Untrusted,
            with("networkApprovalContext", json!({})),
            "decline",
        ),
        (Shell::Untrusted, file(Value::Null), "accept"),
        (Shell::Untrusted, file(json!("/")), "decline"),
        (
            Shell::Untrusted,
            other("item/permissions/requestApproval"),
            "",
        ),
        (Shell::Untrusted, other("item/tool/requestUserInput"), ""),
        (Shell::Untrusted, other("mcpServer/elicitation/request"), ""),
        (Shell::Untrusted, other("execCommandApproval"), ""),
    ] {
        let mut reader = working(shell);
        push(&mut reader, &message);
        let answer = &sent(&mut reader)[0];
        assert_eq!(answer["id"], 7, "{message}");
        assert_eq!(text(answer, "/result/decision"), want, "{message}");
        assert_eq!(answer.get("error").is_some(), want.is_empty(), "{message}");
        assert!(reader.asked_commands().is_empty(), "{message}");
    }
}

#[test]
fn a_violation_of_the_protocol_ends_the_conversation() {
    let twice = [asked(0, "make x"), asked(0, "make x")];
    let many: Vec<Value> = (0..=256).map(|id| asked(id, "make x")).collect();
    let other = |id| json!({ "method": "item/tool/call", "id": id, "params": {} });
    let refused: Vec<Value> = (0..=256).map(other).collect();
    for (messages, words) in [
        (vec![json!({ "id": 9, "result": {} })], "was not sent"),
        (vec![json!({ "id": 3, "result": {} })], "was not sent"),
        (vec![json!({})], "without a method and without an id"),
        (
            vec![json!({ "method": ASKED, "id": {}, "params": {} })],
            "neither text nor a number",
        ),
        (vec![json!([])], "not a JSON message"),
        (twice.to_vec(), "twice under one id"),
        (many, "256 open questions"),
        (refused, "256 things"),
    ] {
        let mut reader = working(Shell::Untrusted);
        for message in &messages {
            push(&mut reader, message);
        }
        let broken = matches!(&reader.sum().end, Some(End::Broken(why)) if why.contains(words));
        assert!(broken, "{words}: {:?}", reader.sum().end);
        assert!(reader.is_over(), "{words}");
        assert!(reader.take_words().is_empty(), "{words}");
    }
    let mut reader = client(Shell::Untrusted, None);
    push(&mut reader, &json!({ "id": 1, "result": {}, "error": {} }));
    assert!(matches!(reader.sum().end, Some(End::Broken(_))));
}

#[test]
fn the_app_server_tells_the_same_as_the_exec_stream() {
    let mut reader = working(Shell::Never);
    let mut events = Vec::new();
    let about = |method: &str, name: &str, value: Value| json!({ "method": method, "params": { "threadId": "t-1", name: value } });
    let item = |value| about("item/completed", "item", value);
    let total = json!({ "inputTokens": 30, "cachedInputTokens": 20, "outputTokens": 5 });
    let reconnecting = json!({ "message": "Reconnecting... 1/5",
        "additionalDetails": "unexpected status 401 Unauthorized: x" });
    for message in [
        about("error", "error", reconnecting),
        about(
            "item/started",
            "item",
            json!({ "type": "commandExecution" }),
        ),
        item(
            json!({ "type": "commandExecution", "id": "1", "command": "rm -rf x",
                     "status": "failed", "exitCode": 1, "aggregatedOutput": "no" }),
        ),
        item(json!({ "type": "fileChange", "id": "2", "changes": [{ "path": "a" }] })),
        item(json!({ "type": "mcpToolCall", "id": "3", "server": "s", "tool": "t" })),
        about(
            "thread/tokenUsage/updated",
            "tokenUsage",
            json!({ "total": total }),
        ),
        item(json!({ "type": "agentMessage", "id": "4", "text": "{\"status\":\"SUCCESS\"}" })),
        json!({ "method": "item/completed", "params": { "threadId": "t-2",
                "item": { "type": "agentMessage", "text": "of another thread" } } }),
    ] {
        if message["method"] == "item/started" {
            let complaint = reader.complaint().unwrap();
            assert_eq!(complaint.status, Some(401));
        }
        events.extend(push(&mut reader, &message));
    }
    assert_eq!(reader.complaint(), None);
    events.extend(push(&mut reader, &ended("completed")));
    let kinds: Vec<Value> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["kind"].clone())
        .collect();
    let want = [
        "error",
        "tool",
        "tool_result",
        "file_change",
        "tool",
        "usage",
        "message",
        "final",
    ];
    assert_eq!(kinds, want);
    assert!(matches!(events[2], Event::ToolResult { ok: false, .. }));
    assert_eq!(reader.sum().usage.tokens(), 15);
    assert_eq!(reader.sum().end, Some(End::Done));
    assert_eq!(reader.answer(), Some(&json!({ "status": "SUCCESS" })));
    assert!(reader.is_over());

    let mut reader = working(Shell::Never);
    push(&mut reader, &ended("failed"));
    assert_eq!(reader.sum().end, Some(End::GaveUp("no model".to_owned())));
}
