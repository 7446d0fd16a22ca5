//! What happens to an intent after its declaration; its state is the fold over it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::intent::{Intent, ScopeStatus, State};
use crate::ports::IntentEntry;
use crate::unfinished_work::WorkBeginning;
use provost_core::checkout::Snapshot;
use provost_core::lease::Owner;
use provost_core::path::RawPath;
use provost_lens::structure::budget::Strictness;

/// What is on disk at dirty paths; `None` if it could not be read.
pub type FilesOnDisk = BTreeMap<RawPath, Option<String>>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum IntentFact {
    /// It waited, and its agent may edit from here on.
    Promoted(Box<Promotion>),
    /// Its time or its lease began anew.
    Renewed(Renewal),
    /// Another agent took it over.
    Recovered(Takeover),
    /// Its agent said that it touched these paths outside of the scope.
    Named { paths: Vec<RawPath> },
    /// The touched paths were compared with the declared ones.
    Checked { status: ScopeStatus, at: i64 },
    /// An analysis from after an edit showed a violation.
    Violated,
    /// A finish accepted it, with these dirty files of its scope.
    Accepted { files: FilesOnDisk },
    /// It ended; `left` are its dirty files if its owner gave it back.
    Closed {
        state: State,
        left: Option<FilesOnDisk>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Promotion {
    pub workspace_digest: String,
    pub snapshot: Snapshot,
    /// The unfinished work that it continues.
    pub work: Option<Continuation>,
}

/// The beginning of unfinished work, for an intent that continues it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    pub run_id: String,
    pub report_digest: String,
    pub baseline_sha256: Option<String>,
    pub beginning: WorkBeginning,
    pub strictness: Strictness,
    pub was_violated: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Renewal {
    pub state: State,
    pub edit_allowed: bool,
    pub lease_renewed_at: i64,
    pub lease_seconds: u32,
    pub ttl_seconds: u32,
    pub expires_at: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Takeover {
    pub owner: Owner,
    pub agent_label: String,
    pub agent_start_epoch: i64,
    pub lease_renewed_at: i64,
    pub edit_allowed: bool,
}

impl Intent {
    /// The intent after `fact`.
    #[must_use]
    pub fn after(mut self, fact: &IntentFact) -> Self {
        match fact {
            IntentFact::Promoted(promotion) => {
                if let Some(work) = &promotion.work {
                    self = self.continuing(work);
                }
                self.state = State::Active;
                self.edit_allowed = true;
                self.lease_renewed_at = promotion.snapshot.captured_at;
                self.workspace_digest
                    .clone_from(&promotion.workspace_digest);
                self.snapshot = Some(promotion.snapshot.clone());
            }
            IntentFact::Renewed(renewal) => {
                self.state = renewal.state;
                self.edit_allowed = renewal.edit_allowed;
                self.lease_renewed_at = renewal.lease_renewed_at;
                self.lease_seconds = renewal.lease_seconds;
                self.ttl_seconds = renewal.ttl_seconds;
                self.expires_at = renewal.expires_at;
            }
            IntentFact::Recovered(takeover) => {
                self.owner = takeover.owner.clone();
                self.agent_label.clone_from(&takeover.agent_label);
                self.agent_start_epoch = takeover.agent_start_epoch;
                self.lease_renewed_at = takeover.lease_renewed_at;
                self.edit_allowed = takeover.edit_allowed;
            }
            IntentFact::Named { paths } => self.named.extend(paths.iter().cloned()),
            IntentFact::Checked { status, at } => {
                self.scope_status = Some(*status);
                self.lease_renewed_at = self.lease_renewed_at.max(*at);
            }
            IntentFact::Violated => self.was_violated = true,
            IntentFact::Accepted { files } => self.accepted = Some(files.clone()),
            IntentFact::Closed { state, left } => {
                self.state = *state;
                self.left.clone_from(left);
            }
        }
        self
    }

    /// The intent, judged from where the work that it continues began.
    #[must_use]
    pub fn continuing(self, work: &Continuation) -> Self {
        Self {
            run_id: work.run_id.clone(),
            report_digest: work.report_digest.clone(),
            baseline_sha256: work.baseline_sha256.clone(),
            carried: Some(work.beginning.clone()),
            strictness: self.strictness.max(work.strictness),
            was_violated: work.was_violated,
            ..self
        }
    }

    /// The intent after `fact`, and the entry that records it.
    pub fn change(&self, fact: IntentFact) -> (Self, IntentEntry) {
        let after = self.clone().after(&fact);
        let intent_id = self.intent_id.clone();
        (after, IntentEntry::Changed { intent_id, fact })
    }

    /// The same for its end.
    pub fn close(&self, state: State) -> (Self, IntentEntry) {
        self.change(IntentFact::Closed { state, left: None })
    }
}
