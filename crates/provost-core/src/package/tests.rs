//! Tests of packages.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::code::Code;
use crate::path::RepoPath;

fn id(text: &str) -> Id {
    Id::try_from(text.to_owned()).unwrap()
}

fn digest(digit: &str) -> String {
    digit.repeat(64)
}

fn package(value: Value) -> Package {
    serde_json::from_value(value).unwrap()
}

/// A lead that may delegate one capability of each sort, and may itself only read.
fn lead() -> Value {
    let capability = |id: &str, kind: &str, effect: &str| json!({ "id": id, "kind": kind, "effect": effect, "schema_sha256": digest("a") });
    json!({
        "schema_version": 2,
        "agent": "lead",
        "exercise": { "capabilities": [capability("read", "tool", "read")] },
        "delegate": {
            "capabilities": [
                capability("agent", "agent_as_tool", "read"),
                capability("extension", "extension_action", "write"),
                { "id": "mcp.bare", "kind": "mcp_tool", "effect": "read" },
                capability("mcp.pinned", "mcp_tool", "read"),
                capability("read", "tool", "read"),
                capability("run", "tool", "process"),
                { "id": "undeclared", "kind": "tool" },
                capability("write", "tool", "write"),
            ],
            "read": ["."],
            "write": ["src", "docs"],
            "run": ["cargo"],
            "network": ["crates.io:443"],
            "secrets": ["token"],
            "limits": { "seconds": 60 },
        },
        "budget": { "levels": 2, "children": 3 },
        "guards": ["gate"],
    })
}

/// A request for a child of the lead, with `members` in it.
fn asked(members: Value) -> Value {
    let fingerprint = package(lead()).fingerprint();
    let mut request = json!({
        "parent": lead(),
        "parent_fingerprint": fingerprint,
        "child_agent_id": "child",
        "tools": { "type": "inherit" },
    });
    let Value::Object(members) = members else {
        panic!("members are an object")
    };
    for (name, value) in members {
        request[name] = value;
    }
    request
}

fn ask(members: Value) -> Result<Value, Refusal> {
    answer(Operation::Derive, &asked(members)).map(|answer| answer.render())
}

fn capabilities(answer: &Value) -> Vec<&str> {
    let list = answer["package"]["exercise"]["capabilities"].as_array();
    let id = |row: &Value| row["id"].as_str().map(|_| ());
    assert!(list.unwrap().iter().all(|row| id(row).is_some()));
    list.unwrap()
        .iter()
        .filter_map(|row| row["id"].as_str())
        .collect()
}

#[test]
fn a_tool_policy_keeps_what_it_says_of_every_kind() {
    let all = [
        "extension",
        "mcp.bare",
        "mcp.pinned",
        "read",
        "run",
        "undeclared",
        "write",
    ];
    let cases: [(&str, Value, &[&str]); 4] = [
        (
            "read_only",
            json!({ "type": "read_only" }),
            &["mcp.pinned", "read"],
        ),
        ("no_tools", json!({ "type": "no_tools" }), &[]),
        ("inherit", json!({ "type": "inherit" }), &all),
        (
            "allow",
            json!({ "type": "allow", "ids": ["run", "mcp.bare"] }),
            &["mcp.bare", "run"],
        ),
    ];
    for (name, tools, want) in cases {
        let answer = ask(json!({ "tools": tools })).unwrap();
        assert_eq!(capabilities(&answer), want, "{name}");
    }
}

#[test]
fn an_agent_is_a_capability_only_for_who_may_start_one() {
    let with = |children: u32| ask(json!({ "children": children })).unwrap();
    assert!(!capabilities(&with(0)).contains(&"agent"));
    assert!(capabilities(&with(1)).contains(&"agent"));
}

