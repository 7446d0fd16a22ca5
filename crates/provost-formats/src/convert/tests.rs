use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

static POLICY: LazyLock<CommandPolicy> = LazyLock::new(|| CommandPolicy::shipped().unwrap());

fn policy() -> &'static CommandPolicy {
    &POLICY
}

fn card() -> Value {
    json!({
        "schema_version": "subagent_task_card_v1",
        "phase_id": "T-12345678",
        "goal_ids": ["G15"],
        "executor_required": "codex_cli_subagent",
        "allowed_paths": ["app", "docs/a.md"],
        "acceptance_commands": ["pytest -q"],
        "published_at": "2026-01-31T12:00:00Z",
    })
}

fn assignment() -> Value {
    json!({
        "schema_version": "1.0.0",
        "run_id": "3f56dc4d-35cf-4f97-925c-0b04a6fe8bf4",
        "generated_at": "2026-01-31T12:00:00Z",
        "packet_type": "assignment",
        "global_objective": "Test the endpoints\n\nAll of them.",
        "task": {
            "task_id": "T-12345678",
            "title": "Add tests",
            "type": "parallelizable",
            "dependencies": ["T-1"],
            "lock_scope": ["tests/api"],
            "forbidden_scope": ["src"],
            "acceptance_criteria": ["All endpoint tests pass"],
            "worklog_path": "worklogs/T-12.jsonl",
            "timeout_seconds": 1200,
            "heartbeat_interval_seconds": 120,
            "priority": "high",
        },
        "active_locks": [],
        "context_package": [{ "kind": "note", "value": "be quick" }],
        "required_output_schema": "subagent_result_v1",
    })
}

fn contract() -> Value {
    let text = include_str!("../../../../docs/examples/contract-minimal.json");
    let mut contract: Value = serde_json::from_str(text).unwrap();
    contract["task_id"] = json!("T-12345678");
    contract["log_refs"]["run_id"] = json!("3f56dc4d-35cf-4f97-925c-0b04a6fe8bf4");
    contract["x_provost"] = json!({ "forbid": ["old"] });
    contract
}

fn example(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Card => card(),
        Dialect::Assignment => assignment(),
        Dialect::Contract => contract(),
    }
}

/// What a user has to give for a target.
fn gifts(from: Dialect, to: Dialect) -> Settings {
    let list: &[(&str, &str)] = match (from, to) {
        (Dialect::Card, Dialect::Assignment) => &[
            ("run_id", "3f56dc4d-35cf-4f97-925c-0b04a6fe8bf4"),
            ("global_objective", "Do it"),
            ("task.timeout_seconds", "600"),
        ],
        (Dialect::Card, Dialect::Contract) => &[
            ("owner_agent.role", "PM"),
            ("owner_agent.agent_id", "agent-pm"),
            ("rollback.baseline_ref", "HEAD"),
            ("log_refs.run_id", "run-0001"),
            ("inputs.spec", "Do it"),
            ("timeout_retry.timeout_sec", "600"),
        ],
        (Dialect::Assignment, Dialect::Card) => {
            &[("goal_ids", "G1"), ("acceptance_commands", "pytest -q")]
        }
        (Dialect::Assignment, Dialect::Contract) => &[
            ("owner_agent.role", "PM"),
            ("owner_agent.agent_id", "agent-pm"),
            ("rollback.baseline_ref", "HEAD"),
            ("acceptance_tests.cmd", "pytest -q"),
        ],
        (Dialect::Contract, Dialect::Card) => {
            &[("goal_ids", "G1"), ("published_at", "2026-01-31T12:00:00Z")]
        }
        _ => &[],
    };
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), vec![(*value).to_owned()]);
    list.iter().map(pair).collect()
}

fn directions() -> impl Iterator<Item = (Dialect, Dialect)> {
    let all = Dialect::ALL;
    all.into_iter()
        .flat_map(move |from| all.into_iter().map(move |to| (from, to)))
        .filter(|(from, to)| from != to)
}

