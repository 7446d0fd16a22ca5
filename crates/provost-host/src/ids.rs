//! Makes names that nobody has used before.

use provost_core::object::hex;
use provost_core::time;

/// The kernel has no random bytes for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandomness(#[source] getrandom::Error);

/// A new name for a run that begins at `now` (milliseconds since 1970), like
/// `run_20260131_235959_999_0123456789ab`: sorted by time for people, told apart by chance.
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

/// A new name that joins the records of one run across tools: 32 hexadecimal digits, as W3C trace
/// context has them.
pub fn trace_id() -> Result<String, NoRandomness> {
    Ok(hex(&random::<16>()?))
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
    fn names_do_not_repeat() {
        let runs: BTreeSet<String> = (0..1000).map(|_| run_id(0).unwrap()).collect();
        let traces: BTreeSet<String> = (0..1000).map(|_| trace_id().unwrap()).collect();
        assert_eq!((runs.len(), traces.len()), (1000, 1000));
        assert!(traces.iter().all(|trace| trace.len() == 32));
    }
}
