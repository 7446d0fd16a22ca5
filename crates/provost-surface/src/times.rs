//! Formats times for people: durations and ages.

use provost_core::time;

/// A duration with one or two units: `18 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`.
pub fn length(millis: u64) -> String {
    let seconds = millis / 1000;
    match (millis, seconds) {
        (0..1000, _) => format!("{millis} ms"),
        (_, 0..60) => format!("{seconds}.{} s", millis % 1000 / 100),
        (_, 60..3600) => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// How long ago `then` was at `now`, in four letters at most; empty if `then` is no time.
pub fn age(then: &str, now: i64) -> String {
    let Ok(then) = time::parse(then) else {
        return String::new();
    };
    let seconds = now.saturating_sub(then).max(0) / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (minutes, hours, days) {
        (0, _, _) => format!("{seconds}s"),
        (_, 0, _) => format!("{minutes}m"),
        (_, _, 0) => format!("{hours}h"),
        (_, _, 1..=999) => format!("{days}d"),
        _ => "old".to_owned(),
    }
}

/// A time to the second, in UTC.
pub fn moment(text: &str) -> String {
    let Ok(millis) = time::parse(text) else {
        return text.to_owned();
    };
    let when = time::render(millis);
    format!("{} {} UTC", &when[..10], &when[11..19])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_said_in_the_unit_that_fits() {
        let cases = [
            (0, "0 ms"),
            (999, "999 ms"),
            (1000, "1.0 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min 0 s"),
            (3_599_999, "59 min 59 s"),
            (7_500_000, "2 h 5 min"),
        ];
        for (millis, want) in cases {
            assert_eq!(length(millis), want);
        }
    }

    #[test]
    fn an_age_has_four_letters_at_most() {
        let then = "2026-01-31T12:00:00.000Z";
        let start = time::parse(then).unwrap();
        let cases = [
            (-5, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3599, "59m"),
            (3600, "1h"),
            (86_400, "1d"),
            (86_400 * 999, "999d"),
            (86_400 * 1000, "old"),
        ];
        for (seconds, want) in cases {
            assert_eq!(age(then, start + seconds * 1000), want);
        }
        assert_eq!(age("yesterday", start), "");
        assert_eq!(moment(then), "2026-01-31 12:00:00 UTC");
    }
}
