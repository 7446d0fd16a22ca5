//! Builds the sandbox profile of an agent and of an acceptance command.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use provost_core::agent::Adapted;
use provost_core::change::Node as Entry;
use provost_core::code::Code;
use provost_core::contract::document::{Filesystem, Network as NetworkPermission};
use provost_core::contract::forbidden;
use provost_core::net::credential::{Credential, DUMMY};
use provost_core::path::{RawPath, RepoPath};
pub(super) use provost_core::run::effect::TREE;
use provost_core::run::effect::{AgentEffect, NamedBy};
use provost_core::tier::Tier;
use provost_engine::ports::PortError;

use super::{Machine, broker, evidence, git, host};
use crate::agent;
use crate::cache;
use crate::login::{self, Learned};
use crate::proxy::{HostQuestions, Outlet};
use crate::sandbox::refused_program::StubReports;
use crate::sandbox::{HOME, Mount, Network, Profile, Toolchain, toolchain_mounts};
use crate::workspace::{BuildCaches, Layers, Lowers};

/// Where the repository's objects are in a sandbox.
pub(super) const OBJECTS: &str = "/run/provost/objects";

/// Where an agent finds its contract.
const CONTRACT: &str = "/run/provost/contract.json";

/// Where an agent finds the evidence why earlier work was refused.
const EVIDENCE: &str = "/run/provost/evidence";

/// Where an agent leaves its result.
pub(super) const OUT: &str = "/run/provost/out";

/// The file it leaves there.
pub(super) const RESULT: &str = "/run/provost/out/result.json";

/// How many protected files get a read-only mount; the diff gate checks all of them.
const MOST_PROTECTED: usize = 256;

/// The directories of one run outside the repository.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) cache: PathBuf,
    pub(super) run: PathBuf,
    pub(super) home: PathBuf,
    pub(super) lowers: Lowers,
    pub(super) layers: Layers,
    pub(super) builds: BuildCaches,
}

impl Places {
    pub(super) fn new(cache: &Path, run_id: &str) -> Self {
        let run = cache.join(cache::WORKSPACES).join(run_id);
        Self {
            cache: cache.to_owned(),
            home: run.join("home"),
            lowers: Lowers::new(cache),
            layers: Layers::new(cache),
            builds: BuildCaches::new(cache),
            run,
        }
    }

    /// The workspace of an attempt.
    pub(super) fn attempt(&self, attempt: u32) -> PathBuf {
        self.run.join(attempt.to_string())
    }
}

/// The toolchains of the user who runs this program.
pub fn user_toolchain() -> Toolchain {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let path = std::env::var("PATH").unwrap_or_default();
    toolchain_mounts(&path, &variable("HOME").unwrap_or_default(), variable)
}

/// What the proxy of a sandbox needs from the user who runs this program: the secrets of
/// `credentials`, each from its variable or login file.
pub fn outlet(credentials: &[Credential]) -> Result<Outlet, PortError> {
    outlet_for(credentials, None, &Learned::default())
}

/// The same for the sandbox of an agent, whose login is added to calls of its model alone.
pub(crate) fn outlet_for(
    credentials: &[Credential],
    agent: Option<&Adapted>,
    learned: &Learned,
) -> Result<Outlet, PortError> {
    let secrets = credentials.iter();
    let secrets = secrets.map(|credential| login::secret(credential, agent, learned));
    Ok(Outlet {
        secrets: secrets.collect::<Result<_, _>>()?,
        ..Outlet::default()
    })
}

/// Sets the variables of `credentials` to a dummy: programs require them at their start, and the
/// proxy replaces what they send.
pub(crate) fn set_dummies(profile: &mut Profile, credentials: &[Credential]) {
    for name in credentials.iter().filter_map(|it| it.source.variable()) {
        profile.env.insert(name.to_owned(), DUMMY.to_owned());
    }
}

impl Machine {
    /// What the proxy of the agent's sandbox needs.
    pub(super) fn agent_outlet(&self, agent: &AgentEffect) -> Result<Outlet, PortError> {
        let adapted = agent.adaptation.as_ref().map(|known| &known.adapted);
        let program = adapted.map(|it| it.adapter);
        let questions = asks_for_hosts(agent).then(|| HostQuestions::new(program, agent.hold));
        Ok(Outlet {
            questions: questions.map(Arc::new),
            ..self.outlet(&agent.credentials, adapted)?
        })
    }

