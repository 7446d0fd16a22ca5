//! Here-documents: texts that follow the line of their command.

use super::{Cutter, Quotes, Token, Word};

/// A here-document whose lines follow later.
pub(super) struct Pending {
    place: usize,
    end: String,
    plain: bool,
    tabs: bool,
}

impl Cutter {
    /// Reads the delimiter: letters and digits, in one pair of quotes or none.
    pub(super) fn delimiter(&mut self) {
        let tabs = self.next_is('-');
        while self.next_is(' ') || self.next_is('\t') {}
        let quote = self
            .ahead()
            .filter(|letter| matches!(letter, '\'' | '"' | '\\'));
        self.at += usize::from(quote.is_some());
        let is_name = |letter: &char| letter.is_ascii_alphanumeric() || "_.-!".contains(*letter);
        let mut end = String::new();
        while let Some(letter) = self.peek().filter(is_name) {
            end.push(letter);
            self.at += 1;
        }
        let is_closed = match quote {
            Some(quote @ ('\'' | '"')) => self.next_is(quote),
            _ => true,
        };
        let ends = self
            .ahead()
            .is_none_or(|next| " \t\n;&|<>()".contains(next));
        if end.is_empty() || !is_closed || !ends {
            return self.refuse("the delimiter of a here-document");
        }
        self.part.pending.push(Pending {
            place: self.part.tokens.len() - 1,
            end,
            plain: quote.is_some(),
            tabs,
        });
    }

    /// The lines of a here-document.
    fn body(&mut self, pending: &Pending) -> String {
        let mut body = String::new();
        let mut is_joined = false;
        while self.at < self.letters.len() {
            let mut line = String::new();
            while let Some(next) = self.next().filter(|next| *next != '\n') {
                line.push(next);
            }
            let read = if pending.tabs {
                line.trim_start_matches('\t')
            } else {
                line.as_str()
            };
            if read == pending.end && !is_joined {
                return body;
            }
            body += read;
            body.push('\n');
            let slashes = read.chars().rev().take_while(|it| *it == '\\').count();
            is_joined = !pending.plain && slashes % 2 == 1;
        }
        self.refuse("a here-document without its end");
        body
    }

    pub(super) fn bodies(&mut self) {
        for pending in std::mem::take(&mut self.part.pending) {
            let text = self.body(&pending);
            let mut computed = false;
            if !pending.plain {
                computed = text.contains(['$', '`', '\\']);
                self.expansions(&text);
            }
            if let Some(place) = self.part.tokens.get_mut(pending.place) {
                let word = Word::plain(text);
                *place = Token::Document(Word { computed, ..word });
            }
        }
    }

    /// Finds commands inside of text that is no command itself.
    fn expansions(&mut self, text: &str) {
        let after = self.at;
        let letters = std::mem::replace(&mut self.letters, text.chars().collect());
        self.at = 0;
        while let Some(letter) = self.next() {
            match letter {
                '\\' => self.at += 1,
                '$' => self.dollar(Quotes::Double),
                '`' => self.backtick(Quotes::Double),
                _ => {}
            }
        }
        self.part.word = None;
        self.letters = letters;
        self.at = if self.trouble.is_some() {
            self.letters.len()
        } else {
            after
        };
    }
}
