//! Completes what a person typed with the defaults of the base commit and of the person.
//!
//! # Invariants
//!
//! - A flag replaces its default; lists are never merged.
//! - Nothing is guessed: what neither a flag nor a default names is missing, and named as such.
//! - The person's own file names an agent, and nothing about the scope.

use provost_core::contract::document::AcceptMode;
use provost_core::policy::{Policy, UserFile};

use super::RequestedAgent;

/// The time limit where nothing names one, in seconds.
pub const USUAL_TIMEOUT_SEC: u64 = 20 * 60;

/// The agent of `[agents]` that needs no name.
const DEFAULT_AGENT: &str = "default";

/// What a person typed; empty and `None` where they typed nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    pub allow: Vec<String>,
    pub accept: Vec<String>,
    pub accept_mode: Option<AcceptMode>,
    pub agent: Option<RequestedAgent>,
    pub review: Option<RequestedAgent>,
    pub retries: Option<u32>,
    pub timeout_sec: Option<u64>,
}

/// Where a value of a contract comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueSource {
    /// Typed with this command, as a flag or as an answer to its question.
    Typed,
    /// `provost.toml` of the base commit.
    Policy,
    /// The person's own file.
    UserFile,
    /// Nothing names it.
    BuiltIn,
}

impl ValueSource {
    /// The words behind a value; empty for what the person typed.
    pub fn words(self) -> &'static str {
        match self {
            Self::Typed => "",
            Self::Policy => "provost.toml",
            Self::UserFile => "your config.toml",
            Self::BuiltIn => "default",
        }
    }
}

/// A value, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen<T> {
    pub value: T,
    pub source: ValueSource,
}

impl<T> Chosen<T> {
    fn of(typed: Option<T>, default: Option<T>, source: ValueSource) -> Option<Self> {
        let chosen = |source| move |value| Self { value, source };
        let typed = typed.map(chosen(ValueSource::Typed));
        typed.or_else(|| default.map(chosen(source)))
    }

    fn built_in(value: T) -> Self {
        let source = ValueSource::BuiltIn;
        Self { value, source }
    }
}

/// All that a contract needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    pub allow: Chosen<Vec<String>>,
    pub accept: Chosen<Vec<String>>,
    /// What the commands have to show, if a flag or a default says so.
    pub accept_mode: Option<Chosen<AcceptMode>>,
    pub agent: Chosen<RequestedAgent>,
    pub review: Option<Chosen<RequestedAgent>>,
    pub retries: Chosen<u32>,
    pub timeout_sec: Chosen<u64>,
}

/// A part without which there is no contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    Allow,
    Accept,
    Agent,
}

impl Missing {
    /// What is missing, for an error.
    pub fn words(self) -> &'static str {
        match self {
            Self::Allow => "where the agent may write (--allow)",
            Self::Accept => "what must pass (--accept)",
            Self::Agent => "who works (--agent)",
        }
    }

    /// The question for a person at a terminal.
    pub fn question(self) -> &'static str {
        match self {
            Self::Allow => {
                "Which files or directories may the agent write? \
                 (from the top of the repository, with blanks between them)"
            }
            Self::Accept => "Which command must pass on the result? (such as: cargo test)",
            Self::Agent => "Which agent? (claude, codex, gemini, or a name of provost.toml)",
        }
    }

    /// An example of the line in `[run]` that would name it.
    pub fn line(self) -> &'static str {
        match self {
            Self::Allow => r#"allow = ["src"]"#,
            Self::Accept => r#"accept = ["cargo test"]"#,
            Self::Agent => r#"agent = "claude""#,
        }
    }
}

