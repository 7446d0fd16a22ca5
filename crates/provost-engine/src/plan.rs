//! Has a planner turn a request into a document, and seals the request with its result.
//!
//! # Invariants
//!
//! - Nothing that a planner proposes is carried out.
//! - The request is on disk before the planner starts; the record is sealed whatever the answer.

mod asked;
mod contract;
mod instruction;
mod split;
#[cfg(test)]
mod tests;

pub use asked::{Asked, REQUEST, Task, layout};

use crate::bundle::sealed::{RecordPredicate, SEAL};
use crate::bundle::statement::SealedVerdict;
use provost_core::agent::provider::FoundLogins;
use provost_core::bundle::report::{Sha256, Time};
use provost_core::code::Code;
use provost_core::contract::additions::AdditionsFrom;
use provost_core::contract::check::{self, Purpose, Rules};
use provost_core::contract::document::Document;
use provost_core::contract::limits::Limits;
use provost_core::gate::command::{CommandPolicy, Trust};
use provost_core::net::credential::Credential;
use provost_core::net::endpoint::Endpoint;
use provost_core::policy::Policy;
use provost_core::run::effect::{InputFile, ReadOnlyRun};
use provost_core::run::fact::{ResultFile, ReviewRun, WorkspaceChoice};
use provost_core::verdict::Verdict;
use serde::Serialize;

use crate::chain;
use crate::opening::agent::{self, OwnLogins};
use crate::opening::{self, Origin, RequestedAgent};
use crate::ports::{Bundle, Clock, PortError, Signer, Watch};

/// Runs a planner.
pub trait PlannerHost {
    /// Runs the planner of `order` until it exits or `watch` ends it, in a sandbox that passed its
    /// self-test. A planner that is a plain command gets `input` on its standard input. When the
    /// call returns, every process of the sandbox is dead.
    fn look(
        &mut self,
        order: &ReadOnlyRun,
        papers: &[InputFile],
        input: &[u8],
        watch: &mut dyn Watch,
    ) -> Result<ReviewRun, PortError>;
}

/// The plan that a user asks for.
#[derive(Debug, Clone)]
pub struct Request {
    pub plan_id: String,
    pub task: Task,
    /// The revision that the planner reads.
    pub revision: String,
    pub agent: RequestedAgent,
    /// The endpoints that are granted.
    pub net: Vec<Endpoint>,
    /// The credentials that the proxy adds, by name.
    pub credentials: Vec<Credential>,
    /// The logins that the user has for known programs.
    pub logins: FoundLogins,
    /// How workspaces are made, instead of what the policy says.
    pub workspace: Option<WorkspaceChoice>,
    /// The time limit of the planner, in seconds.
    pub timeout_sec: u64,
    pub version: String,
}

/// A request with everything that it refers to pinned.
#[derive(Debug, Clone)]
pub struct Opened {
    pub asked: Asked,
    pub policy: Policy,
}

/// Resolves and pins everything that `request` refers to.
pub fn open(origin: &dyn Origin, clock: &dyn Clock, request: Request) -> Result<Opened, PortError> {
    let base_commit = opening::base(origin, &request.revision)?;
    let base_tree = origin.tree(&base_commit)?;
    let policy = origin.policy(&base_tree)?;
    let net: Vec<String> = request.net.iter().map(ToString::to_string).collect();
    let answer = request.task.answer();
    let own = OwnLogins {
        typed: &request.credentials,
        found: &request.logins,
    };
    let planner = agent::reading_agent(&request.agent, &policy, own, &net, answer)?;
    let asked = Asked {
        plan_id: request.plan_id,
        task: request.task,
        revision: request.revision,
        base_commit,
        base_tree,
        planner,
        net,
        workspace: request.workspace.unwrap_or(policy.workspace),
        timeout_sec: request.timeout_sec,
        began: clock.timestamp(),
        version: request.version,
    };
    Ok(Opened { asked, policy })
}

/// The ports that a plan is made through.
pub struct Ports<'a> {
    /// Runs the planner.
    pub host: &'a mut dyn PlannerHost,
    /// The directory of the plan.
    pub bundle: &'a mut dyn Bundle,
    pub signer: &'a dyn Signer,
    pub clock: &'a dyn Clock,
    /// Can end the planner early.
    pub watch: &'a mut dyn Watch,
}

/// Result of a request.
#[derive(Debug, Clone)]
pub struct Planned {
    pub verdict: Verdict,
    /// The document, if the answer stands for one that keeps every rule.
    pub made: Option<Made>,
    /// How the planner ended, if it started.
    pub looked: Option<ReviewRun>,
}

/// The document that a planner's answer stands for.
#[derive(Debug, Clone)]
pub enum Made {
    Contract(Box<Document>),
    Chain(Box<chain::Document>),
}

