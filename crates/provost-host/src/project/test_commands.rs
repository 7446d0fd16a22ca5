//! The commands that test a project of a kind, from the top of the repository.

use provost_core::gate::command::quote;

use super::kinds::{Kind, PackageJson, Weighed, joined, make_target};
use super::listing::{Language, Listing, is_test, language};

/// How a project is tested.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TestCommands {
    pub(super) accept: Vec<String>,
    /// Why there is none, or why it may not work here.
    pub(super) lack: Option<String>,
}

impl TestCommands {
    fn one(command: String) -> Self {
        Self {
            accept: vec![command],
            lack: None,
        }
    }

    fn none(why: &str) -> Self {
        Self {
            accept: Vec::new(),
            lack: Some(why.to_owned()),
        }
    }
}

/// The commands for `project`, where `is_there` finds programs.
pub(super) fn of(
    listing: &Listing,
    project: &Weighed,
    is_there: &dyn Fn(&str) -> bool,
) -> TestCommands {
    let mut commands = match project.kind {
        Kind::Rust => TestCommands::one(cargo(listing, project)),
        Kind::Go => TestCommands::one(below("go", "-C", project, "test ./...")),
        Kind::Maven => TestCommands::one(below("mvn", "-f", project, "test")),
        Kind::Gradle => gradle(listing, project, is_there),
        Kind::Node => node(listing, project),
        Kind::Python => python(listing, &project.directory, is_there),
        Kind::Cmake => cmake(listing, project),
        Kind::Make => match make_target(&listing.read(&project.file)) {
            Some(target) => TestCommands::one(below("make", "-C", project, target)),
            None => TestCommands::none("its Makefile has no target `test` or `check`"),
        },
    };
    let programs = commands.accept.iter().filter_map(|it| it.split(' ').next());
    let missing = programs
        .filter(|program| !program.contains('/'))
        .find(|program| !is_there(program));
    if let Some(program) = missing {
        commands.lack = Some(format!("`{program}` is not on your PATH"));
    }
    commands
}

/// `program`, with `option` for the directory of a project below the top, and `rest`.
fn below(program: &str, option: &str, project: &Weighed, rest: &str) -> String {
    match project.directory.as_str() {
        "" => format!("{program} {rest}"),
        directory => format!("{program} {option} {} {rest}", quote(directory)),
    }
}

fn cargo(listing: &Listing, project: &Weighed) -> String {
    let text = listing.read(&project.file);
    let workspace = text.lines().any(|line| line.trim() == "[workspace]");
    let workspace = if workspace { " --workspace" } else { "" };
    match project.directory.as_str() {
        "" => format!("cargo test{workspace}"),
        _ => format!(
            "cargo test{workspace} --manifest-path {}",
            quote(&project.file)
        ),
    }
}

fn gradle(listing: &Listing, project: &Weighed, is_there: &dyn Fn(&str) -> bool) -> TestCommands {
    let wrapper = joined(&project.directory, "gradlew");
    if listing.has(&wrapper) && !is_there("gradle") {
        let program = format!("./{}", quote(&wrapper));
        return TestCommands::one(below(&program, "-p", project, "--offline test"));
    }
    TestCommands::one(below("gradle", "-p", project, "--offline test"))
}

