//! Applies one fact to a board, by the rules of rows, locks and transitions.

use crate::board::decide::Refusal;
use crate::board::delta::{Create, Delta, Reuse, Taken};
use crate::board::fact::{Assigned, Blocker, Ended, Fact, Silent, Terms};
use crate::board::lock::Release;
use crate::board::row::{Pulse, Status, TaskId};
use crate::board::transition::{self, Dependency, Facts};
use provost_core::code::Code;
use provost_core::resource::Resource;

use super::{Board, Card};

impl Board {
    /// Applies `fact`. After a refusal the board is incomplete and must be dropped.
    pub(in crate::board) fn apply(&mut self, fact: &Fact) -> Result<(), Refusal> {
        match fact {
            Fact::Assigned(assigned) => self.assign(assigned)?,
            Fact::Heartbeat { task_id, at } => self.beat(task_id, at)?,
            Fact::Ended(ended) => self.end(ended)?,
            Fact::TimedOut { late } => late.iter().try_for_each(|one| self.time_out(one))?,
            Fact::Applied {
                deltas,
                blockers,
                at,
                terms,
            } => {
                for (number, delta) in deltas.iter().enumerate() {
                    let begun = terms.iter().find(|one| one.task_id == delta.task_id);
                    let begins = delta.status == Status::InProgress && !self.ledger.knows(delta);
                    if let Some(terms) = begun.filter(|_| begins) {
                        self.accept(terms)?;
                    }
                    self.take(number, delta, blockers, at)?;
                }
            }
            Fact::Locked { task_id, resources } => self.lock(task_id, resources)?,
            Fact::Released { task_id, resources } => self.release(task_id, resources)?,
            Fact::Logged { task_id, lines } => {
                self.require_open(task_id)?;
                self.card_of(task_id).log.extend_from_slice(lines);
            }
        }
        self.ledger.advance();
        Ok(())
    }

    fn card_of(&mut self, task: &TaskId) -> &mut Card {
        self.cards.entry(task.clone()).or_default()
    }

    fn assign(&mut self, assigned: &Assigned) -> Result<(), Refusal> {
        let Assigned { owner, terms, at } = assigned;
        let task = &terms.task_id;
        let from = self.ledger.row(task).map_or(Status::Todo, |row| row.status);
        let facts = Facts {
            // Checked below, where the locks are taken: all of them, or the step is refused.
            lock_scope_active: Some(true),
            assignment_valid: Some(true),
            ..Facts::default()
        };
        let dependencies = self.dependencies(&terms.dependencies)?;
        let step = Step::new(task, from, Status::InProgress, owner);
        step.judge(dependencies, facts)?;
        self.accept(terms)?;
        let create = match self.ledger.row(task) {
            Some(_) => Create::No,
            None => Create::Yes,
        };
        let pulse = beginning(at);
        self.ledger.change(&step.delta(create, pulse))?;
        self.ledger.depend(task, &terms.dependencies);
        self.card_of(task).blocker = None;
        Ok(())
    }

    /// Takes the locks of a task that begins by these terms, or refuses.
    fn accept(&mut self, terms: &Terms) -> Result<(), Refusal> {
        let task = &terms.task_id;
        let row = self.ledger.row(task);
        if let Some(row) = row.filter(|row| row.status == Status::InProgress) {
            return Err(Refusal::Taken {
                task: task.clone(),
                owner: row.owner.clone(),
            });
        }
        let from = row.map_or(Status::Todo, |row| row.status);
        self.locks.acquire(task, from, &terms.lock_scope)?;
        self.objective.clone_from(&terms.objective);
        self.card_of(task).terms = Some(terms.clone());
        Ok(())
    }

    fn beat(&mut self, task: &TaskId, at: &str) -> Result<(), Refusal> {
        let row = self.row(task)?;
        if row.status != Status::InProgress {
            return Err(Refusal::NotInProgress {
                task: task.clone(),
                status: row.status,
            });
        }
        let step = Step::new(task, row.status, row.status, &row.owner);
        let pulse = Pulse {
            last_heartbeat_at: Some(at.to_owned()),
            ..Pulse::default()
        };
        Ok(self.ledger.change(&step.delta(Create::No, pulse))?)
    }

    fn end(&mut self, ended: &Ended) -> Result<(), Refusal> {
        self.require_open(&ended.task_id)?;
        let row = self.row(&ended.task_id)?;
        let mut step = Step::new(&ended.task_id, row.status, ended.status, &row.owner);
        step.code = ended.code;
        let facts = Facts {
            result_valid: Some(true),
            reconcile_ok: Some(true),
            ..Facts::default()
        };
        let dependencies = self.dependencies(&row.dependencies)?;
        step.judge(dependencies, facts)?;
        self.ledger
            .change(&step.delta(Create::No, Pulse::default()))?;
        self.locks.release(&ended.task_id, Release::All);
        let blocker = blocker(ended);
        let card = self.card_of(&ended.task_id);
        card.result = Some(ended.result.clone());
        card.blocker = blocker;
        Ok(())
    }

    fn time_out(&mut self, silent: &Silent) -> Result<(), Refusal> {
        let row = self.row(&silent.task_id)?;
        let mut step = Step::new(&silent.task_id, row.status, Status::Blocked, &row.owner);
        step.code = Some(Code::TaskTimeout);
        step.judge(Vec::new(), Facts::default())?;
        let pulse = Pulse {
            timed_out: Some(true),
            ..Pulse::default()
        };
        self.ledger.change(&step.delta(Create::No, pulse))?;
        self.locks.release(&silent.task_id, Release::All);
        let reason = format!("silent for more than {} s", silent.timeout_seconds);
        self.card_of(&silent.task_id).blocker = Some(Blocker {
            task_id: silent.task_id.clone(),
            code: Code::TaskTimeout,
            reason,
        });
        Ok(())
    }

