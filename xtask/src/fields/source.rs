//! The source documents of Provost, and the fields they name.

use provost_core::package::Operation;

/// One document.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    /// Where the use of its fields is found.
    pub(super) subject: Subject,
    /// The fields that the source names, separated by blanks; more may be found.
    pub(super) fields: &'static str,
}

/// Where the use of the fields of a document is found.
pub(super) enum Subject {
    /// The parser of a foreign format, by the name of its schema.
    Foreign(&'static str),
    /// The rules of contracts.
    Contract,
    /// The schema of a report.
    Report(&'static str),
    /// The parser of child packages, with a payload or the case that has one.
    Package(Operation, &'static str),
    /// The answer of deriving a child package, below a JSON pointer.
    Answer(&'static str),
    /// The answer of a check.
    Verdict,
    /// The parser of a tool of change control.
    Request(&'static str),
    /// The answers of a tool of change control; a field without a value is absent.
    ToolAnswer(&'static str),
}

/// A derivation with every field of its policies.
pub(super) const DERIVE: &str = "tests/corpus/child-packages/035-route-override.json";

/// A derivation with an allow-list.
const ALLOWLIST: &str = "tests/corpus/child-packages/005-allowlist-subset.json";

const BY_SUMMARY: &str = r#"{ "handoff_policy": {
    "type": "summary_only", "summary_ref": "content.a", "max_tokens": 10,
    "policy_ref": { "kind": "context", "id": "policy.handoff" }
} }"#;

const BY_REFERENCES: &str = r#"{ "handoff_policy": {
    "type": "selected_refs", "refs": ["content.a"],
    "policy_ref": { "kind": "context", "id": "policy.handoff" }
} }"#;

const WHOLE_HISTORY: &str = r#"{ "handoff_policy": {
    "type": "full_history_with_policy", "projection_audit_required": true,
    "policy_ref": { "kind": "context", "id": "policy.handoff" }
} }"#;

const DEPTH: &str = r#"{ "depth_budget": {
    "current_depth": 0, "max_depth": 2, "max_children": 1
} }"#;

/// Fields of a contract whose use a contract alone does not show, and what uses them.
pub(super) const ELSEWHERE: &[(&str, &str)] = &[
    ("x_provost.target", "`provost land`"),
    ("x_provost.author", "APPROVAL_NEEDED"),
    ("mcp_tool_set", "TOOL_REFUSED"),
    ("tool_permissions.mcp_tools", "TOOL_REFUSED"),
    ("assigned_agent.role", "SEARCH_UNAVAILABLE"),
    ("task_type", "SEARCH_UNAVAILABLE"),
    ("forbidden_actions", "the manifest: what was seen"),
    ("inputs.artifacts[].sha256", "the file of the base commit"),
    ("runtime_options.runner", "the agent of the run"),
    ("runtime_options.provider", "the agent of the run"),
    (
        "runtime_options.execution.mcp_first",
        "the agent of the run",
    ),
    ("runtime_options.strict_acceptance", "CONTRACT_INVALID"),
    ("handoff_chain.roles", "CONTRACT_INVALID"),
    ("handoff_chain.max_handoffs", "CONTRACT_INVALID"),
    (
        "role_contract.runtime_binding.model",
        "the agent of the run",
    ),
];

