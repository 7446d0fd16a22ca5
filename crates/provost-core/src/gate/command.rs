//! Judges an acceptance command.
//!
//! A command is a list of words, never a program for a shell. It may run if a rule of the policy
//! names it, it contains no inline code, stays inside the repository and does not use the network.
//! All problems of a command are listed.
//!
//! A command that a person typed need not be on the list: that person approves exactly these words.
//! All other rules apply to it as well.

mod interpreter;
mod policy;
mod words;

use serde::Serialize;
use serde_json::{Value, json};

pub use policy::{CommandPolicy, PolicyError};
pub use words::{Flaw, LONGEST, MOST, line, quote, split};

use crate::code::Code;
use crate::verdict::Verdict;
use interpreter::Reading;
use policy::Rule;
use words::Typed;

/// Where a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// From a contract, a policy file or an agent.
    FromFile,
    /// From the command line of a person.
    TypedByPerson,
}

/// Why a command is refused, in the words of `details.reasons`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reason {
    Empty,
    Unparsable,
    Metacharacter,
    NotInAllowlist,
    ForbiddenAction,
    InlineCode,
    PathEscape,
    Network,
}

/// One problem of a command.
struct Problem {
    reason: Reason,
    /// The word it is about, or the whole command.
    about: String,
    what: String,
}

impl Problem {
    fn sentence(&self) -> String {
        let (about, what) = (self.about.escape_debug(), &self.what);
        match self.reason {
            Reason::InlineCode => format!("`{about}` {what}"),
            _ => format!("`{about}`: {what}"),
        }
    }
}

/// Judges `text`, with the network denied.
pub fn judge(text: &str, policy: &CommandPolicy, trust: Trust) -> Verdict {
    let scan = words::scan(text);
    let problems = problems(&scan, policy, trust);
    let Some(first) = problems.first() else {
        let argv: Vec<String> = scan.commands.into_iter().flatten().collect();
        return Verdict::allow(format!("`{}` may run", Typed(&argv)))
            .with(json!({ "argv": argv, "reasons": [] }));
    };
    let first = first.sentence();
    let reason = match problems.len() {
        1 => first,
        count => format!("{count} things are wrong with the command; {first}"),
    };
    let rows: Vec<_> = problems.iter().map(row).collect();
    Verdict::deny(Code::CommandRefused, reason).with(json!({
        "reasons": sorted(&problems),
        "findings": rows,
    }))
}

fn row(problem: &Problem) -> Value {
    json!({ "path": problem.about, "reason": problem.reason, "problem": problem.what })
}

/// The reasons alone, sorted, without duplicates.
fn reasons(text: &str, policy: &CommandPolicy, trust: Trust) -> Vec<Reason> {
    sorted(&problems(&words::scan(text), policy, trust))
}

fn sorted(problems: &[Problem]) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = problems.iter().map(|problem| problem.reason).collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons
}

fn problems(scan: &words::Scan, policy: &CommandPolicy, trust: Trust) -> Vec<Problem> {
    let mut problems = Vec::new();
    for flaw in &scan.flaws {
        let reason = if flaw.is_unparsable() {
            Reason::Unparsable
        } else {
            Reason::Metacharacter
        };
        problems.push(Problem {
            reason,
            about: scan
                .commands
                .iter()
                .flatten()
                .next()
                .cloned()
                .unwrap_or_default(),
            what: flaw.to_string(),
        });
    }
    let program = |argv: &Vec<String>| argv.first().is_some_and(|word| !word.is_empty());
    let empty = !scan.commands.iter().any(program);
    if empty && scan.flaws.is_empty() {
        problems.push(Problem {
            reason: Reason::Empty,
            about: String::new(),
            what: "there is no command".to_owned(),
        });
        return problems;
    }
    for argv in &scan.commands {
        problems.extend(judge_forbidden(argv, policy));
        problems.extend(judge_places(argv));
        if trust == Trust::FromFile {
            problems.extend(judge_listed(argv, policy));
        }
    }
    problems
}

/// The name of a program without its directory.
fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The name of a program without its directory and version suffix.
pub(super) fn name_of(program: &str) -> &str {
    base_name(program).trim_end_matches(|digit: char| digit.is_ascii_digit() || digit == '.')
}

fn matches_prefix(argv: &[String], prefix: &[String]) -> bool {
    argv.len() >= prefix.len()
        && prefix
            .iter()
            .zip(argv)
            .all(|(want, word)| matches_word(word, want))
}

fn matches_word(word: &str, want: &str) -> bool {
    match want.strip_suffix('*') {
        Some(beginning) => word.starts_with(beginning),
        None => word == want,
    }
}

/// Forbidden programs and inline code, also behind programs that only start another one.
fn judge_forbidden(argv: &[String], policy: &CommandPolicy) -> Vec<Problem> {
    let Some(program) = argv.first() else {
        return Vec::new();
    };
    let mut problems = judge_program(argv, policy);
    let wraps = policy
        .wrappers
        .iter()
        .any(|name| name == base_name(program));
    if wraps {
        for start in 1..argv.len() {
            problems.extend(judge_program(&argv[start..], policy));
        }
    }
    problems
}

