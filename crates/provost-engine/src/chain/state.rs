//! The facts of a chain, and the state that follows from them.

use std::collections::BTreeMap;

use provost_core::code::Code;
use provost_core::exit::Exit;
use provost_core::json;
use provost_core::object::Oid;
use provost_core::record::{self, Event, Level, Record};
use provost_core::verdict::Verdict;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    #[serde(rename = "CHAIN_OPENED")]
    Opened {
        /// SHA-256 of its document.
        chain_sha256: String,
        /// The commit that nodes without needs start from.
        base_commit: Oid,
    },
    /// The user ran the chain again.
    #[serde(rename = "CHAIN_RESUMED")]
    Resumed {
        /// Whether nodes that were refused are run again.
        again: bool,
    },
    #[serde(rename = "NODE_STARTED")]
    Started {
        node: String,
        run_id: String,
        base_commit: Oid,
        /// SHA-256 of the contract with that base.
        contract_sha256: String,
        /// The agent and the reviewer of the node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hands: Option<NodeAgents>,
    },
    #[serde(rename = "NODE_ENDED")]
    Ended { node: String, end: Box<End> },
    /// The run of a node never began: its driver died first.
    #[serde(rename = "NODE_LOST")]
    Lost { node: String },
    #[serde(rename = "NODE_NOT_RUN")]
    NotRun { node: String, verdict: Verdict },
    /// The commands of the contract that was divided ran on all results together.
    #[serde(rename = "CHAIN_TESTED")]
    Tested {
        /// The commit with all results, if they can be merged.
        commit: Option<Oid>,
        verdict: Verdict,
    },
    #[serde(rename = "CHAIN_FINISHED")]
    Finished { verdict: Verdict },
}

/// The agent and the reviewer of a node, as the command line names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeAgents {
    /// Its name, or its command.
    pub agent: String,
    /// The reviewer, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// The secrets that the proxy adds, by the names of their variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub run_id: String,
    pub verdict: Verdict,
    /// The commit with exactly the candidate, if it was accepted.
    pub commit: Option<Oid>,
    /// The tree of the candidate, if there was one.
    pub tree: Option<Oid>,
    /// The last hash of the ledger, if the run is sealed.
    pub head: Option<String>,
}

impl End {
    /// Whether the verdict is about the contract, with the result that belongs to it.
    fn is_decided(&self) -> bool {
        is_final(&self.verdict) && (self.commit.is_some() || !self.verdict.allow)
    }

    /// Whether the run waits for the approval of a person.
    pub fn waits(&self) -> bool {
        self.verdict.code == Code::ApprovalNeeded
    }

    /// The commit that other nodes can start from.
    pub fn accepted(&self) -> Option<&Oid> {
        self.commit.as_ref().filter(|_| self.verdict.allow)
    }
}

/// The state of one node.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// Its run is active.
    Running {
        run_id: String,
    },
    /// The driver of its run died.
    Left {
        run_id: String,
    },
    Ended(End),
    NotRun(Verdict),
}

/// The state of a chain.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// SHA-256 of its document.
    pub chain_sha256: String,
    /// The commit that nodes without needs start from.
    pub base_commit: Oid,
    pub began: String,
    /// The nodes that were started or skipped, by name.
    pub nodes: BTreeMap<String, Standing>,
    /// The agent and the reviewer of each node that has a run.
    pub hands: BTreeMap<String, Option<NodeAgents>>,
    /// The verdict of the divided contract's commands on all results together.
    pub tested: Option<Verdict>,
    /// The verdict, once nothing is left to do.
    pub finished: Option<Verdict>,
}

/// A fact that does not fit the facts before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {seq} cannot stand there: {what}")]
pub struct Misplaced {
    pub seq: u64,
    pub what: String,
}

impl Fact {
    pub fn event(&self, id: &str, ts: String) -> Event {
        let (event_type, payload) = record::tagged(self);
        let level = match self {
            Self::NotRun { .. } | Self::Lost { .. } | Self::Resumed { .. } => Level::Warn,
            Self::Ended { end, .. } if !end.verdict.allow => Level::Error,
            Self::Tested { verdict, .. } | Self::Finished { verdict } if !verdict.allow => {
                Level::Error
            }
            _ => Level::Info,
        };
        Event {
            ts,
            level,
            event_type,
            run_id: id.to_owned(),
            task_id: None,
            attempt: None,
            payload,
            trace_id: id.to_owned(),
        }
    }
}

/// Whether `verdict` is about the work. What another run, the machine or the user prevented is
/// tried again.
pub fn is_final(verdict: &Verdict) -> bool {
    match verdict.exit() {
        Exit::Yes => true,
        Exit::No => verdict.code != Code::Cancelled,
        _ => false,
    }
}

impl State {
    /// The state before any node was started.
    pub fn begun(chain_sha256: String, base_commit: Oid, began: String) -> Self {
        Self {
            chain_sha256,
            base_commit,
            began,
            nodes: BTreeMap::new(),
            hands: BTreeMap::new(),
            tested: None,
            finished: None,
        }
    }

    /// The state after `records`; `None` if the chain never began.
    pub fn fold(records: &[Record]) -> Result<Option<Self>, Misplaced> {
        let mut state: Option<Self> = None;
        for record in records {
            let misplaced = |what: String| Misplaced {
                seq: record.seq,
                what,
            };
            let fact: Result<Fact, json::ReadError> = record.event.untagged();
            let fact = fact.map_err(|error| misplaced(error.to_string()))?;
            match (&mut state, fact) {
                (
                    None,
                    Fact::Opened {
                        chain_sha256,
                        base_commit,
                    },
                ) => {
                    let began = record.event.ts.clone();
                    state = Some(Self::begun(chain_sha256, base_commit, began));
                }
                (Some(state), fact) => state.apply(fact).map_err(misplaced)?,
                (None, _) => return Err(misplaced("the chain has not begun".to_owned())),
            }
        }
        Ok(state)
    }

