//! Finds the toolchains in a user's PATH, so that a sandbox has them too.
//!
//! # Invariants
//!
//! - Everything is read-only and at its path on the host, because toolchains contain such paths.
//! - Of a home only directories of programs are mounted: never the home itself, never a credential.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::profile::{Mount, Profile};

/// What the toolchains need inside a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toolchain {
    pub mounts: Vec<Mount>,
    /// The variables by which they are found, PATH among them.
    pub env: BTreeMap<String, String>,
}

impl Toolchain {
    /// Puts the toolchains into `profile`.
    pub fn add_to(self, profile: &mut Profile) {
        for mount in self.mounts {
            profile.add(mount);
        }
        profile.env.extend(self.env);
    }
}

/// Directories of version managers in a home that hold programs and nothing else.
const MANAGERS: [&str; 17] = [
    ".asdf",
    ".bun",
    ".deno",
    ".fnm",
    ".ghcup",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pnpm",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".nodenv",
    ".pyenv",
    ".rbenv",
    ".sdkman/candidates",
    ".volta",
    "anaconda3",
    "miniconda3",
];
/// Directories of single programs in a home.
const PROGRAMS: [&str; 2] = [".local/bin", "bin"];
/// Of Cargo's home: programs and sources, not `credentials.toml` and not `config.toml`.
const CARGO: [&str; 3] = ["bin", "registry", "git"];
/// Directories that no toolchain is taken from: other file systems, and those that change often.
const NEVER: [&str; 8] = [
    "/boot", "/dev", "/mnt", "/proc", "/run", "/sys", "/tmp", "/var",
];
/// Parts of the minimal root.
const SYSTEM: [&str; 3] = ["/usr", "/bin", "/sbin"];

/// The toolchains along `path`, for the user whose home is `home`; `variable` looks up the user's
/// own settings, such as `CARGO_HOME`.
pub fn toolchain_mounts(
    path: &str,
    home: &Path,
    variable: impl Fn(&str) -> Option<PathBuf>,
) -> Toolchain {
    let place = |name: &str, usual: &str| {
        let given = variable(name).filter(|given| given.is_absolute());
        given.unwrap_or_else(|| home.join(usual))
    };
    let mut finder = Finder {
        home: home.to_owned(),
        cargo: place("CARGO_HOME", ".cargo"),
        rustup: place("RUSTUP_HOME", ".rustup"),
        pyenv: place("PYENV_ROOT", ".pyenv"),
        node: place("NVM_DIR", ".nvm").join("versions/node"),
        go: place("GOPATH", "go"),
        trees: Vec::new(),
        env: BTreeMap::new(),
    };
    let mut kept: Vec<&str> = Vec::new();
    for directory in path.split(':') {
        let usable = is_plain(Path::new(directory)) && Path::new(directory).is_dir();
        if usable && !kept.contains(&directory) && finder.take(Path::new(directory)) {
            kept.push(directory);
        }
    }
    finder.env.insert("PATH".to_owned(), kept.join(":"));
    for name in ["JAVA_HOME", "GOROOT"] {
        if let Some(place) = variable(name).filter(|place| finder.has(place)) {
            finder.set(name, &place);
        }
    }
    finder.finish()
}

struct Finder {
    home: PathBuf,
    cargo: PathBuf,
    rustup: PathBuf,
    pyenv: PathBuf,
    node: PathBuf,
    go: PathBuf,
    trees: Vec<PathBuf>,
    env: BTreeMap<String, String>,
}

impl Finder {
    /// Adds what the programs in `directory` need; returns whether they are mounted then.
    fn take(&mut self, directory: &Path) -> bool {
        if directory.starts_with(&self.cargo) {
            self.rust();
        } else if directory.join("rustup").is_file() && !self.is_never(directory) {
            self.rustup_of(directory);
        }
        if SYSTEM.iter().any(|system| directory.starts_with(system)) || self.has(directory) {
            return true;
        }
        if directory.starts_with(&self.pyenv) {
            self.set("PYENV_ROOT", &self.pyenv.clone());
            self.add(self.pyenv.clone());
        } else if let Ok(below) = directory.strip_prefix(&self.node) {
            let version = below.components().next();
            self.trees
                .extend(version.map(|version| self.node.join(version)));
        } else if directory.starts_with(&self.go) {
            let modules = self.go.join("pkg/mod");
            self.add(self.go.join("bin"));
            if self.add(modules.clone()) {
                self.set("GOMODCACHE", &modules);
            }
        } else if directory.starts_with(&self.home) {
            self.of_home(directory);
        } else if !self.is_never(directory) {
            self.of_machine(directory);
        }
        self.has(directory)
    }

