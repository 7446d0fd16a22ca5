//! Turns the answer of a planner into a contract.

use std::sync::LazyLock;

use provost_core::contract::document::{Document, Network, Permissions};
use provost_core::contract::typed::Typed;
use provost_core::schema::bound;
use provost_core::verdict::Verdict;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::asked::{Asked, Word, blocked, read};

/// The answer of a planner to a request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) verdict: Word,
    /// What the contract does and leaves out, or why there is none.
    pub(super) summary: String,
    /// The instruction for the agent.
    pub(super) objective: String,
    /// Where it may write.
    pub(super) allow: Vec<String>,
    /// Where it may not write, even inside of `allow`.
    pub(super) forbid: Vec<String>,
    /// The acceptance commands.
    pub(super) accept: Vec<String>,
    /// What the agent must not do, as text.
    pub(super) forbidden_actions: Vec<String>,
    /// Files that decide about tests and builds, and that have to change.
    pub(super) permit_oracle: Vec<String>,
    /// Files that instruct agents, and that have to change.
    pub(super) permit_governing: Vec<String>,
    /// The network endpoints that the work needs.
    pub(super) net: Vec<String>,
    /// When the agent is ended, in minutes.
    pub(super) minutes: u64,
}

pub(super) fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(bound::<Plan>);
    &SCHEMA
}

/// The contract that the answer `text` describes, or why there is none.
///
/// The contract is not judged here: the rules of every other contract apply to it. `now` is in
/// milliseconds since 1970.
pub(super) fn contract(asked: &Asked, text: &str, now: i64) -> Result<Document, Verdict> {
    let plan: Plan = read(text, schema())?;
    if plan.verdict == Word::Blocked {
        return Err(blocked(&plan.summary));
    }
    let typed = Typed {
        objective: plan.objective,
        allow: plan.allow,
        forbid: plan.forbid,
        accept: plan.accept,
        base: Some(asked.base_commit.to_string()),
        timeout_sec: plan.minutes.saturating_mul(60),
        permit: Permissions {
            oracle: plan.permit_oracle,
            governing: plan.permit_governing,
            ..Permissions::default()
        },
        ..Typed::default()
    };
    let mut document = typed.document(&asked.plan_id, now);
    document.forbidden_actions = plan.forbidden_actions;
    if !plan.net.is_empty() {
        document.tool_permissions.network = Network::Allow;
    }
    if let Some(extra) = &mut document.x_provost {
        // Unparsed, so that the rules name the entry that is wrong.
        extra.net = plan.net;
        extra.author = Some(asked.author());
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Task;
    use crate::plan::split::tests::asked;
    use provost_core::code::Code;
    use provost_core::contract::additions::AdditionsFrom;
    use provost_core::contract::check::{self, Purpose, Rules};
    use provost_core::gate::command::{CommandPolicy, Trust};
    use serde_json::json;

    fn answer(change: impl FnOnce(&mut Value)) -> String {
        let mut value = json!({
            "verdict": "PLAN", "summary": "s", "objective": "Greet by name",
            "allow": ["src/greet.py"], "forbid": [], "accept": ["pytest -q"],
            "forbidden_actions": ["add a dependency"], "permit_oracle": [],
            "permit_governing": [], "net": [], "minutes": 20,
        });
        change(&mut value);
        value.to_string()
    }

    fn planned(text: &str) -> Result<Document, Verdict> {
        let request = "greet".to_owned();
        contract(&asked(Task::Plan { request }), text, 1_767_225_600_000)
    }

    fn findings(document: &Document) -> Vec<(String, Code)> {
        let rules = Rules {
            policy: &CommandPolicy::shipped().unwrap(),
            trust: Trust::FromFile,
            purpose: Purpose::Run,
            additions: AdditionsFrom::Nowhere,
        };
        let found = check::check(&serde_json::to_value(document).unwrap(), &rules);
        found.into_iter().map(|one| (one.path, one.code)).collect()
    }

    #[test]
    fn a_plan_becomes_a_contract_that_names_its_author_and_its_base() {
        let document = planned(&answer(|_| ())).unwrap();
        assert_eq!(findings(&document), []);
        let extra = document.x_provost.as_ref().unwrap();
        assert_eq!(extra.author.as_deref(), Some("agent:it"));
        assert_eq!(document.timeout_retry.timeout_sec, 1200);
        assert_eq!(document.forbidden_actions, ["add a dependency"]);
        assert_eq!(document.rollback.baseline_ref.len(), 64);
    }

    #[test]
    fn what_breaks_a_rule_of_contracts_is_named_by_its_place() {
        let cases: [(&str, Value, &str, Code); 6] = [
            (
                "allow",
                json!(["**"]),
                "/allowed_paths/0",
                Code::ScopeInvalid,
            ),
            ("allow", json!([]), "/allowed_paths", Code::InputInvalid),
            // Broad paths need a person, and an agent wrote this contract.
            (
                "allow",
                json!(["src"]),
                "/allowed_paths/0",
                Code::PrivilegeExceeded,
            ),
            (
                "accept",
                json!(["curl x | sh"]),
                "/acceptance_tests/0/cmd",
                Code::CommandRefused,
            ),
            (
                "net",
                json!(["nowhere"]),
                "/x_provost/net/0",
                Code::ContractInvalid,
            ),
            (
                "minutes",
                json!(0),
                "/timeout_retry/timeout_sec",
                Code::InputInvalid,
            ),
        ];
        for (field, value, path, code) in cases {
            let document = planned(&answer(|it| it[field] = value)).unwrap();
            let found = findings(&document);
            assert_eq!(found.first(), Some(&(path.to_owned(), code)), "{field}");
        }
    }

    #[test]
    fn an_answer_that_is_no_plan_is_refused_with_its_places() {
        let cases: [(&str, String, Code); 6] = [
            ("prose", "Let us begin".to_owned(), Code::PlanInvalid),
            (
                "less",
                answer(|it| drop(it.as_object_mut().unwrap().remove("allow"))),
                Code::PlanInvalid,
            ),
            (
                "more",
                answer(|it| it["shell"] = json!("sh")),
                Code::PlanInvalid,
            ),
            (
                "a text for a list",
                answer(|it| it["allow"] = json!("src")),
                Code::PlanInvalid,
            ),
            (
                "half a minute",
                answer(|it| it["minutes"] = json!(0.5)),
                Code::PlanInvalid,
            ),
            (
                "none",
                answer(|it| it["verdict"] = json!("BLOCKED")),
                Code::PlanRefused,
            ),
        ];
        for (name, text, want) in cases {
            let verdict = planned(&text).unwrap_err();
            assert_eq!(verdict.code, want, "{name}");
        }
        let verdict = planned(&answer(|it| it["allow"] = json!(["a", 1]))).unwrap_err();
        let path = &verdict.details.unwrap()["findings"][0]["path"];
        assert_eq!(path, "/allow/1", "{}", verdict.reason);
    }
}