#[test]
fn read_only_empties_the_axes_that_do_more() {
    let answer = ask(json!({
        "tools": { "type": "read_only" },
        "ask": { "read": ["src"], "write": ["src"], "run": ["cargo"], "network": ["crates.io:443"] },
    }))
    .unwrap();
    let exercise = &answer["package"]["exercise"];
    assert_eq!(exercise["read"], json!(["src"]));
    for axis in ["write", "run", "network", "sinks"] {
        assert_eq!(exercise[axis], json!([]), "{axis}");
    }
    let rows = answer["stripped"].as_array().unwrap();
    assert!(rows.contains(&json!({ "axis": "write", "reason": "read_only" })));
    assert!(rows.contains(&json!({ "axis": "capabilities", "id": "run", "reason": "read_only" })));
}

#[test]
fn what_may_be_delegated_need_not_be_exercised() {
    let lead = package(lead());
    let write = lead.delegate.capabilities.get(&id("write")).unwrap();
    assert!(!lead.exercise.permits(&Action::Use(write.clone())));
    let derived = ask(json!({ "tools": { "type": "allow", "ids": ["write"] } })).unwrap();
    assert_eq!(capabilities(&derived), ["write"]);
}

#[test]
fn an_axis_that_is_not_stated_is_empty() {
    let answer = ask(json!({ "tools": { "type": "no_tools" } })).unwrap();
    let empty = serde_json::to_value(Authority::default()).unwrap();
    assert_eq!(answer["package"]["exercise"], empty);
    assert_eq!(answer["package"]["delegate"], empty);
    assert_eq!(answer["package"]["guards"], json!(["gate"]));
}

#[test]
fn everything_beyond_the_grant_is_listed() {
    let refusal = ask(json!({
        "tools": { "type": "allow", "ids": ["nothing"] },
        "ask": { "write": ["src/x", "tests"], "secrets": ["key"], "limits": { "seconds": 61 } },
        "delegate": { "detach": true },
    }))
    .unwrap_err();
    assert_eq!(refusal.code, Code::PackageExceedsGrant);
    let want = [
        "ask.write: `tests` is not granted",
        "ask.secrets: `key` is not granted",
        "ask.limits: 61 seconds are asked and 60 granted",
        "delegate.detach: is not granted",
        "delegate: the child may start no agent to delegate to",
        "tools: `nothing` is not granted",
    ];
    assert_eq!(refusal.findings, want);
}

#[test]
fn a_payload_with_two_meanings_is_refused() {
    let cases: [(&str, Value, &str); 8] = [
        (
            "a capability twice",
            json!({ "delegate": { "capabilities": [
            { "id": "a", "kind": "tool" }, { "id": "a", "kind": "tool" } ] } }),
            "`a` is there twice",
        ),
        (
            "a name twice",
            json!({ "ask": { "run": ["a", "a"] } }),
            "is there twice",
        ),
        (
            "an unknown member",
            json!({ "color": "red" }),
            "unknown field `color`",
        ),
        (
            "an unknown member of a policy",
            json!({ "tools": { "type": "read_only", "x": 1 } }),
            "unknown field `x`",
        ),
        (
            "an unknown effect",
            json!({ "delegate": { "capabilities": [
            { "id": "a", "kind": "tool", "effect": "none" } ] } }),
            "not `none`",
        ),
        (
            "a fraction",
            json!({ "children": 1.0 }),
            "must be a whole number",
        ),
        (
            "a list for an object",
            json!({ "ask": { "routes": [["a", "b"]] } }),
            "must be an object, not a list",
        ),
        (
            "a place outside",
            json!({ "ask": { "read": ["../x"] } }),
            "..",
        ),
    ];
    for (name, members, want) in cases {
        let refusal = ask(members).unwrap_err();
        assert_eq!(refusal.code, Code::PackageMalformed, "{name}");
        assert!(refusal.reason.contains(want), "{name}: {}", refusal.reason);
    }
}

#[test]
fn the_handoff_is_in_the_fingerprint() {
    let fingerprint = |digit: &str, tokens: u32| {
        let handoff = json!({
            "type": "summary_only", "policy": "p", "max_tokens": tokens,
            "summary": { "name": "s", "sha256": digest(digit) },
        });
        ask(json!({ "handoff": handoff })).unwrap()["child_fingerprint"].clone()
    };
    assert_eq!(fingerprint("a", 1), fingerprint("a", 1));
    assert_ne!(fingerprint("a", 1), fingerprint("b", 1));
    assert_ne!(fingerprint("a", 1), fingerprint("a", 2));
    let nothing = ask(json!({})).unwrap()["child_fingerprint"].clone();
    assert_ne!(fingerprint("a", 1), nothing);
}

