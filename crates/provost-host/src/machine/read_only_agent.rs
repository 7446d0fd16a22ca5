//! Runs a reviewer or planner on exactly one tree, made from git objects and mounted read-only.
//!
//! # Invariants
//!
//! - The agent starts in an empty directory with an empty home: nothing of the tree is where a
//!   program looks for settings or instructions.
//! - The files are compared with the tree afterwards, although the mounts are read-only.

use std::fs;
use std::path::Path;

use provost_core::agent::provider::Login;
use provost_core::code::Code;
use provost_core::contract::forbidden;
use provost_core::path::RawPath;
use provost_core::review::{LOG, REVIEW_DIRECTORY, Worker};
use provost_core::run::effect::{InputFile, ReadOnlyRun, Review};
use provost_core::run::fact::ReviewRun;
use provost_engine::plan::PlannerHost;
use provost_engine::ports::{PortError, Watch};

use super::profile::{OUT, RESULT, TREE, programs, read_only, refuse, set_dummies};
use super::sandboxed_command::SandboxedCommand;
use super::workspaces::Wanted;
use super::{Machine, RESULT_LIMIT, git, host, uncaptured};
use crate::agent;
use crate::capture::{self, Limits, Mode};
use crate::clock;
use crate::login;
use crate::sandbox::{HOME, Mount, Profile, Stdin};
use crate::workspace::Workspace;

/// The directory of a reviewer or planner.
pub(super) const LOOK: &str = "look";

/// The home of a program that expects a login file in there.
const LOGIN_HOME: &str = "home";

impl PlannerHost for Machine {
    fn look(
        &mut self,
        order: &ReadOnlyRun,
        papers: &[InputFile],
        input: &[u8],
        watch: &mut dyn Watch,
    ) -> Result<ReviewRun, PortError> {
        let run = self.run_read_only(order, papers, input, watch);
        // If other files were kept for the user in there, the directory stays.
        let _ = fs::remove_dir(&self.places.run);
        run
    }
}

impl Machine {
    /// Runs the reviewer on the candidate.
    pub(super) fn review_candidate(
        &self,
        order: &Review,
        watch: &mut dyn Watch,
    ) -> Result<ReviewRun, PortError> {
        let (base, tree) = (&order.look.base.tree, &order.look.tree);
        let patch = self.repo.patch(base, tree).map_err(git)?;
        let bug = |error| PortError::of(Code::Bug, error);
        let contract = serde_json::to_vec_pretty(&order.contract).map_err(bug)?;
        let input = serde_json::to_vec(&order.contract).map_err(bug)?;
        let paper = |place, variable, bytes| InputFile {
            place,
            variable,
            bytes,
        };
        let papers = [
            paper(REVIEW_DIRECTORY.patch, "PROVOST_PATCH", patch),
            paper(
                REVIEW_DIRECTORY.changed,
                "PROVOST_CHANGED",
                order.changed.clone().into(),
            ),
            paper(REVIEW_DIRECTORY.contract, "PROVOST_CONTRACT", contract),
            paper(
                REVIEW_DIRECTORY.worker,
                "PROVOST_WORKER",
                format!("{:#}\n", order.worker.facts).into_bytes(),
            ),
            paper(
                REVIEW_DIRECTORY.output,
                "PROVOST_OUTPUT",
                self.printed(&order.worker)?,
            ),
        ];
        self.run_read_only(&order.look, &papers, &input, watch)
    }

    /// The end of each log for the reviewer, each below its name.
    fn printed(&self, worker: &Worker) -> Result<Vec<u8>, PortError> {
        let mut all = Vec::new();
        for name in &worker.logs {
            let log = fs::read(self.bundle.join(name)).map_err(host("read a log"))?;
            let end = &log[log.len().saturating_sub(LOG)..];
            all.extend(
                format!("== {name}, the last {} bytes of {}\n", end.len(), log.len()).bytes(),
            );
            all.extend(end);
            all.push(b'\n');
        }
        Ok(all)
    }

