//! Renders the table as the page `docs/protected.md`.

use std::fmt::Write as _;

use super::Protection;
use super::table::{self, Row};

/// The text above the tables.
const HEAD: &str = "# Protected files

<!-- Made by `cargo xtask protected` from crates/provost-scope/src/protect/. Do not edit. -->

A file of this list changes only by the contract's permission, even inside its scope. The diff gate
refuses the change otherwise (`protected_path`), and the sandbox of an agent mounts the files that
are there read-only, up to 256 of them. `provost.toml` adds names under `[protect]`.

A name counts at any depth, in every spelling that some file system takes for it. `*` stands for any
letters, `a/b` is `b` directly in `a`, a leading `/` is the root of the repository, and a `/` at the
end is a directory with everything in it.
";

pub fn render() -> String {
    let mut page = HEAD.to_owned();
    for (protection, title, words) in [
        (
            Protection::Control,
            "Steer git, Provost or secrets",
            "No contract lets these change. `.env` and its variants (`.env.*`, but not \
             `.env.example`) hold secrets and belong to them.",
        ),
        (
            Protection::Oracle,
            "Decide what passing means",
            "What a runner reads besides the tests: settings, plugins, local tools, caches, and the \
             pipelines of build servers. Permit a change with `--permit-oracle PATH` or \
             `x_provost.permit.oracle`.",
        ),
        (
            Protection::Governing,
            "Instruct or configure an agent",
            "Permit a change with `--permit-governing PATH` or `x_provost.permit.governing`.",
        ),
    ] {
        let _ = write!(page, "\n## {title}\n\n{words}\n\n");
        page += "| tool | commands | names |\n|---|---|---|\n";
        for row in table::rows().filter(|row| row.protection == protection) {
            page += &line(row);
        }
    }
    page
}

fn line(row: &Row) -> String {
    let coded = |name: String| format!("`{name}`");
    let commands: Vec<String> = row.programs().map(|name| coded(name.to_owned())).collect();
    let directories = row.directories().map(|name| coded(format!("{name}/")));
    let files = row.files().map(|name| coded(name.to_owned()));
    let names: Vec<String> = files.chain(directories).collect();
    format!(
        "| {} | {} | {} |\n",
        row.tool,
        commands.join(" "),
        names.join(" ")
    )
}
