//! The Temporal server: connections, workers, and what a submitter asks.

use std::sync::Arc;
use std::time::Duration;

use provost_core::code::Code;
use provost_ticket::course::{Course, CourseEnd};
use temporalio_client::errors::WorkflowStartError;
use temporalio_client::{
    Client, ClientOptions, Connection, ConnectionOptions, WorkflowCancelOptions,
    WorkflowGetResultOptions, WorkflowIdConflictPolicy, WorkflowIdReusePolicy,
    WorkflowQueryOptions, WorkflowStartOptions,
};
use temporalio_common::telemetry::{Logger, TelemetryOptions};
use temporalio_sdk::runtime::RuntimeOptions;
use temporalio_sdk::runtime::worker_tuner::{FixedSizeSlotSupplier, TunerHolder};
use temporalio_sdk::{Runtime, Worker, WorkerOptions};

use crate::failure::{FleetFailure, FleetResult};
use crate::flows::{CONTROL, LANDING, RunFlow, RunOrder, ScopeFlow, pool_queue};
use crate::metrics::Metrics;
use crate::settings::FleetSettings;
use crate::work::{Executor, LanderWork, LeaseAsker};

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most runs that wait for a lease at one control process.
const ASKERS: usize = 1_000;

fn away(settings: &FleetSettings, error: impl std::fmt::Display) -> FleetFailure {
    let reason = format!("the Temporal server at {}: {error}", settings.server);
    FleetFailure::new(Code::FleetUnreachable, reason).hint("provost explain FLEET_UNREACHABLE")
}

pub async fn connect(settings: &FleetSettings) -> FleetResult<Client> {
    let target = settings.server.parse::<temporalio_client::Url>();
    let target = target.map_err(|error| away(settings, error))?;
    let options = ConnectionOptions::new(target)
        .identity(format!("provost-fleet@{}", settings.name))
        .connect_timeout(PATIENCE)
        .build();
    let connection = tokio::time::timeout(PATIENCE, Connection::connect(options)).await;
    let connection = connection.map_err(|_| away(settings, "no answer in time"))?;
    let connection = connection.map_err(|error| away(settings, error))?;
    let options = ClientOptions::new(settings.namespace.clone()).build();
    Client::new(connection, options).map_err(|error| away(settings, error))
}

/// Starts a run; the server takes each id once, for ever.
pub async fn start(settings: &FleetSettings, order: &RunOrder) -> FleetResult<()> {
    let options = WorkflowStartOptions::new(CONTROL, order.run.clone())
        .id_reuse_policy(WorkflowIdReusePolicy::RejectDuplicate)
        .id_conflict_policy(WorkflowIdConflictPolicy::Fail)
        .build();
    let started = connect(settings).await?;
    let started = started
        .start_workflow(RunFlow::run, order.clone(), options)
        .await;
    match started {
        Ok(_) => Ok(()),
        Err(WorkflowStartError::AlreadyStarted { .. }) => {
            let reason = format!("{} was submitted before", order.run);
            let hint = format!("provost-fleet status {}", order.run);
            Err(FleetFailure::new(Code::TicketDuplicate, reason).hint(hint))
        }
        Err(error) => Err(away(settings, error)),
    }
}

/// Waits for the end of a run.
pub async fn end_of(settings: &FleetSettings, run: &str) -> FleetResult<CourseEnd> {
    loop {
        let client = connect(settings).await?;
        let handle = client.get_workflow_handle::<RunFlow>(run.to_owned());
        let result = handle.get_result(WorkflowGetResultOptions::default());
        // Else asked again with a new connection, as the server may have been restarted.
        if let Ok(end) = tokio::time::timeout(Duration::from_secs(30), result).await {
            return end.map_err(|error| away(settings, error));
        }
    }
}

/// Where a run stands.
pub async fn course(settings: &FleetSettings, run: &str) -> FleetResult<Course> {
    let client = connect(settings).await?;
    let handle = client.get_workflow_handle::<RunFlow>(run.to_owned());
    let course = handle
        .query(RunFlow::show, (), WorkflowQueryOptions::default())
        .await;
    course.map_err(|error| away(settings, error))
}

