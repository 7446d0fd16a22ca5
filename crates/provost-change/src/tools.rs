//! The tools of change control: one type for each, which parses its arguments, describes them and
//! is their schema.

pub mod answers;
pub mod arguments;

use provost_core::json;
use provost_core::schema::validate::{Misfit, validate};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Map, Value};

use arguments::{
    AnalysisArguments, ArgumentError, BlastArguments, BlastArtifactArguments,
    ChangedPathsArguments, ClaimsArguments, CompareArguments, ContractArguments, FinishArguments,
    ForgetArguments, GateArguments, MakeReceiptArguments, ManageArguments, ReceiptArguments,
    StartArguments, TrailArguments,
};

/// Declares the tools: the name in the protocol, and the type of the arguments.
macro_rules! tools {
    ($($name:literal => $request:ident($arguments:ty),)*) => {
        /// A call of a tool.
        #[derive(Debug, Clone)]
        pub enum Request {
            $(#[doc = concat!("`", $name, "`")] $request($arguments),)*
        }

        const TOOLS: &[Tool] = &[$(Tool { name: $name, schema: schema::<$arguments> }),*];

        impl Request {
            /// Checks the arguments of a call against the schema that [`list`] has for the tool,
            /// and parses them.
            pub fn read(tool: &str, given: &Map<String, Value>) -> Result<Self, ArgumentError> {
                let given = fit(tool, given)?;
                match tool {
                    $($name => parse(given).map(Self::$request),)*
                    _ => {
                        let name: String = tool.chars().take(80).collect();
                        Err(ArgumentError(format!("there is no tool `{name}`")))
                    }
                }
            }
        }
    };
}

tools! {
    "analyze_repository" => Analyse(AnalysisArguments),
    "analyze_changed_paths" => AnalyseChanged(ChangedPathsArguments),
    "start_controlled_change" => Start(StartArguments),
    "finish_controlled_change" => Finish(FinishArguments),
    "manage_change_intent" => Manage(ManageArguments),
    "check_patch_contract" => Contract(ContractArguments),
    "compare_runs" => Compare(CompareArguments),
    "get_blast_radius" => Blast(BlastArguments),
    "get_blast_artifact" => BlastArtifact(BlastArtifactArguments),
    "evaluate_gates" => Gates(GateArguments),
    "validate_review_claims" => Claims(ClaimsArguments),
    "create_review_receipt" => MakeReceipt(MakeReceiptArguments),
    "get_review_receipt" => Receipt(ReceiptArguments),
    "get_patch_trail" => Trail(TrailArguments),
    "clear_session_runs" => Forget(ForgetArguments),
}

struct Tool {
    name: &'static str,
    schema: fn() -> Value,
}

/// A tool, as `tools/list` shows it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDescription {
    /// That of the type of its arguments.
    pub description: Option<Value>,
    pub input_schema: Value,
    pub name: &'static str,
}

/// Every tool, as `tools/list` shows it.
pub fn list() -> Vec<ToolDescription> {
    TOOLS.iter().map(Tool::described).collect()
}

pub fn is_known(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name)
}

impl Tool {
    fn described(&self) -> ToolDescription {
        let mut schema = (self.schema)();
        ToolDescription {
            name: self.name,
            description: schema
                .as_object_mut()
                .and_then(|it| it.remove("description")),
            input_schema: schema,
        }
    }
}

/// The arguments, if they match the schema of the tool `name`.
fn fit(name: &str, given: &Map<String, Value>) -> Result<Value, ArgumentError> {
    let mut given = given.clone();
    for name in ["detail_level", "patch_trail_detail"] {
        // The format reads a word that it does not know as a summary.
        if let Some(Value::String(word)) = given.get_mut(name)
            && !["normal", "full"].contains(&word.as_str())
        {
            "summary".clone_into(word);
        }
    }
    let given = Value::Object(given);
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        return Ok(given);
    };
    let misfits = validate(&(tool.schema)(), &given);
    let Some(Misfit { path, problem, .. }) = misfits.first() else {
        return Ok(given);
    };
    let (name, problem) = (path.trim_start_matches('/'), problem.as_str());
    let name: String = name.chars().take(80).collect();
    Err(ArgumentError(match problem {
        "is missing" => format!("`{name}` is required"),
        problem => format!("`{name}` {problem}"),
    }))
}

