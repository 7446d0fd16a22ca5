//! Asks this user to agree to what a repository's policy, or an earlier run, would reach or read.
//!
//! A run in a sandbox without network and without secrets needs no agreement. The user names a
//! place that is reached and a variable that is read: in this very command, or once for each digest
//! of a part of `provost.toml`, kept outside the repository.

use std::io::{self, BufRead as _, IsTerminal as _};

use provost_core::agent::provider::Login;
use provost_core::agent::{Adapted, Adapter};
use provost_core::approval::Kind;
use provost_core::code::Code;
use provost_core::json;
use provost_core::net::credential::{Credential, LoginFile, SecretSource};
use provost_core::net::endpoint::Endpoint;
use provost_core::object::sha256;
use provost_core::policy::Policy;
use provost_core::prepare::Step;
use provost_core::run::fact::{Opened, Reviewer};
use provost_host::login;
use serde::Serialize;

use crate::answer::Failure;
use crate::places::Places;
use crate::show::{one_line, print_message};

/// A part of a policy that the user has to agree to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wanted {
    /// What it permits, in words that follow "provost.toml".
    pub what: String,
    /// The digest of exactly this part.
    pub digest: String,
}

/// The part itself, whose digest the user agrees to.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum PolicyPart<'a> {
    Agent(&'a Adapted),
    Prepare(&'a [Step]),
    ApproveNet(String),
    File(String),
}

impl Wanted {
    fn of(part: &PolicyPart<'_>, what: &str) -> Self {
        let part = serde_json::to_value(part).unwrap_or_default();
        Self {
            what: one_line(what),
            digest: sha256(json::canonical(&part).as_bytes()),
        }
    }
}

/// What the user typed in this very command.
#[derive(Debug, Clone, Copy, Default)]
pub struct Typed<'a> {
    /// The name of the agent.
    pub agent: Option<&'a str>,
    /// The name of the reviewer.
    pub review: Option<&'a str>,
    pub places: &'a [Endpoint],
    /// Secrets for places.
    pub credentials: &'a [Credential],
}

impl Typed<'_> {
    fn names(&self, place: &Endpoint) -> bool {
        let with_secret = self.credentials.iter().map(|it| &it.endpoint);
        self.places.iter().chain(with_secret).any(|it| it == place)
    }
}

/// What a policy lets an agent reach and read that the user did not type.
fn of_agent(adapted: &Adapted, named: Option<&str>, typed: &Typed<'_>) -> Option<Wanted> {
    let provider = adapted.provider.as_ref()?;
    let place = &provider.base_url.endpoint;
    let has_key = typed.credentials.iter().any(|it| it.endpoint == *place);
    if has_key || provider.login == Login::None && typed.names(place) {
        return None;
    }
    let bare = Adapted {
        tools: std::collections::BTreeMap::new(),
        shell: provost_core::contract::document::Shell::Never,
        // It reaches and reads nothing more.
        plane: provost_core::agent::Plane::Exec,
        ..adapted.clone()
    };
    // A built-in program name implies the place of its vendor.
    let known = named == Some(adapted.adapter.name());
    if known && adapted.adapter.plain_with(provider.login).as_ref() == Some(&bare) {
        return None;
    }
    let key = provider.credential(adapted.adapter);
    let key = key.filter(|_| provider.is_makers_own(adapted.adapter));
    let key = key.map_or(String::new(), |key| {
        format!(", with {}", key.source.describe())
    });
    let what = format!("lets the agent `{}` reach {place}{key}", adapted.adapter);
    Some(Wanted::of(&PolicyPart::Agent(&bare), &what))
}

