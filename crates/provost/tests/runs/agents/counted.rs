//! Tokens are counted where they pass: everything in the sandbox, whatever the program says.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::stage::{AgentStage, PROGRAMS, Program, Way};
use crate::stage::Outcome;

/// The command by which the model starts the program again in the sandbox, with tools that are known
/// of it: what else it offers by default, such as agents of its own, is refused.
fn nested(program: Program) -> &'static str {
    match program {
        Program::Codex => {
            "@PROGRAM@ exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox \
             -c web_search=disabled -c agents.enabled=false -c model_provider=t -c model_providers.t=\"{name='t',base_url='@URL@/v1',\
             env_key='OPENAI_API_KEY',wire_api='responses'}\" inner < /dev/null"
        }
        Program::Claude => {
            "@PROGRAM@ -p inner --dangerously-skip-permissions --tools Bash < /dev/null"
        }
        Program::Gemini => {
            "NODE_OPTIONS=--require=/run/provost/gemini.cjs @PROGRAM@ --approval-mode yolo \
             -p inner < /dev/null"
        }
    }
}

/// A stage whose agent starts its program once more, by the path that it has on the machine. Each of
/// the two says that it wrote so many tokens.
fn stage(program: Program, more: &str, written: u64) -> Option<AgentStage> {
    let stage = AgentStage::new(program, Way::Plain, &json!([]), more)?;
    let url = format!("http://{}", stage.place);
    let inner = nested(program).replace("@URL@", &url);
    let path = stage.program_file().display().to_string();
    let inner = inner.replace("@PROGRAM@", &path);
    let turns = json!([
        { "shell": format!("echo good > src/a.txt; {inner}"), "tokens": written },
        { "text": "inner words", "tokens": written },
        { "text": "done" },
    ]);
    stage.inner.write("turns.json", &turns.to_string());
    Some(stage)
}

fn counted(outcome: &Outcome) -> [Value; 3] {
    let usage = &outcome.json["usage"];
    ["input_tokens", "cached_tokens", "output_tokens"].map(|it| usage[it].clone())
}

#[test]
fn what_the_model_served_is_what_is_counted_and_nested_programs_with_it() {
    for program in PROGRAMS {
        let Some(stage) = stage(program, "max_tokens = 2000000", 5) else {
            return;
        };
        let outcome = stage.run();
        assert_eq!(outcome.code(), "OK", "{program:?} {outcome:?}");
        let requests = stage.requests();
        let inner = |request: &&Value| request["request"].to_string().contains("inner");
        assert!(requests.len() >= 3, "{program:?}: {}", requests.len());
        assert!(requests.iter().any(|it| inner(&it)), "{program:?}");
        let served = stage.served().map(|tokens| json!(tokens));
        assert_eq!(counted(&outcome), served, "{program:?} {outcome:?}");
        let usage = &outcome.json["usage"];
        assert_eq!(usage["counted"], true, "{usage}");
        assert_eq!(usage["estimated"], 0, "{usage}");
        // The program does not know of the other one that it started.
        let claimed = usage["claimed"]["output_tokens"].as_u64().unwrap();
        assert!(json!(claimed) != served[2], "{program:?}: {usage}");
        let run = outcome.text("run_id");
        let shown = stage.inner.ask(&["show", run]);
        let shown = String::from_utf8_lossy(&shown.stdout);
        let tokens = stage.served()[0] - stage.served()[1] + stage.served()[2];
        let line = format!("spent    {tokens} tokens in ");
        assert!(shown.contains(&line), "{}", shown);
        assert_eq!(stage.inner.verify(run).exit, 0);
    }
}

#[test]
fn the_limit_holds_over_everything_in_the_sandbox() {
    for program in PROGRAMS {
        // One may be made, and the nested one passes the limit with what it reports.
        let Some(stage) = stage(program, "max_tokens = 300000", 160_000) else {
            return;
        };
        let outcome = stage.run();
        assert_eq!(
            (outcome.code(), outcome.exit),
            ("TOKEN_LIMIT", 1),
            "{program:?} {outcome:?}"
        );
        let reason = outcome.json.pointer("/verdict/reason").unwrap();
        assert!(
            reason.as_str().unwrap().contains("tokens of 300000"),
            "{reason}"
        );
        let served = stage.served().map(|tokens| json!(tokens));
        assert_eq!(counted(&outcome), served, "{program:?} {outcome:?}");
        assert!(
            stage.served()[2] <= 2 * 160_000 + 2 * 5,
            "no more than two of its requests were served"
        );
    }
}

