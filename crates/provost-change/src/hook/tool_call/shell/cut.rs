//! Splits a command line into pieces exactly as bash does, or refuses it.
//!
//! A command that a shell would run on the way (`$(…)`, backticks, `<(…)`, `>(…)`) becomes a script
//! of its own. Text that a command reads (`<<END`) stays with it, because a shell may read it.
//!
//! # Invariants
//!
//! - What versions of bash read in different ways, and what this reader does not follow (`case` or
//!   backticks inside of a substitution, quotes inside of `${…}`), is refused.
//! - `cargo xtask soak hook` compares the reading with the bash of the machine.

mod dollar;
mod heredoc;

use super::token::{End, Token, Word};
use super::{DEEPEST, is_assignment, is_opening};
use crate::hook::tool_call::EventError;
use heredoc::Pending;

pub(super) fn cut(line: &str) -> Result<Vec<Token>, EventError> {
    let mut cutter = Cutter {
        letters: line.chars().collect(),
        at: 0,
        part: Part::default(),
        nesting: 0,
        trouble: None,
    };
    while let Some(letter) = cutter.next() {
        cutter.take(letter);
    }
    cutter.finish();
    match cutter.trouble {
        Some(trouble) => Err(trouble),
        None => Ok(cutter.part.tokens),
    }
}

/// What is known of the script that is being read.
struct Part {
    tokens: Vec<Token>,
    word: Option<Word>,
    /// Whether a part of the word was quoted or escaped.
    is_quoted: bool,
    pending: Vec<Pending>,
    place: Place,
    /// Whether the position is between `[[` and `]]`, where `<` and `>` compare.
    in_test: bool,
    /// How many parentheses are open.
    open: usize,
}

impl Default for Part {
    fn default() -> Self {
        Self {
            tokens: Vec::new(),
            word: None,
            is_quoted: false,
            pending: Vec::new(),
            place: Place::Reserved,
            in_test: false,
            open: 0,
        }
    }
}

/// What the next word is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A reserved word, or the name of a program.
    Reserved,
    /// The name of a program: after an assignment or a redirection no word is reserved.
    Program,
    Argument,
}

struct Cutter {
    letters: Vec<char>,
    at: usize,
    part: Part,
    /// How deep substitutions are nested.
    nesting: usize,
    /// Why the line is refused.
    trouble: Option<EventError>,
}

