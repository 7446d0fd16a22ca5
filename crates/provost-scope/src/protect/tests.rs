use proptest::prelude::*;

use super::*;
use crate::file_system_names;

#[test]
fn files_that_decide_are_known() {
    use Protection::{Control, Governing, Oracle};
    let cases = [
        (".gitignore", Some(Control)),
        ("app/.gitattributes", Some(Control)),
        ("provost.toml", Some(Control)),
        (".provost/registry.db", Some(Control)),
        (".provostrc", Some(Control)),
        (".env", Some(Control)),
        ("app/.env.local", Some(Control)),
        (".env.example", None),
        ("environment.yml", None),
        ("app/test.env_loader.py", None),
        ("git/readme.md", None),
        ("policies/command_allowlist.json", Some(Control)),
        ("src/policies/x.rs", None),
        ("pytest.ini", Some(Oracle)),
        ("Makefile", Some(Oracle)),
        ("sub/Cargo.lock", Some(Oracle)),
        (".github/workflows/ci.yml", Some(Oracle)),
        ("github/x", None),
        ("vitest.config.ts", Some(Oracle)),
        ("CLAUDE.md", Some(Governing)),
        ("docs/AGENTS.md", Some(Governing)),
        (".claude/settings.json", Some(Governing)),
        ("src/claude.rs", None),
        (".mailmap", Some(Control)),
        ("Provost.TOML", Some(Control)),
        ("provost.toml. ", Some(Control)),
        ("PROVOS~1.TOM", Some(Control)),
        ("provos~1/x", Some(Control)),
        (".ENV", Some(Control)),
        (".env.Example", None),
        (".env.local:x", Some(Control)),
        ("app/.\u{200c}env", Some(Control)),
        ("git~1/config", Some(Control)),
        (".git /config", Some(Control)),
        ("a/.git::$INDEX_ALLOCATION/hooks/x", Some(Control)),
        ("GITMOD~1", Some(Control)),
        ("gi7eba~1", Some(Control)),
        (".gitattributes ", Some(Control)),
        (".GitHub./workflows/ci.yml", Some(Oracle)),
        ("github~1/workflows/ci.yml", Some(Oracle)),
        ("ma\u{212a}efile", Some(Oracle)),
        ("JESTCO~1.JS", Some(Oracle)),
        ("agents.MD", Some(Governing)),
        ("claude.md.", Some(Governing)),
        ("CLAUDE~1/settings.json", Some(Governing)),
        ("git~2/config", Some(Control)),
        ("notes~1", None),
        ("File::Copy.3", None),
    ];
    for (path, want) in cases {
        let path = RepoPath::try_from(path).unwrap();
        assert_eq!(classify(&path, &Extra::default()), want, "{path}");
    }
}

#[test]
fn a_repository_can_name_more() {
    let extra = Extra {
        oracle: Scope::parse(&["spec"]).unwrap(),
        ..Extra::default()
    };
    for path in ["spec/golden.txt", "SPEC/golden.txt", "spec./golden.txt"] {
        let path = RepoPath::try_from(path).unwrap();
        assert_eq!(classify(&path, &extra), Some(Protection::Oracle), "{path}");
    }
}

fn protected() -> impl Strategy<Value = String> {
    let patterns = table::rows().flat_map(|row| row.files().chain(row.directories()));
    let single = patterns.filter(|pattern| !pattern.contains('/'));
    let names = single.map(|pattern| pattern.replace('*', "x"));
    let names = names.chain([".env".to_owned(), ".env.local".to_owned()]);
    prop::sample::select(names.collect::<Vec<_>>())
}

/// The short name that NTFS gives to `name`.
fn short(name: &str, number: u32) -> String {
    let plain = name.trim_start_matches('.');
    let (stem, ending) = plain.rsplit_once('.').unwrap_or((plain, ""));
    let head: String = stem.replace('.', "").chars().take(6).collect();
    let ending: String = ending.chars().take(3).collect();
    format!("{head}~{number}.{ending}")
}

