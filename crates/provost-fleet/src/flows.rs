//! The two workflows. Each holds a pure value and carries out its decisions, nothing else.

use std::time::Duration;

use provost_core::scope::Scope;
use provost_ticket::course::{Course, CourseEnd, CourseEvent, CourseStep};
use provost_ticket::scope_leases::{ScopeAnswer, ScopeLeases, ScopeRequest};
use serde::{Deserialize, Serialize};
use temporalio_common::RetryPolicy;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::{
    ActivityCancellationType, ActivityExecutionError, ActivityOptions, ContinueAsNewOptions,
    SignalWorkflowOptions, SyncWorkflowContext, WorkflowCancellationToken, WorkflowContext,
    WorkflowContextView, WorkflowResult,
};

use crate::attempt::JudgeAgain;
use crate::settings::Intervals;
use crate::work::{ExecuteJob, Executor, LandJob, LanderWork, LeaseAsker, LeaseJob};

/// The queue of workflows and of what asks for leases.
pub const CONTROL: &str = "fleet/control";

/// The queue of landers.
pub const LANDING: &str = "fleet/landing";

pub fn pool_queue(pool: &str) -> String {
    format!("fleet/pool/{pool}")
}

pub fn scope_id(repository: &str) -> String {
    format!("scope/{repository}")
}

/// How many messages one run of the scope workflow takes.
const MESSAGES: u32 = 500;

/// How often a landing is tried before the run counts as lost.
const LANDINGS: u32 = 20;

/// What a run is started with. Small: everything large is at the hub.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOrder {
    /// The signed ticket.
    pub ticket: String,
    pub run: String,
    pub repository: String,
    pub pool: String,
    pub attempts: u32,
    pub scope: Scope,
    pub intervals: Intervals,
}

/// One run. Its workflow has the id of the run.
#[workflow]
pub struct RunFlow {
    order: RunOrder,
    course: Course,
}

#[workflow_methods]
impl RunFlow {
    #[init]
    fn new(_ctx: &WorkflowContextView, order: RunOrder) -> Self {
        Self {
            order,
            course: Course::default(),
        }
    }

    #[run]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<CourseEnd> {
        let order = ctx.state(|it| it.order.clone());
        let end = loop {
            let (step, rejudged) = ctx.state(|it| (it.course.next(), it.course.rejudged()));
            let job = |number, again| ExecuteJob {
                ticket: order.ticket.clone(),
                number,
                rejudged,
                again,
            };
            let event = match step {
                CourseStep::Lease => {
                    let asked = ctx
                        .execute_activity(LeaseAsker::lease, lease_job(&order), asking(&order))
                        .await;
                    asked.map_or_else(
                        |error| event_of(&error),
                        |number| CourseEvent::Granted { number },
                    )
                }
                CourseStep::Execute { number } => {
                    let done = ctx
                        .execute_activity(Executor::execute, job(number, None), long(&order))
                        .await;
                    done.map_or_else(|error| event_of(&error), CourseEvent::Executed)
                }
                CourseStep::Rejudge {
                    number,
                    from,
                    base,
                    tip,
                } => {
                    let again = JudgeAgain { from, base, tip };
                    let job = job(number, Some(again));
                    let done = ctx
                        .execute_activity(Executor::execute, job, long(&order))
                        .await;
                    done.map_or_else(|error| event_of(&error), CourseEvent::Executed)
                }
                CourseStep::Land(report) => {
                    let job = LandJob {
                        ticket: order.ticket.clone(),
                        run: order.run.clone(),
                        repository: order.repository.clone(),
                        report,
                    };
                    let done = ctx
                        .execute_activity(LanderWork::land, job, landing(&order))
                        .await;
                    done.map_or_else(|error| event_of(&error), CourseEvent::Landing)
                }
                CourseStep::Done(end) => break end,
            };
            ctx.state_mut(|it| it.course.apply(event));
        };
        // A token of its own, or a cancelled run could not give its lease back.
        let mut options = SignalWorkflowOptions::default();
        options.cancellation_token = Some(WorkflowCancellationToken::new());
        let scope = ctx.external_workflow(scope_id(&order.repository), None);
        // If it is lost, the next run that waits finds that this one has ended.
        let _ = scope
            .signal(ScopeFlow::release, order.run.clone(), options)
            .await;
        Ok(end)
    }

    #[query]
    pub fn show(&self, _ctx: &WorkflowContextView) -> Course {
        self.course.clone()
    }
}