    /// Applies `fact`, if it fits the state.
    pub fn apply(&mut self, fact: Fact) -> Result<(), String> {
        match fact {
            Fact::Opened { .. } => return Err("the chain began before".to_owned()),
            Fact::Resumed { again } => self.reopen(again),
            Fact::Started {
                node,
                run_id,
                hands,
                ..
            } => {
                self.settle(&node, false)?;
                // The new run may have another result than the one that was tested with the others.
                self.tested = None;
                self.hands.insert(node.clone(), hands);
                self.nodes.insert(node, Standing::Running { run_id });
            }
            Fact::Ended { node, end } => {
                self.settle(&node, true)?;
                self.nodes.insert(node, Standing::Ended(*end));
            }
            Fact::Lost { node } => {
                self.settle(&node, true)?;
                self.nodes.remove(&node);
            }
            Fact::NotRun { node, verdict } => {
                self.settle(&node, false)?;
                self.nodes.insert(node, Standing::NotRun(verdict));
            }
            Fact::Tested { verdict, .. } => self.tested = Some(verdict),
            Fact::Finished { verdict } => self.finished = Some(verdict),
        }
        Ok(())
    }

    /// Refuses a fact about a node that is not active although it has to be, or the reverse.
    fn settle(&self, node: &str, under_way: bool) -> Result<(), String> {
        let standing = self.nodes.get(node);
        let is = matches!(
            standing,
            Some(Standing::Running { .. } | Standing::Left { .. })
        );
        let over = matches!(standing, Some(Standing::Ended(_) | Standing::NotRun(_)));
        if is != under_way || over {
            return Err(format!("`{node}` does not stand so"));
        }
        Ok(())
    }

    fn reopen(&mut self, again: bool) {
        self.finished = None;
        let is_decided = |it: &Verdict| {
            it.allow || (it.exit() == Exit::No && it.code != Code::Cancelled && !again)
        };
        self.tested = self.tested.take().filter(is_decided);
        let left = |run_id: String| Some(Standing::Left { run_id });
        let nodes = std::mem::take(&mut self.nodes).into_iter();
        let nodes = nodes.filter_map(|(node, standing)| {
            let standing = match standing {
                Standing::Running { run_id } | Standing::Left { run_id } => left(run_id),
                // A run without a seal is not over, whatever the fact says.
                Standing::Ended(end) if end.head.is_none() => left(end.run_id),
                Standing::Ended(end) if end.is_decided() && (end.verdict.allow || !again) => {
                    Some(Standing::Ended(end))
                }
                Standing::Ended(_) | Standing::NotRun(_) => None,
            };
            Some((node, standing?))
        });
        self.nodes = nodes.collect();
    }

    /// Why the result `tree` of the run `run_id`, sealed with `head`, does not land as the part
    /// `node`. `None` if all parts were accepted together, and exactly this result is one of them.
    pub fn withholds(&self, node: &str, run_id: &str, head: &str, tree: &Oid) -> Option<String> {
        let end = match self.nodes.get(node) {
            Some(Standing::Ended(end)) if end.run_id == run_id => end,
            _ => return Some("has another run for this part".to_owned()),
        };
        match &self.tested {
            None => return Some("has not tested its parts together yet".to_owned()),
            Some(tested) if !tested.allow => {
                return Some(format!("refused its parts together: {}", tested.reason));
            }
            Some(_) => {}
        }
        if !self.finished.as_ref().is_some_and(|verdict| verdict.allow) {
            return Some("was not accepted".to_owned());
        }
        let same = end.accepted().is_some()
            && end.head.as_deref() == Some(head)
            && end.tree.as_ref() == Some(tree);
        (!same).then(|| "accepted another result of this run".to_owned())
    }

    /// The nodes whose runs have other agents than `hands` returns for the present call. With
    /// `again`, the agents of an accepted result do not matter.
    pub fn otherwise(
        &self,
        again: bool,
        hands: impl Fn(&str) -> Option<NodeAgents>,
    ) -> Vec<(String, Option<NodeAgents>)> {
        let mut then = self.clone();
        then.reopen(again);
        let differs = |(node, standing): (&String, &Standing)| {
            let was = self.hands.get(node).cloned().flatten();
            let mut now = hands(node);
            let accepted = matches!(standing, Standing::Ended(end) if end.accepted().is_some());
            if let (Some(now), Some(was), true) = (&mut now, &was, again && accepted) {
                now.agent.clone_from(&was.agent);
            }
            let has_run = !matches!(standing, Standing::NotRun(_));
            (has_run && was != now).then(|| (node.clone(), was))
        };
        then.nodes.iter().filter_map(differs).collect()
    }
}

/// The details of an event of a chain, as text; `None` if it is none.
pub fn describe(event: &Event) -> Option<String> {
    let fact: Fact = event.untagged().ok()?;
    Some(match fact {
        Fact::Opened { base_commit, .. } => format!("from commit {}", base_commit.short()),
        Fact::Resumed { .. } => String::new(),
        Fact::Started { node, run_id, .. } => format!("{node}: {run_id}"),
        Fact::Ended { node, end } => format!("{node}: {}", end.verdict.reason),
        Fact::Lost { node } => format!("{node}: its run never began"),
        Fact::NotRun { node, verdict } => format!("{node}: {}", verdict.reason),
        Fact::Tested { verdict, .. } | Fact::Finished { verdict } => verdict.reason,
    })
}
