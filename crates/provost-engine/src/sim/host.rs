//! A simulated machine with one agent, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use provost_core::change::{Change, Ignored, Node as Entry};
use provost_core::code::Code;
use provost_core::object::{self, Mode, ObjectFormat, Oid, sha256};
use provost_core::path::RawPath;
use provost_core::prepare;
use provost_core::run::fact::{
    AgentRun, Capture, Cleaned, CommandRun, CrossTrees, Ending, Layered, Placed, Probe, Probed,
    Published, ResultFile, ReviewRun, Salvage, SandboxTest, Side, Stream, TestRun, Withheld,
    WorkspaceKind,
};
use provost_core::run::refs::Kind;
use provost_core::run::{Step, effect};
use provost_core::tier::{Processes, Tier};

use serde_json::json;

use super::Power;
use crate::ports::{Control, Host, PortError, Progress, Watch};

/// The file of the bundle that every stream goes to; no simulated program prints anything.
pub(super) const LOG: &str = "ci/tests.log";

/// The files that simulated agents change.
const FILES: [&str; 4] = ["app/a", "app/b", "app/tested", "other/x"];

/// What the simulated agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Changes a file in its scope, and the tests pass.
    Honest,
    /// Changes a file outside its scope.
    Strays,
    /// Changes a file in its scope, and the tests fail.
    Breaks,
    /// Changes a file in its scope, and the tests fail until an attempt fixes it.
    BreaksOnce,
    /// Changes a file outside its scope in the attempt that is to fix the tests.
    MendsAstray,
    /// Changes a file in its scope and a test of it, and the tests pass.
    Tests,
    /// Changes nothing.
    Idles,
    /// Ends with a failure after changing a file.
    Fails,
    /// Ends with a failure after changing a file outside its scope.
    FailsAstray,
}

/// What the simulated reviewer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opinion {
    /// That the candidate is good.
    Passes,
    /// That it must not land.
    Refuses,
    /// The same, until an attempt fixes it.
    RefusesOnce,
    /// Nothing that could be parsed.
    Mumbles,
    /// That the candidate is good, and changes the tree that it reads.
    Meddles,
}

#[derive(Debug)]
pub struct SimHost {
    power: Power,
    /// What its agent does.
    pub behaviour: Behaviour,
    /// What its reviewer says.
    pub opinion: Opinion,
    /// Workspaces on disk: attempt to the file that was changed there, if any.
    pub workspaces: BTreeMap<u32, Option<&'static str>>,
    /// Refs of the repository.
    pub refs: BTreeSet<String>,
    /// How often an agent began, by attempt.
    pub agents: BTreeMap<u32, u32>,
    /// Whether the power fails whenever an agent is at work.
    pub dies_at_work: bool,
    /// What its agent leaves as its result.
    pub result: ResultFile,
    /// How its agent ends, whatever it does.
    pub ends: Option<Ending>,
    /// The step that this machine cannot do.
    pub refuses: Option<Step>,
    /// The start of the machine since which a process holds the prepared layers.
    held: Option<u32>,
}

impl SimHost {
    pub fn new(power: &Power, behaviour: Behaviour) -> Self {
        Self {
            power: power.clone(),
            behaviour,
            opinion: Opinion::Passes,
            workspaces: BTreeMap::new(),
            refs: BTreeSet::new(),
            agents: BTreeMap::new(),
            dies_at_work: false,
            result: ResultFile::Absent,
            ends: None,
            refuses: None,
            held: None,
        }
    }

    /// Refuses a sandbox whose layers no process holds.
    fn need(&self, order: &effect::Prepare) -> Result<(), PortError> {
        if order.steps.is_empty() || self.held == Some(self.power.starts()) {
            return Ok(());
        }
        Err(PortError::new(Code::Bug, "no process holds the layers"))
    }

    fn refuse(&self, step: Step) -> Result<(), PortError> {
        if self.refuses == Some(step) {
            return Err(PortError::new(Code::HostFailed, "the machine refuses"));
        }
        Ok(())
    }

    fn stream() -> Stream {
        Stream {
            file: LOG.to_owned(),
            bytes: 0,
            kept: 0,
            sha256: sha256(b""),
            redacted: 0,
            cut: false,
        }
    }
}

/// How a program ends that would exit with `status` if it is not cancelled.
fn ending(control: Control, status: i32) -> Ending {
    match control {
        Control::Continue => Ending::Exited(status),
        Control::Cancel => Ending::Cancelled,
        Control::LeaseLost => Ending::LeaseLost,
    }
}

/// An object id computed from a word.
pub fn oid(word: &str) -> Oid {
    let id = ObjectFormat::Sha256.oid(object::Kind::Blob, word.as_bytes());
    id.unwrap_or_else(|_| unreachable!("SHA-256 has no collision attack"))
}

impl Host for SimHost {
    fn keep_base(&mut self, run_id: &str, _: &Oid) -> Result<(), PortError> {
        let Self { power, refs, .. } = self;
        power.call(|| {
            refs.insert(Kind::Base.of_run(run_id));
        })
    }

