//! The text of the first `provost.toml`: what was recognised, and why.

use super::{KindOfProject, Project};

/// How many paths a comment names.
const NAMED: usize = 4;

/// The agent that the first policy names, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstAgent {
    /// The name; `None` if there is none to name.
    pub name: Option<String>,
    /// The reason, as a sentence.
    pub why: String,
}

/// The policy of a new repository. Beside `[run]` and `steps`, which prepare the dependencies,
/// everything in it is a default.
pub fn policy(project: &Project, agent: &FirstAgent, steps: &str) -> String {
    let run = run(project, agent);
    let example = project.accept.first();
    let example = example.map_or("sh check.sh", String::as_str);
    let policy = format!("{HEAD}\n{run}\n{MIDDLE}\n# allow = [{example:?}]\nallow = []\n{TAIL}");
    if steps.is_empty() {
        return policy;
    }
    format!("{policy}\n{STEPS}\n{steps}")
}

/// `[run]`, with the reasons as comments.
pub fn run(project: &Project, agent: &FirstAgent) -> String {
    let mut text = RUN.to_owned();
    for kind in &project.kinds {
        text += &comment(&format!("Found: {}.", kind.words()));
    }
    for kind in &project.passed_over {
        text += &comment(&format!("Not taken, too little of it: {}.", kind.words()));
    }
    text += "#\n";
    text += &allow(project);
    text += &accept(project);
    text += &comment(&agent.why);
    text += &match &agent.name {
        Some(name) => format!("agent = {name:?}\n"),
        None => "# agent = \"claude\"\n".to_owned(),
    };
    text + RUN_TAIL
}

fn allow(project: &Project) -> String {
    let sources = &project.sources;
    if sources.allow.is_empty() {
        let why =
            "Where an agent may write. No source files were found; name files or directories.";
        return format!("{}# allow = [\"src\"]\n", comment(why));
    }
    let mut why = "Where an agent may write: what holds the source files.".to_owned();
    if !sources.left_out.is_empty() {
        let more = sources.left_out.len().saturating_sub(NAMED);
        let mut left = sources
            .left_out
            .iter()
            .take(NAMED)
            .cloned()
            .collect::<Vec<_>>();
        left.extend((more > 0).then(|| format!("{more} more")));
        let left = left.join(", ");
        why += &format!(" Tests ({left}) are left out, so that an agent cannot weaken them.");
    }
    if sources.tests_inside {
        why += " Some tests are among the sources and can be changed; fewer tests than before are \
                refused in any case.";
    }
    format!("{}allow = {}\n", comment(&why), list(&sources.allow))
}

fn accept(project: &Project) -> String {
    let lacks = project.kinds.iter().filter_map(|kind| {
        let KindOfProject { kind, lack, .. } = kind;
        lack.as_ref().map(|lack| format!(" {kind}: {lack}."))
    });
    let lacks: String = lacks.collect();
    if project.accept.is_empty() {
        let why = format!("What must pass on the result; no test command was found.{lacks}");
        return format!("{}# accept = [\"sh check.sh\"]\n", comment(&why));
    }
    let why = format!("What must pass on the result, in a sandbox without network.{lacks}");
    format!("{}accept = {}\n", comment(&why), list(&project.accept))
}

fn list(entries: &[String]) -> String {
    match entries {
        [one] => format!("[{one:?}]"),
        several => {
            let lines: Vec<String> = several.iter().map(|it| format!("    {it:?},\n")).collect();
            format!("[\n{}]", lines.concat())
        }
    }
}

/// `text` as comment lines of readable length.
fn comment(text: &str) -> String {
    let mut lines = String::new();
    let mut line = "#".to_owned();
    for word in text.split_whitespace() {
        if line.len() > 1 && line.chars().count() + 1 + word.chars().count() > 88 {
            lines += &format!("{line}\n");
            "#".clone_into(&mut line);
        }
        line += &format!(" {word}");
    }
    format!("{lines}{line}\n")
}

const STEPS: &str = "\
# What the project depends on is made once, in a sandbox that reaches these places only,
# and read by agents and acceptance commands; see `provost explain prepare`.";

const HEAD: &str = "\
# The policy of Provost for this repository.
#
# A run reads it from the commit it starts from, never from a working directory,
# so commit it. An agent can never change it.
";

const RUN: &str = "\
[run]
# What `provost run 'Fix …'` takes where you give no flag; a flag replaces its line.
#
";

const RUN_TAIL: &str = "\
# Who reviews the result before it is tested, how many more attempts may fix what was
# refused, and how long an agent and each command may take.
# review = \"codex\"
# retries = 1
# timeout = \"20m\"
";

const MIDDLE: &str = r#"[protect]
# Files that decide what "passing" means, beside build files, test settings, lock
# files and CI: an agent changes them only by permission of its contract.
# oracle = ["tests/golden"]
oracle = []
# Files that instruct agents, beside AGENTS.md, CLAUDE.md and the like.
# governing = ["docs/agents"]
governing = []

[commands]
# Acceptance commands that contracts in files may use, beside the usual ones.
# An entry stands for every command that begins with its words."#;

const TAIL: &str = r#"
# An agent by name, for `provost run --agent NAME`.
# It works in a sandbox without network and without your home, gets its contract as
# JSON on stdin and at $PROVOST_CONTRACT, and may leave a result at $PROVOST_RESULT.
# [agents.default]
# command = "my-agent --non-interactive"

# Who looks at every result before it is tested; see `provost explain review`.
# [review]
# agent = "claude"
"#;
