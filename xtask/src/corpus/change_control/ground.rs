//! The repository of a scenario, its agents, and the effect of its steps.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use provost_core::json;
use provost_core::object::sha256;
use rusqlite::{Connection, params};
use serde_json::{Map, Value, json};

use super::agent::Agent;
use super::expect::{Variables, compare, find, resolve};
use super::{Case, text};
use crate::{Result, repository};

type Step = Map<String, Value>;

/// The longest sleep of a scenario, in seconds.
const LONGEST_SLEEP: f64 = 10.0;

pub(super) struct Ground {
    top: PathBuf,
    root: PathBuf,
    home: PathBuf,
    program: PathBuf,
    strict: bool,
    agents: BTreeMap<String, Agent>,
    variables: Variables,
    last_receipt: Value,
}

impl Ground {
    /// Makes the repository of `case` below `place`, and starts its agents.
    pub(super) fn lay(place: &Path, case: &Case, program: &Path) -> Result<Self> {
        let (top, home) = (place.join("repo"), place.join("home"));
        for directory in [&top, &home] {
            fs::create_dir_all(directory)?;
        }
        let root = match &case.repo.root {
            Some(root) => top.join(root),
            None => top.clone(),
        };
        let mut ground = Self {
            top,
            root,
            home,
            program: program.to_owned(),
            strict: case.env.as_ref().is_some_and(|env| env.strict_finish),
            agents: BTreeMap::new(),
            variables: Variables::new(),
            last_receipt: Value::Null,
        };
        for (path, content) in &case.repo.files {
            ground.write(path, content)?;
        }
        if case.repo.ignore_tool_state {
            ground.write(".gitignore", ".provost/\n.codeclone/\n")?;
        }
        fs::create_dir_all(&ground.root)?;
        if case.repo.git {
            ground.git(&["init", "-q", "-b", "main"])?;
            ground.git(&["add", "-A"])?;
            ground.git(&["commit", "-q", "--allow-empty", "-m", "base"])?;
        }
        for name in &case.agents {
            ground.start(name)?;
        }
        Ok(ground)
    }

    fn start(&mut self, name: &str) -> Result {
        let agent = Agent::start(&self.program, name, &self.home, &self.root, self.strict)?;
        self.agents.insert(name.to_owned(), agent);
        Ok(())
    }

    fn write(&self, path: &str, content: &str) -> Result {
        let path = self.top.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        Ok(fs::write(path, content)?)
    }

    fn git(&self, arguments: &[&str]) -> Result {
        repository::git(&self.top, arguments).map(drop)
    }

