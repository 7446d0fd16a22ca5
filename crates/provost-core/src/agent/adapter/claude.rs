//! Claude Code, by `claude --print`.

mod prompt;

use serde_json::json;

use super::{AgentAdapter, ClaimedAgain, Start, StreamForm, Subscription, Vendor, servers, words};
use crate::agent::Adapted;
use crate::agent::launch::Answer;
use crate::contract::document::Shell;
use crate::contract::role::RunnerKind;
use crate::net::credential::LoginFile;
use crate::net::model_api::ModelApi;

/// Tools of Claude Code that act only inside the sandbox; it gets no others.
const TOOLS: &str = "Bash,Edit,Glob,Grep,NotebookEdit,Read,TodoWrite,Write";

/// The same without its shell.
const TOOLS_WITHOUT_SHELL: &str = "Edit,Glob,Grep,NotebookEdit,Read,TodoWrite,Write";

/// The tools of a reviewer or a planner: read-only, and a shell in a read-only sandbox.
const READING_TOOLS: &str = "Bash,Glob,Grep,Read,TodoWrite";

pub(super) struct Claude;

impl AgentAdapter for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn start(&self) -> Start {
        Start::Program {
            name: "claude",
            package: "@anthropic-ai/claude-code",
        }
    }

    fn vendor(&self) -> Option<Vendor> {
        Some(Vendor {
            name: "anthropic",
            url: "https://api.anthropic.com",
            key_field: "X-Api-Key: ",
            key_variable: "ANTHROPIC_API_KEY",
            api: Some(ModelApi::Messages),
            subscription: Some(Subscription {
                url: "https://api.anthropic.com",
                field: "Authorization: Bearer ",
                token_variable: Some("CLAUDE_CODE_OAUTH_TOKEN"),
                file: LoginFile::Claude,
            }),
        })
    }

    /// Seen with Claude Code 2.1.
    fn background_domains(&self) -> &'static [&'static str] {
        &[
            "anthropic.com",
            "claude.ai",
            "claude.com",
            "datadoghq.com",
            "githubusercontent.com",
            "growthbook.io",
            "sentry.io",
            "statsig.com",
            "statsigapi.net",
            "storage.googleapis.com",
        ]
    }

    fn runner(&self) -> Option<RunnerKind> {
        Some(RunnerKind::Claude)
    }

    fn claims_again(&self) -> ClaimedAgain {
        ClaimedAgain::Price
    }

    fn binds_answer(&self) -> bool {
        true
    }

    fn keeps(&self, _: Shell) -> Result<(), &'static str> {
        Ok(())
    }

    fn arguments(&self, agent: &Adapted, answer: Answer) -> Vec<String> {
        let tools = match agent.shell {
            _ if answer.is_read_only() => READING_TOOLS,
            Shell::Deny => TOOLS_WITHOUT_SHELL,
            Shell::Untrusted | Shell::OnRequest | Shell::Never => TOOLS,
        };
        let mut arguments = words(&["--print", "--verbose", "--output-format", "stream-json"]);
        arguments.extend(prompt::arguments(agent.shell));
        arguments.extend(words(&[
            // Settings and documents of the tree must not configure it, and it starts no other servers.
            "--setting-sources",
            "user",
            "--strict-mcp-config",
            "--disable-slash-commands",
            "--tools",
            tools,
        ]));
        let servers = servers(agent);
        if !servers.is_empty() {
            let config = json!({ "mcpServers": servers });
            arguments.extend(["--mcp-config".to_owned(), config.to_string()]);
        }
        if let Some(micro) = agent.budget.micro_usd {
            let amount = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
            arguments.extend(["--max-budget-usd".to_owned(), amount]);
        }
        arguments.extend(agent.model_words());
        if let Some(schema) = answer.schema() {
            arguments.extend(["--json-schema".to_owned(), schema.to_string()]);
        }
        arguments
    }

    fn resume(&self, mut words: Vec<String>, thread: &str) -> Vec<String> {
        words.extend(["--resume".to_owned(), thread.to_owned()]);
        words
    }

    fn environment(&self, agent: &Adapted) -> Vec<(&'static str, String)> {
        vec![
            ("ANTHROPIC_BASE_URL", agent.model_url()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ]
    }

    fn prints(&self, _: &Adapted) -> StreamForm {
        StreamForm::Claude
    }
}
