//! Checks which crate may depend on which.

use serde::Deserialize;

use super::Finding;
use crate::Result;

/// A crate of the workspace, as printed by `cargo metadata`.
#[derive(Debug, Deserialize)]
pub(super) struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// `dev`, `build`, or `None` for an ordinary one.
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// The permitted dependencies of a crate.
struct Rule {
    package: &'static str,
    ours: &'static [&'static str],
    /// Permitted external crates; `Some` only for crates that must not touch the machine.
    others: Option<&'static [&'static str]>,
}

const RULES: &[Rule] = &[
    Rule {
        package: "provost-evidence",
        ours: &[],
        others: Some(&[
            "base64",
            "ed25519-dalek",
            "flate2",
            "hmac",
            "schemars",
            "serde",
            "serde_json",
            "sha1-checked",
            "sha2",
            "thiserror",
            "unicode-normalization",
        ]),
    },
    Rule {
        package: "provost-document",
        ours: &["provost-evidence"],
        others: Some(&["granit-parser", "serde_json", "toml"]),
    },
    Rule {
        package: "provost-scope",
        ours: &["provost-evidence"],
        others: Some(&["serde", "serde_json", "thiserror"]),
    },
    Rule {
        package: "provost-core",
        ours: &["provost-document", "provost-evidence", "provost-scope"],
        others: Some(&[
            "schemars",
            "serde",
            "serde_json",
            "thiserror",
            "unicode-normalization",
        ]),
    },
    Rule {
        package: "provost-formats",
        ours: &["provost-core"],
        others: Some(&["schemars", "serde", "serde_json", "sha2", "thiserror"]),
    },
    Rule {
        package: "provost-report",
        ours: &["provost-core"],
        others: Some(&["serde", "serde_json", "thiserror"]),
    },
    Rule {
        package: "provost-engine",
        ours: &["provost-core", "provost-evidence", "provost-report"],
        others: Some(&["schemars", "serde", "serde_json", "thiserror"]),
    },
    Rule {
        package: "provost-model-record",
        ours: &["provost-core", "provost-fs"],
        others: None,
    },
    Rule {
        package: "provost-sandbox",
        ours: &["provost-core", "provost-fs", "provost-model-record"],
        others: None,
    },
    Rule {
        package: "provost-git",
        ours: &["provost-core", "provost-fs", "provost-sandbox"],
        others: None,
    },
    Rule {
        package: "provost-host",
        ours: &[
            "provost-core",
            "provost-engine",
            "provost-fs",
            "provost-git",
            "provost-model-record",
            "provost-sandbox",
        ],
        others: None,
    },
    Rule {
        package: "provost-store",
        ours: &[
            "provost-change",
            "provost-core",
            "provost-engine",
            "provost-fs",
            "provost-lens",
        ],
        others: None,
    },
    Rule {
        package: "provost-lens",
        ours: &["provost-core", "provost-fs"],
        others: None,
    },
    Rule {
        package: "provost-change",
        ours: &["provost-core", "provost-engine", "provost-lens"],
        others: Some(&["schemars", "serde", "serde_json", "thiserror"]),
    },
    Rule {
        package: "provost-fs",
        ours: &[],
        others: Some(&["getrandom", "rustix", "serde", "thiserror"]),
    },
    Rule {
        package: "provost-demo",
        ours: &["provost-core", "provost-engine", "provost-host"],
        others: None,
    },
    // Only for tests: no rule names it, so no crate may depend on it otherwise.
    Rule {
        package: "provost-testkit",
        ours: &[],
        others: None,
    },
    Rule {
        package: "provost-surface",
        ours: &[
            "provost-change",
            "provost-core",
            "provost-engine",
            "provost-formats",
            "provost-fs",
            "provost-host",
            "provost-lens",
            "provost-store",
        ],
        others: None,
    },
    Rule {
        package: "provost-board",
        ours: &[
            "provost-core",
            "provost-engine",
            "provost-formats",
            "provost-host",
            "provost-surface",
        ],
        others: None,
    },
    Rule {
        package: "provost",
        ours: &[
            "provost-board",
            "provost-change",
            "provost-core",
            "provost-demo",
            "provost-formats",
            "provost-engine",
            "provost-fs",
            "provost-host",
            "provost-lens",
            "provost-room",
            "provost-surface",
            "provost-ticket",
            "provost-web",
        ],
        others: None,
    },
    Rule {
        package: "provost-ticket",
        ours: &["provost-core", "provost-evidence"],
        others: Some(&["schemars", "serde", "serde_json", "thiserror"]),
    },
    // It starts `provost` as a process, and so knows neither the engine nor the machine.
    Rule {
        package: "provost-fleet",
        ours: &[
            "provost-core",
            "provost-evidence",
            "provost-fs",
            "provost-ticket",
        ],
        others: None,
    },
    Rule {
        package: "provost-web",
        ours: &["provost-core", "provost-engine"],
        others: None,
    },
    // Only for tests, likewise.
    Rule {
        package: "provost-load",
        ours: &[
            "provost-core",
            "provost-engine",
            "provost-host",
            "provost-store",
        ],
        others: None,
    },
    Rule {
        package: "provost-room",
        ours: &[
            "provost-core",
            "provost-engine",
            "provost-fs",
            "provost-host",
            "provost-surface",
            "provost-web",
        ],
        others: None,
    },
];

