use crate::agent::{Adapter, Agent};
use crate::contract::document::AcceptMode;
use crate::run::fact::WorkspaceChoice;
use crate::tier::Tier;

use super::*;

#[test]
fn a_policy_adds_to_the_rules() {
    let policy = parse(
        b"[protect]\noracle = [\"spec/\"]\n[commands]\nallow = [\"make test\"]\n\
          [agents.mine]\ncommand = \"my-agent --fast 'a b'\"\n\
          [workspace]\nkind = \"overlay\"\n[box]\nloopback = false\nleast_tier = \"landlock\"\n\
          [[prepare]]\nrun = \"npm ci\"\ninputs = [\"package-lock.json\"]\n\
          outputs = [\"node_modules\"]\nnet = [\"registry.npmjs.org:443\"]\n[limits]\nprocesses = 64\n\
          [approve]\npaths = [\"src/\"]\nnet = [\"a.example:443\"]\nfewer_tests = true\n",
    )
    .unwrap();
    assert_eq!(policy.commands, [["make", "test"]]);
    assert_eq!(policy.workspace, WorkspaceChoice::Overlay);
    assert_eq!(policy.limits.processes, Some(64));
    assert_eq!(policy.least_tier, Tier::Landlock);
    assert_eq!(parse(b"").unwrap().least_tier, Tier::Namespaces);
    let argv = ["my-agent", "--fast", "a b"].map(str::to_owned).to_vec();
    assert_eq!(policy.agents["mine"], Agent::Command(argv));
    assert_eq!(policy.protect.oracle.entries().len(), 1);
    assert!(policy.loopback_off);
    assert_eq!(policy.approve.paths.entries().len(), 1);
    assert_eq!(policy.approve.net.len(), 1);
    assert!(policy.approve.fewer_tests && policy.approve.authors.is_empty());
    assert_eq!(policy.approve.tier, Tier::Namespaces);
    assert_eq!(policy.prepare[0].run, [["npm", "ci"]]);
}