#[test]
fn a_changed_parent_is_not_the_one_that_was_approved() {
    let mut request = asked(json!({}));
    request["parent"]["delegate"]["run"] = json!(["cargo", "sh"]);
    let refusal = answer(Operation::Derive, &request).unwrap_err();
    assert_eq!(refusal.code, Code::ParentFingerprintMismatch);
}

const NAMES: [&str; 3] = ["one", "two", "three"];
const PATHS: [&str; 5] = ["src", "src/deep", "src/deep/er", "srcs", "docs"];
const EFFECTS: [&str; 3] = ["read", "write", "delegate"];
const KINDS: [&str; 3] = ["tool", "mcp_tool", "agent_as_tool"];

fn some(from: &'static [&'static str]) -> impl Strategy<Value = Value> {
    proptest::sample::subsequence(from.to_vec(), 0..=from.len()).prop_map(|list| json!(list))
}

/// An authority of a few names; every axis is random.
fn authority() -> impl Strategy<Value = Value> {
    let capability = |(name, kind, effect): (usize, usize, usize)| json!({ "id": NAMES[name], "kind": KINDS[kind], "effect": EFFECTS[effect] });
    let capabilities =
        vec((0..3usize, 0..3usize, 0..3usize).prop_map(capability), 0..4).prop_map(|mut list| {
            list.sort_by_key(|row| row["id"].to_string());
            list.dedup_by_key(|row| row["id"].clone());
            list
        });
    let names = || some(&NAMES);
    let routes = names().prop_map(|list| {
        let route = |name: &Value| json!({ "route": name, "model": "m" });
        json!(
            list.as_array()
                .unwrap()
                .iter()
                .map(route)
                .collect::<Vec<_>>()
        )
    });
    let sets = (names(), names(), names(), names(), names());
    let places = (some(&PATHS), some(&PATHS));
    (capabilities, sets, places, routes, 0..4u64, any::<bool>()).prop_map(
        |(
            capabilities,
            (run, network, environment, secrets, sinks),
            (read, write),
            routes,
            limit,
            detach,
        )| {
            json!({
                "capabilities": capabilities, "run": run, "network": network,
                "environment": environment, "secrets": secrets, "sinks": sinks,
                "read": read, "write": write, "routes": routes,
                "limits": { "seconds": limit, "tokens": limit }, "detach": detach,
            })
        },
    )
}

/// A part of `whole`: each item of each list is kept or not.
fn part(whole: Value, keep: Vec<bool>) -> Value {
    let mut keep = keep.into_iter().cycle();
    let mut whole = whole;
    for value in whole.as_object_mut().unwrap().values_mut() {
        if let Value::Array(list) = value {
            list.retain(|_| keep.next().unwrap_or_default());
        }
    }
    whole
}

fn tools() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({ "type": "inherit" })),
        Just(json!({ "type": "read_only" })),
        Just(json!({ "type": "no_tools" })),
        some(&NAMES).prop_map(|ids| json!({ "type": "allow", "ids": ids })),
    ]
}

/// A request that mostly asks for a part of what is granted, and sometimes for anything.
fn request() -> impl Strategy<Value = Request> {
    let keep = || vec(any::<bool>(), 16);
    let wild = || proptest::option::weighted(0.1, authority());
    let asks = (keep(), keep(), wild(), wild());
    (
        authority(),
        authority(),
        asks,
        tools(),
        0..3u32,
        0..4u32,
        0..3u32,
    )
        .prop_map(
            |(exercise, grant, (keep, pass, wild, wilder), tools, levels, all, children)| {
                let parent = package(json!({
                    "schema_version": 2, "agent": "lead", "exercise": exercise, "delegate": grant,
                    "budget": { "levels": levels, "children": all }, "guards": ["gate"],
                }));
                let mut ask = wild.unwrap_or_else(|| part(grant.clone(), keep));
                ask["capabilities"] = json!([]);
                let delegate = if children == 0 {
                    json!({})
                } else {
                    wilder.unwrap_or_else(|| part(grant, pass))
                };
                serde_json::from_value(json!({
                    "parent_fingerprint": parent.fingerprint(), "parent": parent,
                    "child_agent_id": "child", "tools": tools, "ask": ask, "delegate": delegate,
                    "children": children,
                }))
                .unwrap()
            },
        )
}