/// What a policy lets preparation steps reach.
fn of_steps(steps: &[Step]) -> Option<Wanted> {
    let reaching = steps.iter().filter(|step| !step.net.is_empty());
    let words = reaching.map(|step| {
        let places: Vec<String> = step.net.iter().map(ToString::to_string).collect();
        format!("`{}` reach {}", step.name, places.join(", "))
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() {
        return None;
    }
    let what = format!("lets the step {}", words.join("; "));
    // What the user gave by name is no part of the policy.
    let steps: Vec<Step> = steps
        .iter()
        .filter(|it| it.mount.is_none())
        .cloned()
        .collect();
    Some(Wanted::of(&PolicyPart::Prepare(&steps), &what))
}

/// A place that a policy lets contracts from files reach without a question.
fn of_place(place: &Endpoint) -> Wanted {
    let what = format!("lets contracts reach {place} unasked");
    Wanted::of(&PolicyPart::ApproveNet(place.to_string()), &what)
}

/// Everything in `policy` that the user has to agree to.
fn of_policy(policy: &Policy) -> Vec<Wanted> {
    let agents = policy.agents.values().filter_map(|agent| match agent {
        provost_core::agent::Agent::Adapted(adapted) => {
            // A run records it so.
            of_agent(&login::resolved(adapted), None, &Typed::default())
        }
        provost_core::agent::Agent::Command(_) => None,
    });
    let mut all: Vec<Wanted> = agents.collect();
    // A name without an entry in [agents] is that of a known program.
    let run = [&policy.run.agent, &policy.run.review];
    let run = run.into_iter().flatten();
    for name in run.filter(|name| !policy.agents.contains_key(*name)) {
        let known = Adapter::programs().find(|adapter| adapter.name() == name);
        let adapted = known.and_then(Adapter::plain);
        let adapted = adapted.map(|adapted| login::resolved(&adapted));
        all.extend(adapted.and_then(|it| of_agent(&it, None, &Typed::default())));
    }
    all.extend(of_steps(&policy.prepare));
    all.extend(policy.approve.net.iter().map(of_place));
    all
}

/// Lets the run `opened` begin only if the user typed what it reaches and reads, or agreed to it.
pub fn to_run(place: &Places, opened: &Opened, typed: &Typed<'_>) -> Result<(), Failure> {
    let mut wanted = Vec::new();
    if let Some(adapted) = opened.adapted.as_ref().filter(|_| !opened.agent_typed) {
        wanted.extend(of_agent(adapted, typed.agent, typed));
    }
    wanted.extend(
        opened
            .review
            .as_ref()
            .and_then(|it| of_look(it, typed.review, typed)),
    );
    wanted.extend(of_rest(opened, typed));
    require(place, wanted)
}

/// The same for a retry of a run that the user began: its agents were agreed to.
pub fn to_retry(place: &Places, opened: &Opened) -> Result<(), Failure> {
    require(place, of_rest(opened, &Typed::default()))
}

/// The same for a planner.
pub fn to_plan(place: &Places, planner: &Reviewer, typed: &Typed<'_>) -> Result<(), Failure> {
    require(
        place,
        of_look(planner, typed.agent, typed).into_iter().collect(),
    )
}

/// The same for preparation steps.
pub fn to_prepare(place: &Places, steps: &[Step]) -> Result<(), Failure> {
    require(place, of_steps(steps).into_iter().collect())
}

fn of_look(reviewer: &Reviewer, named: Option<&str>, typed: &Typed<'_>) -> Option<Wanted> {
    let adapted = reviewer.adapted.as_ref().filter(|_| !reviewer.typed)?;
    of_agent(adapted, named, typed)
}

/// What the steps of a run reach, and what its contract reaches by the policy alone.
fn of_rest(opened: &Opened, typed: &Typed<'_>) -> Vec<Wanted> {
    let mut wanted: Vec<Wanted> = of_steps(&opened.prepare).into_iter().collect();
    let extra = opened.contract.x_provost.as_ref();
    let net = extra.map_or(&[][..], |extra| extra.net.as_slice());
    let asked = |at: usize| {
        let path = format!("/x_provost/net/{at}");
        let of_it =
            |it: &provost_core::approval::Widening| it.kind == Kind::Network && it.path == path;
        opened.widenings.iter().any(of_it)
    };
    // A user who types a contract names its places.
    let places = net.iter().enumerate().filter(|_| !opened.typed);
    for (at, entry) in places {
        match Endpoint::parse(entry) {
            Ok(place) if !typed.names(&place) && !asked(at) => wanted.push(of_place(&place)),
            // The gate refuses what is no place.
            _ => {}
        }
    }
    wanted
}

/// Asks for what was not agreed to yet, or refuses where there is no terminal.
fn require(place: &Places, wanted: Vec<Wanted>) -> Result<(), Failure> {
    if wanted.is_empty() {
        return Ok(());
    }
    let own = place.own()?;
    for one in wanted {
        let Wanted { what, digest } = &one;
        if own.has_agreed(digest).map_err(crate::places::refused)? {
            continue;
        }
        if !asked(&format!(
            "provost.toml of this repository {what}. Do you agree?"
        )) {
            let reason =
                format!("provost.toml {what}, and you have not agreed to that on this machine");
            return Err(Failure::new(Code::ConsentNeeded, reason)
                .hint(format!("provost init --trust {digest}")));
        }
        own.agree(digest).map_err(crate::places::refused)?;
    }
    Ok(())
}

/// Stores that the user agrees to the parts of `policy` with these `digests`, or to all parts;
/// returns them.
pub fn agree(
    place: &Places,
    policy: &Policy,
    digests: Option<&[String]>,
) -> Result<Vec<Wanted>, Failure> {
    let all = of_policy(policy);
    let is_meant = |one: &&Wanted| digests.is_none_or(|digests| digests.contains(&one.digest));
    let meant: Vec<Wanted> = all.iter().filter(is_meant).cloned().collect();
    for digest in digests.unwrap_or_default() {
        if !meant.iter().any(|one| one.digest == *digest) {
            let reason = format!(
                "no part of provost.toml has the digest `{}`",
                one_line(digest)
            );
            return Err(Failure::new(Code::NotFound, reason).hint(
                "run the refused command again: it prints the digest of the current policy",
            ));
        }
    }
    let own = place.own()?;
    for one in &meant {
        own.agree(&one.digest).map_err(crate::places::refused)?;
    }
    Ok(meant)
}

/// Stores that this user had the policy file `bytes` written.
pub fn keep_written(place: &Places, bytes: &[u8]) -> Result<(), Failure> {
    let digest = of_file(place, bytes).digest;
    place.own()?.agree(&digest).map_err(crate::places::refused)
}

/// Whether this user had exactly this policy file written, in this repository.
pub fn wrote(place: &Places, bytes: &[u8]) -> bool {
    let own = place.own();
    own.is_ok_and(|own| {
        own.has_agreed(&of_file(place, bytes).digest)
            .unwrap_or(false)
    })
}

fn of_file(place: &Places, bytes: &[u8]) -> Wanted {
    let named = [place.root.as_os_str().as_encoded_bytes(), b"\0", bytes].concat();
    Wanted::of(&PolicyPart::File(sha256(&named)), "as written")
}

/// Whether the person at the terminal says yes; false without a terminal.
pub fn asked(question: &str) -> bool {
    let answer = answer(&format!("{question} [y/N]"));
    answer.is_some_and(|answer| matches!(answer.as_str(), "y" | "Y" | "yes"))
}

/// What the person at the terminal answers; `None` without a terminal or an answer.
pub fn answer(question: &str) -> Option<String> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    print_message(question);
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).ok()?;
    Some(line.trim().to_owned()).filter(|answer| !answer.is_empty())
}

