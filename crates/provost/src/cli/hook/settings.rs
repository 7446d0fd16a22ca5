//! Installs, removes and tests our hook in the settings of Claude Code and Codex.
//!
//! # Invariants
//!
//! - Everything else in the file stays. Removing the hook restores the bytes from before, unless
//!   the file was changed since; then only our hook is removed.
//! - The command refuses in the protocol of both programs even if this binary is gone.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};
use provost_core::code::Code;
use provost_core::json;
use provost_core::object::sha256;
use provost_fs::atomic::{self, Durability};
use serde_json::{Map, Value, json};

use super::checkout;
use crate::answer::{Answer, Failure, Outcome};
use crate::output;
use crate::places::Places;

/// The events that our hook answers.
const EVENTS: [&str; 3] = ["PreToolUse", "PostToolUse", "SessionStart"];

/// How long the programs wait, in seconds; the hook itself answers earlier.
const TIMEOUT: u32 = 15;

/// A program whose tool calls are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Program {
    Claude,
    Codex,
}

#[derive(Args)]
pub(in crate::cli) struct Selftest {
    /// The agent.
    program: Program,

    /// Use your own settings of the agent, instead of those of the checkout.
    #[arg(long)]
    user: bool,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// The end of our command, by which it is recognised.
    fn mark(self) -> String {
        format!(" hook {} || exit 2", self.name())
    }

    /// The settings files; those of a checkout must not lie behind a link that came with it.
    fn places(self, place: &Places, user: bool) -> Result<SettingsFiles, Failure> {
        let (directory, file, variable) = match self {
            Self::Claude => (".claude", "settings.json", "CLAUDE_CONFIG_DIR"),
            Self::Codex => (".codex", "hooks.json", "CODEX_HOME"),
        };
        if !user {
            let file = checkout(place)?.join(directory).join(file);
            output::unlinked(&file)?;
            return Ok(SettingsFiles {
                file,
                before: place.root.join(format!("hook-{}.json", self.name())),
            });
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let own = set(variable).map(PathBuf::from);
        let own = own.or_else(|| Some(PathBuf::from(set("HOME")?).join(directory)));
        let own = own.ok_or_else(|| Failure::new(Code::HostFailed, "HOME is not set"))?;
        Ok(SettingsFiles {
            file: own.join(file),
            before: own.join(format!("{file}.before-provost")),
        })
    }
}

/// The settings, and our copy of what they were before.
struct SettingsFiles {
    file: PathBuf,
    before: PathBuf,
}

/// The settings before the installation, and the digest of what was written.
struct Before {
    text: Option<String>,
    written: String,
}

fn broken(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::HookBroken, format!("`{}`: {error}", path.display()))
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(broken(path, &error)),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let parent = real.parent().unwrap_or(Path::new("/"));
    let done = fs::create_dir_all(parent)
        .and_then(|()| atomic::replace(&real, text.as_bytes(), 0o666, Durability::Synced));
    done.map_err(|error| broken(path, &error))
}

