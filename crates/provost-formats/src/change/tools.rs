//! Lists the tools of change control, with the arguments that each takes.

use provost_core::schema::validate::{Misfit, validate};
use serde_json::{Map, Value, json};

use super::arguments::ArgumentError;

struct Tool {
    name: &'static str,
    about: &'static str,
    needed: &'static [&'static str],
    /// Name and type of each argument.
    arguments: &'static [(&'static str, Kind)],
}

/// The type of an argument.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    Number,
    Flag,
    List,
    Scope,
    OneOf(&'static [&'static str]),
}

use Kind::{Flag, List, Number, OneOf, Scope, Text};

const STRICTNESS: Kind = OneOf(&["ci", "strict", "relaxed"]);

/// The arguments of an analysis; its answer names those that have no effect here.
const ANALYSIS: &[(&str, Kind)] = &[
    ("root", Text),
    ("analysis_mode", Text),
    ("respect_pyproject", Flag),
    ("changed_paths", List),
    ("git_diff_ref", Text),
    ("processes", Number),
    ("min_loc", Number),
    ("min_stmt", Number),
    ("block_min_loc", Number),
    ("block_min_stmt", Number),
    ("coverage_xml", Text),
    ("complexity_threshold", Number),
    ("coupling_threshold", Number),
    ("cohesion_threshold", Number),
    ("baseline_path", Text),
    ("metrics_baseline_path", Text),
    ("cache_policy", Text),
];

/// The limits of `evaluate_gates`; a limit that cannot be measured fails when it is switched on.
pub(super) const GATES: &[(&str, Kind)] = &[
    ("run_id", Text),
    ("fail_on_new", Flag),
    ("fail_threshold", Number),
    ("fail_complexity", Number),
    ("fail_coupling", Number),
    ("fail_cohesion", Number),
    ("fail_cycles", Flag),
    ("fail_dead_code", Flag),
    ("fail_health", Number),
    ("fail_on_new_metrics", Flag),
    ("fail_on_typing_regression", Flag),
    ("fail_on_docstring_regression", Flag),
    ("fail_on_api_break", Flag),
    ("fail_on_untested_hotspots", Flag),
    ("min_typing_coverage", Number),
    ("min_docstring_coverage", Number),
    ("coverage_min", Number),
];