/// Everything that could be done in these tests.
fn actions() -> Vec<Action> {
    let mut actions = vec![Action::Outlive];
    for name in NAMES.map(id) {
        for kind in KINDS {
            for effect in EFFECTS {
                let row = json!({ "id": name, "kind": kind, "effect": effect });
                actions.push(Action::Use(serde_json::from_value(row).unwrap()));
            }
        }
        let route = json!({ "route": name, "model": "m" });
        actions.extend([
            Action::Run(name.clone()),
            Action::Reach(name.clone()),
            Action::See(name.clone()),
            Action::Unlock(name.clone()),
            Action::Ask(serde_json::from_value(route).unwrap()),
            Action::Deliver(name),
        ]);
    }
    for path in PATHS {
        let path = RepoPath::try_from(path).unwrap();
        actions.extend([Action::Read(path.clone()), Action::Write(path)]);
    }
    let spend = |seconds, tokens| {
        Action::Spend(Limits {
            seconds,
            tokens,
            processes: 0,
        })
    };
    actions.extend([
        spend(1, 0),
        spend(2, 0),
        spend(3, 0),
        spend(0, 1),
        spend(0, 3),
    ]);
    actions
}

proptest! {
    #[test]
    fn a_child_may_never_do_what_its_issuer_may_not_delegate(request in request()) {
        let Ok(derived) = derive(&request) else { return Ok(()) };
        let grant = &request.parent.delegate;
        for action in actions() {
            for side in [&derived.package.exercise, &derived.package.delegate] {
                prop_assert!(!side.permits(&action) || grant.permits(&action), "{action:?}");
            }
        }
        prop_assert!(derived.package.exercise.excess(grant).is_empty());
        prop_assert!(derived.package.guards.contains(&id("gate")));
    }

    #[test]
    fn a_read_only_child_and_its_children_only_look(mut request in request()) {
        request.tools = ToolPolicy::ReadOnly {};
        let Ok(derived) = derive(&request) else { return Ok(()) };
        for side in [&derived.package.exercise, &derived.package.delegate] {
            for action in actions() {
                let looks = match &action {
                    Action::Use(capability) => capability.effect() == Effect::Read,
                    Action::Write(_) | Action::Run(_) | Action::Reach(_) | Action::Deliver(_) => false,
                    _ => true,
                };
                prop_assert!(looks || !side.permits(&action), "{action:?}");
            }
        }
    }

    #[test]
    fn children_never_add_up_to_more_than_the_budget(
        levels in 0..4u32, children in any::<u32>(), asked in any::<u32>(),
    ) {
        let budget = Budget { levels, children };
        if let Ok((rest, child)) = budget.spend(asked) {
            prop_assert!(child.levels < levels);
            prop_assert_eq!(u64::from(rest.children) + u64::from(child.children) + 1, u64::from(children));
        } else {
            prop_assert!(levels == 0 || asked >= children);
        }
    }

    #[test]
    fn a_package_reads_back_with_the_same_fingerprint(request in request()) {
        let package = request.parent;
        let again: Package = serde_json::from_value(package.canonical()).unwrap();
        prop_assert_eq!(again.fingerprint(), package.fingerprint());
    }
}

#[test]
fn most_requests_of_the_property_tests_are_granted() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let granted = (0..200)
        .filter(|_| {
            let request = request().new_tree(&mut runner).unwrap().current();
            derive(&request).is_ok()
        })
        .count();
    assert!(granted >= 20, "only {granted} of 200");
}