fn parse<T: serde::de::DeserializeOwned>(given: Value) -> Result<T, ArgumentError> {
    json::from_value(given).map_err(|error| ArgumentError(error.to_string()))
}

/// The schema of arguments in one piece, with words as `enum`.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    let mut schema = Schema::to_value(schema);
    simplify(&mut schema);
    schema
}

/// Turns choices between described words into an `enum`, everywhere in `schema`.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(simplify),
        Value::Object(fields) => {
            fields.values_mut().for_each(simplify);
            for choice in ["oneOf", "anyOf"] {
                let Some(Value::Array(choices)) = fields.remove(choice) else {
                    continue;
                };
                let words = |one: &Value| match (one.get("const"), one.get("enum")) {
                    (Some(word), _) => Some(vec![word.clone()]),
                    (None, Some(Value::Array(words))) => Some(words.clone()),
                    _ => (one["type"] == "null").then(|| vec![Value::Null]),
                };
                let all: Option<Vec<Vec<Value>>> = choices.iter().map(words).collect();
                match all {
                    Some(all) => {
                        let all = all.concat();
                        let kind = if all.contains(&Value::Null) {
                            Value::from(vec!["string", "null"])
                        } else {
                            Value::from("string")
                        };
                        fields.insert("type".to_owned(), kind);
                        fields.insert("enum".to_owned(), Value::Array(all));
                    }
                    None => {
                        fields.insert(choice.to_owned(), Value::Array(choices));
                    }
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fits(tool: &str, given: &Value) -> bool {
        Request::read(tool, given.as_object().unwrap()).is_ok()
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
            ("scope", json!({ "allowed_files": [1] })),
            ("scope", json!({ "allowed_files": ["a"], "files": [] })),
            ("scope", json!({})),
            ("root", json!(null)),
            ("intent", json!(["i"])),
            ("intent", json!("i".repeat(20_001))),
            ("on_conflict", json!("maybe")),
            ("expected_effects", json!([1])),
            ("more", json!(1)),
        ];
        for (name, value) in wrong {
            let mut bad = good.clone();
            bad[name] = value.clone();
            assert!(!fits(tool, &bad), "{name} = {value}");
        }
        let error = Request::read(tool, &Map::new()).unwrap_err();
        assert_eq!(error.0, "`root` is required");
    }

    #[test]
    fn a_time_is_a_whole_number_of_seconds() {
        for (value, want) in [
            (json!(null), true),
            (json!(1), true),
            (json!(100_000), true),
            (json!(0), false),
            (json!(-60), false),
            (json!(60.5), false),
            (json!(60.0), false),
            (json!(1_000_000_000_000_i64), false),
            (json!(u64::MAX), false),
            (json!("60"), false),
            (json!(true), false),
        ] {
            let given = json!({ "action": "renew", "intent_id": "i", "ttl_seconds": value });
            assert_eq!(fits("manage_change_intent", &given), want, "{value}");
        }
    }

    #[test]
    fn every_argument_is_described_and_takes_nothing_if_it_is_optional() {
        for tool in TOOLS {
            let described = tool.described();
            assert!(described.description.is_some(), "{}", tool.name);
            let schema = &described.input_schema;
            let needed = schema["required"].as_array().cloned().unwrap_or_default();
            for (name, argument) in schema["properties"].as_object().unwrap() {
                let place = format!("{} {name}", tool.name);
                let null = validate(argument, &Value::Null).is_empty();
                assert_eq!(null, !needed.contains(&json!(name)), "{place}");
                let text = argument["description"].as_str().unwrap_or_default();
                assert!(text.len() > 10, "{place} has no description");
                for inner in argument["properties"].as_object().into_iter().flatten() {
                    assert!(inner.1["description"].is_string(), "{place} {}", inner.0);
                }
            }
        }
    }

    #[test]
    fn words_are_listed_as_an_enum_and_an_unknown_detail_is_a_summary() {
        let mut all = list().into_iter();
        let finish = all
            .find(|it| it.name == "finish_controlled_change")
            .unwrap();
        let fields = &finish.input_schema["properties"];
        let words = json!(["summary", "normal", "full", null]);
        assert_eq!(fields["detail_level"]["enum"], words);
        assert_eq!(
            fields["strictness"]["enum"],
            json!(["relaxed", "ci", "strict", null])
        );
        let given = json!({ "intent_id": "i", "diff_ref": "HEAD", "detail_level": "bogus" });
        assert!(fits("finish_controlled_change", &given));
    }
}
