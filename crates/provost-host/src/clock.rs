//! Reads the system clock.
//!
//! Times are milliseconds since 1970 in UTC; `provost_core::time` formats them.

use std::time::{SystemTime, UNIX_EPOCH};

use provost_core::time;

/// The time now, in milliseconds since 1970.
pub fn now_millis() -> i64 {
    let millis = |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => millis(since),
        Err(before) => -millis(before.duration()),
    }
}

/// The time now, as RFC 3339 in UTC with milliseconds.
pub fn now() -> String {
    time::render(now_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_is_after_this_was_written() {
        assert!(now_millis() > 1_700_000_000_000);
        assert!(time::parse(&now()).unwrap() <= now_millis());
    }
}
