//! Lets a reviewer look at exactly one tree, made from git objects and mounted read-only.
//!
//! # Invariants
//!
//! - The reviewer starts in an empty directory with an empty home: nothing of the tree under review
//!   is where a program looks for settings or instructions.
//! - What it looks at is compared with the tree afterwards, whatever the mounts promised.

use std::fs;
use std::path::Path;

use provost_core::code::Code;
use provost_core::net::credential::DUMMY;
use provost_core::path::RawPath;
use provost_core::review::DESK;
use provost_core::run::effect::Review;
use provost_core::run::fact::ReviewRun;
use provost_engine::ports::{PortError, Watch};

use super::profile::{OUT, RESULT, TREE, outlet, programs};
use super::watched::Watched;
use super::workspaces::Wanted;
use super::{Machine, RESULT_LIMIT, git, host, uncaptured};
use crate::agent::{self, Ears};
use crate::boxes::{Mount, Profile, Stdin};
use crate::capture::{self, Limits, Mode};
use crate::clock;
use crate::workspace::Workspace;

/// The directory in which a review takes place.
const REVIEW: &str = "review";

/// Where the reviewer starts; there is nothing in it.
const START: &str = "/review";

/// Where what it looks at is in the box.
const DATA: &str = "/run/provost/review";

impl Machine {
    /// Lets the reviewer work until it ends.
    pub(super) fn look(
        &self,
        order: &Review,
        watch: &mut dyn Watch,
    ) -> Result<ReviewRun, PortError> {
        let directory = self.places.run.join(REVIEW);
        self.remove(&directory)?;
        fs::create_dir_all(&self.places.run).map_err(host("make the cache directory"))?;
        let fresh = self.fresh(&Wanted::of_review(order), &directory)?;
        self.lay_out(order, &directory)?;
        let profile = self.review_profile(order, &directory, &fresh.workspace)?;
        let run = Watched {
            launcher: &self.launcher,
            profile: &profile,
            directory: &directory,
            bundle: &self.bundle,
            what: "reviewer",
            stdout: order.stdout.clone(),
            stderr: order.stderr.clone(),
            outlet: outlet(&order.credentials)?,
            known: &self.known,
        };
        let left = || self.read_result(&directory);
        let run = match &order.adaptation {
            None => {
                let contract = serde_json::to_vec(&order.contract)
                    .map_err(|error| PortError::of(Code::Bug, error))?;
                let ended = run.follow(order.argv.clone(), Stdin::Bytes(contract), watch)?;
                ended.of_agent(left(), None)
            }
            Some(known) => {
                let argv = agent::find(known.adapted.adapter)?.argv(&order.argv);
                let instruction = Stdin::Bytes(known.instruction.clone().into_bytes());
                let stream = self.bundle.join(&run.stdout);
                let events = known.events.clone();
                let mut ears =
                    Ears::open(&known.adapted, stream, &self.bundle, events, &self.known)
                        .map_err(host("write the events of the reviewer"))?;
                let ended = run.follow_with(argv, instruction, watch, Some(&mut ears))?;
                let told = ears
                    .finish()
                    .map_err(host("read the events of the reviewer"))?;
                // Only its bound answer counts: it has no other way to speak.
                let left = self.scrubbed(ears.answer(RESULT_LIMIT));
                ended.of_agent(left, Some(told))
            }
        };
        let altered = self.touched(order, &fresh.workspace)?;
        self.remove(&directory)?;
        Ok(ReviewRun {
            tree: order.tree.clone(),
            ended_at: clock::now(),
            altered,
            run,
        })
    }

    /// Puts down what the reviewer looks at beside the tree.
    fn lay_out(&self, order: &Review, directory: &Path) -> Result<(), PortError> {
        let patch = self
            .repo
            .patch(&order.base.tree, &order.tree)
            .map_err(git)?;
        let contract = serde_json::to_vec_pretty(&order.contract)
            .map_err(|error| PortError::of(Code::Bug, error))?;
        let data = directory.join("data");
        for made in [&data, &directory.join("out")] {
            fs::create_dir(made).map_err(host("make a directory of the review"))?;
        }
        for (place, bytes) in [
            (DESK.patch, &patch[..]),
            (DESK.changed, order.changed.as_bytes()),
            (DESK.contract, &contract),
        ] {
            let name = Path::new(place).file_name().unwrap_or_default();
            fs::write(data.join(name), bytes).map_err(host("write what is to be reviewed"))?;
        }
        Ok(())
    }

    /// The box of the reviewer.
    fn review_profile(
        &self,
        order: &Review,
        directory: &Path,
        workspace: &Workspace,
    ) -> Result<Profile, PortError> {
        let mount = workspace.mount(TREE.as_ref());
        let mut profile = self.tree_profile(order.tier, order.time_limit, read_only(mount));
        profile.limits.hold(order.time_limit, &order.limits);
        if !workspace.lowers.is_empty() {
            // Not by `add`, which would put it in the place of the mount that it covers.
            profile.mounts.push(Mount::Protect {
                target: TREE.into(),
            });
        }
        profile.add(Mount::Scratch {
            target: START.into(),
        });
        profile.workdir = START.into();
        profile.add(Mount::ReadOnly {
            source: directory.join("data"),
            target: DATA.into(),
        });
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
            ("PROVOST_CONTRACT", DESK.contract),
            ("PROVOST_PATCH", DESK.patch),
            ("PROVOST_CHANGED", DESK.changed),
            ("PROVOST_TREE", DESK.tree),
            ("PROVOST_RESULT", RESULT),
            ("PROVOST_RUN", &order.run_id),
        ];
        for (name, value) in variables {
            profile.env.insert(name.to_owned(), value.to_owned());
        }
        if let Some(known) = &order.adaptation {
            let installed = agent::find(known.adapted.adapter)?;
            installed.add_to(&mut profile, &known.adapted, known.answer);
        }
        if !order.net.is_empty() {
            profile.grant(order.net.clone());
        }
        for credential in &order.credentials {
            let variable = credential.variable.clone();
            profile.env.insert(variable, DUMMY.to_owned());
        }
        Ok(profile)
    }

    /// Paths that are not as they are in the tree.
    fn touched(&self, order: &Review, workspace: &Workspace) -> Result<Vec<RawPath>, PortError> {
        let (source, limits) = (workspace.source(), Limits::default());
        let after = capture::capture(&self.repo, &order.tree, &source, &limits, Mode::Compare)
            .map_err(uncaptured)?;
        let changes = after.changes.into_iter();
        Ok(changes.map(|change| change.path).collect())
    }
}

/// The same tree for somebody who only reads; layers are made so by a mount on top of them.
fn read_only(mount: Mount) -> Mount {
    match mount {
        Mount::Writable { source, target } => Mount::ReadOnly { source, target },
        other => other,
    }
}
