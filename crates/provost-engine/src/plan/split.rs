//! Turns the answer of a planner that divided a contract into a chain.

use std::sync::LazyLock;

use provost_core::agent::adapter::mcp::NONE;
use provost_core::code::Code;
use provost_core::contract::check::Rules;
use provost_core::contract::document::{Document as Written, Network};
use provost_core::exit::Exit;
use provost_core::schema::bound;
use provost_core::scope::Scope;
use provost_core::verdict::Verdict;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::asked::{Asked, Task, Word, blocked, broken, read};
use crate::chain::document::VERSION;
use crate::chain::{self, Chain, Document, Dropped, MOST_HANDOFFS, Node, grant};

/// The answer of a planner that divides a contract.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Split {
    pub(super) verdict: Word,
    /// How it divided the contract, or why it could not.
    pub(super) summary: String,
    pub(super) children: Vec<Child>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Child {
    pub(super) id: String,
    /// The instruction for the agent.
    pub(super) objective: String,
    /// Where it may write.
    pub(super) allow: Vec<String>,
    /// The paths of these that other parts may write too.
    pub(super) shares: Vec<String>,
    /// Its acceptance commands.
    pub(super) accept: Vec<String>,
    /// The commands of the contract that it leaves out.
    pub(super) drops: Vec<Dropped>,
    /// The network endpoints that it needs.
    pub(super) net: Vec<String>,
    /// The MCP servers that it needs.
    pub(super) tools: Vec<String>,
    /// When the agent is ended, in minutes.
    pub(super) minutes: u64,
    /// The parts whose results it starts from.
    pub(super) needs: Vec<String>,
}

pub(super) fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(bound::<Split>);
    &SCHEMA
}

/// The chain that the answer `text` describes, checked against the contract that was divided.
pub(super) fn split(
    asked: &Asked,
    text: &str,
    rules: &Rules<'_>,
) -> Result<(Document, Chain), Verdict> {
    let Task::Split { contract: parent } = &asked.task else {
        return Err(Verdict::deny(Code::Bug, "nothing was to be divided"));
    };
    let split: Split = read(text, schema())?;
    if split.verdict == Word::Blocked {
        return Err(blocked(&split.summary));
    }
    let mut parent = (**parent).clone();
    parent.rollback.baseline_ref = asked.base_commit.to_string();
    let parts = u32::try_from(split.children.len()).unwrap_or(u32::MAX);
    let mut whole = parent.clone();
    if let Some(extension) = &mut whole.x_provost {
        let grant = extension.children.take();
        extension.children = grant.and_then(|grant| grant.divided(parts));
    }
    let node = |child: Child| node(asked, &whole, child);
    let mut document = Document {
        schema_version: VERSION,
        max_handoffs: MOST_HANDOFFS,
        nodes: split.children.into_iter().map(node).collect(),
        parent: Some(parent),
    };
    let chain = match chain::check(&document, rules) {
        Ok(chain) => chain,
        Err(problems) => {
            let code = problems.first().map_or(Code::ChainInvalid, |one| one.code);
            // What a planner wrote is no mistake of the user on the command line.
            let code = if code.exit() == Exit::No {
                code
            } else {
                Code::PlanInvalid
            };
            let refusal = broken(code, "", problems);
            let silent = || Verdict::deny(Code::ChainInvalid, "the division breaks a rule");
            return Err(refusal.unwrap_or_else(silent));
        }
    };
    packages(&mut document, &chain, rules);
    Ok((document, chain))
}

/// Gives every node the package of its agent.
fn packages(document: &mut Document, chain: &Chain, rules: &Rules<'_>) {
    let parent = document.parent.clone();
    let whole = parent.and_then(|parent| provost_core::contract::resolve_by(parent, rules).ok());
    let Some(whole) = whole else { return };
    let Ok(package) = grant::parent(&whole, chain.nodes.len()) else {
        return;
    };
    for (node, checked) in document.nodes.iter_mut().zip(&chain.nodes) {
        node.package = grant::derive(&package, &checked.contract, &whole).ok();
    }
}