/// Completes `flags`, or says what no flag and no default names.
pub fn complete(flags: Flags, policy: &Policy, user: &UserFile) -> Result<Completed, Vec<Missing>> {
    let list = |typed: Vec<String>, default: &[String]| {
        let some = |list: Vec<String>| Some(list).filter(|list| !list.is_empty());
        Chosen::of(some(typed), some(default.to_vec()), ValueSource::Policy)
    };
    let run = &policy.run;
    let allow = list(flags.allow, &run.allow);
    let accept = list(flags.accept, &run.accept);
    let agent = agent(flags.agent, policy, user);
    let retries = Chosen::of(flags.retries, run.retries, ValueSource::Policy);
    let timeout = Chosen::of(flags.timeout_sec, run.timeout_sec, ValueSource::Policy);
    match (allow, accept, agent) {
        (Some(allow), Some(accept), Some(agent)) => Ok(Completed {
            allow,
            accept,
            agent,
            accept_mode: Chosen::of(flags.accept_mode, run.accept_mode, ValueSource::Policy),
            review: review(flags.review, policy),
            retries: retries.unwrap_or(Chosen::built_in(0)),
            timeout_sec: timeout.unwrap_or(Chosen::built_in(USUAL_TIMEOUT_SEC)),
        }),
        (allow, accept, agent) => {
            let all = [
                (allow.is_none(), Missing::Allow),
                (accept.is_none(), Missing::Accept),
                (agent.is_none(), Missing::Agent),
            ];
            let missing = all.into_iter().filter(|(missing, _)| *missing);
            Err(missing.map(|(_, what)| what).collect())
        }
    }
}

/// The agent: what the repository says is closer than what its user says for all repositories.
pub fn agent(
    typed: Option<RequestedAgent>,
    policy: &Policy,
    user: &UserFile,
) -> Option<Chosen<RequestedAgent>> {
    let named = |name: String| RequestedAgent::Named(name);
    let default = policy.agents.contains_key(DEFAULT_AGENT);
    let default = default.then(|| DEFAULT_AGENT.to_owned());
    let repository = policy.run.agent.clone().or(default).map(named);
    let own = user.agent.clone().map(named);
    Chosen::of(typed, repository, ValueSource::Policy)
        .or_else(|| Chosen::of(None, own, ValueSource::UserFile))
}

/// The reviewer, if the person or the repository names one.
pub fn review(typed: Option<RequestedAgent>, policy: &Policy) -> Option<Chosen<RequestedAgent>> {
    let named = policy.run.review.clone().or(policy.review.clone());
    Chosen::of(typed, named.map(RequestedAgent::Named), ValueSource::Policy)
}

#[cfg(test)]
mod tests {
    use provost_core::policy;

    use super::*;

    fn named(name: &str) -> RequestedAgent {
        RequestedAgent::Named(name.to_owned())
    }

    fn user(agent: &str) -> UserFile {
        policy::parse_user_file(format!("agent = {agent:?}\n").as_bytes()).unwrap()
    }

    #[test]
    fn the_nearest_word_about_the_agent_counts() {
        let run = "[run]\nagent = \"claude\"\n";
        let default = "[agents.default]\ncommand = \"x\"\n";
        let both = format!("{run}{default}");
        let cases = [
            (
                Some(named("mine")),
                both.as_str(),
                Some(("mine", ValueSource::Typed)),
            ),
            (None, &both, Some(("claude", ValueSource::Policy))),
            (None, default, Some(("default", ValueSource::Policy))),
            (None, "", Some(("codex", ValueSource::UserFile))),
        ];
        for (typed, text, want) in cases {
            let policy = policy::parse(text.as_bytes()).unwrap();
            let chosen = agent(typed, &policy, &user("codex"));
            let want = want.map(|(name, source)| Chosen {
                value: named(name),
                source,
            });
            assert_eq!(chosen, want, "{text}");
        }
        assert_eq!(agent(None, &Policy::default(), &UserFile::default()), None);
    }

    #[test]
    fn everything_that_is_missing_is_named_at_once() {
        let none = complete(Flags::default(), &Policy::default(), &UserFile::default());
        assert_eq!(
            none,
            Err(vec![Missing::Allow, Missing::Accept, Missing::Agent])
        );
        let text = "[run]\nallow = [\"a\"]\naccept = [\"x\"]\nreview = \"kind\"\n[review]\nagent = \"y\"\n";
        let policy = policy::parse(text.as_bytes()).unwrap();
        let flags = Flags {
            allow: vec!["b".to_owned()],
            agent: Some(named("mine")),
            ..Flags::default()
        };
        let all = complete(flags, &policy, &UserFile::default()).unwrap();
        assert_eq!(all.allow.value, ["b"]);
        assert_eq!(all.accept.source, ValueSource::Policy);
        assert_eq!(all.review.map(|it| it.value), Some(named("kind")));
        assert_eq!(all.timeout_sec.value, USUAL_TIMEOUT_SEC);
        assert_eq!(all.retries, Chosen::built_in(0));
    }
}
