//! `provost sandbox selftest`: a probe attacks the sandbox, and each attempt is reported.

use clap::Args;
use provost_core::exit::Exit;
use provost_core::tier::Tier;
use provost_core::wording::counted;
use provost_host::machine::user_toolchain;
use provost_host::sandbox::selftest::{self, Outside, Probe, Report};
use provost_host::sandbox::{LauncherProgram, Network, Profile, SandboxError, Wall};
use serde::Serialize;

use crate::answer::{Answered, Outcome};

/// Attack the sandbox from inside, and report the outcome of each attempt.
///
/// Cached results of earlier self-tests are not used. The exit status is 4 if anything got out.
#[derive(Args)]
pub(in crate::cli) struct Selftest {
    /// The tier of the sandbox: `namespaces` or `landlock`.
    #[arg(long, value_name = "TIER", default_value_t)]
    tier: Tier,
}

pub(in crate::cli) fn run(selftest: &Selftest) -> Outcome {
    let tier = selftest.tier;
    let networks: &[(&str, Network)] = match tier {
        Tier::Namespaces => &[("deny", Network::Deny), ("loopback", Network::Loopback)],
        // It has no network namespace.
        Tier::Landlock => &[("deny", Network::Deny)],
    };
    let mut sandboxes = Vec::new();
    for (name, network) in networks {
        let report = attack(tier, network.clone())?;
        sandboxes.push(AttackedSandbox {
            network: name,
            held: report.held(),
            report,
        });
    }
    let tried = Selftested {
        held: sandboxes.iter().all(|one| one.held),
        tier,
        sandboxes: &sandboxes,
        boxes: &sandboxes,
    };
    Ok(tried.into())
}

#[derive(Serialize)]
struct Selftested<'a> {
    held: bool,
    tier: Tier,
    sandboxes: &'a [AttackedSandbox],
    /// The name before 0.2.
    boxes: &'a [AttackedSandbox],
}

#[derive(Serialize)]
struct AttackedSandbox {
    network: &'static str,
    held: bool,
    report: Report,
}

impl Answered for Selftested<'_> {
    fn exit(&self) -> Exit {
        if self.held { Exit::Yes } else { Exit::Lacking }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for AttackedSandbox {
            network, report, ..
        } in self.sandboxes
        {
            let tier = self.tier;
            let landlock = report.landlock;
            text += &format!(
                "sandbox of tier `{tier}` with network `{network}`, landlock version {landlock}\n"
            );
            let gaps = tier.sealed_gaps(landlock);
            text.extend(gaps.map(|gap| format!("gap  {gap}\n")));
            text.extend(report.probes.iter().map(|probe| line(probe, report)));
        }
        text + &self.conclusion()
    }
}

fn attack(tier: Tier, network: Network) -> Result<Report, SandboxError> {
    let launcher = LauncherProgram::own();
    let mut profile = Profile::of_tier(tier);
    user_toolchain().add_to(&mut profile);
    profile.network = network;
    let outside = Outside::new(&launcher)?;
    selftest::run(&launcher, &profile, &outside)
}

fn line(probe: &Probe, report: &Report) -> String {
    let mark = match probe.held {
        true => "ok",
        false if report.tier.excuses(report.processes, &probe.name) => "hole",
        false => "OUT",
    };
    let walls: Vec<&str> = probe.walls.iter().map(|wall| Wall::name(*wall)).collect();
    let line = format!(
        "{mark:<5}{:<18} {:<32} {}",
        probe.name,
        walls.join(", "),
        probe.note
    );
    format!("{}\n", line.trim_end())
}

impl Selftested<'_> {
    fn conclusion(&self) -> String {
        let count = |of: fn(&Report) -> usize| self.sandboxes.iter().map(|it| of(&it.report)).sum();
        let probes: usize = count(|report| report.probes.len());
        let probes = counted(probes, "escape attempt");
        let leaks: usize = count(|report| report.leaks().count());
        if self.held {
            let not_held = |report: &Report| report.probes.iter().filter(|it| !it.held).count();
            let through = match count(not_held) {
                0_usize => String::new(),
                open => format!(", except {open} through declared holes of the tier"),
            };
            return format!("sandbox checked: {probes} blocked{through}\n");
        }
        if leaks == 0 {
            return "a probe did not finish: provost explain SANDBOX_LEAKS\n".to_owned();
        }
        format!("{probes}, {leaks} escaped: provost explain SANDBOX_LEAKS\n")
    }
}