    fn keep_tree(&mut self, _: &Oid, keep: &effect::Keep) -> Result<(), PortError> {
        let Self { power, refs, .. } = self;
        power.call(|| {
            refs.insert(keep.name.clone());
        })
    }

    fn prepare(
        &mut self,
        order: &effect::Prepare,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Layered>, PortError> {
        self.refuse(Step::Prepare)?;
        watch.tick(&Progress::default());
        let layer = |step: &prepare::Step| Layered {
            name: step.name.clone(),
            key: sha256(step.name.as_bytes()),
            sha256: sha256(b"layer"),
            bytes: 1,
            made: None,
        };
        let layers = self.power.call(|| order.steps.iter().map(layer).collect());
        self.held = Some(self.power.starts());
        layers
    }

    fn workspace(&mut self, order: &effect::Workspace) -> Result<Placed, PortError> {
        self.refuse(Step::Workspace)?;
        let Self {
            power, workspaces, ..
        } = self;
        power.call(|| {
            workspaces.insert(order.attempt, None);
            Placed {
                path: format!("ws/{}", order.attempt),
                kind: WorkspaceKind::Copy,
                reason: String::new(),
            }
        })
    }

    fn selftest(&mut self, order: &effect::Selftest) -> Result<SandboxTest, PortError> {
        self.refuse(Step::Selftest)?;
        self.need(&order.acceptance.prepare)?;
        self.power.call(|| SandboxTest {
            tier: Tier::default().name().to_owned(),
            processes: Processes::Own,
            landlock: None,
            sealed_gaps: Vec::new(),
            holes: Vec::new(),
            held: true,
            kernel: "sim".to_owned(),
            boot: "sim".to_owned(),
            launcher: sha256(b"launcher"),
            profile: sha256(b"profile"),
            limits: BTreeMap::new(),
            agent: order.agent.as_ref().map(|_| probed()).unwrap_or_default(),
            acceptance: probed(),
            program: None,
        })
    }

    fn agent(
        &mut self,
        agent: &effect::AgentEffect,
        watch: &mut dyn Watch,
    ) -> Result<AgentRun, PortError> {
        self.refuse(Step::Agent)?;
        self.need(&agent.prepare)?;
        if self.dies_at_work {
            self.power.fail();
        }
        let Self {
            power,
            behaviour,
            workspaces,
            agents,
            result,
            ends,
            ..
        } = self;
        let control = watch.tick(&Progress::default());
        power.call(|| {
            *agents.entry(agent.attempt).or_default() += 1;
            let fixes = agent.tree != agent.base.tree;
            let (changed, status) = match behaviour {
                Behaviour::MendsAstray if fixes => (Some("other/x"), 0),
                Behaviour::BreaksOnce if fixes => (Some("app/b"), 0),
                Behaviour::Tests => (Some("app/tested"), 0),
                Behaviour::Honest
                | Behaviour::Breaks
                | Behaviour::BreaksOnce
                | Behaviour::MendsAstray => (Some("app/a"), 0),
                Behaviour::Strays => (Some("other/x"), 0),
                Behaviour::Idles => (None, 0),
                Behaviour::Fails => (Some("app/a"), 1),
                Behaviour::FailsAstray => (Some("other/x"), 1),
            };
            workspaces.insert(agent.attempt, changed);
            AgentRun {
                ending: ends.unwrap_or(ending(control, status)),
                wall_ms: 1,
                stdout: Self::stream(),
                stderr: Self::stream(),
                result: result.clone(),
                redacted: 0,
                refused: std::collections::BTreeMap::new(),
                network: Vec::new(),
                claims: None,
                model: None,
            }
        })
    }

    fn capture(&mut self, order: &effect::Capture) -> Result<Capture, PortError> {
        self.refuse(Step::Capture)?;
        let Self {
            power,
            workspaces,
            refs,
            behaviour,
            ..
        } = self;
        power.call(|| {
            let changed = match &order.existing {
                None => workspaces.get(&order.attempt).copied().flatten(),
                Some(existing) => FILES.into_iter().find(|path| oid(path) == existing.tree),
            };
            let change = changed.map(|path| Change {
                path: RawPath::new(path),
                before: None,
                after: Some(Entry {
                    mode: Mode::File,
                    oid: oid(path),
                }),
                binary: false,
                origin: None,
                link: None,
            });
            let kept_by = order.keep.name.clone();
            refs.insert(kept_by.clone());
            let crossed = changed
                .filter(|_| *behaviour == Behaviour::Tests)
                .map(|path| {
                    refs.extend(order.crossed.iter().map(|keep| keep.name.clone()));
                    CrossTrees {
                        test_files: vec![RawPath::new("app/test_a.py")],
                        old_tests: oid(&format!("{path}, old tests")),
                        new_tests: oid(&format!("{path}, new tests")),
                    }
                });
            Capture {
                tree: oid(changed.unwrap_or("base tree")),
                kept_by,
                changes: change.into_iter().collect(),
                findings: order
                    .existing
                    .as_ref()
                    .map_or_else(Vec::new, |it| it.findings.clone()),
                ignored: Ignored::default(),
                withheld: Withheld::default(),
                crossed,
            }
        })
    }

    fn review(
        &mut self,
        order: &effect::Review,
        watch: &mut dyn Watch,
    ) -> Result<ReviewRun, PortError> {
        self.refuse(Step::Review)?;
        let control = watch.tick(&Progress::default());
        let says = |verdict: &str| {
            let report = json!({ "verdict": verdict, "summary": "I looked.",
                "violations": [], "findings": [] });
            ResultFile::Text(report.to_string())
        };
        let (result, altered) = match self.opinion {
            Opinion::Passes => (says("PASS"), Vec::new()),
            Opinion::RefusesOnce if self.agents.len() > 1 => (says("PASS"), Vec::new()),
            Opinion::Refuses | Opinion::RefusesOnce => (says("FAIL"), Vec::new()),
            Opinion::Mumbles => (ResultFile::Text("well…".to_owned()), Vec::new()),
            Opinion::Meddles => (says("PASS"), vec![RawPath::new("app/a")]),
        };
        self.power.call(|| ReviewRun {
            tree: order.look.tree.clone(),
            ended_at: "2026-01-01T00:00:00Z".to_owned(),
            altered,
            probed: probed(),
            run: AgentRun {
                ending: ending(control, 0),
                wall_ms: 1,
                stdout: Self::stream(),
                stderr: Self::stream(),
                result,
                redacted: 0,
                refused: std::collections::BTreeMap::new(),
                network: Vec::new(),
                claims: None,
                model: None,
            },
        })
    }

    fn accept(
        &mut self,
        order: &effect::Accept,
        watch: &mut dyn Watch,
    ) -> Result<TestRun, PortError> {
        self.refuse(match order.side {
            Side::Base => Step::BaseAcceptance,
            Side::BaseAgain => Step::BaseAgain,
            Side::Candidate | Side::Merged => Step::Acceptance,
            Side::OldTests => Step::OldTests,
            Side::NewTests => Step::NewTests,
        })?;
        let control = watch.tick(&Progress::default());
        let breaks = match (order.side, self.behaviour) {
            (Side::NewTests, _) | (Side::Candidate, Behaviour::Breaks) => true,
            (Side::Candidate, Behaviour::BreaksOnce | Behaviour::MendsAstray) => {
                order.tree == oid("app/a")
            }
            _ => false,
        };
        let command = |test: &provost_core::contract::Test| CommandRun {
            name: test.name.clone(),
            argv: test.argv.clone(),
            ending: ending(control, i32::from(breaks)),
            began: None,
            wall_ms: 1,
            stdout: Self::stream(),
            stderr: Self::stream(),
            tally: None,
        };
        self.power.call(|| TestRun {
            side: order.side,
            tree: order.tree.clone(),
            cached: false,
            profile: sha256(b"profile"),
            layers: Vec::new(),
            cache: None,
            commands: order.tests.iter().map(command).collect(),
            altered: Vec::new(),
        })
    }

    fn pause(&mut self, _: Duration, watch: &mut dyn Watch) -> Result<Control, PortError> {
        self.refuse(Step::Fix)?;
        let control = watch.tick(&Progress::default());
        self.power.call(|| control)
    }

    fn publish(&mut self, order: &effect::Publish) -> Result<Published, PortError> {
        self.refuse(Step::Publish)?;
        let Self { power, refs, .. } = self;
        power.call(|| {
            let branch = order.keep.name.clone();
            refs.insert(branch.clone());
            Published {
                commit: oid("commit"),
                branch,
            }
        })
    }

    fn clean(&mut self, order: &effect::Clean) -> Result<Cleaned, PortError> {
        self.refuse(Step::Clean)?;
        let Self {
            power,
            refs,
            workspaces,
            ..
        } = self;
        power.call(|| {
            let work = workspaces.remove(&order.attempt).flatten();
            let salvage = work.zip(order.salvage.as_ref()).map(|(work, salvage)| {
                let kept_by = salvage.keep.name.clone();
                refs.insert(kept_by.clone());
                Salvage {
                    kept_by,
                    commit: oid(work),
                }
            });
            Cleaned {
                salvage,
                left: None,
            }
        })
    }

    fn hide(&self, _: &str) -> Option<String> {
        // The simulated machine knows no secret.
        None
    }

    fn patch(&mut self, _: &Oid, _: &Oid) -> Result<Vec<u8>, PortError> {
        self.power.call(Vec::new)
    }

    fn patch_of(&mut self, _: &Oid, _: &Oid, _: &[RawPath]) -> Result<Vec<u8>, PortError> {
        self.power.call(Vec::new)
    }

    fn objects(
        &mut self,
        _: &effect::Base,
        _: &[(&Oid, &BTreeSet<RawPath>)],
    ) -> Result<Vec<u8>, PortError> {
        self.power.call(Vec::new)
    }
}

fn probed() -> Probed {
    Probed {
        shape: sha256(b"shape"),
        cached: false,
        attempts: vec![Probe {
            name: "write outside".to_owned(),
            walls: vec!["root".to_owned()],
            tried: "write outside".to_owned(),
            held: true,
            errno: None,
        }],
    }
}