    /// The sandbox of the agent.
    pub(super) fn agent_profile(&self, agent: &AgentEffect) -> Result<Profile, PortError> {
        let directory = self.places.attempt(agent.attempt);
        let mut workspace = self.mounted(&directory)?;
        let reads = agent.contract.tool_permissions.filesystem == Filesystem::ReadOnly;
        let layered = !matches!(workspace, Mount::Writable { .. });
        if reads {
            workspace = read_only(workspace);
        }
        let mut profile =
            self.tree_profile(agent.tier, agent.time_limit, workspace, agent.loopback);
        self.add_submodules(&mut profile, &agent.base.tree)?;
        if reads && layered {
            // Not by `add`, which would replace the mount that it covers.
            profile.mounts.push(Mount::Protect {
                target: TREE.into(),
            });
        }
        profile.limits.hold(agent.time_limit, &agent.limits);
        let text = serde_json::to_string(&agent.contract)
            .map_err(|error| PortError::of(Code::Bug, error))?;
        profile.add(Mount::File {
            target: CONTRACT.into(),
            content: text,
        });
        profile.add(Mount::Writable {
            source: directory.join("out"),
            target: OUT.into(),
        });
        if !agent.evidence.is_empty() {
            add_evidence(&mut profile, &directory);
        }
        profile.add(Mount::Writable {
            source: self.places.home.clone(),
            target: HOME.into(),
        });
        if let Some(ready) = &self.ready {
            ready.add_to(&mut profile);
        }
        for target in self.walled(agent)? {
            profile.add(Mount::Protect { target });
        }
        for source in programs(agent.named_by, &agent.argv) {
            profile.add(Mount::ReadOnly {
                target: source.clone(),
                source,
            });
        }
        let variables = [
            ("PROVOST_CONTRACT", CONTRACT),
            ("PROVOST_RESULT", RESULT),
            ("PROVOST_RUN", &agent.run_id),
        ];
        for (name, value) in variables {
            profile.env.insert(name.to_owned(), value.to_owned());
        }
        if let Some(known) = &agent.adaptation {
            agent::furnish(&mut profile, &known.adapted, known.answer)?;
        }
        if has_broker(agent) {
            add_broker(&mut profile, &directory)?;
        }
        add_handoff(&mut profile, agent);
        let asks = asks_for_hosts(agent);
        if !agent.net.is_empty() || asks {
            profile.grant(agent.net.clone());
        }
        set_dummies(&mut profile, &agent.credentials);
        // Before the stubs, which cover programs of the user's directories too.
        self.add_full_access(agent, &mut profile)?;
        let has_network = agent.loopback || profile.any_place || asks || !agent.net.is_empty();
        let refused = forbidden::programs(&agent.contract, has_network);
        refuse(&mut profile, &refused, &directory).map(|()| profile)
    }

    /// A sandbox with only a tree and the toolchain.
    pub(super) fn tree_profile(
        &self,
        tier: Tier,
        time_limit: Duration,
        tree: Mount,
        loopback: bool,
    ) -> Profile {
        let mut profile = Profile::of_tier(tier);
        if !loopback {
            profile.network = Network::Deny;
        }
        user_toolchain().add_to(&mut profile);
        let objects = self.repo.objects().to_owned();
        profile.add(tree);
        profile.add(Mount::ReadOnly {
            source: objects,
            target: OBJECTS.into(),
        });
        profile.workdir = TREE.into();
        profile.limits.wall_seconds = time_limit.as_secs();
        // A search for leaks needs ptrace, which every sandbox refuses; all programs with a
        // sanitizer would fail.
        let quiet = ("ASAN_OPTIONS", "detect_leaks=0");
        profile.env.insert(quiet.0.to_owned(), quiet.1.to_owned());
        profile
    }