proptest! {
    #[test]
    fn no_name_that_folds_to_a_protected_one_is_unprotected(
        name in protected(),
        capitals: u32,
        skipped in prop::collection::vec((0..20_usize, 0..5_usize), 0..3),
        tail in "[. ]{0,3}(:[a-z$:]{1,6})?",
        number in 1..5_u32,
        is_short: bool,
    ) {
        let spelling = if is_short { short(&name, number) } else { name };
        let mut letters: Vec<char> = spelling
            .chars()
            .enumerate()
            .map(|(at, letter)| match capitals >> (at % 32) & 1 {
                1 => letter.to_ascii_uppercase(),
                _ => letter,
            })
            .collect();
        for (at, which) in skipped {
            let letter = ['\u{200c}', '\u{200f}', '\u{202a}', '\u{206f}', '\u{feff}'][which];
            letters.insert(at % (letters.len() + 1), letter);
        }
        let spelling: String = letters.into_iter().collect();
        for path in [format!("{spelling}{tail}"), format!("app/{spelling}{tail}")] {
            let path = RepoPath::try_from(path).unwrap();
            prop_assert!(classify(&path, &Extra::default()).is_some(), "{:?}", path);
        }
    }
}

#[test]
fn every_program_of_the_command_list_has_a_row() {
    let policy: serde_json::Value =
        serde_json::from_str(include_str!("../../../../policies/command_allowlist.json")).unwrap();
    let words = |value: &serde_json::Value| -> Vec<String> {
        let words = value.as_array().into_iter().flatten();
        words
            .map(|word| word.as_str().unwrap().to_owned())
            .collect()
    };
    let mut programs = Vec::new();
    for rule in policy["allow"].as_array().unwrap() {
        for prefix in rule["prefixes"].as_array().unwrap() {
            let prefix = words(prefix);
            programs.push(prefix[0].rsplit('/').next().unwrap().to_owned());
            let launches = ["uv", "poetry", "bundle"].contains(&prefix[0].as_str());
            programs.extend(prefix.last().filter(|_| launches).cloned());
        }
    }
    for reader in policy["interpreters"].as_array().unwrap() {
        programs.extend(words(&reader["programs"]));
        programs.extend(words(&reader["modules"]));
    }
    let has_row = |program: &String| {
        let program = program.to_ascii_lowercase();
        table::rows().any(|row| row.programs().any(|name| name == program))
    };
    let without: Vec<&String> = programs.iter().filter(|name| !has_row(name)).collect();
    assert_eq!(without, Vec::<&String>::new());
}

#[test]
fn the_table_is_folded_and_covers_more_than_two_hundred_names() {
    let mut names = std::collections::BTreeSet::new();
    for row in table::rows() {
        let read = row.files().chain(row.directories());
        for pattern in read.filter(|_| row.protection != Protection::Control) {
            assert_eq!(
                file_system_names::fold_path(pattern.as_bytes()),
                pattern.as_bytes()
            );
            let path = pattern.trim_start_matches('/').replace('*', "x");
            let path = RepoPath::try_from(path).unwrap();
            let known = classify(&path, &Extra::default());
            assert!(
                known.is_some_and(|known| known <= row.protection),
                "{path} {known:?}"
            );
            names.insert(pattern);
        }
    }
    assert!(names.len() > 600, "{}", names.len());
}

#[test]
fn what_runners_read_is_an_oracle() {
    for path in OF_RUNNERS.split_ascii_whitespace() {
        let path = RepoPath::try_from(path).unwrap();
        let known = classify(&path, &Extra::default());
        assert_eq!(known, Some(Protection::Oracle), "{path}");
    }
    for path in OF_AGENTS.split_ascii_whitespace() {
        let path = RepoPath::try_from(path).unwrap();
        let known = classify(&path, &Extra::default());
        assert_eq!(known, Some(Protection::Governing), "{path}");
    }
    for path in ORDINARY.split_ascii_whitespace() {
        let path = RepoPath::try_from(path).unwrap();
        assert_eq!(classify(&path, &Extra::default()), None, "{path}");
    }
}

