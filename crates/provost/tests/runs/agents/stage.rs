//! A stage with a scripted model, and the programs that ask it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::stage::{Outcome, Stage, lacks};

/// The key that the proxy sends to the model; no other process ever sees it.
pub(super) const KEY: &str = "quince-key";

/// A program that is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Codex,
    Claude,
    Gemini,
}

pub(super) const PROGRAMS: [Program; 3] = [Program::Codex, Program::Claude, Program::Gemini];

/// Lines of the policy that let Codex work in a conversation.
pub(super) const APP_SERVER: &str = "plane = \"app-server\"\n";

/// Every way in which a program is started, with its lines of the policy: Codex has two.
pub(super) const STARTS: [(Program, &str); 4] = [
    (Program::Codex, ""),
    (Program::Codex, APP_SERVER),
    (Program::Claude, ""),
    (Program::Gemini, ""),
];

impl Program {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Gemini => "gemini",
        }
    }

    /// The variable that its key is in.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Codex => "OPENAI_API_KEY",
            Self::Claude => "ANTHROPIC_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::Codex => "Authorization: Bearer ",
            Self::Claude => "X-Api-Key: ",
            Self::Gemini => "X-Goog-Api-Key: ",
        }
    }

    /// What its requests begin with.
    fn path(self) -> &'static str {
        match self {
            Self::Codex => "/v1",
            Self::Claude | Self::Gemini => "",
        }
    }
}

/// Where the programs are, or nothing where they are not installed; `./test` installs them.
pub(super) fn programs() -> Option<PathBuf> {
    let given = std::env::var_os("PROVOST_TEST_AGENTS").map(PathBuf::from);
    let usual = || {
        let home = PathBuf::from(std::env::var_os("HOME")?);
        Some(home.join(".cache/provost-test-agents"))
    };
    let programs = given.or_else(usual)?.join("node_modules/.bin");
    if PROGRAMS.iter().all(|it| programs.join(it.name()).is_file()) {
        return Some(programs);
    }
    provost_testkit::skip("Codex, Claude Code and Gemini CLI are not installed; `./test` does");
    None
}

/// How the model is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// As it is; the proxy adds the key.
    Plain,
    /// Encrypted from the program to the model, in a tunnel.
    Tunnel,
}

/// A stage with a scripted model and one of the programs.
pub(super) struct AgentStage {
    pub(super) inner: Stage,
    pub(super) program: Program,
    /// Where the model is.
    pub(super) place: String,
    way: Way,
    programs: PathBuf,
    model: Child,
}

impl AgentStage {
    /// A stage for `program`, whose model takes these turns; `more` are lines about the agent in
    /// the policy. `None` on a machine that lacks a program.
    pub(super) fn new(program: Program, way: Way, turns: &Value, more: &str) -> Option<Self> {
        let programs = programs()?;
        if ["python3", "curl", "openssl"].iter().any(|it| lacks(it)) {
            return None;
        }
        let stage = Stage::new();
        for (name, text) in [
            ("model.py", include_str!("model.py")),
            ("turns.json", &turns.to_string()),
            ("log", ""),
            ("home/.codex/auth.json", "{\"token\":\"xyzzy-login\"}"),
            ("home/.codex/config.toml", "model = \"xyzzy-model\"\n"),
            (
                "home/.claude/.credentials.json",
                "{\"token\":\"xyzzy-login\"}",
            ),
            ("home/.claude/CLAUDE.md", "xyzzy-login\n"),
            (
                "home/.gemini/oauth_creds.json",
                "{\"token\":\"xyzzy-login\"}",
            ),
            ("home/.gemini/GEMINI.md", "xyzzy-login\n"),
        ] {
            stage.write(name, text);
        }
        let mut model = Command::new("python3");
        model.args(["model.py", "turns.json", "log"]);
        if way == Way::Tunnel {
            certificate(&stage, "DNS:localhost,IP:127.0.0.1");
            model.args(["certificate", "key"]);
        }
        let mut model = model
            .current_dir(stage.path(""))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut printed = BufReader::new(model.stdout.take().unwrap());
        printed.read_line(&mut line).unwrap();
        let place = format!("127.0.0.1:{}", line.trim());
        let (scheme, login) = match way {
            Way::Plain => ("http", "brokered"),
            Way::Tunnel => ("https", "none"),
        };
        let policy = format!(
            "[agents.it]\nadapter = \"{}\"\nlogin = \"{login}\"\n\
             base_url = \"{scheme}://{place}{}\"\n{more}\n\
             [commands]\nallow = [\"sh check.sh\"]\n",
            program.name(),
            program.path()
        );
        stage.commit(&[("provost.toml", &policy)]);
        Some(Self {
            inner: stage,
            program,
            place,
            way,
            programs,
            model,
        })
    }

