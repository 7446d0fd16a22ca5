//! Starts a child on the work of its parent as it is at that moment.

use provost_core::children::{
    Admitted, Asking, BrokerAnswer, ChildBase, ChildTask, admit, package_of,
};
use provost_core::code::Code;
use provost_core::object::sha256;
use provost_core::run::fact::{Fact, Names};
use provost_core::run::refs::Kind;
use provost_core::time;
use provost_core::verdict::Verdict;
use provost_engine::ports::{PortError, Watch};

use super::super::{of_run, uncaptured};
use super::{Broker, unknown_end};
use crate::capture::{self, Mode};
use crate::sandbox::stopped;
use crate::workspace;

impl Broker<'_> {
    pub(super) fn start(
        &mut self,
        task: &ChildTask,
        watch: &mut dyn Watch,
    ) -> Result<Result<BrokerAnswer, Verdict>, PortError> {
        let Some(state) = watch.state() else {
            let reason = "the contract grants no children";
            return Ok(Err(Verdict::deny(Code::ChildrenNotGranted, reason)));
        };
        // Of what is asked, so that the same request by another tool is the same.
        let asked = serde_json::to_vec(task).map_err(|error| PortError::of(Code::Bug, error))?;
        let request_sha256 = sha256(&asked);
        if let Some(known) = state.family.by_key(&task.key) {
            let child = known.start.run_id.clone();
            if known.start.request_sha256 == request_sha256 {
                return Ok(self.about(&child, watch));
            }
            let reason = format!("the key `{}` started another child: {child}", task.key);
            return Ok(Err(Verdict::deny(Code::ChildKeyReused, reason)));
        }
        if self.machine.known.scrub_text(task.task.clone()).1 > 0 {
            let reason = "the task of the child holds a secret";
            return Ok(Err(Verdict::deny(Code::SecretInContract, reason)));
        }
        let child = self.runner.name()?;
        let admitted = admit(&Asking {
            run_id: &state.names.run_id,
            opened: &state.opened,
            family: &state.family,
            task,
            request_sha256: &request_sha256,
            child: &child,
        });
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(verdict) => return Ok(Err(verdict)),
        };
        let began = time::parse(&state.began).unwrap_or_default() / 1000;
        let trace_id = state.names.trace_id.clone();
        let base = match self.base(&child, began) {
            Ok(base) => base,
            Err(verdict) => return Ok(Err(verdict)),
        };
        let admitted = match self.complete(admitted, task, &base, watch) {
            Ok(admitted) => admitted,
            Err(verdict) => return Ok(Err(verdict)),
        };
        let admitted = admitted.on(base);
        let (start, opened) = admitted.map_err(|error| PortError::of(Code::Bug, error))?;
        // From here on the share is taken, whatever happens.
        watch.note(Fact::ChildStarted(Box::new(start)))?;
        let names = Names {
            run_id: child.clone(),
            task_id: opened.contract.task_id.clone(),
            trace_id,
        };
        if let Err(error) = self.runner.begin(names, opened) {
            let member = watch
                .state()
                .and_then(|state| state.family.find(&child).cloned());
            if let Some(member) = member {
                self.end(unknown_end(&member, error.verdict()), watch)?;
            }
        }
        Ok(self.about(&child, watch))
    }

    /// Captures the work of the agent, which a ref keeps, while its processes are stopped.
    fn base(&self, child: &str, seconds: i64) -> Result<ChildBase, Verdict> {
        let no = |reason: String| Verdict::deny(Code::ChildBaseRefused, reason);
        let machine = self.machine;
        let base = &self.order.base;
        let directory = machine.places.attempt(self.order.attempt);
        let init = self.init.as_ref();
        let init = init.ok_or_else(|| no("the sandbox has no init".to_owned()))?;
        let captured = stopped::while_stopped(init, || {
            let source = workspace::left_in(&directory)
                .ok_or_else(|| PortError::new(Code::HostFailed, "the workspace is gone"))?;
            capture::capture(&machine.repo, &base.tree, &source, &of_run(), Mode::Record)
                .map_err(uncaptured)
        });
        let captured = captured.map_err(|error| no(error.to_string()))?;
        let mut captured = captured.map_err(|error| no(error.verdict().reason))?;
        if let Some(finding) = captured.findings.first() {
            let reason = format!("a tree cannot hold `{}` of the work so far", finding.path);
            return Err(no(reason));
        }
        let withheld = machine.find_secrets(&mut captured, &base.tree);
        let withheld = withheld.map_err(|error| no(error.verdict().reason))?;
        if !withheld.is_nothing() {
            return Err(no("the work so far holds a secret".to_owned()));
        }
        let message = format!("Base of {child}\n");
        let commit = machine.commit(&captured.tree, &base.commit, &message, seconds);
        let commit = commit.map_err(|error| no(error.verdict().reason))?;
        let kept = machine.point(&Kind::Base.of_run(child), &commit);
        kept.map_err(|error| no(error.verdict().reason))?;
        machine.repo.release();
        let tree = captured.tree;
        Ok(ChildBase { commit, tree })
    }

    /// Adds what the child gets of the context of its parent, and what version 1 derives.
    fn complete(
        &self,
        admitted: Admitted,
        task: &ChildTask,
        base: &ChildBase,
        watch: &dyn Watch,
    ) -> Result<Admitted, Verdict> {
        let handed = self.handed(&task.handoff, base, watch)?;
        let mut admitted = admitted.with_handoff(&task.handoff, handed)?;
        let parent = watch.state().map(|state| package_of(&state.opened));
        if let (Some(Ok(parent)), Some(child)) = (parent, admitted.package())
            && let Some(record) = self.runner.package_v1(&parent, child)
        {
            admitted.record_v1(record);
        }
        Ok(admitted)
    }
}
