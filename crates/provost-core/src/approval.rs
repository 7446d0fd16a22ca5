//! Decides which parts of a contract need the approval of a person, and what an approval covers.
//!
//! # Invariants
//!
//! - A user who types a contract approves it by typing. Only a contract from a file is asked about,
//!   and only where it exceeds what the policy of its base permits without a question.
//! - A question is about one run: its contract, base, agent, reviewer, target and every widening
//!   have one digest. An answer names that digest and is valid for no other question.
//! - A field that cannot be parsed is a widening, too.

pub mod release;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::agent_registry;
use crate::contract::document::{AcceptMode, AcceptanceTest, Document, Permissions};
use crate::gate::command;
use crate::gate::proof::{self, Proof};
use crate::json;
use crate::net::endpoint::Endpoint;
use crate::object::{Oid, sha256};
use crate::path::RepoPath;
use crate::person_key::{AnswerStatement, PersonSignature};
use crate::question::AnswerMeans;
use crate::scope::{self, Scope};
use crate::tier::Tier;
use crate::time;
use crate::wording::clipped;

/// Directories that are broad by their name alone.
const BROAD: [&str; 2] = ["src", "docs"];

/// Where a contract asks for access to everything of the user.
pub const FULL_ACCESS: &str = "/x_provost/full_access";

/// The longest time that access to everything of the user is granted for, in seconds.
pub const LONGEST_FULL_ACCESS_SEC: u64 = 3600;

/// The longest time that an answer is valid, in seconds.
pub const LONGEST_SEC: u64 = 7 * 24 * 3600;

/// What contracts from files may ask for without a question to a person: `[approve]` of the policy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unasked {
    /// Broad paths, with everything below them.
    pub paths: Scope,
    /// Files that decide what passing means.
    pub oracle: Scope,
    /// Files that instruct agents.
    pub governing: Scope,
    /// Network endpoints.
    pub net: Vec<Endpoint>,
    /// Agents whose contracts are treated like those of a person.
    pub authors: Vec<String>,
    /// The weakest tier.
    pub tier: Tier,
    /// Whether commands may run fewer tests than before.
    pub fewer_tests: bool,
    /// Whether commands may test nothing.
    pub idle_commands: bool,
    /// Agents of the repository's own registry; as authors they count as agents.
    pub agents: Vec<String>,
}

/// One point in which a contract exceeds what the policy permits without a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Widening {
    pub kind: Kind,
    /// Its place in the contract, as a JSON pointer.
    pub path: String,
    /// What it permits, as text.
    pub problem: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An agent wrote the contract.
    Author,
    /// A broad path.
    Path,
    /// Files that decide what passing means may change.
    Oracle,
    /// Files that instruct agents may change.
    Governing,
    /// Fewer tests may run than before.
    FewerTests,
    /// A command that has to pass tests nothing.
    IdleCommand,
    /// A network endpoint.
    Network,
    /// A weaker sandbox.
    Tier,
    /// Tests that fail on the base may fail.
    AcceptMode,
    /// Work that was refused is judged by fewer or other commands.
    Commands,
    /// Work that was refused is judged by another reviewer.
    Reviewer,
    /// The agent may start children, and an agent wrote that.
    Children,
    /// The agent may write the user's files and reach any place.
    FullAccess,
}

/// Whether a directory at the top holds more than half of the files of the repository.
pub type HoldsMost<'a> = &'a dyn Fn(&RepoPath) -> bool;

