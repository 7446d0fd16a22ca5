//! Decides which run may hold which paths.
//!
//! # Invariants
//!
//! - Two live leases of different runs never share a path.
//! - A run has at most one lease, and a process that did not take it does not get it.
//! - A lease counts until its time is over or its owner is known to be dead. An owner whose state
//!   cannot be determined counts as alive.
//!
//! The registry applies the result of [`decide`] in the same transaction, so that no other process
//! interrupts it. It also assigns the fencing numbers: each grant gets a larger one than every
//! grant before.

use serde::{Deserialize, Serialize};

use crate::path::RepoPath;
use crate::scope::Scope;

/// A process, identified so that no other process is ever mistaken for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    pub host: String,
    /// The boot id of the machine.
    pub boot: String,
    /// The pid namespace of `pid`.
    pub pid_namespace: String,
    pub pid: u32,
    /// When the process began, in clock ticks since boot.
    pub started: u64,
}

/// The prefix of `host` for a session, which is not a process.
const SESSION: &str = "session:";

impl Owner {
    /// A session known by a name instead of a process. There is no way to find out that it is dead,
    /// so its leases end with their time.
    pub fn of_session(name: &str) -> Self {
        Self {
            host: format!("{SESSION}{name}"),
            boot: String::new(),
            pid_namespace: String::new(),
            pid: 0,
            started: 0,
        }
    }

    /// The name of the session, or `None` for a process.
    pub fn session(&self) -> Option<&str> {
        self.host.strip_prefix(SESSION)
    }
}

/// The right of a run to write in a scope, for a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub run_id: String,
    pub scope: Scope,
    /// The process that drives the run.
    pub owner: Owner,
    /// Larger than that of every lease granted before.
    pub fence: u64,
    /// In milliseconds since 1970.
    pub granted_at: i64,
    /// When it ends unless renewed, in milliseconds since 1970.
    pub expires_at: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    pub run_id: String,
    pub scope: Scope,
    /// The process that drives the run.
    pub owner: Owner,
    /// In milliseconds since 1970.
    pub now: i64,
    /// When the lease ends unless renewed, in milliseconds since 1970.
    pub expires_at: i64,
}

/// A run that blocks a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub run_id: String,
    /// The requested paths that it holds, as its own scope names them.
    pub paths: Vec<RepoPath>,
    /// The process that drives that run.
    pub owner: Owner,
    /// When its lease ends unless renewed, in milliseconds since 1970.
    pub expires_at: i64,
}

/// Result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// The run holds the whole scope.
    Granted(Lease),
    /// Other runs hold a part of it; the run got nothing.
    Held(Vec<Holder>),
}

/// What the registry has to do about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The runs whose leases are removed first.
    pub gone: Vec<String>,
    pub answer: Answer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The run has this lease already; it keeps its fence and ends no earlier than requested.
    Own(Lease),
    /// No other run holds a part: grant a new lease with a new fence.
    Free,
    /// Other runs hold a part: grant nothing.
    Held(Vec<Holder>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("the lease names no path")]
    Empty,
    #[error("the lease would end before it begins")]
    Over,
}

impl Lease {
    /// The id of the lease, as users see it.
    pub fn id(&self) -> String {
        format!("lease-{}", self.fence)
    }

    pub fn is_live(&self, now: i64, alive: &dyn Fn(&Owner) -> bool) -> bool {
        now < self.expires_at && alive(&self.owner)
    }

    fn as_holder(&self, paths: Vec<RepoPath>) -> Holder {
        Holder {
            run_id: self.run_id.clone(),
            paths,
            owner: self.owner.clone(),
            expires_at: self.expires_at,
        }
    }
}

impl LeaseRequest {
    pub fn granted(&self, fence: u64) -> Lease {
        Lease {
            run_id: self.run_id.clone(),
            scope: self.scope.clone(),
            owner: self.owner.clone(),
            fence,
            granted_at: self.now,
            expires_at: self.expires_at,
        }
    }

    /// The part of this request that `lease` holds, if any.
    fn blocked_by(&self, lease: &Lease) -> Option<Holder> {
        if lease.run_id == self.run_id {
            let same = lease.owner == self.owner;
            return (!same).then(|| lease.as_holder(lease.scope.entries().to_vec()));
        }
        let meets = |path: &&RepoPath| Scope::of(vec![(*path).clone()]).overlaps(&self.scope);
        let paths: Vec<RepoPath> = lease
            .scope
            .entries()
            .iter()
            .filter(meets)
            .cloned()
            .collect();
        (!paths.is_empty()).then(|| lease.as_holder(paths))
    }
}