#[test]
fn a_policy_says_what_acceptance_may_start_with() {
    let read = |text: &str| parse(format!("[cache]\n{text}").as_bytes());
    assert_eq!(read("").unwrap().cache, CacheRules::default());
    let cache = read("acceptance = [\"build/\", \"~/.cache/x\"]\nland = \"warm\"")
        .unwrap()
        .cache;
    let places: Vec<String> = cache.acceptance.iter().map(ToString::to_string).collect();
    assert_eq!(places, ["build", "~/.cache/x"]);
    assert_eq!(
        (cache.candidate, cache.land),
        (CacheStart::Warm, CacheStart::Warm)
    );
    for (text, words) in [
        ("acceptance = [\"../x\"]", "cache.acceptance: `../x`"),
        ("acceptance = [\"/tmp/x\"]", "cache.acceptance: `/tmp/x`"),
        ("acceptance = [\".git\"]", "is kept for git and Provost"),
        ("acceptance = [\"a\", \"a/b\"]", "lie in each other"),
        ("land = \"hot\"", "hot"),
        ("warm = true", "warm"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_budget_limits_runs_and_days_and_the_smaller_of_two_counts() {
    let policy = parse(b"[budget]\nrun_tokens = 900\nday_usd = 2.5\n").unwrap();
    let user =
        parse_user_file(b"agent = \"codex\"\n[budget]\nrun_tokens = 500\nday_usd = 9.0\n").unwrap();
    assert_eq!(user.agent.as_deref(), Some("codex"));
    let both = serde_json::to_value(policy.budget.and(user.budget)).unwrap();
    let want = r#"{"day":{"micro_usd":2500000},"run":{"tokens":500}}"#;
    assert_eq!(both.to_string(), want);
    for bad in [
        &b"[budget]\nday_tokens = 0\n"[..],
        b"[budget]\nrun_usd = -1.0\n",
        b"[budget]\nweek_usd = 1.0\n",
        b"[run]\nallow = []\n",
    ] {
        assert!(parse_user_file(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn an_agent_with_an_adapter_says_what_it_may_spend() {
    let text = b"[agents.a]\nadapter = \"claude\"\nmodel = \"m-1\"\nlogin = \"none\"\n\
        base_url = \"http://127.0.0.1:8080/v1\"\nmax_tokens = 9\nmax_cost_usd = 1.5\n\
        models = [\"m-1\"]\nmodel_tools = [\"known\"]\noutward = [\"web_search\"]\n\
        [agents.b]\nadapter = \"codex\"\n";
    let agents = parse(text).unwrap().agents;
    let Agent::Adapted(adapted) = &agents["a"] else {
        panic!("{agents:?}");
    };
    assert_eq!(adapted.budget.tokens, Some(9));
    assert_eq!(adapted.budget.micro_usd, Some(1_500_000));
    let granted = serde_json::to_value(&adapted.grants).unwrap();
    let want = r#"{"models":["m-1"],"outward":["web_search"],"tools":["known"]}"#;
    assert_eq!(granted.to_string(), want);
    let url = adapted.provider.as_ref().unwrap().base_url.to_string();
    assert_eq!(url, "http://127.0.0.1:8080/v1");
    let plain = Adapter::named("codex").and_then(Adapter::plain).unwrap();
    assert_eq!(agents["b"], Agent::Adapted(plain));
    for (line, field) in [
        ("", "command"),
        ("adapter = \"exec\"", "command"),
        ("adapter = \"codex\"\ncommand = \"x\"", "command"),
        ("command = \"x\"\nmax_tokens = 1", "max_tokens"),
        ("command = \"x\"\nmodels = [\"m\"]", "models"),
        (
            "adapter = \"codex\"\nlogin = \"none\"\nmodel_tools = []",
            "model_tools",
        ),
        ("adapter = \"codex\"\nmodel = \"--x\"", "model"),
        ("adapter = \"codex\"\nbase_url = \"x\"", "base_url"),
        ("adapter = \"codex\"\nmax_tokens = 0", "max_tokens"),
        // Tokens that cannot be counted cannot be limited.
        (
            "adapter = \"codex\"\nlogin = \"none\"\nmax_tokens = 9",
            "max_tokens",
        ),
        (
            "adapter = \"mcp\"\ncommand = \"x\"\nmax_tokens = 9",
            "max_tokens",
        ),
        ("adapter = \"codex\"\nmax_cost_usd = -1.0", "max_cost_usd"),
        ("adapter = \"codex\"\ntool = \"x\"", "tool"),
        ("adapter = \"mcp\"", "command"),
        ("adapter = \"mcp\"\ncommand = \"x\"\ntool = \"x y\"", "tool"),
        ("adapter = \"mcp\"\ncommand = \"\"", "command"),
        (
            "adapter = \"mcp\"\ncommand = \"x\"\nlogin = \"none\"",
            "login",
        ),
        // A kind of login that the program does not have.
        ("adapter = \"codex\"\nlogin = \"token\"", "login"),
        ("adapter = \"gemini\"\nlogin = \"file\"", "login"),
        ("adapter = \"claude\"\nlogin = \"file_key\"", "login"),
        ("command = \"x\"\nreply_tool = \"y\"", "reply_tool"),
        ("command = \"x\"\nplane = \"app-server\"", "plane"),
        ("adapter = \"claude\"\nplane = \"exec\"", "plane"),
    ] {
        let error = parse(format!("[agents.x]\n{line}\n").as_bytes()).unwrap_err();
        let place = format!("provost.toml: agents.x.{field} ");
        assert!(error.to_string().starts_with(&place), "{line}: {error}");
    }
}

#[test]
fn a_number_that_json_cannot_hold_is_refused_with_its_field() {
    let error = parse(b"[agents.x]\nadapter = \"codex\"\nmax_cost_usd = nan\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "provost.toml: `agents.x.max_cost_usd`: `NaN` is not a finite number"
    );
}

#[test]
fn a_policy_that_does_not_parse_is_refused() {
    let cases: [&[u8]; 18] = [
        b"[mcp.none]\ncommand = \"x\"",
        b"[mcp.\"a b\"]\ncommand = \"x\"",
        b"[mcp.a]",
        b"[[prepare]]\nrun = \"npm ci\"",
        b"[box]\nleast_tier = \"none\"",
        b"surprise = 1",
        b"[approve]\nnet = [\"a.example\"]",
        b"[approve]\noracle = [\"../x\"]",
        b"[approve]\ntier = \"none\"",
        b"[approve]\neverything = true",
        b"[workspace]\nkind = \"fast\"",
        b"[protect]\noracle = [\"../x\"]",
        b"[commands]\nallow = [\"'unclosed\"]",
        b"[agents.x]\ncommand = \"\"",
        b"\xff",
        b"[protect]\n[protect]\n",
        b"[limits]\nprocesses = 1",
        b"[limits]\nram = 64",
    ];
    for bytes in cases {
        let error = parse(bytes).unwrap_err().to_string();
        assert!(error.starts_with("provost.toml: "), "{error}");
    }
}

#[test]
fn both_names_of_the_table_of_sandboxes_are_not_taken_together() {
    let both = parse(b"[box]\nloopback = false\n[sandbox]\nleast_tier = \"landlock\"\n");
    let said = both.unwrap_err().to_string();
    assert!(said.contains("older name of [sandbox]"), "{said}");
    assert!(
        parse(b"[sandbox]\nloopback = false\n")
            .unwrap()
            .loopback_off
    );
}

#[test]
fn defaults_of_runs_are_read_and_held_to_the_rules_of_their_flags() {
    let text = b"[run]\nallow = [\"src/\", \"lib\"]\naccept = [\"cargo test\", \"./my test\"]\n\
        accept_mode = \"no-regression\"\nagent = \"claude\"\nreview = \"codex\"\nretries = 2\ntimeout = \"90s\"\n";
    let run = parse(text).unwrap().run;
    assert_eq!(run.allow, ["src/", "lib"]);
    assert_eq!(run.accept, ["cargo test", "./my test"]);
    assert_eq!(run.accept_mode, Some(AcceptMode::NoRegression));
    assert_eq!(run.agent.as_deref(), Some("claude"));
    assert_eq!(run.review.as_deref(), Some("codex"));
    assert_eq!((run.retries, run.timeout_sec), (Some(2), Some(90)));
    assert_eq!(parse(b"[run]\n").unwrap().run, RunDefaults::default());
    let cases = [
        ("allow = \"src\"", "allow"),
        ("allow = []", "run.allow is empty"),
        ("allow = [\"../x\"]", "run.allow: `../x`"),
        ("allow = [\"/etc\"]", "is absolute"),
        ("allow = [\".\"]", "is the whole repository"),
        ("allow = [\"*.py\"]", "wildcard"),
        ("allow = [\".git/x\"]", "control directory"),
        ("accept = []", "run.accept is empty"),
        ("accept = [\"\"]", "there is no command"),
        ("accept = [\"a && b\"]", "run.accept: `a && b`"),
        ("accept = [\"sh -c true\"]", "run.accept: `sh -c true`"),
        ("accept = [7]", "accept"),
        ("accept_mode = \"some\"", "run.accept_mode: `some`"),
        ("agent = \"\"", "run.agent is empty"),
        ("agent = [\"claude\"]", "agent"),
        ("review = \" \"", "run.review is empty"),
        ("retries = 11", "more than 10"),
        ("retries = -1", "retries"),
        ("timeout = \"soon\"", "run.timeout: `soon`"),
        ("timeout = \"8d\"", "more than 7 days"),
        ("timeout = 90", "timeout"),
        ("surprise = 1", "surprise"),
    ];
    for (line, want) in cases {
        let error = parse(format!("[run]\n{line}\n").as_bytes()).unwrap_err();
        let words = error.to_string();
        assert!(words.starts_with("provost.toml: "), "{words}");
        assert!(words.contains(want), "{line}: {words}");
    }
}