fn event_of(error: &ActivityExecutionError) -> CourseEvent {
    if matches!(error, ActivityExecutionError::Cancelled(_)) {
        return CourseEvent::Cancelled;
    }
    let reason = match error.as_timeout() {
        Some(timeout) => format!("no worker answered in time ({:?})", timeout.timeout_type()),
        None => error
            .reason()
            .map_or_else(|| error.to_string(), ToString::to_string),
    };
    CourseEvent::Lost { reason }
}

fn heartbeat_timeout(order: &RunOrder) -> Duration {
    Duration::from_millis(order.intervals.heartbeat_timeout_ms)
}

fn lease_job(order: &RunOrder) -> LeaseJob {
    LeaseJob {
        repository: order.repository.clone(),
        request: ScopeRequest {
            run: order.run.clone(),
            scope: order.scope.clone(),
        },
        intervals: order.intervals,
    }
}

fn asking(order: &RunOrder) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_hours(168))
        .heartbeat_timeout(heartbeat_timeout(order))
        .build()
}

fn long(order: &RunOrder) -> ActivityOptions {
    // The worker has the same limit, and ends its child by it.
    let limit = Duration::from_millis(order.intervals.attempt_ms + order.intervals.hub_ms);
    ActivityOptions::with_start_to_close_timeout(limit + Duration::from_mins(1))
        .heartbeat_timeout(heartbeat_timeout(order))
        .task_queue(pool_queue(&order.pool))
        // Without this the workflow continues before the child is dead.
        .cancellation_type(ActivityCancellationType::WaitCancellationCompleted)
        .retry_policy(only_loss(order.attempts))
        .build()
}

fn landing(order: &RunOrder) -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_mins(10))
        .heartbeat_timeout(heartbeat_timeout(order))
        .task_queue(LANDING.to_owned())
        .cancellation_type(ActivityCancellationType::WaitCancellationCompleted)
        .retry_policy(only_loss(LANDINGS))
        .build()
}

/// Tries a lost attempt again. The time limit would be tried again too, if it were not named.
fn only_loss(attempts: u32) -> RetryPolicy {
    RetryPolicy::builder()
        .initial_interval(Duration::from_millis(200))
        .maximum_attempts(attempts)
        .non_retryable_error_types(vec!["TemporalTimeout:StartToClose", "Final"])
        .build()
}

/// The leases of one repository. Its workflow is named by [`scope_id`].
#[workflow]
pub struct ScopeFlow {
    leases: ScopeLeases,
    messages: u32,
}

#[workflow_methods]
impl ScopeFlow {
    #[init]
    fn new(_ctx: &WorkflowContextView, leases: ScopeLeases) -> Self {
        Self {
            leases,
            messages: 0,
        }
    }

    #[run]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<()> {
        loop {
            ctx.wait_condition(|it| it.messages >= MESSAGES).await?;
            if ctx.all_handlers_finished() {
                let leases = ctx.state(|it| it.leases.clone());
                ctx.continue_as_new(leases, ContinueAsNewOptions::default())?;
            }
        }
    }

    /// Asking again gives the same answer, because the server forgets which updates it delivered.
    #[update]
    pub fn acquire(
        &mut self,
        _ctx: &mut SyncWorkflowContext<Self>,
        request: ScopeRequest,
    ) -> ScopeAnswer {
        self.messages += 1;
        self.leases.acquire(request)
    }

    #[signal]
    #[expect(clippy::needless_pass_by_value, reason = "the form of a signal")]
    pub fn release(&mut self, _ctx: &mut SyncWorkflowContext<Self>, run: String) {
        self.messages += 1;
        self.leases.release(&run);
    }

    #[query]
    pub fn show(&self, _ctx: &WorkflowContextView) -> ScopeLeases {
        self.leases.clone()
    }
}
