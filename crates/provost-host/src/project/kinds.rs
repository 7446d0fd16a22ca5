//! Weighs the evidence for each kind of project: manifests, lock files, the share of source files,
//! tests, and what build services run.

use provost_core::json;

use super::listing::{Language, Listing, is_test};

/// A kind of project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Rust,
    Go,
    Maven,
    Gradle,
    Node,
    Python,
    Cmake,
    Make,
}

/// What stands for a kind.
struct Marks {
    kind: Kind,
    name: &'static str,
    language: Language,
    manifests: &'static [&'static str],
    locks: &'static [&'static str],
    /// Words that a build service runs for it.
    ci: &'static [&'static str],
}

/// Of equal weight the first one counts.
const MARKS: &[Marks] = &[
    Marks {
        kind: Kind::Rust,
        name: "rust",
        language: Language::Rust,
        manifests: &["Cargo.toml"],
        locks: &["Cargo.lock"],
        ci: &["cargo "],
    },
    Marks {
        kind: Kind::Go,
        name: "go",
        language: Language::Go,
        manifests: &["go.mod"],
        locks: &["go.sum"],
        ci: &["go test", "go build"],
    },
    Marks {
        kind: Kind::Maven,
        name: "maven",
        language: Language::Jvm,
        manifests: &["pom.xml"],
        locks: &["mvnw"],
        ci: &["mvn ", "mvnw "],
    },
    Marks {
        kind: Kind::Gradle,
        name: "gradle",
        language: Language::Jvm,
        manifests: &[
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
        ],
        locks: &["gradlew", "gradle.lockfile"],
        ci: &["gradle"],
    },
    Marks {
        kind: Kind::Node,
        name: "node",
        language: Language::Node,
        manifests: &["package.json"],
        locks: &[
            "package-lock.json",
            "npm-shrinkwrap.json",
            "pnpm-lock.yaml",
            "yarn.lock",
            "bun.lock",
            "bun.lockb",
        ],
        ci: &["npm ", "pnpm ", "yarn ", "bun "],
    },
    Marks {
        kind: Kind::Python,
        name: "python",
        language: Language::Python,
        manifests: &[
            "pyproject.toml",
            "setup.py",
            "setup.cfg",
            "manage.py",
            "pytest.ini",
            "tox.ini",
            "requirements.txt",
            "Pipfile",
        ],
        locks: &["uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock"],
        ci: &[
            "pytest",
            "tox",
            "unittest",
            "pip install",
            "uv run",
            "poetry",
            "hatch",
        ],
    },
    Marks {
        kind: Kind::Cmake,
        name: "cmake",
        language: Language::C,
        manifests: &["CMakeLists.txt"],
        locks: &[],
        ci: &["cmake", "ctest"],
    },
    Marks {
        kind: Kind::Make,
        name: "make",
        language: Language::C,
        manifests: &["Makefile", "makefile", "GNUmakefile"],
        locks: &[],
        ci: &["make test", "make check"],
    },
];

const MANIFEST: u32 = 30;
/// A manifest in a directory below the top.
const MANIFEST_BELOW: u32 = 15;
const LOCK: u32 = 10;
/// For all source files; a share of them counts for as much of it.
const SHARE: u32 = 50;
const TESTS: u32 = 10;
const CI: u32 = 10;
/// A `package.json` that delivers nothing and depends on nothing but tools.
const ONLY_TOOLS: u32 = 20;
const TEST_SCRIPT: u32 = 15;

/// The weight of a project that is clearly of a kind, and of one that may be if there is no other.
const ENOUGH: u32 = 40;
const BARELY: u32 = 25;

/// The share of source files, in hundredths, that a kind beside the heaviest one needs.
const SECOND_SHARE: u32 = 15;

/// How deep below the top a project may be.
const DEEPEST: usize = 2;

/// The evidence for one kind.
#[derive(Debug, Clone)]
pub(super) struct Weighed {
    pub(super) kind: Kind,
    pub(super) name: &'static str,
    pub(super) language: Language,
    /// The directory of its manifest; empty for the top.
    pub(super) directory: String,
    /// The manifest, from the top.
    pub(super) file: String,
    pub(super) weight: u32,
    /// Its source files among all, in hundredths.
    pub(super) share: u32,
    /// What was found, in words.
    pub(super) evidence: Vec<String>,
}

/// The kinds that the project is of, heaviest first, and those for which the evidence is too weak.
pub(super) fn weigh(listing: &Listing) -> (Vec<Weighed>, Vec<Weighed>) {
    let mut all: Vec<Weighed> = MARKS
        .iter()
        .filter_map(|marks| one(listing, marks))
        .collect();
    all.sort_by_key(|it| std::cmp::Reverse(it.weight));
    // A Makefile is usually a front end for another build system; for C it is the build system.
    let is_front = |it: &Weighed| {
        let other = |other: &Weighed| other.kind != Kind::Make && other.weight >= ENOUGH;
        it.kind == Kind::Make
            && (all.iter().any(|it| other(it) && it.kind == Kind::Cmake)
                || it.share < 30 && all.iter().any(other))
    };
    let least = match all.first() {
        Some(first) if first.weight >= ENOUGH => ENOUGH,
        _ => BARELY,
    };
    let heaviest = all.iter().find(|it| !is_front(it)).map(|it| it.kind);
    let counts = |it: &Weighed| {
        let is_first = Some(it.kind) == heaviest;
        !is_front(it)
            && it.weight >= least
            && (is_first || least == ENOUGH && it.share >= SECOND_SHARE)
    };
    let counted: Vec<bool> = all.iter().map(counts).collect();
    let (mut taken, mut left) = (Vec::new(), Vec::new());
    for (weighed, counts) in all.into_iter().zip(counted) {
        if counts { &mut taken } else { &mut left }.push(weighed);
    }
    (taken, left)
}