    /// A stage whose turns name paths of the stage itself.
    pub(super) fn prepared(program: Program, turns: &Value) -> Option<Self> {
        let stage = Self::new(program, Way::Plain, &json!([]), "")?;
        let text = stage.inner.fill(&turns.to_string());
        stage.inner.write("turns.json", &text);
        Some(stage)
    }

    /// A contract in a file that asks for a result.
    pub(super) fn contract(&self) -> Value {
        let text = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/examples/contract-minimal.json"
        ));
        let mut contract: Value = serde_json::from_str(text).unwrap();
        contract["allowed_paths"] = json!(["src/a.txt"]);
        contract["rollback"]["baseline_ref"] = json!("HEAD");
        contract["tool_permissions"]["network"] = json!("allow");
        contract["x_provost"] = json!({ "net": [self.place] });
        contract["required_outputs"] =
            json!([{ "name": "report", "type": "report", "acceptance": "it is there" }]);
        contract["acceptance_tests"] =
            json!([{ "name": "check", "cmd": "sh check.sh", "must_pass": true }]);
        contract
    }

    /// Runs the agent, and judges what it left.
    pub(super) fn run(&self) -> Outcome {
        let words = ["make it good", "--allow", "src", "--accept", "sh check.sh"];
        let credential = self.credential();
        let grant = match self.way {
            Way::Plain => ["--credential", &credential],
            Way::Tunnel => ["--net", &self.place],
        };
        self.run_with(&[&words[..], &grant].concat())
    }

    /// The credential that the user grants so that the model gets its key.
    pub(super) fn credential(&self) -> String {
        let (field, variable) = (self.program.field(), self.program.variable());
        format!("http://{} {field}${variable}", self.place)
    }

    /// Runs the agent with other arguments.
    pub(super) fn run_with(&self, words: &[&str]) -> Outcome {
        let all = [&["run", "--json", "--agent", "it"], words].concat();
        self.ask(&all)
    }

    /// Calls the binary as a user who has the programs and a key.
    pub(super) fn ask(&self, words: &[&str]) -> Outcome {
        let mut command = self.command(words);
        command.env(self.program.variable(), KEY);
        self.inner.spawn(command).wait()
    }

    /// The binary, for a user who has the programs and no key.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.inner.provost(words);
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.programs.display());
        command.env("PATH", path).env("HOST_TOKEN", "xyzzy-host");
        if self.way == Way::Tunnel {
            command.env("SSL_CERT_FILE", self.inner.path("certificate"));
        }
        command
    }

    /// Lets the program work in the checkout itself, as a user who started it there.
    pub(super) fn drive(&self) -> Outcome {
        self.drive_with(self.programs.clone().as_path())
    }

    /// The same, with `first` as the first directory in its `PATH`.
    pub(super) fn drive_with(&self, first: &Path) -> Outcome {
        let program = self.programs.join(self.program.name());
        let base = format!("http://{}{}", self.place, self.program.path());
        let mut command = self.inner.command(&program.display().to_string());
        match self.program {
            Program::Claude => {
                command
                    .args([
                        "-p",
                        "do it",
                        "--model",
                        "m-1",
                        "--permission-mode",
                        "acceptEdits",
                    ])
                    .args(["--allowedTools", "Bash,Write,Edit"])
                    .env("ANTHROPIC_BASE_URL", base)
                    .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
            }
            Program::Codex => {
                let provider = format!(
                    "model_providers.t={{name='t',base_url='{base}',env_key='OPENAI_API_KEY',\
                     wire_api='responses'}}"
                );
                command
                    .args([
                        "exec",
                        "-c",
                        "model_provider=t",
                        "-c",
                        &provider,
                        "-m",
                        "m-1",
                    ])
                    .arg("--dangerously-bypass-approvals-and-sandbox")
                    .args(["--dangerously-bypass-hook-trust", "do it"]);
            }
            Program::Gemini => panic!("its settings have no hook of ours"),
        }
        let path = format!(
            "{}:{}:/usr/local/bin:/usr/bin:/bin",
            first.display(),
            self.programs.display()
        );
        command.env("PATH", path).env(self.program.variable(), KEY);
        self.inner.spawn(command).wait()
    }

    /// The directory of the programs.
    pub(super) fn programs(&self) -> &Path {
        &self.programs
    }

    /// The requests that the model got.
    pub(super) fn requests(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.inner.path("log")).unwrap();
        let parse = |line| serde_json::from_str(line).unwrap();
        log.lines().map(parse).collect()
    }

    /// The file of the program; links are followed.
    pub(super) fn program_file(&self) -> PathBuf {
        let file = self.programs.join(self.program.name());
        file.canonicalize().unwrap()
    }

    /// Ends the model, so that its address refuses connections.
    pub(super) fn stop_model(&mut self) {
        let _ = self.model.kill();
        let _ = self.model.wait();
    }

    /// When the model first refused a request, in seconds.
    pub(super) fn answered(&self) -> Option<f64> {
        let text = fs::read_to_string(self.inner.path("log.refused")).ok()?;
        text.lines().next()?.parse().ok()
    }

    /// When the agent of `run` had ended, in seconds, as the ledger says.
    pub(super) fn agent_ended(&self, run: &str) -> f64 {
        let ledger = self
            .inner
            .path(&format!("repo/.provost/runs/{run}/events.jsonl"));
        let text = fs::read_to_string(ledger).unwrap();
        let line = text
            .lines()
            .find(|line| line.contains("AGENT_ENDED"))
            .unwrap();
        let record: Value = serde_json::from_str(line).unwrap();
        let ts = record
            .pointer("/event/ts")
            .or(record.pointer("/ts"))
            .unwrap();
        let millis = provost_core::time::parse(ts.as_str().unwrap()).unwrap();
        #[expect(clippy::cast_precision_loss, reason = "a time of this century")]
        let seconds = millis as f64 / 1000.0;
        seconds
    }

    /// The tokens of everything that the model served: those read, those of them from a cache, and
    /// those written.
    pub(super) fn served(&self) -> [u64; 3] {
        let log = fs::read_to_string(self.inner.path("log.served")).unwrap_or_default();
        let parse = |line| serde_json::from_str::<[u64; 3]>(line).unwrap();
        let add = |sum: [u64; 3], one: [u64; 3]| [0, 1, 2].map(|at| sum[at] + one[at]);
        log.lines().map(parse).fold([0; 3], add)
    }

    /// The last price that the agent of each attempt reported, in no order.
    pub(super) fn prices(&self, run: &str) -> Vec<u64> {
        let tasks = fs::read_dir(self.inner.evidence(run, "agent")).unwrap();
        let files = tasks.flat_map(|task| fs::read_dir(task.unwrap().path()).unwrap());
        let files = files.map(|file| file.unwrap().path());
        let reports = files.filter(|file| {
            let name = file.file_name().unwrap().to_string_lossy();
            // `events.jsonl` is the last attempt of its task once more.
            name.starts_with("events.") && name != "events.jsonl"
        });
        let last = reports.map(|file| {
            let text = fs::read_to_string(file).unwrap();
            let prices = text.lines().filter_map(|line| {
                let event: Value = serde_json::from_str(line).unwrap();
                event["micro_usd"].as_u64()
            });
            prices.max().unwrap_or(0)
        });
        last.collect()
    }

    /// The events that the agent of `run` reported in its first attempt.
    pub(super) fn events(&self, run: &str) -> Vec<Value> {
        let tasks = fs::read_dir(self.inner.evidence(run, "agent")).unwrap();
        let task = tasks.map(|task| task.unwrap().path()).next().unwrap();
        let text = fs::read_to_string(task.join("events.1.jsonl")).unwrap();
        let parse = |line| serde_json::from_str(line).unwrap();
        text.lines().map(parse).collect()
    }
}

impl Drop for AgentStage {
    fn drop(&mut self) {
        let _ = self.model.kill();
        let _ = self.model.wait();
    }
}

/// A self-signed certificate for these names, in `certificate` and `key`.
pub(super) fn certificate(stage: &Stage, names: &str) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext"])
        .args([&format!("subjectAltName={names}"), "-addext"])
        .args(["basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key", "-out", "certificate"])
        .current_dir(stage.path(""))
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// The lines of an outcome about the network: method, place, code.
pub(super) fn traffic(outcome: &Outcome) -> Vec<Value> {
    let lines = outcome.json["network"].as_array().cloned();
    let brief = |line: Value| json!([line["method"], line["target"], line["code"]]);
    lines.unwrap_or_default().into_iter().map(brief).collect()
}
