use provost_core::policy;

use super::*;

const EVERY: [Ecosystem; 14] = [
    Ecosystem::Cargo,
    Ecosystem::Npm,
    Ecosystem::Pnpm,
    Ecosystem::Yarn,
    Ecosystem::Bun,
    Ecosystem::Pip,
    Ecosystem::Uv,
    Ecosystem::Poetry,
    Ecosystem::Hatch,
    Ecosystem::Go,
    Ecosystem::Maven,
    Ecosystem::Gradle,
    Ecosystem::Make,
    Ecosystem::Cmake,
];

fn files(pairs: &[(&str, &str)]) -> ProjectFiles {
    let pair = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    pairs.iter().map(pair).collect()
}

/// A project with exactly the files that `recipe` needs.
fn needed(recipe: &Recipe) -> ProjectFiles {
    let text = format!("x {}", recipe.holds);
    let mut files: ProjectFiles = recipe
        .files
        .iter()
        .map(|it| (it.clone(), text.clone()))
        .collect();
    if recipe.files.is_empty() {
        files.insert("requirements.txt".to_owned(), "pytest".to_owned());
    }
    files
}

#[test]
fn every_row_of_the_table_can_be_used_and_is_reached() {
    let table = table();
    assert_eq!(table.len(), 23);
    for recipe in &table {
        let files = needed(recipe);
        let rows = recipes(recipe.ecosystem, &files);
        let row = recipe.row(&files).unwrap();
        assert_eq!(
            rows,
            std::slice::from_ref(&row),
            "an earlier row hides this one"
        );
        let text = row.toml();
        let steps = policy::parse(text.as_bytes()).unwrap().prepare;
        assert_eq!(steps.len(), 1, "{text}");
        assert!(text.lines().count() <= 6, "{text}");
        assert_eq!(row.program, steps[0].run[0][0], "{text}");
    }
    let known = |it: &Ecosystem| table.iter().any(|row| row.ecosystem == *it);
    let none: Vec<_> = EVERY.iter().filter(|it| !known(it)).collect();
    assert_eq!(none, [&Ecosystem::Make, &Ecosystem::Cmake]);
}

const LOCK: (&str, &str) = ("package-lock.json", "\"node_modules/x\"");
const BUILD: &str = "[build-system]\nrequires = []\n";
/// Files with their text, and the last command of each step.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

const CASES: &[Case<'_>] = &[
    (
        &[("Cargo.toml", ""), ("Cargo.lock", "registry+x")],
        &["cargo fetch --locked"],
    ),
    (
        &[
            ("Cargo.toml", "[dependencies]"),
            ("Cargo.lock", "no others"),
        ],
        &[],
    ),
    (&[("Cargo.toml", "[dev-dependencies]")], &["cargo fetch"]),
    (&[("Cargo.toml", "[package]")], &[]),
    (&[("Cargo.lock", "registry+x")], &[]),
    (&[("go.mod", ""), ("go.sum", "x")], &["go mod download"]),
    (
        &[("go.mod", ""), ("go.sum", "x"), ("vendor/modules.txt", "x")],
        &[],
    ),
    (&[("go.mod", "")], &[]),
    (&[("package.json", "{}"), LOCK], &["npm ci"]),
    (&[("package.json", "{}")], &[]),
    (
        &[("package.json", "{\"devDependencies\": {}}")],
        &["npm install --no-package-lock --no-audit --no-fund"],
    ),
    (
        &[("package.json", "{}"), ("pnpm-lock.yaml", "packages:\n")],
        &["pnpm install --frozen-lockfile"],
    ),
    (
        &[
            ("package.json", "{}"),
            ("yarn.lock", "# yarn lockfile v1\n"),
        ],
        &["yarn install --frozen-lockfile --non-interactive"],
    ),
    (
        &[("package.json", "{}"), ("yarn.lock", "__metadata:\n")],
        &["yarn install --immutable"],
    ),
    (
        &[("package.json", "{}"), ("bun.lock", "{}")],
        &["bun install --frozen-lockfile"],
    ),
    (
        &[("pyproject.toml", ""), ("uv.lock", "x")],
        &["uv sync --frozen"],
    ),
    (
        &[("pyproject.toml", ""), ("poetry.lock", "x")],
        &["poetry install --no-interaction"],
    ),
    (
        &[("pyproject.toml", "[tool.poetry]\n[build-system]")],
        &["poetry install --no-interaction"],
    ),
    (
        &[("requirements.txt", "pytest")],
        &[".venv/bin/pip install -r requirements.txt"],
    ),
    (&[("requirements.txt", "\n# none\n")], &[]),
    (
        &[
            ("requirements.txt", "six"),
            ("requirements-dev.txt", "pytest"),
            ("setup.py", "x"),
        ],
        &[".venv/bin/pip install -r requirements.txt -r requirements-dev.txt -e ."],
    ),
    (
        &[
            ("requirements/dev.txt", "project==1.0"),
            ("requirements/tests.txt", "pytest"),
            ("setup.py", "x"),
        ],
        &[".venv/bin/pip install -r requirements/tests.txt -e ."],
    ),
    (
        &[(
            "pyproject.toml",
            "[project]\nname = \"x\"\n[project.optional-dependencies]\ntest = [\"pytest\"]\n\
                 docs = []\n[build-system]\nrequires = []\n",
        )],
        &[".venv/bin/pip install -e .[test]"],
    ),
    (
        &[(
            "pyproject.toml",
            "[dependency-groups]\ndev = [\"pytest\"]\n",
        )],
        &[".venv/bin/pip install --group dev"],
    ),
    (
        &[("pyproject.toml", BUILD)],
        &[".venv/bin/pip install -e ."],
    ),
    (&[("pyproject.toml", "[tool.black]\n")], &[]),
    (&[("pyproject.toml", "not toml [")], &[]),
    (&[("README", "")], &[]),
    (
        &[
            ("Cargo.toml", ""),
            ("Cargo.lock", "registry+x"),
            ("package.json", "{}"),
            LOCK,
            ("pnpm-lock.yaml", "packages:\n"),
            ("requirements.txt", "pytest"),
        ],
        &[
            "cargo fetch --locked",
            "npm ci",
            ".venv/bin/pip install -r requirements.txt",
        ],
    ),
];

