//! The fleet in virtual time: 1 000 workers and 20 000 runs, with lost and frozen workers, repeated
//! messages and a slow hub. No accepted work is lost, and no run lands twice.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "what goes wrong here is a failed test; what is measured is shown"
)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use provost_core::code::Code;
use provost_core::object::Oid;
use provost_core::scope::Scope;
use provost_core::verdict::Verdict;
use provost_ticket::course::{
    AttemptEnd, AttemptReport, Course, CourseEnd, CourseEvent, CourseStep, LandingEnd,
};
use provost_ticket::fence::Fence;
use provost_ticket::scope_leases::{ScopeAnswer, ScopeLeases, ScopeRequest};

/// What a simulated fleet is made of; times in milliseconds.
#[derive(Clone, Copy)]
struct Load {
    workers: usize,
    runs: usize,
    repositories: usize,
    /// Between two submissions.
    every: u64,
    /// How long the hub and the lander of a repository take for one push and one landing.
    push: u64,
    land: u64,
}

enum Happening {
    Submitted(usize),
    /// An attempt ends; `late` if its worker was frozen and another one works.
    Worked {
        run: usize,
        fence: Fence,
        late: bool,
    },
    /// The heartbeats of an attempt stopped.
    Missed(usize),
    Asked(usize, AttemptReport),
}

struct SimulatedRun {
    course: Course,
    repository: usize,
    submitted: u64,
    began: Option<u64>,
    attempt: u32,
    ended: Option<u64>,
}

struct SimulatedFleet {
    load: Load,
    seed: u64,
    now: u64,
    number: u64,
    happenings: BTreeMap<u64, Happening>,
    order: BinaryHeap<Reverse<(u64, u64)>>,
    runs: Vec<SimulatedRun>,
    leases: Vec<ScopeLeases>,
    free: usize,
    waiting: VecDeque<usize>,
    hub: Vec<u64>,
    lander: Vec<u64>,
    tips: Vec<u64>,
    /// What the hub has.
    evidence: BTreeSet<(usize, Fence)>,
    landed: BTreeMap<usize, u32>,
}

fn commit(number: u64) -> Oid {
    Oid::try_from(format!("{number:040x}")).unwrap()
}

impl SimulatedFleet {
    fn played(load: Load) -> Self {
        let run = |at: usize| SimulatedRun {
            course: Course::default(),
            repository: at % load.repositories,
            submitted: 0,
            began: None,
            attempt: 0,
            ended: None,
        };
        let mut fleet = Self {
            load,
            seed: 7,
            now: 0,
            number: 0,
            happenings: BTreeMap::new(),
            order: BinaryHeap::new(),
            runs: (0..load.runs).map(run).collect(),
            leases: vec![ScopeLeases::default(); load.repositories],
            free: load.workers,
            waiting: VecDeque::new(),
            hub: vec![0; load.repositories],
            lander: vec![0; load.repositories],
            tips: vec![1; load.repositories],
            evidence: BTreeSet::new(),
            landed: BTreeMap::new(),
        };
        for at in 0..load.runs {
            fleet.later(at as u64 * load.every, Happening::Submitted(at));
        }
        while let Some(Reverse((at, number))) = fleet.order.pop() {
            fleet.now = at;
            match fleet.happenings.remove(&number).unwrap() {
                Happening::Submitted(run) => fleet.submitted(run),
                Happening::Worked { run, fence, late } => fleet.worked(run, fence, late),
                Happening::Missed(run) => {
                    fleet.free += 1;
                    fleet.waiting.push_back(run);
                }
                Happening::Asked(run, report) => fleet.land(run, report),
            }
            fleet.assign();
        }
        fleet
    }

