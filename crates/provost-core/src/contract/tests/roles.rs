//! Every role of the registry has a contract that can be run.

use super::*;
use crate::agent_registry;
use crate::contract::output::Output;

#[test]
fn every_role_of_the_registry_has_a_contract_that_is_resolved() {
    let policy = CommandPolicy::shipped().unwrap();
    let mut seen = 0;
    for agent in agent_registry::agents() {
        seen += 1;
        let output = Output::of(agent.role);
        let mut value = good();
        let writes = agent.defaults.sandbox != agent_registry::Sandbox::ReadOnly;
        value["assigned_agent"] = json!({ "role": agent.role, "agent_id": agent.agent_id });
        value["audit_only"] = json!(!writes);
        let filesystem = if writes {
            "workspace-write"
        } else {
            "read-only"
        };
        value["tool_permissions"]["filesystem"] = json!(filesystem);
        value["inputs"]["artifacts"] = json!([{
            "name": "output_schema", "uri": output.place(), "sha256": output.digest(),
        }]);
        let document = from_value(&value).unwrap();
        let contract = resolve(document, &policy, Trust::FromFile);
        assert!(contract.is_ok(), "{:?}: {contract:?}", agent.role);
        // No other schema will do.
        for other in [Output::TaskResult, Output::ReviewReport, Output::TestReport] {
            value["inputs"]["artifacts"][0]["uri"] = json!(other.place());
            value["inputs"]["artifacts"][0]["sha256"] = json!(other.digest());
            let bound = resolve(from_value(&value).unwrap(), &policy, Trust::FromFile);
            assert_eq!(bound.is_ok(), other == output, "{:?} {other:?}", agent.role);
        }
    }
    assert_eq!(seen, 15);
}
