//! The activities: everything that reaches the world. Each blocks a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use provost_core::code::Code;
use provost_ticket::course::{AttemptEnd, AttemptReport, LandingEnd};
use provost_ticket::fence::Fence;
use provost_ticket::scope_leases::{ScopeAnswer, ScopeLeases, ScopeRequest};
use provost_ticket::ticket;
use serde::{Deserialize, Serialize};
use temporalio_client::{
    Client, WorkflowDescribeOptions, WorkflowIdConflictPolicy, WorkflowQueryOptions,
    WorkflowSignalOptions, WorkflowUpdateWithStartOptions,
};
use temporalio_macros::activities;
use temporalio_sdk::ApplicationFailure;
use temporalio_sdk::activities::{ActivityContext, ActivityError};

use crate::attempt::{self, AttemptOrder, AttemptWatch, JudgeAgain};
use crate::failure::FleetFailure;
use crate::flows::{CONTROL, RunFlow, ScopeFlow, scope_id};
use crate::landing::{self, LandingOrder};
use crate::metrics::Metrics;
use crate::settings::{FleetSettings, Intervals};

/// Between the attempts of two judgements of one run: their fences must differ.
const ATTEMPTS_OF_ONE: u32 = 100;

/// How often a waiting run looks whether the holders of leases still run, in polls.
const HOLDER_CHECK: u32 = 5;

