//! Formats and parses times as RFC 3339.
//!
//! Times are milliseconds since 1970 in UTC; leap seconds do not exist, as in the kernel. This
//! module does not read the clock.

use std::ops::RangeInclusive;

const SECOND: i64 = 1000;
const DAY: i64 = 24 * 60 * 60 * SECOND;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// `0000-01-01T00:00:00.000Z`, the first time that RFC 3339 can write.
const FIRST: i64 = -62_167_219_200 * SECOND;

/// `9999-12-31T23:59:59.999Z`, the last time that RFC 3339 can write.
const LAST: i64 = 253_402_300_800 * SECOND - 1;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time like 2026-01-31T12:00:00.000Z")]
pub struct BadTime(pub String);

/// A time in UTC, in calendar fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub millisecond: i64,
}

/// A parsed time with its zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Nanoseconds since 1970 in UTC; a time without a zone counts as UTC.
    pub nanos: i128,
    pub zone: Zone,
}

/// The zone of a written time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// `Z`, or an offset of zero.
    Utc,
    Offset,
    /// No zone.
    Unsaid,
}

/// A time as RFC 3339 in UTC with milliseconds; clamped to the years 0 to 9999.
pub fn render(millis: i64) -> String {
    let Civil {
        year,
        month,
        day,
        hour,
        minute,
        second,
        millisecond,
    } = civil(millis);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

/// The calendar fields of a time; clamped to the years 0 to 9999.
pub fn civil(millis: i64) -> Civil {
    let millis = millis.clamp(FIRST, LAST);
    let (year, month, day) = date_of(millis.div_euclid(DAY));
    let rest = millis.rem_euclid(DAY);
    Civil {
        year,
        month,
        day,
        hour: rest / (60 * 60 * SECOND),
        minute: rest / (60 * SECOND) % 60,
        second: rest / SECOND % 60,
        millisecond: rest % SECOND,
    }
}

/// Parses RFC 3339 with any offset; digits beyond milliseconds are dropped.
pub fn parse(text: &str) -> Result<i64, BadTime> {
    read(text)
        .filter(|written| written.zone != Zone::Unsaid)
        .and_then(|written| i64::try_from(written.nanos.div_euclid(NANOS_PER_MILLI)).ok())
        .ok_or_else(|| BadTime(text.to_owned()))
}

/// Parses RFC 3339, also without a zone; digits beyond nanoseconds are dropped.
pub fn read(text: &str) -> Option<Written> {
    let fields = Fields::read(text)?;
    let (year, month, day) = fields.date;
    let days = day_of(year, month, day);
    // A date that does not round-trip is invalid, like the 30th of February.
    if date_of(days) != fields.date || fields.second > 59 {
        return None;
    }
    let seconds = (fields.hour * 60 + fields.minute - fields.offset) * 60 + fields.second;
    let millis = i128::from(days * DAY + seconds * SECOND);
    Some(Written {
        nanos: millis * NANOS_PER_MILLI + i128::from(fields.nanos),
        zone: fields.zone,
    })
}

/// Whether `text` has the form of RFC 3339 with a zone. Any month may have 31 days here, and a
/// minute a leap second: that is what the format `date-time` of JSON Schema allows.
pub fn is_date_time(text: &str) -> bool {
    Fields::read(text).is_some_and(|fields| fields.zone != Zone::Unsaid)
}

/// The parts of a written time, each within its own range.
struct Fields {
    /// The year, the month and the day.
    date: (i64, i64, i64),
    hour: i64,
    minute: i64,
    /// Up to 60.
    second: i64,
    nanos: i64,
    zone: Zone,
    /// In minutes.
    offset: i64,
}

impl Fields {
    fn read(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let is = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|byte| wanted.contains(byte));
        if !(is(4, b"-") && is(7, b"-") && is(10, b"Tt") && is(13, b":") && is(16, b":")) {
            return None;
        }
        let number = |from: usize, to: usize, range: RangeInclusive<i64>| {
            digits(bytes.get(from..to)?).filter(|number| range.contains(number))
        };
        let date = (
            number(0, 4, 0..=9999)?,
            number(5, 7, 1..=12)?,
            number(8, 10, 1..=31)?,
        );
        let hour = number(11, 13, 0..=23)?;
        let minute = number(14, 16, 0..=59)?;
        let second = number(17, 19, 0..=60)?;
        let (nanos, zone) = fraction(&bytes[19..])?;
        let (zone, offset) = zone_of(zone)?;
        Some(Self {
            date,
            hour,
            minute,
            second,
            nanos,
            zone,
            offset,
        })
    }
}