pub(super) const SECTIONS: &[Section] = &[
    Section {
        title: "Control packet: `task_card.yaml`",
        about: "What the planner allows. Unknown fields are tolerated.",
        subject: Subject::Foreign("packet_task_card"),
        fields: "schema_version phase_id goal_ids executor_required evidence_policy \
            evidence_files evidence_files.workspace_before evidence_files.workspace_after \
            evidence_files.acceptance_log external_noise_paths allowed_paths \
            acceptance_commands published_at",
    },
    Section {
        title: "Control packet: `executor_report.yaml`",
        about: "What the worker says. A whole packet also compares `evidence_summary`.",
        subject: Subject::Foreign("packet_executor_report"),
        fields: "schema_version phase_id executor executor.role executor.runtime status \
            changed_files commands_run reported_at evidence_summary \
            evidence_summary.workspace_before evidence_summary.workspace_after \
            evidence_summary.acceptance_log",
    },
    Section {
        title: "Control packet: `validator_report.yaml`",
        about: "What the checking role concluded. The five checks are elements of `checks`.",
        subject: Subject::Foreign("packet_validator_report"),
        fields: "schema_version phase_id validator validator.role status checks checks[].name \
            checks[].pass reported_at",
    },
    Section {
        title: "Control packet: `workspace_before.json`, `workspace_after.json`",
        about: "The digest of every file.",
        subject: Subject::Foreign("packet_workspace_snapshot"),
        fields: "schema_version captured_at files files.*",
    },
    Section {
        title: "Control packet: `acceptance_run_log.jsonl`",
        about: "One row for each command that ran.",
        subject: Subject::Foreign("packet_acceptance_log_row"),
        fields: "command exit_code started_at ended_at stdout_tail",
    },
    Section {
        title: "Operator contracts: assignment",
        about: "A task for a worker.",
        subject: Subject::Foreign("operator_assignment"),
        fields: "schema_version run_id generated_at packet_type global_objective task \
            task.task_id task.title task.type task.dependencies task.lock_scope \
            task.forbidden_scope task.acceptance_criteria task.worklog_path \
            task.timeout_seconds task.heartbeat_interval_seconds task.priority active_locks \
            active_locks[].task_id active_locks[].resource active_locks[].active \
            context_package context_package[].kind context_package[].value \
            required_output_schema",
    },
    Section {
        title: "Operator contracts: orchestrator output",
        about: "What the planner decides in one round.",
        subject: Subject::Foreign("operator_orchestrator_output"),
        fields: "schema_version run_id ledger_delta assignments active_locks blockers \
            next_actions ledger_delta[].task_id ledger_delta[].status ledger_delta[].owner \
            ledger_delta[].reason ledger_delta[].delta_id ledger_delta[].last_heartbeat_at \
            ledger_delta[].timed_out ledger_delta[].retry_after_ms blockers[].task_id \
            blockers[].code blockers[].reason blockers[].details",
    },
    Section {
        title: "Operator contracts: subagent result",
        about: "What a worker reports.",
        subject: Subject::Foreign("operator_result"),
        fields: "schema_version run_id task_id status changes acceptance_check worklog_path \
            notes_for_orchestrator changes[].resource changes[].action changes[].evidence \
            acceptance_check[].criterion acceptance_check[].status \
            acceptance_check[].evidence",
    },
    Section {
        title: "Operator contracts: worklog entry",
        about: "One line of the log of a task.",
        subject: Subject::Foreign("operator_worklog_entry"),
        fields: "timestamp run_id task_id actor action files_touched decision result next_step \
            code evidence",
    },
    Section {
        title: "Operator contracts: hand-off bundle",
        about: "What a planner needs to go on.",
        subject: Subject::Foreign("operator_handoff"),
        fields: "schema_version run_id objective constraints ledger active_locks dependencies \
            open_blockers acceptance_targets ledger[].task_id ledger[].title ledger[].status \
            ledger[].owner ledger[].lock_scope ledger[].timeout_seconds \
            ledger[].heartbeat_interval_seconds ledger[].priority ledger[].last_heartbeat_at",
    },
    Section {
        title: "Operator contracts: validator output",
        about: "What every check answers.",
        subject: Subject::Verdict,
        fields: "allow code reason details",
    },
    Section {
        title: "Task contract",
        about: "What a run is held to. `x_provost` is ours; some values of a field may be refused. \
            `handoff_chain.enabled` is, because a run is the work of one role (`provost chain` runs \
            several); `browser_policy` is, because agents get no browser.",
        subject: Subject::Contract,
        fields: "task_id task_type parent_task_id owner_agent owner_agent.role \
            owner_agent.agent_id owner_agent.codex_thread_id assigned_agent \
            assigned_agent.role assigned_agent.agent_id assigned_agent.codex_thread_id \
            inputs inputs.spec inputs.artifacts inputs.artifacts[].name \
            inputs.artifacts[].uri inputs.artifacts[].sha256 required_outputs \
            required_outputs[].name required_outputs[].type required_outputs[].acceptance \
            allowed_paths forbidden_actions acceptance_tests acceptance_tests[].name \
            acceptance_tests[].cmd acceptance_tests[].must_pass tool_permissions \
            tool_permissions.filesystem tool_permissions.shell tool_permissions.network \
            tool_permissions.mcp_tools mcp_tool_set timeout_retry timeout_retry.timeout_sec \
            timeout_retry.max_retries timeout_retry.retry_backoff_sec rollback \
            rollback.strategy rollback.baseline_ref rollback.target_ref evidence_links \
            log_refs log_refs.run_id log_refs.paths log_refs.paths.codex_jsonl \
            log_refs.paths.codex_transcript log_refs.paths.git_diff log_refs.paths.tests_log \
            log_refs.paths.trace_id policy_pack handoff_chain handoff_chain.enabled \
            handoff_chain.roles handoff_chain.max_handoffs audit_only browser_policy \
            browser_policy.profile_mode browser_policy.profile_ref browser_policy.cookie_ref \
            browser_policy.stealth_mode browser_policy.human_behavior runtime_options \
            runtime_options.runner runtime_options.provider runtime_options.execution \
            runtime_options.strict_acceptance role_contract role_contract.identity \
            role_contract.purpose role_contract.system_prompt_ref \
            role_contract.skills_bundle_ref role_contract.mcp_bundle_ref \
            role_contract.runtime_binding role_contract.tool_permissions \
            role_contract.resolved_mcp_tool_set role_contract.handoff \
            role_contract.fail_closed_conditions",
    },
    Section {
        title: "Run bundle: `run_manifest.v1`",
        about: "Read by its type: an object is closed, and a wrong type is refused.",
        subject: Subject::Report("run_manifest"),
        fields: "run_id created_at finished_at status task_id failure_reason notes user_request \
            trace_id diagnostic runner policy_pack repo repo.root repo.baseline_ref \
            repo.final_ref repo.remote_url repo.branch versions versions.contracts_schema \
            versions.orchestrator versions.codex_cli versions.agents_sdk versions.python \
            versions.node model model.id model.temperature model.top_p model.seed \
            role_binding_summary role_binding_summary.authority role_binding_summary.source \
            role_binding_summary.execution_authority role_binding_summary.skills_bundle_ref \
            role_binding_summary.mcp_bundle_ref role_binding_summary.runtime_binding tasks \
            tasks[].task_id tasks[].role tasks[].contract tasks[].status artifacts \
            evidence_hashes integrity trace workflow observability",
    },
    Section {
        title: "Run bundle: `task_result.v1`",
        about: "Read by its type: an object is closed, and a wrong type is refused.",
        subject: Subject::Report("task_result"),
        fields: "run_id task_id producer status started_at finished_at summary artifacts git \
            git.baseline_ref git.head_ref git.changed_files git.patch gates gates.diff_gate \
            gates.policy_gate gates.review_gate gates.tests_gate next_steps attempt failure",
    },
    Section {
        title: "Run bundle: `work_report.v1`",
        about: "Read by its type: an object is closed, and a wrong type is refused.",
        subject: Subject::Report("work_report"),
        fields: "task_id status patch_ref diff_summary evidence_refs failure_reason run_id \
            attempt role baseline_ref head_ref patch changed_files gates evidence \
            next_actions timestamps metrics notes",
    },
    Section {
        title: "Run bundle: `review_report.v1`",
        about: "Read by its type: an object is closed, and a wrong type is refused.",
        subject: Subject::Report("review_report"),
        fields: "run_id reviewer reviewed_at verdict summary scope_check evidence task_id attempt \
            produced_diff notes",
    },
    Section {
        title: "Run bundle: `test_report.v1`",
        about: "Read by its type: an object is closed, and a wrong type is refused.",
        subject: Subject::Report("test_report"),
        fields: "run_id task_id runner started_at finished_at status commands commands[].name \
            commands[].cmd_argv commands[].must_pass commands[].timeout_sec \
            commands[].exit_code commands[].duration_sec commands[].stdout commands[].stderr \
            commands[].cwd artifacts attempt summary failure",
    },
    Section {
        title: "Run bundle: `evidence_report.v1`",
        about: "Read by its type: an object is closed, and a wrong type is refused.",
        subject: Subject::Report("evidence_report"),
        fields: "status missing",
    },
    Section {
        title: "Run bundle: `evidence_bundle.v1`",
        about: "Read by its type: an object is closed, and a wrong type is refused.",
        subject: Subject::Report("evidence_bundle"),
        fields: "bundle_id created_at requested_by query sources claims limitations consensus \
            artifacts",
    },
    Section {
        title: "Run bundle: `reexec_report.v1`",
        about: "Read by its type: an object is closed, and a wrong type is refused.",
        subject: Subject::Report("reexec_report"),
        fields: "run_id status reexec_ts hard_equal_pass soft_equal_pass hard_diffs soft_diffs \
            errors",
    },
    Section {
        title: "Run bundle: `agent_registry.v1`",
        about: "Read by its type: an object is closed, and a wrong type is refused.",
        subject: Subject::Report("agent_registry"),
        fields: "version agents agents[].agent_id agents[].role agents[].codex_home \
            agents[].defaults agents[].description agents[].capabilities role_contracts",
    },
    Section {
        title: "Run bundle: `orchestrator_event.v1`",
        about: "Read by its type: an object is closed, and a wrong type is refused.",
        subject: Subject::Report("orchestrator_event"),
        fields: "ts level event_type run_id task_id attempt payload trace_id event context meta \
            model_id agent_id role tool_name step span_id parent_span_id tool_calls",
    },
    Section {
        title: "Child package: deriving",
        about: "What `package derive --algorithm v1` takes, beside the parent's package.",
        subject: Subject::Package(Operation::Derive, DERIVE),
        fields: "child_agent_id route_policy route_policy.type route_policy.route_id \
            route_policy.model_id handoff_policy handoff_policy.type child_policy \
            child_policy.source_parent_package child_policy.inherit_provider_route \
            child_policy.allowed_route_overrides child_policy.strip_recursive_subagents \
            child_policy.strip_disallowed_tools child_policy.child_lifecycle_bounds \
            child_policy.redaction_policy_ref child_policy.parent_control_tool_ids \
            tool_policy tool_policy.type",
    },
    Section {
        title: "Child package: an allow-list of tools",
        about: "The one tool policy that has a field.",
        subject: Subject::Package(Operation::Derive, ALLOWLIST),
        fields: "tool_policy tool_policy.type tool_policy.capability_ids",
    },
    Section {
        title: "Child package: hand-off by summary",
        about: "What the child learns from its parent.",
        subject: Subject::Package(Operation::Handoff, BY_SUMMARY),
        fields: "handoff_policy handoff_policy.type handoff_policy.summary_ref \
            handoff_policy.max_tokens handoff_policy.policy_ref",
    },
    Section {
        title: "Child package: hand-off by chosen references",
        about: "What the child learns from its parent.",
        subject: Subject::Package(Operation::Handoff, BY_REFERENCES),
        fields: "handoff_policy.type handoff_policy.refs handoff_policy.policy_ref",
    },
    Section {
        title: "Child package: hand-off of the whole history",
        about: "What the child learns from its parent.",
        subject: Subject::Package(Operation::Handoff, WHOLE_HISTORY),
        fields: "handoff_policy.type handoff_policy.projection_audit_required \
            handoff_policy.policy_ref",
    },
    Section {
        title: "Child package: depth",
        about: "Whether a child may be started.",
        subject: Subject::Package(Operation::Depth, DEPTH),
        fields: "depth_budget depth_budget.current_depth depth_budget.max_depth \
            depth_budget.max_children",
    },
    Section {
        title: "Child package: strip manifest",
        about: "What was taken away, as it comes out.",
        subject: Subject::Answer("/strip_manifest"),
        fields: "parent_package_fingerprint child_agent_id selected_provider_route_id \
            handoff_policy_variant tool_policy recursive_subagent_strip \
            stripped_capability_ids retained_capability_ids lifecycle_policy_ref \
            redaction_policy_ref",
    },
    Section {
        title: "Child package: the answer",
        about: "What comes out. The fingerprint of the child is `child_fingerprint` there.",
        subject: Subject::Answer(""),
        fields: "package child_fingerprint strip_manifest",
    },
    Section {
        title: "Change control: asking `start_controlled_change`",
        about: "A field is consumed if another value makes another request.",
        subject: Subject::Request("start_controlled_change"),
        fields: "root scope scope.allowed_files scope.allowed_related scope.forbidden intent \
            on_conflict dirty_scope_policy",
    },
    Section {
        title: "Change control: asking `finish_controlled_change`",
        about: "What was touched is said by `changed_files` or by `diff_ref`: one of them is needed, \
            both are refused. Nothing here has a memory that `propose_memory` could fill.",
        subject: Subject::Request("finish_controlled_change"),
        fields: "intent_id changed_files diff_ref after_run_id detail_level",
    },
    Section {
        title: "Change control: asking `check_patch_contract`",
        about: "The same judgement without a finish.",
        subject: Subject::Request("check_patch_contract"),
        fields: "changed_files diff_ref after_run_id",
    },
    Section {
        title: "Change control: asking `validate_review_claims`",
        about: "A finish passes its own `patch_health_delta`.",
        subject: Subject::Request("validate_review_claims"),
        fields: "text patch_health_delta",
    },
    Section {
        title: "Change control: asking `analyze_repository`",
        about: "`analyze_changed_paths` takes the same. What is carried has no effect here, and the \
            answer names it in `ignored_options`.",
        subject: Subject::Request("analyze_repository"),
        fields: "root",
    },
    Section {
        title: "Change control: the answer to `start_controlled_change`",
        about: "Every field that an answer has with a value: for an agent that may edit, waits, is \
            refused or asks again, and where nothing was analysed or seen.",
        subject: Subject::ToolAnswer("start_controlled_change"),
        fields: "status edit_allowed message next_step budget.gate_preview \
            workspace.concurrent_intents workspace_hygiene.blocks_edit \
            workspace_hygiene.foreign_dirty_overlaps dirty_snapshot dirty_scope_policy",
    },
    Section {
        title: "Change control: the answer to `finish_controlled_change`",
        about: "Every field that an answer with `detail_level` `full` has with a value: accepted, \
            violated, held up by dirty files, and blind. What is absent is reported elsewhere: the \
            dirty files are in `workspace_hygiene_after` alone, `dirty_snapshot` is the same \
            summary at every detail, \
            and `receipt` holds the receipt as Markdown, so that its health is read with \
            `get_review_receipt`.",
        subject: Subject::ToolAnswer("finish_controlled_change"),
        fields: "status reason message next_step verification.status verification.before \
            verification.before.run_id verification.before.health verification.after \
            verification.after.run_id verification.after.health \
            verification.structural_delta.verdict verification.structural_delta.health_delta \
            verification.structural_delta.regressions health_regression_advisory \
            receipt.health.delta scope_check.unexpected_files workspace_hygiene.blocks_finish \
            workspace_hygiene_after workspace_hygiene_after.blocks_finish \
            workspace_hygiene_after.finish_block_reason \
            workspace_hygiene_after.unacknowledged_dirty_in_scope \
            workspace_hygiene_after.preexisting_unscoped_dirty \
            workspace_hygiene_after.unattributed_unscoped_dirty \
            workspace_hygiene_after.own_unscoped_dirty \
            workspace_hygiene_after.new_unattributed_unscoped_dirty \
            workspace_hygiene_after.modified_unattributed_unscoped_dirty \
            workspace_hygiene_after.unknown_unattributed_unscoped_dirty \
            workspace_hygiene_after.foreign_attributed_outside_scope \
            workspace_hygiene_after.foreign_dirty_overlaps \
            workspace_hygiene_after.dirty_attribution workspace_hygiene_after.dirty_snapshot \
            workspace_hygiene_after.dirty_snapshot_status \
            workspace_hygiene_after.files_for_scope_check external_changes",
    },
    Section {
        title: "Change control: the answer to `check_patch_contract`",
        about: "Every field that an answer has with a value, in both modes.",
        subject: Subject::ToolAnswer("check_patch_contract"),
        fields: "status reason before.run_id before.health after.run_id after.health \
            structural_delta.verdict structural_delta.health_delta structural_delta.regressions \
            health_regression_advisory gate_preview",
    },
    Section {
        title: "Change control: the answer to `compare_runs`",
        about: "What a judgement compares.",
        subject: Subject::ToolAnswer("compare_runs"),
        fields: "before.run_id before.health after.run_id after.health verdict health_delta \
            regressions",
    },
    Section {
        title: "Change control: the answer to `get_review_receipt`",
        about: "The `health.delta` of a receipt is that of the change, from the run before to the \
            run after, and not the drift from a baseline that the source has there.",
        subject: Subject::ToolAnswer("get_review_receipt"),
        fields: "structured_receipt.health.delta",
    },
];