    /// A linear congruential generator: the same course of events every time.
    fn random(&mut self, below: u64) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.seed >> 33) % below
    }

    fn later(&mut self, delay: u64, happening: Happening) {
        self.number += 1;
        self.happenings.insert(self.number, happening);
        self.order.push(Reverse((self.now + delay, self.number)));
    }

    fn submitted(&mut self, run: usize) {
        self.runs[run].submitted = self.now;
        let request = ScopeRequest {
            run: run.to_string(),
            scope: Scope::parse(&[format!("src/{}", self.random(400))]).unwrap(),
        };
        let leases = &mut self.leases[self.runs[run].repository];
        let first = leases.acquire(request.clone());
        // The server may deliver a message twice.
        assert_eq!(leases.acquire(request), first);
        match first {
            ScopeAnswer::Granted { number } => self.granted(run, number),
            ScopeAnswer::Queued { .. } => {}
            ScopeAnswer::Refused => panic!("the queue of a repository is full"),
        }
    }

    fn granted(&mut self, run: usize, number: u64) {
        self.runs[run].course.apply(CourseEvent::Granted { number });
        self.waiting.push_back(run);
    }

    /// Gives waiting runs to free workers.
    fn assign(&mut self) {
        while self.free > 0
            && let Some(run) = self.waiting.pop_front()
        {
            let took = match self.runs[run].course.next() {
                CourseStep::Execute { .. } => 120_000 + self.random(600_000),
                CourseStep::Rejudge { .. } => 20_000 + self.random(40_000),
                _ => continue,
            };
            self.free -= 1;
            let (now, one) = (self.now, &mut self.runs[run]);
            one.began.get_or_insert(now);
            one.attempt += 1;
            let (lease, attempt) = (one.course.number().unwrap(), one.attempt);
            let fence = Fence { lease, attempt };
            if self.random(1000) >= 20 {
                self.later(
                    took,
                    Happening::Worked {
                        run,
                        fence,
                        late: false,
                    },
                );
                continue;
            }
            // The worker is lost, or frozen and thawed long after another one has begun.
            self.later(180_000, Happening::Missed(run));
            if self.random(2) == 0 {
                self.later(
                    took + 400_000,
                    Happening::Worked {
                        run,
                        fence,
                        late: true,
                    },
                );
            }
        }
    }

    /// Evidence is pushed to refs of its own; then it is reported.
    fn worked(&mut self, run: usize, fence: Fence, late: bool) {
        assert!(
            self.evidence.insert((run, fence)),
            "an attempt pushed twice"
        );
        let repository = self.runs[run].repository;
        let done = self.hub[repository].max(self.now) + self.load.push;
        self.hub[repository] = done;
        let base = match self.runs[run].course.next() {
            CourseStep::Rejudge { tip, .. } => tip,
            _ => commit(1),
        };
        let report = AttemptReport {
            end: AttemptEnd::Accepted,
            fence,
            worker: String::new(),
            bundle: Some(commit(0)),
            base,
        };
        if !late {
            self.free += 1;
            if self.random(1000) < 50 {
                let verdict = Verdict::deny(Code::AcceptanceFailed, "a test failed");
                let end = AttemptEnd::Refused(verdict);
                self.finish(run, CourseEvent::Executed(AttemptReport { end, ..report }));
                return;
            }
            self.runs[run]
                .course
                .apply(CourseEvent::Executed(report.clone()));
        }
        // The server drops a late report; a lander that is asked all the same must refuse it.
        self.later(done - self.now, Happening::Asked(run, report));
    }

    /// The lander of a repository, with the compare-and-swap of the hub.
    fn land(&mut self, run: usize, report: AttemptReport) {
        let repository = self.runs[run].repository;
        if self.lander[repository] > self.now {
            self.later(
                self.lander[repository] - self.now,
                Happening::Asked(run, report),
            );
            return;
        }
        if self.landed.contains_key(&run) {
            let commit = commit(self.tips[repository]);
            self.finish(run, CourseEvent::Landing(LandingEnd::Landed { commit }));
            return;
        }
        let next = self.runs[run].course.next();
        let counts = matches!(next, CourseStep::Land(current) if current.fence == report.fence);
        let held = self.leases[repository].number_of(&run.to_string());
        if held != Some(report.fence.lease) || !counts {
            return;
        }
        self.lander[repository] = self.now + self.load.land;
        let tip = commit(self.tips[repository]);
        if report.base != tip {
            self.runs[run]
                .course
                .apply(CourseEvent::Landing(LandingEnd::Moved { tip }));
            match self.runs[run].course.next() {
                CourseStep::Done(_) => self.release(run),
                _ => self.waiting.push_back(run),
            }
            return;
        }
        assert!(
            self.evidence.contains(&(run, report.fence)),
            "nothing lands without evidence"
        );
        self.tips[repository] += 1;
        *self.landed.entry(run).or_default() += 1;
        if self.random(1000) < 10 {
            // The answer is lost, so the landing is repeated.
            self.later(5_000, Happening::Asked(run, report));
            return;
        }
        let commit = commit(self.tips[repository]);
        self.finish(run, CourseEvent::Landing(LandingEnd::Landed { commit }));
    }

    fn finish(&mut self, run: usize, event: CourseEvent) {
        self.runs[run].course.apply(event);
        self.release(run);
    }

    fn release(&mut self, run: usize) {
        let now = self.now;
        self.runs[run].ended.get_or_insert(now);
        let repository = self.runs[run].repository;
        for grant in self.leases[repository].release(&run.to_string()) {
            self.granted(grant.run.parse().unwrap(), grant.number);
        }
    }

    /// How the runs ended: landed, refused, not landed because the target moved again and again.
    fn ends(&self) -> [usize; 3] {
        let mut ends = [0; 3];
        for (at, run) in self.runs.iter().enumerate() {
            let CourseStep::Done(end) = run.course.next() else {
                panic!("run {at} has no end: {:?}", run.course);
            };
            let landings = self.landed.get(&at).copied().unwrap_or_default();
            let kind = match end {
                CourseEnd::Landed { .. } => 0,
                CourseEnd::Refused(_) => 1,
                CourseEnd::Lost { .. } => 2,
                CourseEnd::Cancelled => panic!("run {at} was cancelled by itself"),
            };
            assert_eq!(
                landings,
                u32::from(kind == 0),
                "run {at} landed {landings} times"
            );
            let [first, last] = [(0, 0), (u64::MAX, u32::MAX)];
            let fence = |(lease, attempt)| Fence { lease, attempt };
            let mut kept = self.evidence.range((at, fence(first))..=(at, fence(last)));
            let kept = kept.next().is_some();
            assert!(kept || kind == 1, "the accepted work of run {at} is gone");
            ends[kind] += 1;
        }
        ends
    }

    /// The median and the 95th percentile of a time of all runs, in seconds.
    fn times(&self, of: impl Fn(&SimulatedRun) -> Option<u64>) -> (u64, u64) {
        let mut all: Vec<u64> = self.runs.iter().filter_map(of).collect();
        all.sort_unstable();
        let at = |part: usize| all[(all.len() - 1) * part / 100] / 1000;
        (at(50), at(95))
    }
}