/// The nanoseconds at the beginning of `bytes`, and what follows them.
fn fraction(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let Some(rest) = bytes.strip_prefix(b".") else {
        return Some((0, bytes));
    };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let place = |at: usize| {
        let byte = rest[..length].get(at);
        byte.map_or(0, |byte| i64::from(byte - b'0'))
    };
    let nanos = (0..9).fold(0, |nanos, at| nanos * 10 + place(at));
    Some(((length > 0).then_some(nanos)?, &rest[length..]))
}

/// The zone at the end of a time, and its offset in minutes.
fn zone_of(zone: &[u8]) -> Option<(Zone, i64)> {
    match zone {
        [] => Some((Zone::Unsaid, 0)),
        [b'Z' | b'z'] => Some((Zone::Utc, 0)),
        [sign @ (b'+' | b'-'), hours @ .., b':', m1, m2] if hours.len() == 2 => {
            let (hours, minutes) = (digits(hours)?, digits(&[*m1, *m2])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            match hours * 60 + minutes {
                0 => Some((Zone::Utc, 0)),
                offset if *sign == b'-' => Some((Zone::Offset, -offset)),
                offset => Some((Zone::Offset, offset)),
            }
        }
        _ => None,
    }
}

/// A short decimal number; digits only.
fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        Some(number * 10 + digit)
    })
}

/// The date of a day, counted from 1970.
///
/// The year begins in March here, so that a leap day is its last day and months have one formula;
/// 400 years always have the same number of days.
fn date_of(days: i64) -> (i64, i64, i64) {
    // From 0000-03-01.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// The day of a date, counted from 1970; the inverse of [`date_of`] for valid dates.
fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let march_month = (month + 9) % 12;
    let of_year = (153 * march_month + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_written_as_the_calendar_has_them() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_767_225_600_007, "2026-01-01T00:00:00.007Z"),
            (FIRST, "0000-01-01T00:00:00.000Z"),
            (LAST, "9999-12-31T23:59:59.999Z"),
            (i64::MIN, "0000-01-01T00:00:00.000Z"),
            (i64::MAX, "9999-12-31T23:59:59.999Z"),
        ];
        for (millis, want) in cases {
            assert_eq!(render(millis), want, "{millis}");
        }
    }

    #[test]
    fn other_spellings_of_a_time_are_read() {
        let cases = [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01t00:00:00z", 0),
            ("1970-01-01T00:00:00.5Z", 500),
            ("1970-01-01T00:00:00.1239999999Z", 123),
            ("1970-01-01T02:30:00+02:30", 0),
            ("1969-12-31T19:00:00-05:00", 0),
            ("1970-01-01T00:00:00-00:00", 0),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let cases = [
            "",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-01-01 00:00:00Z",
            "1970-1-1T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-02-30T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-00-01T00:00:00Z",
            "2024-01-00T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:60:00Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00ZZ",
            "2024-01-01T00:00:00+0200",
            "2024-01-01T00:00:00+24:00",
            "2024-01-01T00:00:00+é:00",
            "+024-01-01T00:00:00Z",
            "２024-01-01T00:00:00Z",
        ];
        for text in cases {
            assert_eq!(parse(text), Err(BadTime(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn the_zone_of_a_time_is_kept() {
        let cases = [
            ("1970-01-01T00:00:00Z", 0, Zone::Utc),
            ("1970-01-01T00:00:00+00:00", 0, Zone::Utc),
            ("1970-01-01T00:00:00", 0, Zone::Unsaid),
            ("1970-01-01T00:00:00.000000001Z", 1, Zone::Utc),
            ("1970-01-01T01:00:00+01:00", 0, Zone::Offset),
        ];
        for (text, nanos, zone) in cases {
            assert_eq!(read(text), Some(Written { nanos, zone }), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_time_comes_back_from_its_text(millis in FIRST..=LAST) {
            prop_assert_eq!(parse(&render(millis)), Ok(millis));
        }

        #[test]
        fn later_is_written_later(one in FIRST..=LAST, two in FIRST..=LAST) {
            prop_assert_eq!(one.cmp(&two), render(one).cmp(&render(two)));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,40}") {
            let _ = parse(&text);
        }
    }
}