    /// Runs the agent of `order` to its end; a plain command gets `input` on its standard input.
    fn run_read_only(
        &self,
        order: &ReadOnlyRun,
        papers: &[InputFile],
        input: &[u8],
        watch: &mut dyn Watch,
    ) -> Result<ReviewRun, PortError> {
        let directory = self.places.run.join(LOOK);
        self.remove(&directory)?;
        fs::create_dir_all(&self.places.run).map_err(host("make the cache directory"))?;
        let fresh = self.fresh(&Wanted::of_look(order), &directory)?;
        lay_out(papers, &directory)?;
        let adapted = order.adaptation.as_ref().map(|known| &known.adapted);
        if let Some(agent) = adapted {
            login::write_dummy(agent, &directory.join(LOGIN_HOME))?;
        }
        let profile = self.read_only_profile(order, papers, &directory, &fresh.workspace)?;
        // No agent runs in a sandbox whose self-test did not hold.
        let probed = self.attack(&profile, order.who)?;
        let run = SandboxedCommand {
            broker: None,
            launcher: &self.launcher,
            profile: &profile,
            directory: &directory,
            bundle: &self.bundle,
            what: order.who,
            stdout: order.stdout.clone(),
            stderr: order.stderr.clone(),
            outlet: self.outlet(&order.credentials, adapted)?,
            known: &self.known,
        };
        let left = || self.read_result(&directory);
        let run = match &order.adaptation {
            None => {
                let stdin = Stdin::Bytes(input.to_vec());
                let ended = run.follow(order.argv.clone(), stdin, watch)?;
                ended.of_agent(left(), None)
            }
            Some(known) => {
                let (ended, stream, claims) =
                    run.converse(known, &order.argv, (&self.run_id, &self.repo), watch)?;
                // Only the answer that is bound to a schema counts.
                let left = self.scrubbed(stream.answer(RESULT_LIMIT));
                ended.of_agent(left, Some(claims))
            }
        };
        let run = self.scrub_late(run)?;
        let altered = self.touched(order, &fresh.workspace)?;
        self.remove(&directory)?;
        Ok(ReviewRun {
            tree: order.tree.clone(),
            ended_at: clock::now(),
            altered,
            probed,
            run,
        })
    }

    /// The sandbox of a reviewer or planner.
    fn read_only_profile(
        &self,
        order: &ReadOnlyRun,
        papers: &[InputFile],
        directory: &Path,
        workspace: &Workspace,
    ) -> Result<Profile, PortError> {
        let mount = workspace.mount(TREE.as_ref());
        let mount = read_only(mount);
        let mut profile = self.tree_profile(order.tier, order.time_limit, mount, order.loopback);
        self.add_submodules(&mut profile, &order.base.tree)?;
        profile.limits.hold(order.time_limit, &order.limits);
        if !workspace.lowers.is_empty() {
            // Not by `add`, which would replace the mount that it covers.
            profile.mounts.push(Mount::Protect {
                target: TREE.into(),
            });
        }
        profile.add(Mount::Scratch {
            target: order.start.into(),
        });
        profile.workdir = order.start.into();
        if let Some(inputs) = papers.first().and_then(|it| Path::new(it.place).parent()) {
            profile.add(Mount::ReadOnly {
                source: directory.join("data"),
                target: inputs.to_owned(),
            });
        }
        profile.add(Mount::Writable {
            source: directory.join("out"),
            target: OUT.into(),
        });
        for source in programs(order.named_by, &order.argv) {
            profile.add(Mount::ReadOnly {
                target: source.clone(),
                source,
            });
        }
        let variables = [
            ("PROVOST_TREE", TREE),
            ("PROVOST_RESULT", RESULT),
            ("PROVOST_RUN", &order.run_id),
        ];
        let papers = papers.iter().map(|it| (it.variable, it.place));
        for (name, value) in variables.into_iter().chain(papers) {
            profile.env.insert(name.to_owned(), value.to_owned());
        }
        if let Some(known) = &order.adaptation {
            agent::furnish(&mut profile, &known.adapted, known.answer)?;
            if known.adapted.login() == Login::File {
                // The dummy of the login file is there.
                profile.add(Mount::Writable {
                    source: directory.join(LOGIN_HOME),
                    target: HOME.into(),
                });
            }
        }
        if !order.net.is_empty() {
            profile.grant(order.net.clone());
        }
        set_dummies(&mut profile, &order.credentials);
        let has_network = order.loopback || !order.net.is_empty();
        let refused = forbidden::default_programs(has_network);
        refuse(&mut profile, &refused, directory)?;
        Ok(profile)
    }

    /// Paths that differ from the tree.
    fn touched(
        &self,
        order: &ReadOnlyRun,
        workspace: &Workspace,
    ) -> Result<Vec<RawPath>, PortError> {
        let (source, limits) = (workspace.source(), Limits::default());
        let after = capture::capture(&self.repo, &order.tree, &source, &limits, Mode::Compare)
            .map_err(uncaptured)?;
        let changes = after.changes.into_iter();
        Ok(changes.map(|change| change.path).collect())
    }
}

/// Writes the input files beside the tree, and makes the directory for the answer.
fn lay_out(papers: &[InputFile], directory: &Path) -> Result<(), PortError> {
    let data = directory.join("data");
    for made in [&data, &directory.join("out"), &directory.join(LOGIN_HOME)] {
        fs::create_dir(made).map_err(host("make a directory beside a tree"))?;
    }
    for paper in papers {
        let name = Path::new(paper.place).file_name().unwrap_or_default();
        fs::write(data.join(name), &paper.bytes).map_err(host("write a file beside a tree"))?;
    }
    Ok(())
}
