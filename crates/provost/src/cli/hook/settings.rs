//! Installs, removes and tests our hook in the settings of Claude Code and Codex.

use clap::{Args, ValueEnum};
use provost_core::code::Code;
use provost_host::hooks::agent_settings::{
    self, AgentSettings, BinaryFound, HookedAgent, Uninstalled,
};
use serde_json::{Value, json};

use super::checkout;
use crate::answer::{Answer, Failure, Outcome};
use crate::output;
use crate::places::Places;

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
    fn hooked(self) -> HookedAgent {
        match self {
            Self::Claude => HookedAgent::Claude,
            Self::Codex => HookedAgent::Codex,
        }
    }

    fn name(self) -> &'static str {
        self.hooked().name()
    }

    /// The settings; those of a checkout must not lie behind a link that came with it.
    fn settings(self, place: &Places, user: bool) -> Result<AgentSettings, Failure> {
        if user {
            return Ok(AgentSettings::of_user(self.hooked())?);
        }
        let settings = AgentSettings::of_checkout(self.hooked(), checkout(place)?, &place.root);
        output::unlinked(&settings.file)?;
        Ok(settings)
    }
}

/// For whom a hook is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// This user, in the settings of the checkout.
    Checkout,
    /// This user, everywhere.
    User,
    /// Everyone who checks the settings out.
    Team,
}

pub(super) fn install(place: &Places, program: Program, whom: For) -> Outcome {
    let user = whom == For::User;
    let settings = program.settings(place, user)?;
    let binary = std::env::current_exe().and_then(|path| path.canonicalize());
    let binary = binary.map_err(|error| Failure::of(Code::HostFailed, &error))?;
    let edit = settings.with_hook(&match whom {
        For::Checkout | For::User => BinaryFound::At(binary),
        For::Team => BinaryFound::OnPath,
    })?;
    if !user {
        place.prepare_changes()?;
    }
    settings.write(&edit)?;
    let mut words = format!("installed in {}\n", settings.file.display());
    if program == Program::Codex {
        words += "Codex runs no hook before you trust it: start codex, and see /hooks\n";
    }
    if whom == For::Team {
        words += "commit that file: it calls the provost in PATH, and refuses without one\n";
    }
    words += &format!("next: provost hook selftest {}\n", program.name());
    Ok(Answer::data(json!({ "file": settings.file }), words))
}

pub(super) fn uninstall(place: &Places, program: Program, user: bool) -> Outcome {
    let settings = program.settings(place, user)?;
    let done = settings.uninstall()?;
    let words = match done {
        Uninstalled::Restored => "removed the hook; the settings are as they were\n",
        Uninstalled::OnlyOurs => {
            "removed the hook; the settings were changed since, so the rest stays as it is\n"
        }
        Uninstalled::Nothing => "no hook of provost is installed there\n",
    };
    let json = json!({ "file": settings.file, "removed": done != Uninstalled::Nothing });
    Ok(Answer::data(json, words))
}

/// Where our hooks are installed, as text and as rows.
pub(super) fn standing(place: &Places) -> Result<(String, Vec<Value>), Failure> {
    let (mut text, mut rows) = (String::new(), Vec::new());
    for program in [Program::Claude, Program::Codex] {
        for user in [false, true] {
            let Ok(settings) = program.settings(place, user) else {
                continue;
            };
            let found = settings.command()?;
            let word = if found.is_some() {
                "installed"
            } else {
                "not installed"
            };
            let whose = if user { "yours" } else { "of this checkout" };
            text += &format!("  {:11} {word} ({whose})\n", program.name());
            let agent = program.name();
            rows.push(
                json!({ "agent": agent, "file": settings.file, "user": user, "standing": word }),
            );
        }
    }
    Ok((text, rows))
}

/// Sends events through the installed command, and expects that the bad ones are refused.
pub(super) fn selftest(place: &Places, selftest: &Selftest) -> Outcome {
    let settings = selftest.program.settings(place, selftest.user)?;
    let name = selftest.program.name();
    let Some(command) = settings.command()? else {
        let reason = format!("no hook is installed in {}", settings.file.display());
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
        let got = agent_settings::ask(&command, top, &input);
        let got = got.map_err(|error| super::broken(&error, &settings.file))?;
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