pub async fn cancel(settings: &FleetSettings, run: &str) -> FleetResult<()> {
    let client = connect(settings).await?;
    let handle = client.get_workflow_handle::<RunFlow>(run.to_owned());
    let options = WorkflowCancelOptions::builder()
        .reason("asked for".to_owned())
        .build();
    handle
        .cancel(options)
        .await
        .map_err(|error| away(settings, error))
}

/// What a process of the fleet does.
pub enum Role {
    /// Takes runs of a pool, so many at a time.
    Worker {
        pool: String,
        slots: usize,
    },
    Lander,
}

/// Polls until the process is asked to stop; what it has begun, it finishes.
pub async fn serve(settings: FleetSettings, role: Role) -> FleetResult<()> {
    let runtime = runtime(&settings)?;
    let metrics = Arc::new(Metrics::default());
    let interval = settings.intervals.heartbeat();
    let mut workers = Vec::new();
    match role {
        Role::Worker { pool, slots } => {
            let executor = Executor {
                settings: settings.clone(),
                metrics,
            };
            let builder = WorkerOptions::new(pool_queue(&pool)).register_activities(executor);
            workers.push(
                builder
                    .tuner(tuner(slots))
                    .max_heartbeat_throttle_interval(interval)
                    .build(),
            );
        }
        Role::Lander => {
            let lander = LanderWork {
                settings: settings.clone(),
                metrics,
            };
            let builder = WorkerOptions::new(LANDING).register_activities(lander);
            workers.push(
                builder
                    .tuner(tuner(1))
                    .max_heartbeat_throttle_interval(interval)
                    .build(),
            );
            let builder = WorkerOptions::new(CONTROL)
                .register_workflow::<RunFlow>()
                .map_err(|error| away(&settings, error))?
                .register_workflow::<ScopeFlow>()
                .map_err(|error| away(&settings, error))?
                .register_activities(LeaseAsker);
            workers.push(
                builder
                    .tuner(tuner(ASKERS))
                    .max_heartbeat_throttle_interval(interval)
                    .build(),
            );
        }
    }
    let mut running = Vec::new();
    let mut stops = Vec::new();
    for options in workers {
        let client = connect(&settings).await?;
        let worker = Worker::new(&runtime, client, options);
        let worker = worker.map_err(|error| away(&settings, error))?;
        stops.push(worker.shutdown_handle());
        running.push(worker);
    }
    tokio::spawn(async move {
        // Without a signal handler the process ends at once, which costs an attempt and no more.
        let _ = tokio::signal::ctrl_c().await;
        for stop in &stops {
            stop();
        }
    });
    poll(&settings, running).await
}

fn runtime(settings: &FleetSettings) -> FleetResult<Runtime> {
    let logging = Logger::Console {
        filter: "error".to_owned(),
        format: None,
    };
    let telemetry = TelemetryOptions::builder().logging(logging).build();
    let options = RuntimeOptions::builder()
        .telemetry_options(telemetry)
        .build();
    let options = options.map_err(|error| away(settings, error))?;
    Runtime::from_current_tokio(options).map_err(|error| away(settings, error))
}

async fn poll(settings: &FleetSettings, mut running: Vec<Worker>) -> FleetResult<()> {
    let second = running.pop();
    let first = running.pop();
    let failed = |error: Box<dyn std::fmt::Display>| away(settings, error);
    match (first, second) {
        (Some(mut one), Some(mut other)) => {
            let (one, other) = tokio::join!(one.run(), other.run());
            one.map_err(|error| failed(Box::new(error)))?;
            other.map_err(|error| failed(Box::new(error)))
        }
        (None, Some(mut one)) => one.run().await.map_err(|error| failed(Box::new(error))),
        (_, None) => Ok(()),
    }
}

fn tuner(slots: usize) -> TunerHolder {
    TunerHolder::builder()
        .workflow_task_slot_supplier(FixedSizeSlotSupplier::new(50))
        .activity_task_slot_supplier(FixedSizeSlotSupplier::new(slots))
        .local_activity_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .nexus_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .build()
}
