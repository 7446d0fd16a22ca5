//! A machine for cases whose commits are sets of words.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use provost_core::approval::{Kind, Widening};
use provost_core::code::Code;
use provost_core::contract::additions::AdditionsFrom;
use provost_core::contract::check::{Purpose, Rules};
use provost_core::contract::document::Document as Written;
use provost_core::contract::typed::Typed;
use provost_core::gate::command::{CommandPolicy, Trust};
use provost_core::object::Oid;
use provost_core::verdict::Verdict;
use provost_engine::case::{CaseRunner, PartChange, PlannerResult};
use provost_engine::chain::{
    self, Came, Chain, CombinedResults, Document, End, Merge, MergedNeeds, Node, NodeStart,
    PartRunner,
};
use provost_engine::ports::{ObserverChoice, PortError};
use provost_engine::sim::oid;

type Words = BTreeSet<String>;

/// A run that the machine remembers: the words that it ends with.
pub(crate) struct SimRun {
    pub(crate) words: Words,
    /// Whether it judges the whole.
    pub(crate) judges: bool,
    pub(crate) trace_id: String,
}

#[derive(Default)]
pub(crate) struct SimCaseRunner {
    pub(crate) names: u32,
    pub(crate) commits: BTreeMap<Oid, Words>,
    pub(crate) runs: BTreeMap<String, SimRun>,
    pub(crate) awaited: VecDeque<(String, String)>,
    /// The parts whose first result makes the whole fail.
    pub(crate) breaks: Vec<&'static str>,
    /// The parts whose results cannot be merged until one of them is fixed.
    pub(crate) clashes: Vec<&'static str>,
    /// Whether fixes change nothing.
    pub(crate) stubborn: bool,
    /// Whether a person has to be asked.
    pub(crate) widens: bool,
    pub(crate) planned: u32,
    pub(crate) tests: u32,
}

pub(crate) fn words(all: &[&str]) -> Words {
    all.iter().map(ToString::to_string).collect()
}

pub(crate) fn passes(words: &Words) -> bool {
    !words.iter().any(|word| word.ends_with(":bad"))
}

fn verdict(passed: bool) -> Verdict {
    if passed {
        Verdict::allow("fine")
    } else {
        Verdict::deny(Code::AcceptanceFailed, "a command failed")
    }
}

impl SimCaseRunner {
    pub(crate) fn commit(&mut self, words: Words) -> Oid {
        let text: Vec<&str> = words.iter().map(String::as_str).collect();
        let id = oid(&text.join(" "));
        self.commits.insert(id.clone(), words);
        id
    }

    pub(crate) fn words(&self, commit: &Oid) -> Words {
        self.commits.get(commit).cloned().unwrap_or_default()
    }

    fn result(&self, order: &NodeStart) -> Words {
        let base: Oid = order
            .contract
            .rollback
            .baseline_ref
            .as_str()
            .try_into()
            .unwrap();
        let mut words = self.words(&base);
        let (bad, clash) = (
            format!("{}:bad", order.node),
            format!("{}:clash", order.node),
        );
        let fixes = order.contract.task_id.contains("-fix") && !self.stubborn;
        words.insert(order.node.clone());
        if fixes {
            words.remove(&bad);
            words.insert(format!("{}:fixed", order.node));
            return words;
        }
        if self.breaks.contains(&order.node.as_str()) {
            words.insert(bad);
        }
        if self.clashes.contains(&order.node.as_str()) {
            words.insert(clash);
        }
        words
    }
}

impl PartRunner for SimCaseRunner {
    fn name(&mut self) -> Result<String, PortError> {
        self.names += 1;
        Ok(format!("run_{}", self.names))
    }

    fn join(&mut self, _: &str, merge: &Merge) -> Result<MergedNeeds, PortError> {
        let mut words = self.words(&merge.first);
        for (_, other) in &merge.others {
            words.extend(self.words(other));
        }
        Ok(MergedNeeds::Clean(self.commit(words)))
    }

    fn begin(&mut self, order: NodeStart) -> Result<(), PortError> {
        let words = match &order.judges {
            Some(commit) => self.words(commit),
            None => self.result(&order),
        };
        let run = SimRun {
            words,
            judges: order.judges.is_some(),
            trace_id: order.trace_id.unwrap(),
        };
        assert!(self.runs.insert(order.run_id.clone(), run).is_none());
        self.awaited.push_back((order.node, order.run_id));
        Ok(())
    }

