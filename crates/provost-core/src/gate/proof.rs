//! Classifies what a command can prove about a change: it runs tests, it checks, or neither.
//!
//! The answer comes from a table of runners: which of their words run tests, which only check, and
//! which options prevent both. A program that is not in the table may prove anything; only its
//! output shows.

use super::command::{is_option, name_of};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    Tests,
    /// It checks something else, such as types or style.
    Checks,
    /// Not known from its words.
    Unknown,
    /// It tests nothing; the reason follows its name in a message.
    Nothing(String),
}

/// One program, or several with the same words.
struct Tool {
    programs: &'static str,
    /// Words after the program that run tests; `*` stands for the program itself.
    tests: &'static str,
    /// Words after the program that check something.
    checks: &'static str,
    /// Options with which nothing is run; `a=b` needs the value.
    idle: &'static str,
}

const fn tool(
    programs: &'static str,
    tests: &'static str,
    checks: &'static str,
    idle: &'static str,
) -> Tool {
    Tool {
        programs,
        tests,
        checks,
        idle,
    }
}

/// Options with which almost no program does its work.
const IDLE: &str = "--version --help -h -help -version -?";

/// Options of the runners behind scripts of a `package.json`.
const SCRIPTS: &str = "--listTests --passWithNoTests --showConfig --clearCache --dry-run --list \
    --list-files --list-reporters --pass-with-no-tests --no-run --collect-only --init --standalone";

const TOOLS: &[Tool] = &[
    tool(
        "pytest py.test",
        "*",
        "",
        "--collect-only --co --fixtures --funcargs --fixtures-per-test --markers --setup-plan \
         --setup-only --cache-show --cache-clear=only -V -k=^$",
    ),
    tool(
        "unittest doctest nose2 stestr behave",
        "*",
        "",
        "--dry-run -d=only --list",
    ),
    tool(
        "tox nox",
        "*",
        "",
        "--list --listenvs --listenvs-all -l -a --notest --showconfig --install-only -n",
    ),
    tool(
        "mypy pyright flake8 pylint ruff black compileall tsc eslint prettier biome staticcheck \
         golangci-lint clippy-driver rustfmt shellcheck rubocop phpstan psalm",
        "",
        "*",
        "-V --showConfig --show-settings --show-files --list-files --print-config --listFilesOnly",
    ),
    tool(
        "npm pnpm yarn",
        "test t tst test:*",
        "lint lint:* build check typecheck",
        SCRIPTS,
    ),
    tool("bun", "test test:*", "lint build check typecheck", SCRIPTS),
    tool(
        "jest vitest mocha ava tap tape jasmine uvu qunit cypress karma wdio nightwatch testcafe \
         playwright c8 nyc",
        "*",
        "",
        SCRIPTS,
    ),
    tool("node nodejs", "--test", "--check", "-v -c"),
    tool("deno", "test", "check lint", "--no-run --permit-no-files"),
    tool(
        "cargo",
        "test nextest t",
        "check clippy build doc fmt c b",
        "--no-run --list -V --dry-run --no-tests=pass --no-tests=warn",
    ),
    tool(
        "go",
        "test",
        "vet build",
        "-c -list -n -run=^$ -run=$^ -exec=true",
    ),
    tool("gotestsum ginkgo", "*", "", "--dry-run"),
    tool(
        "mvn mvnw mvnd",
        "test verify package install integration-test",
        "compile test-compile validate",
        "-DskipTests -Dmaven.test.skip -Dmaven.test.skip.exec -DskipITs=all -v \
         -Dmaven.main.skip -Dsurefire.skip -Dmaven.test.failure.ignore -fn --fail-never \
         -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false",
    ),
    tool(
        "gradle gradlew",
        "test check build",
        "assemble classes testClasses compileJava",
        "-x=test -x=check -xtest -xcheck --exclude-task=test --exclude-task=check --dry-run -m -PskipTests \
         -DskipTests -v --status",
    ),
    tool(
        "dotnet",
        "test",
        "build format",
        "--list-tests -t --info --list-sdks --list-runtimes",
    ),
    tool(
        "swift",
        "test",
        "build",
        "--list-tests -l list --show-codecov-path",
    ),
    tool(
        "mix",
        "test",
        "compile format credo dialyzer",
        "--dry-run --listonly",
    ),
    tool(
        "rspec cucumber minitest",
        "*",
        "",
        "--dry-run -v --bisect --init",
    ),
    tool(
        "rake rails",
        "test spec",
        "",
        "-T --tasks -n --dry-run -P --prereqs -D --describe",
    ),
    tool(
        "phpunit pest codecept behat",
        "*",
        "",
        "--list-tests --list-tests-xml --list-groups --list-suites --list-test-files \
         --generate-configuration --migrate-configuration --check-version --atleast-version \
         --warm-coverage-cache --dry-run",
    ),
    tool(
        "sbt",
        "test testOnly testQuick",
        "compile",
        "--script-version",
    ),
    tool("zig", "build test", "ast-check fmt", "-l --list-steps"),
    tool(
        "ctest",
        "*",
        "",
        "-N --show-only --print-labels --no-tests=ignore --help-full",
    ),
    tool(
        "stack",
        "test",
        "build",
        "--no-run-tests --dry-run --no-run",
    ),
    tool(
        "cabal",
        "test",
        "build check",
        "--dry-run --only-configure --only-download",
    ),
    tool(
        "make gmake",
        "",
        "",
        "-n --just-print --dry-run --recon -q --question -t --touch -v",
    ),
    tool(
        "just task",
        "",
        "",
        "-n --dry-run --list -l --list-all --summary --dump",
    ),
    tool("ninja", "", "", "-n -t"),
    tool(
        "bazel bazelisk buck2 pants",
        "test coverage",
        "build",
        "--nobuild --nobuild_tests_only --notest",
    ),
    tool("pre-commit lefthook", "", "run", ""),
    tool(
        "prove bats shellspec busted",
        "*",
        "",
        "--count --dry -D --list",
    ),
];