#[test]
fn twenty_thousand_runs_end_once_each_and_no_accepted_work_is_lost() {
    let fleet = SimulatedFleet::played(Load {
        workers: 1_000,
        runs: 20_000,
        repositories: 1_000,
        every: 800,
        push: 300,
        land: 700,
    });
    let [landed, refused, crowded] = fleet.ends();
    eprintln!("landed {landed}, refused {refused}, target always moved {crowded}");
    assert!(landed > 18_000 && refused > 100);
    for leases in &fleet.leases {
        assert_eq!((leases.holders().count(), leases.waiting().count()), (0, 0));
    }
}

#[test]
fn what_breaks_first_is_the_target_of_one_repository() {
    let mut found = Vec::new();
    for every in [12_000, 6_000, 3_600, 1_800, 600] {
        let fleet = SimulatedFleet::played(Load {
            workers: 1_000,
            runs: 1_000,
            repositories: 10,
            every,
            push: 2_000,
            land: 2_000,
        });
        let [landed, _, crowded] = fleet.ends();
        let hourly = 3_600_000 / every / 10;
        let began = fleet.times(|run| Some(run.began? - run.submitted));
        let ended = fleet.times(|run| Some(run.ended? - run.submitted));
        eprintln!(
            "{hourly} runs an hour and repository: landed {landed}, never {crowded}; \
             began after {began:?} s, ended after {ended:?} s (median, 95 %)"
        );
        found.push(crowded);
    }
    assert_eq!(found[0], 0, "a slow stream lands whole: {found:?}");
    assert!(
        found.last() > found.first(),
        "more load breaks something: {found:?}"
    );
}
