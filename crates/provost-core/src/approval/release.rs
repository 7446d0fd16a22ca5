//! What a person is asked who takes a lease away from a run that has it.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Person;
use crate::json;
use crate::lease::{Lease, Owner};
use crate::object::sha256;
use crate::record::{Event, Level};
use crate::scope::Scope;

/// Before the lease is taken away.
const APPROVED: &str = "LEASE_RELEASE_APPROVED";
/// After it.
const RELEASED: &str = "LEASE_RELEASED";

/// The lease that is to be taken away, without what changes while it is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Release<'a> {
    pub run_id: &'a str,
    /// Its number: a later lease of the same run has another one.
    pub fence: u64,
    /// What it covers.
    pub scope: &'a Scope,
    /// The process that holds it.
    pub owner: &'a Owner,
    /// Since when, in milliseconds since 1970.
    pub granted_at: i64,
}

impl<'a> Release<'a> {
    /// The question about `lease`.
    pub fn of(lease: &'a Lease) -> Self {
        Self {
            run_id: &lease.run_id,
            fence: lease.fence,
            scope: &lease.scope,
            owner: &lease.owner,
            granted_at: lease.granted_at,
        }
    }

    /// SHA-256 of everything that is asked, in one spelling.
    pub fn digest(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        sha256(json::canonical(&value).as_bytes())
    }

    /// The record that somebody wants it taken away.
    pub fn approved(&self, by: &Person, reason: &str, ts: String) -> Event {
        let payload = json!({ "digest": self.digest(), "lease": self, "by": by,
                              "reason": reason });
        self.event(APPROVED, payload, ts)
    }

    /// The record of what came of it: whether it was still there.
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
