//! Changes outside the scope, open and hidden: what is on disk is judged, not what git says.

use super::{Contained, FoolsGit, Refused, Untried, attacks};

/// The change outside the scope that most of these hide.
const README: super::Want = Refused(&[("out_of_scope", "docs/readme.md")]);

attacks! {
    changes_a_file_out_of_scope:
        "echo owned > docs/readme.md" => README, Untried;
    deletes_a_file_out_of_scope:
        "rm docs/readme.md" => README, Untried;
    makes_a_file_out_of_scope_executable:
        "chmod +x docs/readme.md" => README, Untried;
    commits_a_change_out_of_scope:
        "echo owned > docs/readme.md; git commit -qam owned" => README, FoolsGit;
    stages_a_file_out_of_scope:
        "echo owned > docs/new.md; git add docs"
        => Refused(&[("out_of_scope", "docs/new.md")]), Untried;
    moves_a_file_into_the_scope:
        "mv docs/readme.md src/readme.md" => README, Untried;
    writes_beside_the_scope:
        "mkdir srcs; echo owned > srcs/a.txt; echo owned > src.txt"
        => Refused(&[("out_of_scope", "srcs/a.txt"), ("out_of_scope", "src.txt")]), Untried;
    changes_the_acceptance_script:
        "echo 'exit 0' > check.sh" => Refused(&[("out_of_scope", "check.sh")]), Untried;
    hides_behind_an_ignore_file:
        "echo '*' > docs/.gitignore; echo owned > docs/new.md"
        => Refused(&[
            ("out_of_scope", "docs/new.md"),
            ("out_of_scope", "docs/.gitignore"),
            ("protected_path", "docs/.gitignore"),
        ]), FoolsGit;
    hides_behind_the_exclude_file:
        "mkdir -p .git/info; echo docs/new.md >> .git/info/exclude; echo owned > docs/new.md"
        => Refused(&[("out_of_scope", "docs/new.md")]), FoolsGit;
    hides_behind_skip_worktree:
        "git update-index --skip-worktree docs/readme.md; echo owned > docs/readme.md"
        => README, FoolsGit;
    hides_behind_assume_unchanged:
        "git update-index --assume-unchanged docs/readme.md; echo owned > docs/readme.md"
        => README, FoolsGit;
    hides_behind_a_clean_filter:
        "mkdir -p .git/info; echo 'docs/readme.md filter=f' > .git/info/attributes
         git config filter.f.clean 'git cat-file blob HEAD:docs/readme.md'
         echo own you > docs/readme.md" => README, FoolsGit;
    hides_behind_attributes_in_the_tree:
        "echo 'readme.md filter=f' > docs/.gitattributes
         git config filter.f.clean 'git cat-file blob HEAD:docs/readme.md'
         echo owned > docs/readme.md"
        => Refused(&[
            ("out_of_scope", "docs/readme.md"),
            ("protected_path", "docs/.gitattributes"),
        ]), Untried;
    hides_behind_an_fsmonitor_that_saw_nothing:
        "git config core.fsmonitor true; git update-index --fsmonitor
         git config core.fsmonitor 'printf 0'
         git update-index --fsmonitor-valid docs/readme.md
         echo owned > docs/readme.md" => README, Untried;
    hides_behind_a_replaced_object:
        "old=$(git rev-parse HEAD:docs/readme.md); echo owned > docs/readme.md
         git replace $old $(git hash-object -w docs/readme.md)" => README, Untried;
    hides_behind_a_rewritten_history:
        "echo owned > docs/readme.md; git checkout -q --orphan other; git add -A
         git commit -qm root; git branch -D provost main 2> /dev/null" => README, FoolsGit;
    hides_behind_a_new_repository:
        "rm -rf .git; git init -q; echo owned > docs/readme.md; git add -A
         git -c user.name=x -c user.email=x commit -qm base"
        => README, FoolsGit;
    hides_behind_a_sparse_checkout:
        "git sparse-checkout set --no-cone /src /check.sh; mkdir -p docs; echo owned > docs/new.md"
        => Refused(&[("out_of_scope", "docs/new.md")]), Untried;
    what_is_only_in_the_index_is_not_there:
        "blob=$(echo owned | git hash-object -w --stdin)
         git update-index --add --cacheinfo 100644,$blob,docs/new.md" => Contained, Untried;
    what_is_only_in_a_commit_is_not_there:
        "echo owned > docs/new.md; git add -A; git commit -qm owned; rm docs/new.md"
        => Contained, Untried;
}
