//! The leases of one repository, as a fold over requests.
//!
//! The workflow that keeps this value applies one message after the other, and carries it whole
//! into the next run of itself. The rule which scopes overlap is that of every lease of Provost.
//!
//! # Invariants
//!
//! - A number is granted once. A run that asks again gets the answer it had.
//! - A request waits behind every earlier request that it overlaps, so that none waits for ever.

use provost_core::lease::{self, Answer, Lease, LeaseRequest, Owner};
use provost_core::scope::Scope;
use serde::{Deserialize, Serialize};

/// The most runs that wait or hold a lease of one repository.
pub const MOST: usize = 4_000;

/// Leases of the fleet end when they are given back, not by themselves.
const NEVER: i64 = i64::MAX;

/// A run asks for the paths that it will write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeRequest {
    pub run: String,
    pub scope: Scope,
}

/// A run got its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    pub run: String,
    /// Greater than every number granted before.
    pub number: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeAnswer {
    Granted {
        number: u64,
    },
    /// So many requests are before this one.
    Queued {
        before: usize,
    },
    /// Too many runs wait already, or the scope is empty.
    Refused,
}

/// What a scope workflow remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeLeases {
    /// The last number that was granted.
    last: u64,
    held: Vec<Lease>,
    waiting: Vec<ScopeRequest>,
}

impl ScopeLeases {
    pub fn acquire(&mut self, request: ScopeRequest) -> ScopeAnswer {
        if let Some(number) = self.number_of(&request.run) {
            return ScopeAnswer::Granted { number };
        }
        if let Some(before) = self.position(&request.run) {
            return ScopeAnswer::Queued { before };
        }
        if request.scope.is_empty() || self.held.len() + self.waiting.len() >= MOST {
            return ScopeAnswer::Refused;
        }
        let is_behind = self
            .waiting
            .iter()
            .any(|it| it.scope.overlaps(&request.scope));
        if is_behind || !self.is_free(&request) {
            self.waiting.push(request);
            return ScopeAnswer::Queued {
                before: self.waiting.len() - 1,
            };
        }
        ScopeAnswer::Granted {
            number: self.grant(&request),
        }
    }

    /// Ends the lease or the request of `run`, and grants what becomes free.
    pub fn release(&mut self, run: &str) -> Vec<Grant> {
        self.held.retain(|lease| lease.run_id != run);
        self.waiting.retain(|request| request.run != run);
        self.grant_what_is_free()
    }

    /// The number of the lease that `run` holds.
    pub fn number_of(&self, run: &str) -> Option<u64> {
        let lease = self.held.iter().find(|lease| lease.run_id == run)?;
        Some(lease.fence)
    }

    /// The runs that hold a lease, oldest first.
    pub fn holders(&self) -> impl Iterator<Item = &str> {
        self.held.iter().map(|lease| lease.run_id.as_str())
    }

    pub fn waiting(&self) -> impl Iterator<Item = &str> {
        self.waiting.iter().map(|request| request.run.as_str())
    }

    fn position(&self, run: &str) -> Option<usize> {
        self.waiting.iter().position(|request| request.run == run)
    }

    fn grant_what_is_free(&mut self) -> Vec<Grant> {
        let mut grants = Vec::new();
        let mut still: Vec<ScopeRequest> = Vec::new();
        for request in std::mem::take(&mut self.waiting) {
            let is_behind = still.iter().any(|it| it.scope.overlaps(&request.scope));
            if is_behind || !self.is_free(&request) {
                still.push(request);
                continue;
            }
            grants.push(Grant {
                number: self.grant(&request),
                run: request.run,
            });
        }
        self.waiting = still;
        grants
    }

    fn grant(&mut self, request: &ScopeRequest) -> u64 {
        self.last += 1;
        self.held.push(as_lease_request(request).granted(self.last));
        self.last
    }

    fn is_free(&self, request: &ScopeRequest) -> bool {
        let decision = lease::decide(&as_lease_request(request), &self.held, &|_| true);
        decision.is_ok_and(|decision| decision.answer == Answer::Free)
    }
}

fn as_lease_request(request: &ScopeRequest) -> LeaseRequest {
    LeaseRequest {
        run_id: request.run.clone(),
        scope: request.scope.clone(),
        owner: Owner::of_session(&request.run),
        now: 0,
        expires_at: NEVER,
    }
}

#[cfg(test)]
mod tests;
