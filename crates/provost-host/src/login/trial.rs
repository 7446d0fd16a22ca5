//! Tries a login: the program itself asks its model for one word, in a sandbox.
//!
//! The program asks, because a vendor may take the token of a subscription from its own program
//! alone. The sandbox has an empty workspace, no repository and no network but the model.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use provost_core::agent::Adapted;
use provost_core::agent::event::Usage;
use provost_core::agent::launch::{self, Answer};
use provost_core::code::Code;
use provost_core::net::credential::Credential;
use provost_core::net::model_traffic::ModelTraffic;
use provost_engine::ports::PortError;
use serde::Serialize;

use super::Learned;
use crate::agent::Installed;
use crate::machine::{known, outlet_for, set_dummies, user_toolchain};
use crate::proxy::{Outlet, TokenMeter};
use crate::sandbox::{Command, Control, HOME, LauncherProgram, Mount, Profile, Scratch, Stdin};

/// How long the program and its model may take.
const SECONDS: u64 = 120;

const PROMPT: &[u8] = b"Answer with the one word ok. Use no tool.";

/// What became of one request with a login.
#[derive(Debug, Clone, Serialize)]
pub struct LoginTrial {
    /// Whether the model answered.
    pub works: bool,
    pub requests: u64,
    pub usage: Usage,
    /// Why it does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Has the program of `agent` ask its model once, with the login in `credentials`.
pub fn try_login(
    installed: &Installed,
    agent: &Adapted,
    credentials: &[Credential],
) -> Result<LoginTrial, PortError> {
    let failed = |error: std::io::Error| PortError::of(Code::HostFailed, error);
    let scratch = Scratch::make(&std::env::temp_dir()).map_err(failed)?;
    let tried = ask(installed, agent, credentials, scratch.path());
    scratch.remove();
    tried
}

fn ask(
    installed: &Installed,
    agent: &Adapted,
    credentials: &[Credential],
    scratch: &Path,
) -> Result<LoginTrial, PortError> {
    let home = scratch.join("home");
    fs::create_dir(&home).map_err(|error| PortError::of(Code::HostFailed, error))?;
    super::write_dummy(agent, &home)?;
    let mut profile = Profile::minimal();
    user_toolchain().add_to(&mut profile);
    installed.add_to(&mut profile, agent, Answer::Free);
    profile.add(Mount::Writable {
        source: home,
        target: HOME.into(),
    });
    let model = agent.provider.iter().map(|it| it.base_url.endpoint.clone());
    profile.grant(model.collect());
    set_dummies(&mut profile, credentials);
    profile.limits.wall_seconds = SECONDS;
    let command = Command {
        argv: installed.argv(&launch::argv(agent, Answer::Free)),
        stdin: Stdin::Bytes(PROMPT.to_vec()),
        stdout: scratch.join("stdout"),
        stderr: scratch.join("stderr"),
    };
    let gauge = TokenMeter::of(agent).map(Arc::new);
    let outlet = Outlet {
        gauge: gauge.clone(),
        ..outlet_for(credentials, Some(agent), &Learned::default())?
    };
    let running = LauncherProgram::own().start_with(&profile, &command, outlet, |_| Ok(()))?;
    let passed = || {
        gauge
            .as_ref()
            .map(|gauge| gauge.passed())
            .unwrap_or_default()
    };
    let ended = running.wait(&mut |_| {
        let passed = passed();
        if passed.requests == 0 && passed.trouble.is_none() {
            Control::Continue
        } else {
            Control::Cancel
        }
    })?;
    let note = gauge.as_ref().and_then(|gauge| gauge.note());
    let said = note.unwrap_or_else(|| {
        let how = ended.how;
        format!("the program asked its model for nothing: {how:?}")
    });
    let brokered: Vec<&Credential> = credentials.iter().collect();
    let (said, _) = known(&brokered).scrub_text(said);
    Ok(judged(passed(), said))
}

/// What the traffic shows; `said` is the last trouble, in words.
fn judged(passed: ModelTraffic, said: String) -> LoginTrial {
    let answered = passed.usage.tokens() > 0 && passed.estimated == 0;
    let works = passed.trouble.is_none() && answered;
    let (code, reason) = match passed.trouble {
        Some(trouble) => (Some(trouble.code), Some(trouble.reason)),
        None if works => (None, None),
        None => (Some(Code::AgentFailed), Some(said)),
    };
    LoginTrial {
        works,
        requests: passed.requests,
        usage: passed.usage,
        code,
        reason,
    }
}