/// The script `test` by the package manager that has a lock file, or the test runner of node.
fn node(listing: &Listing, project: &Weighed) -> TestCommands {
    let manifest = PackageJson::of(&listing.read(&project.file));
    let locks = [
        ("pnpm-lock.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("bun.lock", "bun"),
        ("bun.lockb", "bun"),
    ];
    let has = |(lock, _): &&(&str, &str)| listing.has(&joined(&project.directory, lock));
    let locked = locks.iter().find(has).map(|(_, manager)| *manager);
    let manager = manifest.manager().or(locked).unwrap_or("npm");
    if manifest.test_script().is_none() {
        let by_node = |path: &str| {
            is_test(path) && language(path) == Some(Language::Node) && path.contains(".test.")
        };
        if project.directory.is_empty() && listing.files().any(by_node) {
            return TestCommands::one("node --test".to_owned());
        }
        return TestCommands::none("its package.json has no script `test`");
    }
    TestCommands::one(match manager {
        "pnpm" => below("pnpm", "--dir", project, "test"),
        "yarn" => below("yarn", "--cwd", project, "test"),
        "bun" => below("bun", "--cwd", project, "run test"),
        _ => below("npm", "--prefix", project, "test"),
    })
}

fn cmake(listing: &Listing, project: &Weighed) -> TestCommands {
    let texts = listing
        .files()
        .filter(|path| path.ends_with("CMakeLists.txt"));
    let mut texts = texts.map(|path| listing.read(path).to_ascii_lowercase());
    if !texts.any(|text| text.contains("enable_testing") || text.contains("include(ctest)")) {
        return TestCommands::none("no CMakeLists.txt of it enables tests");
    }
    let source = match project.directory.as_str() {
        "" => ".".to_owned(),
        directory => quote(directory),
    };
    let lines = [
        format!("cmake -S {source} -B build"),
        "cmake --build build".to_owned(),
        "ctest --test-dir build --output-on-failure".to_owned(),
    ];
    TestCommands {
        accept: lines.to_vec(),
        lack: None,
    }
}

/// Files in which a Python project names pytest.
const PYTEST_FILES: &[&str] = &[
    "pytest.ini",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "requirements.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
];

/// How many test files are read to see which runner they are for.
const MOST_READ: usize = 20;

/// The project's own runner, pytest if the project mentions it, else the runner of Python itself.
fn python(listing: &Listing, directory: &str, is_there: &dyn Fn(&str) -> bool) -> TestCommands {
    let at = |name: &str| joined(directory, name);
    for runner in ["manage.py test", "tests/runtests.py"] {
        let file = at(runner.split(' ').next().unwrap_or(runner));
        if listing.has(&file) {
            let rest = runner
                .split_once(' ')
                .map_or(String::new(), |(_, it)| format!(" {it}"));
            return TestCommands::one(format!("python3 {}{rest}", quote(&file)));
        }
    }
    let inside = |path: &&str| directory.is_empty() || path.starts_with(&at(""));
    let tests = listing.files().filter(inside).filter(|path| {
        let name = path.rsplit('/').next().unwrap_or(path);
        is_test(path) && name.starts_with("test") && language(path) == Some(Language::Python)
    });
    let tests: Vec<&str> = tests.collect();
    let contents: Vec<String> = tests
        .iter()
        .take(MOST_READ)
        .map(|it| listing.read(it))
        .collect();
    let named = PYTEST_FILES
        .iter()
        .any(|file| listing.read(&at(file)).contains("pytest"));
    let has_conftest = listing
        .files()
        .filter(inside)
        .any(|path| path == "conftest.py" || path.ends_with("/conftest.py"));
    let pytest =
        named || has_conftest || contents.iter().any(|text| text.contains("import pytest"));
    let plain = !contents.is_empty() && contents.iter().all(|text| text.contains("unittest"));
    if pytest && (is_there("pytest") || !plain) {
        let mut commands = TestCommands::one(pytest_command(listing, directory));
        if !is_there("pytest") {
            commands.lack = Some("`pytest` is not on your PATH".to_owned());
        }
        return commands;
    }
    match unittest(listing, directory, &tests) {
        Some(command) => TestCommands::one(command),
        None => TestCommands::none("no tests of it were found"),
    }
}

/// Started as a module, pytest finds packages at the top; those in `src` it has to be told of.
fn pytest_command(listing: &Listing, directory: &str) -> String {
    let source = joined(directory, "src/");
    let in_src = |path: &str| path.starts_with(&source) && language(path) == Some(Language::Python);
    let settings = PYTEST_FILES
        .iter()
        .map(|file| listing.read(&joined(directory, file)));
    let is_set = settings.into_iter().any(|text| text.contains("pythonpath"));
    let mut command = "python3 -m pytest -q".to_owned();
    if listing.files().any(in_src) && !is_set {
        command += &format!(" -o pythonpath={}", quote(source.trim_end_matches('/')));
    }
    if !directory.is_empty() {
        command += &format!(" {}", quote(directory));
    }
    command
}

/// Python finds tests in packages from the top, and others only in a directory that is named.
fn unittest(listing: &Listing, directory: &str, tests: &[&str]) -> Option<String> {
    let first = tests.first()?;
    let holder = first.rsplit_once('/').map_or("", |(holder, _)| holder);
    let is_package = listing.has(&joined(holder, "__init__.py"));
    if holder.is_empty() || is_package && directory.is_empty() {
        return Some("python3 -m unittest".to_owned());
    }
    let top = match directory {
        "" => String::new(),
        directory if is_package => format!(" -t {}", quote(directory)),
        _ => String::new(),
    };
    Some(format!(
        "python3 -m unittest discover -s {}{top}",
        quote(holder)
    ))
}