impl Cutter {
    /// Refuses the line, and reads no further.
    fn refuse(&mut self, what: &'static str) {
        self.trouble.get_or_insert(EventError::Unclear(what));
        self.at = self.letters.len();
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek();
        self.at += usize::from(letter.is_some());
        letter
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    /// The next character where bash joins lines.
    fn ahead(&mut self) -> Option<char> {
        while self.peek() == Some('\\') && self.letters.get(self.at + 1) == Some(&'\n') {
            self.at += 2;
        }
        self.peek()
    }

    fn next_is(&mut self, wanted: char) -> bool {
        let is = self.ahead() == Some(wanted);
        self.at += usize::from(is);
        is
    }

    fn begun(&mut self) -> &mut Word {
        self.part.word.get_or_insert_default()
    }

    fn push(&mut self, letter: char) {
        self.begun().text.push(letter);
    }

    fn quoted(&mut self) -> &mut Word {
        self.part.is_quoted = true;
        self.begun()
    }

    fn computed(&mut self, letter: char, quotes: Quotes) {
        let word = self.begun();
        word.text.push(letter);
        word.computed = true;
        word.splits |= quotes == Quotes::None;
    }

    fn end_word(&mut self) {
        let Some(word) = self.part.word.take() else {
            return;
        };
        let is_plain = !std::mem::take(&mut self.part.is_quoted);
        let text = word.text.as_str();
        let part = &mut self.part;
        match text {
            "[[" if is_plain && part.place == Place::Reserved => part.in_test = true,
            "]]" if is_plain => part.in_test = false,
            "case" | "function"
                if is_plain && self.nesting > 0 && may_follow(part.tokens.last()) =>
            {
                return self.refuse("`case` or `function` inside of a substitution");
            }
            _ => {}
        }
        part.place = match part.place {
            Place::Reserved if is_plain && is_opening(text) && !is_assignment(text) => {
                Place::Reserved
            }
            Place::Reserved | Place::Program if is_opening(text) => Place::Program,
            _ => Place::Argument,
        };
        part.tokens.push(Token::Word(word));
    }

    fn put(&mut self, token: Token) {
        self.end_word();
        self.part.place = match token {
            Token::End(_) | Token::Open | Token::Close => Place::Reserved,
            _ if self.part.place == Place::Reserved => Place::Program,
            _ => self.part.place,
        };
        self.part.tokens.push(token);
    }

    /// Ends the script that is being read.
    fn finish(&mut self) {
        self.put(Token::End(End::Then));
        if self.part.in_test {
            self.refuse("`[[` without its end");
        }
        if !self.part.pending.is_empty() {
            self.refuse("a here-document without its text");
        }
    }

    fn take(&mut self, letter: char) {
        let from = self.at;
        self.piece(letter);
        // Versions of bash do not agree where the text of a here-document begins then.
        let read = &self.letters[from.min(self.at)..self.at];
        if !self.part.pending.is_empty() && read.contains(&'\n') {
            self.refuse("a here-document on a line with a word of several lines");
        }
    }

    fn piece(&mut self, letter: char) {
        match letter {
            '\\' => match self.next() {
                Some('\n') => {}
                Some(next) => self.quoted().text.push(next),
                None => self.refuse("a backslash at the end"),
            },
            '\'' => self.single(),
            '"' => self.double(),
            '$' => self.dollar(Quotes::None),
            '`' => self.backtick(Quotes::None),
            '[' if self.stands_alone() => self.push(letter),
            '*' | '?' | '[' => self.computed(letter, Quotes::None),
            '{' => self.brace(),
            '~' if self.part.word.is_none() => {
                self.push(letter);
                self.begun().computed = true;
            }
            '#' if self.part.word.is_none() => {
                while self.peek().is_some_and(|next| next != '\n') {
                    self.at += 1;
                }
            }
            '\n' if !self.part.pending.is_empty() => {
                self.put(Token::End(End::Then));
                self.bodies();
            }
            ' ' | '\t' => self.end_word(),
            '<' | '>' if self.ahead() == Some('(') => {
                self.at += 1;
                self.substitution();
                self.begun().text += "/dev/fd/63";
            }
            '\n' | '<' | '>' | '&' | '|' | '(' | ')' if self.part.in_test => self.end_word(),
            ';' if self.part.in_test => self.refuse("`;` inside of `[[`"),
            '<' | '>' | '&' | '|' | '(' | ')' | ';' | '\n' => self.operator(letter),
            letter => self.push(letter),
        }
    }

    fn single(&mut self) {
        self.quoted();
        loop {
            match self.next() {
                Some('\'') => return,
                Some(next) => self.push(next),
                None => return self.refuse("a quote without its end"),
            }
        }
    }

    /// A list such as `{a,b}`, which bash expands; `{}` and a single `{` are words.
    fn brace(&mut self) {
        match self.ahead() {
            None | Some(' ' | '\t' | '\n') => self.push('{'),
            Some('}') => {
                self.at += 1;
                let is_end = self
                    .ahead()
                    .is_none_or(|next| " \t\n;&|<>()'\"/.".contains(next));
                self.push('{');
                self.push('}');
                self.begun().computed |= !is_end;
            }
            Some(_) => self.computed('{', Quotes::None),
        }
    }

    /// Whether `[` is the program of that name, or part of the word `[[`.
    fn stands_alone(&mut self) -> bool {
        let next = self.ahead();
        let is_end = next.is_none_or(|next| " \t\n".contains(next));
        match self.part.word.as_ref().map(|word| word.text.as_str()) {
            None => is_end || next == Some('['),
            Some(before) => before == "[" && is_end,
        }
    }

    fn operator(&mut self, letter: char) {
        match letter {
            '>' => self.redirect(),
            '<' => self.input(),
            '&' if self.ahead() == Some('>') => self.end_word(),
            '&' if self.next_is('&') => self.put(Token::End(End::And)),
            '|' if self.next_is('|') => self.put(Token::End(End::Or)),
            '|' => {
                self.next_is('&');
                self.put(Token::End(End::Aside));
            }
            '&' => self.put(Token::End(End::Aside)),
            '(' => self.parenthesis(),
            ')' => {
                self.part.open = self.part.open.saturating_sub(1);
                self.put(Token::Close);
            }
            _ => self.put(Token::End(End::Then)),
        }
    }

    fn redirect(&mut self) {
        self.drop_descriptor();
        if !self.next_is('>') {
            self.next_is('|');
        }
        let copies = self.next_is('&');
        self.put(if copies { Token::Copy } else { Token::Into });
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
            self.put(Token::Document(Word::default()));
            self.delimiter();
        }
    }

