//! Keeps the secrets that the host knows out of records.

use provost_core::code::Code;
use provost_core::record::Event;
use provost_core::run::fact::{Fact, Names, Opened};
use serde_json::{Map, Value};

use crate::ports::{Host, PortError};

/// The event of `fact` and the fact that it holds, both without secrets.
pub(super) fn event(
    host: &dyn Host,
    fact: Fact,
    (names, attempt, now): (&Names, u32, String),
) -> Result<(Event, Fact), PortError> {
    let mut event = fact.event(names, attempt, now);
    if !hide_all(host, &mut event.payload) {
        return Ok((event, fact));
    }
    // Gates and reports must use the same fact as the ledger.
    let fact = Fact::of(&event, 0).map_err(|error| PortError::of(Code::Bug, error))?;
    Ok((event, fact))
}

/// Refuses a run whose request contains a secret: the request is sealed unchanged.
pub(super) fn refuse_secret(host: &dyn Host, opened: &Opened) -> Result<(), PortError> {
    let wrong = |error: serde_json::Error| PortError::of(Code::Bug, error);
    let text = serde_json::to_string(opened).map_err(wrong)?;
    match host.hide(&text) {
        None => Ok(()),
        Some(_) => Err(secret_words()),
    }
}

/// The refusal of a text that contains a secret.
pub fn secret_words() -> PortError {
    let reason = "the contract or a command holds the value of a variable that is a secret, and \
                  both would be sealed";
    PortError::new(Code::SecretInContract, reason)
        .hint("name the variable instead: --credential 'https://HOST Authorization: Bearer $NAME'")
}

/// Hides secrets in every text of `fields`; true if there was one.
fn hide_all(host: &dyn Host, fields: &mut Map<String, Value>) -> bool {
    let mut hidden = false;
    for value in fields.values_mut() {
        hidden |= hide(host, value);
    }
    hidden
}

fn hide(host: &dyn Host, value: &mut Value) -> bool {
    match value {
        Value::String(text) => host.hide(text).is_some_and(|clean| {
            *text = clean;
            true
        }),
        Value::Array(items) => items.iter_mut().fold(false, |all, it| hide(host, it) | all),
        Value::Object(fields) => hide_all(host, fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