pub(super) fn read(metadata: &[u8]) -> Result<Vec<Package>> {
    let metadata: Metadata = serde_json::from_slice(metadata)?;
    Ok(metadata.packages)
}

/// Finds dependencies that the rules do not name. Dev-dependencies and those of `xtask` are free.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages.iter().filter(|package| package.name != "xtask") {
        let Some(rule) = RULES.iter().find(|rule| rule.package == package.name) else {
            let what = "a crate that no arrow leads to; give it a place in the house";
            findings.push(Finding::new(&package.name, what));
            continue;
        };
        for dependency in &package.dependencies {
            if dependency.kind.as_deref() != Some("dev") {
                findings.extend(judge(rule, packages, &dependency.name));
            }
        }
    }
    findings
}

fn judge(rule: &Rule, packages: &[Package], name: &str) -> Option<Finding> {
    if packages.iter().any(|package| package.name == name) {
        let allowed = rule.ours.contains(&name);
        let what = format!("may not depend on {name}: the arrows do not point there");
        return (!allowed).then(|| Finding::new(rule.package, what));
    }
    let allowed = rule.others.is_none_or(|others| others.contains(&name));
    let what = format!("may not depend on {name}: only crates known to be pure are allowed here");
    (!allowed).then(|| Finding::new(rule.package, what))
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        let dependency = |name: &&str| {
            let (name, kind) = match name.split_once(' ') {
                Some((name, kind)) => (name, Some(kind.to_owned())),
                None => (*name, None),
            };
            Dependency {
                name: name.to_owned(),
                kind,
            }
        };
        Package {
            name: name.to_owned(),
            dependencies: dependencies.iter().map(dependency).collect(),
        }
    }

    #[test]
    fn an_arrow_that_points_elsewhere_is_found() {
        let packages = [
            package("provost-core", &["serde", "rustix", "tempfile dev"]),
            package("provost-engine", &["provost-core", "provost-host"]),
            package("provost-host", &["provost-core", "provost-store", "rustix"]),
            package("provost-store", &["provost-host dev", "cc build"]),
            package("provost-formats", &["provost-core", "provost-host build"]),
            package("provost-shared", &[]),
            package("xtask", &["provost-host"]),
        ];
        let want = [
            "provost-core: may not depend on rustix: \
             only crates known to be pure are allowed here",
            "provost-engine: may not depend on provost-host: the arrows do not point there",
            "provost-host: may not depend on provost-store: the arrows do not point there",
            "provost-formats: may not depend on provost-host: the arrows do not point there",
            "provost-shared: a crate that no arrow leads to; give it a place in the house",
        ];
        assert_eq!(lines(&check(&packages)), want);
    }
}