/// The points in which `document`, read from a file, exceeds what the policy permits unasked.
///
/// `named` are network endpoints that the user named on the command line.
pub fn widenings(
    document: &Document,
    unasked: &Unasked,
    named: &[Endpoint],
    holds_most: HoldsMost<'_>,
) -> Vec<Widening> {
    let mut found = Found(full_access(document));
    let extension = document.x_provost.clone().unwrap_or_default();
    let is_agent =
        |author: &str| is_agent(author) || unasked.agents.iter().any(|agent| agent == author);
    let by_agent = extension.author.as_deref().is_some_and(is_agent);
    if let Some(grant) = extension.children.as_ref().filter(|_| by_agent) {
        let words = grant.words(document.timeout_retry.timeout_sec);
        let words = format!("lets the agent start children: {words}");
        found.add(Kind::Children, "/x_provost/children", words);
    }
    if let Some(author) = extension.author.filter(|author| is_agent(author))
        && !unasked.authors.contains(&author)
    {
        let words = format!("`{}` is an agent, and wrote this contract", plain(&author));
        found.add(Kind::Author, "/x_provost/author", words);
    }
    for (at, entry) in document.allowed_paths.iter().enumerate() {
        let path = scope::parse_entry(entry);
        let asked = match &path {
            Ok(path) if unasked.paths.covers(path) => None,
            Ok(path) => broad(path, holds_most),
            Err(_) => Some("is no path of the repository"),
        };
        if let Some(words) = asked {
            found.entry(Kind::Path, "/allowed_paths", at, entry, words);
        }
    }
    if !unasked.idle_commands {
        idle_commands(document, &mut found);
    }
    permits(&extension.permit.unwrap_or_default(), unasked, &mut found);
    for (at, entry) in extension.net.iter().enumerate() {
        let place = Endpoint::parse(entry);
        if !place.is_ok_and(|place| unasked.net.contains(&place) || named.contains(&place)) {
            let words = "is a place of the network: the agent may read from it and send to it";
            found.entry(Kind::Network, "/x_provost/net", at, entry, words);
        }
    }
    if let Some(tier) = &extension.tier
        && tier.parse().is_ok_and(|tier: Tier| tier < unasked.tier)
    {
        let words = format!(
            "`{}` is a sandbox that does not stop all that one of tier `{}` stops",
            plain(tier),
            unasked.tier
        );
        found.add(Kind::Tier, "/x_provost/tier", words);
    }
    if extension.accept_mode.unwrap_or_default() != AcceptMode::default() {
        found.accept_mode();
    }
    found.0
}

/// The access to everything of the user that `document` asks for; it is asked about even if the user
/// typed it, and no policy permits it.
pub fn full_access(document: &Document) -> Vec<Widening> {
    let extension = document.x_provost.as_ref();
    let why = extension.and_then(|extension| extension.full_access.as_deref());
    let mut found = Found(Vec::new());
    if let Some(why) = why {
        let words = format!(
            "DANGER: the agent may write all your files and reach any place (`{}`)",
            plain(why)
        );
        found.add(Kind::FullAccess, FULL_ACCESS, words);
    }
    found.0
}

/// The points in which work that was refused under `before` is judged less strictly under `after`.
///
/// The reviewers are given by their commands. These points are asked about even if the user typed
/// them: they replace the judge whose answer was no.
pub fn laxer(
    (before, reviewer): (&Document, Option<&[String]>),
    (after, other): (&Document, Option<&[String]>),
) -> Vec<Widening> {
    let mut found = Found(Vec::new());
    let mode = |document: &Document| {
        let extension = document.x_provost.as_ref();
        extension.and_then(|it| it.accept_mode).unwrap_or_default()
    };
    if mode(after) != mode(before) && mode(after) != AcceptMode::default() {
        found.accept_mode();
    }
    let fewer = |document: &Document| {
        let permit = document
            .x_provost
            .as_ref()
            .and_then(|it| it.permit.as_ref());
        permit.is_some_and(|permit| permit.fewer_tests)
    };
    if fewer(after) && !fewer(before) {
        found.fewer_tests();
    }
    let kept = |test: &&AcceptanceTest| {
        let same = |other: &AcceptanceTest| (&other.cmd, other.must_pass) == (&test.cmd, true);
        after.acceptance_tests.iter().any(same)
    };
    let must = before.acceptance_tests.iter().filter(|test| test.must_pass);
    for test in must.filter(|test| !kept(test)) {
        let words = format!("no longer has `{}`, which had to pass", plain(&test.cmd));
        found.add(Kind::Commands, "/acceptance_tests", words);
    }
    if let Some(reviewer) = reviewer.filter(|reviewer| other != Some(*reviewer)) {
        let words = match other {
            Some(other) => format!(
                "`{}` reviews the work instead of `{}`",
                plain(&command::line(other)),
                plain(&command::line(reviewer))
            ),
            None => format!("`{}` no longer reviews it", plain(&command::line(reviewer))),
        };
        found.add(Kind::Reviewer, "reviewer", words);
    }
    found.0
}

fn idle_commands(document: &Document, found: &mut Found) {
    for (at, test) in document.acceptance_tests.iter().enumerate() {
        let argv = command::split(&test.cmd).unwrap_or_default();
        if let Proof::Nothing(why) = proof::of(&argv)
            && test.must_pass
        {
            let words = format!("`{}` {why}", plain(&test.cmd));
            found.add(
                Kind::IdleCommand,
                format!("/acceptance_tests/{at}/cmd"),
                words,
            );
        }
    }
}