/// The word of the server for a workflow that has not ended.
const RUNNING: i32 = 1;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseJob {
    pub repository: String,
    pub request: ScopeRequest,
    pub intervals: Intervals,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecuteJob {
    pub ticket: String,
    /// The number of the lease.
    pub number: u64,
    /// How often the result was judged again before.
    pub rejudged: u32,
    pub again: Option<JudgeAgain>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LandJob {
    pub ticket: String,
    pub run: String,
    pub repository: String,
    pub report: AttemptReport,
}

/// One type for each queue, because only a whole type can be registered.
pub struct LeaseAsker;

pub struct Executor {
    pub settings: FleetSettings,
    pub metrics: Arc<Metrics>,
}

pub struct LanderWork {
    pub settings: FleetSettings,
    pub metrics: Arc<Metrics>,
}

/// A failure that no other attempt can mend.
fn final_failure(failure: &FleetFailure) -> ActivityError {
    let built = ApplicationFailure::builder(failure.to_string()).type_name("Final".to_owned());
    ActivityError::application(built.non_retryable(true).build())
}

#[activities]
impl LeaseAsker {
    /// Asks until the lease is granted; starts the scope workflow where this is the first request.
    #[activity(name = "lease")]
    pub async fn lease(ctx: ActivityContext, job: LeaseJob) -> Result<u64, ActivityError> {
        let mut polls = 0;
        loop {
            // Sent with every look: cancellation comes back with its answer.
            ctx.record_heartbeat(polls).await?;
            match ask(&ctx.client(), &job).await {
                Ok(ScopeAnswer::Granted { number }) => return Ok(number),
                Ok(ScopeAnswer::Refused) => {
                    let reason = "too many runs wait for this repository";
                    return Err(final_failure(&FleetFailure::new(Code::LeaseHeld, reason)));
                }
                // The scope workflow may be between two runs of itself; asking again is harmless.
                Ok(ScopeAnswer::Queued { .. }) | Err(_) => {}
            }
            polls += 1;
            if polls % HOLDER_CHECK == 0 {
                release_of_ended(&ctx.client(), &job.repository).await;
            }
            tokio::select! {
                () = tokio::time::sleep(job.intervals.poll()) => {}
                () = ctx.cancelled() => return Err(ActivityError::cancelled()),
            }
        }
    }
}

async fn ask(client: &Client, job: &LeaseJob) -> Result<ScopeAnswer, String> {
    let policy = WorkflowIdConflictPolicy::UseExisting;
    let id = scope_id(&job.repository);
    let options = WorkflowUpdateWithStartOptions::new(CONTROL, id, policy).build();
    let (start, request) = (ScopeLeases::default(), job.request.clone());
    client
        .execute_update_with_start_workflow(
            ScopeFlow::run,
            start,
            ScopeFlow::acquire,
            request,
            options,
        )
        .await
        .map_err(|error| error.to_string())
}

/// Takes leases from runs that have ended without giving them back: a terminated one says nothing.
async fn release_of_ended(client: &Client, repository: &str) {
    let scope = client.get_workflow_handle::<ScopeFlow>(scope_id(repository));
    let Ok(leases) = scope
        .query(ScopeFlow::show, (), WorkflowQueryOptions::default())
        .await
    else {
        return;
    };
    let holders: Vec<String> = leases.holders().map(str::to_owned).collect();
    for run in holders {
        let handle = client.get_workflow_handle::<RunFlow>(run.clone());
        let Ok(seen) = handle.describe(WorkflowDescribeOptions::default()).await else {
            continue;
        };
        let info = seen.raw().workflow_execution_info.clone();
        if info.is_some_and(|info| info.status != RUNNING) {
            let options = WorkflowSignalOptions::default();
            // If it does not arrive, the next look finds the same.
            let _ = scope.signal(ScopeFlow::release, run, options).await;
        }
    }
}

#[activities]
impl Executor {
    /// Has `provost` do the work, and sends heartbeats from a thread of its own.
    #[activity(name = "execute")]
    pub async fn execute(
        self: Arc<Self>,
        ctx: ActivityContext,
        job: ExecuteJob,
    ) -> Result<AttemptReport, ActivityError> {
        let order = AttemptOrder {
            fence: Fence {
                lease: job.number,
                attempt: job.rejudged * ATTEMPTS_OF_ONE + ctx.info().attempt,
            },
            ticket: job.ticket,
            again: job.again,
        };
        let watch = AttemptWatch::default();
        let over = Arc::new(AtomicBool::new(false));
        beat(&ctx, &watch, &over, self.settings.intervals.heartbeat());
        let cancelling = tokio::spawn({
            let (ctx, cancelled) = (ctx.clone(), Arc::clone(&watch.cancelled));
            async move {
                ctx.cancelled().await;
                cancelled.store(true, Ordering::SeqCst);
            }
        });
        let settings = self.settings.clone();
        let text = order.ticket.clone();
        let fence = order.fence;
        let made = tokio::task::spawn_blocking(move || attempt::make(&settings, &order, &watch));
        let made = made.await;
        over.store(true, Ordering::SeqCst);
        cancelling.abort();
        let report = match made {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(failure)) => self.without_result(&failure, &text, fence),
            Err(error) => Err(error.into()),
        };
        self.metrics.attempt(&self.settings, report.as_ref().ok());
        report
    }
}

impl Executor {
    /// A refused ticket is a result; what another worker may be able to do is a loss.
    fn without_result(
        &self,
        failure: &FleetFailure,
        ticket: &str,
        fence: Fence,
    ) -> Result<AttemptReport, ActivityError> {
        let is_refusal = matches!(failure.code, Code::TicketRefused | Code::ContractInvalid);
        match ticket::unverified(ticket.as_bytes()) {
            Ok((base, _)) if is_refusal => Ok(AttemptReport {
                end: AttemptEnd::Refused(failure.verdict()),
                fence,
                worker: self.settings.name.clone(),
                bundle: None,
                base,
            }),
            Ok(_) => Err(failure.clone().into()),
            Err(_) => Err(final_failure(failure)),
        }
    }
}

/// Sends the head of the ledger until `over`, from a thread that nothing of the attempt can block.
fn beat(ctx: &ActivityContext, watch: &AttemptWatch, over: &Arc<AtomicBool>, interval: Duration) {
    let (ctx, watch, over) = (ctx.clone(), watch.clone(), Arc::clone(over));
    let runtime = tokio::runtime::Handle::current();
    std::thread::spawn(move || {
        while !over.load(Ordering::SeqCst) {
            let ledger = watch.ledger.lock().ok().and_then(|it| it.clone());
            let head = ledger.and_then(|path| attempt::ledger_head(&path));
            if runtime.block_on(ctx.record_heartbeat(head)).is_err() {
                return;
            }
            std::thread::sleep(interval);
        }
    });
}

#[activities]
impl LanderWork {
    /// Lands a result, or says why not.
    #[activity(name = "land")]
    pub async fn land(
        self: Arc<Self>,
        ctx: ActivityContext,
        job: LandJob,
    ) -> Result<LandingEnd, ActivityError> {
        let over = Arc::new(AtomicBool::new(false));
        let interval = self.settings.intervals.heartbeat();
        beat(&ctx, &AttemptWatch::default(), &over, interval);
        let scope = ctx.client();
        let scope = scope.get_workflow_handle::<ScopeFlow>(scope_id(&job.repository));
        let leases = scope
            .query(ScopeFlow::show, (), WorkflowQueryOptions::default())
            .await;
        let end = match leases {
            Ok(leases) => {
                let order = LandingOrder {
                    held: leases.number_of(&job.run),
                    ticket: job.ticket,
                    report: job.report,
                };
                let settings = self.settings.clone();
                let done = tokio::task::spawn_blocking(move || landing::land(&settings, &order));
                match done.await {
                    Ok(end) => end.map_err(ActivityError::from),
                    Err(error) => Err(error.into()),
                }
            }
            Err(error) => Err(error.into()),
        };
        over.store(true, Ordering::SeqCst);
        self.metrics.landing(&self.settings, end.as_ref().ok());
        end
    }
}
