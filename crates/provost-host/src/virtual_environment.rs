//! Decides whether a virtual environment of the user can be read by sandboxes.
//!
//! # Invariants
//!
//! - Nothing of a checkout chooses it: the user names it.
//! - One that holds the project itself, or leads out of itself, is refused: tests would judge other
//!   files than those of the candidate.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use provost_core::document::{self, Format};
use provost_core::object::Oid;
use provost_core::path::RawPath;
use provost_core::prepare::HostDirectory;
use provost_engine::dependencies::ProjectFiles;

use crate::git::Repository;
use crate::machine::user_toolchain;
use crate::project::dependencies;
use crate::sandbox::Mount;
use crate::workspace::layer;

/// The largest file that is read to decide.
const LARGEST: u64 = 1 << 20;

/// Places of a sandbox that nothing of the host is mounted over.
const TAKEN: [&str; 9] = [
    "/bin",
    "/dev",
    "/etc",
    "/lib",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/workspace",
];

/// The virtual environment at `path`, for runs that start from `tree`; an error says why sandboxes
/// cannot have it.
pub fn inspect(path: &Path, repo: &Repository, tree: &Oid) -> Result<HostDirectory, String> {
    let shown = path.display();
    let place = path
        .canonicalize()
        .map_err(|error| format!("`{shown}`: {error}"))?;
    let text = place.to_str().filter(|it| !it.contains(char::is_control));
    let text = text.ok_or_else(|| format!("`{shown}` has a name that is no plain text"))?;
    if !place.join("pyvenv.cfg").is_file() {
        return Err(format!(
            "`{shown}` is no virtual environment: it has no pyvenv.cfg"
        ));
    }
    if TAKEN.iter().any(|taken| place.starts_with(taken)) {
        return Err(format!("`{shown}` lies where a sandbox has something else"));
    }
    if place.join("pip.conf").exists() {
        return Err(format!(
            "`{shown}` has a pip.conf, which may hold a password"
        ));
    }
    is_ignored(&place, repo, tree)?;
    interpreter(&place)?;
    let name = dependencies::of_tree(repo, tree)
        .ok()
        .and_then(|it| project_name(&it));
    for site in site_directories(&place) {
        packages(&place, &site, name.as_deref())?;
    }
    let digest = digest(&place).map_err(|error| format!("`{shown}`: {error}"))?;
    Ok(HostDirectory {
        path: text.to_owned(),
        sha256: digest.0,
    })
}

/// The digest of everything in the directory, and its size.
pub(crate) fn digest(place: &Path) -> io::Result<(String, u64)> {
    layer::digest(place)
}

/// Refuses one in the checkout that git does not ignore: it came with the repository.
fn is_ignored(place: &Path, repo: &Repository, tree: &Oid) -> Result<(), String> {
    let checkout = repo.checkout().and_then(|it| it.canonicalize().ok());
    let Some(below) = checkout.and_then(|it| place.strip_prefix(it).ok().map(Path::to_owned))
    else {
        return Ok(());
    };
    let below = RawPath::new(below.as_os_str().as_encoded_bytes());
    let inside = |path: &RawPath| {
        let rest = path.as_bytes().strip_prefix(below.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"/"))
    };
    let tracked = repo
        .read_tree(tree)
        .is_ok_and(|read| read.files.keys().any(inside));
    if tracked || !repo.ignores(&below).unwrap_or(false) {
        return Err(format!(
            "git does not ignore `{below}`, so it may have come with the repository"
        ));
    }
    Ok(())
}

/// Refuses one whose interpreter no sandbox has.
fn interpreter(place: &Path) -> Result<(), String> {
    let python = place.join("bin/python");
    let real = python
        .canonicalize()
        .map_err(|error| format!("its bin/python: {error}"))?;
    let source = |mount: &Mount| match mount {
        Mount::ReadOnly { source, .. } => Some(source.clone()),
        _ => None,
    };
    let mounts = user_toolchain().mounts;
    let mut places = mounts.iter().filter_map(source);
    let there = real.starts_with("/usr") || real.starts_with(place);
    if there || places.any(|it| real.starts_with(it)) {
        return Ok(());
    }
    Err(format!(
        "its interpreter `{}` is not in sandboxes",
        real.display()
    ))
}

fn site_directories(place: &Path) -> Vec<PathBuf> {
    let versions = fs::read_dir(place.join("lib"))
        .into_iter()
        .flatten()
        .flatten();
    let sites = versions.map(|version| version.path().join("site-packages"));
    sites.filter(|site| site.is_dir()).collect()
}

/// Refuses packages that are the project, or that lead out of the environment.
fn packages(place: &Path, site: &Path, project: Option<&str>) -> Result<(), String> {
    let entries = fs::read_dir(site).map_err(|error| format!("`{}`: {error}", site.display()))?;
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let wrong = if name.starts_with("__editable__") || name.ends_with(".egg-link") {
            Some("is an editable install; what it installs is read from elsewhere")
        } else if path.extension().is_some_and(|ending| ending == "pth") {
            let text = read(&path);
            leaves(&text, site, place).then_some("leads out of the environment")
        } else if name.ends_with(".dist-info") || name.ends_with(".egg-info") {
            package(&path, &name, project)
        } else {
            None
        };
        if let Some(wrong) = wrong {
            let place = place.display();
            return Err(format!("`{place}` cannot be used: `{name}` in it {wrong}"));
        }
    }
    Ok(())
}

