//! Cuts a command line into pieces, by the rules that shells share about quotes.
//!
//! A command that a shell would run on the way (`$(…)`, backticks, `<(…)`, `>(…)`) becomes a script
//! of its own. Text that a command reads (`<<END`) stays with it, because a shell may read it.

use super::token::{End, Token, Word};
use super::{DEEPEST, is_opening};

pub(super) fn cut(line: &str) -> Vec<Token> {
    let mut cutter = Cutter::new(line);
    while let Some(letter) = cutter.next() {
        cutter.take(letter);
    }
    cutter.put(Token::End(End::Then));
    cutter.tokens
}

/// A here-document whose lines follow later.
struct Pending {
    place: usize,
    end: String,
    plain: bool,
    tabs: bool,
}

struct Cutter {
    letters: Vec<char>,
    at: usize,
    tokens: Vec<Token>,
    word: Option<Word>,
    pending: Vec<Pending>,
    /// Whether the next word is the name of a program.
    is_start: bool,
    /// How deep quotes and scripts are nested.
    nesting: usize,
    /// Whether the position is between `[[` and `]]`, where `<` and `>` compare.
    in_test: bool,
}

impl Cutter {
    fn new(text: &str) -> Self {
        Self {
            letters: text.chars().collect(),
            at: 0,
            tokens: Vec::new(),
            word: None,
            pending: Vec::new(),
            is_start: true,
            nesting: 0,
            in_test: false,
        }
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek();
        self.at += usize::from(letter.is_some());
        letter
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn next_is(&mut self, wanted: char) -> bool {
        let is = self.peek() == Some(wanted);
        self.at += usize::from(is);
        is
    }

    fn begun(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn push(&mut self, letter: char) {
        self.begun().text.push(letter);
    }

    fn computed(&mut self, letter: char) {
        let word = self.begun();
        word.text.push(letter);
        word.computed = true;
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        self.in_test = match word.text.as_str() {
            "[[" => self.in_test || self.is_start,
            "]]" => false,
            _ => self.in_test,
        };
        self.is_start &= is_opening(&word.text);
        self.tokens.push(Token::Word(word));
    }

    fn put(&mut self, token: Token) {
        self.end_word();
        self.is_start |= matches!(token, Token::End(_) | Token::Open | Token::Close);
        self.tokens.push(token);
    }

    fn take(&mut self, letter: char) {
        match letter {
            '\\' => match self.next() {
                Some('\n') | None => {}
                Some(next) => self.push(next),
            },
            '\'' => {
                self.begun();
                while let Some(next) = self.next().filter(|next| *next != '\'') {
                    self.push(next);
                }
            }
            '"' => self.double(),
            '$' => self.dollar(Quotes::None),
            '`' => self.backtick(),
            '[' if self.stands_alone() => self.push(letter),
            '*' | '?' | '[' => self.computed(letter),
            '{' => match self.peek() {
                None | Some('}') => self.push(letter),
                Some(next) if next.is_whitespace() => self.push(letter),
                Some(_) => self.computed(letter),
            },
            '~' if self.word.is_none() => self.computed(letter),
            '#' if self.word.is_none() => {
                while self.peek().is_some_and(|next| next != '\n') {
                    self.at += 1;
                }
            }
            letter if letter == '\n' && !self.pending.is_empty() => {
                self.put(Token::End(End::Then));
                self.bodies();
            }
            letter if letter.is_whitespace() && letter != '\n' => self.end_word(),
            '<' | '>' | '&' | '|' | '(' | ')' if self.in_test => self.end_word(),
            '<' | '>' | '&' | '|' | '(' | ')' | ';' | '\n' => self.operator(letter),
            letter => self.push(letter),
        }
    }

    /// Whether `[` is the program of that name, or part of the word `[[`.
    fn stands_alone(&self) -> bool {
        let before = self.word.as_ref().map(|word| word.text.as_str());
        let next = self.peek();
        let is_end = next.is_none_or(char::is_whitespace);
        match before {
            None => is_end || next == Some('['),
            Some(before) => before == "[" && is_end,
        }
    }

    fn operator(&mut self, letter: char) {
        match letter {
            '>' | '<' if self.peek() == Some('(') => {
                self.at += 1;
                let script = self.enclosed('(', ')');
                self.tokens.push(Token::Script(script));
                self.begun().text += "/dev/fd/63";
            }
            '>' => self.redirect(),
            '<' => self.input(),
            '&' if self.peek() == Some('>') => self.end_word(),
            '&' if self.next_is('&') => self.put(Token::End(End::And)),
            '|' if self.next_is('|') => self.put(Token::End(End::Or)),
            '|' => {
                self.next_is('&');
                self.put(Token::End(End::Aside));
            }
            '&' => self.put(Token::End(End::Aside)),
            '(' => self.parenthesis(),
            ')' => self.put(Token::Close),
            _ => self.put(Token::End(End::Then)),
        }
    }

    fn redirect(&mut self) {
        self.drop_descriptor();
        if !self.next_is('>') {
            self.next_is('|');
        }
        if self.next_is('&') {
            let copies = self
                .peek()
                .is_some_and(|next| next.is_ascii_digit() || next == '-');
            self.put(if copies { Token::From } else { Token::Into });
        } else {
            self.put(Token::Into);
        }
    }

    fn input(&mut self) {
        self.drop_descriptor();
        if self.next_is('>') {
            self.put(Token::Into);
        } else if !self.next_is('<') {
            self.next_is('&');
            self.put(Token::From);
        } else if self.next_is('<') {
            self.put(Token::Text);
        } else {
            self.end_word();
            let pending = self.delimiter();
            self.tokens.push(Token::Document(Word::default()));
            self.pending.push(pending);
        }
    }

    /// The number in `2>` is no word.
    fn drop_descriptor(&mut self) {
        let is_number = |word: &Word| {
            !word.text.is_empty() && word.text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
    }

    /// The delimiter of a here-document that begins here.
    fn delimiter(&mut self) -> Pending {
        let tabs = self.next_is('-');
        while self.next_is(' ') || self.next_is('\t') {}
        let (mut end, mut plain) = (String::new(), false);
        while let Some(letter) = self.peek() {
            if letter.is_whitespace() || "<>|&;()".contains(letter) {
                break;
            }
            self.at += 1;
            match letter {
                '\'' | '"' => {
                    plain = true;
                    while let Some(next) = self.next().filter(|next| *next != letter) {
                        end.push(next);
                    }
                }
                '\\' => {
                    plain = true;
                    end.extend(self.next());
                }
                letter => end.push(letter),
            }
        }
        Pending {
            place: self.tokens.len(),
            end,
            plain,
            tabs,
        }
    }

    /// The lines of a here-document; without its delimiter it lasts to the end of the text.
    fn body(&mut self, pending: &Pending) -> String {
        let mut body = String::new();
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
            if read == pending.end {
                break;
            }
            body += read;
            body.push('\n');
        }
        body
    }

    fn bodies(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            let text = self.body(&pending);
            let mut computed = false;
            if !pending.plain {
                computed = text.contains(['$', '`']);
                self.substitutions(&text);
            }
            if let Some(place) = self.tokens.get_mut(pending.place) {
                *place = Token::Document(Word { text, computed });
            }
        }
    }

    /// Finds commands inside of text that is no command itself.
    fn substitutions(&mut self, text: &str) {
        let mut inner = Self::new(text);
        while let Some(letter) = inner.next() {
            match letter {
                '\\' => inner.at += 1,
                '$' => inner.dollar(Quotes::Double),
                '`' => inner.backtick(),
                _ => {}
            }
        }
        let scripts = inner.tokens.into_iter();
        self.tokens
            .extend(scripts.filter(|token| matches!(token, Token::Script(_))));
    }

    fn double(&mut self) {
        self.begun();
        while let Some(letter) = self.next() {
            match letter {
                '"' => return,
                '$' => self.dollar(Quotes::Double),
                '`' => self.backtick(),
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(next @ ('$' | '`' | '"' | '\\')) => self.push(next),
                    Some(next) => {
                        self.push('\\');
                        self.push(next);
                    }
                },
                letter => self.push(letter),
            }
        }
    }

