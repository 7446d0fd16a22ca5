//! Reads the hook events of Claude Code and Codex, and says what the tool call would write.
//!
//! Both programs send one object on standard input, with `hook_event_name`, `cwd` and, about a
//! tool, `tool_name` and `tool_input`. An event that cannot be read and an unknown tool are errors,
//! because a hook that guesses lets forbidden writes pass.

mod patch;
mod shell;

use serde_json::{Map, Value};

/// A hook event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The directory that relative paths start from.
    pub cwd: String,
    /// What the program calls this session; empty if it does not say.
    pub session: String,
    pub what: What,
    /// Whether the tool runs a command line, which may write more than it names.
    pub runs: bool,
}

/// What a tool call may write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// The paths that it names.
    pub paths: Vec<String>,
    /// Whether it runs a program that may write more than the call names.
    pub is_open: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Begin,
    /// A tool is about to be used.
    Before(Call),
    /// A tool was used.
    After,
    /// The agent finished: nothing is left to decide.
    End,
}

/// Why an event cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// A field is missing or has another type.
    #[error("the event has no readable `{0}`")]
    Field(&'static str),
    #[error("the event `{0}` is unknown")]
    Unknown(String),
    /// A tool that is in no table of this module.
    #[error("the tool `{0}` is unknown, so what it writes cannot be judged")]
    Tool(String),
    /// A command writes to a path that only a shell can compute.
    #[error("the command writes to `{0}`, and only a shell knows where that is")]
    Target(String),
    /// A command writes to a relative path, and only a shell can compute the directory.
    #[error("the command writes to `{0}`, and only a shell knows from which directory")]
    Directory(String),
    /// The name of the program is computed.
    #[error("the command runs `{0}`, and only a shell knows what that is")]
    Program(String),
    /// A program whose arguments do not name what it writes.
    #[error("`{0}` writes files that the command does not name")]
    Obscure(String),
    /// A setting or a variable that may make a program run others.
    #[error("`{0}` may make a program run another one, or look elsewhere")]
    Setting(String),
    /// A command that loosens the restrictions of the agent.
    #[error("`{0}` changes the restrictions of agents, and only a person may do that")]
    Guard(String),
    /// A line that bash may split in another way than this module does.
    #[error("the command is not understood as bash understands it: {0}")]
    Unclear(&'static str),
    /// Scripts inside of scripts, nested too deep.
    #[error("the command has scripts inside of scripts, too deep to look into")]
    Deep,
    #[error("the patch does not say which files it touches")]
    Patch,
}

impl EventError {
    /// What the agent can do instead.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Target(_) | Self::Directory(_) | Self::Obscure(_) | Self::Patch => Some(
                "name every file that is written, inside of a declared change, or write it with the \
                 tool for edits",
            ),
            Self::Program(_) | Self::Deep | Self::Unclear(_) => {
                Some("write out what is to be run, as a command of its own")
            }
            Self::Setting(_) => Some("leave it out"),
            Self::Guard(_) => Some("leave it to a person"),
            Self::Tool(_) => {
                Some("use the tools for edits, or a command that names what it writes")
            }
            Self::Field(_) | Self::Unknown(_) => None,
        }
    }
}

/// Tools that run a command line.
const SHELLS: [&str; 5] = ["Bash", "Monitor", "shell", "exec_command", "shell_command"];

/// Tools of both programs that write no file of a checkout themselves.
const HARMLESS: &str = "\
    Agent AskUserQuestion BashOutput CronCreate CronDelete CronList EnterPlanMode \
    ExitPlanMode Glob Grep KillShell LS LSP ListMcpResourcesTool NotebookRead \
    PushNotification Read ReadMcpResourceTool ScheduleWakeup SendMessage Skill \
    StructuredOutput Task TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate \
    TodoRead TodoWrite ToolSearch WebFetch WebSearch list_mcp_resource_templates \
    list_mcp_resources read_mcp_resource request_user_input update_plan view_image \
    web_search";

pub fn parse(event: &Value) -> Result<Event, EventError> {
    let text = |name: &'static str| {
        let value = event.get(name).and_then(Value::as_str);
        value.ok_or(EventError::Field(name))
    };
    let what = match text("hook_event_name")? {
        "SessionStart" => What::Begin,
        "PostToolUse" => What::After,
        "Stop" => What::End,
        "PreToolUse" => {
            let input = event.get("tool_input").and_then(Value::as_object);
            let input = input.ok_or(EventError::Field("tool_input"))?;
            What::Before(writes(text("tool_name")?, input)?)
        }
        other => return Err(EventError::Unknown(short(other))),
    };
    let cwd = text("cwd")?.to_owned();
    let session = event.get("session_id").and_then(Value::as_str);
    let session = session.unwrap_or_default().to_owned();
    let tool = event.get("tool_name").and_then(Value::as_str);
    let runs = tool.is_some_and(|tool| SHELLS.contains(&tool));
    Ok(Event {
        cwd,
        session,
        what,
        runs,
    })
}

/// What a tool call writes, as the call names it.
fn writes(tool: &str, input: &Map<String, Value>) -> Result<Call, EventError> {
    let field = |name: &'static str| {
        let value = input.get(name).and_then(Value::as_str);
        value.map(str::to_owned).ok_or(EventError::Field(name))
    };
    let named = |paths| Call {
        paths,
        is_open: false,
    };
    match tool {
        "Write" | "Edit" | "MultiEdit" => Ok(named(vec![field("file_path")?])),
        "NotebookEdit" => Ok(named(vec![field("notebook_path")?])),
        "apply_patch" => patch::paths(&field("command").or_else(|_| field("input"))?).map(named),
        tool if SHELLS.contains(&tool) => {
            shell::writes(&command(input).ok_or(EventError::Field("command"))?)
        }
        // Input for a running program is not read; its start was judged.
        "write_stdin" => Ok(Call {
            is_open: true,
            ..Call::default()
        }),
        tool if HARMLESS.split_whitespace().any(|one| one == tool)
            || tool.starts_with("mcp__provost__") =>
        {
            Ok(Call::default())
        }
        tool => Err(EventError::Tool(short(tool))),
    }
}

/// A command line, as text or as the words of `sh -c`.
fn command(input: &Map<String, Value>) -> Option<String> {
    match input.get("command").or_else(|| input.get("cmd"))? {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            let words = words?;
            match words.as_slice() {
                [_, "-c" | "-lc", script] => Some((*script).to_owned()),
                // Quoted, so that each stays one word.
                words => Some(
                    words
                        .iter()
                        .map(|word| format!("'{}'", word.replace('\'', r"'\''")))
                        .collect::<Vec<_>>()
                        .join(" "),
                ),
            }
        }
        _ => None,
    }
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests;
