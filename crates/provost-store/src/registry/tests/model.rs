use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// A random operation on the registry.
#[derive(Debug, Clone)]
enum Step {
    Acquire {
        run: usize,
        scope: usize,
        pid: u32,
        time: i64,
    },
    Renew {
        run: usize,
        back: u64,
        time: i64,
    },
    Release {
        run: usize,
    },
    Wait {
        time: i64,
    },
    Die {
        pid: u32,
    },
    Reopen,
}

const RUNS: [&str; 4] = ["w", "x", "y", "z"];

/// Scopes, each with the leaves of a small tree that it covers.
const SCOPES: [(&[&str], u8); 7] = [
    (&["a"], 0b0011),
    (&["a/b"], 0b0001),
    (&["a/c"], 0b0010),
    (&["d"], 0b1100),
    (&["d/e/f"], 0b0100),
    (&["a/b", "d/g"], 0b1001),
    (&["a/c", "d/e"], 0b0110),
];

fn step() -> impl Strategy<Value = Step> {
    let (run, pid, time) = (0..RUNS.len(), 0..3_u32, 1..40_i64);
    prop_oneof![
        8 => (run.clone(), 0..SCOPES.len(), pid.clone(), time.clone())
            .prop_map(|(run, scope, pid, time)| Step::Acquire { run, scope, pid, time }),
        3 => (run.clone(), 0..2_u64, time.clone())
            .prop_map(|(run, back, time)| Step::Renew { run, back, time }),
        2 => run.prop_map(|run| Step::Release { run }),
        4 => time.prop_map(|time| Step::Wait { time }),
        1 => pid.prop_map(|pid| Step::Die { pid }),
        1 => Just(Step::Reopen),
    ]
}

/// Model of the registry: leaves instead of paths, no database.
#[derive(Default)]
struct Model {
    held: BTreeMap<usize, Entry>,
    fence: u64,
    now: i64,
    dead: BTreeSet<u32>,
}

#[derive(Clone, PartialEq)]
struct Entry {
    scope: usize,
    pid: u32,
    fence: u64,
    end: i64,
}

impl Model {
    fn acquire(&mut self, run: usize, scope: usize, pid: u32, end: i64) -> Result<u64, Vec<usize>> {
        let (now, dead) = (self.now, &self.dead);
        self.held
            .retain(|_, entry| now < entry.end && !dead.contains(&entry.pid));
        let blocks = |(other, entry): (&usize, &Entry)| {
            let strange = if *other == run {
                entry.pid != pid
            } else {
                SCOPES[entry.scope].1 & SCOPES[scope].1 != 0
            };
            strange.then_some((entry.fence, *other))
        };
        let mut blocked: Vec<_> = self.held.iter().filter_map(blocks).collect();
        blocked.sort_unstable();
        if !blocked.is_empty() {
            return Err(blocked.into_iter().map(|(_, run)| run).collect());
        }
        if let Some(entry) = self.held.get_mut(&run)
            && entry.scope == scope
        {
            entry.end = entry.end.max(end);
            return Ok(entry.fence);
        }
        self.fence += 1;
        let fence = self.fence;
        self.held.insert(
            run,
            Entry {
                scope,
                pid,
                fence,
                end,
            },
        );
        Ok(fence)
    }

    fn renew(&mut self, run: usize, fence: u64, end: i64) -> bool {
        let entry = self.held.get_mut(&run).filter(|entry| entry.fence == fence);
        entry.is_some_and(|entry| {
            entry.end = entry.end.max(end);
            true
        })
    }
}

fn play(steps: &[Step]) -> Result<(), TestCaseError> {
    let scratch = Scratch::new();
    let mut registry = scratch.open();
    let mut model = Model::default();
    for step in steps {
        match *step {
            Step::Acquire {
                run,
                scope,
                pid,
                time,
            } => {
                let request = LeaseRequest {
                    owner: owner(pid, "boot"),
                    expires_at: model.now + time,
                    ..request(RUNS[run], SCOPES[scope].0, model.now)
                };
                let dead = model.dead.clone();
                let alive = |owner: &Owner| !dead.contains(&owner.pid);
                let got = match registry.acquire(&request, &alive).unwrap() {
                    Acquired::Granted(lease) => Ok(lease.fence),
                    Acquired::Held(holders) => Err(holders
                        .iter()
                        .map(|holder| RUNS.iter().position(|run| *run == holder.run_id).unwrap())
                        .collect()),
                };
                prop_assert_eq!(got, model.acquire(run, scope, pid, request.expires_at));
            }
            Step::Renew { run, back, time } => {
                let fence = model
                    .held
                    .get(&run)
                    .map_or(model.fence, |entry| entry.fence);
                let (fence, end) = (fence.saturating_sub(back), model.now + time);
                let got = registry.renew(RUNS[run], fence, end).unwrap();
                prop_assert_eq!(got, model.renew(run, fence, end));
            }
            Step::Release { run } => {
                registry.release(RUNS[run]).unwrap();
                model.held.remove(&run);
            }
            Step::Wait { time } => model.now += time,
            Step::Die { pid } => {
                model.dead.insert(pid);
            }
            Step::Reopen => {
                drop(registry);
                registry = scratch.open();
            }
        }
        let got: BTreeMap<String, (u64, i64)> = registry
            .leases()
            .unwrap()
            .into_iter()
            .map(|lease| (lease.run_id, (lease.fence, lease.expires_at)))
            .collect();
        let want = model
            .held
            .iter()
            .map(|(run, entry)| (RUNS[*run].to_owned(), (entry.fence, entry.end)))
            .collect();
        prop_assert_eq!(got, want);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_registry_does_what_its_explanation_says(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        play(&steps)?;
    }
}