/// A part as a contract; fields that it does not state are those of the whole.
fn node(asked: &Asked, parent: &Written, child: Child) -> Node {
    let mut contract = parent.clone();
    let id = child.id;
    contract.task_id = format!("{}-{id}", parent.task_id);
    contract.parent_task_id = Some(parent.task_id.clone());
    contract.inputs.spec = child.objective;
    contract.allowed_paths = child.allow;
    contract.timeout_retry.timeout_sec = child.minutes.saturating_mul(60);
    let known = |cmd: &String| {
        let mut tests = parent.acceptance_tests.iter();
        tests.find(|test| test.cmd == *cmd).cloned()
    };
    let unknown = |(at, cmd): (usize, &String)| {
        let mut test = parent.acceptance_tests.first().cloned()?;
        test.name = format!("accept-{}", at + 1);
        test.cmd.clone_from(cmd);
        test.must_pass = true;
        Some(test)
    };
    // A command that the whole does not have is refused later, by name.
    let commands = child.accept.iter().enumerate();
    let commands = commands.filter_map(|(at, cmd)| known(cmd).or_else(|| unknown((at, cmd))));
    contract.acceptance_tests = commands.collect();
    contract.tool_permissions.network = if child.net.is_empty() {
        Network::Deny
    } else {
        Network::Allow
    };
    tools(&mut contract, child.tools);
    let scope = Scope::parse(&contract.allowed_paths).unwrap_or_default();
    let mut extra = contract.x_provost.take().unwrap_or_default();
    extra.net = child.net;
    extra.shares = child.shares;
    extra.author = Some(asked.author());
    extra.permit = extra
        .permit
        .map(|permit| grant::permits_within(&permit, &scope));
    contract.x_provost = Some(extra);
    Node {
        id,
        needs: child.needs,
        agent: None,
        contract: Some(contract),
        contract_file: None,
        drops: child.drops,
        package: None,
    }
}

