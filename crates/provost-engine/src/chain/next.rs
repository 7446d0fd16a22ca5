//! Decides the next step of a chain.

use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::time;
use provost_core::verdict::Verdict;
use provost_core::wording::counted;

use super::{Chain, Standing, State};

#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// This node can begin.
    Start(usize),
    /// The driver of this node's run died, and the run has to be finished.
    TakeUp(usize, String),
    /// This node cannot be run.
    PassOver(usize, Verdict),
    /// One of the active nodes has to end first.
    Wait,
    /// All nodes were accepted alone; their results have to be tested together.
    Test,
    /// Nothing is left to do.
    Finish(Verdict),
}

/// What a node starts from: one commit, and those that are merged into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    pub first: Oid,
    /// Further commits, each with its merge base.
    pub others: Vec<(Oid, Oid)>,
    /// When the chain began, in seconds since 1970.
    pub seconds: i64,
}

impl State {
    /// The next step of `chain` if `jobs` nodes may be active at once.
    ///
    /// Nodes that share a path are never active at once, whatever the document says.
    pub fn next(&self, chain: &Chain, jobs: usize) -> Next {
        let standing = |at: usize| self.nodes.get(&chain.nodes[at].id);
        let running: Vec<usize> = (0..chain.nodes.len())
            .filter(|at| matches!(standing(*at), Some(Standing::Running { .. })))
            .collect();
        let has_room = running.len() < jobs.max(1);
        for at in chain.order.iter().copied() {
            match standing(at) {
                Some(Standing::Left { run_id }) if has_room => {
                    return Next::TakeUp(at, run_id.clone());
                }
                Some(_) => continue,
                None => {}
            }
            if let Some(verdict) = self.hindrance(chain, at) {
                return Next::PassOver(at, verdict);
            }
            let needs = &chain.nodes[at].needs;
            let is_ready = needs.iter().all(|need| self.commit(chain, *need).is_some());
            let scope = &chain.nodes[at].contract.scope;
            let overlaps = |other: &usize| chain.nodes[*other].contract.scope.overlaps(scope);
            let left = |other: &usize| matches!(standing(*other), Some(Standing::Left { .. }));
            let taken = running.iter().any(overlaps)
                || (0..chain.nodes.len()).any(|other| left(&other) && overlaps(&other));
            if has_room && is_ready && !taken {
                return Next::Start(at);
            }
        }
        if !running.is_empty() {
            return Next::Wait;
        }
        let verdict = self.verdict(chain);
        if verdict.allow && chain.whole.is_some() && self.tested.is_none() {
            return Next::Test;
        }
        Next::Finish(verdict)
    }

    /// Why the node at `at` can never be run.
    fn hindrance(&self, chain: &Chain, at: usize) -> Option<Verdict> {
        chain.nodes[at].needs.iter().find_map(|need| {
            let needed = &chain.nodes[*need].id;
            let (word, verdict) = match self.nodes.get(needed)? {
                Standing::Ended(end) if end.waits() => ("not approved yet", &end.verdict),
                Standing::Ended(end) if end.accepted().is_none() => ("refused", &end.verdict),
                Standing::NotRun(verdict) => ("not run", verdict),
                _ => return None,
            };
            let reason = format!("needs `{needed}`, which was {word}: {}", verdict.code);
            Some(Verdict::deny(Code::NeedsRefused, reason))
        })
    }

    fn commit(&self, chain: &Chain, at: usize) -> Option<&Oid> {
        match self.nodes.get(&chain.nodes[at].id) {
            Some(Standing::Ended(end)) => end.accepted(),
            _ => None,
        }
    }

    /// What the node at `at` starts from, once all its needs are accepted.
    ///
    /// A need that another need started from is contained in that one. Two results are merged on
    /// the last result that both started from.
    pub fn base(&self, chain: &Chain, at: usize) -> Option<Merge> {
        self.merge(chain, &chain.nodes[at].needs)
    }

    /// All results of `chain` together, once they are accepted.
    pub fn together(&self, chain: &Chain) -> Option<Merge> {
        self.merge(chain, &chain.order)
    }

    /// The results of the nodes `needs` as one commit.
    fn merge(&self, chain: &Chain, needs: &[usize]) -> Option<Merge> {
        let seconds = time::parse(&self.began).map_or(0, |millis| millis / 1000);
        let within = |need: &usize| {
            let mut others = needs.iter().filter(|other| *other != need);
            others.any(|other| chain.behind(*other).contains(need))
        };
        let mut outer = needs.iter().copied().filter(|need| !within(need));
        let Some(first) = outer.next() else {
            return Some(Merge {
                first: self.base_commit.clone(),
                others: Vec::new(),
                seconds,
            });
        };
        let mut merge = Merge {
            first: self.commit(chain, first)?.clone(),
            others: Vec::new(),
            seconds,
        };
        let mut merged = chain.behind(first);
        merged.insert(first);
        for need in outer {
            let behind = chain.behind(need);
            let mut common = chain.order.iter().rev();
            let common = common.find(|one| behind.contains(one) && merged.contains(one));
            let base = match common {
                Some(common) => self.commit(chain, *common)?,
                None => &self.base_commit,
            };
            let commit = self.commit(chain, need)?;
            merge.others.push((base.clone(), commit.clone()));
            merged.extend(behind);
            merged.insert(need);
        }
        Some(merge)
    }

    /// The verdict on the chain: it passes only if every node was accepted.
    fn verdict(&self, chain: &Chain) -> Verdict {
        let standing = |at: &usize| self.nodes.get(&chain.nodes[*at].id);
        let refusal = chain.order.iter().find_map(|at| {
            let id = &chain.nodes[*at].id;
            match standing(at) {
                Some(Standing::Ended(end)) if end.accepted().is_some() => None,
                Some(Standing::Ended(end)) => Some((id, end.verdict.clone())),
                Some(Standing::NotRun(verdict)) => Some((id, verdict.clone())),
                _ => Some((id, Verdict::deny(Code::Bug, "was forgotten"))),
            }
        });
        let apart = self.tested.as_ref().filter(|tested| !tested.allow);
        match (refusal, apart) {
            (None, Some(tested)) => {
                let reason = format!("accepted alone, but not together: {}", tested.reason);
                Verdict::deny(tested.code, reason)
            }
            (None, None) => {
                let nodes = counted(chain.nodes.len(), "node");
                Verdict::allow(format!("{nodes}, all accepted"))
            }
            (Some((id, verdict)), _) => {
                let code = if verdict.allow {
                    Code::Bug
                } else {
                    verdict.code
                };
                Verdict::deny(code, format!("`{id}`: {}", verdict.reason))
            }
        }
    }
}
