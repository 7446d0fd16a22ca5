//! What the programs print, as one kind of events.

use provost_core::agent::event::{Event, Usage};
use provost_core::agent::sum::End;
use provost_core::agent::{Adapted, Adapter};
use serde_json::json;

use super::*;
use crate::agent::reader::Reader;

fn agent(name: &str) -> Adapted {
    Adapter::named(name).and_then(Adapter::plain).unwrap()
}

fn reader(agent: &Adapted) -> Reader {
    let task = AgentTask {
        prompt: "",
        thread: None,
        answer: Answer::Free,
    };
    Reader::new(agent, &task)
}

/// Parses a stream in pieces of `size` bytes.
fn read(adapter: &str, stream: &str, size: usize) -> (Vec<Event>, Reader) {
    let mut reader = reader(&agent(adapter));
    let mut events = Vec::new();
    for piece in stream.as_bytes().chunks(size) {
        events.extend(reader.push(piece));
    }
    events.extend(reader.finish());
    (events, reader)
}

const CODEX: &str = r#"{"type":"thread.started","thread_id":"t-1"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"1","type":"command_execution","command":"ls"}}
{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"ls","exit_code":0}}
{"type":"item.completed","item":{"id":"2","type":"file_change","changes":[{"path":"a","kind":"add"},{"path":"b","kind":"update"}]}}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"item.completed","item":{"id":"3","type":"agent_message","text":"{\"status\":\"SUCCESS\"}"}}
{"type":"turn.completed","usage":{"input_tokens":30,"cached_input_tokens":20,"output_tokens":5}}
"#;