    /// Whether nothing may be taken from there.
    fn is_never(&self, directory: &Path) -> bool {
        let never = NEVER.iter().any(|never| directory.starts_with(never));
        never && !directory.starts_with(&self.home)
    }

    fn rust(&mut self) {
        for part in CARGO {
            self.add(self.cargo.join(part));
        }
        self.set("CARGO_HOME", &self.cargo.clone());
        if self.add(self.rustup.clone()) {
            self.set("RUSTUP_HOME", &self.rustup.clone());
        }
    }

    /// Adds the toolchains that the rustup programs in `directory` choose from, if it is in no
    /// Cargo home. They look in the user's home, or beside themselves, as in container images.
    fn rustup_of(&mut self, directory: &Path) {
        self.add(directory.to_owned());
        let home = directory.parent().filter(|_| directory.ends_with("bin"));
        let beside = home
            .and_then(Path::parent)
            .map(|above| above.join("rustup"));
        let places = std::iter::once(self.rustup.clone()).chain(beside);
        let found = places
            .into_iter()
            .find(|place| place.join("toolchains").is_dir());
        if let Some(rustup) = found.filter(|place| self.add(place.clone())) {
            self.set("RUSTUP_HOME", &rustup);
        }
        // Crates that were fetched before are found without the network.
        if let Some(home) = home.filter(|home| home.join("registry").is_dir()) {
            for part in CARGO {
                self.add(home.join(part));
            }
            self.set("CARGO_HOME", home);
        }
    }

    fn of_home(&mut self, directory: &Path) {
        let managers = MANAGERS.iter().map(|name| self.home.join(name));
        let manager = managers
            .into_iter()
            .find(|manager| directory.starts_with(manager));
        if let Some(manager) = manager {
            self.add(manager);
        } else if PROGRAMS
            .iter()
            .any(|name| directory == self.home.join(name))
        {
            self.add(directory.to_owned());
            self.links(directory);
        }
    }

    /// Unpacked software: the whole package below `/opt`, else its programs.
    fn of_machine(&mut self, directory: &Path) {
        let package = directory.parent().filter(|_| directory.ends_with("bin"));
        let package = package
            .filter(|package| package.starts_with("/opt") && package.components().count() > 2);
        self.add(package.unwrap_or(directory).to_owned());
        self.links(directory);
    }

    /// Adds the targets of links in `directory`: a package with a `bin`, or a single program.
    fn links(&mut self, directory: &Path) {
        let Ok(entries) = fs::read_dir(directory) else {
            return;
        };
        for entry in entries.filter_map(Result::ok) {
            if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                continue;
            }
            let Ok(program) = entry.path().canonicalize() else {
                continue;
            };
            if self.has(&program) || !program.is_file() {
                continue;
            }
            if program.starts_with("/nix/store") {
                self.add("/nix/store".into());
                continue;
            }
            let directory = program.parent().filter(|parent| parent.ends_with("bin"));
            let package = directory.and_then(Path::parent);
            let package = package.filter(|package| self.is_package(package));
            self.add(package.unwrap_or(&program).to_owned());
        }
    }

    /// Whether a directory is deep enough to be one package and not a place of many things.
    fn is_package(&self, directory: &Path) -> bool {
        let depth = |path: &Path| path.components().count();
        match directory.strip_prefix(&self.home) {
            Ok(below) => depth(below) > 2,
            Err(_) => directory.starts_with("/opt") && depth(directory) > 2,
        }
    }

    fn add(&mut self, tree: PathBuf) -> bool {
        let is_home = self.home.starts_with(&tree);
        let there = !is_home && is_plain(&tree) && tree.exists();
        if there && !self.has(&tree) {
            self.trees.push(tree);
        }
        there
    }

    fn has(&self, path: &Path) -> bool {
        SYSTEM
            .iter()
            .map(Path::new)
            .any(|system| path.starts_with(system))
            || self.trees.iter().any(|tree| path.starts_with(tree))
    }

    fn set(&mut self, name: &str, value: &Path) {
        let value = value.to_string_lossy().into_owned();
        self.env.insert(name.to_owned(), value);
    }

    fn finish(mut self) -> Toolchain {
        // An outer tree comes before the inner ones, which it includes.
        self.trees.sort();
        let mut mounts: Vec<Mount> = Vec::new();
        for tree in self.trees {
            if !mounts.iter().any(|mount| tree.starts_with(mount.target())) {
                mounts.push(Mount::ReadOnly {
                    source: tree.clone(),
                    target: tree,
                });
            }
        }
        Toolchain {
            mounts,
            env: self.env,
        }
    }
}

