//! Recognises what a repository is, how it is tested, and where its sources are, by weight of
//! evidence; and writes the first policy from that.

pub mod dependencies;
mod kinds;
mod listing;
pub mod policy_text;
mod source_paths;
mod test_commands;

#[cfg(test)]
mod tests;

use std::path::Path;

use serde::Serialize;

use listing::Listing;
pub use source_paths::SourcePaths;

/// A repository as a project.
#[derive(Debug, Clone, Serialize)]
pub struct Project {
    /// The kinds it is of, that with the most evidence first.
    pub kinds: Vec<KindOfProject>,
    /// Kinds for which there is something, and too little.
    pub passed_over: Vec<KindOfProject>,
    /// The commands that test it.
    pub accept: Vec<String>,
    #[serde(flatten)]
    pub sources: SourcePaths,
}

/// A kind with its evidence.
#[derive(Debug, Clone, Serialize)]
pub struct KindOfProject {
    /// The kind, in one word.
    pub kind: &'static str,
    /// The file by which it was recognised.
    pub file: String,
    pub weight: u32,
    /// What was found, in words.
    pub evidence: Vec<String>,
    /// Why no command is known that tests it, or why that may not work here.
    pub lack: Option<String>,
}

/// Recognises the project in `root`, where `is_there` finds programs.
pub fn recognise(root: &Path, is_there: &dyn Fn(&str) -> bool) -> Project {
    let listing = Listing::of(root);
    let (taken, left) = kinds::weigh(&listing);
    let described = |weighed: &kinds::Weighed, lack| KindOfProject {
        kind: weighed.name,
        file: weighed.file.clone(),
        weight: weighed.weight,
        evidence: weighed.evidence.clone(),
        lack,
    };
    let mut project = Project {
        kinds: Vec::new(),
        passed_over: left.iter().map(|it| described(it, None)).collect(),
        accept: Vec::new(),
        sources: SourcePaths::default(),
    };
    for weighed in &taken {
        let commands = test_commands::of(&listing, weighed, is_there);
        project.accept.extend(commands.accept);
        project.kinds.push(described(weighed, commands.lack));
    }
    if !taken.is_empty() {
        let languages: Vec<_> = taken.iter().map(|it| it.language).collect();
        project.sources = source_paths::of(&listing, &languages);
    }
    project
}

/// An unused name in `root` for the file of a first agent.
pub fn free_name(root: &Path) -> String {
    let free = |name: &String| root.join(name).symlink_metadata().is_err();
    let numbered = (2..100).map(|number| format!("HELLO-{number}.md"));
    std::iter::once("HELLO.md".to_owned())
        .chain(numbered)
        .find(free)
        .unwrap_or_else(|| "HELLO.md".to_owned())
}

impl KindOfProject {
    /// The kind and its evidence, for people.
    pub fn words(&self) -> String {
        format!("{} ({})", self.kind, self.evidence.join(", "))
    }
}

impl Project {
    /// What it is, in one line each.
    pub fn words(&self) -> Vec<String> {
        if self.kinds.is_empty() {
            return vec!["of no kind that is known; name its test with --accept".to_owned()];
        }
        let line = |kind: &KindOfProject| match &kind.lack {
            Some(lack) => format!("{}; {lack}", kind.words()),
            None => kind.words(),
        };
        self.kinds.iter().map(line).collect()
    }
}
