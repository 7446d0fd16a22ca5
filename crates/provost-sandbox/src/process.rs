//! Reads what the kernel says about a process.

/// The boot id; it differs for every boot of the machine.
pub const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// What `/proc/<pid>/stat` says about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The kernel's letter, such as `S` or `Z`.
    pub state: u8,
    pub parent: i32,
    pub threads: u64,
    /// When it started, in clock ticks since boot.
    pub started: u64,
}

impl Status {
    /// Parses a `stat` line; the program name may contain any character and ends at the last `)`.
    pub fn parse(stat: &[u8]) -> Option<Self> {
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = match fields.next()?.as_bytes() {
            [state] => *state,
            _ => return None,
        };
        // The state is field 3, the number of threads 20, the start 22.
        let parent = fields.next()?.parse().ok()?;
        let threads = fields.nth(15)?.parse().ok()?;
        let started = fields.nth(1)?.parse().ok()?;
        Some(Self {
            state,
            parent,
            threads,
            started,
        })
    }

    /// Whether it is a zombie or gone.
    pub fn is_dead(self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_behind_the_name_of_the_program() {
        let fields = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20 21";
        let want = Some(Status {
            state: b'S',
            parent: 1,
            threads: 17,
            started: 777,
        });
        for name in ["sh", "a b", ")", ") Z 1 (", "\u{e9})"] {
            let stat = format!("42 ({name}) S {fields}\n");
            assert_eq!(Status::parse(stat.as_bytes()), want, "{name}");
        }
        let bad: [&[u8]; 6] = [
            b"",
            b"42 sh S 1",
            b"42 (sh)",
            b"42 (sh) S 1 2 3",
            b"42 (sh) SS 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777",
            b"42 (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 -7",
        ];
        for stat in bad {
            assert_eq!(Status::parse(stat), None);
        }
    }
}