const TOOLS: &[Tool] = &[
    Tool {
        name: "analyze_repository",
        about: "Analyses the structure of the checkout and keeps the run for this session. Needed \
                before a change starts, and again after the last edit.",
        needed: &["root"],
        arguments: ANALYSIS,
    },
    Tool {
        name: "analyze_changed_paths",
        about: "The same as analyze_repository, with what was found in the paths that changed \
                (changed_paths or git_diff_ref).",
        needed: &["root"],
        arguments: ANALYSIS,
    },
    Tool {
        name: "start_controlled_change",
        about: "Declares which files will be touched and says whether they may be edited now. Edit \
                only when edit_allowed is true.",
        needed: &["root", "scope", "intent"],
        arguments: &[
            ("root", Text),
            ("scope", Scope),
            ("intent", Text),
            ("expected_effects", List),
            ("on_conflict", OneOf(&["block", "queue"])),
            ("strictness", STRICTNESS),
            ("ttl_seconds", Number),
            (
                "blast_radius_depth",
                OneOf(&["direct", "transitive", "auto"]),
            ),
            ("blast_radius_detail", OneOf(&["summary", "full"])),
            ("dirty_scope_policy", OneOf(&["block", "continue_own_wip"])),
        ],
    },
    Tool {
        name: "finish_controlled_change",
        about: "Reports the touched files, and returns a verdict and a receipt.",
        needed: &["intent_id"],
        arguments: &[
            ("intent_id", Text),
            ("changed_files", List),
            ("diff_ref", Text),
            ("after_run_id", Text),
            ("review_text", Text),
            ("claims_text", Text),
            ("create_receipt", Flag),
            ("auto_clear", Flag),
            ("strictness", STRICTNESS),
            ("propose_memory", Flag),
            ("detail_level", Text),
            ("patch_trail_detail", Text),
        ],
    },
    Tool {
        name: "manage_change_intent",
        about: "Manages intents: get, check, clear, promote, renew, recover, list_workspace, \
                gc_workspace, reset_workspace, declare.",
        needed: &["action"],
        arguments: &[
            (
                "action",
                OneOf(&[
                    "declare",
                    "check",
                    "get",
                    "clear",
                    "promote",
                    "renew",
                    "recover",
                    "list_workspace",
                    "gc_workspace",
                    "reset_workspace",
                ]),
            ),
            ("root", Text),
            ("intent_id", Text),
            ("run_id", Text),
            ("scope", Scope),
            ("intent", Text),
            ("expected_effects", List),
            ("changed_files", List),
            ("diff_ref", Text),
            ("ttl_seconds", Number),
            ("lease_seconds", Number),
            ("on_conflict", OneOf(&["block", "queue"])),
        ],
    },
    Tool {
        name: "check_patch_contract",
        about: "What may become worse (mode budget), and what became worse (mode verify), without \
                finishing anything.",
        needed: &["mode"],
        arguments: &[
            ("mode", OneOf(&["budget", "verify"])),
            ("run_id", Text),
            ("before_run_id", Text),
            ("after_run_id", Text),
            ("intent_id", Text),
            ("strictness", STRICTNESS),
            ("diff_ref", Text),
            ("changed_files", List),
        ],
    },
    Tool {
        name: "compare_runs",
        about: "What differs between two analyses of this session.",
        needed: &["run_id_before"],
        arguments: &[
            ("run_id_before", Text),
            ("run_id_after", Text),
            ("focus", OneOf(&["all", "clones", "structural", "metrics"])),
        ],
    },
    Tool {
        name: "get_blast_radius",
        about: "How far a change of some files reaches.",
        needed: &["files"],
        arguments: &[
            ("files", List),
            ("run_id", Text),
            ("depth", OneOf(&["direct", "transitive", "auto"])),
            ("include", List),
        ],
    },
    Tool {
        name: "get_blast_artifact",
        about: "The full blast report of a start, by its artifact id or its digest.",
        needed: &["root"],
        arguments: &[
            ("root", Text),
            ("run_id", Text),
            ("blast_artifact_id", Text),
            ("projection_digest", Text),
        ],
    },
    Tool {
        name: "evaluate_gates",
        about: "Compares an analysis of this session with limits, each switched on separately. \
                A finding is new if no baseline accepts it.",
        needed: &[],
        arguments: GATES,
    },
    Tool {
        name: "validate_review_claims",
        about: "Checks claims about the code against an analysis.",
        needed: &["text"],
        arguments: &[
            ("text", Text),
            ("run_id", Text),
            ("require_citations", Flag),
            ("patch_health_delta", Number),
        ],
    },
    Tool {
        name: "create_review_receipt",
        about: "The receipt of an intent of this session: the sealed one of a finished change, else \
                one about how it stands, which says incomplete.",
        needed: &[],
        arguments: &[
            ("intent_id", Text),
            ("run_id", Text),
            ("format", OneOf(&["markdown", "structured"])),
            ("include_blast_radius", Flag),
            ("include_patch_contract", Flag),
        ],
    },
    Tool {
        name: "get_review_receipt",
        about: "The receipt of a finished change, by its digest or by the run it is about.",
        needed: &["root"],
        arguments: &[
            ("root", Text),
            ("run_id", Text),
            ("receipt_digest", Text),
            ("format", OneOf(&["structured", "markdown"])),
        ],
    },
    Tool {
        name: "get_patch_trail",
        about: "The trail of a finished change, by its digest or by the run it is about.",
        needed: &["root"],
        arguments: &[
            ("root", Text),
            ("run_id", Text),
            ("patch_trail_digest", Text),
        ],
    },
    Tool {
        name: "clear_session_runs",
        about: "Removes the analyses of this session and gives back its intents.",
        needed: &[],
        arguments: &[("root", Text)],
    },
];

