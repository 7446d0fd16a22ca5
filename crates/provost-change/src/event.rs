//! The events of an intent, for its ledger.

use serde_json::{Map, Value};

use provost_core::record::{Event, Level};
use provost_core::words;

words! {
    pub enum IntentEvent {
        /// It was declared and its agent may edit.
        Declared = "INTENT_DECLARED",
        /// It was declared and waits.
        Queued = "INTENT_QUEUED",
        Refused = "INTENT_REFUSED",
        /// It waited, and its agent may edit from here on.
        Promoted = "INTENT_PROMOTED",
        /// The touched paths were compared with the declared ones.
        Checked = "INTENT_CHECKED",
        /// Another agent took it over.
        Recovered = "INTENT_RECOVERED",
        /// Its agent finished, and got a verdict.
        Judged = "FINISH_JUDGED",
        Closed = "INTENT_CLOSED",
        /// Its time began anew.
        Reset = "INTENT_RESET",
    }
}

impl IntentEvent {
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
