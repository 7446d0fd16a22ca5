//! The record of an intent, and who owns it.

pub mod fact;

use serde::{Deserialize, Serialize};

use crate::finish::verify::WithoutRun;
use crate::intent::fact::FilesOnDisk;
use crate::scope::ChangeScope;
use crate::unfinished_work::WorkBeginning;
use provost_core::checkout::Snapshot;
use provost_core::lease::Owner;
use provost_core::path::RawPath;
use provost_core::time;
use provost_core::words;
use provost_lens::structure::budget::Strictness;

/// The newest version of records that this program reads; later ones are kept and reported.
pub const VERSION: u32 = 1;

/// How long an intent lasts, in seconds: minimum, default, maximum.
pub const TTL: [u32; 3] = [60, 3600, 86_400];

/// How long a lease lasts without a renewal, in seconds: minimum, default, maximum.
pub const LEASE: [u32; 3] = [60, 300, 600];

/// How long closed records are kept, in milliseconds.
pub const RETENTION: i64 = 14 * 24 * 60 * 60 * 1000;

/// A number of seconds within `limits`; the default if the request has none.
pub fn clamp(seconds: Option<i64>, limits: [u32; 3]) -> u32 {
    let [least, usual, most] = limits;
    match seconds {
        None => usual,
        Some(seconds) => u32::try_from(seconds.clamp(0, i64::from(most)))
            .unwrap_or(least)
            .max(least),
    }
}

words! {
    /// What its events add up to. The answer of a tool is another thing.
    #[derive(Deserialize)]
    pub enum State {
        /// It holds its scope.
        Active = "active",
        /// It waits and holds nothing.
        Queued = "queued",
        /// It was accepted and cleared, or its owner cleared it.
        Clean = "clean",
        Expired = "expired",
        /// Its owner died, and a sweep closed it.
        Orphaned = "orphaned",
        /// It was refused at its start and never held anything.
        Refused = "refused",
        /// Its own agent declared another one in its place.
        Replaced = "replaced",
    }
}

impl State {
    /// Whether it can still hold files: active or queued.
    pub fn is_open(self) -> bool {
        match self {
            Self::Active | Self::Queued => true,
            Self::Clean | Self::Expired | Self::Orphaned | Self::Refused | Self::Replaced => false,
        }
    }
}

words! {
    /// The result of the last scope check; it does not change the state of the intent.
    #[derive(Deserialize)]
    pub enum ScopeStatus {
        /// Everything that was touched is declared as allowed.
        Clean = "clean",
        /// Everything that was touched is declared, some of it only as related.
        Expanded = "expanded",
        /// Something that was touched is not declared, or is forbidden.
        Violated = "violated",
    }
}

/// An intent: as it was declared, or after what happened to it since.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    pub version: u32,
    /// A unique id.
    pub intent_id: String,
    pub owner: Owner,
    /// What its agent calls itself.
    pub agent_label: String,
    /// When the session of its agent began, in seconds since 1970.
    pub agent_start_epoch: i64,
    /// The analysed root, relative to the top of the repository; empty for the top itself.
    pub root: String,
    /// The analysis it began from.
    pub run_id: String,
    /// The digest of the report of that analysis.
    pub report_digest: String,
    /// What the agent will do, as text.
    pub intent: String,
    /// What the agent expects to change, as text.
    pub expected_effects: Vec<String>,
    pub scope: ChangeScope,
    pub state: State,
    pub edit_allowed: bool,
    pub scope_status: Option<ScopeStatus>,
    /// When it was declared, in milliseconds since 1970.
    pub declared_at: i64,
    /// In milliseconds since 1970.
    pub expires_at: i64,
    pub ttl_seconds: u32,
    /// In milliseconds since 1970.
    pub lease_renewed_at: i64,
    /// How long a renewal lasts.
    pub lease_seconds: u32,
    /// By which a repeated request is recognised.
    pub request_digest: String,
    /// The digest of the checkout when it was declared.
    pub workspace_digest: String,
    /// The digest of the other live intents when it was declared.
    pub peers_digest: String,
    /// How far its scope reaches, in one word.
    pub radius_level: String,
    /// The dirty files when it was declared.
    pub snapshot: Option<Snapshot>,
    /// The least strict way in which its patch is judged.
    #[serde(default)]
    pub strictness: Strictness,
    /// Whether an analysis from after an edit showed a violation; from then on no finish without
    /// an analysis is accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_violated: bool,
    /// The digest of the baseline that its analysis found; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_sha256: Option<String>,
    /// The intent whose analysis it is judged from, because its work began there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<WorkBeginning>,
    /// Paths outside of the scope that its agent said it touched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<RawPath>,
    /// What was on disk at the dirty paths of its scope when a finish last accepted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<FilesOnDisk>,
    /// What was on disk at its dirty paths when its owner gave it back; `None` if it ended
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<FilesOnDisk>,
}

words! {
    /// The owner of an intent as a viewer sees it, and whether that owner is alive.
    #[derive(Deserialize)]
    pub enum Ownership {
        /// The viewer's own.
        OwnActive = "own_active",
        /// The viewer's own, but its lease was not renewed in time.
        OwnStale = "own_stale",
        /// Of another live agent.
        ForeignActive = "foreign_active",
        /// Of another live agent that did not renew its lease.
        ForeignStale = "foreign_stale",
        /// Of an agent that is dead.
        Recoverable = "recoverable",
        Expired = "expired",
    }
}

impl Ownership {
    /// Whether another live agent owns it.
    pub fn is_live_foreign(self) -> bool {
        matches!(self, Self::ForeignActive | Self::ForeignStale)
    }

