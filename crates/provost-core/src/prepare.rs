//! Prepared layers: dependencies that are made once for many sandboxes, keyed by their inputs.
//!
//! # Invariants
//!
//! - The key of a step covers its definition, its input files, the toolchain, and the steps before
//!   it. A change of any of them requires another layer.
//! - A layer made from an untrusted tree has that tree in its key, so that no later run finds it by
//!   its inputs alone.
//! - No output is inside another one, or at a path that the repository itself tracks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::change::Node;
use crate::gate::command;
use crate::json;
use crate::net::endpoint::Endpoint;
use crate::object::{Oid, sha256};
use crate::path::{RawPath, RepoPath};
use crate::protect;
use crate::scope::Scope;

const MOST_STEPS: usize = 16;
/// Variables that the sandbox itself sets.
const RESERVED: [&str; 6] = ["HOME", "LOGNAME", "PATH", "PWD", "TMPDIR", "USER"];
/// Directories of a home, with the variables that point a tool there wherever its user keeps them.
const HOMES: [(&str, &[(&str, &str)]); 5] = [
    (
        ".cargo",
        &[("CARGO_HOME", "~/.cargo"), ("CARGO_NET_OFFLINE", "true")],
    ),
    (
        "go/pkg/mod",
        &[("GOMODCACHE", "~/go/pkg/mod"), ("GOPROXY", "off")],
    ),
    (
        ".cache/uv",
        &[("UV_CACHE_DIR", "~/.cache/uv"), ("UV_OFFLINE", "1")],
    ),
    (".m2", &[("MAVEN_ARGS", "--offline")]),
    (".npm", &[("npm_config_cache", "~/.npm")]),
];
/// Variables of [`HOMES`] that keep a tool off the network, and so are not set for the step itself.
const OFFLINE: [&str; 4] = ["CARGO_NET_OFFLINE", "GOPROXY", "MAVEN_ARGS", "UV_OFFLINE"];

/// A layer that is made once, in a sandbox, and read by many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The name; unique among the steps.
    pub name: String,
    /// The commands, in order; never empty.
    pub run: Vec<Vec<String>>,
    /// The input files, or directories of such; never empty.
    pub inputs: Vec<RepoPath>,
    /// The directories it leaves; never empty.
    pub outputs: Vec<Output>,
    /// The network endpoints that it may reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub net: Vec<Endpoint>,
    /// Variables of the step, and of every sandbox that mounts its outputs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// A directory of the host that is mounted instead of outputs; no policy can name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<HostDirectory>,
}

/// A directory of the host that the user gave to sandboxes, read-only and at the same path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostDirectory {
    /// Absolute, without links.
    pub path: String,
    /// The digest of its content.
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Output {
    /// In the workspace.
    Tree(RepoPath),
    /// In the home of the sandbox; written with `~/`.
    Home(RepoPath),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutputError(String);

impl TryFrom<String> for Output {
    type Error = OutputError;

    fn try_from(text: String) -> Result<Self, OutputError> {
        let (place, make): (&str, fn(RepoPath) -> Self) = match text.strip_prefix("~/") {
            Some(below) => (below, Self::Home),
            None => (&text, Self::Tree),
        };
        let path = RepoPath::try_from(place.trim_end_matches('/'))
            .map_err(|error| OutputError(error.to_string()))?;
        let output = make(path);
        match &output {
            Self::Tree(path) if protect::control_directory(path).is_some() => {
                Err(OutputError("is kept for git and Provost".to_owned()))
            }
            Self::Tree(path) if path.as_str().starts_with('~') => {
                Err(OutputError("begins with `~`; write `~/…`".to_owned()))
            }
            Self::Tree(_) | Self::Home(_) => Ok(output),
        }
    }
}

impl From<Output> for String {
    fn from(output: Output) -> Self {
        output.to_string()
    }
}

impl fmt::Display for Output {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tree(path) => write!(out, "{path}"),
            Self::Home(path) => write!(out, "~/{path}"),
        }
    }
}

/// A step as a policy writes it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RawStep {
    name: Option<String>,
    run: Lines,
    inputs: Vec<String>,
    outputs: Vec<String>,
    net: Vec<String>,
    env: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Lines {
    One(String),
    Many(Vec<String>),
}

