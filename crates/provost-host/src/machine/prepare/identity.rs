//! Identifies the toolchain of this machine, so that another machine or an upgrade gets new layers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use provost_core::object::sha256;
use provost_core::prepare::Step;

use super::profile::user_toolchain;

/// Programs that the output of any step may depend on, even if it does not call them itself.
const RUNTIMES: &[&str] = &["cc", "go", "java", "node", "python3", "rustc"];

/// Programs that install dependencies, and the runtimes that their output depends on.
const INSTALLERS: &[(&[&str], &[&str])] = &[
    (&["cargo", "rustup"], &["cc", "rustc"]),
    (&["go"], &["cc", "go"]),
    (&["gradle", "mvn"], &["java"]),
    (&["bun", "npm", "pnpm", "yarn"], &["cc", "node", "python3"]),
    (
        &[
            "hatch", "pip", "pip3", "pipenv", "poetry", "python", "python3", "uv",
        ],
        &["cc", "python3"],
    ),
];

/// Files by which version managers choose a runtime, below the directory in the variable.
const CHOICES: [(&str, &str, &str); 2] = [
    ("python3", "PYENV_ROOT", "version"),
    ("rustc", "RUSTUP_HOME", "settings.toml"),
];

/// A digest of the part of this machine's toolchain that `step` can use.
pub(super) fn of(step: &Step) -> String {
    of_commands(&step.run)
}

/// A digest of the part of this machine's toolchain that `commands` can use.
pub(in crate::machine) fn of_commands(commands: &[Vec<String>]) -> String {
    sha256(describe(commands, &user_toolchain().env).as_bytes())
}

/// Whether `program` is in the toolchain of this machine.
pub(in crate::machine) fn is_installed(program: &str) -> bool {
    let env = user_toolchain().env;
    !look(env.get("PATH").map_or("", String::as_str), program).is_empty()
}

fn describe(commands: &[Vec<String>], env: &BTreeMap<String, String>) -> String {
    let path = env.get("PATH").map_or("", String::as_str);
    let mut text = format!("{}\n", std::env::consts::ARCH);
    let mut programs = BTreeSet::new();
    let mut any = false;
    for program in commands.iter().filter_map(|argv| argv.first()) {
        // The step has made the virtual environment itself, by a command before.
        let name = program.strip_prefix(".venv/bin/").unwrap_or(program);
        let known = INSTALLERS.iter().find(|(names, _)| names.contains(&name));
        // A script may call anything.
        any |= known.is_none();
        programs.extend(known.map_or(RUNTIMES, |(_, runtimes)| runtimes));
        programs.insert(program.as_str());
    }
    if any {
        text += &format!("{path}\n");
    }
    for program in programs.iter().filter(|program| !program.contains('/')) {
        text += &format!("{program} {}\n", look(path, program));
    }
    let chosen = CHOICES.iter().filter(|(it, ..)| programs.contains(it));
    for (_, variable, file) in chosen {
        if let Some(root) = env.get(*variable) {
            let choice = fs::read(Path::new(root).join(file)).unwrap_or_default();
            text += &format!("{variable} {}\n", sha256(&choice));
        }
    }
    text
}

/// The file of `program` in `path`, with its time.
fn look(path: &str, program: &str) -> String {
    let mut places = path
        .split(':')
        .map(|directory| Path::new(directory).join(program));
    let found = places.find_map(|place| {
        let place = place.canonicalize().ok()?;
        let facts = place.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((place, facts))
    });
    found.map_or_else(String::new, |(place, facts)| {
        format!("{} {} {}", place.display(), facts.len(), facts.mtime())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_counts_for_the_steps_that_can_use_it() {
        let scratch = tempfile::tempdir().unwrap();
        let homes = ["one", "two"].map(|name| scratch.path().join(name));
        for home in &homes {
            fs::create_dir_all(home.join("bin")).unwrap();
            let name = home.display().to_string();
            for file in ["settings.toml", "version"] {
                fs::write(home.join(file), &name).unwrap();
            }
        }
        let env = |variable: &str, home: &Path| {
            let path = format!("{}/bin:/usr/bin:/bin", home.display());
            let home = home.display().to_string();
            let rows = [("PATH", path), (variable, home)];
            BTreeMap::from(rows.map(|(name, value)| (name.to_owned(), value)))
        };
        let cases = [
            ("pip install -r requirements.txt", "RUSTUP_HOME", false),
            ("pip install -r requirements.txt", "PYENV_ROOT", true),
            (".venv/bin/pip install six", "RUSTUP_HOME", false),
            (".venv/bin/pip install six", "PYENV_ROOT", true),
            ("npm ci", "RUSTUP_HOME", false),
            ("cargo fetch", "RUSTUP_HOME", true),
            ("cargo fetch", "PYENV_ROOT", false),
            ("mvn dependency:go-offline", "PYENV_ROOT", false),
            ("sh deps.sh", "RUSTUP_HOME", true),
            ("sh deps.sh", "PYENV_ROOT", true),
        ];
        for (line, variable, want) in cases {
            let step = Step {
                name: "deps".to_owned(),
                run: vec![line.split(' ').map(str::to_owned).collect()],
                inputs: Vec::new(),
                outputs: Vec::new(),
                net: Vec::new(),
                env: BTreeMap::new(),
                mount: None,
            };
            let [one, two] =
                [0, 1].map(|at: usize| describe(&step.run, &env(variable, &homes[at])));
            assert_eq!(one != two, want, "{line} with {variable}");
        }
    }
}
