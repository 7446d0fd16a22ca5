//! Alternating measurements, summarised by their quartiles.

use std::time::Duration;

use crate::Result;

/// A duration in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Half of the turns took no longer.
    pub median: f64,
    /// A quarter of the turns took no longer.
    pub low: f64,
    /// Three quarters of the turns took no longer.
    pub high: f64,
}

impl Sample {
    /// No measure at all; it meets no limit.
    pub(super) const NOTHING: Self = Self::exactly(f64::NAN);

    pub(super) const fn exactly(value: f64) -> Self {
        Self {
            median: value,
            low: value,
            high: value,
        }
    }

    pub(super) fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |quarter: usize| times.get(times.len() * quarter / 4).copied();
        Self {
            median: at(2).unwrap_or(f64::NAN),
            low: at(1).unwrap_or(f64::NAN),
            high: at(3).unwrap_or(f64::NAN),
        }
    }

    /// How far half of the turns lie from the median, relative to it.
    pub(super) fn spread(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.median
    }
}

/// Runs something and returns its duration in microseconds.
pub(super) type Measure<'a> = &'a mut dyn FnMut() -> Result<f64>;

/// Measures everything `turns` times, alternating, so that a change in load affects all. Each one
/// goes first in some turns.
pub(super) fn take_turns<const N: usize>(
    turns: usize,
    measures: &mut [Measure<'_>; N],
) -> Result<[Sample; N]> {
    let mut times = [const { Vec::new() }; N];
    for turn in 0..turns {
        for place in 0..N {
            let at = (place + turn) % N;
            times[at].push(measures[at]()?);
        }
    }
    Ok(times.map(Sample::of))
}

pub(super) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measure_has_every_turn_and_the_first_place_goes_round() {
        let order = std::cell::RefCell::new(String::new());
        let mut count = 0.0;
        let mut one = || {
            order.borrow_mut().push('a');
            count += 1.0;
            Ok(count)
        };
        let mut other = || {
            order.borrow_mut().push('b');
            Ok(7.0)
        };
        let [counted, fixed] = take_turns(4, &mut [&mut one, &mut other]).unwrap();
        assert_eq!(*order.borrow(), "abbaabba");
        assert_eq!(counted, Sample::of(vec![4.0, 2.0, 1.0, 3.0]));
        assert_eq!(fixed, Sample::exactly(7.0));
        assert!((counted.spread() - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_measured_is_no_number() {
        assert!(Sample::of(Vec::new()).median.is_nan());
        assert!(Sample::NOTHING.spread().is_nan());
    }
}
