//! Lines that bash splits in its own way, and tools that change the files of a project.

use proptest::prelude::*;
use provost_core::gate::command::split;

use super::super::cut::cut;
use super::super::token::{End, Token, Word};
use super::is_allowed;

/// Lines that bash splits in its own way; each of them writes outside of `docs`.
const SPLIT: &[&str] = &[
    "echo $(case a in a) touch k;; esac)",
    "echo $(# '\ntouch k)\n'",
    "echo ${x# docs/{f}>k",
    "echo ${A:-a=$'it\\'s' }; touch k # '}",
    "[[ a < b && ( -n >(touch k) ) ]]",
    "for ((i = 0; i < 1; <<-E i++)); do touch k; done\nE",
    "bash <<< \"touch $X\"",
    "'[[' a > k",
    "A=1 [[ a > k",
    "touch \"2\">docs/a",
    "echo x >&2k",
    "for x do touch k; done",
    "for x { touch k; }",
    "for ((;;)) { touch k; break; }",
    "echo \u{a0}# ; touch k",
    "echo $\\\n(touch k)",
    "echo x >\\\n> k",
    "a=(<(touch k))",
    "echo ${A:-<(touch k)}",
    "cat <<E\na\\\nE\n$(touch k)\nE",
    "cat <<\"E\"F\na\nEF\ntouch k",
    "x='a[$(touch k)]'; echo $((x))",
    "x='$(touch k)'; echo ${x@P}",
    "X='touch k'; $X/ls",
    "trap -- 'touch k' EXIT",
    "bash <<E\necho '$A'\nE",
    "shopt -s expand_aliases\nalias l=touch\nl k",
    "hash -p /usr/bin/touch ls; ls k",
];

/// Programs that change the files of a project.
const PROJECTS: &[&str] = &[
    "cargo fmt",
    "cargo +nightly fmt --all",
    "cargo add serde",
    "cargo clippy --fix --allow-dirty",
    "cargo fix",
    "cargo update",
    "go fmt ./...",
    "go mod tidy",
    "go get example.org/x",
    "go build -o k ./x",
    "npm install left-pad",
    "npm i",
    "npm audit fix",
    "npx -y prettier --write",
    "npx -y prettier@3 --write src/a.ts",
    "npx --yes eslint --fix src",
    "npx -c 'rm src/a'",
    "pnpm dlx prettier -w .",
    "pnpm add x",
    "yarn add x",
    "uvx black src",
    "uvx --from black==24 black src",
    "uv run --with black black src",
    "uv tool run ruff@0.5 format",
    "pipx run black src",
    "uv add x",
    "poetry add x",
    "git commit -am x",
    "git commit --all -m x",
    "terraform fmt",
    "biome check --write src",
    "rubocop -a",
    "pre-commit run --all-files",
    "gofmt -w",
    "cp target/debug/provost docs/p && docs/p hook uninstall claude",
    "/tmp/my-provost-2 approve 01M7",
];

#[test]
fn what_bash_splits_in_its_own_way_is_split_so_or_refused() {
    let passed: Vec<_> = SPLIT.iter().filter(|line| is_allowed(line)).collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn tools_that_change_a_project_are_seen() {
    let passed: Vec<_> = PROJECTS.iter().filter(|line| is_allowed(line)).collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

proptest! {
    /// What the command gate lets pass has the same words for the hook.
    #[test]
    fn both_readers_find_the_same_words(line in "[ab=~:#é1\\-./ \t'\"\\\\]{0,16}") {
        if let Ok(words) = split(&line) {
            let words = words.into_iter().map(|word| Token::Word(Word::plain(word)));
            let tokens: Vec<Token> = words.chain([Token::End(End::Then)]).collect();
            prop_assert_eq!(cut(&line).ok(), Some(tokens));
        }
    }
}
