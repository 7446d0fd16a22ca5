//! Checks the kernel: what a sandbox is made of, whether one can be made, and whether it holds.

use std::fs;

use provost_core::tier::{Processes, Tier};
use provost_core::wording::counted;
use provost_host::machine::user_toolchain;
use provost_host::sandbox::selftest::{self, Outside, Report};
use provost_host::sandbox::{
    self, Availability, Blocker, LauncherProgram, Profile, Rung, SandboxError,
};

use super::{Row, State, limits};

/// The row of tier `landlock`.
const SECOND: &str = "sandbox of tier `landlock`";

/// All rows about the kernel and the sandbox.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![Row::ok("kernel", kernel())];
    match sandbox::rungs(&LauncherProgram::own()) {
        Ok(rungs) => rows.extend(climb(&rungs)),
        Err(error) => rows.push(
            Row::missing("namespaces", chain(&error)).remedy("provost explain BOX_UNAVAILABLE"),
        ),
    }
    rows.push(landlock());
    rows.push(seccomp());
    let lacking = |rows: &[Row]| {
        let missing = rows.iter().filter(|row| row.state == State::Missing);
        let names: Vec<String> = missing.map(|row| row.name.clone()).collect();
        names.join(", ")
    };
    match lacking(&rows) {
        lacking if lacking.is_empty() => {
            let trial = sandbox::availability(Tier::Namespaces);
            rows.push(made(&trial));
            if let Ok(available) = &trial {
                rows.push(held());
                rows.extend(limits::rows(available.process_limit));
            }
        }
        lacking => rows.push(Row::not_tried("sandbox", format!("without {lacking}"))),
    }
    let parts = |row: &&Row| ["landlock", "seccomp"].contains(&row.name.as_str());
    let parts: Vec<Row> = rows.iter().filter(parts).cloned().collect();
    rows.push(match lacking(&parts) {
        lacking if lacking.is_empty() => second(),
        lacking => Row::not_tried(SECOND, format!("without {lacking}")),
    });
    rows.extend(sealed(sandbox::landlock_version()));
    let holes = Profile::of_tier(Tier::Namespaces).holes().iter();
    let holes = holes.map(|hole| (Tier::Namespaces, hole));
    let lone = Tier::Landlock.holes(Processes::Outer).iter();
    let holes = holes.chain(lone.map(|hole| (Tier::Landlock, hole)));
    rows.extend(holes.map(|(tier, hole)| Row::hole(format!("tier {tier}"), hole.words)));
    rows
}

/// What the Landlock of this machine leaves to other restrictions, if it is enough for a sandbox.
fn sealed(version: u32) -> Vec<Row> {
    let tier = Tier::Namespaces;
    let gaps = tier.sealed_gaps(version);
    let gaps = gaps.filter(|_| version >= tier.least_landlock());
    gaps.map(|gap| Row::sealed(format!("tier {tier}"), gap))
        .collect()
}

/// The rungs in order; one that depends on a missing rung is not tried.
fn climb(rungs: &[Rung]) -> Vec<Row> {
    let mut gone: Vec<&str> = Vec::new();
    let mut rows = Vec::new();
    for rung in rungs {
        let name = rung.name.as_str();
        let below = sandbox::below(name).iter();
        let lacking = below.copied().find(|below| gone.contains(below));
        rows.push(match lacking {
            Some(lacking) => Row::not_tried(name, format!("needs the {lacking}")),
            None => self::rung(rung),
        });
        if lacking.is_some() || !rung.holds() {
            gone.push(name);
        }
    }
    rows
}

fn kernel() -> String {
    let name = rustix::system::uname();
    let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    format!("{} {}", part(name.sysname()), part(name.release()))
}

