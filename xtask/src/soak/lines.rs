//! Makes command lines for bash: by a grammar, and then with pieces changed at random.
//!
//! The same seed gives the same lines. A line writes only by programs of [`PROGRAMS`] and by
//! redirections, below the directory it runs in; it never loops without an end.

use std::sync::LazyLock;

use serde::Deserialize;

/// Programs that a line may call; the sandbox has no others in its path.
pub const PROGRAMS: &[&str] = &[
    "bash", "cat", "chmod", "cp", "dd", "env", "false", "find", "install", "ln", "ls", "mkdir",
    "mv", "nice", "nohup", "rm", "rmdir", "sed", "sh", "sort", "tee", "timeout", "touch", "true",
    "truncate", "xargs",
];

/// What lines are made of.
#[derive(Default, Deserialize)]
struct Tables {
    /// Files that lines write. The hook is asked as if `docs` had been declared.
    targets: Vec<String>,
    /// Pieces that are put into a finished line at random places.
    pieces: Vec<String>,
    redirections: Vec<String>,
    /// Words before a command that do not change what it writes.
    prefixes: Vec<String>,
}

static TABLES: LazyLock<Tables> =
    LazyLock::new(|| serde_json::from_str(include_str!("lines.json")).unwrap_or_default());

/// A generator of lines.
pub struct Lines {
    state: u64,
    /// How deep the current line may still nest.
    room: u32,
}

impl Lines {
    pub fn new(seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { state, room: 0 }
    }