    /// Runs one step, and compares its answer with the expectation.
    pub(super) fn step(&mut self, step: &Step) -> Result {
        match text(step, "op") {
            "write" => self.write(text(step, "path"), text(step, "content")),
            "delete" => Ok(fs::remove_file(self.top.join(text(step, "path")))?),
            "git" => {
                let words = step.get("args").and_then(Value::as_array);
                let words = words.into_iter().flatten().filter_map(Value::as_str);
                self.git(&words.collect::<Vec<_>>())
            }
            "sleep" => {
                let seconds = step.get("seconds").and_then(Value::as_f64).unwrap_or(0.0);
                std::thread::sleep(Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_SLEEP)));
                Ok(())
            }
            "crash" => {
                let agent = self.agents.get_mut(text(step, "agent"));
                agent.ok_or("no such agent")?.crash();
                Ok(())
            }
            "restart" => {
                let name = text(step, "agent");
                self.agents.remove(name);
                self.start(name)
            }
            "accept" => self.accept(),
            "age" | "drop_snapshot" | "corrupt" | "reuse_pid" => self.damage(step),
            "tamper_before_run" => self.tamper(step),
            "parallel" => self.parallel(step),
            "assert_distinct" => self.distinct(step),
            _ => {
                let (tool, arguments) = self.request(step)?;
                let agent = self.agents.get_mut(text(step, "agent"));
                let answer = agent.ok_or("no such agent")?.call(&tool, &arguments)?;
                self.settle(step, &answer)
            }
        }
    }

    /// Makes all present findings the baseline of the repository.
    fn accept(&self) -> Result {
        let file = self.root.join("provost.baseline.json");
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.root)
            .env("HOME", &self.home)
            .args(["analyze", "--write-baseline"])
            .arg(file);
        repository::run(&mut command).map(drop)
    }

    /// The tool that a step means, and its arguments.
    fn request(&self, step: &Step) -> Result<(String, Value)> {
        let manage = "manage_change_intent";
        let (tool, fixed, names): (_, Value, &[(&str, &str)]) = match text(step, "op") {
            "analyze" => ("analyze_repository", json!({}), &[]),
            "start" => (
                "start_controlled_change",
                json!({}),
                &[("scope", "scope"), ("intent", "intent")],
            ),
            "finish" => (
                "finish_controlled_change",
                json!({}),
                &[
                    ("intent", "intent_id"),
                    ("changed_files", "changed_files"),
                    ("after_run", "after_run_id"),
                    ("diff_ref", "diff_ref"),
                ],
            ),
            "promote" => (manage, json!({ "action": "promote" }), INTENT),
            "clear" => (manage, json!({ "action": "clear" }), INTENT),
            "get" => (manage, json!({ "action": "get" }), INTENT),
            "renew" => (manage, json!({ "action": "renew" }), INTENT),
            "check" => (manage, json!({ "action": "check" }), INTENT),
            "list" => (manage, json!({ "action": "list_workspace" }), &[]),
            "gc" => (manage, json!({ "action": "gc_workspace" }), &[]),
            "reset" => (manage, json!({ "action": "reset_workspace" }), INTENT),
            "recover" => (manage, json!({ "action": "recover" }), INTENT),
            "verify" => ("check_patch_contract", json!({ "mode": "verify" }), PATCH),
            "budget" => ("check_patch_contract", json!({ "mode": "budget" }), PATCH),
            "compare" => (
                "compare_runs",
                json!({}),
                &[("before", "run_id_before"), ("after", "run_id_after")],
            ),
            "receipt" => (
                "get_review_receipt",
                json!({ "receipt_digest": self.last_receipt }),
                &[],
            ),
            // Any other tool, by its name; `options` has its arguments.
            "tool" => (text(step, "tool"), json!({}), &[]),
            other => return Err(format!("unknown step `{other}`").into()),
        };
        let mut arguments = fixed;
        let rooted = [
            "analyze", "start", "list", "gc", "reset", "recover", "receipt",
        ];
        if rooted.contains(&text(step, "op")) || step.get("rooted") == Some(&json!(true)) {
            arguments["root"] = json!(self.root);
        }
        for (from, to) in names {
            if let Some(value) = step.get(*from) {
                arguments[*to] = resolve(value, &self.variables);
            }
        }
        let options = step.get("options").and_then(Value::as_object);
        for (name, value) in options.into_iter().flatten() {
            if name != "as_digest" {
                arguments[name] = resolve(value, &self.variables);
            }
        }
        Ok((tool.to_owned(), arguments))
    }

    /// Keeps values for later steps, and compares the answer with the expectation.
    fn settle(&mut self, step: &Step, answer: &Result<Value, String>) -> Result {
        if let (Ok(answer), Some(name)) = (answer, step.get("as").and_then(Value::as_str)) {
            let field = if text(step, "op") == "analyze" {
                "run_id"
            } else {
                "intent_id"
            };
            self.variables
                .insert(name.to_owned(), answer[field].clone());
        }
        let kept = step.get("keep").and_then(Value::as_object);
        for (name, path) in kept.into_iter().flatten() {
            let found = answer.as_ref().ok().zip(path.as_str());
            let found = found.and_then(|(answer, path)| find(answer, path));
            let found = found.ok_or_else(|| format!("there is no {path} to keep"))?;
            self.variables.insert(name.clone(), found.clone());
        }
        if let (Ok(answer), "finish") = (answer, text(step, "op")) {
            self.last_receipt = answer["receipt"]["receipt_digest"]["value"].clone();
        }
        let nothing = Map::new();
        let expected = step.get("expect").and_then(Value::as_object);
        compare(expected.unwrap_or(&nothing), answer, &self.variables)
    }

    /// Runs several steps at the same time, and counts their results.
    fn parallel(&mut self, step: &Step) -> Result {
        let steps = step
            .get("steps")
            .and_then(Value::as_array)
            .ok_or("no steps")?;
        let mut lanes: BTreeMap<String, Vec<(Step, String, Value)>> = BTreeMap::new();
        for inner in steps.iter().filter_map(Value::as_object) {
            let (tool, arguments) = self.request(inner)?;
            let lane = lanes.entry(text(inner, "agent").to_owned()).or_default();
            lane.push((inner.clone(), tool, arguments));
        }
        let agents = &mut self.agents;
        let answers: Vec<(Step, Result<Value, String>)> = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (name, agent) in agents.iter_mut() {
                let Some(lane) = lanes.remove(name) else {
                    continue;
                };
                threads.push(scope.spawn(move || {
                    let one = |(step, tool, arguments): (Step, String, Value)| {
                        let answer = agent
                            .call(&tool, &arguments)
                            .unwrap_or_else(|why| Err(why.to_string()));
                        (step, answer)
                    };
                    lane.into_iter().map(one).collect::<Vec<_>>()
                }));
            }
            let joined = threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap_or_default());
            joined.collect()
        });
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (inner, answer) in answers {
            let status = match &answer {
                Ok(answer) => answer["status"].as_str().unwrap_or("none").to_owned(),
                Err(_) => "error".to_owned(),
            };
            *counts.entry(status).or_default() += 1;
            if inner.contains_key("expect") || inner.contains_key("as") {
                self.settle(&inner, &answer)?;
            }
        }
        let mut answer = json!(counts);
        answer["counts"] = json!(counts);
        answer["statuses"] = json!(counts);
        self.settle(step, &Ok(answer))
    }

    fn distinct(&self, step: &Step) -> Result {
        let refs = step
            .get("refs")
            .and_then(Value::as_array)
            .ok_or("no refs")?;
        let mut values: Vec<String> = refs
            .iter()
            .map(|one| resolve(one, &self.variables).to_string())
            .collect();
        let count = values.len();
        values.sort();
        values.dedup();
        if values.len() == count {
            return Ok(());
        }
        Err(format!("they are not distinct: {values:?}").into())
    }

    /// Damages the declaration of an intent in the registry, as an accident would.
    fn damage(&self, step: &Step) -> Result {
        let id = resolve(step.get("intent").unwrap_or(&Value::Null), &self.variables);
        // A start that was refused without a record has nothing to damage.
        let Some(id) = id.as_str() else { return Ok(()) };
        let database = Connection::open(self.top.join(".provost/registry.db"))?;
        database.busy_timeout(Duration::from_secs(10))?;
        database.execute("DROP TRIGGER IF EXISTS intent_event_stays", [])?;
        let select = "SELECT seq, event FROM intent_event WHERE intent_id = ?1 ORDER BY seq";
        let mut statement = database.prepare(select)?;
        let rows = statement.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut events: Vec<(i64, String)> = rows.collect::<rusqlite::Result<_>>()?;
        let (first, declared) = events.first_mut().ok_or("the intent has no events")?;
        let mut record: Value = serde_json::from_str(declared)?;
        match (text(step, "op"), text(step, "what")) {
            ("age", "lease") => record["lease_renewed_at"] = json!(1000),
            ("age", "ttl") => record["expires_at"] = json!(1000),
            ("drop_snapshot", _) => record["snapshot"] = Value::Null,
            ("reuse_pid", _) => record["owner"]["pid"] = json!(std::process::id()),
            ("corrupt", _) => {
                let sql = "UPDATE intent_event SET event = '{\"version\": 1' WHERE seq = ?1";
                database.execute(sql, [*first])?;
                return Ok(());
            }
            (op, what) => return Err(format!("unknown damage `{op} {what}`").into()),
        }
        *declared = json::canonical(&record);
        let mut hash = String::new();
        for (seq, event) in events {
            hash = sha256(format!("{hash}{event}").as_bytes());
            let sql = "UPDATE intent_event SET event = ?2, hash = ?3 WHERE seq = ?1";
            database.execute(sql, params![seq, event, hash])?;
        }
        let (expires, renewed) = (record["expires_at"].as_i64(), &record["lease_renewed_at"]);
        database.execute(
            "UPDATE intent_index SET expires_at = ?2, renewed_at = ?3 WHERE intent_id = ?1",
            params![id, expires, renewed.as_i64()],
        )?;
        Ok(())
    }

    /// Changes the analysis that the intents of a run began from.
    fn tamper(&self, step: &Step) -> Result {
        let run = resolve(step.get("run").unwrap_or(&Value::Null), &self.variables);
        let run = run.as_str().unwrap_or_default();
        let changes = self.top.join(".provost/changes");
        let entries = fs::read_dir(&changes)?;
        let mut tampered = 0;
        for entry in entries.flatten() {
            let intent = fs::read_to_string(entry.path().join("intent.json")).unwrap_or_default();
            let intent: Value = serde_json::from_str(&intent).unwrap_or_default();
            let of_run = intent["run_id"]
                .as_str()
                .is_some_and(|id| id.starts_with(run));
            if of_run {
                // Another file, so that other links to the report stay as they are.
                let path = entry.path().join("before.json");
                fs::remove_file(&path)?;
                fs::write(&path, "{}")?;
                tampered += 1;
            }
        }
        if tampered == 0 {
            return Err("there is nothing to tamper with".into());
        }
        Ok(())
    }
}

const INTENT: &[(&str, &str)] = &[
    ("intent", "intent_id"),
    ("run", "run_id"),
    ("changed_files", "changed_files"),
    ("diff_ref", "diff_ref"),
    ("lease_seconds", "lease_seconds"),
    ("ttl_seconds", "ttl_seconds"),
];

const PATCH: &[(&str, &str)] = &[
    ("intent", "intent_id"),
    ("run", "run_id"),
    ("before_run", "before_run_id"),
    ("after_run", "after_run_id"),
    ("changed_files", "changed_files"),
    ("diff_ref", "diff_ref"),
    ("strictness", "strictness"),
];
