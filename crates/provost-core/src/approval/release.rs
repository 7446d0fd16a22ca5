//! The question to a person who removes the lease of a run.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Person;
use crate::json;
use crate::lease::{Lease, Owner};
use crate::object::sha256;
use crate::record::{Event, Level};
use crate::scope::Scope;

/// Recorded before the lease is removed.
const APPROVED: &str = "LEASE_RELEASE_APPROVED";
/// Recorded after it.
const RELEASED: &str = "LEASE_RELEASED";

/// The lease to be removed, without what changes while it is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Release<'a> {
    pub run_id: &'a str,
    /// A later lease of the same run has another number.
    pub fence: u64,
    pub scope: &'a Scope,
    /// The process that holds it.
    pub owner: &'a Owner,
    /// In milliseconds since 1970.
    pub granted_at: i64,
}

impl<'a> Release<'a> {
    pub fn of(lease: &'a Lease) -> Self {
        Self {
            run_id: &lease.run_id,
            fence: lease.fence,
            scope: &lease.scope,
            owner: &lease.owner,
            granted_at: lease.granted_at,
        }
    }

    /// SHA-256 of the whole question, in canonical form.
    pub fn digest(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        sha256(json::canonical(&value).as_bytes())
    }

    /// The event that a person removes the lease.
    pub fn approved(&self, by: &Person, reason: &str, ts: String) -> Event {
        let payload = json!({ "digest": self.digest(), "lease": self, "by": by,
                              "reason": reason });
        self.event(APPROVED, payload, ts)
    }

    /// The event with the result: whether the lease still existed.
    pub fn released(&self, was_there: bool, ts: String) -> Event {
        let payload = json!({ "digest": self.digest(), "was_there": was_there });
        self.event(RELEASED, payload, ts)
    }

    fn event(&self, name: &str, payload: Value, ts: String) -> Event {
        Event {
            ts,
            level: Level::Warn,
            event_type: name.to_owned(),
            run_id: self.run_id.to_owned(),
            task_id: None,
            attempt: None,
            payload: match payload {
                Value::Object(fields) => fields,
                _ => Map::new(),
            },
            trace_id: self.run_id.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::RepoPath;

    #[test]
    fn a_later_lease_is_another_question_and_a_longer_one_is_not() {
        let scope = Scope::of(vec![RepoPath::try_from("src").unwrap()]);
        let lease = Lease {
            run_id: "run_1".to_owned(),
            scope,
            owner: Owner::of_session("ann"),
            fence: 7,
            granted_at: 1,
            expires_at: 2,
        };
        let digest = |change: fn(&mut Lease)| {
            let mut lease = lease.clone();
            change(&mut lease);
            Release::of(&lease).digest()
        };
        let first = digest(|_| {});
        assert_eq!(digest(|it| it.expires_at = 9), first);
        assert_ne!(digest(|it| it.fence = 8), first);
        assert_ne!(digest(|it| it.scope = Scope::default()), first);
        assert_ne!(digest(|it| it.owner = Owner::of_session("bob")), first);
    }
}
