//! The `[[prepare]]` steps of every ecosystem, as one table.

use std::collections::{BTreeMap, BTreeSet};

use provost_core::json;
use serde::Deserialize;

use super::python;

/// A tool that gets dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ecosystem {
    Cargo,
    Npm,
    Pnpm,
    Yarn,
    Bun,
    Pip,
    Uv,
    Poetry,
    Hatch,
    Go,
    Maven,
    Gradle,
    /// Its projects use what the system has.
    Make,
    /// Its projects use what the system has.
    Cmake,
}

/// The language that an ecosystem serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Rust,
    Node,
    Python,
    Go,
    Java,
    Other,
}

impl Ecosystem {
    pub fn family(self) -> Family {
        match self {
            Self::Cargo => Family::Rust,
            Self::Npm | Self::Pnpm | Self::Yarn | Self::Bun => Family::Node,
            Self::Pip | Self::Uv | Self::Poetry | Self::Hatch => Family::Python,
            Self::Go => Family::Go,
            Self::Maven | Self::Gradle => Family::Java,
            Self::Make | Self::Cmake => Family::Other,
        }
    }
}

/// The files of a project that decide how it gets its dependencies: names from its top, and text.
pub type ProjectFiles = BTreeMap<String, String>;

/// A step, as a policy writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrepareRow {
    pub ecosystem: Ecosystem,
    /// The program that it needs.
    pub program: String,
    pub run: Vec<String>,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    /// As HOST:PORT.
    pub net: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// A row of the table. Rows with a lock file come before rows without.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    ecosystem: Ecosystem,
    program: String,
    /// Files that must be there; they are inputs.
    files: Vec<String>,
    /// Files that are inputs where they are there.
    #[serde(default)]
    also: Vec<String>,
    /// Files that must not be there.
    #[serde(default)]
    without: Vec<String>,
    /// A word that the last one of `files` contains if it has any dependencies.
    #[serde(default)]
    holds: String,
    /// The commands; `{pip}` stands for what pip is to install. Java reads no environment variable
    /// for its proxy.
    run: Vec<String>,
    output: String,
    net: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

fn table() -> Vec<Recipe> {
    json::parse_as(include_str!("recipes.json").as_bytes()).unwrap_or_default()
}

/// The names of all files that decide about recipes; a project's [`ProjectFiles`] are those of them
/// that it has.
pub fn file_names() -> BTreeSet<String> {
    let rows = table().into_iter();
    let of_rows = rows.flat_map(|it| it.files.into_iter().chain(it.also).chain(it.without));
    of_rows.chain(python::file_names()).collect()
}

/// The steps that prepare the dependencies of a project of `ecosystem` with these files; none if it
/// has no dependencies, or keeps them itself.
pub fn recipes(ecosystem: Ecosystem, files: &ProjectFiles) -> Vec<PrepareRow> {
    let rows = table().into_iter();
    let mut rows = rows.filter(|recipe| recipe.ecosystem == ecosystem);
    rows.find_map(|recipe| recipe.row(files))
        .into_iter()
        .collect()
}

/// The places that packages of a language come from.
pub(super) fn places(family: Family) -> BTreeSet<String> {
    let rows = table()
        .into_iter()
        .filter(|row| row.ecosystem.family() == family);
    rows.flat_map(|row| row.net)
        .map(|host| format!("{host}:443"))
        .collect()
}

/// The steps of all ecosystems of a project, where `is_there` finds the programs; one for each
/// language, by the order of the table.
pub fn all(files: &ProjectFiles, is_there: &dyn Fn(&str) -> bool) -> Vec<PrepareRow> {
    let mut found: Vec<PrepareRow> = Vec::new();
    for row in table().iter().filter_map(|recipe| recipe.row(files)) {
        let is_new = |row: &PrepareRow| {
            let family = row.ecosystem.family();
            let same = |other: &PrepareRow| other.ecosystem.family() == family;
            !found.iter().any(same)
        };
        if is_there(&row.program) && is_new(&row) {
            found.push(row);
        }
    }
    found
}

/// The runner of Python tests that no interpreter brings.
const PYTEST: &str = "pytest";

/// The steps `rows` of a project with these files, with pytest where the commands of `accept` need
/// it and the project names it in nothing that is installed: many name it for tox only.
pub fn with_runner(
    mut rows: Vec<PrepareRow>,
    files: &ProjectFiles,
    accept: &[String],
) -> Vec<PrepareRow> {
    let is_needed = |line: &String| line.split(' ').any(|word| word == PYTEST);
    if accept.iter().any(is_needed) && !python::names_pytest(files) {
        let pip = rows
            .iter_mut()
            .filter(|row| row.ecosystem == Ecosystem::Pip);
        for line in pip.filter_map(|row| row.run.last_mut()) {
            *line += &format!(" {PYTEST}");
        }
    }
    rows
}

impl Recipe {
    /// The step for a project with these files, if this is its recipe.
    fn row(&self, files: &ProjectFiles) -> Option<PrepareRow> {
        let there = |name: &&String| files.contains_key(*name);
        if !self.files.iter().all(|name| there(&name)) || self.without.iter().any(|it| there(&it)) {
            return None;
        }
        if let Some(text) = self.files.last().and_then(|name| files.get(name))
            && (text.trim().is_empty() || !text.contains(&self.holds))
        {
            return None;
        }
        let mut inputs = self.files.clone();
        inputs.extend(self.also.iter().filter(there).cloned());
        let mut run = self.run.clone();
        if run.iter().any(|line| line.contains("{pip}")) {
            let wanted = python::wanted(files)?;
            inputs.extend(wanted.inputs);
            for line in &mut run {
                *line = line.replace("{pip}", &wanted.arguments);
            }
        }
        Some(PrepareRow {
            ecosystem: self.ecosystem,
            program: self.program.clone(),
            run,
            inputs,
            outputs: vec![self.output.clone()],
            net: self.net.iter().map(|host| format!("{host}:443")).collect(),
            env: self.env.clone(),
        })
    }
}

impl PrepareRow {
    /// Whether it makes a virtual environment, which may contain `pytest`.
    pub fn is_venv(&self) -> bool {
        self.outputs.iter().any(|output| output == ".venv")
    }

    /// The step, as in the policy.
    pub fn toml(&self) -> String {
        let run = match self.run.as_slice() {
            [one] => format!("{one:?}"),
            several => format!("{several:?}"),
        };
        let (inputs, outputs, net) = (&self.inputs, &self.outputs, &self.net);
        let mut text = format!(
            "[[prepare]]\nrun = {run}\ninputs = {inputs:?}\noutputs = {outputs:?}\nnet = {net:?}\n"
        );
        if !self.env.is_empty() {
            let pair = |(name, value): (&String, &String)| format!("{name} = {value:?}");
            let pairs: Vec<String> = self.env.iter().map(pair).collect();
            text += &format!("env = {{ {} }}\n", pairs.join(", "));
        }
        text
    }

    /// What is run, what it makes, and which places it may reach; for people.
    pub fn words(&self) -> String {
        let hosts = self.net.iter().map(|place| place.trim_end_matches(":443"));
        format!(
            "{} makes {}, and may reach {}",
            self.run.join(" and "),
            self.outputs.join(", "),
            hosts.collect::<Vec<_>>().join(", ")
        )
    }
}

#[cfg(test)]
mod tests;