/// The evidence for the kind of `marks`; `None` without a manifest.
fn one(listing: &Listing, marks: &Marks) -> Option<Weighed> {
    let (file, directory) = manifest(listing, marks)?;
    let sources: Vec<(&str, Language)> = listing.sources().collect();
    let ours = sources.iter().filter(|(_, it)| *it == marks.language);
    let (count, all) = (ours.clone().count(), sources.len());
    let share = hundredths(count, all);
    let mut evidence = vec![file.clone()];
    let mut weight = if directory.is_empty() {
        MANIFEST
    } else {
        MANIFEST_BELOW
    };
    weight += SHARE * share / 100;
    if all > 0 {
        evidence.push(format!("{count} of {all} source files"));
    }
    let inside = |name: &&&str| listing.has(&joined(&directory, name));
    if let Some(lock) = marks.locks.iter().find(inside) {
        weight += LOCK;
        evidence.push((*lock).to_owned());
    }
    if ours.clone().any(|(path, _)| is_test(path)) {
        weight += TESTS;
        evidence.push("tests".to_owned());
    }
    let ci = listing.ci_text();
    if marks.ci.iter().any(|words| ci.contains(words)) {
        weight += CI;
        evidence.push("run by CI".to_owned());
    }
    match marks.kind {
        Kind::Node => {
            let manifest = PackageJson::of(&listing.read(&file));
            if manifest.test_script().is_some() {
                weight += TEST_SCRIPT;
            }
            if manifest.serves_tools_only() {
                weight = weight.saturating_sub(ONLY_TOOLS);
                evidence.push("its package.json serves tools only".to_owned());
            }
        }
        // A Makefile without tests says nothing about how the project is tested.
        Kind::Make if make_target(&listing.read(&file)).is_none() => weight -= MANIFEST_BELOW,
        _ => {}
    }
    Some(Weighed {
        kind: marks.kind,
        name: marks.name,
        language: marks.language,
        directory,
        file,
        weight,
        share,
        evidence,
    })
}

/// The manifest nearest to the top and its directory, outside of tests and examples; for Python,
/// tests at the top do as well.
fn manifest(listing: &Listing, marks: &Marks) -> Option<(String, String)> {
    let at_top = marks.manifests.iter().find(|name| listing.has(name));
    if let Some(name) = at_top {
        return Some(((*name).to_owned(), String::new()));
    }
    if marks.kind == Kind::Python {
        let is_test = |path: &&str| {
            let name = path.strip_prefix("tests/").unwrap_or(path);
            let is_python = name.rsplit_once('.').is_some_and(|(_, end)| end == "py");
            !name.contains('/') && name.starts_with("test_") && is_python
        };
        if let Some(file) = listing.files().find(is_test) {
            return Some((file.to_owned(), String::new()));
        }
    }
    let below = listing.files().filter_map(|path| {
        let (directory, name) = path.rsplit_once('/')?;
        let depth = directory.split('/').count();
        let is_manifest = marks.manifests.contains(&name) && depth <= DEEPEST && !is_test(path);
        is_manifest.then(|| (depth, path.to_owned(), directory.to_owned()))
    });
    let (_, file, directory) = below.min()?;
    Some((file, directory))
}

pub(super) fn joined(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

fn hundredths(part: usize, whole: usize) -> u32 {
    let share = (part * 100).checked_div(whole).unwrap_or(0);
    u32::try_from(share).unwrap_or(100)
}

/// What a `package.json` says.
pub(super) struct PackageJson(serde_json::Value);

impl PackageJson {
    pub(super) fn of(text: &str) -> Self {
        Self(json::parse(text.as_bytes()).unwrap_or_default())
    }

    /// The script that tests; npm's own placeholder is none.
    pub(super) fn test_script(&self) -> Option<&str> {
        let script = self.0["scripts"]["test"].as_str()?;
        (!script.contains("no test specified")).then_some(script)
    }

    /// The package manager that it names.
    pub(super) fn manager(&self) -> Option<&str> {
        self.0["packageManager"].as_str()?.split('@').next()
    }

    /// Whether it neither delivers anything nor depends on anything but tools.
    fn serves_tools_only(&self) -> bool {
        let keys = [
            "main",
            "module",
            "exports",
            "bin",
            "browser",
            "dependencies",
            "workspaces",
        ];
        !keys.iter().any(|key| self.0.get(*key).is_some())
    }
}

/// The target of a Makefile that tests.
pub(super) fn make_target(text: &str) -> Option<&'static str> {
    let has = |target: &&&str| {
        let rule = format!("{target}:");
        let is_rule =
            |line: &str| line.starts_with(&rule) && !line.starts_with(&format!("{rule}="));
        text.lines().any(is_rule)
    };
    ["test", "check", "tests"].iter().find(has).copied()
}
