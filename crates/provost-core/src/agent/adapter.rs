//! One file for each agent program: how it is started and given its task.
//!
//! An adapter is pure, because a ledger is judged again on other machines. The host finds the
//! program, starts it in a sandbox and reads what it prints. To add a program, add a file that
//! implements [`AgentAdapter`] to this directory, and its row to [`ADAPTERS`].

mod claude;
mod codex;
mod command;
mod gemini;
pub mod mcp;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::launch::Answer;
use super::provider::{BaseUrl, Login, Provider};
use super::{Adapted, Budget, Plane};
use crate::children::{BROKER_COMMAND, SERVER};
use crate::contract::document::Shell;
use crate::contract::role::RunnerKind;
use crate::net::credential::LoginFile;
use crate::net::endpoint::{Endpoint, Host};
use crate::net::model_api::ModelApi;

/// Every adapter, and the only place that lists them.
static ADAPTERS: [&dyn AgentAdapter; 5] = [
    &command::Command,
    &codex::Codex,
    &claude::Claude,
    &gemini::Gemini,
    &mcp::Mcp,
];

/// What Provost knows about one agent program.
pub trait AgentAdapter: Sync {
    /// The name in policies, contracts and ledgers; it never changes.
    fn name(&self) -> &'static str;

    fn start(&self) -> Start;

    /// Who offers its models; `None` if it has none of its own.
    fn vendor(&self) -> Option<Vendor> {
        None
    }

    /// Domains that the program contacts on its own, with their subdomains: updates, telemetry and
    /// the like. The program works without them. A host that is missing here is treated as one that
    /// the work asked for.
    fn background_domains(&self) -> &'static [&'static str] {
        &[]
    }

    /// The runner that a contract calls by this name.
    fn runner(&self) -> Option<RunnerKind> {
        None
    }

    /// What the program claims again when it continues a conversation.
    fn claims_again(&self) -> ClaimedAgain {
        ClaimedAgain::Nothing
    }

    /// Whether the program can be held to `shell`; else why not.
    fn keeps(&self, shell: Shell) -> Result<(), &'static str> {
        match shell {
            Shell::Never => Ok(()),
            Shell::Deny => Err(
                "`deny` cannot be kept: no setting of the agent takes its shell away; `never` lets \
                 the sandbox decide",
            ),
            Shell::Untrusted | Shell::OnRequest => {
                Err("asks for approvals, which the agent cannot ask for")
            }
        }
    }

    /// Whether the program binds its answer to a schema; the instruction asks for it otherwise.
    fn binds_answer(&self) -> bool;

    /// The arguments after the program. They switch off its own sandbox and prompts, and every tool
    /// that acts outside the sandbox. The instruction comes on standard input.
    fn arguments(&self, _agent: &Adapted, _answer: Answer) -> Vec<String> {
        Vec::new()
    }

    /// `words` changed so that the program continues the conversation `thread`.
    fn resume(&self, words: Vec<String>, _thread: &str) -> Vec<String> {
        words
    }

    /// Its environment, without the key of its model.
    fn environment(&self, _agent: &Adapted) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Its configuration files, by their path in the sandbox.
    fn files(&self, _agent: &Adapted, _answer: Answer) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// What it prints.
    fn prints(&self, agent: &Adapted) -> StreamForm;

    /// Directories in its home, each with a name in it: settings that weaken what it is held to.
    /// What an earlier attempt left there is put aside.
    fn settings_in_home(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}

/// How an agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The policy names the command, which gets the contract on its standard input.
    Command,
    /// The policy names the command, which is an MCP server.
    Server,
    /// A program that is looked up in PATH.
    Program {
        name: &'static str,
        /// The npm package that ships it.
        package: &'static str,
    },
}

/// Who offers the models of a program.
#[derive(Debug, Clone, Copy)]
pub struct Vendor {
    /// The name that a contract uses.
    pub name: &'static str,
    /// The default endpoint of the program.
    pub url: &'static str,
    /// The header field that holds the key, and the text before the key.
    pub key_field: &'static str,
    /// The environment variable that users keep the key in, and that the program reads.
    pub key_variable: &'static str,
    /// The API whose form of errors the program reads, if it is known.
    pub api: Option<ModelApi>,
    /// How users with a subscription log in, if that is known.
    pub subscription: Option<Subscription>,
}