/// Decides about `request`; `held` are all present leases.
///
/// A run that asks again from the same process for the same scope gets its own lease back. For
/// another scope it gets a new lease in place of the old one, all or nothing. A run whose lease
/// another live process holds is refused like any other run, because two processes would share a
/// fence.
pub fn decide(
    request: &LeaseRequest,
    held: &[Lease],
    alive: &dyn Fn(&Owner) -> bool,
) -> Result<Decision, RequestError> {
    if request.scope.is_empty() {
        return Err(RequestError::Empty);
    }
    if request.expires_at <= request.now {
        return Err(RequestError::Over);
    }
    let (live, dead): (Vec<&Lease>, Vec<&Lease>) = held
        .iter()
        .partition(|lease| lease.is_live(request.now, alive));
    let mut gone: Vec<String> = dead.into_iter().map(|lease| lease.run_id.clone()).collect();

    let holders: Vec<Holder> = live
        .iter()
        .filter_map(|lease| request.blocked_by(lease))
        .collect();
    let own = live.iter().find(|lease| lease.run_id == request.run_id);
    let answer = match own {
        _ if !holders.is_empty() => Answer::Held(holders),
        Some(lease) if lease.scope == request.scope => {
            let mut lease = (*lease).clone();
            lease.expires_at = lease.expires_at.max(request.expires_at);
            Answer::Own(lease)
        }
        Some(lease) => {
            gone.push(lease.run_id.clone());
            Answer::Free
        }
        None => Answer::Free,
    };
    Ok(Decision { gone, answer })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(pid: u32) -> Owner {
        Owner {
            host: "host".into(),
            boot: "boot".into(),
            pid_namespace: "pid:[1]".into(),
            pid,
            started: 1,
        }
    }

    fn scope(entries: &[&str]) -> Scope {
        Scope::parse(entries).unwrap()
    }

    fn request(run_id: &str, entries: &[&str], pid: u32, now: i64) -> LeaseRequest {
        LeaseRequest {
            run_id: run_id.into(),
            scope: scope(entries),
            owner: owner(pid),
            now,
            expires_at: now + 100,
        }
    }

    /// Pid 9 is dead, every other process is alive.
    fn alive(owner: &Owner) -> bool {
        owner.pid != 9
    }

    fn check(request: &LeaseRequest, held: &[Lease]) -> String {
        match decide(request, held, &alive) {
            Err(error) => error.to_string(),
            Ok(Decision { gone, answer }) => {
                let answer = match answer {
                    Answer::Own(lease) => format!("own {} to {}", lease.fence, lease.expires_at),
                    Answer::Free => "free".into(),
                    Answer::Held(holders) => {
                        let names: Vec<String> = holders
                            .iter()
                            .map(|holder| {
                                let paths: Vec<_> =
                                    holder.paths.iter().map(RepoPath::as_str).collect();
                                format!("{} [{}]", holder.run_id, paths.join(" "))
                            })
                            .collect();
                        format!("held by {}", names.join(", "))
                    }
                };
                format!("{answer}; gone [{}]", gone.join(" "))
            }
        }
    }

    #[test]
    fn a_scope_is_free_unless_a_live_lease_of_another_run_shares_a_path() {
        let held = [
            request("a", &["src/x", "doc"], 1, 0).granted(1),
            request("b", &["tests"], 2, 0).granted(2),
            request("dead", &["lib"], 9, 0).granted(3),
        ];
        let cases = [
            (&["web"][..], 50, "free; gone [dead]"),
            (&["src"], 50, "held by a [src/x]; gone [dead]"),
            (&["src/x/deep"], 50, "held by a [src/x]; gone [dead]"),
            (&["src/xy"], 50, "free; gone [dead]"),
            (
                &["doc/a", "tests", "web"],
                50,
                "held by a [doc], b [tests]; gone [dead]",
            ),
            (&["lib"], 50, "free; gone [dead]"),
            (&["doc"], 99, "held by a [doc]; gone [dead]"),
            (&["doc"], 100, "free; gone [a b dead]"),
        ];
        for (entries, now, want) in cases {
            let request = request("new", entries, 3, now);
            assert_eq!(check(&request, &held), want, "{entries:?} at {now}");
        }
    }

    #[test]
    fn a_run_that_asks_again_keeps_its_fence_only_as_the_same_process() {
        let held = [
            request("a", &["src"], 1, 0).granted(7),
            request("b", &["doc"], 2, 0).granted(8),
        ];
        let cases = [
            ("the same", &["src"][..], 1, 50, "own 7 to 150; gone []"),
            (
                "another process",
                &["src"],
                3,
                50,
                "held by a [src]; gone []",
            ),
            (
                "elsewhere, too",
                &["web"],
                3,
                50,
                "held by a [src]; gone []",
            ),
            ("another scope", &["web"], 1, 50, "free; gone [a]"),
            (
                "a scope that is held",
                &["doc/x"],
                1,
                50,
                "held by b [doc]; gone []",
            ),
            ("too late", &["src"], 1, 100, "free; gone [a b]"),
        ];
        for (name, entries, pid, now, want) in cases {
            let request = request("a", entries, pid, now);
            assert_eq!(check(&request, &held), want, "{name}");
        }
        let resumed = [request("a", &["src"], 9, 0).granted(7)];
        let request = request("a", &["src"], 3, 50);
        assert_eq!(check(&request, &resumed), "free; gone [a]");
    }

    #[test]
    fn a_lease_never_gets_shorter_by_asking_again() {
        let held = [request("a", &["src"], 1, 50).granted(7)];
        assert_eq!(
            check(&request("a", &["src"], 1, 0), &held),
            "own 7 to 150; gone []"
        );
    }

    #[test]
    fn a_request_without_paths_or_time_is_refused() {
        let mut nothing = request("a", &["src"], 1, 0);
        nothing.scope = Scope::default();
        assert_eq!(check(&nothing, &[]), "the lease names no path");
        let mut over = request("a", &["src"], 1, 0);
        over.expires_at = 0;
        assert_eq!(check(&over, &[]), "the lease would end before it begins");
    }
}
