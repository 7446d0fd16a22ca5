//! Makes unique ids from time and random bytes.

use provost_core::object::hex;
use provost_core::time;

/// The kernel gives no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandomness(#[source] getrandom::Error);

/// A new name for a run that begins at `now` (milliseconds since 1970), like
/// `run_20260131_235959_999_0123456789ab`: sorted by time, made unique by random digits.
pub fn run_id(now: i64) -> Result<String, NoRandomness> {
    let civil = time::civil(now);
    Ok(format!(
        "run_{:04}{:02}{:02}_{:02}{:02}{:02}_{:03}_{}",
        civil.year,
        civil.month,
        civil.day,
        civil.hour,
        civil.minute,
        civil.second,
        now.rem_euclid(1000),
        hex(&random::<6>()?)
    ))
}

/// The digits of base 32 without letters that look like others.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A new name for an intent that is declared at `now`, like `01JD3Z6Q8W4T0V9K2M5N7P1R3S` (a ULID):
/// 48 bits of time, so that ids sort by it, and 80 random bits.
pub fn ulid(now: i64) -> Result<String, NoRandomness> {
    let chance = random::<10>()?;
    let time = u128::try_from(now).unwrap_or(0) & 0xffff_ffff_ffff;
    let chance = chance
        .iter()
        .fold(0, |sum, byte| (sum << 8) | u128::from(*byte));
    let number = (time << 80) | chance;
    let digit = |place: u32| {
        let value = usize::try_from((number >> (place * 5)) & 31).unwrap_or(0);
        char::from(DIGITS[value])
    };
    Ok((0..26).rev().map(digit).collect())
}

/// A new id that joins the events of one run across tools: 32 hexadecimal digits, as in W3C trace
/// context.
pub fn trace_id() -> Result<String, NoRandomness> {
    Ok(hex(&random::<16>()?))
}

/// The variable with the trace that a caller continues, by W3C trace context.
pub const TRACE_PARENT: &str = "TRACEPARENT";

/// The trace id of a `traceparent`; `None` if the value is not valid, which is then ignored as the
/// standard asks.
pub fn trace_of(parent: &str) -> Option<String> {
    let fields: Vec<&str> = parent.split('-').collect();
    let [version, trace, span, flags, rest @ ..] = fields.as_slice() else {
        return None;
    };
    let is_hex = |text: &str, length: usize| {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.len() == length && text.bytes().all(digit)
    };
    let is_set = |text: &str| text.bytes().any(|byte| byte != b'0');
    let shaped = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    // Only a later version may have more fields.
    let whole = *version != "ff" && (*version != "00" || rest.is_empty());
    (shaped && whole && is_set(trace) && is_set(span)).then(|| (*trace).to_owned())
}

fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], NoRandomness> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_run_is_named_by_its_time_and_by_chance() {
        for now in [1_767_225_599_999, 0, i64::MIN, i64::MAX] {
            let id = run_id(now).unwrap();
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            assert!(id.bytes().all(allowed), "{id}");
            assert!(id.starts_with(|first: char| first.is_ascii_alphanumeric()));
            assert!(id.len() <= 128 && !id.contains(".."), "{id}");
        }
        let id = run_id(1_767_225_599_999).unwrap();
        let (time, chance) = id.rsplit_once('_').unwrap();
        assert_eq!(time, "run_20251231_235959_999");
        assert_eq!(chance.len(), 12);
    }

    #[test]
    fn a_trace_of_the_caller_is_taken_if_it_is_valid() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let span = "00f067aa0ba902b7";
        let taken = [
            format!("00-{trace}-{span}-01"),
            format!("cc-{trace}-{span}-00-later"),
        ];
        for parent in taken {
            assert_eq!(trace_of(&parent).as_deref(), Some(trace), "{parent}");
        }
        let ignored = [
            String::new(),
            trace.to_owned(),
            format!("ff-{trace}-{span}-01"),
            format!("00-{trace}-{span}-01-more"),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{trace}-{span}-1"),
            format!("0-{trace}-{span}-01"),
            format!("00-{trace}x-{span}-01"),
        ];
        for parent in ignored {
            assert_eq!(trace_of(&parent), None, "{parent}");
        }
    }

    #[test]
    fn names_of_intents_sort_by_time() {
        let early = ulid(1_469_918_176_385).unwrap();
        assert_eq!((&early[..10], early.len()), ("01ARYZ6S41", 26));
        assert!(early < ulid(1_469_918_176_386).unwrap());
        let many: BTreeSet<String> = (0..1000).map(|_| ulid(0).unwrap()).collect();
        assert_eq!(many.len(), 1000);
    }

    #[test]
    fn names_do_not_repeat() {
        let runs: BTreeSet<String> = (0..1000).map(|_| run_id(0).unwrap()).collect();
        let traces: BTreeSet<String> = (0..1000).map(|_| trace_id().unwrap()).collect();
        assert_eq!((runs.len(), traces.len()), (1000, 1000));
        assert!(traces.iter().all(|trace| trace.len() == 32));
    }
}
