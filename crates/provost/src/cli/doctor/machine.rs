//! Looks at the kernel: what a box is made of, whether one can be made, and whether it holds.

use std::fs;
use std::path::Path;

use provost_host::boxes::selftest::{self, Outside, Report};
use provost_host::boxes::{self, Availability, Blocker, BoxError, Launcher, Profile};
use provost_host::machine::user_toolchain;

use super::{Row, limits};

/// The namespaces of a box, as the kernel and as people call them.
const NAMESPACES: [(&str, &str); 6] = [
    ("user", "user"),
    ("pid", "process"),
    ("mnt", "mount"),
    ("net", "network"),
    ("ipc", "ipc"),
    ("uts", "host name"),
];

/// Settings that keep ordinary users from making a user namespace, and the value that does.
const SWITCHES: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/user/max_user_namespaces",
        "user.max_user_namespaces",
        "0",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "kernel.unprivileged_userns_clone",
        "0",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "kernel.apparmor_restrict_unprivileged_userns",
        "1",
    ),
];

/// Everything about the kernel and the box.
pub(super) fn rows() -> Vec<Row> {
    let trial = boxes::availability();
    let mut rows = vec![Row::ok("kernel", kernel())];
    rows.extend(NAMESPACES.map(|(file, name)| namespace(file, name, trial.as_ref().err())));
    rows.push(landlock());
    rows.push(seccomp());
    rows.push(made(&trial));
    if let Ok(available) = &trial {
        rows.push(held());
        rows.extend(limits::rows(available.process_limit));
    }
    rows
}

fn kernel() -> String {
    let name = rustix::system::uname();
    let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    format!("{} {}", part(name.sysname()), part(name.release()))
}

fn namespace(file: &str, name: &str, blocker: Option<&Blocker>) -> Row {
    let row = format!("{name} namespace");
    if !Path::new("/proc/self/ns").join(file).exists() {
        return Row::missing(row, "the kernel has none")
            .remedy("use a kernel that is built with all kinds of namespaces");
    }
    match blocker {
        Some(blocker) if file == "user" && is_about_users(blocker) => {
            Row::missing(row, format!("{}{}", blocker.refusal(), switched_off()))
                .remedy(&blocker.remedy)
        }
        _ => Row::ok(row, "in the kernel"),
    }
}

/// Whether a user namespace is what could not be had.
fn is_about_users(blocker: &Blocker) -> bool {
    let stage = blocker.stage.split(' ').next().unwrap_or_default();
    ["clone", "uid_map", "gid_map", "setgroups"].contains(&stage)
}

/// The settings that switch user namespaces off here.
fn switched_off() -> String {
    let mut text = String::new();
    for (path, name, off) in SWITCHES {
        if fs::read_to_string(path).is_ok_and(|value| value.trim() == off) {
            text += &format!("; {name} is {off}");
        }
    }
    text
}

fn landlock() -> Row {
    let version = boxes::landlock_version();
    let least = boxes::LEAST_LANDLOCK;
    if version >= least {
        return Row::ok("landlock", format!("version {version}"));
    }
    let found = match version {
        ..=0 => format!("the kernel has none; version {least} is needed"),
        version => format!("version {version}; version {least} is needed"),
    };
    Row::missing("landlock", found)
        .remedy("Linux 6.12 or newer, with `landlock` in the list of the boot parameter lsm=")
}

fn seccomp() -> Row {
    match fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail") {
        Ok(actions) if actions.split_whitespace().any(|word| word == "errno") => {
            Row::ok("seccomp", "system calls can be filtered")
        }
        _ => Row::missing("seccomp", "the kernel cannot filter system calls")
            .remedy("use a kernel that is built with CONFIG_SECCOMP_FILTER"),
    }
}

fn made(trial: &Result<Availability, Blocker>) -> Row {
    match trial {
        Ok(_) => Row::ok("box", "one of tier `namespaces` was made and ended"),
        Err(blocker) => Row::missing("box", blocker.to_string()).remedy(&blocker.remedy),
    }
}

/// Attacks a box from inside.
fn held() -> Row {
    const NAME: &str = "box self-test";
    match attack() {
        Ok(report) if report.held() => {
            let probes = report.probes.len();
            Row::ok(NAME, format!("{probes} probes, nothing got out"))
        }
        Ok(report) => {
            let leak = |probe: &selftest::Probe| format!("{} ({})", probe.name, probe.note);
            let leaks: Vec<String> = report.leaks().map(leak).collect();
            let found = if leaks.is_empty() {
                "the probe did not come to its end".to_owned()
            } else {
                format!("got out: {}", leaks.join(", "))
            };
            Row::missing(NAME, found).remedy("provost explain BOX_LEAKS")
        }
        Err(error) => Row::missing(NAME, chain(&error)).remedy("provost explain BOX_UNAVAILABLE"),
    }
}

fn attack() -> Result<Report, BoxError> {
    let launcher = Launcher::own();
    let mut profile = Profile::minimal();
    user_toolchain().add_to(&mut profile);
    let outside = Outside::new(&launcher)?;
    selftest::run(&launcher, &profile, &outside)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text += &format!(": {cause}");
        next = cause.source();
    }
    text
}
