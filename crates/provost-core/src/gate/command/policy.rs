//! The rules of the command gate as data; inconsistent data is refused.
//!
//! The shipped list is `policies/command_allowlist.json`. Every rule of a policy has examples of
//! what it allows and refuses; a policy whose examples fail is refused.

use serde::Deserialize;

use super::{Reason, Trust, judge};
use crate::json::{self, ReadError};

const SHIPPED: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../policies/command_allowlist.json"
));

/// The version of the policy format.
const VERSION: u32 = 1;

/// Which commands may run.
#[derive(Debug, Clone)]
pub struct CommandPolicy {
    pub(super) allow: Vec<Rule>,
    pub(super) interpreters: Vec<Interpreter>,
    pub(super) wrappers: Vec<String>,
    pub(super) forbidden: Vec<Forbidden>,
}

#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("the command policy does not parse")]
    Syntax(#[from] ReadError),
    #[error("the command policy has version {0}; this program knows version {VERSION}")]
    Version(u32),
    #[error("a rule of the command policy has an empty prefix")]
    EmptyPrefix,
    #[error("the command policy says `{example}` is {want}, and its rules do not agree")]
    Example {
        example: String,
        /// What the policy expects.
        want: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicy {
    version: u32,
    allow: Vec<Rule>,
    interpreters: Vec<Interpreter>,
    wrappers: Vec<String>,
    forbidden: Vec<Forbidden>,
}

/// Commands that begin with one of `prefixes` may run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    /// The first words; a trailing `*` matches every word with that beginning.
    pub(super) prefixes: Vec<Vec<String>>,
    /// A required word, such as `--check`.
    #[serde(default)]
    pub(super) needs: Option<String>,
    /// Options that would run or write something else; a trailing `*` matches every option with
    /// that beginning.
    #[serde(default)]
    pub(super) refuse: Vec<String>,
    #[serde(default)]
    examples: Examples,
}

/// Programs that run code they are given.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Interpreter {
    /// Their names, without a version number.
    pub(super) programs: Vec<String>,
    /// Words that bring code on the command line.
    pub(super) inline: Vec<String>,
    /// Whether such a word counts after an operand as well, up to a `--`.
    #[serde(default)]
    pub(super) anywhere: bool,
    /// Letters of harmless short options.
    #[serde(default)]
    pub(super) flags: String,
    /// Letters of harmless short options that take a value.
    #[serde(default)]
    pub(super) values: String,
    /// Harmless long options.
    #[serde(default)]
    pub(super) long: Vec<String>,
    /// Long options that need no script beside them.
    #[serde(default)]
    pub(super) alone: Vec<String>,
    /// Modules that `-m` may name.
    #[serde(default)]
    pub(super) modules: Vec<String>,
    /// Whether a script of the repository may run.
    #[serde(default)]
    pub(super) scripts: bool,
    #[serde(default)]
    examples: Examples,
}

/// Commands that may never run as a check.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Forbidden {
    /// The first words.
    pub(super) prefixes: Vec<Vec<String>>,
    /// Whether they are forbidden because they use the network.
    #[serde(default)]
    pub(super) network: bool,
    /// The reason, as text after the program's name.
    pub(super) why: String,
    #[serde(default)]
    examples: Examples,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Examples {
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    refuse: Vec<String>,
}

impl CommandPolicy {
    /// The policy that comes with the program; a test checks its examples.
    pub fn shipped() -> Result<Self, PolicyError> {
        Self::read(SHIPPED.as_bytes())
    }

    /// Parses a policy and checks its own examples.
    pub fn parse(bytes: &[u8]) -> Result<Self, PolicyError> {
        let policy = Self::read(bytes)?;
        policy.check_examples()?;
        Ok(policy)
    }

    fn read(bytes: &[u8]) -> Result<Self, PolicyError> {
        let raw: RawPolicy = json::parse_as(bytes)?;
        if raw.version != VERSION {
            return Err(PolicyError::Version(raw.version));
        }
        let policy = Self {
            allow: raw.allow,
            interpreters: raw.interpreters,
            wrappers: raw.wrappers,
            forbidden: raw.forbidden,
        };
        policy.check_prefixes()?;
        Ok(policy)
    }

