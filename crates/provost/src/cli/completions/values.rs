//! Completion of values: the ids of runs, the names of agents, and paths.
//!
//! The scripts for shells are made in advance; for a value they ask this program. A shell expands
//! some of the words that it is offered, so a word that is not plain is never printed.

use std::fs;

use provost_core::agent::Adapter;
use provost_core::policy;
use provost_engine::query::short_id;

use crate::places::Places;

/// How many runs are offered.
const MOST_RUNS: usize = 50;

/// Commands whose first argument is a run.
const TAKE_RUN: &str = "show why diff log land retry cancel approve reject verify replay export \
    shell resume";

/// The short ids of the last runs, newest first; none outside of a repository.
pub(super) fn runs() -> Vec<String> {
    let runs = Places::look().and_then(|place| place.runs());
    let runs = runs.unwrap_or_default();
    let last = runs.iter().rev().take(MOST_RUNS).map(|run| short_id(run));
    let words = ["last"]
        .into_iter()
        .chain(last)
        .filter(|word| is_plain(word));
    words.map(str::to_owned).collect()
}

/// The names of the agents of this checkout, and of the known programs.
pub(super) fn agents() -> Vec<String> {
    let place = Places::look().ok();
    let checkout = place.as_ref().and_then(|place| place.repo.top());
    let bytes = checkout.and_then(|top| fs::read(top.join(policy::FILE)).ok());
    let policy = bytes.and_then(|bytes| policy::parse(&bytes).ok());
    let own = policy
        .into_iter()
        .flat_map(|policy| policy.agents.into_keys());
    let programs = Adapter::programs().map(|adapter| adapter.name().to_owned());
    let mut names: Vec<String> = own.chain(programs).filter(|name| is_plain(name)).collect();
    names.sort();
    names.dedup();
    names
}

fn is_plain(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !word.is_empty() && !word.starts_with('-') && word.bytes().all(plain)
}

/// `script` for bash, with values.
pub(super) fn bash(script: &str) -> String {
    format!(
        r#"{script}
_provost_values() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}"
    case "$prev" in
        --agent|--review) COMPREPLY=($(compgen -W "$(provost completions agents 2>/dev/null)" -- "$cur")); return ;;
        --allow|--forbid|--permit-oracle|--permit-governing|--permit-symlink|--allow-binary|-f) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    esac
    case " {TAKE_RUN} " in
        *" ${{COMP_WORDS[1]}} "*) if [[ $cur != -* && $prev != -* ]]; then COMPREPLY=($(compgen -W "$(provost completions runs 2>/dev/null)" -- "$cur")); return; fi ;;
    esac
    _provost "$@"
}}
complete -F _provost_values -o bashdefault -o default provost
"#
    )
}

/// `script` for zsh, with values.
pub(super) fn zsh(script: &str) -> String {
    // What registers the function comes last, and registers ours instead.
    let end = script
        .rfind("\nif [ \"$funcstack[1]\"")
        .unwrap_or(script.len());
    format!(
        r#"{}
_provost_values() {{
    case "$words[CURRENT-1]" in
        --agent|--review) compadd -- ${{(f)"$(provost completions agents 2>/dev/null)"}}; return ;;
        --allow|--forbid|--permit-oracle|--permit-governing|--permit-symlink|--allow-binary|-f) _files; return ;;
    esac
    if [[ " {TAKE_RUN} " == *" $words[2] "* && $words[CURRENT] != -* && $words[CURRENT-1] != -* ]]; then
        compadd -- ${{(f)"$(provost completions runs 2>/dev/null)"}}; return
    fi
    _provost "$@"
}}

if [ "$funcstack[1]" = "_provost" ]; then
    _provost_values "$@"
fi
compdef _provost_values provost
"#,
        &script[..end]
    )
}

/// `script` for fish, with values.
pub(super) fn fish(script: &str) -> String {
    format!(
        r#"{script}
complete -c provost -n "__fish_seen_subcommand_from {TAKE_RUN}" -f -a "(provost completions runs 2>/dev/null)"
complete -c provost -l agent -x -a "(provost completions agents 2>/dev/null)"
complete -c provost -l review -x -a "(provost completions agents 2>/dev/null)"
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_shell_expands_is_not_offered() {
        for word in ["", "-x", "a b", "$(id)", "`id`", "a;b", "a\nb", "é"] {
            assert!(!is_plain(word), "{word:?}");
        }
        assert!(is_plain("fast-1.2_x"));
    }
}
