use serde_json::json;

use super::event::{Event, Usage};
use super::launch::{self, Answer};
use super::provider::{BaseUrl, Login};
use super::reader::{End, Reader};
use super::{Adapted, Adapter, Budget, dollars, instruction, is_model};
use crate::gate::command::{CommandPolicy, Trust};
use crate::{contract, review};

fn adapter(name: &str) -> Adapter {
    Adapter::named(name).unwrap()
}

fn agent(name: &str) -> Adapted {
    adapter(name).plain().unwrap()
}

/// Parses a stream in pieces of `size` bytes.
fn read(adapter: &str, stream: &str, size: usize) -> (Vec<Event>, Reader) {
    let mut reader = Reader::new(&agent(adapter), "", None);
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
fn a_budget_that_is_spent_says_which() {
    let budget = Budget {
        tokens: Some(100),
        micro_usd: Some(2_500_000),
    };
    let usage = |input_tokens, output_tokens, micro_usd| Usage {
        input_tokens,
        cached_tokens: 0,
        output_tokens,
        micro_usd,
    };
    let cases = [
        (usage(60, 40, 2_500_000), None),
        (usage(60, 41, 0), Some("spent 101 tokens of 100")),
        (usage(0, 0, 2_510_000), Some("spent $2.51 of $2.50")),
    ];
    for (usage, want) in cases {
        assert_eq!(budget.exceeded(&usage).as_deref(), want, "{usage:?}");
    }
    assert_eq!(Budget::default().exceeded(&usage(u64::MAX, 9, 9)), None);
    assert_eq!(dollars(12_345), "$0.012345");
}

#[test]
fn only_the_makers_own_place_is_chosen_with_the_agent() {
    for (name, want) in [
        (
            "codex",
            "https://api.openai.com:443 Authorization: Bearer $OPENAI_API_KEY",
        ),
        (
            "claude",
            "https://api.anthropic.com:443 X-Api-Key: $ANTHROPIC_API_KEY",
        ),
        (
            "gemini",
            "https://generativelanguage.googleapis.com:443 X-Goog-Api-Key: $GEMINI_API_KEY",
        ),
    ] {
        let adapter = adapter(name);
        let mut provider = agent(name).provider.unwrap();
        let credential = provider.credential(adapter).unwrap();
        assert_eq!(credential.to_string(), want);
        assert!(provider.is_makers_own(adapter));
        for other in [
            "http://api.openai.com:443",
            "https://api.openai.com.evil.example",
        ] {
            provider.base_url = BaseUrl::parse(other).unwrap();
            assert!(!provider.is_makers_own(adapter), "{other}");
        }
        provider.login = Login::None;
        assert_eq!(provider.credential(adapter), None);
    }
}

#[test]
fn an_address_has_one_spelling_and_holds_nothing_odd() {
    for (text, want) in [
        (
            "https://api.example.com/v1/",
            "https://api.example.com:443/v1",
        ),
        ("http://127.0.0.1:81", "http://127.0.0.1:81"),
    ] {
        assert_eq!(BaseUrl::parse(text).unwrap().to_string(), want);
    }
    let url = BaseUrl::parse("https://api.example.com/v1").unwrap();
    assert_eq!(url.inside(Login::Brokered), "http://api.example.com:443/v1");
    assert_eq!(url.inside(Login::None), "https://api.example.com:443/v1");
    for text in [
        "",
        "api.example.com",
        "ftp://api.example.com",
        "https://",
        "https://user@api.example.com",
        "https://api.example.com/a?b",
        "https://api.example.com/\"}",
        "https://api.example.com/../x",
        "https://api.example.com/a b",
    ] {
        assert!(BaseUrl::parse(text).is_err(), "{text}");
    }
}

#[test]
fn the_programs_get_neither_a_key_nor_a_way_around_the_sandbox() {
    for adapter in Adapter::programs() {
        let mut agent = agent(adapter.name());
        agent.model = Some("m-1".to_owned());
        agent.budget.micro_usd = Some(1_500_000);
        let words = launch::argv(&agent, Answer::Bound).join(" ");
        assert!(words.contains("--model m-1"), "{words}");
        let environment = launch::environment(&agent);
        let key = adapter.vendor().unwrap().key_variable;
        assert_eq!(environment[key], "kept-outside-the-box");
        let (own, off) = match adapter.name() {
            "codex" => ("--output-schema /run/", "web_search=\"disabled\""),
            "gemini" => (
                "--approval-mode yolo",
                "--allowed-mcp-server-names provost-none",
            ),
            _ => ("--max-budget-usd 1.500000", "--tools Bash,"),
        };
        assert!(words.contains(own) && words.contains(off), "{words}");
        assert!(!words.contains("WebSearch"), "{words}");
        let all = format!("{words} {environment:?}");
        assert!(
            !all.contains("https://"),
            "the sandbox speaks plainly: {all}"
        );
    }
    let gemini = agent("gemini");
    for (answer, writes) in [
        (Answer::Bound, true),
        (Answer::ReadOnly(review::schema()), false),
    ] {
        let files = launch::files(&gemini, answer);
        let settings = &files.last().unwrap().1;
        assert_eq!(settings.contains("write_file"), writes);
        assert!(!settings.contains("web"), "{settings}");
        assert!(launch::binding(adapter("gemini"), answer).contains("\"required\""));
    }
    for name in ["", "-m", "a b", "a\"b", "a\nb"] {
        assert!(!is_model(name), "{name:?}");
    }
    assert!(is_model("vendor/model-1.5:latest"));
}

#[test]
fn a_bound_answer_becomes_a_result_of_its_task() {
    let answer = json!({ "status": "SUCCESS", "summary": "s", "failure": null, "task_id": "x" });
    let result = launch::result("task-1", &answer);
    assert_eq!(result["task_id"], "task-1");
    assert!(serde_json::from_value::<crate::run::judge::AgentResult>(result).is_ok());
    let loose = launch::result("task-1", &json!("all is well"));
    assert!(serde_json::from_value::<crate::run::judge::AgentResult>(loose).is_err());
}

#[test]
fn the_instruction_has_everything_of_the_contract_that_binds() {
    let text = include_bytes!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/contract.json"
    ));
    let document = contract::parse(text).unwrap();
    let policy = CommandPolicy::shipped().unwrap();
    let contract = contract::resolve(document, &policy, Trust::TypedByPerson).unwrap();
    for answer in [Answer::Free, Answer::Bound] {
        let text = instruction::render(&contract, answer);
        let document = &contract.document;
        let wanted = document.allowed_paths.iter().chain([&document.inputs.spec]);
        for part in wanted.chain(contract.tests.iter().map(|test| &test.text)) {
            assert!(text.contains(part.as_str()), "{part} is not in {text}");
        }
        assert_eq!(text.contains("structured answer"), answer == Answer::Bound);
    }
}

#[test]
fn a_known_program_continues_its_conversation() {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let codex = words("codex exec --json -");
    let claude = words("claude --print");
    let cases = [
        (&codex, "codex", "0a-1", "codex exec resume --json 0a-1 -"),
        (&claude, "claude", "0a-1", "claude --print --resume 0a-1"),
        (&claude, "exec", "0a-1", "claude --print"),
        (&claude, "claude", "--evil", "claude --print"),
        (&codex, "codex", "a b", "codex exec --json -"),
        (&codex, "codex", "", "codex exec --json -"),
    ];
    for (start, adapter, thread, want) in cases {
        let continued = launch::continued(start, Adapter::named(adapter).unwrap(), thread);
        assert_eq!(continued, words(want), "{thread}");
    }
    for adapter in Adapter::programs() {
        let plain = adapter.plain().unwrap();
        let start = launch::argv(&plain, Answer::Free);
        let continued = launch::continued(&start, adapter, "0a-1");
        assert!(continued.contains(&"0a-1".to_owned()));
        assert_eq!(
            start.last() == Some(&"-".to_owned()),
            continued.last() == Some(&"-".to_owned())
        );
    }
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
        let mut reader = Reader::new(&agent(adapter), "", None);
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
