//! A few lines of a terminal that are drawn again in place.
//!
//! # Invariants
//!
//! - A frame is never wider or higher than the terminal, so that all of it can be erased.
//! - After `erase` the terminal shows nothing of it. There is no mode of the terminal to restore,
//!   so a program that is killed leaves the last frame and nothing else.

use std::io::{self, Write};
use std::os::fd::AsFd;

use crate::text_width::{columns, within};

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

impl Size {
    /// The size of the terminal behind `out`, or the usual one.
    pub fn of(out: impl AsFd) -> Self {
        let found = rustix::termios::tcgetwinsize(out).ok();
        let known = |count: u16, usual: usize| match count {
            0 => usual,
            count => usize::from(count),
        };
        Self {
            columns: known(found.map_or(0, |it| it.ws_col), 80),
            rows: known(found.map_or(0, |it| it.ws_row), 24),
        }
    }
}

/// The lines that are shown now.
#[derive(Debug, Default)]
pub struct Frame {
    /// The columns of each line.
    drawn: Vec<usize>,
}

impl Frame {
    /// Shows `lines` instead of what was drawn last, in one write.
    pub fn draw(&mut self, out: &mut impl Write, lines: &[String], size: Size) -> io::Result<()> {
        let mut text = self.eraser(size);
        // The last column stays free: a full line would wrap. So does the last row.
        let width = size.columns.saturating_sub(1).max(1);
        let most = size.rows.saturating_sub(1).max(1);
        let shown = lines.iter().take(most).map(|line| within(line, width));
        let shown: Vec<String> = shown.collect();
        text += &shown.join("\r\n");
        self.drawn = shown.iter().map(|line| columns(line)).collect();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Removes what was drawn; the cursor is where the frame began.
    pub fn erase(&mut self, out: &mut impl Write, size: Size) -> io::Result<()> {
        let text = self.eraser(size);
        self.drawn.clear();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Leaves what was drawn, and goes to the line below it.
    pub fn leave(&mut self, out: &mut impl Write) -> io::Result<()> {
        if std::mem::take(&mut self.drawn).is_empty() {
            return Ok(());
        }
        out.write_all(b"\r\n")?;
        out.flush()
    }

    fn eraser(&self, size: Size) -> String {
        if self.drawn.is_empty() {
            return String::new();
        }
        // A terminal that became narrower has broken the lines.
        let width = size.columns.max(1);
        let rows = self.drawn.iter().map(|used| used.div_ceil(width).max(1));
        match rows.sum::<usize>() {
            0 | 1 => "\r\x1b[J".to_owned(),
            rows => format!("\r\x1b[{}A\x1b[J", rows - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(frame: &mut Frame, lines: &[&str], columns: usize, rows: usize) -> String {
        let mut out = Vec::new();
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        frame
            .draw(&mut out, &lines, Size { columns, rows })
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_frame_stays_within_the_terminal_and_replaces_the_last_one() {
        let mut frame = Frame::default();
        assert_eq!(drawn(&mut frame, &["one", "two"], 60, 24), "one\r\ntwo");
        let next = drawn(&mut frame, &["a line", "b", "c"], 5, 3);
        assert_eq!(next, "\r\x1b[1A\x1b[Ja l…\r\nb");
        // Four columns became two rows of two, and one more.
        assert_eq!(drawn(&mut frame, &["x"], 2, 3), "\r\x1b[2A\x1b[Jx");
        let mut out = Vec::new();
        let size = Size {
            columns: 2,
            rows: 3,
        };
        frame.erase(&mut out, size).unwrap();
        frame.erase(&mut out, size).unwrap();
        assert_eq!(out, b"\r\x1b[J");
    }
}
