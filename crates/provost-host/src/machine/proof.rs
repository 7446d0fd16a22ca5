//! Makes the evidence of a run for a later reader: the self-test of the sandbox and the objects.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use provost_core::change::{Change, Node};
use provost_core::code::Code;
use provost_core::json;
use provost_core::object::{Kind, Mode, Oid, sha256};
use provost_core::path::RawPath;
use provost_core::run::effect::{AgentEffect, Base, Selftest};
use provost_core::run::fact::{self, AgentProgram, Probed, SandboxTest};
use provost_core::run::judge::judge_programs;
use provost_core::{pack, tree};
use provost_engine::ports::PortError;

use super::accept::TESTS;
use super::prepare::Ready;
use super::profile::TREE;
use super::workspaces::Wanted;
use super::{Machine, git, host};
use crate::git::{Batch, Repository};
use crate::sandbox::selftest::remembered::{self, Recalled};
use crate::sandbox::selftest::{Ground, Outside, Probe};
use crate::sandbox::{self, Mount, Profile, SandboxError};
use crate::workspace::Dates;

impl Machine {
    /// Runs the self-tests of the sandboxes of this run, or recalls earlier ones.
    pub(super) fn prove(
        &self,
        order: &Selftest,
        agent: &AgentEffect,
    ) -> Result<SandboxTest, PortError> {
        // The acceptance commands get a tree of their own; for the test any directory will do.
        let workspace = self.mounted(&self.places.attempt(agent.attempt))?;
        let profile = self.agent_profile(agent)?;
        Ok(SandboxTest {
            program: Some(self.program(agent, &profile)),
            ..self.prove_both(order, Some(&profile), workspace)?
        })
    }

    /// The same for a run that starts no agent, on a checkout of the base.
    pub(super) fn prove_judges(&self, order: &Selftest) -> Result<SandboxTest, PortError> {
        let directory = self.places.run.join(TESTS);
        self.remove(&directory)?;
        fs::create_dir_all(&self.places.run).map_err(host("make the cache directory"))?;
        let fresh = self.fresh(
            &Wanted::of_round(&order.acceptance, Dates::default()),
            &directory,
        )?;
        if let Some(ready) = &self.ready {
            ready.make_places(&fresh.workspace.tree, None)?;
        }
        let tested = self.prove_both(order, None, fresh.workspace.mount(TREE.as_ref()))?;
        self.remove(&directory)?;
        Ok(tested)
    }

    fn prove_both(
        &self,
        order: &Selftest,
        agent: Option<&Profile>,
        workspace: Mount,
    ) -> Result<SandboxTest, PortError> {
        let none = Ready::default();
        let ready = self.ready.as_ref().unwrap_or(&none);
        let programs = self.test_profile(&order.acceptance, workspace, ready)?;
        let first = agent.unwrap_or(&programs);
        let ground = Ground::of(&self.launcher, first)?;
        let holes = first.holes().iter().map(|hole| hole.words.to_owned());
        let sealed_gaps = first.sealed_gaps().map(str::to_owned);
        let agent = agent.map(|profile| self.test(profile)).transpose()?;
        let acceptance = self.test(&programs)?;
        let held = |tested: &Recalled| tested.report.held();
        let held = agent.as_ref().is_none_or(held) && held(&acceptance);
        if held {
            self.proven.borrow_mut().insert(self.shape_of(&programs)?);
            self.find(order, &programs)?;
        }
        Ok(SandboxTest {
            tier: first.tier.name().to_owned(),
            processes: first.processes,
            landlock: Some(first.landlock),
            sealed_gaps: sealed_gaps.collect(),
            holes: holes.collect(),
            held,
            kernel: ground.kernel,
            boot: ground.boot,
            launcher: ground.launcher,
            profile: ground.profile,
            limits: sandbox::means(),
            agent: agent.map(probed).unwrap_or_default(),
            acceptance: probed(acceptance),
            program: None,
        })
    }
}

impl Machine {
    /// The version of the agent's program, if it is a known one that answers, and a digest of the
    /// variables that it starts with.
    fn program(&self, agent: &AgentEffect, profile: &Profile) -> AgentProgram {
        let known = agent.adaptation.as_ref().map(|known| &known.adapted);
        // That it does not start is reported when it works.
        let version = known.and_then(|known| {
            let installed = crate::agent::find(known).ok()??;
            installed.version_in(known, &self.places.run).ok()
        });
        let mut variables = profile.env.clone();
        variables.retain(|_, value| *value != agent.run_id);
        AgentProgram {
            version,
            environment: sha256(json::canonical(&serde_json::json!(variables)).as_bytes()),
        }
    }

    /// The self-test of the sandbox `profile`, new or recalled.
    fn test(&self, profile: &Profile) -> Result<Recalled, SandboxError> {
        let memory = (&*self.places.cache, &[&*self.places.cache][..]);
        let outside = || Outside::new(&self.launcher).map(|it| it.hiding(self.repo.common_dir()));
        remembered::test(&self.launcher, profile, memory, outside)
    }