/// The settings in `text`, without our hook.
fn without(path: &Path, text: &str, program: Program) -> Result<Map<String, Value>, Failure> {
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
                list.retain(|one| !is_ours(one, program));
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

fn is_ours(handler: &Value, program: Program) -> bool {
    let command = handler["command"].as_str().unwrap_or_default();
    command.ends_with(&program.mark())
}

/// The settings from before the installation; nothing if there was none.
fn before(places: &SettingsFiles) -> Result<Option<Before>, Failure> {
    let Some(text) = read(&places.before)? else {
        return Ok(None);
    };
    let value = json::parse(text.as_bytes()).map_err(|error| broken(&places.before, &error))?;
    let written = value["written"].as_str().unwrap_or_default().to_owned();
    let text = value["before"].as_str().map(str::to_owned);
    Ok(Some(Before { text, written }))
}

pub(super) fn install(place: &Places, program: Program, user: bool) -> Outcome {
    let places = program.places(place, user)?;
    let binary = std::env::current_exe().and_then(|path| path.canonicalize());
    let binary = binary.map_err(|error| Failure::of(Code::HostFailed, &error))?;
    let binary = binary.display().to_string().replace('\'', r"'\''");
    let now = read(&places.file)?;
    let was = match (before(&places)?, &now) {
        (Some(before), Some(now)) if before.written == sha256(now.as_bytes()) => before.text,
        _ => now.clone(),
    };
    let mut settings = match &now {
        Some(text) => without(&places.file, text, program)?,
        None => Map::new(),
    };
    let mut handler = json!({
        "type": "command",
        "command": format!("'{binary}'{}", program.mark()),
        "timeout": TIMEOUT,
    });
    if program == Program::Claude {
        // A hook that crashed or timed out counts as a refusal.
        handler["onFailure"] = json!("block");
    }
    let hooks = settings.entry("hooks").or_insert_with(|| json!({}));
    for event in EVENTS {
        let groups = hooks
            .as_object_mut()
            .map(|hooks| hooks.entry(event).or_insert_with(|| json!([])));
        let Some(Value::Array(groups)) = groups else {
            return Err(broken(&places.file, &format!("`{event}` is no list")));
        };
        groups.push(json!({ "hooks": [handler] }));
    }
    let text = format!("{:#}\n", Value::Object(settings));
    if !user {
        place.prepare_changes()?;
    }
    let kept = json!({ "before": was, "written": sha256(text.as_bytes()) });
    write(&places.before, &format!("{kept}\n"))?;
    write(&places.file, &text)?;
    let mut words = format!("installed in {}\n", places.file.display());
    if program == Program::Codex {
        words += "Codex runs no hook before you trust it: start codex, and see /hooks\n";
    }
    words += &format!("next: provost hook selftest {}\n", program.name());
    Ok(Answer::data(json!({ "file": places.file }), words))
}

pub(super) fn uninstall(place: &Places, program: Program, user: bool) -> Outcome {
    let places = program.places(place, user)?;
    let now = read(&places.file)?;
    let is_there = now
        .as_deref()
        .is_some_and(|text| text.contains(&program.mark()));
    let kept = before(&places)?;
    let words = match (&now, &kept) {
        (Some(now), Some(kept)) if kept.written == sha256(now.as_bytes()) => {
            restore(&places.file, kept.text.as_deref())?;
            "removed the hook; the settings are as they were\n"
        }
        (Some(now), _) if is_there => {
            let settings = Value::Object(without(&places.file, now, program)?);
            write(&places.file, &format!("{settings:#}\n"))?;
            "removed the hook; the settings were changed since, so the rest stays as it is\n"
        }
        _ => "no hook of provost is installed there\n",
    };
    if kept.is_some() {
        fs::remove_file(&places.before).map_err(|error| broken(&places.before, &error))?;
    }
    let json = json!({ "file": places.file, "removed": is_there });
    Ok(Answer::data(json, words))
}

fn restore(file: &Path, text: Option<&str>) -> Result<(), Failure> {
    if let Some(text) = text {
        return write(file, text);
    }
    fs::remove_file(file).map_err(|error| broken(file, &error))?;
    // The file is removed only if nothing else is in it.
    let _ = file.parent().map(fs::remove_dir);
    Ok(())
}

/// Where our hooks are installed, as text and as rows.
pub(super) fn standing(place: &Places) -> Result<(String, Vec<Value>), Failure> {
    let (mut text, mut rows) = (String::new(), Vec::new());
    for program in [Program::Claude, Program::Codex] {
        for user in [false, true] {
            let Ok(places) = program.places(place, user) else {
                continue;
            };
            let found = command(&places.file, program)?;
            let word = if found.is_some() {
                "installed"
            } else {
                "not installed"
            };
            let whose = if user { "yours" } else { "of this checkout" };
            text += &format!("  {:11} {word} ({whose})\n", program.name());
            let agent = program.name();
            rows.push(
                json!({ "agent": agent, "file": places.file, "user": user, "standing": word }),
            );
        }
    }
    Ok((text, rows))
}

/// The installed command, if it is called before every tool.
fn command(file: &Path, program: Program) -> Result<Option<String>, Failure> {
    let Some(text) = read(file)? else {
        return Ok(None);
    };
    let value = json::parse(text.as_bytes()).map_err(|error| broken(file, &error))?;
    let groups = value["hooks"][EVENTS[0]].as_array().cloned();
    for group in groups.unwrap_or_default() {
        let matcher = group["matcher"].as_str().unwrap_or_default();
        let handlers = group["hooks"].as_array().cloned().unwrap_or_default();
        let ours = handlers.iter().find(|one| is_ours(one, program));
        if let (Some(ours), "" | "*") = (ours, matcher) {
            return Ok(ours["command"].as_str().map(str::to_owned));
        }
    }
    Ok(None)
}

/// Sends events through the installed command, and expects that the bad ones are refused.
pub(super) fn selftest(place: &Places, selftest: &Selftest) -> Outcome {
    let places = selftest.program.places(place, selftest.user)?;
    let name = selftest.program.name();
    let Some(command) = command(&places.file, selftest.program)? else {
        let reason = format!("no hook is installed in {}", places.file.display());
        let hint = format!("provost hook install {name}");
        return Err(Failure::new(Code::HookBroken, reason).hint(hint));
    };
    let top = checkout(place)?;
    let event = |tool: &str, file: &str| {
        json!({ "session_id": "selftest", "cwd": top, "hook_event_name": "PreToolUse",
            "tool_name": tool, "tool_use_id": "selftest",
            "tool_input": { "file_path": top.join(file), "content": "" } })
        .to_string()
    };
    let cases = [
        (
            "a write that is never permitted",
            event("Write", ".provost/selftest"),
            2,
        ),
        ("an event that cannot be read", "nonsense".to_owned(), 2),
        ("a read of a file", event("Read", "selftest"), 0),
    ];
    let mut rows = Vec::new();
    for (what, input, want) in cases {
        let got = ask(&command, top, &input).map_err(|error| broken(&places.file, &error))?;
        if got != Some(want) {
            let reason = format!("{what} got {got:?} instead of {want} from `{command}`");
            return Err(Failure::new(Code::HookBroken, reason));
        }
        rows.push(json!({ "event": what, "status": want }));
    }
    let text = format!("the hook for {name} works: it denies writes and permits reads\n");
    Ok(Answer::data(
        json!({ "command": command, "tried": rows }),
        text,
    ))
}

/// The exit status of the installed command for one event.
fn ask(command: &str, top: &Path, input: &str) -> io::Result<Option<i32>> {
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
