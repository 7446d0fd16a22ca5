//! Looks at the kernel: what a box is made of, whether one can be made, and whether it holds.

use std::fs;

use provost_core::tier::{Processes, Tier};
use provost_host::boxes::selftest::{self, Outside, Report};
use provost_host::boxes::{self, Availability, Blocker, BoxError, Launcher, Profile, Rung};
use provost_host::machine::user_toolchain;

use super::{Row, limits};

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
    let trial = boxes::availability(Tier::Namespaces);
    let mut rows = vec![Row::ok("kernel", kernel())];
    match boxes::rungs(&Launcher::own()) {
        Ok(rungs) => {
            // The first one carries all the others.
            let carried = rungs.first().is_some_and(Rung::holds);
            rows.extend(rungs.iter().map(|it| rung(it, carried)));
        }
        Err(error) => rows.push(
            Row::missing("namespaces", chain(&error)).remedy("provost explain BOX_UNAVAILABLE"),
        ),
    }
    rows.push(landlock());
    rows.push(seccomp());
    rows.push(made(&trial));
    if let Ok(available) = &trial {
        rows.push(held());
        rows.extend(limits::rows(available.process_limit));
    }
    rows.push(second());
    let holes = Profile::of_tier(Tier::Namespaces).holes().iter();
    let holes = holes.map(|hole| (Tier::Namespaces, hole));
    let lone = Tier::Landlock.holes(Processes::Outer).iter();
    let holes = holes.chain(lone.map(|hole| (Tier::Landlock, hole)));
    rows.extend(holes.map(|(tier, hole)| Row::hole(format!("tier {tier}"), hole.words)));
    rows
}

fn kernel() -> String {
    let name = rustix::system::uname();
    let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    format!("{} {}", part(name.sysname()), part(name.release()))
}

/// Something that a box of tier `namespaces` stands on.
fn rung(rung: &Rung, carried: bool) -> Row {
    let name = rung.name.as_str();
    if rung.holds() {
        return Row::ok(name, "tried and had");
    }
    let found = match name {
        "user namespace" => format!("refused: {}{}", rung.answer(), switched_off()),
        _ => format!("refused: {}", rung.answer()),
    };
    // Without these two a box is made all the same, in another way.
    let row = match name {
        boxes::OWN_PROC if carried => {
            let instead = "the outer one is shown instead, read-only";
            Row::not_enforced(name, format!("{found}; {instead}"))
        }
        boxes::LAYERS if carried => {
            Row::not_enforced(name, format!("{found}; workspaces are copied instead"))
        }
        _ => Row::missing(name, found),
    };
    row.errno(rung.answer()).remedy(rung.remedy())
}

/// Whether the second tier is there, which has to be asked for.
fn second() -> Row {
    const NAME: &str = "box of tier `landlock`";
    match boxes::availability(Tier::Landlock) {
        Ok(_) => Row::ok(NAME, "one was made and ended; it has to be asked for"),
        Err(blocker) => Row::not_enforced(NAME, blocker.to_string()).remedy(&blocker.remedy),
    }
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
        Err(blocker) => {
            let row = Row::missing("box", blocker.to_string()).remedy(&blocker.remedy);
            match blocker.errno {
                0 => row,
                errno => row.errno(boxes::symbol(errno)),
            }
        }
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
    let mut profile = Profile::of_tier(Tier::Namespaces);
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
