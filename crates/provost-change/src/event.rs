//! The events of an intent, for its ledger.

use serde_json::{Map, Value};

use provost_core::record::{Event, Level};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// It was declared and its agent may edit.
    Declared,
    /// It was declared and waits.
    Queued,
    Refused,
    /// It waited, and its agent may edit from here on.
    Promoted,
    /// The touched paths were compared with the declared ones.
    Checked,
    /// Another agent took it over.
    Recovered,
    /// Its agent finished, and got a verdict.
    Judged,
    Closed,
    /// Its time began anew.
    Reset,
}

impl Happening {
    /// Its name in the ledger and in the registry.
    pub fn name(self) -> &'static str {
        match self {
            Self::Declared => "INTENT_DECLARED",
            Self::Queued => "INTENT_QUEUED",
            Self::Refused => "INTENT_REFUSED",
            Self::Promoted => "INTENT_PROMOTED",
            Self::Checked => "INTENT_CHECKED",
            Self::Recovered => "INTENT_RECOVERED",
            Self::Judged => "FINISH_JUDGED",
            Self::Closed => "INTENT_CLOSED",
            Self::Reset => "INTENT_RESET",
        }
    }

    pub fn event(self, intent_id: &str, ts: String, facts: Value) -> Event {
        let level = match self {
            Self::Refused => Level::Warn,
            _ => Level::Info,
        };
        Event {
            ts,
            level,
            event_type: self.name().to_owned(),
            run_id: intent_id.to_owned(),
            task_id: None,
            attempt: None,
            payload: match facts {
                Value::Object(facts) => facts,
                _ => Map::new(),
            },
            trace_id: intent_id.to_owned(),
        }
    }
}
