//! Installs and removes our hook in the settings of Claude Code and Codex, and calls it.
//!
//! # Invariants
//!
//! - Everything else in the file stays. Removing the hook restores the bytes from before, unless
//!   the file was changed since; then only our hook is removed.
//! - The command refuses in the protocol of both programs even if this binary is gone. One that is
//!   committed for a team finds the binary in `PATH`, and refuses if it is missing, is another
//!   program of that name, or is in the checkout, where an agent could have put it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use provost_core::code::Code;
use provost_core::json;
use provost_core::object::sha256;
use provost_engine::ports::PortError;
use provost_fs::atomic::{self, Durability};
use serde_json::{Map, Value, json};

/// The events that our hook answers.
const EVENTS: [&str; 3] = ["PreToolUse", "PostToolUse", "SessionStart"];

/// How long the programs wait, in seconds; the hook itself answers earlier.
const TIMEOUT: u32 = 15;

/// A program whose tool calls are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookedAgent {
    Claude,
    Codex,
}

impl HookedAgent {
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// The end of our command, by which it is recognised.
    fn mark(self) -> String {
        format!(" hook {} || exit 2", self.name())
    }

    /// The directory and the file of its settings, and the variable that names the user's directory.
    fn settings(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Claude => (".claude", "settings.json", "CLAUDE_CONFIG_DIR"),
            Self::Codex => (".codex", "hooks.json", "CODEX_HOME"),
        }
    }
}

/// The settings file of an agent, and our copy of what it was before.
#[derive(Debug)]
pub struct AgentSettings {
    agent: HookedAgent,
    pub file: PathBuf,
    before: PathBuf,
}

/// How an installed hook finds this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BinaryFound {
    /// At this place, which only this machine has.
    At(PathBuf),
    /// In the `PATH` of each user of the settings.
    OnPath,
}

impl BinaryFound {
    /// The beginning of a shell command, up to the arguments.
    fn words(&self) -> String {
        match self {
            Self::At(binary) => {
                let binary = binary.display().to_string().replace('\'', r"'\''");
                format!("'{binary}'")
            }
            Self::OnPath => ON_PATH.concat(),
        }
    }
}

/// Finds the program in `PATH`. An agent can write to a relative entry, and to one in the project.
const ON_PATH: [&str; 5] = [
    r#"p=$(command -v provost); case "$p" in "${CLAUDE_PROJECT_DIR:-$PWD}"/*) p=;; "#,
    "/*) ;; *) p=;; esac; ",
    r#"case "$([ -n "$p" ] && "$p" --version </dev/null 2>/dev/null)" in "provost "[0-9]*) ;; "#,
    "*) echo 'error[HOOK_BROKEN]: no usable provost is in PATH, so nothing can be judged and this \
     is refused; install Provost as its README says (cargo install, or a package), then try again' \
     >&2; exit 2;; esac; ",
    r#""$p""#,
];

/// The settings with our hook, before they are written.
#[derive(Debug)]
pub struct SettingsEdit {
    text: String,
    /// What is kept of the settings before.
    kept: String,
}

/// What was found when our hook was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uninstalled {
    /// The settings are as they were before.
    Restored,
    /// The settings were changed since; only our hook was removed.
    OnlyOurs,
    /// There was none.
    Nothing,
}

impl AgentSettings {
    /// The settings of the checkout `top`, whose runtime root is `root`; the caller looks for links.
    pub fn of_checkout(agent: HookedAgent, top: &Path, root: &Path) -> Self {
        let (directory, file, _) = agent.settings();
        Self {
            agent,
            file: top.join(directory).join(file),
            before: root.join(format!("hook-{}.json", agent.name())),
        }
    }

    /// The settings of this user.
    pub fn of_user(agent: HookedAgent) -> Result<Self, PortError> {
        let (directory, file, variable) = agent.settings();
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let own = set(variable).map(PathBuf::from);
        let own = own.or_else(|| Some(PathBuf::from(set("HOME")?).join(directory)));
        let own = own.ok_or_else(|| PortError::new(Code::HostFailed, "HOME is not set"))?;
        Ok(Self {
            agent,
            file: own.join(file),
            before: own.join(format!("{file}.before-provost")),
        })
    }

    /// The settings with a hook that calls what `found` says.
    pub fn with_hook(&self, found: &BinaryFound) -> Result<SettingsEdit, PortError> {
        let now = read(&self.file)?;
        let was = match (self.before()?, &now) {
            (Some(before), Some(now)) if before.written == sha256(now.as_bytes()) => before.text,
            _ => now.clone(),
        };
        let mut settings = match &now {
            Some(text) => without(&self.file, text, self.agent)?,
            None => Map::new(),
        };
        let mut handler = json!({
            "type": "command",
            "command": format!("{}{}", found.words(), self.agent.mark()),
            "timeout": TIMEOUT,
        });
        if self.agent == HookedAgent::Claude {
            // A hook that crashed or timed out counts as a refusal.
            handler["onFailure"] = json!("block");
        }
        let hooks = settings.entry("hooks").or_insert_with(|| json!({}));
        for event in EVENTS {
            let groups = hooks
                .as_object_mut()
                .map(|hooks| hooks.entry(event).or_insert_with(|| json!([])));
            let Some(Value::Array(groups)) = groups else {
                return Err(broken(&self.file, &format!("`{event}` is no list")));
            };
            groups.push(json!({ "hooks": [handler] }));
        }
        let text = format!("{:#}\n", Value::Object(settings));
        let kept = json!({ "before": was, "written": sha256(text.as_bytes()) });
        let kept = format!("{kept}\n");
        Ok(SettingsEdit { text, kept })
    }