/// Programs that accept several one-letter options in one word, and the letters whose value ends
/// such a word.
const BUNDLES: &[(&str, &str)] = &[
    ("pytest py.test", "ckmnoprW"),
    ("unittest doctest nose2 stestr behave", "kstp"),
    ("tox nox", "cefpkst"),
    ("cargo", "pFjZC"),
    ("make gmake", "CfIjloWE"),
    ("mypy flake8 pylint ruff black", "cmpj"),
    ("rspec prove", "IrefPO"),
];

/// Programs whose exit status does not depend on the change.
const ALWAYS: &str = ": true false echo printf ls dir cat head tail pwd date whoami id uname which \
    whereis type sleep env printenv hostname seq yes touch mkdir cp mv ln stat file wc basename \
    dirname realpath readlink tree du df ps clear tput tee sort uniq";

/// Programs that only start another one.
const STARTERS: &str = "env timeout nice nohup time stdbuf setsid command exec xvfb-run uv poetry \
    pipenv pdm hatch rye pixi bundle npx bunx pnpx uvx pipx coverage python pypy strace";

/// Words of starters that are no program.
const STARTING: &str = "run exec dlx x";

pub fn of(argv: &[String]) -> Proof {
    let Some((program, rest)) = argv.split_first() else {
        return Proof::Nothing("is no command".to_owned());
    };
    let name = name_of(program);
    if has(STARTERS, name) {
        if let Some(inner) = module(name, rest) {
            return of(&inner);
        }
        return match started(name, rest) {
            Some(inner) => of(inner),
            None if name != "env" && rest.iter().all(|word| word.starts_with('-')) => {
                Proof::Nothing("only prints its version or help".to_owned())
            }
            None if name == "env" => Proof::Nothing("only shows its variables".to_owned()),
            None => Proof::Unknown,
        };
    }
    if name == "git" {
        return of_git(rest);
    }
    if has(ALWAYS, name) {
        return Proof::Nothing("says the same of every change".to_owned());
    }
    let whole = program.rsplit('/').next().unwrap_or(program);
    let is_it = |tool: &&Tool| has(tool.programs, name) || has(tool.programs, whole);
    match TOOLS.iter().find(is_it) {
        Some(tool) => tool.judge(rest),
        None => Proof::Unknown,
    }
}

/// The module that Python starts, with its arguments; its name may be in the same word as `-m`,
/// after other one-letter options.
fn module(name: &str, rest: &[String]) -> Option<Vec<String>> {
    if name != "python" && name != "pypy" {
        return None;
    }
    for (at, word) in rest.iter().enumerate() {
        let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
        let Some((before, attached)) = letters.and_then(|letters| letters.split_once('m')) else {
            continue;
        };
        if !before
            .bytes()
            .all(|letter| b"bBdEiIOPqRsSuvVx".contains(&letter))
        {
            continue;
        }
        let behind = rest.get(at + 1..).unwrap_or_default();
        let attached = Some(attached.to_owned()).filter(|it| !it.is_empty());
        let inner: Vec<String> = attached.into_iter().chain(behind.iter().cloned()).collect();
        return Some(inner).filter(|inner| !inner.is_empty());
    }
    None
}

fn started<'a>(name: &str, rest: &'a [String]) -> Option<&'a [String]> {
    if name == "python" || name == "pypy" {
        return None;
    }
    let at = rest.iter().position(|word| {
        let digit = word.starts_with(|letter: char| letter.is_ascii_digit());
        !(digit || word.starts_with('-') || word.contains('=') || has(STARTING, word))
    })?;
    rest.get(at..)
}

