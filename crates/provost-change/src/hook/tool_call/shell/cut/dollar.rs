//! Expansions: what a `$` or a backtick begins.

use super::{Cutter, Quotes, Token};

impl Cutter {
    pub(super) fn dollar(&mut self, quotes: Quotes) {
        match self.ahead() {
            Some('(') => {
                self.at += 1;
                if self.next_is('(') {
                    self.calculation();
                } else {
                    self.substitution();
                }
                self.computed('$', quotes);
            }
            Some('{') => {
                self.at += 1;
                self.parameter(quotes);
            }
            Some('[') => self.refuse("`$[`"),
            Some('\'') if quotes == Quotes::None => {
                self.at += 1;
                self.ansi();
            }
            Some('"') if quotes == Quotes::None => {}
            Some(next) if next.is_alphanumeric() || "_@*#?$!-".contains(next) => {
                self.computed('$', quotes);
                // `"$@"` is several words in spite of its quotes.
                self.begun().splits |= next == '@';
            }
            _ => self.push('$'),
        }
    }

    /// `$'…'`: a word that this reader does not compute.
    fn ansi(&mut self) {
        self.quoted().computed = true;
        self.push('$');
        loop {
            match self.next() {
                Some('\'') => return,
                Some('\\') => self.at += 1,
                Some(next) => self.push(next),
                None => return self.refuse("a quote without its end"),
            }
        }
    }

    /// `${…}`, to the first brace that no other `${` opened.
    fn parameter(&mut self, quotes: Quotes) {
        let from = self.at;
        loop {
            match self.next() {
                Some('}') => break,
                Some('$') => self.dollar(quotes),
                Some('\'' | '"' | '\\' | '`') => {
                    return self.refuse("quotes or backticks inside of `${…}`");
                }
                Some('<' | '>') if self.peek() == Some('(') => {
                    return self.refuse("`<(…)` inside of `${…}`");
                }
                Some(_) => {}
                None => return self.refuse("`${` without its end"),
            }
        }
        let inner: String = self.letters[from..self.at].iter().collect();
        // The value is a text that bash reads as another expansion.
        if inner.contains("@P}") {
            self.refuse("`${…@P}`");
        }
        self.computed('$', quotes);
        self.begun().splits |= inner.contains('@');
    }

    /// What follows `((`, to its `))`: commands inside of it are read, the rest computes numbers.
    pub(super) fn calculation(&mut self) {
        let mut open = 0_usize;
        while let Some(letter) = self.next() {
            match letter {
                '$' => {
                    // What it adds to the word is no part of it.
                    let (word, is_quoted) = (self.part.word.take(), self.part.is_quoted);
                    self.dollar(Quotes::Double);
                    (self.part.word, self.part.is_quoted) = (word, is_quoted);
                }
                '(' => open += 1,
                ')' if open > 0 => open -= 1,
                ')' if self.next_is(')') => return,
                ')' | '\'' | '"' | '\\' | '`' | '\n' => break,
                _ => {}
            }
        }
        self.refuse("`((` that is no plain calculation");
    }

    pub(super) fn backtick(&mut self, quotes: Quotes) {
        if self.nesting > 0 {
            return self.refuse("backticks inside of a substitution");
        }
        let mut script = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(next @ ('`' | '\\' | '$')) => script.push(next),
                    Some(next) => script.extend(['\\', next]),
                    None => {}
                },
                Some('"') if quotes == Quotes::Double => {
                    return self.refuse("quotes inside of backticks inside of quotes");
                }
                Some(next) => script.push(next),
                None => return self.refuse("a backtick without its end"),
            }
        }
        self.part.tokens.push(Token::Script(script));
        self.computed('`', quotes);
    }
}