/// Makes the plan, and seals the request with its result.
pub fn plan(ports: &mut Ports<'_>, opened: &Opened) -> Result<Planned, PortError> {
    let asked = &opened.asked;
    put(ports.bundle, layout::REQUEST, asked)?;
    let limits = Limits::of(&opened.policy.limits, &opened.policy.limits);
    let paper = asked.paper();
    let input = paper.bytes.clone();
    let mut order = asked.look(limits);
    order.loopback = !opened.policy.loopback_off;
    let looked = ports.host.look(&order, &[paper], &input, ports.watch);
    let planned = match looked {
        Err(error) => Planned {
            verdict: error.verdict(),
            made: None,
            looked: None,
        },
        Ok(looked) => {
            put(ports.bundle, layout::LOOKED, &looked)?;
            if let ResultFile::Text(text) = &looked.run.result {
                ports.bundle.put(layout::ANSWER, text.as_bytes())?;
            }
            let answered = asked.answer_text(&looked);
            let now = ports.clock.millis();
            let made = answered.and_then(|text| make(opened, text, now));
            let (verdict, made) = match made {
                Ok((verdict, made)) => (verdict, Some(made)),
                Err(verdict) => (verdict, None),
            };
            Planned {
                verdict,
                made,
                looked: Some(looked),
            }
        }
    };
    match &planned.made {
        Some(Made::Contract(document)) => put(ports.bundle, layout::CONTRACT, document)?,
        Some(Made::Chain(document)) => put(ports.bundle, layout::CHAIN, document)?,
        None => {}
    }
    put(ports.bundle, layout::VERDICT, &planned.verdict)?;
    seal(ports, asked, &planned.verdict)?;
    Ok(planned)
}

/// The document that the answer `text` stands for, judged by the same rules as any other document.
fn make(opened: &Opened, text: &str, now: i64) -> Result<(Verdict, Made), Verdict> {
    let asked = &opened.asked;
    let bug = |error: &dyn std::fmt::Display| Verdict::deny(Code::Bug, error.to_string());
    let shipped = CommandPolicy::shipped().map_err(|error| bug(&error))?;
    let commands = shipped.with(opened.policy.commands.clone());
    let rules = Rules {
        policy: &commands.map_err(|error| bug(&error))?,
        trust: Trust::FromFile,
        purpose: Purpose::Run,
        additions: AdditionsFrom::Nowhere,
    };
    match &asked.task {
        Task::Plan { .. } => {
            let mut document = contract::contract(asked, text, now)?;
            if let Some(extension) = &mut document.x_provost {
                extension.children.clone_from(&opened.policy.case_children);
            }
            let value = serde_json::to_value(&document).map_err(|error| bug(&error))?;
            // The proposed contract refers to no file of the repository.
            let verdict = check::judge(&value, &rules, &|_| None);
            if verdict.allow {
                Ok((verdict, Made::Contract(Box::new(document))))
            } else {
                Err(verdict)
            }
        }
        Task::Split { .. } => {
            let (document, chain) = split::split(asked, text, &rules)?;
            let nodes = chain.nodes.len();
            let verdict = Verdict::allow(format!("the contract is divided into {nodes}"));
            Ok((verdict, Made::Chain(Box::new(document))))
        }
    }
}

fn put(bundle: &mut dyn Bundle, name: &str, value: &impl Serialize) -> Result<(), PortError> {
    let text = serde_json::to_vec_pretty(value).map_err(|error| PortError::of(Code::Bug, error))?;
    bundle.put(name, &text)
}

fn seal(ports: &mut Ports<'_>, asked: &Asked, verdict: &Verdict) -> Result<(), PortError> {
    let (kind, id) = (asked.task.record(), asked.plan_id.clone());
    let predicate = RecordPredicate {
        kind,
        id,
        verdict: SealedVerdict {
            allow: verdict.allow,
            code: verdict.code,
        },
        sealed_at: time(ports.clock)?,
    };
    seal_record(ports.bundle, ports.signer, predicate)
}

/// The time, as statements write it.
pub(crate) fn time(clock: &dyn Clock) -> Result<Time, PortError> {
    Time::try_from(clock.timestamp()).map_err(|error| PortError::of(Code::Bug, error))
}

/// Signs a statement about every file of `bundle`.
pub(crate) fn seal_record(
    bundle: &mut dyn Bundle,
    signer: &dyn Signer,
    predicate: RecordPredicate,
) -> Result<(), PortError> {
    bundle.tidy()?;
    let mut files = Vec::new();
    for kept in bundle.list()? {
        let digest = Sha256::try_from(kept.sha256);
        let digest = digest.map_err(|error| PortError::of(Code::Bug, error))?;
        files.push((kept.name, digest));
    }
    let envelope = signer.sign(predicate.state(files).as_bytes())?;
    bundle.put(SEAL, &envelope)
}
