//! `[ask]`: how long the questions of an agent wait.

use serde::Deserialize;

use super::Flaw;
use crate::duration;
use crate::question::{AskRules, LONGEST_WAIT_SEC, Needs};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenAsk {
    wait: Option<String>,
}

impl WrittenAsk {
    /// How long a question waits, if it is said.
    pub(super) fn wait_sec(&self) -> Result<Option<u64>, Flaw> {
        let Some(text) = &self.wait else {
            return Ok(None);
        };
        let flaw = |what: &str| Flaw(format!("ask.wait: `{}`: {what}", text.escape_debug()));
        let seconds = duration::seconds(text).map_err(|error| flaw(&error))?;
        if seconds > LONGEST_WAIT_SEC {
            return Err(flaw("is more than a day"));
        }
        Ok(Some(seconds))
    }
}

pub(super) fn rules(ask: &WrittenAsk, needs: Needs) -> Result<AskRules, Flaw> {
    let defaults = AskRules::default();
    Ok(AskRules {
        wait_sec: ask.wait_sec()?.unwrap_or(defaults.wait_sec),
        needs,
        ..defaults
    })
}