#[test]
fn attempts_are_added_up_and_so_is_their_price() {
    for program in PROGRAMS {
        let turns = json!([
            { "shell": "echo worse > src/a.txt" },
            { "text": "done" },
            { "shell": "echo good > src/a.txt" },
            { "text": "fixed" },
        ]);
        let Some(stage) = AgentStage::new(program, Way::Plain, &turns, "") else {
            return;
        };
        let words = ["make it good", "--allow", "src", "--accept", "sh check.sh"];
        let credential = stage.credential();
        let more = ["--retries", "1", "--credential", &credential];
        let outcome = stage.run_with(&[&words[..], &more].concat());
        assert_eq!(outcome.code(), "OK", "{program:?} {outcome:?}");
        let served = stage.served().map(|tokens| json!(tokens));
        assert_eq!(counted(&outcome), served, "{program:?} {outcome:?}");
        let claimed = &outcome.json["usage"]["claimed"];
        if program != Program::Gemini {
            // Gemini does not count what it asks which model to ask.
            assert_eq!(claimed["output_tokens"], served[2], "{program:?} {claimed}");
        }
        if program == Program::Claude {
            // It says the price of the whole conversation at the end of each part.
            let price = claimed["micro_usd"].as_u64().unwrap();
            let said = stage.prices(outcome.text("run_id"));
            assert_eq!(said.len(), 2, "{said:?}");
            assert_eq!(price, *said.iter().max().unwrap(), "{said:?}");
            assert_eq!(price, 2 * said.iter().min().unwrap(), "{said:?}");
        }
    }
}

#[test]
fn a_limit_that_cannot_be_counted_is_refused_at_the_start() {
    let Some(stage) = AgentStage::new(Program::Codex, Way::Tunnel, &json!([]), "max_tokens = 9")
    else {
        return;
    };
    let outcome = stage.run();
    assert_eq!(outcome.exit, 2, "{outcome:?}");
    let reason = format!("{outcome:?}");
    assert!(
        reason.contains("max_tokens") && reason.contains("brokered"),
        "{reason}"
    );
    assert!(stage.requests().is_empty() && stage.inner.runs().is_empty());
}

#[test]
fn an_active_run_shows_how_long_and_how_many_tokens_so_far() {
    let turns = json!([{ "shell": "echo good > src/a.txt; sleep 8" }, { "text": "done" }]);
    let Some(stage) = AgentStage::new(Program::Claude, Way::Plain, &turns, "") else {
        return;
    };
    std::thread::scope(|scope| {
        let run = scope.spawn(|| stage.run());
        let began = Instant::now();
        let shown = loop {
            assert!(began.elapsed() < Duration::from_secs(30), "it never showed");
            std::thread::sleep(Duration::from_millis(200));
            let Some(name) = stage.inner.runs().first().cloned() else {
                continue;
            };
            let shown = stage.inner.ask(&["show", &name, "--json"]);
            if shown.json["usage"]["requests"] == 1 {
                break (name, shown);
            }
        };
        let (name, first) = shown;
        let usage = &first.json["usage"];
        assert_eq!(usage["output_tokens"], 5, "{usage}");
        std::thread::sleep(Duration::from_secs(1));
        let second = stage.inner.ask(&["show", &name, "--json"]);
        let took = |shown: &Outcome| shown.json["took_ms"].as_u64().unwrap();
        assert!(took(&second) >= took(&first) + 1000, "{first:?} {second:?}");
        let text = stage.inner.ask(&["show", &name]);
        let text = String::from_utf8_lossy(&text.stdout);
        assert!(text.contains(" so far"), "{text}");
        assert!(text.contains("11 tokens in 1 request"), "{text}");
        assert_eq!(run.join().unwrap().code(), "OK");
    });
}
