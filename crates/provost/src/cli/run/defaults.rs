//! Completes the flags of `provost run` with `[run]` of the base, and asks for the rest.
//!
//! # Invariants
//!
//! - The base commit decides. Where it has no policy, the file counts that `provost init` wrote for
//!   this user, as long as it is exactly that file; any other uncommitted policy counts for nothing.
//! - What is missing is asked on a terminal, and refused elsewhere with the lines to add.

use provost_core::code::Code;
use provost_core::gate::command;
use provost_core::object::Oid;
use provost_core::policy::{self, FILE as POLICY, Policy, UserFile};
use provost_core::run::fact::Opened;
use provost_engine::opening::defaults::{self, Completed, Flags, Missing, ValueSource};
use provost_engine::opening::{self, RequestedAgent};
use provost_host::origin::{GitOrigin, OriginWithPolicy};
use provost_host::user_file;

use super::{PolicyOrigin, Run, flags};
use crate::answer::Failure;
use crate::input;
use crate::places::Places;
use crate::show::Reader;
use crate::user_consent;

/// What a typed contract is made of.
pub(super) struct Typed<'a> {
    pub(super) origin: OriginWithPolicy<'a>,
    /// The commit whose defaults were taken.
    base: Oid,
    pub(super) completed: Completed,
}

/// Completes the flags of `run`.
pub(super) fn typed<'a>(
    run: &Run,
    place: &'a Places,
    reader: Reader,
) -> Result<Typed<'a>, Failure> {
    let origin = OriginWithPolicy {
        git: GitOrigin(&place.repo),
        policy: written_by_init(place),
    };
    // What no contract may name as its base is refused later, with the name of its flag.
    let named = run.base.as_deref();
    let named = named.filter(|base| !base.is_empty() && !base.starts_with('-'));
    let revision = named.unwrap_or("HEAD");
    let (base, policy) = opening::policy_at(&origin, revision).map_err(super::with_flags)?;
    let user = user_file::read()?;
    let mut flags = Flags {
        allow: run.allow.clone(),
        accept: run.accept.clone(),
        accept_mode: run.accept_mode,
        agent: flags::agent(run),
        review: flags::review(run),
        retries: run.retries,
        timeout_sec: run.timeout,
    };
    let missing = match defaults::complete(flags.clone(), &policy, &user) {
        Ok(completed) => {
            return Ok(Typed {
                origin,
                base,
                completed,
            });
        }
        Err(missing) => missing,
    };
    for what in &missing {
        let answer = (reader == Reader::Person).then(|| user_consent::answer(what.question()));
        let Some(answer) = answer.flatten() else {
            return Err(refused(place, &base, &missing));
        };
        take(&mut flags, *what, answer)?;
    }
    let completed = defaults::complete(flags, &policy, &user);
    let completed = completed.map_err(|missing| refused(place, &base, &missing))?;
    Ok(Typed {
        origin,
        base,
        completed,
    })
}

impl Typed<'_> {
    /// Refuses if the base moved since its defaults were read.
    pub(super) fn check(&self, opened: &Opened) -> Result<(), Failure> {
        if opened.base_commit == self.base {
            return Ok(());
        }
        let reason = "the base moved while its defaults were read";
        Err(Failure::new(Code::TargetMoved, reason).hint("run the same command again"))
    }

    /// Where the policy of `opened` comes from.
    pub(super) fn policy(&self, opened: &Opened) -> Result<PolicyOrigin, Failure> {
        if self.origin.policy.is_none() {
            return Ok(PolicyOrigin::Base);
        }
        Ok(match self.origin.git.policy_file(&opened.base_tree)? {
            Some(_) => PolicyOrigin::Base,
            None => PolicyOrigin::Init,
        })
    }

    /// The name of the agent, if the person named it: in this command, or in their own file.
    pub(super) fn agent_named_by_person(&self) -> Option<&str> {
        let agent = &self.completed.agent;
        match (&agent.value, agent.source) {
            (RequestedAgent::Named(name), ValueSource::Typed | ValueSource::UserFile) => Some(name),
            _ => None,
        }
    }
}

/// The agent and the reviewer of a contract from a file, which says nothing about them.
pub(super) fn agents_for_file(
    run: &Run,
    policy: &Policy,
) -> Result<(RequestedAgent, Option<RequestedAgent>), Failure> {
    let user = match &run.agent {
        None if run.agent_cmd.is_none() => user_file::read()?,
        _ => UserFile::default(),
    };
    let agent = defaults::agent(flags::agent(run), policy, &user);
    // Without one, the words about the missing agent `default` are said.
    let agent = agent.map_or(RequestedAgent::Named("default".to_owned()), |it| it.value);
    let review = defaults::review(flags::review(run), policy);
    Ok((agent, review.map(|it| it.value)))
}

/// The policy in the checkout, if `provost init` wrote exactly this file for this user.
fn written_by_init(place: &Places) -> Option<Policy> {
    let path = place.repo.checkout()?.join(POLICY);
    let bytes = input::read(&path, policy::LARGEST).ok()?;
    let parsed = policy::parse(&bytes).ok()?;
    user_consent::wrote(place, &bytes).then_some(parsed)
}

/// Adds the answer to a question to the flags.
fn take(flags: &mut Flags, what: Missing, answer: String) -> Result<(), Failure> {
    match what {
        Missing::Allow => {
            flags.allow = command::split(&answer)
                .map_err(|flaw| Failure::new(Code::UsageError, format!("`{answer}`: {flaw}")))?;
        }
        Missing::Accept => flags.accept = vec![answer],
        Missing::Agent => flags.agent = Some(RequestedAgent::Named(answer)),
    }
    Ok(())
}

/// The refusal that names what is missing, and the lines that would name it.
fn refused(place: &Places, base: &Oid, missing: &[Missing]) -> Failure {
    let words: Vec<&str> = missing.iter().map(|what| what.words()).collect();
    let reason = format!(
        "the contract does not say {}: neither a flag nor [run] of provost.toml at {} does",
        words.join(" or "),
        base.short()
    );
    let lines: Vec<&str> = missing.iter().map(|what| what.line()).collect();
    let hint = if uncommitted(place, missing) {
        "provost.toml of your checkout names it and is not committed: \
         git add provost.toml && git commit -m 'Add the policy of Provost'"
            .to_owned()
    } else {
        format!(
            "give the flag, or add to provost.toml below [run] and commit it: {}",
            lines.join(" and ")
        )
    };
    Failure::new(Code::UsageError, reason).hint(hint)
}

/// Whether the policy in the checkout, which does not count, names all that is missing.
fn uncommitted(place: &Places, missing: &[Missing]) -> bool {
    let path = place.repo.checkout().map(|checkout| checkout.join(POLICY));
    let bytes = path.and_then(|path| input::read(&path, policy::LARGEST).ok());
    let Some(policy) = bytes.and_then(|bytes| policy::parse(&bytes).ok()) else {
        return false;
    };
    let left = defaults::complete(Flags::default(), &policy, &UserFile::default());
    let left = left.err().unwrap_or_default();
    !missing.iter().any(|what| left.contains(what))
}
