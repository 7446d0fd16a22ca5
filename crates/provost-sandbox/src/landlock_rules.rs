//! Landlock rules: writes only where the profile permits them, no access to anything outside.
//!
//! In tier `namespaces` they repeat what the mounts enforce already, and add what mounts cannot: no
//! device nodes, no signals and no abstract sockets across the sandbox, no TCP without a network.
//! In tier `landlock` they are the only restriction on files, and restrict reading too.

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use provost_core::tier::Tier;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::error::Failure;
use super::profile::{Mount, Network, Profile, lacks};
use super::root::DEVICES;
use super::sys;

/// The first version with scopes.
pub(crate) const LEAST_VERSION: i32 = 6;

/// Restricts this process and its children. The paths are those after the pivot, if there is one.
pub(crate) fn restrict(profile: &Profile) -> Result<(), Failure> {
    let version = sys::landlock_version();
    if version < LEAST_VERSION {
        return Err(Failure::at(format!("landlock version {version}"))(
            Errno::OPNOTSUPP,
        ));
    }
    let abi = ABI::from(version);
    let rules = rules(profile, abi)?;
    let status = rules.restrict_self().map_err(refused("landlock"))?;
    if status.ruleset != RulesetStatus::FullyEnforced {
        return Err(Failure::at("landlock enforcement")(Errno::OPNOTSUPP));
    }
    Ok(())
}

fn rules(profile: &Profile, abi: ABI) -> Result<RulesetCreated, Failure> {
    let created = || -> Result<RulesetCreated, RulesetError> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(abi))?
            .scope(Scope::from_all(abi))?;
        if profile.network == Network::Deny {
            rules = rules.handle_access(AccessNet::from_all(abi))?;
        }
        rules.create()
    };
    let mut rules = created().map_err(refused("landlock ruleset"))?;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    match profile.tier {
        Tier::Namespaces => {
            rules = beneath(rules, "/", AccessFs::from_read(abi))?;
            // No file can be made there: the directory is on the read-only root.
            rules = beneath(rules, "/dev", device)?;
        }
        Tier::Landlock => {
            rules = beneath(rules, "/proc", AccessFs::ReadFile | AccessFs::ReadDir)?;
            for name in DEVICES {
                rules = beneath(rules, &format!("/dev/{name}"), device)?;
            }
            for mount in profile.mounts.iter().filter(|mount| !mount.is_writable()) {
                rules = granted(rules, mount, AccessFs::from_read(abi), abi)?;
            }
        }
    }
    let nodes = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    let there = |mount: &&Mount| !lacks!(profile, Root) || mount.target().exists();
    let writables = profile.mounts.iter().filter(|mount| mount.is_writable());
    for mount in writables.filter(there) {
        rules = granted(rules, mount, AccessFs::from_all(abi) & !nodes, abi)?;
    }
    Ok(rules)
}

fn granted(
    rules: RulesetCreated,
    mount: &Mount,
    access: BitFlags<AccessFs>,
    abi: ABI,
) -> Result<RulesetCreated, Failure> {
    let path = mount.target().to_string_lossy();
    let stat = rustix::fs::stat(mount.target()).map_err(Failure::at(format!("landlock {path}")))?;
    let access = if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        access
    } else {
        access & AccessFs::from_file(abi)
    };
    beneath(rules, &path, access)
}

fn beneath(
    rules: RulesetCreated,
    path: &str,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Failure> {
    let stage = format!("landlock {path}");
    let place = PathFd::new(path).map_err(|_| Failure::at(stage.clone())(Errno::NOENT))?;
    rules
        .add_rule(PathBeneath::new(place, access))
        .map_err(refused(&stage))
}

fn refused(stage: &str) -> impl FnOnce(RulesetError) -> Failure {
    let stage = stage.to_owned();
    move |_| Failure::at(stage)(Errno::OPNOTSUPP)
}
