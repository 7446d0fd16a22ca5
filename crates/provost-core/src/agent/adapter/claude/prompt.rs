//! How Claude Code is to ask a person about commands.

use serde_json::json;

use super::super::words;
use crate::contract::document::Shell;

/// The tool whose use a person is asked about; the sandbox decides about all others.
const SHELL: &str = "Bash";

/// The tools that are used without a question.
const UNASKED: &str = "Edit,Glob,Grep,NotebookEdit,Read,TodoWrite,Write";

/// The arguments that say whether it asks.
pub(super) fn arguments(shell: Shell) -> Vec<String> {
    let mut arguments = match shell {
        Shell::Never | Shell::Deny => return words(&["--dangerously-skip-permissions"]),
        Shell::Untrusted | Shell::OnRequest => words(&[
            "--input-format",
            "stream-json",
            "--permission-prompt-tool",
            "stdio",
            "--permission-mode",
            "default",
            "--allowedTools",
            UNASKED,
        ]),
    };
    if shell == Shell::Untrusted {
        // Without this it runs commands unasked that it takes for harmless.
        let settings = json!({ "permissions": { "ask": [SHELL] } });
        arguments.extend(["--settings".to_owned(), settings.to_string()]);
    }
    arguments
}
