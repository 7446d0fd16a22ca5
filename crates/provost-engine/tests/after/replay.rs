//! Replays: gates and commands of a sealed run, done again.

use provost_core::bundle::layout::{AFTER, is_later};
use provost_core::path::RawPath;
use provost_engine::ports::PortError;
use provost_engine::replay::{Reexecuted, ReplayPorts, reexecute};
use provost_engine::sim::Cut;

use crate::machine::{Machine, RUN};
use crate::sealed_run::SealedRun;

fn replay(machine: &mut Machine) -> Result<Reexecuted, PortError> {
    machine.with(|ports| {
        let mut ports = ReplayPorts {
            target: ports.target,
            sealed: ports.sealed,
            registry: ports.registry,
            signer: ports.signer,
            clock: ports.clock,
            observer: ports.observer,
        };
        reexecute(&mut ports, RUN)
    })
}

/// Cuts the power at every call, or lets just that call fail, and replays again.
#[test]
fn a_replay_survives_failure_and_crash_at_any_call() {
    for cut in [Cut::Before, Cut::After, Cut::Flicker] {
        let calls = sweep(cut);
        assert!(calls > 15, "only {calls} calls were cut");
    }
}

fn sweep(cut: Cut) -> u32 {
    let run = SealedRun::new();
    for call in 1.. {
        let mut machine = Machine::new(&run, call, cut);
        let sealed = machine.disk.borrow().clone();
        let first = replay(&mut machine);
        let place = format!("cut {cut:?} call {call}");
        let struck = machine.power.has_struck();
        machine.power.restore();
        let replayed = match first {
            Ok(replayed) => replayed,
            Err(error) => {
                assert!(struck, "{place}: {error}");
                replay(&mut machine).unwrap()
            }
        };
        let after = machine.verified(&place);
        assert_eq!(after.replays.last(), Some(&replayed.replay), "{place}");
        assert_eq!(machine.target.cached, 0, "{place}: something is cached");
        assert_eq!(machine.target.moves, 0, "{place}: the branch moved");
        let disk = machine.disk.borrow();
        for (name, bytes) in &sealed {
            assert_eq!(disk.get(name), Some(bytes), "{place}: {name} was touched");
        }
        let new = disk.keys().filter(|name| !sealed.contains_key(*name));
        let beside = |name: &&RawPath| {
            let name = name.to_string();
            name != AFTER && !is_later(&name)
        };
        assert_eq!(new.filter(beside).count(), 0, "{place}");
        drop(disk);
        if !struck {
            return call;
        }
    }
    unreachable!("a replay has an end")
}
