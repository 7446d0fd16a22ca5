//! Fifty requests in random orders and in threads: the recorded rows show that no forwarded one
//! exceeded its grant.
//!
//! `cargo xtask soak gateway` raises the number of rounds.

use std::path::Path;
use std::sync::Mutex;

use provost_core::agent::{Budget, SpendLimits};
use provost_core::net::model_api::ModelApi;
use provost_core::secret::Known;

use super::counted::gauge;
use super::settled::rows;
use super::*;
use crate::proxy::TokenMeter;
use crate::proxy::gateway::budget::{Amount, Grant};
use crate::proxy::gateway::request_log::{RequestRow, replay};
use crate::proxy::gateway::spend_book::{SpendBook, SpendRow};
use crate::proxy::token_meter::{Admitted, Denied};

const PLACE: &str = "127.0.0.1:9";
/// Requests of one round.
const REQUESTS: u64 = 50;

/// How many rounds a test has, unless the soak asks for more.
fn rounds(usual: u64) -> u64 {
    let asked = std::env::var("PROVOST_TEST_INTERLEAVINGS").ok();
    asked.map_or(usual, |asked| asked.parse().unwrap())
}

/// A small generator, so that a failure names its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1);
        (self.0 >> 33) % sides
    }
}

/// Asks `meter` to admit a request of a random size, `more` times again if it has to wait.
fn admit<'a>(meter: &'a TokenMeter, more: u64, dice: &mut Dice) -> Result<Admitted<'a>, Denied> {
    let place = Endpoint::parse(PLACE).unwrap();
    let limit = 1 + dice.roll(900);
    let body = format!(r#"{{"model":"m","max_output_tokens":{limit}}}"#);
    let read = meter.read(
        (&place, "/v1/responses"),
        ModelApi::Responses,
        body.into_bytes(),
    );
    let mut read = read.unwrap();
    for _ in 0..more {
        match meter.admit(&mut read) {
            Err(Denied::Reserved(_)) => thread::yield_now(),
            decided => return decided,
        }
    }
    meter.admit(&mut read)
}

/// Ends an admitted request: some are never forwarded, some break off, some report more than was
/// reserved.
fn end(meter: &TokenMeter, mut admitted: Admitted<'_>, dice: &mut Dice) {
    if dice.roll(8) == 0 {
        return;
    }
    admitted.forward();
    if dice.roll(4) != 0 {
        let used = dice.roll(1000);
        let usage = format!(r#"{{"usage":{{"input_tokens":1,"output_tokens":{used}}}}}"#);
        admitted.meter.head(200, b"application/json", None);
        admitted.meter.push(usage.as_bytes());
        admitted.meter.complete();
    }
    meter.settle(&Endpoint::parse(PLACE).unwrap(), admitted);
}

/// Compares what the rows in `file` add up to with what `meter` says.
fn check(meter: &TokenMeter, file: &Path, seed: u64) -> Vec<RequestRow> {
    let rows = rows(&std::fs::read_to_string(file).unwrap());
    let sum = replay(&rows).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(sum.open, Amount::default(), "seed {seed}");
    let passed = meter.passed();
    assert_eq!(sum.forwarded, passed.requests, "seed {seed}");
    assert_eq!(sum.settled.tokens, passed.usage.tokens(), "seed {seed}");
    rows
}

fn metered(grant: u64, file: &Path) -> TokenMeter {
    let meter = Arc::into_inner(gauge(PLACE, Some(grant))).unwrap();
    meter.with_log(std::fs::File::create(file).unwrap(), Known::default())
}

#[test]
fn recorded_rows_show_that_no_forwarded_request_exceeded_the_grant() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows");
    for seed in 0..rounds(1000) {
        let mut dice = Dice(seed);
        let meter = metered(1 + dice.roll(30_000), &file);
        let (mut open, mut asked) = (Vec::new(), 0);
        while asked < REQUESTS || !open.is_empty() {
            if asked < REQUESTS && (open.is_empty() || dice.roll(2) == 0) {
                asked += 1;
                open.extend(admit(&meter, 0, &mut dice));
                continue;
            }
            let at = usize::try_from(dice.roll(open.len() as u64)).unwrap();
            let admitted = open.swap_remove(at);
            end(&meter, admitted, &mut dice);
        }
        check(&meter, &file, seed);
    }
}

/// A book that other threads get between, as between the processes of a user.
#[derive(Debug)]
struct SharedBook {
    limit: u64,
    kept: Mutex<KeptSums>,
}

#[derive(Debug, Default)]
struct KeptSums {
    settled: u64,
    open: std::collections::BTreeMap<String, u64>,
    next: u64,
}

impl SpendBook for SharedBook {
    fn reserve(
        &self,
        model: &str,
        choose: &mut dyn FnMut(Grant) -> Option<Amount>,
    ) -> std::io::Result<Option<SpendRow>> {
        thread::yield_now();
        let mut kept = self.kept.lock().unwrap();
        let taken = kept.settled + kept.open.values().sum::<u64>();
        let left = Grant {
            tokens: Some(self.limit.saturating_sub(taken)),
            micro_usd: None,
        };
        let row = choose(left).map(|amount| {
            assert!(taken + amount.tokens <= self.limit);
            kept.next += 1;
            let id = kept.next.to_string();
            kept.open.insert(id.clone(), amount.tokens);
            SpendRow {
                file: String::new(),
                id,
                model: model.to_owned(),
            }
        });
        drop(kept);
        thread::yield_now();
        Ok(row)
    }

    fn settle(&self, row: &SpendRow, spent: Amount, _: bool) {
        let mut kept = self.kept.lock().unwrap();
        kept.open.remove(&row.id).unwrap();
        kept.settled += spent.tokens;
    }
}

#[test]
fn recorded_rows_of_threads_show_it_too_while_others_settle_more_than_they_reserved() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows");
    let mut forwarded = 0;
    for seed in 0..rounds(300) {
        let mut dice = Dice(seed);
        let book = Arc::new(SharedBook {
            limit: 1 + dice.roll(40_000),
            kept: Mutex::default(),
        });
        let limits = SpendLimits {
            day: Budget {
                tokens: Some(book.limit),
                micro_usd: None,
            },
            ..SpendLimits::default()
        };
        let own: Arc<dyn SpendBook> = Arc::<SharedBook>::clone(&book);
        let meter = metered(1 + dice.roll(30_000), &file).with_book(own, limits);
        thread::scope(|scope| {
            for number in 0..REQUESTS {
                let meter = &meter;
                scope.spawn(move || {
                    let mut dice = Dice(seed * REQUESTS + number);
                    dice.roll(2);
                    if let Ok(admitted) = admit(meter, number % 4, &mut dice) {
                        thread::yield_now();
                        end(meter, admitted, &mut dice);
                    }
                });
            }
        });
        let rows = check(&meter, &file, seed);
        let is_reserved = |row: &&RequestRow| matches!(row, RequestRow::Reserved { .. });
        forwarded += rows.iter().filter(is_reserved).count();
        let kept = book.kept.lock().unwrap();
        assert_eq!(kept.settled, meter.passed().usage.tokens(), "seed {seed}");
        assert!(kept.open.is_empty(), "seed {seed}");
    }
    assert!(forwarded as u64 > rounds(300), "{forwarded}");
}
