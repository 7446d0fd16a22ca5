//! The last steps before the payload runs: closes descriptors, drops privileges, and installs
//! Landlock and seccomp.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use provost_core::tier::Tier;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::error::{EXEC, Failure};
use super::messages::Spec;
use super::profile::{Limits, Profile, lacks};
use super::{landlock_rules, seccomp_filter, sys};

/// What the message queues of one user may hold: the kernel's default.
const MESSAGE_BYTES: u64 = 800 << 10;

/// Executes the payload; returns only if that fails.
pub(crate) fn run(spec: &Spec) -> Failure {
    match narrow(&spec.profile, spec.terminal) {
        Ok(()) => execute(spec),
        Err(failure) => failure,
    }
}

fn narrow(profile: &Profile, terminal: bool) -> Result<(), Failure> {
    if !lacks!(profile, Session) {
        rustix::process::setsid().map_err(Failure::at("session"))?;
    }
    if terminal {
        rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())
            .map_err(Failure::at("terminal"))?;
    }
    rustix::process::umask(Mode::from_raw_mode(0o022));
    if !lacks!(profile, Root) {
        rustix::process::chdir(&profile.workdir).map_err(Failure::at(format!(
            "workdir {}",
            profile.workdir.display()
        )))?;
    }
    if !lacks!(profile, Limits) {
        set_limits(&profile.limits).map_err(Failure::at("limits"))?;
    }
    drop_capabilities(profile).map_err(Failure::at("capabilities"))?;
    if !lacks!(profile, NoNewPrivileges) {
        rustix::thread::set_no_new_privs(true).map_err(Failure::at("no_new_privs"))?;
    }
    sys::reset_signals();
    sys::close_on_exec().map_err(Failure::at("descriptors"))?;
    if lacks!(profile, Descriptors) {
        rustix::io::dup(rustix::stdio::stdin())
            .map(std::mem::forget)
            .map_err(Failure::at("descriptors"))?;
    }
    if !lacks!(profile, Landlock) {
        landlock_rules::restrict(profile)?;
    }
    if !lacks!(profile, Seccomp) {
        seccomp_filter::install(profile)?;
    }
    Ok(())
}

fn set_limits(limits: &Limits) -> Result<(), Errno> {
    let limits = [
        (Resource::Core, 0),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nproc, limits.processes),
        (Resource::Msgqueue, MESSAGE_BYTES),
    ];
    for (resource, value) in limits {
        // No process may raise a limit above that of the driver.
        let most = rustix::process::getrlimit(resource).maximum;
        let value = most.map_or(value, |most| most.min(value));
        let limit = Rlimit {
            current: Some(value),
            maximum: Some(value),
        };
        rustix::process::setrlimit(resource, limit)?;
    }
    Ok(())
}

fn drop_capabilities(profile: &Profile) -> Result<(), Errno> {
    if !lacks!(profile, Capabilities) {
        let mut known = CapabilitySet::from_bits_retain(u64::MAX).iter_names();
        for (_, capability) in known.by_ref() {
            match rustix::thread::remove_capability_from_bounding_set(capability) {
                // The kernel does not know this one.
                Ok(()) | Err(Errno::INVAL) => {}
                // Outside a user namespace of ours only root may drop it. Another user cannot gain
                // a capability from it, because of `no_new_privs`.
                Err(Errno::PERM) if profile.tier == Tier::Landlock && !is_root() => break,
                Err(errno) => return Err(errno),
            }
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Executes the program, which is looked up in the sandbox's own PATH.
fn execute(spec: &Spec) -> Failure {
    let Some(program) = spec.argv.first() else {
        return Failure::at(format!("{EXEC} nothing"))(Errno::INVAL);
    };
    let failed = |errno| Failure::at(format!("{EXEC} {program}"))(errno);
    let extra = lacks!(spec.profile, Environment).then(|| "STRAY=1".to_owned());
    let env = spec.profile.env.iter();
    let env = env.map(|(name, value)| format!("{name}={value}"));
    let env = strings(env.chain(extra));
    let (Some(argv), Some(env)) = (strings(spec.argv.iter().cloned()), env) else {
        return failed(Errno::INVAL);
    };
    if program.contains('/') {
        return failed(sys::execute(&argv[0], &argv, &env));
    }
    let mut answer = Errno::NOENT;
    let path = spec.profile.env.get("PATH").map_or("", String::as_str);
    for directory in path.split(':').filter(|directory| !directory.is_empty()) {
        let place = Path::new(directory).join(program);
        let Ok(place) = CString::new(place.as_os_str().as_bytes()) else {
            continue;
        };
        match sys::execute(&place, &argv, &env) {
            Errno::NOENT | Errno::NOTDIR => {}
            // Like every shell: a directory or an unreadable file in the PATH is skipped.
            Errno::ACCESS => answer = Errno::ACCESS,
            errno => return failed(errno),
        }
    }
    failed(answer)
}

fn strings(texts: impl Iterator<Item = String>) -> Option<Vec<CString>> {
    texts.map(|text| CString::new(text).ok()).collect()
}
