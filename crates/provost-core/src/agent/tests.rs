use serde_json::json;

use super::event::Usage;
use super::launch::{self, Answer};
use super::provider::{BaseUrl, Login};
use super::{Adapted, Adapter, Budget, Plane, dollars, instruction, is_model};
use crate::contract::document::Shell;
use crate::gate::command::{CommandPolicy, Trust};
use crate::{contract, review};

fn adapter(name: &str) -> Adapter {
    Adapter::named(name).unwrap()
}

fn agent(name: &str) -> Adapted {
    adapter(name).plain().unwrap()
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
fn codex_converses_where_it_may_ask_and_neither_trusts_the_tree_nor_types_unasked() {
    let asked = "features.unified_exec_tty=false";
    let deny = "features.shell_tool=false";
    let untrusted = "projects={\"/workspace\"={trust_level=\"untrusted\"}}";
    let cases = [
        (Shell::Never, Plane::Exec, "exec --json", vec![]),
        (Shell::Deny, Plane::Exec, "exec --json", vec![deny]),
        (
            Shell::Never,
            Plane::AppServer,
            "app-server",
            vec![untrusted],
        ),
        (
            Shell::Deny,
            Plane::AppServer,
            "app-server",
            vec![deny, untrusted],
        ),
        (
            Shell::Untrusted,
            Plane::Exec,
            "app-server",
            vec![asked, untrusted],
        ),
        (
            Shell::OnRequest,
            Plane::Exec,
            "app-server",
            vec![asked, untrusted],
        ),
    ];
    for (shell, plane, start, with) in cases {
        let mut codex = agent("codex");
        (codex.shell, codex.plane) = (shell, plane);
        codex.model = Some("m-1".to_owned());
        let words = launch::argv(&codex, Answer::Bound);
        let all = words.join(" ");
        assert!(all.starts_with(&format!("codex {start} ")), "{all}");
        for one in [asked, deny, untrusted] {
            assert_eq!(all.contains(one), with.contains(&one), "{one}: {all}");
        }
        for one in [
            "agents.enabled=false",
            "skills.include_instructions=false",
            "m-1",
        ] {
            assert!(all.contains(one), "{one}: {all}");
        }
        let converses = start == "app-server";
        assert_eq!(codex.converses(), converses);
        let continued = launch::continued(&words, codex.adapter, "0a-1");
        assert_eq!(
            continued == words,
            converses,
            "it asks for the thread itself"
        );
    }
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
