//! `provost sandbox selftest`: a probe attacks the sandbox, and each attempt is reported.

use clap::Args;
use provost_core::exit::Exit;
use provost_core::tier::Tier;
use provost_core::wording::counted;
use provost_host::machine::user_toolchain;
use provost_host::sandbox::selftest::{self, Outside, Probe, Report};
use provost_host::sandbox::{LauncherProgram, Network, Profile, SandboxError, Wall};
use serde_json::{Value, json};

use crate::answer::{Answer, Outcome};

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
        sandboxes.push((*name, attack(tier, network.clone())?));
    }
    let held = sandboxes.iter().all(|(_, report)| report.held());
    let mut text = String::new();
    for (name, report) in &sandboxes {
        text += &format!("sandbox of tier `{tier}` with network `{name}`\n");
        for probe in &report.probes {
            text += &line(probe, report);
        }
    }
    text += &conclusion(&sandboxes);
    let as_json = |(name, report): &(&str, Report)| json!({ "network": name, "held": report.held(), "report": report });
    let rows: Vec<Value> = sandboxes.iter().map(as_json).collect();
    Ok(Answer {
        exit: if held { Exit::Yes } else { Exit::Lacking },
        json: json!({
            "held": held,
            "tier": tier,
            "sandboxes": rows,
            // The name before 0.2.
            "boxes": rows,
        }),
        text,
    })
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

fn conclusion(sandboxes: &[(&str, Report)]) -> String {
    let probes: usize = sandboxes
        .iter()
        .map(|(_, report)| report.probes.len())
        .sum();
    let leaks: usize = sandboxes
        .iter()
        .map(|(_, report)| report.leaks().count())
        .sum();
    if sandboxes.iter().all(|(_, report)| report.held()) {
        let open = |(_, report): &(&str, Report)| {
            let open = report.probes.iter().filter(|probe| !probe.held);
            open.count()
        };
        let through = match sandboxes.iter().map(open).sum::<usize>() {
            0 => String::new(),
            count => format!(" {count} of them through declared holes of the tier, else"),
        };
        return format!("{},{through} none escaped\n", counted(probes, "probe"));
    }
    if leaks == 0 {
        return "a probe did not finish: provost explain SANDBOX_LEAKS\n".to_owned();
    }
    format!(
        "{}, {leaks} got out: provost explain SANDBOX_LEAKS\n",
        counted(probes, "probe")
    )
}