/// A sealed run is judged again by the names of its edition.
#[test]
fn a_run_of_the_first_edition_keeps_its_names() {
    let sealed: Extra = serde_json::from_str(r#"{"oracle":[],"governing":[]}"#).unwrap();
    for (path, then, now) in [
        ("tsconfig.json", None, Some(Protection::Oracle)),
        (".kiro/steering/a.md", None, Some(Protection::Governing)),
        (
            "pytest.ini",
            Some(Protection::Oracle),
            Some(Protection::Oracle),
        ),
        (
            ".git/config",
            Some(Protection::Control),
            Some(Protection::Control),
        ),
        (
            "policies/x.json",
            Some(Protection::Control),
            Some(Protection::Control),
        ),
    ] {
        let path = RepoPath::try_from(path).unwrap();
        assert_eq!(classify(&path, &sealed), then, "{path}");
        assert_eq!(classify(&path, &Extra::default()), now, "{path}");
    }
}

#[test]
fn the_page_shows_the_table() {
    let page = include_str!("../../../../docs/protected.md");
    assert_eq!(page, page::render(), "run `cargo xtask protected`");
}

const OF_RUNNERS: &str = "pkg/.npmrc node_modules/.bin/jest pkg/node_modules/x/index.js \
    a/.venv/bin/pytest venv/lib/python3.12/site-packages/x.pth env/pyvenv.cfg \
    app/__pycache__/a.cpython-312.pyc x.egg-info/entry_points.txt sitecustomize.py \
    sitecustomize/__init__.py .pytest_cache/v/cache/lastfailed .pnp.cjs .pnp.loader.mjs \
    .yarn/releases/yarn.cjs .yarnrc.yml .pnpmfile.cjs bunfig.toml .babelrc.json babel.config.cjs \
    jest.setup.ts jest.preset.js src/setupTests.ts .mocharc.cjs test/mocha.opts ava.config.mjs \
    .taprc .nycrc.json .c8rc.json playwright-ct.config.ts cypress.json cypress/support/e2e.ts \
    karma.conf.ts tsconfig.json tsconfig.build.json packages/a/tsconfig-base.json .swcrc \
    .eslintrc.cjs eslint.config.mjs .eslintignore .prettierrc biome.jsonc vite.config.ts \
    vitest.workspace.ts rust-toolchain .cargo/config .config/nextest.toml clippy.toml go.work \
    vendor/modules.txt .golangci.yml GNUmakefile rules.mk CMakePresets.json CTestTestfile.cmake \
    settings.gradle.kts gradle.properties gradlew gradle/wrapper/gradle-wrapper.jar \
    gradle/libs.versions.toml .mvn/jvm.config mvnw testng.xml \
    src/test/resources/junit-platform.properties .rspec spec/spec_helper.rb Rakefile Gemfile \
    phpunit.xml.dist phpunit.xml vendor/bin/phpunit deno.jsonc Justfile .justfile Taskfile.yaml \
    WORKSPACE BUILD.bazel .bazelrc Directory.Build.props a.runsettings nuget.config global.json \
    App.csproj mix.exs test/test_helper.exs Package.swift build.zig stack.yaml x.cabal build.sbt \
    project/plugins.sbt .tool-versions mise.toml .envrc .pre-commit-config.yaml tox.ini mypy.ini \
    .flake8 ruff.toml pyrightconfig.json .drone.yml .woodpecker/ci.yml .cirrus.yml cloudbuild.yaml \
    .forgejo/workflows/a.yml CODEOWNERS .gitlab/ci/a.yml Pipfile pytest.py nx.json .editorconfig";

const OF_AGENTS: &str = "AGENTS.md GEMINI.md .cursor/rules/a.mdc .cursorrules .windsurfrules \
    docs/copilot-instructions.md .aider.conf.yml .clinerules .clinerules/a.md .roo/rules/x.md \
    .roomodes .continue/config.yaml .kiro/steering/a.md opencode.json .opencode/agent/a.md \
    .mcp.json .vscode/settings.json .vscode/tasks.json .devcontainer/devcontainer.json QWEN.md \
    CRUSH.md .goosehints .junie/guidelines.md .augment-guidelines .amazonq/rules/a.md \
    a.code-workspace .idea/workspace.xml";

const ORDINARY: &str = "src/main.rs src/jest/mod.rs src/config.py config/settings.py \
    app/build/mod.rs src/target/lib.rs tests/test_a.py tests/__init__.py requirements.txt \
    src/tsconfig.ts lib/makefile_parser.py docs/pytest.md src/pytest.py unittest/helper.py \
    src/environment.ts src/cargo.rs vendor/lib/a.js src/package.rs app/models.py index.html \
    src/mise/mod.rs src/vitest/a.ts cmd/go/main.go data/model.pt notes~1 src/workspaces.rs \
    tests/unittest/__init__.py src/virtualenv/__init__.py src/editor.ts bin/tool";