/// Lets a run continue only with secrets that the user names in this very command, each with its
/// place. `command` is that command without its flags, such as `resume RUN`.
pub fn to_send(
    run_id: &str,
    command: &str,
    brokered: &[&Credential],
    named: &[Sent],
) -> Result<(), Failure> {
    let is_named = |it: &&&Credential| named.iter().any(|sent| sent.is(it));
    let missing: Vec<Sent> = brokered
        .iter()
        .filter(|it| !is_named(it))
        .map(|it| Sent::of(it))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let words: Vec<String> = missing
        .iter()
        .map(|sent| format!("{} to {}", sent.source, sent.place))
        .collect();
    let words = one_line(&words.join(", "));
    if asked(&format!("{run_id} sends {words}. Do you agree?")) {
        return Ok(());
    }
    let reason = format!("{run_id} sends {words}, and you have not named that in this command");
    let all = brokered
        .iter()
        .map(|it| format!(" --send {}", Sent::of(it)));
    let mut flags: Vec<String> = all.collect();
    flags.dedup();
    Err(Failure::new(Code::ConsentNeeded, reason)
        .hint(format!("provost {command}{}", one_line(&flags.concat()))))
}

/// A secret, by its variable or login file, and the place that receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    source: SecretSource,
    place: Endpoint,
}

impl Sent {
    fn of(credential: &Credential) -> Self {
        Self {
            source: credential.source.clone(),
            place: credential.endpoint.clone(),
        }
    }

    /// Whether this names what `credential` sends.
    pub fn is(&self, credential: &Credential) -> bool {
        *self == Self::of(credential)
    }
}

impl std::fmt::Display for Sent {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}@{}", self.source.argument(), self.place)
    }
}

impl std::str::FromStr for Sent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once('@').filter(|(name, _)| !name.is_empty());
        let (name, place) = parts.ok_or("write NAME@HOST:PORT")?;
        let place = Endpoint::parse(place).map_err(|error| format!("the host {error}"))?;
        let source = match name.strip_prefix('@').map(LoginFile::parse) {
            None => SecretSource::Variable(name.to_owned()),
            Some(Some(file)) => SecretSource::File(file),
            Some(None) => return Err("write @claude or @codex for a login file".to_owned()),
        };
        Ok(Self { source, place })
    }
}