    pub fn write(&self, edit: &SettingsEdit) -> Result<(), PortError> {
        write(&self.before, &edit.kept)?;
        write(&self.file, &edit.text)
    }

    pub fn uninstall(&self) -> Result<Uninstalled, PortError> {
        let now = read(&self.file)?;
        let mark = self.agent.mark();
        let kept = self.before()?;
        let done = match (&now, &kept) {
            (Some(now), Some(kept)) if kept.written == sha256(now.as_bytes()) => {
                restore(&self.file, kept.text.as_deref())?;
                Uninstalled::Restored
            }
            (Some(now), _) if now.contains(&mark) => {
                let settings = Value::Object(without(&self.file, now, self.agent)?);
                write(&self.file, &format!("{settings:#}\n"))?;
                Uninstalled::OnlyOurs
            }
            _ => Uninstalled::Nothing,
        };
        if kept.is_some() {
            fs::remove_file(&self.before).map_err(|error| broken(&self.before, &error))?;
        }
        Ok(done)
    }

    /// The settings from before the installation; nothing if there was none.
    fn before(&self) -> Result<Option<Before>, PortError> {
        let Some(text) = read(&self.before)? else {
            return Ok(None);
        };
        let value = json::parse(text.as_bytes()).map_err(|error| broken(&self.before, &error))?;
        let written = value["written"].as_str().unwrap_or_default().to_owned();
        let text = value["before"].as_str().map(str::to_owned);
        Ok(Some(Before { text, written }))
    }

    /// The installed command, if it is called before every tool.
    pub fn command(&self) -> Result<Option<String>, PortError> {
        let Some(text) = read(&self.file)? else {
            return Ok(None);
        };
        let value = json::parse(text.as_bytes()).map_err(|error| broken(&self.file, &error))?;
        let groups = value["hooks"][EVENTS[0]].as_array().cloned();
        for group in groups.unwrap_or_default() {
            let matcher = group["matcher"].as_str().unwrap_or_default();
            let handlers = group["hooks"].as_array().cloned().unwrap_or_default();
            let ours = handlers.iter().find(|one| is_ours(one, self.agent));
            if let (Some(ours), "" | "*") = (ours, matcher) {
                return Ok(ours["command"].as_str().map(str::to_owned));
            }
        }
        Ok(None)
    }
}

/// The settings before the installation, and the digest of what was written.
struct Before {
    text: Option<String>,
    written: String,
}

fn broken(path: &Path, error: &dyn std::fmt::Display) -> PortError {
    PortError::new(Code::HookBroken, format!("`{}`: {error}", path.display()))
}

fn read(path: &Path) -> Result<Option<String>, PortError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(broken(path, &error)),
    }
}

fn write(path: &Path, text: &str) -> Result<(), PortError> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let parent = real.parent().unwrap_or(Path::new("/"));
    let done = fs::create_dir_all(parent)
        .and_then(|()| atomic::replace(&real, text.as_bytes(), 0o666, Durability::Synced));
    done.map_err(|error| broken(path, &error))
}

/// The settings in `text`, without our hook.
fn without(path: &Path, text: &str, agent: HookedAgent) -> Result<Map<String, Value>, PortError> {
    let value = json::parse(text.as_bytes()).map_err(|error| broken(path, &error))?;
    let Value::Object(mut settings) = value else {
        return Err(broken(path, &"the settings are no object"));
    };
    let Some(hooks) = settings.get_mut("hooks") else {
        return Ok(settings);
    };
    let Value::Object(hooks) = hooks else {
        return Err(broken(path, &"`hooks` is no object"));
    };
    for groups in hooks.values_mut().filter_map(Value::as_array_mut) {
        for group in groups.iter_mut() {
            if let Some(list) = group.get_mut("hooks").and_then(Value::as_array_mut) {
                list.retain(|one| !is_ours(one, agent));
            }
        }
        groups.retain(|group| group["hooks"] != json!([]));
    }
    hooks.retain(|_, groups| *groups != json!([]));
    if hooks.is_empty() {
        settings.remove("hooks");
    }
    Ok(settings)
}

fn is_ours(handler: &Value, agent: HookedAgent) -> bool {
    let command = handler["command"].as_str().unwrap_or_default();
    command.ends_with(&agent.mark())
}

fn restore(file: &Path, text: Option<&str>) -> Result<(), PortError> {
    if let Some(text) = text {
        return write(file, text);
    }
    fs::remove_file(file).map_err(|error| broken(file, &error))?;
    // The file is removed only if nothing else is in it.
    let _ = file.parent().map(fs::remove_dir);
    Ok(())
}

/// The exit status of the installed command for one event.
pub fn ask(command: &str, top: &Path, input: &str) -> io::Result<Option<i32>> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .current_dir(top)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        // A command that does not read all input is judged by its status.
        let _ = pipe.write_all(input.as_bytes());
    }
    Ok(child.wait()?.code())
}