    /// Runs the self-test of the sandbox `profile` of `who`; fails unless it holds.
    pub(super) fn attack(&self, profile: &Profile, who: &str) -> Result<Probed, PortError> {
        let tested = self.test(profile)?;
        if tested.report.held() {
            return Ok(probed(tested));
        }
        let leaks: Vec<String> = tested.report.leaks().map(|it| it.name.clone()).collect();
        let what = match leaks.len() {
            0 => "its self-test is incomplete".to_owned(),
            _ => leaks.join(", "),
        };
        let reason = format!("the sandbox of the {who} does not hold: {what}");
        Err(PortError::new(Code::SandboxLeaks, reason))
    }

    /// Makes sure that the self-test of the sandbox `profile` of `who` held since boot.
    pub(super) fn ensure_tested(&self, profile: &Profile, who: &str) -> Result<(), PortError> {
        let shape = self.shape_of(profile)?;
        if !self.proven.borrow().contains(&shape) {
            self.attack(profile, who)?;
            self.proven.borrow_mut().insert(shape);
        }
        Ok(())
    }

    /// The digest of the parts of `profile` that decide its restrictions.
    fn shape_of(&self, profile: &Profile) -> Result<String, SandboxError> {
        remembered::shape(profile, &[&*self.places.cache]).digest()
    }

    /// Refuses commands that could not start in their sandbox, before the agent runs.
    fn find(&self, order: &Selftest, profile: &Profile) -> Result<(), PortError> {
        let tests = order.acceptance.tests.iter();
        let programs: Vec<&str> = tests
            .map(|test| test.argv.first().map_or("", String::as_str))
            .collect();
        let lacks = self.launcher.search(profile, &programs)?;
        judge_programs(order, &lacks).map_or(Ok(()), |reason| {
            Err(PortError::new(Code::AcceptanceUnstartable, reason))
        })
    }
}

fn probed(recalled: Recalled) -> Probed {
    let attempt = |probe: Probe| fact::Probe {
        name: probe.name,
        walls: probe
            .walls
            .iter()
            .map(|wall| wall.name().to_owned())
            .collect(),
        tried: probe.tried,
        held: probe.held,
        errno: probe.errno,
    };
    Probed {
        shape: recalled.report.ground.profile,
        cached: recalled.cached,
        attempts: recalled.report.probes.into_iter().map(attempt).collect(),
    }
}

/// The objects of a pack, by their ids.
type Objects = BTreeMap<Oid, (Kind, Vec<u8>)>;

/// A pack with the base commit, and for each tree of `after` on both sides the trees and files that
/// differ.
///
/// The content of the paths beside a tree is left out.
pub(super) fn objects(
    repo: &Repository,
    base: &Base,
    after: &[(&Oid, &BTreeSet<RawPath>)],
) -> Result<Vec<u8>, PortError> {
    let mut batch = repo.batch().map_err(git)?;
    let mut objects = Objects::new();
    let commit = batch.one(&base.commit, Kind::Commit).map_err(git)?;
    objects.insert(base.commit.clone(), (Kind::Commit, commit));
    for (tree, withheld) in after {
        add(&mut objects, &mut batch, base, tree, withheld)?;
    }
    let mut writer = pack::Writer::new(repo.format());
    for (kind, bytes) in objects.values() {
        writer
            .add(*kind, bytes)
            .map_err(|error| PortError::of(Code::GitFailed, error))?;
    }
    Ok(writer.finish())
}

/// Adds what differs between the base and the tree `after`, without the content of `withheld`.
fn add(
    objects: &mut Objects,
    batch: &mut Batch,
    base: &Base,
    after: &Oid,
    withheld: &BTreeSet<RawPath>,
) -> Result<(), PortError> {
    let mut failure = None;
    let shared = RefCell::new((&mut *batch, &mut *objects, &mut failure));
    let lookup = |oid: &Oid| {
        let (batch, objects, failure) = &mut *shared.borrow_mut();
        match batch.one(oid, Kind::Tree) {
            Ok(bytes) => {
                objects.insert(oid.clone(), (Kind::Tree, bytes.clone()));
                Some(bytes)
            }
            Err(error) => {
                **failure = Some(error);
                None
            }
        }
    };
    let changes = tree::diff(&base.tree, after, lookup);
    // The reason why an object is missing says more than the fact.
    if let Some(error) = failure {
        return Err(git(error));
    }
    let changes = changes.map_err(|error| PortError::of(Code::GitFailed, error))?;
    // Trees that do not differ are named by id only; the roots are always there.
    for root in [&base.tree, after] {
        let bytes = batch.one(root, Kind::Tree).map_err(git)?;
        objects.insert(root.clone(), (Kind::Tree, bytes));
    }
    let (held, shown): (Vec<&Change>, Vec<&Change>) = changes
        .iter()
        .partition(|change| withheld.contains(&change.path));
    let mut held: BTreeSet<&Oid> = held.into_iter().flat_map(sides).map(|it| &it.oid).collect();
    // A content that another path has too holds no secret, or that path would be withheld as well.
    for side in shown.iter().filter_map(|change| change.after.as_ref()) {
        held.remove(&side.oid);
    }
    for side in changes.iter().flat_map(sides) {
        if held.contains(&side.oid) {
            continue;
        }
        if side.mode != Mode::Gitlink && !objects.contains_key(&side.oid) {
            let bytes = batch.one(&side.oid, Kind::Blob).map_err(git)?;
            objects.insert(side.oid.clone(), (Kind::Blob, bytes));
        }
    }
    Ok(())
}

fn sides(change: &Change) -> impl Iterator<Item = &Node> {
    change.before.iter().chain(&change.after)
}
