//! Places that the agent wants to reach and that are not granted: a person is asked about them.
//!
//! Connections wait here for the answer; the driver of the sandbox reads what they ask, and brings
//! the answers.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use provost_core::agent::Adapter;
use provost_core::net::endpoint::Endpoint;
use provost_core::question::Permission;

use super::timeouts::Stop;

/// The most places that are asked about in one sandbox.
const MOST_PLACES: usize = 128;

/// What is known of the places that a sandbox asked about.
#[derive(Debug)]
pub struct HostQuestions {
    /// The program in the sandbox, if it is known: what it contacts on its own is not asked about.
    program: Option<Adapter>,
    /// How long a connection waits for an answer.
    hold: Duration,
    places: Mutex<BTreeMap<String, AskedPlace>>,
}

#[derive(Debug)]
struct AskedPlace {
    endpoint: Endpoint,
    answer: HostAnswer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostAnswer {
    /// A connection asks.
    Open,
    /// It may be reached until then.
    Yes(Instant),
    No(String),
}

/// What a connection does about a place that is not granted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeldAnswer {
    /// It is granted now.
    Granted,
    /// The question is still open.
    Asked,
    /// A person said no, or did not answer in time.
    Refused(String),
    /// No question is asked about it.
    NotAsked,
}

impl HostQuestions {
    /// For a sandbox with `program`, whose connections wait for the time `hold`.
    pub fn new(program: Option<Adapter>, hold: Duration) -> Self {
        Self {
            program,
            hold,
            places: Mutex::default(),
        }
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<String, AskedPlace>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The places that a person has to be asked about now, as `host:port`.
    pub fn open(&self) -> Vec<String> {
        let places = self.places();
        let open = places
            .iter()
            .filter(|(_, it)| it.answer == HostAnswer::Open);
        open.map(|(place, _)| place.clone()).collect()
    }

    /// Brings the answer about `place`, which counts from the time `now` in milliseconds on.
    pub fn answer(&self, place: &str, permission: Permission, now: i64) {
        let answer = match permission {
            Permission::Open => return,
            Permission::No(reason) => HostAnswer::No(reason),
            Permission::Yes { until } => {
                let left = u64::try_from(until.saturating_sub(now)).unwrap_or(0);
                HostAnswer::Yes(Instant::now() + Duration::from_millis(left))
            }
        };
        if let Some(known) = self.places().get_mut(place) {
            known.answer = answer;
        }
    }

    /// The places that may be reached by the answers so far.
    pub(super) fn granted(&self) -> Vec<Endpoint> {
        let now = Instant::now();
        let places = self.places();
        let valid = |it: &&AskedPlace| matches!(it.answer, HostAnswer::Yes(until) if until > now);
        let granted = places.values().filter(valid);
        granted.map(|it| it.endpoint.clone()).collect()
    }

    /// Asks about `target`, and waits for a while for the answer.
    pub(super) fn ask(&self, target: &Endpoint, stop: &Stop) -> HeldAnswer {
        if self.program.is_some_and(|it| it.is_background(target)) {
            return HeldAnswer::NotAsked;
        }
        let name = target.to_string();
        if !self.begin(&name, target) {
            return HeldAnswer::NotAsked;
        }
        let until = Instant::now() + self.hold;
        loop {
            match self.places().get(&name).map(|it| it.answer.clone()) {
                Some(HostAnswer::Yes(_)) => return HeldAnswer::Granted,
                Some(HostAnswer::No(reason)) => return HeldAnswer::Refused(reason),
                Some(HostAnswer::Open) => {}
                None => return HeldAnswer::NotAsked,
            }
            if Instant::now() >= until || stop.pause().is_err() {
                return HeldAnswer::Asked;
            }
        }
    }

    /// Opens the question about `target`; false if there are too many.
    fn begin(&self, name: &str, target: &Endpoint) -> bool {
        let mut places = self.places();
        if !places.contains_key(name) && places.len() >= MOST_PLACES {
            return false;
        }
        let asked = AskedPlace {
            endpoint: target.clone(),
            answer: HostAnswer::Open,
        };
        // An earlier no is asked about again; its answer may still be valid, and then comes at once.
        places.insert(name.to_owned(), asked);
        true
    }
}

#[cfg(test)]
mod tests {
    use rustix::pipe::PipeFlags;

    use super::*;

    fn place(text: &str) -> Endpoint {
        Endpoint::parse(text).unwrap()
    }

    #[test]
    fn a_connection_waits_for_the_answer_and_an_answer_ends() {
        let (read, _running) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
        let stop = Stop::new(read);
        let questions = HostQuestions::new(None, Duration::from_millis(30));
        let target = place("api.example.com:443");
        assert_eq!(questions.ask(&target, &stop), HeldAnswer::Asked);
        assert_eq!(questions.open(), ["api.example.com:443"]);
        assert!(questions.granted().is_empty());

        let no = Permission::No("no".to_owned());
        std::thread::scope(|scope| {
            let held = scope.spawn(|| questions.ask(&target, &stop));
            std::thread::sleep(Duration::from_millis(10));
            questions.answer("api.example.com:443", no, 0);
            assert_eq!(held.join().unwrap(), HeldAnswer::Refused("no".to_owned()));
        });
        questions.answer("api.example.com:443", Permission::Yes { until: 60_000 }, 0);
        assert_eq!(questions.granted(), std::slice::from_ref(&target));
        questions.answer(
            "api.example.com:443",
            Permission::Yes { until: 60_000 },
            60_000,
        );
        assert!(questions.granted().is_empty(), "a yes expires");
        questions.answer(
            "other.example.com:443",
            Permission::Yes { until: 60_000 },
            0,
        );
        assert!(questions.granted().is_empty(), "it was not asked about");
    }

    #[test]
    fn what_a_known_program_contacts_on_its_own_is_not_asked_about() {
        let (read, _running) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
        let stop = Stop::new(read);
        let questions = HostQuestions::new(Adapter::named("claude"), Duration::ZERO);
        let own = place("statsig.com:443");
        assert_eq!(questions.ask(&own, &stop), HeldAnswer::NotAsked);
        for number in 0..MOST_PLACES {
            let target = place(&format!("h{number}.example.com:443"));
            assert_eq!(questions.ask(&target, &stop), HeldAnswer::Asked);
        }
        let beyond = place("beyond.example.com:443");
        assert_eq!(questions.ask(&beyond, &stop), HeldAnswer::NotAsked);
    }
}
