//! Identifies the toolchain of this machine, so that another machine or an upgrade gets new layers.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use provost_core::object::sha256;
use provost_core::prepare::Step;

use super::profile::user_toolchain;

/// Programs that the output of a step may depend on, even if it does not call them itself.
const RUNTIMES: [&str; 6] = ["cc", "go", "java", "node", "python3", "rustc"];
/// Files by which version managers choose a program, below the directory in the variable.
const CHOICES: [(&str, &str); 2] = [("PYENV_ROOT", "version"), ("RUSTUP_HOME", "settings.toml")];

/// A digest of the toolchain that `step` finds in PATH.
pub(super) fn of(step: &Step) -> String {
    let toolchain = user_toolchain();
    let path = toolchain.env.get("PATH").map_or("", String::as_str);
    let programs = step
        .run
        .iter()
        .filter_map(|argv| argv.first().map(String::as_str));
    let programs: BTreeSet<&str> = programs.chain(RUNTIMES).collect();
    let mut text = format!("{} {path}\n", std::env::consts::ARCH);
    for program in programs
        .into_iter()
        .filter(|program| !program.contains('/'))
    {
        text += &format!("{program} {}\n", look(path, program));
    }
    for (variable, file) in CHOICES {
        if let Some(root) = toolchain.env.get(variable) {
            let choice = fs::read(Path::new(root).join(file)).unwrap_or_default();
            text += &format!("{variable} {}\n", sha256(&choice));
        }
    }
    sha256(text.as_bytes())
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