impl Default for Lines {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("prepare: {0}")]
pub struct BadSteps(String);

/// Validates the steps of a policy.
pub fn steps(raw: Vec<RawStep>) -> Result<Vec<Step>, BadSteps> {
    if raw.len() > MOST_STEPS {
        return Err(BadSteps(format!("more than {MOST_STEPS} steps")));
    }
    let mut steps: Vec<Step> = Vec::new();
    for (number, raw) in raw.into_iter().enumerate() {
        let named = raw.name.clone();
        let place = named.unwrap_or_else(|| format!("step {}", number + 1));
        let step = step(raw).map_err(|flaw| BadSteps(format!("{place}: {flaw}")))?;
        if steps.iter().any(|other| other.name == step.name) {
            let flaw = format!("two steps are called `{}`; give them a `name`", step.name);
            return Err(BadSteps(flaw));
        }
        steps.push(step);
    }
    let outputs = steps.iter().flat_map(|step| &step.outputs);
    if let Some((one, other)) = nested(outputs) {
        let flaw = format!("the outputs `{one}` and `{other}` lie in each other");
        return Err(BadSteps(flaw));
    }
    Ok(steps)
}

/// Two of `outputs` of which one is, or lies in, the other.
pub fn nested<'a>(outputs: impl Iterator<Item = &'a Output>) -> Option<(&'a Output, &'a Output)> {
    let outputs: Vec<&Output> = outputs.collect();
    outputs.iter().enumerate().find_map(|(at, one)| {
        let other = outputs[..at].iter().find(|other| clash(one, other))?;
        Some((*other, *one))
    })
}

fn clash(one: &Output, other: &Output) -> bool {
    let overlap = |one: &RepoPath, other: &RepoPath| {
        let [one, other] = [one, other].map(|path| Scope::of(vec![path.clone()]));
        one.overlaps(&other)
    };
    match (one, other) {
        (Output::Tree(one), Output::Tree(other)) | (Output::Home(one), Output::Home(other)) => {
            overlap(one, other)
        }
        (Output::Tree(_), Output::Home(_)) | (Output::Home(_), Output::Tree(_)) => false,
    }
}

fn step(raw: RawStep) -> Result<Step, String> {
    let lines = match raw.run {
        Lines::One(line) => vec![line],
        Lines::Many(lines) => lines,
    };
    let argv = |line: &String| {
        let words = command::split(line).map_err(|flaw| format!("run: `{line}`: {flaw}"))?;
        if words.is_empty() {
            return Err("run: a command is empty".to_owned());
        }
        Ok(words)
    };
    let run: Vec<Vec<String>> = lines.iter().map(argv).collect::<Result<_, _>>()?;
    let input = |text: &String| {
        RepoPath::try_from(text.trim_end_matches('/'))
            .map_err(|error| format!("inputs: `{text}` {error}"))
    };
    let output = |text: &String| {
        Output::try_from(text.clone()).map_err(|error| format!("outputs: `{text}` {error}"))
    };
    let place =
        |text: &String| Endpoint::parse(text).map_err(|error| format!("net: `{text}` {error}"));
    let program = run.first().and_then(|argv| argv.first());
    let name = raw.name.or_else(|| program.map(|word| base_name(word)));
    let step = Step {
        name: name.ok_or("names no `run`")?,
        inputs: raw.inputs.iter().map(input).collect::<Result<_, _>>()?,
        outputs: raw.outputs.iter().map(output).collect::<Result<_, _>>()?,
        net: raw.net.iter().map(place).collect::<Result<_, _>>()?,
        env: raw.env,
        mount: None,
        run,
    };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    if !step.name.chars().all(plain) || step.name.starts_with('.') || step.name.is_empty() {
        return Err("its name is not of letters, digits, `-`, `_` and `.`".to_owned());
    }
    for (field, is_empty) in [
        ("run", step.run.is_empty()),
        ("inputs", step.inputs.is_empty()),
        ("outputs", step.outputs.is_empty()),
    ] {
        if is_empty {
            return Err(format!("names no `{field}`"));
        }
    }
    step.env.iter().try_for_each(variable)?;
    Ok(step)
}

fn base_name(word: &str) -> String {
    word.rsplit('/').next().unwrap_or(word).to_owned()
}

