//! Reads a stream of server-sent events, in pieces of any size.
//!
//! # Invariants
//!
//! - The events do not depend on how the bytes are split; a character may be split too.
//! - One event takes a bounded amount of memory. A longer one ends the reading, and
//!   [`EventReader::is_overlong`] says so.

/// The longest event that is kept, in bytes.
pub const LONGEST_EVENT: usize = 16 << 20;

/// The events of one stream so far.
#[derive(Debug, Default)]
pub struct EventReader {
    line: Vec<u8>,
    /// The data of the event so far; `None` if it has none.
    data: Option<Vec<u8>>,
    /// Whether the last byte ended a line, so that a line feed after it belongs to that end.
    after_return: bool,
    overlong: bool,
}

impl EventReader {
    /// Whether an event was longer than [`LONGEST_EVENT`]; nothing is read after it.
    pub fn is_overlong(&self) -> bool {
        self.overlong
    }

    /// How many bytes are kept.
    pub fn kept(&self) -> usize {
        self.data.as_ref().map_or(0, Vec::len) + self.line.len()
    }

    /// Keeps nothing any more, as after an event that was too long.
    pub fn give_up(&mut self) {
        self.overlong = true;
        self.line = Vec::new();
        self.data = None;
    }

    /// Reads `bytes`, and passes on the data of each event that is complete.
    pub fn push(&mut self, bytes: &[u8], event: &mut dyn FnMut(&[u8])) {
        let mut rest = bytes;
        if self.after_return && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        if !bytes.is_empty() {
            self.after_return = false;
        }
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.gather(&rest[..at]);
            self.end_line(event);
            let after = &rest[at + 1..];
            rest = match (rest[at], after.first()) {
                (b'\r', Some(b'\n')) => &after[1..],
                (b'\r', None) => {
                    self.after_return = true;
                    after
                }
                _ => after,
            };
        }
        self.gather(rest);
    }

    /// The stream has ended: passes on the event that no empty line ended.
    pub fn finish(&mut self, event: &mut dyn FnMut(&[u8])) {
        self.end_line(event);
        self.end_event(event);
    }

    fn gather(&mut self, bytes: &[u8]) {
        if self.kept().saturating_add(bytes.len()) > LONGEST_EVENT {
            self.overlong = true;
        }
        if self.overlong {
            self.give_up();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self, event: &mut dyn FnMut(&[u8])) {
        if self.line.is_empty() {
            return self.end_event(event);
        }
        let line = std::mem::take(&mut self.line);
        let value = match line.strip_prefix(b"data") {
            Some([]) => Some(&[][..]),
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => Some(value),
            _ => None,
        };
        let Some(value) = value else { return };
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
    }

    fn end_event(&mut self, event: &mut dyn FnMut(&[u8])) {
        if let Some(data) = self.data.take() {
            event(&data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut all = Vec::new();
        let mut reader = EventReader::default();
        let mut note = |data: &[u8]| all.push(String::from_utf8(data.to_vec()).unwrap());
        for piece in pieces {
            reader.push(piece, &mut note);
        }
        reader.finish(&mut note);
        all
    }

    #[test]
    fn events_do_not_depend_on_how_the_bytes_are_split() {
        let stream = ": note\r\nevent: a\r\ndata: {\"x\":\"\u{e9}\u{1f600}\"}\r\n\r\n\
                      data:one\ndata: two\n\ndata\r\rid: 3\n\ndata: last";
        let want = ["{\"x\":\"\u{e9}\u{1f600}\"}", "one\ntwo", "", "last"];
        for size in 1..stream.len() {
            let pieces: Vec<&[u8]> = stream.as_bytes().chunks(size).collect();
            assert_eq!(events(&pieces), want, "{size}");
        }
    }

    #[test]
    fn an_endless_event_takes_bounded_memory() {
        let mut reader = EventReader::default();
        let mut count = 0;
        reader.push(b"data: ", &mut |_| count += 1);
        for _ in 0..40 {
            reader.push(&vec![b'x'; 1 << 20], &mut |_| count += 1);
            assert!(reader.line.capacity() <= 2 * LONGEST_EVENT);
        }
        reader.push(b"\n\ndata: 1\n\n", &mut |_| count += 1);
        assert!(reader.is_overlong());
        assert_eq!((count, reader.line.len()), (0, 0));
    }
}