fn lines(notes: &[Note]) -> String {
    let line = |note: &Note| format!("{}: {}", note.path, note.reason);
    notes.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_direction_gives_a_document_that_its_own_check_allows() {
    for (from, to) in directions() {
        let made = convert((from, to), &example(from), &gifts(from, to), policy());
        let made = made.unwrap_or_else(|refusal| panic!("{from:?} {to:?}: {refusal:?}"));
        let verdict = to.check(&made.document, policy(), Strictness::Strict);
        assert!(verdict.allow, "{from:?} {to:?}: {verdict:?}");
        // The text that is printed is the document that was judged.
        let text = to.render(&made.document);
        let read = provost_core::document::parse(to.format(), text.as_bytes()).unwrap();
        assert_eq!(read, made.document, "{from:?} {to:?}");
    }
}

#[test]
fn what_is_missing_is_named_and_never_made_up() {
    for (from, to) in directions() {
        for (name, _) in gifts(from, to) {
            let mut settings = gifts(from, to);
            settings.remove(&name);
            let refusal = convert((from, to), &example(from), &settings, policy()).unwrap_err();
            let field = name.rsplit('.').next().unwrap();
            let text = serde_json::to_string(&refusal).unwrap();
            let list = name.split('.').next().unwrap();
            assert!(
                text.contains(field) || text.contains(list),
                "{from:?} {to:?} {name}: {text}"
            );
        }
    }
}

#[test]
fn what_the_target_cannot_say_is_listed() {
    let (from, to) = (Dialect::Assignment, Dialect::Card);
    let made = convert((from, to), &assignment(), &gifts(from, to), policy()).unwrap();
    insta::assert_snapshot!(lines(&made.lost), @r"
    /context_package: a task card has no field for it
    /global_objective: a task card has no field for it
    /run_id: a task card has no field for it
    /task/acceptance_criteria: a task card has no field for it; words of an assignment never become a command
    /task/dependencies: a task card has no field for it
    /task/forbidden_scope: a task card has no field for it; what it forbids is permitted there
    /task/heartbeat_interval_seconds: a task card has no field for it
    /task/priority: a task card has no field for it
    /task/timeout_seconds: a task card has no field for it
    /task/title: a task card has no field for it
    /task/type: a task card has no field for it
    /task/worklog_path: a task card has no field for it
    ");
    let (from, to) = (Dialect::Assignment, Dialect::Contract);
    let made = convert((from, to), &assignment(), &gifts(from, to), policy()).unwrap();
    insta::assert_snapshot!(lines(&made.lost), @r"
    /context_package: a task contract has no field for it
    /generated_at: a task contract has no field for it
    /task/dependencies: a task contract has no field for it
    /task/heartbeat_interval_seconds: a task contract has no field for it
    /task/priority: a task contract has no field for it
    /task/title: a task contract has no field for it
    /task/type: a task contract has no field for it
    /task/worklog_path: a task contract has no field for it
    ");
    insta::assert_snapshot!(lines(&made.given), @r"
    /acceptance_tests/0/name: the usual value; the source does not say
    /acceptance_tests/0/must_pass: the usual value; the source does not say
    /acceptance_tests: given by hand
    /owner_agent/agent_id: given by hand
    /owner_agent/role: given by hand
    /rollback/baseline_ref: given by hand
    /required_outputs/0/name: the usual value; the source does not say
    /required_outputs/0/type: the usual value; the source does not say
    /assigned_agent/role: the usual value; the source does not say
    /assigned_agent/agent_id: the usual value; the source does not say
    /inputs/artifacts: the usual value; the source does not say
    /tool_permissions/filesystem: the usual value; the source does not say
    /tool_permissions/shell: the usual value; the source does not say
    /tool_permissions/network: the usual value; the source does not say
    /mcp_tool_set: the usual value; the source does not say
    /timeout_retry/max_retries: the usual value; the source does not say
    /timeout_retry/retry_backoff_sec: the usual value; the source does not say
    /rollback/strategy: the usual value; the source does not say
    ");
}

#[test]
fn a_name_that_does_not_fit_is_refused_until_one_is_given() {
    let mut source = card();
    source["phase_id"] = json!("phase/one");
    let (from, to) = (Dialect::Card, Dialect::Assignment);
    let mut settings = gifts(from, to);
    let refusal = convert((from, to), &source, &settings, policy()).unwrap_err();
    assert!(refusal.reason.contains("/task/task_id"), "{refusal:?}");
    settings.insert("task.task_id".to_owned(), vec!["T-7".to_owned()]);
    let made = convert((from, to), &source, &settings, policy()).unwrap();
    assert_eq!(made.document["task"]["task_id"], "T-7");
    assert!(lines(&made.lost).contains("/phase_id: replaced by"));
}

#[test]
fn a_wrong_setting_is_a_wrong_request() {
    let cases = [
        (vec![("nothing", vec!["1"])], "is no field"),
        (
            vec![("task.timeout_seconds", vec!["soon"])],
            "takes one whole number",
        ),
        (vec![("run_id", vec!["a", "b"])], "takes one value"),
    ];
    for (settings, want) in cases {
        let settings: Settings = settings
            .into_iter()
            .map(|(name, values)| {
                let values = values.into_iter().map(str::to_owned).collect();
                (name.to_owned(), values)
            })
            .collect();
        let way = (Dialect::Card, Dialect::Assignment);
        let refusal = convert(way, &card(), &settings, policy()).unwrap_err();
        assert_eq!(refusal.code, Code::UsageError);
        assert!(refusal.reason.contains(want), "{}", refusal.reason);
    }
}

#[test]
fn a_pattern_of_a_card_is_never_widened_to_a_path() {
    let mut source = card();
    source["allowed_paths"] = json!(["src/**"]);
    for to in [Dialect::Assignment, Dialect::Contract] {
        let refusal = convert(
            (Dialect::Card, to),
            &source,
            &gifts(Dialect::Card, to),
            policy(),
        );
        assert!(!refusal.unwrap_err().allow);
    }
}

#[test]
fn words_of_an_assignment_never_become_a_command() {
    let mut source = assignment();
    source["task"]["acceptance_criteria"] = json!(["pytest -q"]);
    for to in [Dialect::Card, Dialect::Contract] {
        let refusal = convert(
            (Dialect::Assignment, to),
            &source,
            &Settings::new(),
            policy(),
        );
        assert!(!refusal.unwrap_err().allow);
    }
}

prop_compose! {
    fn words()(text in "[a-z]{1,8}( [a-z]{1,8}){0,3}") -> String { text }
}

prop_compose! {
    fn paths()(names in prop::collection::btree_set("[a-z]{3,6}", 1..4)) -> Vec<String> {
        names.into_iter().map(|name| format!("app/{name}")).collect()
    }
}

/// A source of a format with values that every format can carry.
fn source(dialect: Dialect, number: u32, objective: &str, paths: &[String], timeout: u32) -> Value {
    let mut source = example(dialect);
    let task = format!("T-{number:08}");
    let values = [
        ("the name of the task", json!(task)),
        ("the objective", json!(objective)),
        ("what may be written", json!(paths)),
        ("the time limit", json!(timeout)),
    ];
    for (what, value) in values {
        let same = table::SAME.iter().find(|same| same.what == what).unwrap();
        if let Some(at) = same.place(dialect) {
            place::write(&mut source, at, value);
        }
    }
    source
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What both formats can express is the same after a conversion there and back, and every
    /// document on the way keeps the rules of its format.
    #[test]
    fn a_way_there_and_back_keeps_what_is_carried(
        number: u32,
        objective in words(),
        paths in paths(),
        timeout in 30_u32..600_000,
    ) {
        for (from, to) in directions() {
            let source = source(from, number, &objective, &paths, timeout);
            let there = convert((from, to), &source, &gifts(from, to), policy()).unwrap();
            prop_assert!(to.check(&there.document, policy(), Strictness::Strict).allow);
            let mut settings = gifts(to, from);
            // Only what the way back cannot know is given.
            settings.retain(|name, _| {
                let mut both = table::SAME.iter().filter(|same| same.place(to).is_some());
                !both.any(|same| same.place(from).is_some_and(|at| table::name(at) == *name))
            });
            let back = convert((to, from), &there.document, &settings, policy()).unwrap();
            prop_assert!(from.check(&back.document, policy(), Strictness::Strict).allow);
            for same in table::SAME {
                if let (Some(at), Some(_)) = (same.place(from), same.place(to)) {
                    let (was, is) = (place::read(&source, at), place::read(&back.document, at));
                    prop_assert_eq!(was, is, "{:?} {:?} {}", from, to, same.what);
                }
            }
        }
    }

    /// For any source there is a document that keeps the rules, or a refusal.
    #[test]
    fn a_broken_source_is_refused_or_converted_well(
        pick in any::<prop::sample::Index>(),
        wrong in prop_oneof![Just(json!(null)), Just(json!(7)), Just(json!([])), Just(json!("*"))],
    ) {
        for (from, to) in directions() {
            let mut source = example(from);
            let places = place::others(&source, &["/task/task_id", "/inputs/spec"]);
            let at = places[pick.index(places.len())].0.clone();
            *source.pointer_mut(&at).unwrap() = wrong.clone();
            if let Ok(made) = convert((from, to), &source, &gifts(from, to), policy()) {
                prop_assert!(to.check(&made.document, policy(), Strictness::Strict).allow);
            }
        }
    }
}
