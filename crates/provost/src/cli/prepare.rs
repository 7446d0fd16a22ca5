//! `provost prepare`: makes dependency layers before a run needs them.

use clap::Args;
use provost_core::contract::limits::{Asked, Limits};
use provost_core::run::Step;
use provost_core::run::effect::{self, Base};
use provost_core::run::fact::Layered;
use provost_engine::opening::Origin as _;
use provost_engine::ports::{Control, Observer as _, ObserverChoice, Progress, Watch};
use provost_host::cache;
use provost_host::machine::Machine;
use provost_host::origin::GitOrigin;
use serde::Serialize;

use crate::answer::{Answered, Outcome};
use crate::places::Places;
use crate::progress::ProgressObserver;
use crate::show::Reader;
use crate::user_consent;
use crate::{report, traffic};

// Prepare dependencies for sandboxes that have no network, as `provost.toml` says.
#[derive(Args)]
#[command(after_help = "\
Each [[prepare]] step of the commit's provost.toml runs once in a sandbox, and its output is kept
until one of its inputs changes. A run does the same on its own; this command does it earlier.
`provost explain prepare` describes the steps.

Examples:
  provost prepare
  provost prepare --base main --json")]
pub(super) struct Prepare {
    /// The revision of the policy and the files.
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    base: String,
}

pub(super) fn run(prepare: &Prepare, reader: Reader) -> Outcome {
    let place = Places::find()?;
    let origin = GitOrigin(&place.repo);
    let commit = origin.resolve(&prepare.base)?;
    let tree = origin.tree(&commit)?;
    let policy = origin.policy(&tree)?;
    let (steps, limits, loopback) = (policy.prepare, policy.limits, !policy.loopback_off);
    if steps.is_empty() {
        return Ok(PreparedLayers { layers: Vec::new() }.into());
    }
    user_consent::to_prepare(&place, &steps)?;
    place.prepare()?;
    let cache = place.cache()?.to_owned();
    let machine = Machine::new(place.repo, &cache, &cache.join(cache::PREPARED), "prepare");
    let plan = effect::Prepare {
        steps,
        tree: tree.clone(),
        base: Base { commit, tree },
        logs: "logs".to_owned(),
        limits: Limits::of(&Asked::default(), &limits),
        loopback,
    };
    let mut progress = PrepareProgress::new(reader);
    let ready = machine.ready(&plan, &mut progress);
    progress.0.clear();
    let layers = ready?.layered;
    Ok(PreparedLayers { layers }.into())
}

#[derive(Serialize)]
struct PreparedLayers {
    layers: Vec<Layered>,
}

impl Answered for PreparedLayers {
    fn text(&self) -> String {
        match self.layers.as_slice() {
            [] => "provost.toml of that commit has no step to prepare\n".to_owned(),
            layers => text(layers),
        }
    }
}

fn text(layers: &[Layered]) -> String {
    if layers.iter().all(|layer| layer.made.is_none()) {
        let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
        return format!("nothing to do: {} already made\n", names.join(", "));
    }
    let mut text = String::new();
    for layer in layers {
        text += &report::layer(layer);
        let traffic = layer.made.iter().map(|made| &made.network);
        for line in traffic.flat_map(|network| traffic::lines(network)) {
            text += &format!("  network  {line}\n");
        }
    }
    text
}

/// Shows progress while layers are made.
pub(super) struct PrepareProgress(pub(super) ProgressObserver);

impl PrepareProgress {
    pub(super) fn new(reader: Reader) -> Self {
        let mut observer = ProgressObserver::new(reader == Reader::Program);
        observer.follow(Step::Prepare);
        Self(observer)
    }
}

impl Watch for PrepareProgress {
    fn tick(&mut self, progress: &Progress) -> Control {
        match self.0.progressed(progress) {
            ObserverChoice::Continue => Control::Continue,
            ObserverChoice::Cancel => Control::Cancel,
        }
    }
}