fn variable((name, value): (&String, &String)) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let named = name.bytes().all(plain) && name.as_bytes().first().is_some_and(begins);
    if !named {
        return Err(format!("env: `{name}` is no name of a variable"));
    }
    if RESERVED.contains(&name.as_str()) || name.starts_with("PROVOST_") {
        return Err(format!("env: `{name}` belongs to the sandbox"));
    }
    if value.contains('\0') {
        return Err(format!("env: `{name}` holds a NUL"));
    }
    Ok(())
}

impl Step {
    /// The step of a virtual environment that the user named.
    pub fn of_environment(directory: HostDirectory) -> Self {
        let variable = ("VIRTUAL_ENV".to_owned(), directory.path.clone());
        Self {
            name: "virtual-environment".to_owned(),
            run: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            net: Vec::new(),
            env: BTreeMap::from([variable]),
            mount: Some(directory),
        }
    }

    /// The input files of the step in `tree`; an error names a missing input.
    pub fn inputs_in<'a>(
        &'a self,
        tree: &'a BTreeMap<RawPath, Node>,
    ) -> Result<BTreeMap<&'a RawPath, &'a Node>, &'a RepoPath> {
        let mut found = BTreeMap::new();
        for input in &self.inputs {
            let scope = Scope::of(vec![input.clone()]);
            let mut there = tree.iter().filter(|(path, _)| scope.covers_raw(path));
            found.extend([there.next().ok_or(input)?]);
            found.extend(there);
        }
        Ok(found)
    }

    /// The variables of the step while it runs, or of a sandbox that mounts its outputs; `home` is
    /// where `~/` points.
    pub fn variables(&self, home: &str, used: Use) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for output in &self.outputs {
            let Output::Home(path) = output else { continue };
            let known = HOMES.iter().find(|(place, _)| *place == path.as_str());
            let variables = known.map_or(&[][..], |(_, variables)| *variables);
            all.extend(variables.iter().copied());
        }
        if used == Use::Made {
            all.retain(|name, _| !OFFLINE.contains(name));
        }
        let own = self
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), &**value));
        all.extend(own);
        let place = |(name, value): (&str, &str)| {
            let value = match value.strip_prefix("~/") {
                Some(below) => format!("{home}/{below}"),
                None => value.to_owned(),
            };
            (name.to_owned(), value)
        };
        all.into_iter().map(place).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// While its outputs are made.
    Made,
    Used,
}

/// The inputs of a layer's key, beside its step.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// Identifies the programs of this machine.
    pub toolchain: &'a str,
    /// The keys of the steps before it.
    pub before: &'a [String],
    /// The tree, if it is untrusted.
    pub untrusted: Option<&'a Oid>,
    /// Whether the step has a loopback interface.
    pub loopback: bool,
}

/// The key of the layer that `step` makes from `inputs`.
pub fn key(
    step: &Step,
    inputs: &BTreeMap<&RawPath, &Node>,
    circumstances: Circumstances<'_>,
) -> String {
    let Circumstances {
        toolchain,
        before,
        untrusted,
        loopback,
    } = circumstances;
    let row = |(path, node): (&&RawPath, &&Node)| json!([path, node.mode, node.oid]);
    let inputs: Vec<_> = inputs.iter().map(row).collect();
    let whole = json!({ "layout": 1, "step": step, "inputs": inputs, "toolchain": toolchain,
                        "before": before, "untrusted": untrusted, "loopback": loopback });
    sha256(json::canonical(&whole).as_bytes())
}

/// The paths of `tree` that conflict with the outputs of a step.
pub fn in_the_way(steps: &[Step], tree: &BTreeMap<RawPath, Node>) -> BTreeSet<String> {
    let outputs = steps.iter().flat_map(|step| &step.outputs);
    let mut found = BTreeSet::new();
    for output in outputs {
        let Output::Tree(output) = output else {
            continue;
        };
        let scope = Scope::of(vec![output.clone()]);
        let above = |path: &RawPath| {
            let below = output.as_str().as_bytes().strip_prefix(path.as_bytes());
            below.is_some_and(|below| below.starts_with(b"/"))
        };
        let clash = |path: &&RawPath| scope.covers_alias(path) || above(path);
        found.extend(tree.keys().filter(clash).map(ToString::to_string));
    }
    found
}

#[cfg(test)]
mod tests;