#[test]
fn a_step_follows_from_the_files_of_the_project() {
    for (pairs, want) in CASES {
        let files = files(pairs);
        let rows = all(&files, &|_| true);
        let found: Vec<&str> = rows
            .iter()
            .filter_map(|row| row.run.last())
            .map(|it| &**it)
            .collect();
        assert_eq!(found, *want, "{pairs:?}");
        assert_eq!(all(&files, &|_| false), [], "{pairs:?}");
    }
}

/// Names of files with their content.
type Files<'a> = &'a [(&'a str, &'a str)];

#[test]
fn pytest_is_installed_for_tests_that_need_it() {
    let build = ("pyproject.toml", BUILD);
    let extra = "[build-system]\n[project.optional-dependencies]\ntest = [\"pytest>=7\"]\n";
    let other = "[build-system]\n[project.optional-dependencies]\nlint = [\"pytest\"]\n";
    let pytest = "python3 -m pytest -q";
    let cases: [(Files<'_>, &str, &str); 6] = [
        (&[build], pytest, "-e . pytest"),
        (&[build], "python3 -m unittest", "-e ."),
        (&[("pyproject.toml", extra)], pytest, "-e .[test]"),
        (&[("pyproject.toml", other)], pytest, "-e . pytest"),
        (
            &[build, ("requirements-dev.txt", "pytest-cov\n")],
            pytest,
            "-r requirements-dev.txt -e .",
        ),
        (
            &[
                build,
                ("setup.cfg", "[options.extras_require]\nx = pytest\n"),
            ],
            pytest,
            "-e . pytest",
        ),
    ];
    for (pairs, accept, want) in cases {
        let files = files(pairs);
        let rows = with_runner(all(&files, &|_| true), &files, &[accept.to_owned()]);
        let line = rows[0].run.last().unwrap();
        assert_eq!(*line, format!(".venv/bin/pip install {want}"), "{pairs:?}");
    }
}

#[test]
fn a_project_without_the_tool_of_its_lock_file_gets_the_next_best_step() {
    let files = files(&[("pyproject.toml", "[build-system]\n"), ("uv.lock", "x")]);
    let rows = all(&files, &|program| program != "uv");
    assert_eq!(rows[0].ecosystem, Ecosystem::Pip);
}

#[test]
fn hatch_is_used_where_it_is_asked_for() {
    let text = "[build-system]\n[tool.hatch.envs.default]\n";
    let files = files(&[("pyproject.toml", text)]);
    assert_eq!(all(&files, &|_| true)[0].ecosystem, Ecosystem::Pip);
    assert_eq!(
        recipes(Ecosystem::Hatch, &files)[0].run,
        ["hatch env create"]
    );
}

/// The page has a row for each row of the table, in its order.
#[test]
fn the_page_lists_every_step() {
    let page = include_str!("../../../../../docs/prepare.md");
    let mut want = String::new();
    for recipe in table() {
        let row = recipe.row(&needed(&recipe)).unwrap();
        let run: Vec<String> = recipe.run.iter().map(|line| format!("`{line}`")).collect();
        let files = if recipe.files.is_empty() {
            "lists of requirements, `setup.py`, `pyproject.toml`".to_owned()
        } else {
            let files: Vec<String> = recipe.files.iter().map(|it| format!("`{it}`")).collect();
            files.join(", ")
        };
        let hosts: Vec<&str> = row
            .net
            .iter()
            .map(|it| it.trim_end_matches(":443"))
            .collect();
        let env: Vec<String> = row.env.keys().map(|it| format!("`{it}`")).collect();
        want += &format!(
            "| {} | {files} | {} | `{}` | {} | {} |\n",
            row.program,
            run.join(", "),
            recipe.output,
            hosts.join(", "),
            env.join(", ")
        );
    }
    assert!(page.contains(&want), "docs/prepare.md should have:\n{want}");
}

#[test]
fn a_step_is_described_with_the_places_it_may_reach() {
    let files = files(&[("pyproject.toml", ""), ("uv.lock", "x")]);
    let row = &recipes(Ecosystem::Uv, &files)[0];
    let words = "uv sync --frozen makes .venv, and may reach pypi.org, files.pythonhosted.org";
    assert_eq!(row.words(), words);
    insta::assert_snapshot!(row.toml(), @r#"
    [[prepare]]
    run = "uv sync --frozen"
    inputs = ["pyproject.toml", "uv.lock"]
    outputs = [".venv"]
    net = ["pypi.org:443", "files.pythonhosted.org:443"]
    env = { UV_NO_SYNC = "1", UV_PYTHON_DOWNLOADS = "never" }
    "#);
}