/// Every tool, as `tools/list` shows it.
pub fn list() -> Value {
    TOOLS.iter().map(described).collect()
}

pub fn is_known(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name)
}

/// Checks the arguments of a call against the schema that [`list`] has for the tool `name`, before
/// any of them is read.
pub fn fit(name: &str, given: &Map<String, Value>) -> Result<(), ArgumentError> {
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        return Ok(());
    };
    let schema = &described(tool)["inputSchema"];
    let misfits = validate(schema, &Value::Object(given.clone()));
    let Some(Misfit { path, problem, .. }) = misfits.first() else {
        return Ok(());
    };
    let (name, problem) = (path.trim_start_matches('/'), problem.as_str());
    Err(ArgumentError(match problem {
        "is missing" => format!("`{name}` is required"),
        problem => format!("`{name}` {problem}"),
    }))
}

fn described(tool: &Tool) -> Value {
    let argument = |(name, kind): &(&'static str, Kind)| {
        let mut schema = schema(*kind);
        if !tool.needed.contains(name) {
            optional(&mut schema);
        }
        ((*name).to_owned(), schema)
    };
    let properties: Map<String, Value> = tool.arguments.iter().map(argument).collect();
    json!({
        "name": tool.name,
        "description": tool.about,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": tool.needed,
        },
    })
}

/// Lets an argument be `null`, which counts as absent.
fn optional(schema: &mut Value) {
    schema["type"] = json!([schema["type"], "null"]);
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.push(Value::Null);
    }
}

fn schema(kind: Kind) -> Value {
    let list = json!({ "type": "array", "items": { "type": "string" } });
    match kind {
        Text => json!({ "type": "string" }),
        Number => json!({ "type": "number" }),
        Flag => json!({ "type": "boolean" }),
        List => list,
        OneOf(words) => json!({ "type": "string", "enum": words }),
        Scope => json!({
            "type": "object",
            "properties": { "allowed_files": list, "allowed_related": list, "forbidden": list },
            "required": ["allowed_files"],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(tool: &str, given: &Value) -> bool {
        fit(tool, given.as_object().unwrap()).is_ok()
    }

    #[test]
    fn arguments_fit_the_schema_that_is_listed() {
        let good = json!({ "root": "/x", "scope": { "allowed_files": ["a"] }, "intent": "i",
            "ttl_seconds": 60, "on_conflict": null, "expected_effects": null });
        let tool = "start_controlled_change";
        assert!(fits(tool, &good));
        let wrong = [
            ("scope", json!([["a"], [], []])),
            ("scope", json!({ "allowed_files": "a" })),
            ("scope", json!({})),
            ("root", json!(null)),
            ("intent", json!(["i"])),
            ("ttl_seconds", json!("60")),
            ("on_conflict", json!("maybe")),
            ("expected_effects", json!([1])),
        ];
        for (name, value) in wrong {
            let mut bad = good.clone();
            bad[name] = value.clone();
            assert!(!fits(tool, &bad), "{name} = {value}");
        }
        let error = fit(tool, &Map::new()).unwrap_err();
        assert_eq!(error.0, "`root` is required");
    }

    #[test]
    fn every_tool_takes_nothing_for_what_is_optional() {
        for tool in TOOLS {
            let schema = &described(tool)["inputSchema"];
            for (name, argument) in schema["properties"].as_object().unwrap() {
                let null = validate(argument, &Value::Null).is_empty();
                assert_eq!(
                    null,
                    !tool.needed.contains(&name.as_str()),
                    "{} {name}",
                    tool.name
                );
            }
        }
    }
}