fn judge_program(argv: &[String], policy: &CommandPolicy) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut named = argv.to_vec();
    if let Some(program) = named.first_mut() {
        *program = base_name(program).to_owned();
    }
    for rule in &policy.forbidden {
        let Some(prefix) = rule
            .prefixes
            .iter()
            .find(|prefix| matches_prefix(&named, prefix))
        else {
            continue;
        };
        let about = prefix.join(" ");
        if rule.network {
            problems.push(Problem {
                reason: Reason::Network,
                about: about.clone(),
                what: "the network is denied".to_owned(),
            });
        }
        problems.push(Problem {
            reason: Reason::ForbiddenAction,
            about,
            what: format!("{}, which no check may do", rule.why),
        });
    }
    let program = named.first().map_or("", String::as_str);
    for reader in policy
        .interpreters
        .iter()
        .filter(|reader| reader.is(&named))
    {
        if let Reading::Inline(word) = reader.read(argv) {
            problems.push(Problem {
                reason: Reason::InlineCode,
                about: format!("{program} {word}"),
                what: "is not allowed in --accept; commit a script and call it".to_owned(),
            });
        }
    }
    problems
}

/// Words that refer to places outside the repository or on the network.
fn judge_places(argv: &[String]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for word in argv {
        if escapes(word) {
            problems.push(Problem {
                reason: Reason::PathEscape,
                about: word.clone(),
                what: "leads out of the repository; name a path relative to its root".to_owned(),
            });
        }
        if word.contains("://") {
            problems.push(Problem {
                reason: Reason::Network,
                about: word.clone(),
                what: "is an address, and the network is denied".to_owned(),
            });
        }
    }
    problems
}

/// Whether a word, or a value inside it, is an absolute path or contains `..`.
fn escapes(word: &str) -> bool {
    let attached = match word.strip_prefix('-') {
        // `-cVALUE` as well as `-c VALUE`.
        Some(option) if !option.starts_with('-') => option.get(1..).unwrap_or_default(),
        _ => "",
    };
    let leads_out = |value: &str| {
        let absolute = value.starts_with('/') && value != "/dev/null";
        let home = value == "~" || value.starts_with("~/");
        absolute || home || value.split(['/', '\\']).any(|part| part == "..")
    };
    [word, attached].into_iter().any(|text| {
        let address = text.contains("://");
        text.split(['=', ':', ','])
            .any(|value| !(address && value.starts_with("//")) && leads_out(value))
    })
}

fn judge_listed(argv: &[String], policy: &CommandPolicy) -> Option<Problem> {
    let program = argv.first()?;
    let mut nearest: Option<Problem> = None;
    for rule in &policy.allow {
        if rule
            .prefixes
            .iter()
            .any(|prefix| matches_prefix(argv, prefix))
        {
            match judge_rule(argv, rule) {
                None => return None,
                some => nearest = some,
            }
        }
    }
    let readers = policy.interpreters.iter();
    for reader in readers.filter(|reader| reader.may_run() && reader.is(argv)) {
        match reader.judge(argv) {
            None => return None,
            some => nearest = nearest.or(some),
        }
    }
    nearest.or_else(|| {
        Some(Problem {
            reason: Reason::NotInAllowlist,
            about: program.clone(),
            what: format!(
                "`{}` is not on the list of commands; use one that is, such as `pytest` or \
                 `npm test`, or add it to the repository's policy",
                Typed(&argv[..argv.len().min(3)])
            ),
        })
    })
}

fn judge_rule(argv: &[String], rule: &Rule) -> Option<Problem> {
    let problem = |about: &str, what: String| Problem {
        reason: Reason::NotInAllowlist,
        about: about.to_owned(),
        what,
    };
    if let Some(needed) = &rule.needs
        && !argv.contains(needed)
    {
        return Some(problem(
            &argv[0],
            format!("is on the list of commands only with `{needed}`"),
        ));
    }
    let options = argv.iter().skip(1).take_while(|word| *word != "--");
    for word in options {
        if rule.refuse.iter().any(|refused| is_option(word, refused)) {
            return Some(problem(
                word,
                format!(
                    "is not allowed for `{}`: it runs or writes something else",
                    argv[0]
                ),
            ));
        }
    }
    None
}

/// Whether `word` is the option `refused`, with a value or abbreviated.
pub(super) fn is_option(word: &str, refused: &str) -> bool {
    if let Some(beginning) = refused.strip_suffix('*') {
        return word.starts_with(beginning);
    }
    let name = word.split('=').next().unwrap_or(word);
    let bare = |text: &str| text.trim_start_matches('-').to_owned();
    let long = name.starts_with("--") && refused.starts_with("--");
    name == refused
        || (name.starts_with('-') && bare(name) == bare(refused))
        || (long && name.len() > 3 && refused.starts_with(name))
}

#[cfg(test)]
mod tests;