    fn take_up(&mut self, node: &str, run_id: &str) -> Result<(), PortError> {
        self.awaited.push_back((node.to_owned(), run_id.to_owned()));
        Ok(())
    }

    fn test(&mut self, order: &CombinedResults) -> Result<Verdict, PortError> {
        self.tests += 1;
        Ok(verdict(passes(&self.words(&order.commit))))
    }

    fn ended(&mut self) -> Result<Came, PortError> {
        let (node, run_id) = self.awaited.pop_front().unwrap();
        let Some(run) = self.runs.get(&run_id) else {
            return Ok(Came::Nothing { node });
        };
        let accepted = !run.judges || passes(&run.words);
        let words = run.words.clone();
        let verdict = verdict(accepted);
        let commit = accepted.then(|| self.commit(words));
        let end = Box::new(End {
            tree: commit.clone(),
            commit,
            head: Some("head".to_owned()),
            verdict,
            run_id,
        });
        Ok(Came::Ended { node, end })
    }

    fn report(&mut self, _: &str) -> ObserverChoice {
        ObserverChoice::Continue
    }
}

impl CaseRunner for SimCaseRunner {
    fn plan(&mut self, request: &str, _: &Oid) -> Result<PlannerResult<Written>, PortError> {
        assert_eq!(request, "Do all of it");
        self.planned += 1;
        Ok(PlannerResult {
            plan_id: "plan_1".to_owned(),
            verdict: Verdict::allow("planned"),
            document: Some(contract(&["a", "b", "c", "d"])),
        })
    }

    fn split(&mut self, whole: &Written) -> Result<PlannerResult<Document>, PortError> {
        let node = |id: &str, needs: &[&str]| Node {
            id: id.to_owned(),
            needs: needs.iter().map(ToString::to_string).collect(),
            agent: None,
            contract: Some(contract(&[id])),
            contract_file: None,
            drops: Vec::new(),
            package: None,
        };
        Ok(PlannerResult {
            plan_id: "plan_2".to_owned(),
            verdict: Verdict::allow("divided"),
            document: Some(Document {
                schema_version: 1,
                parent: Some(whole.clone()),
                max_handoffs: 10,
                nodes: vec![
                    node("a", &[]),
                    node("b", &["a"]),
                    node("c", &[]),
                    node("d", &[]),
                ],
            }),
        })
    }

    fn check(&mut self, parts: &Document, _: &Oid) -> Result<Result<Chain, Verdict>, PortError> {
        let rules = Rules {
            policy: &CommandPolicy::shipped().unwrap(),
            trust: Trust::FromFile,
            purpose: Purpose::Run,
            additions: AdditionsFrom::Nowhere,
        };
        Ok(Ok(chain::check(parts, &rules).unwrap()))
    }

    fn widenings(&mut self, contract: &Written) -> Result<Vec<Widening>, PortError> {
        let widening = Widening {
            kind: Kind::Path,
            path: "/allowed_paths/0".to_owned(),
            problem: format!("`{}` is broad", contract.allowed_paths[0]),
        };
        Ok(self.widens.then_some(widening).into_iter().collect())
    }

    fn merge(&mut self, onto: &Oid, change: &PartChange) -> Result<MergedNeeds, PortError> {
        let (from, to) = (self.words(&change.from), self.words(&change.to));
        let mut words = self.words(onto);
        words.extend(to.difference(&from).cloned());
        for gone in from.difference(&to) {
            words.remove(gone);
        }
        if words.iter().filter(|word| word.ends_with(":clash")).count() > 1 {
            return Ok(MergedNeeds::Conflict(vec!["shared".to_owned()]));
        }
        Ok(MergedNeeds::Clean(self.commit(words)))
    }

    fn evidence(&mut self, _: &str, _: &str) -> Result<Option<Vec<u8>>, PortError> {
        Ok(None)
    }

    fn changed(&mut self, before: &Oid, after: &Oid) -> Result<Vec<String>, PortError> {
        let (before, after) = (self.words(before), self.words(after));
        let path = |word: &String| {
            if word.ends_with(":clash") {
                "shared".to_owned()
            } else {
                word.clone()
            }
        };
        Ok(after.difference(&before).map(path).collect())
    }
}

fn contract(allow: &[&str]) -> Written {
    let typed = Typed {
        objective: "Do it".to_owned(),
        allow: allow.iter().map(ToString::to_string).collect(),
        accept: vec!["pytest -q".to_owned()],
        timeout_sec: 60,
        ..Typed::default()
    };
    typed.document("run", 1_767_225_600_000)
}