    /// Files of its tree that the agent may not write, by their paths in the sandbox.
    ///
    /// The result is kept: the profile is built twice, for the self-test and for the agent, and a
    /// search through a large tree takes longer than the start of a sandbox.
    fn walled(&self, agent: &AgentEffect) -> Result<BTreeSet<PathBuf>, PortError> {
        let mut last = self.walled.borrow_mut();
        if let Some((tree, walls, walled)) = &*last
            && *tree == agent.tree
            && *walls == agent.walls
        {
            return Ok(walled.clone());
        }
        let tree = self.repo.read_tree(&agent.tree).map_err(git)?;
        let walled = |(path, _): &(&RawPath, &Entry)| {
            RepoPath::try_from(*path).is_ok_and(|path| agent.walls.cover(&path))
        };
        let mut files: Vec<&RawPath> = tree.files.iter().filter(walled).map(|it| it.0).collect();
        // A directory of tools can have more files than the limit; those near the root come first.
        files.sort_by_key(|path| path.as_bytes().split(|byte| *byte == b'/').count());
        let place = |path: &RawPath| Path::new(TREE).join(path.to_string());
        let walled: BTreeSet<PathBuf> = files.into_iter().take(MOST_PROTECTED).map(place).collect();
        *last = Some((agent.tree.clone(), agent.walls.clone(), walled.clone()));
        Ok(walled)
    }
}

/// Whether the agent may start children, or ask for more than its contract gives.
pub(super) fn has_broker(agent: &AgentEffect) -> bool {
    agent.family.broker || agent.contract.may_ask()
}

/// Whether a person is asked about places that the agent wants to reach.
pub(super) fn asks_for_hosts(agent: &AgentEffect) -> bool {
    agent.contract.tool_permissions.network == NetworkPermission::OnRequest
}

/// Keeps the programs `names` from running, and lets their stubs report below `directory`.
///
/// Tier `landlock` has no mounts and so no stubs; a contract that names programs is refused there.
pub(super) fn refuse(
    profile: &mut Profile,
    names: &BTreeSet<String>,
    directory: &Path,
) -> Result<(), PortError> {
    if profile.tier == Tier::Landlock {
        return Ok(());
    }
    let pipe = directory.join("reports");
    StubReports::make(&pipe).map_err(host("make the pipe of stubs"))?;
    profile.report_to(pipe);
    profile.refuse(names);
    Ok(())
}

/// The same tree, read-only. An overlay stays as it is; a mount on top makes it read-only.
pub(super) fn read_only(mount: Mount) -> Mount {
    match mount {
        Mount::Writable { source, target } => Mount::ReadOnly { source, target },
        other => other,
    }
}

/// Files of the host that a command names by absolute path: its program, and the script of an
/// interpreter. If the user typed them, they are mounted read-only.
pub(super) fn programs(named_by: NamedBy, argv: &[String]) -> Vec<PathBuf> {
    match named_by {
        NamedBy::Person => {}
        NamedBy::Policy => return Vec::new(),
    }
    let inside = |path: &Path| {
        ["/usr", "/bin", "/sbin", "/lib"]
            .iter()
            .any(|root| path.starts_with(root))
    };
    argv.iter()
        .take(2)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute() && path.is_file() && !inside(path))
        .collect()
}

/// Shows the agent what its parent handed over.
fn add_handoff(profile: &mut Profile, agent: &AgentEffect) {
    for (target, content) in agent.family.handoff.clone() {
        let target = target.into();
        profile.add(Mount::File { target, content });
    }
}

/// Lets the agent start children, and read what they left.
fn add_broker(profile: &mut Profile, attempt: &Path) -> Result<(), PortError> {
    let shared = attempt.join(broker::SHARED);
    fs::create_dir_all(&shared).map_err(host("make the directory of children"))?;
    profile.add(Mount::ReadOnly {
        source: shared,
        target: broker::CHILDREN.into(),
    });
    profile.add_broker();
    Ok(())
}

/// Shows the agent of a fix what refused the attempt before it.
fn add_evidence(profile: &mut Profile, attempt: &Path) {
    profile.add(Mount::ReadOnly {
        source: attempt.join(evidence::COPIES),
        target: EVIDENCE.into(),
    });
    let name = "PROVOST_EVIDENCE".to_owned();
    profile.env.insert(name, EVIDENCE.to_owned());
}