    /// The same policy with more allowed prefixes, from the repository's own policy.
    pub fn with(mut self, prefixes: Vec<Vec<String>>) -> Result<Self, PolicyError> {
        self.allow.push(Rule {
            prefixes,
            ..Rule::default()
        });
        self.check_prefixes()?;
        Ok(self)
    }

    fn check_prefixes(&self) -> Result<(), PolicyError> {
        let allowed = self.allow.iter().flat_map(|rule| &rule.prefixes);
        let forbidden = self.forbidden.iter().flat_map(|rule| &rule.prefixes);
        let says_something = |prefix: &Vec<String>| {
            prefix
                .first()
                .is_some_and(|word| !word.is_empty() && word != "*")
        };
        if allowed.chain(forbidden).all(says_something) {
            Ok(())
        } else {
            Err(PolicyError::EmptyPrefix)
        }
    }

    fn check_examples(&self) -> Result<(), PolicyError> {
        for rule in &self.allow {
            self.hold(&rule.examples, None)?;
        }
        for interpreter in &self.interpreters {
            self.hold(&interpreter.examples, Some(Reason::InlineCode))?;
        }
        for forbidden in &self.forbidden {
            self.hold(&forbidden.examples, Some(Reason::ForbiddenAction))?;
        }
        Ok(())
    }

    /// Checks `examples`; a refused one must be refused for `reason`, if one is given.
    fn hold(&self, examples: &Examples, reason: Option<Reason>) -> Result<(), PolicyError> {
        let broken = |example: &String, want| PolicyError::Example {
            example: example.clone(),
            want,
        };
        for example in &examples.allow {
            if !judge(example, self, Trust::FromFile).allow {
                return Err(broken(example, "allowed"));
            }
        }
        for example in &examples.refuse {
            let reasons = super::reasons(example, self, Trust::FromFile);
            let as_said = match reason {
                Some(reason) => reasons.contains(&reason),
                None => !reasons.is_empty(),
            };
            if !as_said {
                return Err(broken(example, "refused"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_policy_holds_its_examples() {
        let policy = CommandPolicy::parse(SHIPPED.as_bytes()).unwrap();
        assert!(
            policy
                .allow
                .iter()
                .all(|rule| !rule.examples.allow.is_empty())
        );
        assert!(
            policy
                .allow
                .iter()
                .all(|rule| !rule.examples.refuse.is_empty())
        );
        assert!(
            policy
                .forbidden
                .iter()
                .all(|rule| !rule.examples.refuse.is_empty())
        );
    }

    #[test]
    fn a_policy_that_contradicts_itself_is_refused() {
        let policy = |allow: &str| {
            let text = format!(
                "{{\"version\":1,\"allow\":[{allow}],\"interpreters\":[],\
                 \"wrappers\":[],\"forbidden\":[]}}"
            );
            CommandPolicy::parse(text.as_bytes())
        };
        assert!(
            policy(r#"{"prefixes":[["a"]],"examples":{"allow":["a b"],"refuse":["b"]}}"#).is_ok()
        );
        let wrong = [
            r#"{"prefixes":[["a"]],"examples":{"allow":["b"]}}"#,
            r#"{"prefixes":[["a"]],"examples":{"refuse":["a"]}}"#,
            r#"{"prefixes":[[]]}"#,
            r#"{"prefixes":[["*"]]}"#,
            r#"{"prefixes":[["a"]],"unknown":1}"#,
        ];
        for allow in wrong {
            assert!(policy(allow).is_err(), "{allow}");
        }
        assert!(CommandPolicy::parse(b"").is_err());
        assert!(
            CommandPolicy::parse(
                SHIPPED
                    .replace("\"version\": 1", "\"version\": 2")
                    .as_bytes()
            )
            .is_err()
        );
    }

    #[test]
    fn a_repository_can_allow_more() {
        let shipped = CommandPolicy::shipped().unwrap();
        assert!(!judge("make test", &shipped, Trust::FromFile).allow);
        let more = shipped
            .with(vec![vec!["make".into(), "test".into()]])
            .unwrap();
        assert!(judge("make test -j2", &more, Trust::FromFile).allow);
        assert!(!judge("make deploy", &more, Trust::FromFile).allow);
        assert!(!judge("make test --eval=x", &more, Trust::FromFile).allow);
        assert!(more.with(vec![vec![]]).is_err());
    }
}