/// The login of users who pay a vendor by subscription.
#[derive(Debug, Clone, Copy)]
pub struct Subscription {
    /// The endpoint that serves them.
    pub url: &'static str,
    /// The header field that holds the token, and the text before the token.
    pub field: &'static str,
    /// The environment variable that holds a token and that the program reads.
    pub token_variable: Option<&'static str>,
    /// The file in which the program keeps its login.
    pub file: LoginFile,
}

/// The protocol of what a program prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamForm {
    /// Anything; it is not read.
    Any,
    /// `codex exec --json`.
    CodexExec,
    /// `codex app-server`: a conversation.
    CodexAppServer,
    /// `claude --output-format stream-json`; a conversation if a person is asked.
    Claude,
    /// `gemini --output-format stream-json`.
    Gemini,
    /// The Model Context Protocol: a conversation.
    Mcp,
}

/// What a program that continues a conversation claims again, with what is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimedAgain {
    Nothing,
    Tokens,
    Price,
}

/// One of the adapters; two are equal if their names are.
#[derive(Clone, Copy)]
pub struct Adapter(&'static dyn AgentAdapter);

impl Adapter {
    /// Any command; it gets the contract on its standard input.
    pub const COMMAND: Self = Self(&command::Command);

    pub fn named(name: &str) -> Option<Self> {
        let found = ADAPTERS.iter().find(|adapter| adapter.name() == name);
        found.map(|adapter| Self(*adapter))
    }

    /// The adapters whose program has a name of its own.
    pub fn programs() -> impl Iterator<Item = Self> {
        let all = ADAPTERS.iter().map(|adapter| Self(*adapter));
        all.filter(|adapter| matches!(adapter.start(), Start::Program { .. }))
    }

    /// The default endpoint of its models for users with this login.
    pub fn default_url(self, login: Login) -> Option<BaseUrl> {
        let vendor = self.vendor()?;
        let url = match login {
            Login::Brokered | Login::Key | Login::FileKey | Login::None => vendor.url,
            Login::Token | Login::File => vendor.subscription.map_or(vendor.url, |own| own.url),
        };
        BaseUrl::parse(url).ok()
    }

    /// The agent for this adapter when no policy configures one.
    pub fn plain(self) -> Option<Adapted> {
        self.plain_with(Login::default())
    }

    /// The same, with this login.
    pub fn plain_with(self, login: Login) -> Option<Adapted> {
        Some(Adapted {
            adapter: self,
            model: None,
            provider: Some(Provider {
                base_url: self.default_url(login)?,
                login,
            }),
            server: None,
            tools: BTreeMap::new(),
            broker: Vec::new(),
            budget: Budget::default(),
            grants: Box::default(),
            shell: Shell::Never,
            plane: Plane::Exec,
        })
    }

    /// Whether the program contacts `place` on its own.
    pub fn is_background(self, place: &Endpoint) -> bool {
        // The vendor's models, where the policy configures another provider.
        let own = [Login::Key, Login::File].map(|login| self.default_url(login));
        if own.iter().flatten().any(|own| own.endpoint == *place) {
            return true;
        }
        let Host::Name(name) = &place.host else {
            return false;
        };
        let within = |domain: &&str| {
            let rest = name.as_str().strip_suffix(*domain);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        self.background_domains().iter().any(within)
    }
}

impl Deref for Adapter {
    type Target = dyn AgentAdapter;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl Default for Adapter {
    fn default() -> Self {
        Self::COMMAND
    }
}

impl PartialEq for Adapter {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Adapter {}

impl fmt::Display for Adapter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl Serialize for Adapter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Adapter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| {
            let names = ADAPTERS.map(|adapter| format!("`{}`", adapter.name()));
            let names = names.join(", ");
            D::Error::custom(format!("unknown variant `{name}`, expected one of {names}"))
        })
    }
}

/// Fixed arguments.
fn words(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(ToString::to_string).collect()
}

/// The MCP servers that the program gets, in the common configuration form.
fn servers(agent: &Adapted) -> Map<String, Value> {
    let server = |(name, argv): (&String, &Vec<String>)| {
        let (program, arguments) = argv.split_first()?;
        let server = json!({ "command": program, "args": arguments });
        Some((name.clone(), server))
    };
    let mut servers: Map<String, Value> = agent.tools.iter().filter_map(server).collect();
    if !agent.broker.is_empty() {
        let [program, arguments @ ..] = BROKER_COMMAND;
        let server = json!({ "command": program, "args": arguments });
        servers.insert(SERVER.to_owned(), server);
    }
    servers
}

#[cfg(test)]
mod tests;
