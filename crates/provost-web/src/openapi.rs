//! The `OpenAPI` document of `/api/v1`, from the types of its answers.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::api::answers::{
    ApiCase, ApiCaseDetail, ApiChange, ApiCommand, ApiDone, ApiEvidence, ApiGround, ApiList,
    ApiProblem, ApiRepository, ApiRun, ApiRunDetail, ApiTranscript, ApiWaiting,
};

/// Parameters of a query that several routes have.
const WINDOW: [&str; 2] = ["cursor", "limit"];
const SEARCH: [&str; 4] = ["cursor", "limit", "q", "status"];

/// The document; `schemas/openapi.v1.json` is its text.
pub fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    let mut types = SchemaGenerator::new(settings);
    let mut paths = reading(&mut types);
    commanding(&mut types, &mut paths);
    let problem = types.subschema_for::<ApiProblem>().to_value();
    let schemas = types.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Provost",
            "version": "1",
            "description": "The control room of `provost serve`, for programs. \
                `GET /api/v1/events` is a stream of server-sent events: `change` with `number`, \
                `repository`, `id` and `kind`, and `reset` where everything has to be read again; \
                `Last-Event-ID` resumes it."
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "responses": { "Problem": {
                "description": "Why it was refused",
                "content": { "application/problem+json": { "schema": problem } }
            } }
        }
    })
}

fn reading(types: &mut SchemaGenerator) -> Map<String, Value> {
    let mut paths = Map::new();
    let run = "/api/v1/runs/{repository}/{run}";
    let mut get = |path: &str, summary: &str, query: &[&str], schema: schemars::Schema| {
        let route = reads(path, summary, query, &schema.to_value());
        paths.insert(path.to_owned(), json!({ "get": route }));
    };
    let schema = types.subschema_for::<ApiList<ApiRepository>>();
    get(
        "/api/v1/repositories",
        "Registered repositories",
        &[],
        schema,
    );
    let schema = types.subschema_for::<ApiList<ApiWaiting>>();
    get(
        "/api/v1/inbox",
        "Everything that waits for you",
        &[],
        schema,
    );
    let schema = types.subschema_for::<ApiList<ApiRun>>();
    get(
        "/api/v1/runs/{repository}",
        "Runs, newest first",
        &SEARCH,
        schema,
    );
    let schema = types.subschema_for::<ApiRunDetail>();
    get(run, "Everything about one run", &[], schema);
    let schema = types.subschema_for::<ApiTranscript>();
    let summary = "Lines of its transcript";
    get(&format!("{run}/transcript"), summary, &WINDOW, schema);
    let schema = types.subschema_for::<ApiChange>();
    get(
        &format!("{run}/change"),
        "Lines of its patch",
        &WINDOW,
        schema,
    );
    let schema = types.subschema_for::<ApiEvidence>();
    get(
        &format!("{run}/evidence"),
        "The result of verification",
        &[],
        schema,
    );
    let schema = types.subschema_for::<ApiList<ApiCase>>();
    get(
        "/api/v1/cases/{repository}",
        "Cases, newest first",
        &WINDOW,
        schema,
    );
    let schema = types.subschema_for::<ApiCaseDetail>();
    get("/api/v1/cases/{repository}/{case}", "One case", &[], schema);
    let schema = types.subschema_for::<ApiGround>();
    get(
        "/api/v1/ground/{repository}",
        "What runs share",
        &[],
        schema,
    );
    paths
}

fn commanding(types: &mut SchemaGenerator, paths: &mut Map<String, Value>) {
    let body = types.subschema_for::<ApiCommand>().to_value();
    let done = types.subschema_for::<ApiDone>().to_value();
    for (path, words) in [
        ("/api/v1/runs/{repository}/{run}/{command}", "a run"),
        ("/api/v1/cases/{repository}/{case}/{command}", "a case"),
    ] {
        let route = commands(path, &format!("Command {words}"), &body, &done);
        paths.insert(path.to_owned(), json!({ "post": route }));
    }
}

fn parameters(path: &str, query: &[&str]) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?;
        name.strip_suffix('}')
    });
    let schema = |name: &str| match name {
        "command" => json!({ "type": "string", "enum": [
            "approve", "reject", "cancel", "retry", "keep-work", "land", "resume"
        ] }),
        "limit" => json!({ "type": "integer", "minimum": 1, "maximum": 200 }),
        _ => json!({ "type": "string" }),
    };
    let in_path = names.map(
        |name| json!({ "name": name, "in": "path", "required": true, "schema": schema(name) }),
    );
    let in_query = query.iter().map(
        |name| json!({ "name": name, "in": "query", "required": false, "schema": schema(name) }),
    );
    in_path.chain(in_query).collect()
}

fn reads(path: &str, summary: &str, query: &[&str], schema: &Value) -> Value {
    json!({
        "summary": summary,
        "parameters": parameters(path, query),
        "responses": {
            "200": {
                "description": "Found",
                "headers": { "ETag": { "schema": { "type": "string" } } },
                "content": { "application/json": { "schema": schema } }
            },
            "304": { "description": "Not changed since the `ETag` of `If-None-Match`" },
            "default": { "$ref": "#/components/responses/Problem" }
        }
    })
}

fn commands(path: &str, summary: &str, body: &Value, done: &Value) -> Value {
    json!({
        "summary": summary,
        "description": "Needs a token with the scope `command`.",
        "parameters": parameters(path, &[]),
        "requestBody": {
            "required": false,
            "content": { "application/json": { "schema": body } }
        },
        "responses": {
            "200": {
                "description": "Carried out, or started",
                "content": { "application/json": { "schema": done } }
            },
            "default": { "$ref": "#/components/responses/Problem" }
        }
    })
}
