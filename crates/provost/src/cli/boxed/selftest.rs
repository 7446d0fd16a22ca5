//! `provost box selftest`: lets a probe attack the box, and says what every attempt came to.

use clap::Args;
use provost_core::exit::Exit;
use provost_core::tier::Tier;
use provost_core::wording::counted;
use provost_host::boxes::selftest::{self, Outside, Probe, Report};
use provost_host::boxes::{BoxError, Launcher, Network, Profile, Wall};
use provost_host::machine::user_toolchain;
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};

/// Attack the box from inside, now, and say what every attempt came to.
///
/// What runs remember of earlier self-tests is not asked. The exit status is 4 if anything got out.
#[derive(Args)]
pub(in crate::cli) struct Selftest {}

pub(in crate::cli) fn run(_: &Selftest) -> Outcome {
    let failed = |error: BoxError| Failure::of(error.code(), &error);
    let mut boxes = Vec::new();
    for (name, network) in [("deny", Network::Deny), ("loopback", Network::Loopback)] {
        boxes.push((name, attack(network).map_err(failed)?));
    }
    let held = boxes.iter().all(|(_, report)| report.held());
    let mut text = String::new();
    for (name, report) in &boxes {
        text += &format!("box with network `{name}`\n");
        for probe in &report.probes {
            text += &line(probe);
        }
    }
    text += &conclusion(&boxes);
    let as_json = |(name, report): &(&str, Report)| json!({ "network": name, "held": report.held(), "report": report });
    Ok(Answer {
        exit: if held { Exit::Yes } else { Exit::Lacking },
        json: json!({
            "held": held,
            "boxes": boxes.iter().map(as_json).collect::<Vec<_>>(),
        }),
        text,
    })
}

fn attack(network: Network) -> Result<Report, BoxError> {
    let launcher = Launcher::own();
    let mut profile = Profile::of_tier(Tier::default());
    user_toolchain().add_to(&mut profile);
    profile.network = network;
    let outside = Outside::new(&launcher)?;
    selftest::run(&launcher, &profile, &outside)
}

fn line(probe: &Probe) -> String {
    let mark = if probe.held { "ok" } else { "OUT" };
    let walls: Vec<&str> = probe.walls.iter().map(|wall| Wall::name(*wall)).collect();
    let line = format!(
        "{mark:<4}{:<18} {:<32} {}",
        probe.name,
        walls.join(", "),
        probe.note
    );
    format!("{}\n", line.trim_end())
}

fn conclusion(boxes: &[(&str, Report)]) -> String {
    let probes: usize = boxes.iter().map(|(_, report)| report.probes.len()).sum();
    let leaks: usize = boxes.iter().map(|(_, report)| report.leaks().count()).sum();
    if boxes.iter().all(|(_, report)| report.held()) {
        return format!("{}, nothing got out\n", counted(probes, "probe"));
    }
    if leaks == 0 {
        return "a probe did not come to its end: provost explain BOX_LEAKS\n".to_owned();
    }
    format!(
        "{}, {leaks} got out: provost explain BOX_LEAKS\n",
        counted(probes, "probe")
    )
}