    pub fn is_own(self) -> bool {
        matches!(self, Self::OwnActive | Self::OwnStale)
    }
}

/// Which agent asks, and when.
#[derive(Clone, Copy)]
pub struct Viewer<'a> {
    pub me: &'a Owner,
    /// In milliseconds since 1970.
    pub now: i64,
    /// Whether an owner is alive; `true` unless it is certainly dead.
    pub alive: &'a dyn Fn(&Owner) -> bool,
}

impl Intent {
    /// Checks in this order: time, owner, whether the owner is dead, lease.
    pub fn ownership(&self, viewer: &Viewer<'_>) -> Ownership {
        if viewer.now >= self.expires_at {
            return Ownership::Expired;
        }
        let fresh = viewer.now < self.lease_expires_at();
        if self.owner == *viewer.me {
            return if fresh {
                Ownership::OwnActive
            } else {
                Ownership::OwnStale
            };
        }
        if !(viewer.alive)(&self.owner) {
            return Ownership::Recoverable;
        }
        if fresh {
            Ownership::ForeignActive
        } else {
            Ownership::ForeignStale
        }
    }

    /// The intent at the time `now`: an open intent whose time is over is expired, whether or not
    /// the registry records it.
    #[must_use]
    pub fn at(self, now: i64) -> Self {
        let over = self.state.is_open() && now >= self.expires_at;
        Self {
            state: if over { State::Expired } else { self.state },
            ..self
        }
    }

    /// The strictness that counts when the agent asks for `asked`: a finish may only tighten.
    pub fn strictness(&self, asked: Option<Strictness>) -> Strictness {
        asked.map_or(self.strictness, |asked| asked.max(self.strictness))
    }

    /// What its patch gets without an analysis from after it.
    pub fn without_run(&self) -> WithoutRun {
        if self.was_violated {
            WithoutRun::Unverified
        } else {
            WithoutRun::AcceptedUnlessCode
        }
    }

    pub fn may_edit(&self) -> bool {
        self.state == State::Active && self.edit_allowed
    }

    pub fn lease_expires_at(&self) -> i64 {
        self.lease_renewed_at
            .saturating_add(i64::from(self.lease_seconds) * 1000)
    }

    /// Whether another live agent holds its scope.
    pub fn blocks(&self, viewer: &Viewer<'_>) -> bool {
        self.state == State::Active && self.ownership(viewer).is_live_foreign()
    }
}

/// A time as in payloads: UTC, whole seconds.
pub fn utc(millis: i64) -> String {
    let mut text = time::render(millis);
    // `.123Z` is always at the end.
    text.truncate(text.len().saturating_sub(5));
    text + "Z"
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn owner(pid: u32) -> Owner {
        Owner {
            host: "host".into(),
            boot: "boot".into(),
            pid_namespace: "pid:[1]".into(),
            pid,
            started: 1,
        }
    }

    /// Pid 9 is dead, every other process is alive.
    pub(crate) fn alive(owner: &Owner) -> bool {
        owner.pid != 9
    }

    pub(crate) fn intent(id: &str, pid: u32, allowed: &[&str]) -> Intent {
        Intent {
            version: VERSION,
            intent_id: id.into(),
            owner: owner(pid),
            agent_label: format!("agent {pid}"),
            agent_start_epoch: 1,
            root: String::new(),
            run_id: "run".into(),
            report_digest: "digest".into(),
            intent: "work".into(),
            expected_effects: Vec::new(),
            scope: ChangeScope::parse(allowed, &[], &[], "").unwrap(),
            state: State::Active,
            edit_allowed: true,
            scope_status: None,
            declared_at: 0,
            expires_at: 3_600_000,
            ttl_seconds: 3600,
            lease_renewed_at: 0,
            lease_seconds: 300,
            request_digest: String::new(),
            workspace_digest: String::new(),
            peers_digest: String::new(),
            radius_level: "low".into(),
            snapshot: None,
            strictness: Strictness::default(),
            was_violated: false,
            baseline_sha256: None,
            carried: None,
            named: Vec::new(),
            accepted: None,
            left: None,
        }
    }

    #[test]
    fn times_are_clamped() {
        let cases = [
            (None, TTL, 3600),
            (Some(1), TTL, 60),
            (Some(-5), TTL, 60),
            (Some(1_000_000), TTL, 86_400),
            (Some(i64::MAX), LEASE, 600),
            (Some(10), LEASE, 60),
            (Some(77), LEASE, 77),
        ];
        for (given, limits, want) in cases {
            assert_eq!(clamp(given, limits), want, "{given:?}");
        }
    }

    #[test]
    fn ownership_is_the_first_that_fits() {
        let me = owner(1);
        let cases = [
            (1, 0, Ownership::OwnActive),
            (1, 299_999, Ownership::OwnActive),
            (1, 300_000, Ownership::OwnStale),
            (2, 0, Ownership::ForeignActive),
            (2, 300_000, Ownership::ForeignStale),
            (9, 0, Ownership::Recoverable),
            (9, 3_600_000, Ownership::Expired),
            (1, 3_600_000, Ownership::Expired),
        ];
        for (pid, now, want) in cases {
            let viewer = Viewer {
                me: &me,
                now,
                alive: &alive,
            };
            assert_eq!(
                intent("i", pid, &["a"]).ownership(&viewer),
                want,
                "{pid} {now}"
            );
        }
    }

    #[test]
    fn times_are_shown_in_whole_seconds() {
        assert_eq!(utc(1_700_000_000_999), "2023-11-14T22:13:20Z");
    }
}