fn permits(permit: &Permissions, unasked: &Unasked, found: &mut Found) {
    let lists = [
        (
            Kind::Oracle,
            "/x_provost/permit/oracle",
            (&permit.oracle, &unasked.oracle),
            "decides what passing means, and may change",
        ),
        (
            Kind::Governing,
            "/x_provost/permit/governing",
            (&permit.governing, &unasked.governing),
            "instructs agents, and may change",
        ),
    ];
    for (kind, list, (entries, unasked), words) in lists {
        for (at, entry) in entries.iter().enumerate() {
            let path = scope::parse_entry(entry);
            if !path.is_ok_and(|path| unasked.covers(&path)) {
                found.entry(kind, list, at, entry, words);
            }
        }
    }
    if permit.fewer_tests && !unasked.fewer_tests {
        found.fewer_tests();
    }
}

struct Found(Vec<Widening>);

impl Found {
    fn fewer_tests(&mut self) {
        let words = "lets the work pass with fewer tests than before, or with none";
        self.add(Kind::FewerTests, "/x_provost/permit/fewer_tests", words);
    }

    fn accept_mode(&mut self) {
        let words = "`no-regression` lets tests fail that fail twice on the base";
        self.add(Kind::AcceptMode, "/x_provost/accept_mode", words);
    }

    fn add(&mut self, kind: Kind, path: impl Into<String>, problem: impl Into<String>) {
        self.0.push(Widening {
            kind,
            path: path.into(),
            problem: problem.into(),
        });
    }

    fn entry(&mut self, kind: Kind, list: &str, at: usize, entry: &str, words: &str) {
        self.add(
            kind,
            format!("{list}/{at}"),
            format!("`{}` {words}", plain(entry)),
        );
    }
}

/// How much of a text is quoted, in characters.
const LONGEST: usize = 500;

/// The text of the document on one line, so that it cannot imitate further lines of output.
fn plain(text: &str) -> String {
    clipped(text.escape_debug().to_string(), LONGEST)
}

/// Why a path is broad: by its name, or because it holds most files of the repository.
fn broad(path: &RepoPath, holds_most: HoldsMost<'_>) -> Option<&'static str> {
    if BROAD.contains(&path.as_str()) {
        return Some("is a broad directory: everything in it may change");
    }
    holds_most(path).then_some("holds most files of the repository: everything in it may change")
}

/// Whether the author that a contract names is an agent.
///
/// The contract itself says so: it can cause a question, and never prevent one.
pub fn is_agent(author: &str) -> bool {
    let author = author.to_ascii_lowercase();
    author == "agent" || author.starts_with("agent:") || agent_registry::names(&author)
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Question<'a> {
    pub run_id: &'a str,
    pub contract_sha256: &'a str,
    /// The commit it starts from.
    pub base_commit: &'a Oid,
    pub target: Option<&'a str>,
    /// The command of the agent.
    pub agent: &'a [String],
    pub review: Option<&'a [String]>,
    pub widenings: &'a [Widening],
}

impl Question<'_> {
    /// SHA-256 of the whole question, in canonical form.
    pub fn digest(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        sha256(json::canonical(&value).as_bytes())
    }
}

/// A person of this machine, as the system knows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The name of the account.
    pub user: String,
    pub uid: u32,
    pub host: String,
}

impl fmt::Display for Person {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}@{}", plain(&self.user), plain(&self.host))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The digest of the question.
    pub digest: String,
    pub by: Person,
    /// Until when the work may begin, as RFC 3339.
    pub until: String,
    #[serde(default, skip_serializing_if = "AnswerMeans::is_default")]
    pub how: AnswerMeans,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The signature of a person key, if it was given by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<PersonSignature>,
}

impl Approval {
    /// What a person signs.
    pub fn statement(&self) -> AnswerStatement<'_> {
        AnswerStatement {
            digest: &self.digest,
            allow: true,
            until: &self.until,
            reason: &self.reason,
        }
    }

    /// Whether it has expired at `now`, in milliseconds; a time that cannot be parsed is expired.
    pub fn is_over(&self, now: i64) -> bool {
        time::parse(&self.until).map_or(true, |until| until <= now)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// The digest of the question.
    pub digest: String,
    pub by: Person,
    pub reason: String,
    #[serde(default, skip_serializing_if = "AnswerMeans::is_default")]
    pub how: AnswerMeans,
}

#[cfg(test)]
mod tests;