/// Few git subcommands depend on the content of a change.
fn of_git(rest: &[String]) -> Proof {
    let given = |options: &str| rest.iter().any(|word| has(options, word));
    if given("--version --help") {
        return Proof::Nothing("only prints its version or help".to_owned());
    }
    match rest.iter().find(|word| !word.starts_with('-')) {
        Some(word) if word == "grep" => Proof::Checks,
        // Between two commits the checkout is not examined.
        Some(word) if word.starts_with("diff") && given("--exit-code --quiet --check") => {
            let named = rest.iter().take_while(|word| *word != "--");
            let named: Vec<&String> = named.filter(|word| !word.starts_with('-')).collect();
            if named.len() > 2 || named.iter().any(|word| word.contains("..")) {
                return Proof::Nothing("compares two commits, and tests nothing".to_owned());
            }
            Proof::Checks
        }
        _ => Proof::Nothing("shows what is there, and tests nothing".to_owned()),
    }
}

impl Tool {
    fn judge(&self, rest: &[String]) -> Proof {
        if let Some(word) = self.idle_word(rest) {
            return Proof::Nothing(format!("runs no test with `{}`", word.escape_debug()));
        }
        let asked = |list: &str, word: &str| {
            let mut known = list.split_ascii_whitespace();
            known.any(|known| match known.strip_suffix('*') {
                Some("") => true,
                Some(beginning) => word.starts_with(beginning),
                None => known == word,
            })
        };
        if self.tests == "*" {
            return Proof::Tests;
        }
        if self.checks == "*" {
            return Proof::Checks;
        }
        let mut options = rest.iter().take_while(|word| word.starts_with('-'));
        if options.any(|word| asked(self.tests, word)) {
            return Proof::Tests;
        }
        let plain = rest.iter().filter(|word| !word.starts_with(['-', '+']));
        let asks: Vec<&String> = plain.collect();
        match asks.as_slice() {
            [] if self.tests.is_empty() && self.checks.is_empty() => Proof::Unknown,
            [] => Proof::Nothing("is not asked to do anything".to_owned()),
            [run, script, ..] if *run == "run" || *run == "run-script" => self.word(&asked, script),
            // Maven, Gradle and sbt take several goals.
            asks => asks
                .iter()
                .map(|word| self.word(&asked, word))
                .find(|proof| *proof == Proof::Tests)
                .unwrap_or_else(|| self.word(&asked, asks[0])),
        }
    }

    fn word(&self, asked: &dyn Fn(&str, &str) -> bool, word: &str) -> Proof {
        if asked(self.tests, word) {
            Proof::Tests
        } else if asked(self.checks, word) {
            Proof::Checks
        } else if has(self.idle, word) {
            Proof::Nothing(format!("runs no test with `{}`", word.escape_debug()))
        } else {
            Proof::Unknown
        }
    }

    /// The one-letter options in `word`, if this program takes such words.
    fn letters(&self, word: &str) -> Vec<String> {
        let mut rows = BUNDLES.iter();
        let row = rows.find(|(programs, _)| {
            let mut programs = programs.split_ascii_whitespace();
            programs.any(|program| has(self.programs, program))
        });
        let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
        let (Some((_, valued)), Some(letters)) = (row, letters) else {
            return Vec::new();
        };
        let plain = letters
            .chars()
            .take_while(|letter| !valued.contains(*letter));
        plain.map(|letter| format!("-{letter}")).collect()
    }

    /// The first word with which nothing is run.
    fn idle_word<'a>(&self, rest: &'a [String]) -> Option<&'a String> {
        let known = || {
            IDLE.split_ascii_whitespace()
                .chain(self.idle.split_ascii_whitespace())
        };
        rest.iter().enumerate().find_map(|(at, word)| {
            let next = rest.get(at + 1).map(String::as_str);
            let is_known = |word: &str| known().any(|idle| is_idle(word, next, idle));
            let is_bundled = || self.letters(word).iter().any(|letter| is_known(letter));
            (is_known(word) || is_bundled()).then_some(word)
        })
    }
}

/// Whether `word`, with the next one, is the option `idle`.
fn is_idle(word: &str, next: Option<&str>, idle: &str) -> bool {
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| {
        (name, Some(value.trim_matches(['\'', '"'])))
    });
    if let Some((option, wanted)) = idle.split_once('=') {
        let bare = |text: &str| text.trim_start_matches('-').to_owned();
        // A Gradle task may be qualified with its project.
        let value = value.or(next).map(|it| it.rsplit(':').next().unwrap_or(it));
        return bare(name) == bare(option) && value == Some(wanted);
    }
    let is_off = value.is_some_and(|value| ["false", "0", "no"].contains(&value));
    let is_long = idle.starts_with("--");
    !is_off && (name == idle || is_long && name.len() > 5 && is_option(name, idle))
}

fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

#[cfg(test)]
mod tests;