    /// The number in `2>` is no word; one that no descriptor can have is.
    fn drop_descriptor(&mut self) {
        let is_number = |word: &Word| {
            (1..9).contains(&word.text.len()) && word.text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !self.part.is_quoted && self.part.word.as_ref().is_some_and(is_number) {
            self.part.word = None;
        }
    }

    fn double(&mut self) {
        self.quoted();
        while let Some(letter) = self.next() {
            match letter {
                '"' => return,
                '$' => self.dollar(Quotes::Double),
                '`' => self.backtick(Quotes::Double),
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
        self.refuse("a quote without its end");
    }

    /// A subshell, a list of words, the head of a function, or a calculation.
    fn parenthesis(&mut self) {
        let word = self.part.word.as_ref();
        if word.is_some_and(|it| it.text.ends_with('=')) && !self.part.is_quoted {
            return self.list_of_words();
        }
        let is_first = self.part.place != Place::Argument && word.is_none();
        let is_loop = || self.part.tokens.last() == Some(&Token::Word(Word::plain("for")));
        let is_loop = word.is_none() && is_loop();
        if (is_first || is_loop) && self.next_is('(') {
            return self.calculation();
        }
        if !is_first {
            let at = self.at;
            while self.next_is(' ') || self.next_is('\t') {}
            if self.next_is(')') {
                self.put(Token::Define);
                self.put(Token::End(End::Then));
                return;
            }
            self.at = at;
        }
        self.part.open += 1;
        self.put(Token::Open);
    }

    /// The words of `a=(…)`: only what is run to compute them counts.
    fn list_of_words(&mut self) {
        let Some(tokens) = self.nested() else { return };
        for token in tokens {
            match token {
                Token::Script(script) => self.part.tokens.push(Token::Script(script)),
                Token::Word(_) | Token::End(End::Then) => {}
                _ => self.refuse("an operator in a list of words"),
            }
        }
    }

    /// A command inside of another, to its closing parenthesis.
    fn substitution(&mut self) {
        let from = self.at;
        if self.nested().is_some() {
            let script = self.letters[from..self.at - 1].iter().collect();
            self.part.tokens.push(Token::Script(script));
        }
    }

    /// The tokens up to the parenthesis that closes what was opened before this position.
    fn nested(&mut self) -> Option<Vec<Token>> {
        if self.nesting > DEEPEST {
            self.trouble.get_or_insert(EventError::Deep);
            self.at = self.letters.len();
            return None;
        }
        self.nesting += 1;
        let outer = std::mem::take(&mut self.part);
        let mut is_closed = false;
        while let Some(letter) = self.next() {
            if letter == ')' && self.part.open == 0 && !self.part.in_test {
                is_closed = true;
                break;
            }
            self.take(letter);
        }
        self.finish();
        self.nesting -= 1;
        let inner = std::mem::replace(&mut self.part, outer);
        if !is_closed {
            self.refuse("a parenthesis without its end");
            return None;
        }
        Some(inner.tokens)
    }
}

/// Whether a reserved word may follow `token`; in doubt it may.
fn may_follow(token: Option<&Token>) -> bool {
    const BEFORE: [&str; 5] = ["-p", "--", "coproc", "function", "time"];
    match token {
        Some(Token::Word(word)) => is_opening(&word.text) || BEFORE.contains(&word.text.as_str()),
        _ => true,
    }
}

/// Whether a `$` stands in quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
}
