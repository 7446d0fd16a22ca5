//! Landlock rules: writes only where the profile permits them, no access to anything outside.
//!
//! In tier `namespaces` they repeat what mounts, namespaces and the seccomp filter enforce already.
//! So an older Landlock, which lacks some of the rules, is enough there; `Tier::sealed_gaps` lists
//! what then has one restriction fewer. In tier `landlock` they are the only restriction on files,
//! and restrict reading too.

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

/// The version of Landlock that this kernel offers; 0 if there is none.
pub fn version() -> u32 {
    let version = u32::try_from(sys::landlock_version()).unwrap_or(0);
    #[cfg(feature = "older-kernel")]
    let version = lowered(version);
    version
}

/// The version, or the lower one that a test asks for.
#[cfg(feature = "older-kernel")]
fn lowered(version: u32) -> u32 {
    let asked = std::env::var("PROVOST_TEST_LANDLOCK").ok();
    let asked = asked.and_then(|text| text.parse::<u32>().ok());
    asked.map_or(version, |asked| asked.min(version))
}

/// Restricts this process and its children. The paths are those after the pivot, if there is one.
pub(crate) fn restrict(profile: &Profile) -> Result<(), Failure> {
    let wanted = profile.landlock;
    let offered = u32::try_from(sys::landlock_version()).unwrap_or(0);
    if wanted > offered || wanted < profile.tier.least_landlock() {
        let stage = too_old(profile.tier, wanted.min(offered));
        return Err(Failure::at(stage)(Errno::OPNOTSUPP));
    }
    let abi = ABI::from(i32::try_from(wanted).unwrap_or(i32::MAX));
    let rules = rules(profile, abi)?;
    let status = rules.restrict_self().map_err(refused("landlock"))?;
    if status.ruleset != RulesetStatus::FullyEnforced {
        return Err(Failure::at("landlock enforcement")(Errno::OPNOTSUPP));
    }
    Ok(())
}

/// The stage that fails where `tier` needs a newer Landlock than `version`.
pub(crate) fn too_old(tier: Tier, version: u32) -> String {
    let least = tier.least_landlock();
    match version {
        0 => format!("landlock of version {least} is needed, the kernel has none"),
        version => format!("landlock of version {least} is needed, not {version}"),
    }
}

fn rules(profile: &Profile, abi: ABI) -> Result<RulesetCreated, Failure> {
    let created = || -> Result<RulesetCreated, RulesetError> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(abi))?;
        // An older version has none of them, and an empty set is refused.
        let scopes = Scope::from_all(abi);
        if !scopes.is_empty() {
            rules = rules.scope(scopes)?;
        }
        let net = AccessNet::from_all(abi);
        if profile.network == Network::Deny && !net.is_empty() {
            rules = rules.handle_access(net)?;
        }
        rules.create()
    };
    let mut rules = created().map_err(refused("landlock ruleset"))?;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let device = device & AccessFs::from_all(abi);
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
    for mount in &profile.mounts {
        if let Mount::Reports { .. } = mount {
            rules = granted(rules, mount, AccessFs::WriteFile.into(), abi)?;
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
