use provost_core::agent::Adapter;
use provost_core::agent::adapter::mcp::{REPLY_TOOL, TOOL};
use provost_core::agent::event::Event;
use provost_core::agent::launch::Answer;
use provost_core::agent::sum::End;
use serde_json::{Value, json};

use super::{AgentTask, MOST_REQUESTS, Server};
use crate::agent::reader::Reader;

fn client(thread: Option<&str>) -> Reader {
    let mut agent = Adapter::named("mcp").and_then(Adapter::plain).unwrap();
    agent.model = Some("m-1".to_owned());
    agent.server = Some(Box::new(Server {
        command: vec!["it".to_owned()],
        tool: TOOL.to_owned(),
        reply_tool: REPLY_TOOL.to_owned(),
    }));
    let task = AgentTask {
        prompt: "do it",
        thread,
        answer: Answer::Free,
    };
    Reader::new(&agent, &task)
}

fn answer(id: u64, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn greeting() -> Value {
    let result = json!({ "protocolVersion": "2025-03-26", "capabilities": { "tools": {} } });
    answer(1, &result)
}

fn tools(id: u64, names: &[&str]) -> Value {
    let tools: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
    answer(id, &json!({ "tools": tools }))
}

fn event(message: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "codex/event", "params": { "msg": message } })
}

/// Feeds these messages of the server; returns what the client sent and the events.
fn talk(thread: Option<&str>, messages: &[Value]) -> (Vec<Value>, Vec<Event>, Reader) {
    let mut reader = client(thread);
    let mut events = Vec::new();
    let mut said = reader.take_words();
    for message in messages {
        events.extend(reader.push(format!("{message}\n").as_bytes()));
        said.extend(reader.take_words());
    }
    events.extend(reader.finish());
    let said = String::from_utf8(said).unwrap();
    let said = said.lines().map(|line| serde_json::from_str(line).unwrap());
    (said.collect(), events, reader)
}

#[test]
fn a_server_is_greeted_asked_for_its_tools_and_called() {
    let result = json!({ "content": [{ "type": "text", "text": "{\"status\":\"SUCCESS\"}" }],
        "structuredContent": { "threadId": "t-1" } });
    let usage = json!({ "input_tokens": 30, "cached_input_tokens": 20, "output_tokens": 5 });
    let (said, events, mut reader) = talk(
        None,
        &[
            greeting(),
            tools(2, &["other", "codex", "codex-reply"]),
            event(&json!({ "type": "session_configured", "session_id": "t-1" })),
            event(&json!({ "type": "exec_command_begin", "command": ["ls", "-a"] })),
            event(&json!({ "type": "patch_apply_begin", "changes": { "a": {} } })),
            event(&json!({ "type": "token_count", "info": { "total_token_usage": usage } })),
            json!({ "jsonrpc": "2.0", "id": "s-1", "method": "ping" }),
            json!({ "jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage" }),
            answer(3, &result),
            json!("what follows is ignored"),
        ],
    );
    let methods: Vec<&str> = said
        .iter()
        .map(|it| it["method"].as_str().unwrap_or("-"))
        .collect();
    let want = [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
        "-",
        "-",
    ];
    assert_eq!(methods, want);
    let arguments = json!({ "prompt": "do it", "model": "m-1" });
    assert_eq!(said[3]["params"]["arguments"], arguments);
    assert_eq!(said[4]["id"], "s-1");
    assert_eq!(said[5]["error"]["code"], -32601);
    assert!(events.iter().any(|event| matches!(event,
        Event::Error { text } if text.contains("sampling/createMessage"))));
    let sum = reader.sum();
    assert_eq!(sum.end, Some(End::Done));
    assert_eq!(sum.thread.as_deref(), Some("t-1"));
    assert_eq!(sum.usage.tokens(), 15);
    assert_eq!(reader.answer(), Some(&json!({ "status": "SUCCESS" })));
    assert!(reader.is_over());
}