/// Whether a path is absolute, UTF-8, and without `..`.
fn is_plain(path: &Path) -> bool {
    let mut parts = path.components();
    path.to_str().is_some()
        && parts.next() == Some(Component::RootDir)
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A home with these files in it, and the mounts of its PATH.
    fn mounts(home: &Path, path: &[&str]) -> Vec<String> {
        let path: Vec<String> = path
            .iter()
            .map(|directory| home.join(directory).display().to_string())
            .collect();
        let found = toolchain_mounts(&path.join(":"), home, |_| None);
        let target = |mount: &Mount| {
            let below = mount.target().strip_prefix(home).unwrap();
            below.display().to_string()
        };
        found.mounts.iter().map(target).collect()
    }

    fn home(files: &[&str]) -> tempfile::TempDir {
        // Not below `/tmp`: nothing is ever taken from there.
        let home = tempfile::tempdir().unwrap();
        for file in files {
            let path = home.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        home
    }

    #[test]
    fn of_a_home_only_toolchains_are_taken() {
        let home = home(&[
            ".ssh/id",
            ".cargo/bin/cargo",
            ".cargo/registry/x",
            ".cargo/credentials.toml",
            ".cargo/config.toml",
            ".rustup/settings.toml",
            ".pyenv/shims/python",
            ".pyenv/bin/pyenv",
            ".nvm/versions/node/v20/bin/node",
            ".nvm/versions/node/v18/bin/node",
            "go/bin/tool",
            "go/pkg/mod/x",
            "go/src/private",
            "work/bin/tool",
        ]);
        let cases: [(&str, &[&str], &[&str]); 6] = [
            (
                "rust",
                &[".cargo/bin"],
                &[".cargo/bin", ".cargo/registry", ".rustup"],
            ),
            ("python", &[".pyenv/shims", ".pyenv/bin"], &[".pyenv"]),
            (
                "node",
                &[".nvm/versions/node/v20/bin"],
                &[".nvm/versions/node/v20"],
            ),
            ("go", &["go/bin"], &["go/bin", "go/pkg/mod"]),
            ("the home itself", &["", ".", ".ssh"], &[]),
            ("a directory of the user", &["work/bin"], &[]),
        ];
        for (name, path, wanted) in cases {
            assert_eq!(mounts(home.path(), path), wanted, "{name}");
        }
    }

    #[test]
    fn rustup_is_found_where_its_programs_are_not_in_a_home_of_cargo() {
        let home = home(&[
            "local/cargo/bin/rustup",
            "local/cargo/bin/cargo",
            "local/cargo/registry/index",
            "local/cargo/credentials.toml",
            "local/rustup/toolchains/stable/bin/rustc",
        ]);
        let at = |name: &str| home.path().join(name).display().to_string();
        let found = toolchain_mounts(&at("local/cargo/bin"), home.path(), |_| None);
        let targets: Vec<String> = found
            .mounts
            .iter()
            .map(|mount| mount.target().display().to_string())
            .collect();
        let want = ["local/cargo/bin", "local/cargo/registry", "local/rustup"].map(at);
        assert_eq!(targets, want);
        assert_eq!(found.env["RUSTUP_HOME"], at("local/rustup"));
        assert_eq!(found.env["CARGO_HOME"], at("local/cargo"));
        assert_eq!(found.env["PATH"], at("local/cargo/bin"));

        // The user's variable decides.
        let named = toolchain_mounts(&at("local/cargo/bin"), home.path(), |name| {
            (name == "RUSTUP_HOME").then(|| at("local/rustup").into())
        });
        assert_eq!(named.env["RUSTUP_HOME"], at("local/rustup"));
    }

    #[test]
    fn links_among_programs_are_followed_once() {
        let home = home(&[
            ".local/bin/script",
            ".local/share/pipx/venvs/tool/bin/tool",
            ".local/share/agent/versions/2",
        ]);
        let link = |to: &str, name: &str| {
            let at = home.path().join(".local/bin").join(name);
            symlink(home.path().join(to), at).unwrap();
        };
        link(".local/share/pipx/venvs/tool/bin/tool", "tool");
        link(".local/share/agent/versions/2", "agent");
        link("missing", "dangling");
        assert_eq!(
            mounts(home.path(), &[".local/bin"]),
            [
                ".local/bin",
                ".local/share/agent/versions/2",
                ".local/share/pipx/venvs/tool",
            ]
        );
    }

    #[test]
    fn the_path_keeps_its_order_without_what_is_not_there() {
        let home = home(&[".cargo/bin/cargo"]);
        let cargo = home.path().join(".cargo/bin").display().to_string();
        let path = format!("{cargo}:/usr/bin:relative:/no/such:{cargo}:/bin:/tmp");
        let found = toolchain_mounts(&path, home.path(), |_| None);
        assert_eq!(found.env["PATH"], format!("{cargo}:/usr/bin:/bin"));
        assert_eq!(
            found.env["CARGO_HOME"],
            home.path().join(".cargo").display().to_string()
        );
    }
}