/// What is wrong with an installed package.
fn package(path: &Path, name: &str, project: Option<&str>) -> Option<&'static str> {
    let origin = read(&path.join("direct_url.json"));
    if origin.contains("\"file://") {
        return Some("was installed from a directory of this machine");
    }
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let package = stem.split_once('-').map_or(stem, |(package, _)| package);
    let same = project.is_some_and(|project| normalised(project) == normalised(package));
    same.then_some("is the project itself, so tests would not see its changes")
}

/// The lines of code that virtualenv and setuptools write into `.pth` files.
const KNOWN_CODE: [&str; 3] = [
    "import _virtualenv",
    "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; \
     enabled = os.environ.get(var, 'local') == 'local'; \
     enabled and __import__('_distutils_hack').add_shim()",
    "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; \
     enabled = os.environ.get(var, 'stdlib') == 'local'; \
     enabled and __import__('_distutils_hack').add_shim()",
];

/// Whether a `.pth` file in `site` adds a directory outside of the environment `place`. Lines of
/// code can do anything, so only those of known tools pass.
fn leaves(text: &str, site: &Path, place: &Path) -> bool {
    let lines = text.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.any(|line| {
        if line.starts_with("import ") || line.starts_with("import\t") {
            return !KNOWN_CODE.contains(&line.trim_end_matches([';', ' ']));
        }
        let added = site.join(line);
        let climbs = added.components().any(|it| it == Component::ParentDir);
        match added.canonicalize() {
            Ok(real) => !real.starts_with(place),
            // A directory that is not there may be made later.
            Err(_) => climbs || !added.starts_with(place),
        }
    })
}

/// The name by which the project would be installed, if its files say so.
fn project_name(files: &ProjectFiles) -> Option<String> {
    let text = |name: &str| files.get(name).map_or("", String::as_str);
    let manifest = document::parse(Format::Toml, text("pyproject.toml").as_bytes());
    let manifest = manifest.unwrap_or_default();
    let named = [
        &manifest["project"]["name"],
        &manifest["tool"]["poetry"]["name"],
    ];
    let named = named.into_iter().find_map(serde_json::Value::as_str);
    let of_setup = || {
        let mut lines = text("setup.cfg").lines();
        lines.find_map(|line| line.strip_prefix("name")?.trim().strip_prefix('='))
    };
    named.or_else(of_setup).map(|name| name.trim().to_owned())
}

/// A name as the index of packages compares it.
fn normalised(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}

/// The text of a small file; empty for anything else.
fn read(path: &Path) -> String {
    let small = path
        .metadata()
        .is_ok_and(|it| it.is_file() && it.len() <= LARGEST);
    let bytes = if small {
        fs::read(path)
    } else {
        Ok(Vec::new())
    };
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_with_the_project_or_a_way_out_is_refused() {
        type Case<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>);
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().canonicalize().unwrap();
        let cases: &[Case<'_>] = &[
            (&[("six-1.17.0.dist-info/METADATA", "")], None),
            (&[("_virtualenv.pth", "import _virtualenv\n")], None),
            (&[("near.pth", "# words\n./six\n")], None),
            (
                &[(
                    "distutils-precedence.pth",
                    "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, \
                     'local') == 'local'; enabled and \
                     __import__('_distutils_hack').add_shim(); \n",
                )],
                None,
            ),
            (
                &[(
                    "_virtualenv.pth",
                    "import _virtualenv, sys; sys.path.append('/src')\n",
                )],
                Some("leads out"),
            ),
            (
                &[("my_project-1.0.dist-info/METADATA", "")],
                Some("is the project itself"),
            ),
            (
                &[("My.Project-1.0.dist-info/METADATA", "")],
                Some("is the project itself"),
            ),
            (&[("__editable__.x-1.pth", "/src\n")], Some("editable")),
            (&[("x.egg-link", "/src\n")], Some("editable")),
            (&[("out.pth", "/home/user/src\n")], Some("leads out")),
            (&[("out.pth", "../../../../src\n")], Some("leads out")),
            (
                &[("code.pth", "import sys; sys.path.append('/src')\n")],
                Some("leads out"),
            ),
            (
                &[(
                    "x-1.dist-info/direct_url.json",
                    "{\"url\": \"file:///home/user/x\"}",
                )],
                Some("was installed from a directory"),
            ),
            (
                &[(
                    "x-1.dist-info/direct_url.json",
                    "{\"url\": \"https://x.example/x.whl\"}",
                )],
                None,
            ),
        ];
        for (at, (files, want)) in cases.iter().enumerate() {
            let place = place.join(at.to_string());
            let site = place.join("lib/python3/site-packages");
            fs::create_dir_all(site.join("six")).unwrap();
            for (name, text) in *files {
                let path = site.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            assert_eq!(site_directories(&place), std::slice::from_ref(&site));
            let found = packages(&place, &site, Some("my-project"));
            match want {
                None => assert_eq!(found, Ok(()), "{files:?}"),
                Some(want) => assert!(found.unwrap_err().contains(want), "{files:?}"),
            }
        }
    }

    #[test]
    fn the_name_of_the_project_is_read_from_its_files() {
        let cases = [
            ("pyproject.toml", "[project]\nname = \"a\"\n", Some("a")),
            ("pyproject.toml", "[tool.poetry]\nname = \"b\"\n", Some("b")),
            ("setup.cfg", "[metadata]\nname = c\n", Some("c")),
            ("setup.cfg", "[options]\n", None),
            ("pyproject.toml", "not toml [", None),
        ];
        for (file, text, want) in cases {
            let files = ProjectFiles::from([(file.to_owned(), text.to_owned())]);
            assert_eq!(project_name(&files).as_deref(), want, "{text}");
        }
    }
}