const CLAUDE: &str = r#"{"type":"system","subtype":"init","session_id":"s-1"}
{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"I look"}],"usage":{"input_tokens":10,"cache_read_input_tokens":7,"output_tokens":1}}}
{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":10,"cache_read_input_tokens":7,"output_tokens":4}}}
{"type":"user","message":{"content":[{"type":"tool_result","content":"a"}]}}
{"type":"assistant","message":{"id":"m2","content":[{"type":"tool_use","name":"Edit","input":{"file_path":"/workspace/a"}}],"usage":{"input_tokens":2,"output_tokens":2}}}
{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":0.0123,"usage":{"input_tokens":12,"cache_creation_input_tokens":3,"cache_read_input_tokens":7,"output_tokens":9},"structured_output":{"status":"SUCCESS"}}"#;

const GEMINI: &str = r#"{"type":"init","session_id":"g-1","model":"m-1"}
{"type":"message","role":"user","content":"the instruction"}
{"type":"message","role":"assistant","content":"I lo","delta":true}
{"type":"message","role":"assistant","content":"ok","delta":true}
{"type":"tool_use","tool_name":"run_shell_command","tool_id":"1","parameters":{"command":"ls"}}
{"type":"tool_result","tool_id":"1","status":"success","output":"a"}
{"type":"tool_use","tool_name":"write_file","tool_id":"2","parameters":{"file_path":"/workspace/a"}}
{"type":"error","severity":"warning","message":"loop"}
{"type":"message","role":"assistant","content":"```json\n{\"status\":","delta":true}
{"type":"message","role":"assistant","content":"\"SUCCESS\"}\n```","delta":true}
{"type":"result","status":"success","stats":{"total_tokens":60,"input_tokens":30,"output_tokens":25,"cached":20}}"#;

#[test]
fn a_message_in_pieces_is_one_event() {
    for size in [1, 7, 100_000] {
        let (events, reader) = read("gemini", GEMINI, size);
        let text = |text: &str| Event::Message {
            text: text.to_owned(),
        };
        assert_eq!(events[1], text("I look"));
        let kinds: Vec<_> = events
            .iter()
            .map(|event| serde_json::to_value(event).unwrap()["kind"].clone())
            .collect();
        let want = [
            "session",
            "message",
            "tool",
            "tool_result",
            "file_change",
            "error",
            "message",
            "usage",
            "final",
        ];
        assert_eq!(kinds, want);
        let sum = reader.sum();
        assert_eq!((sum.events, sum.unread), (9, 0));
        // Four pieces, and the events.
        assert_eq!(sum.progress, 11);
        assert_eq!((sum.usage.input_tokens, sum.usage.tokens()), (30, 40));
        let thread = sum.thread.as_deref();
        assert_eq!((thread, &sum.end), (Some("g-1"), &Some(End::Done)));
        assert_eq!(reader.answer(), Some(&json!({ "status": "SUCCESS" })));
    }
    let failed = r#"{"type":"result","status":"error","error":{"message":"no model"}}"#;
    let gave_up = Some(End::GaveUp("no model".to_owned()));
    assert_eq!(read("gemini", failed, 9).1.sum().end, gave_up);
}

#[test]
fn both_programs_tell_the_same_kinds_of_things() {
    for size in [1, 7, 100_000] {
        let (events, reader) = read("codex", CODEX, size);
        let kinds: Vec<_> = events
            .iter()
            .map(|event| serde_json::to_value(event).unwrap()["kind"].clone())
            .collect();
        let want = [
            "session",
            "tool",
            "tool_result",
            "file_change",
            "file_change",
            "error",
            "message",
            "usage",
            "final",
        ];
        assert_eq!(kinds, want);
        let sum = reader.sum();
        assert_eq!((sum.events, sum.progress, sum.unread), (9, 8, 0));
        assert_eq!(
            (sum.thread.as_deref(), &sum.end),
            (Some("t-1"), &Some(End::Done))
        );
        assert_eq!((sum.usage.tokens(), sum.usage.input_tokens), (15, 30));
        assert_eq!(reader.answer(), Some(&json!({ "status": "SUCCESS" })));

        let (events, reader) = read("claude", CLAUDE, size);
        let sum = reader.sum();
        assert_eq!(sum.usage.micro_usd, 12_300);
        assert_eq!((sum.usage.input_tokens, sum.usage.tokens()), (22, 24));
        assert_eq!(
            (sum.thread.as_deref(), &sum.end),
            (Some("s-1"), &Some(End::Done))
        );
        assert_eq!(reader.answer(), Some(&json!({ "status": "SUCCESS" })));
        assert!(events.contains(&Event::FileChange {
            path: "/workspace/a".to_owned()
        }));
        assert!(events.contains(&Event::ToolResult {
            ok: true,
            text: "a".to_owned()
        }));
    }
}

#[test]
fn a_model_that_does_not_answer_is_no_progress_and_a_tool_that_begins_is() {
    let cases = [
        ("codex", r#"{"type":"error","message":"retry 1/5"}"#, 0),
        (
            "codex",
            r#"{"type":"item.completed","item":{"type":"error","message":"x"}}"#,
            0,
        ),
        ("codex", r#"{"type":"turn.started"}"#, 0),
        (
            "codex",
            r#"{"type":"item.started","item":{"type":"command_execution"}}"#,
            1,
        ),
        (
            "codex",
            r#"{"type":"item.completed","item":{"type":"reasoning","text":"x"}}"#,
            1,
        ),
        (
            "claude",
            r#"{"type":"system","subtype":"api_retry","attempt":3}"#,
            0,
        ),
        ("claude", r#"{"type":"user","message":{"content":[]}}"#, 1),
        ("codex", "not JSON", 0),
    ];
    for (adapter, line, progress) in cases {
        let lines = format!("{line}\n").repeat(3);
        let (_, reader) = read(adapter, &lines, 64);
        assert_eq!(reader.sum().progress, 3 * progress, "{line}");
    }
}

#[test]
fn parts_of_one_message_are_counted_once() {
    let usages: Vec<Usage> = read("claude", CLAUDE, 64)
        .0
        .into_iter()
        .filter_map(|event| match event {
            Event::Usage(usage) => Some(usage),
            _ => None,
        })
        .collect();
    let tokens: Vec<u64> = usages.iter().map(Usage::tokens).collect();
    assert_eq!(tokens, [11, 14, 18, 24]);
}

#[test]
fn an_agent_that_gives_up_or_says_nothing_is_not_done() {
    let failed = r#"{"type":"turn.failed","error":{"message":"no model"}}"#;
    let gave_up = Some(End::GaveUp("no model".to_owned()));
    assert_eq!(read("codex", failed, 9).1.sum().end, gave_up);
    for line in [
        r#"{"type":"result","subtype":"success","is_error":true,"result":"no model"}"#,
        r#"{"type":"result","subtype":"no model","is_error":false}"#,
        r#"{"type":"result","subtype":"success","result":"no model"}"#,
    ] {
        assert_eq!(read("claude", line, 9).1.sum().end, gave_up, "{line}");
    }
    for stream in [
        "",
        "hello\n",
        "{}\n",
        "[1]\n",
        "{\"type\":\"turn.started\"}\n",
    ] {
        assert_eq!(read("codex", stream, 9).1.sum().end, None, "{stream}");
    }
}

#[test]
fn what_cannot_be_read_is_counted_and_costs_nothing_else() {
    let long = "x".repeat(5 << 20);
    let stream = format!("{long}\nno json\n\n{CODEX}[\n");
    let (events, reader) = read("codex", &stream, 65_536);
    assert_eq!((events.len(), reader.sum().unread), (9, 3));
    let line = json!({ "type": "item.completed",
        "item": { "type": "agent_message", "text": "é".repeat(10_000) } });
    let (events, _) = read("codex", &line.to_string(), 4096);
    let [Event::Message { text }] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(text.len(), 4096);
}

#[test]
fn a_complaint_about_the_model_lasts_until_the_agent_makes_progress() {
    let cases = [
        (
            "claude",
            r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":401}"#,
            Some(401),
        ),
        (
            "claude",
            r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":null}"#,
            None,
        ),
        (
            "codex",
            r#"{"type":"error","message":"Reconnecting... 1/5 (unexpected status 403 Forbidden: x)"}"#,
            Some(403),
        ),
        (
            "codex",
            r#"{"type":"error","message":"Reconnecting... waiting for network"}"#,
            None,
        ),
    ];
    for (adapter, line, status) in cases {
        let mut reader = reader(&agent(adapter));
        reader.push(format!("{line}\n").repeat(2).as_bytes());
        let complaint = reader.complaint().unwrap();
        assert_eq!((complaint.status, complaint.times), (status, 2), "{line}");
        let work = match adapter {
            "codex" => r#"{"type":"item.completed","item":{"type":"agent_message"}}"#,
            _ => r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text"}]}}"#,
        };
        reader.push(format!("{work}\n").as_bytes());
        assert_eq!(reader.complaint(), None, "{line}");
    }
}