    fn dollar(&mut self, quotes: Quotes) {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let script = self.enclosed('(', ')');
                match arithmetic(&script) {
                    Some(inner) => self.substitutions(inner),
                    None => self.tokens.push(Token::Script(script)),
                }
                self.computed('$');
            }
            Some('{') => {
                self.at += 1;
                let inner = self.enclosed('{', '}');
                self.substitutions(&inner);
                self.computed('$');
            }
            Some('\'') if quotes == Quotes::None => {
                self.at += 1;
                self.computed('$');
                while let Some(next) = self.next().filter(|next| *next != '\'') {
                    self.push(next);
                    if next == '\\' {
                        self.at += 1;
                    }
                }
            }
            Some('"') if quotes == Quotes::None => {}
            Some(next) if next.is_alphanumeric() || "_@*#?$!-".contains(next) => {
                self.computed('$');
            }
            _ => self.push('$'),
        }
    }

    fn backtick(&mut self) {
        let mut script = String::new();
        while let Some(letter) = self.next().filter(|letter| *letter != '`') {
            if letter != '\\' {
                script.push(letter);
                continue;
            }
            match self.next() {
                Some(next @ ('`' | '\\' | '$')) => script.push(next),
                Some(next) => script.extend(['\\', next]),
                None => {}
            }
        }
        self.tokens.push(Token::Script(script));
        self.computed('`');
    }

    /// A subshell, a list of words, the head of a function, or a calculation.
    fn parenthesis(&mut self) {
        if self.word.as_ref().is_some_and(|it| it.text.ends_with('=')) {
            let inner = self.enclosed('(', ')');
            self.substitutions(&inner);
            return;
        }
        let is_first = self.is_start && self.word.is_none();
        if !is_first {
            let rest = &self.letters[self.at..];
            let blanks = rest.iter().take_while(|it| it.is_whitespace()).count();
            if rest.get(blanks) == Some(&')') {
                self.at += blanks + 1;
                self.put(Token::Define);
                self.put(Token::End(End::Then));
                return;
            }
        }
        let before = self.at;
        if is_first && self.peek() == Some('(') {
            let inner = self.enclosed('(', ')');
            if let Some(inner) = arithmetic(&inner) {
                self.substitutions(inner);
                return;
            }
            self.at = before;
        }
        self.put(Token::Open);
    }

    /// The text from here to the closing character, which is consumed.
    fn enclosed(&mut self, open: char, close: char) -> String {
        let start = self.at;
        let mut depth = 1_usize;
        let mut documents = Vec::new();
        while let Some(letter) = self.next() {
            match letter {
                '\\' => self.at += 1,
                '\'' => while self.next().is_some_and(|next| next != '\'') {},
                '"' => self.skip_double(),
                '<' if open == '(' && self.peek() == Some('<') => {
                    self.at += 1;
                    if !self.next_is('<') {
                        documents.push(self.delimiter());
                    }
                }
                '\n' => {
                    for pending in documents.drain(..) {
                        self.body(&pending);
                    }
                }
                letter if letter == open => depth += 1,
                letter if letter == close => {
                    depth -= 1;
                    if depth == 0 {
                        return self.letters[start..self.at - 1].iter().collect();
                    }
                }
                _ => {}
            }
        }
        let end = self.at.min(self.letters.len());
        self.letters[start.min(end)..end].iter().collect()
    }

    fn skip_double(&mut self) {
        while let Some(letter) = self.next() {
            match letter {
                '"' => return,
                '\\' => self.at += 1,
                '$' if self.next_is('(') => {
                    self.nesting += 1;
                    // The rest becomes one script, which is refused as too deep.
                    if self.nesting > DEEPEST {
                        self.at = self.letters.len();
                    }
                    self.enclosed('(', ')');
                    self.nesting -= 1;
                }
                _ => {}
            }
        }
    }
}

/// Whether a `$` stands in quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
}

/// The arithmetic expression, if one pair of parentheses encloses all of the text.
///
/// Text with quotes is read as commands, which is the stricter reading.
fn arithmetic(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let mut depth = 1_usize;
    for letter in inner.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            '\'' | '"' | '\\' => return None,
            _ => {}
        }
        if depth == 0 {
            return None;
        }
    }
    Some(inner)
}
