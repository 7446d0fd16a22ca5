//! Runs the steps of a case: planners and parts in sandboxes, merges by git objects.

use std::path::PathBuf;

use provost_core::approval::Widening;
use provost_core::code::Code;
use provost_core::contract::document::Document as Contract;
use provost_core::object::Oid;
use provost_core::run::refs::Kind;
use provost_core::verdict::Verdict;
use provost_engine::case::{CaseRunner, PartChange, PlannerResult};
use provost_engine::chain::{
    Came, Chain, CombinedResults, Document, Merge, MergedNeeds, NodeStart, PartRunner,
};
use provost_engine::opening::{self, RequestedAgent};
use provost_engine::plan::{Made, Task};
use provost_engine::ports::{ObserverChoice, PortError};
use provost_host::cancel_request::CancelRequest;
use provost_host::git::{Expected, GitError, Merged, Person};
use provost_host::origin::GitOrigin;

use super::super::chain::part_runner::{NodeAgents, PartThreads};
use super::super::chain::{check, refusal};
use super::super::net::Net;
use super::super::plan::{PlannerOrder, draft};
use crate::answer::Failure;
use crate::places::Places;
use crate::show::Reader;
use crate::stores;

/// How long a planner may take.
const PLANNER_SEC: u64 = 20 * 60;

/// Runs a case on this machine.
pub(super) struct CaseThreads {
    place: Places,
    case_id: String,
    planner: RequestedAgent,
    reader: Reader,
    /// When the case began, in seconds since 1970: the time of every merge.
    began: i64,
    parts: PartThreads,
}

impl CaseThreads {
    pub(super) fn new(
        case_id: &str,
        directory: PathBuf,
        planner: RequestedAgent,
        agents: NodeAgents,
        (reader, began): (Reader, i64),
    ) -> Result<Self, Failure> {
        let place = Places::find()?;
        let mut parts = PartThreads::new(Places::find()?, directory, agents, reader);
        parts.listen(CancelRequest::of(&place.root, case_id));
        Ok(Self {
            place,
            case_id: case_id.to_owned(),
            planner,
            reader,
            began,
            parts,
        })
    }

    /// Has the planner do `task`.
    fn drafted<T>(
        &mut self,
        task: Task,
        base: &str,
        take: impl FnOnce(Made) -> Option<T>,
    ) -> Result<PlannerResult<T>, PortError> {
        let net = Net::default();
        let order = PlannerOrder {
            agent: self.planner.clone(),
            net: &net,
            timeout_sec: PLANNER_SEC,
        };
        let place = Places::find().map_err(Failure::into_port_error)?;
        let drafted = draft(place, &order, task, base, self.reader);
        let drafted = drafted.map_err(Failure::into_port_error)?;
        Ok(PlannerResult {
            plan_id: drafted.plan_id,
            verdict: drafted.planned.verdict,
            document: drafted.planned.made.and_then(take),
        })
    }
}

impl PartRunner for CaseThreads {
    fn name(&mut self) -> Result<String, PortError> {
        self.parts.name()
    }

    fn join(&mut self, run_id: &str, merge: &Merge) -> Result<MergedNeeds, PortError> {
        self.parts.join(run_id, merge)
    }

    fn begin(&mut self, order: NodeStart) -> Result<(), PortError> {
        self.parts.begin(order)
    }

    fn take_up(&mut self, node: &str, run_id: &str) -> Result<(), PortError> {
        self.parts.take_up(node, run_id)
    }

    fn test(&mut self, order: &CombinedResults) -> Result<Verdict, PortError> {
        self.parts.test(order)
    }

    fn ended(&mut self) -> Result<Came, PortError> {
        self.parts.ended()
    }

    fn report(&mut self, line: &str) -> ObserverChoice {
        self.parts.report(line)
    }
}

impl CaseRunner for CaseThreads {
    fn plan(&mut self, request: &str, base: &Oid) -> Result<PlannerResult<Contract>, PortError> {
        let request = request.to_owned();
        let contract = |made| match made {
            Made::Contract(document) => Some(*document),
            Made::Chain(_) => None,
        };
        self.drafted(Task::Plan { request }, &base.to_string(), contract)
    }

    fn split(&mut self, whole: &Contract) -> Result<PlannerResult<Document>, PortError> {
        let contract = Box::new(whole.clone());
        let parts = |made| match made {
            Made::Chain(document) => Some(*document),
            Made::Contract(_) => None,
        };
        let base = whole.rollback.baseline_ref.clone();
        self.drafted(Task::Split { contract }, &base, parts)
    }

    fn check(&mut self, parts: &Document, base: &Oid) -> Result<Result<Chain, Verdict>, PortError> {
        let checked = check(&self.place, parts, base).map_err(Failure::into_port_error)?;
        Ok(checked.map_err(|problems| refusal(&problems)))
    }

    fn widenings(&mut self, contract: &Contract) -> Result<Vec<Widening>, PortError> {
        opening::beyond_policy(&GitOrigin(&self.place.repo), contract)
    }

    fn merge(&mut self, onto: &Oid, change: &PartChange) -> Result<MergedNeeds, PortError> {
        let git = |error: GitError| PortError::of(Code::GitFailed, error);
        let repo = &self.place.repo;
        let tree = repo.commit_tree(onto).map_err(git)?;
        let merged = repo.merge_tree(&change.from, &tree, &change.to);
        let tree = match merged.map_err(git)? {
            Merged::Clean(tree) => tree,
            Merged::Conflict(paths) => {
                let paths = paths.iter().map(ToString::to_string).collect();
                return Ok(MergedNeeds::Conflict(paths));
            }
        };
        let person = Person {
            name: "Provost".to_owned(),
            mail: "provost@localhost".to_owned(),
            time: self.began,
        };
        let parents = [onto.clone(), change.to.clone()];
        let message = format!("Merge a part of {}\n", self.case_id);
        let commit = repo.commit(&tree, &parents, &message, &person, &person);
        let commit = commit.map_err(git)?;
        let name = format!("{}/{commit}", Kind::Merged.of_run(&self.case_id));
        repo.keep(&name, &commit, &Expected::Any).map_err(git)?;
        Ok(MergedNeeds::Clean(commit))
    }

    fn evidence(&mut self, run_id: &str, name: &str) -> Result<Option<Vec<u8>>, PortError> {
        stores::bundle(&self.place.run(run_id)).get(name)
    }

    fn changed(&mut self, before: &Oid, after: &Oid) -> Result<Vec<String>, PortError> {
        let git = |error: GitError| PortError::of(Code::GitFailed, error);
        let repo = &self.place.repo;
        let (before, after) = (
            repo.commit_tree(before).map_err(git)?,
            repo.commit_tree(after).map_err(git)?,
        );
        let paths = repo.names(&before, &after).map_err(git)?;
        Ok(paths.iter().map(ToString::to_string).collect())
    }
}
