//! Sizes in bytes, as people write and read them.

/// The units of a size, the largest first.
const UNITS: [(&str, u64); 4] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
];

/// Parses `4096`, `512KiB`, `256MiB`, `2GiB` or `1TiB`.
pub fn parse(text: &str) -> Result<u64, String> {
    let unit = UNITS.iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?;
        Some((number, *factor))
    });
    let (number, factor) = unit.unwrap_or((text, 1));
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("write 4096, 512KiB, 256MiB, 2GiB or 1TiB".to_owned());
    }
    let number = number.parse::<u64>().ok();
    let bytes = number.and_then(|number| number.checked_mul(factor));
    bytes.ok_or_else(|| "is too large".to_owned())
}

/// `bytes` in the largest unit that leaves no remainder.
pub fn render(bytes: u64) -> String {
    let fits = |(_, factor): &&(&str, u64)| bytes >= *factor && bytes.is_multiple_of(*factor);
    match UNITS.iter().find(fits) {
        Some((unit, factor)) => format!("{} {unit}", bytes / factor),
        None => format!("{bytes} bytes"),
    }
}

/// `bytes` rounded, for display.
pub fn rough(bytes: u64) -> String {
    match UNITS.iter().find(|(_, factor)| bytes >= *factor) {
        Some((unit, factor)) => {
            let tenths = bytes / (factor / 10).max(1);
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rough_size_has_one_digit_after_its_point() {
        let cases = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1_600_000, "1.5 MiB"),
            (u64::MAX, "16777216.0 TiB"),
        ];
        for (bytes, want) in cases {
            assert_eq!(rough(bytes), want);
        }
    }

    #[test]
    fn a_size_is_read_as_it_is_written() {
        let cases = [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("2KiB", Some(2048)),
            ("256MiB", Some(256 << 20)),
            ("2GiB", Some(2 << 30)),
            ("1TiB", Some(1 << 40)),
            ("", None),
            ("GiB", None),
            ("+2GiB", None),
            ("-2GiB", None),
            ("2 GiB", None),
            ("2GB", None),
            ("2gib", None),
            ("1.5GiB", None),
            ("99999999TiB", None),
            ("99999999999999999999", None),
            ("2é", None),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text).ok(), want, "{text}");
        }
    }

    #[test]
    fn a_size_is_shown_without_losing_a_byte() {
        let cases = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1 << 20, "1 MiB"),
            ((1 << 20) + 1, "1048577 bytes"),
            (1536 << 20, "1536 MiB"),
            (2 << 40, "2 TiB"),
        ];
        for (bytes, want) in cases {
            assert_eq!(render(bytes), want);
        }
    }
}
