//! The names of the first edition, for runs that were sealed under it.
//!
//! Verification judges the recorded facts again, and must use the names of that edition.

use super::Protection::{Control, Governing, Oracle};
use super::table::Row;

pub(super) const ROWS: &[Row] = &[
    Row {
        protection: Control,
        tool: "git and Provost",
        programs: "",
        files: ".gitignore .gitattributes .gitmodules .gitconfig .mailmap provost.toml",
        directories: ".git .provost .runtime-cache .provost* /policies/*",
    },
    Row {
        protection: Oracle,
        tool: "runners",
        programs: "",
        files: "build.rs cmakelists.txt justfile makefile gnumakefile noxfile.py rakefile taskfile.yml \
         .coveragerc .mocharc.json .mocharc.yml .nycrc conftest.py karma.conf.js pytest.ini \
         tox.ini build.gradle build.gradle.kts cargo.toml composer.json go.mod package.json \
         pom.xml pyproject.toml setup.cfg setup.py bun.lock bun.lockb cargo.lock composer.lock \
         gemfile.lock go.sum package-lock.json pipfile.lock pnpm-lock.yaml poetry.lock uv.lock \
         yarn.lock .gitlab-ci.yml .travis.yml appveyor.yml azure-pipelines.yml \
         bitbucket-pipelines.yml jenkinsfile jest.config.* vitest.config.* playwright.config.* \
         cypress.config.* wdio.conf.*",
        directories: ".buildkite .cargo .ci .circleci .config .github .husky .teamcity",
    },
    Row {
        protection: Governing,
        tool: "agents",
        programs: "",
        files: ".cursorrules .mcp.json .windsurfrules agents.md agents.override.md claude.local.md \
         claude.md codex.md gemini.md",
        directories: ".agents .claude .codex .continue .cursor .gemini .windsurf",
    },
];