    /// Applies delta number `at` of a batch.
    fn take(
        &mut self,
        at: usize,
        delta: &Delta,
        blockers: &[Blocker],
        now: &str,
    ) -> Result<(), Refusal> {
        let task = &delta.task_id;
        let before = self.ledger.row(task).cloned();
        let taken = self.ledger.step(delta, Reuse::Refuse);
        let taken = taken.map_err(delta.refused(at))?;
        if taken == Taken::Known {
            return Ok(());
        }
        let from = before.as_ref().map_or(Status::Todo, |row| row.status);
        if from == delta.status {
            // A heartbeat, a replay, or a new row in its first state.
            if !from.is_terminal() {
                self.note_origin(delta);
            }
            return Ok(());
        }
        let blocker = blockers.iter().find(|one| one.task_id == *task);
        let mut step = Step::new(task, from, delta.status, &delta.owner);
        step.code = blocker.map(|one| one.code);
        if let Some(terms) = self.cards.get(task).and_then(|card| card.terms.as_ref()) {
            self.ledger.depend(task, &terms.dependencies);
        }
        let row = self.row(task)?;
        let facts = Facts {
            lock_scope_active: self.terms(task).map(|terms| {
                let scope = &mut terms.lock_scope.iter();
                scope.all(|place| self.locks.holds(task, place))
            }),
            assignment_valid: self.terms(task).map(|_| true),
            ..Facts::default()
        };
        step.judge(self.dependencies(&row.dependencies)?, facts)?;
        if delta.status == Status::InProgress {
            let pulse = match &delta.pulse.last_heartbeat_at {
                Some(at) => beginning(at),
                None => beginning(now),
            };
            step.from = Status::InProgress;
            self.ledger.change(&step.delta(Create::No, pulse))?;
        } else if delta.status != Status::Todo {
            self.locks.release(task, Release::All);
        }
        self.note_origin(delta);
        let blocker = blocker.filter(|_| delta.status == Status::Blocked).cloned();
        self.card_of(task).blocker = blocker;
        Ok(())
    }

    fn note_origin(&mut self, delta: &Delta) {
        let card = self.card_of(&delta.task_id);
        if card.origin.is_empty() {
            card.origin.clone_from(&delta.reason);
        }
    }

    fn lock(&mut self, task: &TaskId, wanted: &[Resource]) -> Result<(), Refusal> {
        let status = self.row(task)?.status;
        let forbidden = self.terms(task).map_or(&[][..], |one| &one.forbidden_scope);
        for place in wanted {
            if let Some(forbidden) = forbidden.iter().find(|one| one.overlaps(place)) {
                return Err(Refusal::Forbidden {
                    task: task.clone(),
                    wanted: place.clone(),
                    forbidden: forbidden.clone(),
                });
            }
        }
        Ok(self.locks.acquire(task, status, wanted)?)
    }

    fn release(&mut self, task: &TaskId, places: &[Resource]) -> Result<(), Refusal> {
        let row = self.row(task)?;
        let scope = self.terms(task).map_or(&[][..], |one| &one.lock_scope);
        let needed = places.iter().find(|place| scope.contains(place));
        if let (Status::InProgress, Some(place)) = (row.status, needed) {
            return Err(Refusal::Needed {
                task: task.clone(),
                place: place.clone(),
            });
        }
        self.locks.release(task, Release::Only(places));
        Ok(())
    }

    fn dependencies(&self, list: &[TaskId]) -> Result<Vec<Dependency>, Refusal> {
        let known = |task: &TaskId| match self.ledger.row(task) {
            None => Err(Refusal::UnknownDependency(task.clone())),
            Some(row) => Ok(Dependency {
                task_id: task.clone(),
                status: row.status,
            }),
        };
        list.iter().map(known).collect()
    }
}

/// The pulse of a task that begins.
fn beginning(at: &str) -> Pulse {
    Pulse {
        last_heartbeat_at: Some(at.to_owned()),
        timed_out: Some(false),
        retry_after_ms: None,
    }
}

/// `None` unless the task ended as blocked with a code.
fn blocker(ended: &Ended) -> Option<Blocker> {
    let code = ended.code.filter(|_| ended.status == Status::Blocked)?;
    Some(Blocker {
        task_id: ended.task_id.clone(),
        code,
        reason: ended.reason.clone(),
    })
}

/// A step that the board itself takes.
struct Step<'a> {
    task: &'a TaskId,
    from: Status,
    to: Status,
    owner: String,
    code: Option<Code>,
}

impl<'a> Step<'a> {
    fn new(task: &'a TaskId, from: Status, to: Status, owner: &str) -> Self {
        Self {
            task,
            from,
            to,
            owner: owner.to_owned(),
            code: None,
        }
    }

    fn judge(&self, dependencies: Vec<Dependency>, facts: Facts) -> Result<(), Refusal> {
        let request = transition::Request {
            task_id: self.task.clone(),
            from: self.from,
            to: self.to,
            // The store reads and writes a board in one transaction, so no row changes in between.
            version: 0,
            expected_version: 0,
            owner: self.owner.clone(),
            new_owner: None,
            actor: "board".to_owned(),
            reason: "step".to_owned(),
            code: self.code,
            dependencies,
            facts,
        };
        transition::judge(&request)?;
        Ok(())
    }

    fn delta(&self, create: Create, pulse: Pulse) -> Delta {
        Delta {
            delta_id: String::new(),
            task_id: self.task.clone(),
            status: self.to,
            owner: self.owner.clone(),
            reason: String::new(),
            create,
            pulse,
        }
    }
}