/// The row of one rung of tier `namespaces`.
fn rung(rung: &Rung) -> Row {
    let name = rung.name.as_str();
    if rung.holds() {
        return Row::ok(name, "available");
    }
    let found = match name {
        "user namespace" => format!("refused: {}{}", rung.answer(), switched_off()),
        _ => format!("refused: {}", rung.answer()),
    };
    // Without these two a sandbox is still made, in another way.
    let row = match name {
        sandbox::OWN_PROC => {
            let instead = "the outer one is shown instead, read-only";
            Row::not_enforced(name, format!("{found}; {instead}"))
        }
        sandbox::LAYERS => {
            Row::not_enforced(name, format!("{found}; workspaces are copied instead"))
        }
        _ => Row::missing(name, found),
    };
    row.errno(rung.answer()).remedy(rung.remedy())
}

/// Whether tier `landlock` is available; a contract has to ask for it.
fn second() -> Row {
    match sandbox::availability(Tier::Landlock) {
        Ok(_) => Row::ok(SECOND, "one was made and ended; it has to be asked for"),
        Err(blocker) => Row::not_enforced(SECOND, blocker.to_string()).remedy(&blocker.remedy),
    }
}

/// The settings that disable user namespaces here.
fn switched_off() -> String {
    let off = sandbox::switched_off();
    let words = off.iter().map(|it| format!("; {} is {}", it.name, it.off));
    words.collect()
}

fn landlock() -> Row {
    let version = sandbox::landlock_version();
    let tier = Tier::Namespaces;
    if version < tier.least_landlock() {
        return Row::missing("landlock", "the kernel has none")
            .remedy("Linux 5.13 or newer, with `landlock` in the list of the boot parameter lsm=");
    }
    let found = match tier.sealed_gaps(version).count() {
        0 => format!("version {version}"),
        gaps => format!(
            "version {version}; {} closed by other means",
            counted(gaps, "gap")
        ),
    };
    Row::ok("landlock", found)
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
        Ok(_) => Row::ok("sandbox", "one of tier `namespaces` was made and ended"),
        Err(blocker) => {
            let row = Row::missing("sandbox", blocker.to_string()).remedy(&blocker.remedy);
            match blocker.errno {
                0 => row,
                errno => row.errno(sandbox::symbol(errno)),
            }
        }
    }
}

/// Attacks a sandbox from inside.
fn held() -> Row {
    const NAME: &str = "sandbox self-test";
    match attack() {
        Ok(report) if report.held() => {
            let probes = report.probes.len();
            Row::ok(NAME, format!("{probes} escape attempts blocked"))
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

fn attack() -> Result<Report, SandboxError> {
    let launcher = LauncherProgram::own();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rungs(refused: &str) -> Vec<Rung> {
        let names = [
            "user namespace",
            "process namespace",
            "mount namespace",
            "network namespace",
            sandbox::OWN_PROC,
            sandbox::MEMORY,
            sandbox::LAYERS,
        ];
        let rung = |name: &str| Rung {
            name: name.to_owned(),
            errno: i32::from(name == refused),
        };
        names.map(rung).into()
    }

    #[test]
    fn gaps_are_listed_where_a_sandbox_can_be_made() {
        let counts = [0, 1, 5, 6].map(|version| sealed(version).len());
        assert_eq!(counts, [0, 6, 2, 0]);
    }

    #[test]
    fn what_stands_on_something_that_is_missing_is_not_missing_itself() {
        let states = |refused: &str| -> Vec<&'static str> {
            let rows = climb(&rungs(refused));
            rows.iter().map(|row| row.state.words()).collect()
        };
        let (ok, missing, untried) = ("ok", "missing", "not tried");
        assert_eq!(states(""), [ok; 7]);
        let all = states("user namespace");
        assert_eq!(all[0], missing);
        assert_eq!(all[1..], [untried; 6]);
        assert_eq!(
            states("mount namespace"),
            [ok, ok, missing, ok, untried, untried, untried]
        );
        assert_eq!(
            states(sandbox::MEMORY),
            [ok, ok, ok, ok, ok, missing, untried]
        );
        assert_eq!(states(sandbox::LAYERS)[6], "not enforced");
    }
}
