use super::*;
use crate::gate::command::split;

fn proof(line: &str) -> Proof {
    of(&split(line).unwrap())
}

#[test]
fn commands_that_test_nothing_are_known_by_the_table_of_runners() {
    for line in IDLE_LINES {
        assert!(
            matches!(proof(line), Proof::Nothing(_)),
            "{line}: {:?}",
            proof(line)
        );
    }
}

#[test]
fn commands_that_test_or_check_are_classified() {
    use Proof::{Checks, Tests, Unknown};
    for (line, want) in [
        ("pytest -q tests", Tests),
        ("pytest -khello tests", Tests),
        ("python3 -mpytest -qx", Tests),
        ("go test -short ./...", Tests),
        ("make -kj4 check", Unknown),
        ("git diff --exit-code HEAD -- src docs", Checks),
        ("pytest -k 'a or b'", Tests),
        ("python -W ignore -m pytest -x", Tests),
        ("python -m unittest discover -v", Tests),
        ("uv run pytest", Tests),
        ("npm test", Tests),
        ("npm run test:unit", Tests),
        ("yarn run test", Tests),
        ("npm run lint", Checks),
        ("npm run deploy", Unknown),
        ("cargo test -p core", Tests),
        ("cargo +nightly nextest run", Tests),
        ("cargo clippy -- -D warnings", Checks),
        ("cargo xtask ci", Unknown),
        ("go test ./...", Tests),
        ("go test -run '^TestA$' ./...", Tests),
        ("go vet ./pkg", Checks),
        ("mvn -B test", Tests),
        ("mvn clean verify", Tests),
        ("mvn test -DskipTests=false", Tests),
        ("./gradlew clean check", Tests),
        ("node --test tests/a.test.js", Tests),
        ("node scripts/check.mjs", Unknown),
        ("sh check.sh", Unknown),
        ("bash scripts/test.sh -h", Unknown),
        ("make test", Unknown),
        ("python scripts/check.py --version", Unknown),
        ("tsc --noEmit", Checks),
        ("git diff --exit-code", Checks),
        ("vendor/bin/phpunit", Tests),
        ("ctest --output-on-failure", Tests),
        ("ctest -V", Tests),
        ("zig build test", Tests),
        ("bundle exec rspec spec/a_spec.rb", Tests),
        ("deno check a.ts", Checks),
        ("./run-tests", Unknown),
    ] {
        assert_eq!(proof(line), want, "{line}");
    }
}

/// A runner that is added to the command list is added here.
#[test]
fn every_program_of_the_command_list_is_in_the_table() {
    let policy = include_str!("../../../../../policies/command_allowlist.json");
    let policy: serde_json::Value = serde_json::from_str(policy).unwrap();
    for rule in policy["allow"].as_array().unwrap() {
        for prefix in rule["prefixes"].as_array().unwrap() {
            let words = prefix.as_array().unwrap().iter();
            let mut argv: Vec<String> = words
                .map(|word| word.as_str().unwrap().replace('*', "x"))
                .collect();
            assert_ne!(of(&argv), Proof::Unknown, "{argv:?}");
            argv.push("--version".to_owned());
            assert!(matches!(of(&argv), Proof::Nothing(_)), "{argv:?}");
        }
    }
}

const IDLE_LINES: &[&str] = &[
    "python3 -m unittest -vh",
    "python3 -m unittest -hv tests",
    "python3 -munittest -h tests",
    "python3 -Im pytest --co tests",
    "python3 -Bmpytest --collect-only",
    "pytest -qh",
    "cargo test -qh",
    "make -kn check",
    "gradle check -xtest",
    "gradle test -x :test",
    "gradle test --exclude-task :app:test",
    "mvn test -Dtest=None -DfailIfNoTests=false",
    "git diff --quiet HEAD HEAD",
    "git diff --exit-code main..HEAD",
    "git status",
    "git log -1",
    "git diff",
    "git --version",
    "true",
    "echo fine",
    "ls src",
    "cat README.md",
    "/bin/true",
    "env",
    "env X=1 true",
    "timeout 10 echo x",
    "pytest --version",
    "pytest -h",
    "pytest --collect-only -q",
    "pytest --co",
    "pytest --fixtures",
    "pytest tests --setup-plan",
    "pytest --collect",
    "python --version",
    "python -m pytest --collect-only",
    "python3.12 -m pytest -q --co",
    "python3 -m unittest -h",
    "uv run pytest --version",
    "poetry run pytest --markers",
    "timeout 60 pytest --version",
    "mvn test -DskipTests",
    "mvn verify -DskipTests=true",
    "./mvnw test -Dmaven.test.skip",
    "mvn -v",
    "mvn test -Dmaven.test.failure.ignore=true",
    "./gradlew build -x test",
    "gradle check --exclude-task=test",
    "gradle test --dry-run",
    "gradle test -m",
    "cargo test --no-run",
    "cargo test -- --list",
    "cargo nextest run --no-run",
    "cargo --version",
    "cargo test --help",
    "go test -list .",
    "go test -run '^$' ./...",
    "go test '-run=^$' ./...",
    "go test -c",
    "npm test -- --passWithNoTests",
    "npm --version",
    "npm test -- --listTests",
    "npx jest --listTests",
    "npx vitest --passWithNoTests",
    "npx mocha --dry-run",
    "ctest -N",
    "ctest --show-only",
    "ctest --no-tests=ignore",
    "rspec --dry-run",
    "bundle exec rspec --dry-run",
    "vendor/bin/phpunit --list-tests",
    "dotnet test --list-tests",
    "swift test --list-tests",
    "swift test list",
    "deno test --no-run",
    "stack test --no-run-tests",
    "cabal test --dry-run",
    "make -n test",
    "node --version",
    "tox --listenvs",
    "nox -l",
    "npx playwright test --list",
    "bun test --help",
    "cargo",
];