/// Gives the part the servers `asked` and no others; one that the whole lacks is refused later.
fn tools(contract: &mut Written, asked: Vec<String>) {
    let permitted = &mut contract.tool_permissions.mcp_tools;
    permitted.retain(|tool| asked.contains(tool));
    if !permitted.is_empty() || !asked.is_empty() {
        contract.mcp_tool_set = asked;
    } else if !contract.mcp_tool_set.is_empty() {
        contract.mcp_tool_set = vec![NONE.to_owned()];
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use provost_core::contract::check::Purpose;
    use provost_core::contract::typed::Typed;
    use provost_core::gate::command::{CommandPolicy, Trust};
    use provost_core::object::{Kind, ObjectFormat};
    use provost_core::run::fact::{Reviewer, WorkspaceChoice};
    use serde_json::json;

    /// A sample request to the planner `it`.
    pub(in crate::plan) fn asked(task: Task) -> Asked {
        let oid = |word: &str| {
            ObjectFormat::Sha256
                .oid(Kind::Blob, word.as_bytes())
                .unwrap()
        };
        Asked {
            plan_id: "plan_1".to_owned(),
            task,
            revision: "HEAD".to_owned(),
            base_commit: oid("commit"),
            base_tree: oid("tree"),
            planner: Reviewer {
                name: "it".to_owned(),
                argv: vec!["it".to_owned()],
                typed: false,
                adapted: None,
                credentials: Vec::new(),
            },
            net: Vec::new(),
            workspace: WorkspaceChoice::Auto,
            timeout_sec: 60,
            began: "2026-01-01T00:00:00Z".to_owned(),
            version: "0".to_owned(),
        }
    }

    fn whole() -> Written {
        let typed = Typed {
            objective: "Do all of it".to_owned(),
            allow: vec!["lib/a".to_owned(), "lib/b".to_owned(), "tests".to_owned()],
            forbid: vec!["lib/a/frozen".to_owned()],
            accept: vec!["pytest -q".to_owned(), "cargo test".to_owned()],
            timeout_sec: 1200,
            net: vec!["a.example:443".parse().unwrap()],
            ..Typed::default()
        };
        let mut document = typed.document("run_1", 1_767_225_600_000);
        document.forbidden_actions = vec!["push".to_owned()];
        document
    }

    fn child(id: &str, allow: &[&str], change: impl FnOnce(&mut Value)) -> Value {
        let mut value = json!({ "id": id, "objective": "a part", "allow": allow,
            "accept": ["pytest -q", "cargo test"], "drops": [], "net": [], "minutes": 20,
            "needs": [], "shares": [], "tools": [] });
        change(&mut value);
        value
    }

    fn divided(children: &[Value]) -> Result<(Document, Chain), Verdict> {
        let answer = json!({ "verdict": "PLAN", "summary": "s", "children": children });
        answered(&answer.to_string())
    }

    pub(in crate::plan) fn answered(text: &str) -> Result<(Document, Chain), Verdict> {
        let rules = Rules {
            policy: &CommandPolicy::shipped().unwrap(),
            trust: Trust::FromFile,
            purpose: Purpose::Run,
            additions: provost_core::contract::additions::AdditionsFrom::Nowhere,
        };
        let contract = Box::new(whole());
        split(&asked(Task::Split { contract }), text, &rules)
    }

    #[test]
    fn parts_of_a_contract_are_contracts_with_packages() {
        let (document, chain) = divided(&[
            child("a", &["lib/a"], |_| ()),
            child("b", &["lib/b", "tests"], |it| it["needs"] = json!(["a"])),
        ])
        .unwrap();
        assert_eq!(chain.order, [0, 1]);
        let first = document.nodes[0].contract.as_ref().unwrap();
        assert_eq!(first.task_id, format!("{}-a", whole().task_id));
        assert_eq!(first.parent_task_id.as_ref(), Some(&whole().task_id));
        assert_eq!(first.forbidden_actions, ["push"]);
        let extra = first.x_provost.as_ref().unwrap();
        assert_eq!(extra.forbid, ["lib/a/frozen"]);
        assert_eq!(extra.author.as_deref(), Some("agent:it"));
        let packages = document
            .nodes
            .iter()
            .map(|node| node.package.as_ref().unwrap());
        for package in packages {
            assert!(package.parent.is_some());
            assert!(package.delegate.is_empty());
        }
        // The written document can be read again and passes the same checks.
        let value = serde_json::to_value(&document).unwrap();
        assert_eq!(Document::from_value(&value).unwrap(), document);
    }

    #[test]
    fn what_exceeds_the_whole_is_refused_with_its_axis() {
        type Change = fn(&mut Value);
        let one = |change: Change| {
            let verdict = divided(&[child("a", &["lib/a"], change)]).unwrap_err();
            (verdict.code, verdict.reason)
        };
        let beyond = Code::PackageExceedsGrant;
        let cases: [(Change, Code, &str); 8] = [
            (|it| it["allow"] = json!(["lib"]), beyond, "write: `lib`"),
            (
                |it| it["net"] = json!(["b.example:443"]),
                beyond,
                "network: `b.example:443`",
            ),
            (
                |it| it["minutes"] = json!(21),
                beyond,
                "limits: 1260 seconds",
            ),
            (
                |it| it["accept"] = json!(["pytest -q", "cargo test", "go test ./..."]),
                beyond,
                "run: `go test ./...`",
            ),
            (
                |it| it["accept"] = json!(["pytest -q"]),
                beyond,
                "acceptance: `cargo test`",
            ),
            (
                |it| {
                    it["accept"] = json!(["pytest -q"]);
                    it["drops"] = json!([{ "cmd": "cargo test", "reason": "no crates" }]);
                },
                beyond,
                "left out by every node",
            ),
            (
                |it| it["needs"] = json!(["a"]),
                Code::ChainInvalid,
                "circle",
            ),
            (
                |it| it["needs"] = json!(["z"]),
                Code::ChainInvalid,
                "no node",
            ),
        ];
        for (change, code, words) in cases {
            let (found, reason) = one(change);
            assert_eq!(found, code, "{reason}");
            assert!(reason.contains(words), "{reason} has not {words}");
        }
        let twice = [
            child("a", &["lib/a"], |_| ()),
            child("b", &["lib/a/x"], |_| ()),
        ];
        let verdict = divided(&twice).unwrap_err();
        assert_eq!(verdict.code, Code::ChainInvalid);
        assert!(verdict.reason.contains("overlaps"), "{}", verdict.reason);
        let empty: [Change; 3] = [
            |it| it["allow"] = json!([]),
            |it| it["accept"] = json!([]),
            |it| it["objective"] = json!(""),
        ];
        for change in empty {
            let verdict = divided(&[child("a", &["lib/a"], change)]).unwrap_err();
            assert_eq!(verdict.exit(), Exit::No, "{verdict:?}");
        }
        assert_eq!(divided(&[]).unwrap_err().exit(), Exit::No);
    }

    #[test]
    fn parts_that_declare_a_common_path_are_put_in_order() {
        let shares = |it: &mut Value| it["shares"] = json!(["lib/a/x"]);
        let (document, chain) = divided(&[
            child("a", &["lib/a"], shares),
            child("b", &["lib/b"], |_| ()),
            child("c", &["lib/a/x"], shares),
        ])
        .unwrap();
        assert_eq!(
            chain.nodes[2].needs,
            [0],
            "the later one starts from the earlier"
        );
        assert!(chain.nodes[1].needs.is_empty());
        assert!(
            document.nodes[2].needs.is_empty(),
            "as the planner wrote it"
        );
        // An order that the planner chose stays.
        let (_, chain) = divided(&[
            child("a", &["lib/a"], |it| {
                it["shares"] = json!(["lib/a"]);
                it["needs"] = json!(["c"]);
            }),
            child("c", &["lib/a/x"], shares),
        ])
        .unwrap();
        assert_eq!(chain.order, [1, 0]);
        assert!(chain.nodes[1].needs.is_empty());
        let outside = |it: &mut Value| it["shares"] = json!(["lib/b"]);
        let verdict = divided(&[child("a", &["lib/a"], outside)]).unwrap_err();
        assert!(
            verdict.reason.contains("allowed_paths"),
            "{}",
            verdict.reason
        );
        // One that declares more than both write covers nothing else.
        let verdict = divided(&[
            child("a", &["lib/a"], |it| it["shares"] = json!(["lib/a/y"])),
            child("c", &["lib/a/x"], shares),
        ]);
        assert_eq!(verdict.unwrap_err().code, Code::ChainInvalid);
    }

    #[test]
    fn a_narrower_command_is_a_command_of_the_whole() {
        let narrow = |it: &mut Value| it["accept"] = json!(["pytest -q tests/a", "cargo test"]);
        let (document, _) = divided(&[child("a", &["lib/a"], narrow)]).unwrap();
        let package = serde_json::to_value(&document.nodes[0].package).unwrap();
        assert!(package.to_string().contains("\"pytest -q\""), "{package}");
        let other = |it: &mut Value| it["accept"] = json!(["pytest -q --co", "cargo test"]);
        let verdict = divided(&[child("a", &["lib/a"], other)]).unwrap_err();
        assert_eq!(
            verdict.code,
            Code::PackageExceedsGrant,
            "{}",
            verdict.reason
        );
    }

    #[test]
    fn a_part_has_the_tools_that_it_names() {
        let (document, _) = divided(&[child("a", &["lib/a"], |_| ())]).unwrap();
        let contract = document.nodes[0].contract.as_ref().unwrap();
        assert_eq!(contract.mcp_tool_set, ["none"]);
        let more = |it: &mut Value| it["tools"] = json!(["search"]);
        let verdict = divided(&[child("a", &["lib/a"], more)]).unwrap_err();
        assert!(verdict.reason.contains("search"), "{}", verdict.reason);
    }
}
