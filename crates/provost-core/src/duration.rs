//! Parses a duration as a person writes it.

/// The seconds that `text` stands for: `90`, `90s`, `20m`, `2h` or `7d`.
pub fn seconds(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3600),
        Some((at, 'd')) => (&text[..at], 86_400),
        _ => (text, 1),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "write 90, 90s, 20m, 2h or 7d".to_owned())?;
    let seconds = number
        .checked_mul(factor)
        .ok_or_else(|| "is too long".to_owned())?;
    if seconds == 0 {
        Err("must be at least one second".to_owned())
    } else {
        Ok(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_is_written() {
        let cases = [
            ("90", Some(90)),
            ("90s", Some(90)),
            ("20m", Some(1200)),
            ("2h", Some(7200)),
            ("7d", Some(604_800)),
            ("0", None),
            ("", None),
            ("m", None),
            ("-1", None),
            ("1.5h", None),
            ("20 m", None),
            ("99999999999999999999h", None),
            ("9999999999999999999h", None),
            ("5é", None),
        ];
        for (text, want) in cases {
            assert_eq!(seconds(text).ok(), want, "{text}");
        }
    }
}