    /// The next number below `most`, by xorshift.
    fn below(&mut self, most: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let high = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap_or_default() % most.max(1)
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'a>(&mut self, from: &'a [impl AsRef<str>]) -> &'a str {
        from[self.below(from.len())].as_ref()
    }

    /// The next line; two of three are changed at random.
    pub fn line(&mut self) -> String {
        self.room = 4;
        let mut line = self.list();
        if !self.one_in(3) {
            for _ in 0..=self.below(4) {
                line = self.changed(&line);
            }
        }
        line
    }

    fn changed(&mut self, line: &str) -> String {
        let letters: Vec<char> = line.chars().collect();
        let at = self.below(letters.len() + 1);
        let (before, after) = letters.split_at(at);
        let (before, after): (String, String) = (before.iter().collect(), after.iter().collect());
        match self.below(6) {
            0 => before + after.get(1..).unwrap_or_default(),
            1 => {
                let end = self.below(letters.len() + 1).max(at);
                let copy: String = letters[at..end].iter().collect();
                before + &copy + &after
            }
            _ => before + self.pick(&TABLES.pieces) + &after,
        }
    }

    fn list(&mut self) -> String {
        let mut list = self.command();
        while self.one_in(2) && list.len() < 300 {
            list += self.pick(&[
                "; ", " && ", " || ", " | ", "\n", " & ", " |& ", ";", "&&", " \\\n; ",
            ]);
            list += &self.command();
        }
        list
    }

    fn command(&mut self) -> String {
        if self.room == 0 {
            return self.simple();
        }
        self.room -= 1;
        let made = if self.one_in(2) {
            self.simple()
        } else {
            self.compound()
        };
        self.room += 1;
        made
    }

    fn target(&mut self) -> String {
        self.pick(&TABLES.targets).to_owned()
    }

    /// One command that writes, or only looks as if it did.
    fn simple(&mut self) -> String {
        let target = self.target();
        let word = self.word();
        match self.below(30) {
            0..=3 => format!("touch {target}"),
            4 => format!("echo {word} > {target}"),
            5 => format!("echo {word} | tee {target}"),
            6 => format!("rm -f {target}"),
            7 => format!("cp docs/a.md {target}"),
            8 => format!("sed -i s/a/b/ {target}"),
            9 => format!(": {word} > {target}"),
            10 => format!("A={word} touch {target}"),
            11 => format!("echo {word} {} {target}", self.redirection()),
            12 => format!("{}{target} echo {word}", self.redirection()),
            13 => format!("{} touch {target}", self.pick(&TABLES.prefixes)),
            14 => format!("eval 'touch {}'", target.replace('\'', "'\\''")),
            15 => format!("bash -c \"touch {}\"", target.replace(['"', '$'], "")),
            16 => format!("bash <<< {word}"),
            17 => format!("trap 'touch {}' EXIT", target.replace('\'', "")),
            18 => format!("echo {target} | xargs touch"),
            19 => format!("mv docs/a.md {target}"),
            20 => format!("echo {word}"),
            21 => format!("a=({word} {word}); touch {target}"),
            22 => format!(
                "cd {} && touch {target}",
                self.pick(&["docs", "src", "..", "docs/deep", "."])
            ),
            23 => format!("find docs -name {word} -exec touch {target} ';'"),
            24 => format!("{word} touch {target}"),
            25 => format!("\\touch {target}; 't'ouch {word}"),
            26 => format!("echo {word} # touch {target}"),
            27 => format!("[[ {word} == {word} ]] && touch {target}"),
            28 => format!("export A={word} B={word}; touch {target}"),
            _ => format!("cat {word} {word}"),
        }
    }

    fn redirection(&mut self) -> &'static str {
        self.pick(&TABLES.redirections)
    }

    /// A word, often one that is hard to find the end of.
    fn word(&mut self) -> String {
        if self.room == 0 {
            return self
                .pick(&["a", "'b c'", "\"d e\"", "f\\ g", "$A"])
                .to_owned();
        }
        self.room -= 1;
        let inner = self.small();
        let word = match self.below(34) {
            0 => "'a b'".to_owned(),
            1 => format!("\"$({inner})\""),
            2 => format!("$({inner})"),
            3 => format!("`{}`", inner.replace('`', "")),
            4 => format!("\"`{}`\"", inner.replace(['`', '"'], "")),
            5 => format!("<({inner})"),
            6 => format!(">({inner})"),
            7 => format!("${{A:-{inner}}}"),
            8 => format!("\"${{A:-{inner}}}\""),
            9 => format!("${{A:-$({inner})}}"),
            10 => format!("\"${{A:-'$({inner})'}}\""),
            11 => "$'it\\'s'".to_owned(),
            12 => "$'a\\\\'".to_owned(),
            13 => format!("$(( 1 + $({inner}; echo 1) ))"),
            14 => "$((1<<2))".to_owned(),
            15 => "${A#\\}}".to_owned(),
            16 => "\"${A%'}'}\"".to_owned(),
            17 => "${A/\\'/x}".to_owned(),
            18 => "a#b".to_owned(),
            19 => "$#".to_owned(),
            20 => "${#A}".to_owned(),
            21 => "{a,'b c'}".to_owned(),
            22 => format!("$( (({inner})) )"),
            23 => format!("$(( {inner} ) )"),
            24 => "\\\n".to_owned(),
            25 => format!("$\"b{inner}\""),
            26 => format!("$(case a in a) {inner};; esac)"),
            27 => format!("$(case a in (a) {inner};; esac)"),
            28 => format!("$(cat <<E\n)\nE\n{inner})"),
            29 => format!("$(echo ')' # )\n{inner})"),
            30 => format!("$(# '\n{inner})"),
            31 => format!("${{A:=`{}`}}", inner.replace('`', "")),
            32 => format!("$[ 1 + $({inner}) ]"),
            _ => "\"a'b\"".to_owned(),
        };
        self.room += 1;
        word
    }

    /// A short script for the inside of a word.
    fn small(&mut self) -> String {
        match self.below(5) {
            0 => self.command(),
            1 => format!("echo '{}'", self.pick(&["a", ")", "(", "}", "#", "\""])),
            2 => format!(
                "echo \"{}\"",
                self.pick(&["a", ")", "'", "}", "#", "`true`"])
            ),
            _ => format!("touch {}", self.target()),
        }
    }

    fn compound(&mut self) -> String {
        let body = self.list();
        let word = self.word();
        let target = self.target();
        match self.below(27) {
            0 => format!("( {body} )"),
            1 => format!("{{ {body}; }}"),
            2 => format!("if true; then {body}; fi"),
            3 => format!("if false; then :; else {body}; fi > {target}"),
            4 => format!("for i in {word} b; do {body}; done"),
            5 => format!("case {word} in a) :;; *) {body};; esac"),
            6 => format!("case a in (a|b) {body};& c) {};; esac", self.simple()),
            7 => format!("f() {{ {body}; }}; f"),
            8 => format!("function f {{ {body}; }}; f {word}"),
            9 => format!("f() ( {body} ) > {target}; f"),
            10 => format!("cat <<E\n{body}\nE\n{}", self.simple()),
            11 => format!("cat <<'E'\n{body}\nE\n{}", self.simple()),
            12 => format!("cat <<-E > {target}\n\t{body}\n\tE\n{}", self.simple()),
            13 => format!("bash <<E\n{body}\nE"),
            14 => format!("cat <<A <<B; {}\n{word}\nA\n{body}\nB", self.simple()),
            15 => format!("cat <<\"E\"F\n{body}\nEF\n{}", self.simple()),
            16 => format!("coproc {{ {body}; }}; wait"),
            17 => format!("coproc P {{ {body}; }} > {target}; wait"),
            18 => format!("(( 1 < 2 )) && {body}"),
            19 => format!("((1)); {body}"),
            20 => format!("[[ a < b && ( -n {word} ) ]] && {body}"),
            21 => format!("[[ a =~ (a|'b') ]]; {body}"),
            22 => format!(
                "while read -r l; do {body}; break; done < <({})",
                self.small()
            ),
            23 => format!(
                "shopt -s expand_aliases\nalias l='touch {}'\nl",
                target.replace('\'', "")
            ),
            24 => format!("for ((i = 0; i < 2; i++)); do {body}; done"),
            25 => format!("until {body}; do break; done &> {target}"),
            _ => format!("if {body}; then :; elif {}; then :; fi", self.simple()),
        }
    }
}