#[test]
fn a_thread_is_continued_or_the_prompt_is_sent_again() {
    let list = tools(2, &["codex", "codex-reply"]);
    let done = json!({ "content": [{ "type": "text", "text": "done" }] });
    let begin = [greeting(), list];
    let (said, _, reader) = talk(Some("t-9"), &[&begin[..], &[answer(3, &done)]].concat());
    let params = json!({ "name": "codex-reply",
        "arguments": { "prompt": "do it", "threadId": "t-9" } });
    assert_eq!(said[3]["params"], params);
    assert_eq!(reader.sum().thread.as_deref(), Some("t-9"));
    assert_eq!(reader.sum().end, Some(End::Done));

    let gone = json!({ "isError": true, "content": [{ "type": "text", "text": "no session" }] });
    let both = [answer(3, &gone), answer(4, &done)];
    let (said, _, reader) = talk(Some("t-9"), &[&begin[..], &both].concat());
    assert_eq!(said[4]["params"]["name"], "codex");
    assert_eq!(reader.sum().end, Some(End::Done));

    // Without the tool for it no thread can be continued.
    let (said, ..) = talk(Some("t-9"), &[greeting(), tools(2, &["codex"])]);
    assert_eq!(said[3]["params"]["name"], "codex");
}

#[test]
fn a_tool_that_fails_has_given_up() {
    let begin = [greeting(), tools(2, &["codex"])];
    let text = json!([{ "type": "text", "text": "no model" }]);
    for last in [
        json!({ "jsonrpc": "2.0", "id": 3, "error": { "code": 1, "message": "no model" } }),
        answer(3, &json!({ "isError": true, "content": text })),
        answer(3, &json!({ "error": "no model" })),
    ] {
        let (_, _, reader) = talk(None, &[&begin[..], &[last]].concat());
        let want = Some(End::GaveUp("no model".to_owned()));
        assert_eq!(reader.sum().end, want);
    }
}

#[test]
fn a_server_that_breaks_the_protocol_is_not_spoken_to_any_more() {
    let begin = [greeting(), tools(2, &["codex"])];
    let old = json!({ "protocolVersion": "1", "capabilities": { "tools": {} } });
    let bare = json!({ "protocolVersion": "2025-06-18", "capabilities": {} });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" });
    let flood = vec![request; MOST_REQUESTS as usize + 1];
    let endless = |id: u64| answer(id, &json!({ "tools": [], "nextCursor": "more" }));
    let pages: Vec<Value> = (2..40).map(endless).collect();
    let cases: [(&str, Vec<Value>); 12] = [
        (
            "no message of JSON-RPC",
            vec![json!({ "id": 1, "result": {} })],
        ),
        ("not a JSON message", vec![json!([1])]),
        (
            "without a method and without an id",
            vec![json!({ "jsonrpc": "2.0" })],
        ),
        ("was not sent", vec![answer(7, &json!({}))]),
        (
            "was not sent",
            vec![json!({ "jsonrpc": "2.0", "id": "1", "result": {} })],
        ),
        ("not one of", vec![json!({ "jsonrpc": "2.0", "id": 1 })]),
        ("version `1`", vec![answer(1, &old)]),
        ("offers no tools", vec![answer(1, &bare)]),
        (
            "offers no tool `codex`",
            vec![greeting(), tools(2, &["code"])],
        ),
        (
            "without content",
            [&begin[..], &[answer(3, &json!({}))]].concat(),
        ),
        ("more than 256 things", flood),
        ("without end", [&[greeting()], &pages[..]].concat()),
    ];
    for (want, messages) in cases {
        let (_, events, mut reader) = talk(None, &messages);
        let Some(End::Broken(words)) = &reader.sum().end else {
            panic!("{want}: {:?}", reader.sum());
        };
        assert!(words.contains(want), "{want}: {words}");
        assert!(matches!(events.last(), Some(Event::Error { .. })));
        assert!(reader.is_over() && reader.take_words().is_empty());
    }
    let mut reader = client(None);
    reader.push(&vec![b'x'; 5 << 20]);
    reader.push(b"\n");
    let long = Some(End::Broken("printed a line of more than 4 MiB".to_owned()));
    assert_eq!(reader.sum().end, long);
}
