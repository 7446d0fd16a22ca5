//! Reads imports as they are written, and resolves them to files.
//!
//! A target that matches no file of the tree is external code and is left out. Nothing is guessed:
//! if two files match equally well, neither is taken.

use std::collections::{BTreeMap, HashSet};
use std::sync::OnceLock;

use crate::language::Imports;

/// Suffixes of files that a script imports.
const ENDINGS: [&str; 10] = [
    "", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".d.ts",
];

/// The longest text of an import that is read, in bytes.
const LONGEST: usize = 20_000;

const MOST: usize = 500;

/// The targets of an import statement, one for each name that may be a file.
pub(crate) fn targets(style: Imports, text: &str) -> Vec<String> {
    if text.len() > LONGEST {
        return Vec::new();
    }
    let mut found = match style {
        Imports::Dotted => dotted(text),
        Imports::Crate => paths(text),
        Imports::Qualified => qualified(text),
        // What a C file includes in `<…>` belongs to the system.
        Imports::Quoted | Imports::Package | Imports::Include => quoted(text).into_iter().collect(),
    };
    found.truncate(MOST);
    found
}

/// The targets of a call, if it is one that imports.
pub(crate) fn called(text: &str) -> Vec<String> {
    let import = text
        .strip_prefix("require(")
        .or_else(|| text.strip_prefix("import("));
    match import {
        Some(rest) if rest.len() < LONGEST => quoted(rest).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// `import a.b as c, d` and `from .a import b, c`; a target of the second kind is `.a:b`.
fn dotted(text: &str) -> Vec<String> {
    let plain: String = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(" ")
        .replace(['(', ')', '\\'], " ");
    let name = |part: &str| {
        part.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    if let Some(rest) = plain.strip_prefix("from ") {
        let Some((module, names)) = rest.split_once(" import ") else {
            return Vec::new();
        };
        let module = module.split_whitespace().collect::<String>();
        let names = names.split(',').map(name).filter(|name| !name.is_empty());
        return names.map(|name| format!("{module}:{name}")).collect();
    }
    let list = plain.strip_prefix("import ").unwrap_or_default();
    let names = list.split(',').map(name);
    names.filter(|name| !name.is_empty()).collect()
}

/// `use a::{b, c::d};` as `a::b` and `a::c::d`.
fn paths(text: &str) -> Vec<String> {
    let Some(at) = text.find("use ") else {
        return Vec::new();
    };
    let body: String = text[at + 4..]
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let body = body.trim_end_matches(';');
    let (mut found, mut prefixes) = (Vec::new(), vec![String::new()]);
    let mut word = String::new();
    let take = |word: &mut String, prefixes: &[String], found: &mut Vec<String>| {
        let path = word.split(" as ").next().unwrap_or_default().trim();
        if !path.is_empty() && found.len() < MOST {
            let prefix = prefixes.last().map_or("", String::as_str);
            found.push(format!("{prefix}{path}"));
        }
        word.clear();
    };
    for letter in body.chars() {
        match letter {
            '{' if prefixes.len() < 32 => {
                let prefix = prefixes.last().cloned().unwrap_or_default();
                prefixes.push(prefix + word.trim());
                word.clear();
            }
            ',' => take(&mut word, &prefixes, &mut found),
            '}' => {
                take(&mut word, &prefixes, &mut found);
                if prefixes.len() > 1 {
                    prefixes.pop();
                }
            }
            letter => word.push(letter),
        }
    }
    take(&mut word, &prefixes, &mut found);
    found
}

/// The last text in quotation marks.
fn quoted(text: &str) -> Option<String> {
    let end = text.rfind(['"', '\'', '`'])?;
    let mark = text[end..].chars().next()?;
    let start = text[..end].rfind(mark)?;
    let inner = &text[start + 1..end];
    (!inner.is_empty() && !inner.contains('\n')).then(|| inner.to_owned())
}

/// `import static a.b.C.d;`.
fn qualified(text: &str) -> Vec<String> {
    let words = text.trim_end_matches(';').split_whitespace();
    let name = words
        .filter(|word| !matches!(*word, "import" | "static"))
        .collect::<String>();
    if name.is_empty() {
        Vec::new()
    } else {
        vec![name]
    }
}

/// The files of a tree, to which imports are resolved.
#[derive(Debug)]
pub(crate) struct Files<'a> {
    all: HashSet<&'a str>,
    /// Possible modules of Python: directories with files somewhere below, and files without their
    /// suffix.
    modules: HashSet<&'a str>,
    sorted: Vec<&'a str>,
    /// Files by their last component, made at first use.
    by_name: OnceLock<ByPart<'a>>,
    /// Files by their directory, made at first use.
    by_directory: OnceLock<ByPart<'a>>,
}

type ByPart<'a> = BTreeMap<&'a str, Vec<&'a str>>;

impl<'a> Files<'a> {
    pub(crate) fn new(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut sorted: Vec<&str> = paths.into_iter().collect();
        sorted.sort_unstable();
        let all: HashSet<&str> = sorted.iter().copied().collect();
        let mut modules = HashSet::from([""]);
        for path in &sorted {
            let (directory, _) = split(path);
            modules.extend(path.strip_suffix(".py"));
            let mut above = directory;
            while !above.is_empty() && modules.insert(above) {
                above = split(above).0;
            }
        }
        Self {
            all,
            modules,
            sorted,
            by_name: OnceLock::new(),
            by_directory: OnceLock::new(),
        }
    }

    /// Files by the part of directory and last component that `part` selects.
    fn by(&self, part: impl Fn((&'a str, &'a str)) -> &'a str) -> ByPart<'a> {
        let mut by = ByPart::new();
        for path in &self.sorted {
            by.entry(part(split(path))).or_default().push(*path);
        }
        by
    }

    /// The files that `target` means in the file `from`; several for a package of many.
    pub(crate) fn resolve(&self, style: Imports, from: &str, target: &str) -> Vec<&'a str> {
        let found = match style {
            Imports::Dotted => self.module(from, target),
            Imports::Crate => self.crate_path(from, target),
            Imports::Quoted => self.relative(from, target),
            Imports::Package => return self.package(from, target),
            Imports::Qualified => self.class(target),
            Imports::Include => self.header(from, target),
        };
        found.into_iter().collect()
    }

    fn get(&self, path: &str) -> Option<&'a str> {
        self.all.get(path).copied()
    }

    /// A module of Python, from the root, from `src/`, or beside the file.
    fn module<'b>(&self, from: &'b str, target: &str) -> Option<&'a str> {
        let (module, name) = target.split_once(':').unwrap_or((target, ""));
        let dots = module.bytes().take_while(|byte| *byte == b'.').count();
        let rest = module[dots..].replace('.', "/");
        // The nearest directory that contains the module counts.
        let mut base = split(from).0;
        for _ in 1..dots {
            base = split(base).0;
        }
        let above = |base: &&'b str| (dots == 0 && !base.is_empty()).then(|| split(base).0);
        let last = (dots == 0).then_some("src");
        let mut module = String::new();
        for base in std::iter::successors(Some(base), above).chain(last) {
            module.clear();
            module.push_str(base);
            if !base.is_empty() && !rest.is_empty() {
                module.push('/');
            }
            module.push_str(&rest);
            if !self.modules.contains(module.as_str()) {
                continue;
            }
            let within = join(&module, name);
            let candidates = [
                (!name.is_empty()).then(|| format!("{within}.py")),
                (!name.is_empty()).then(|| join(&within, "__init__.py")),
                (!module.is_empty()).then(|| format!("{module}.py")),
                Some(join(&module, "__init__.py")),
            ];
            let hit = candidates.iter().flatten().find_map(|path| self.get(path));
            if hit.is_some_and(|hit| hit != from) {
                return hit;
            }
        }
        None
    }

    /// A path of Rust: `crate::…`, `super::…`, `self::…`.
    fn crate_path(&self, from: &str, target: &str) -> Option<&'a str> {
        let mut parts: Vec<&str> = target.split("::").map(str::trim).collect();
        let (directory, name) = split(from);
        let stem = name.trim_end_matches(".rs");
        let is_root = matches!(stem, "mod" | "lib" | "main");
        let own = if is_root {
            directory.to_owned()
        } else {
            join(directory, stem)
        };
        let mut base = match parts[0] {
            "crate" => {
                let at = from.rfind("src/")?;
                from[..at + 3].to_owned()
            }
            "self" => own,
            "super" => split(&own).0.to_owned(),
            _ => return None,
        };
        parts.remove(0);
        while parts.first() == Some(&"super") {
            base = split(&base).0.to_owned();
            parts.remove(0);
        }
        // The longest prefix of the path that is a file; the rest is inside it.
        for count in (0..=parts.len()).rev() {
            let path = join(&base, &parts[..count].join("/"));
            let candidates = [
                format!("{path}.rs"),
                join(&path, "mod.rs"),
                join(&path, "lib.rs"),
                join(&path, "main.rs"),
            ];
            if let Some(hit) = candidates.iter().find_map(|path| self.get(path)) {
                return (hit != from).then_some(hit);
            }
        }
        None
    }

    /// A path relative to the importing file.
    fn relative(&self, from: &str, target: &str) -> Option<&'a str> {
        if !target.starts_with('.') {
            return None;
        }
        let path = climb(split(from).0, target)?;
        // In TypeScript a file is named by what it is compiled to.
        let stem = path
            .strip_suffix(".js")
            .or_else(|| path.strip_suffix(".jsx"));
        let stems = [Some(path.as_str()), stem].into_iter().flatten();
        for stem in stems {
            let hit = ENDINGS
                .iter()
                .find_map(|ending| self.get(&format!("{stem}{ending}")));
            let index = || {
                let index = |ending: &&str| self.get(&join(stem, &format!("index{ending}")));
                ENDINGS[1..].iter().find_map(index)
            };
            if let Some(hit) = hit.or_else(index) {
                return Some(hit);
            }
        }
        None
    }

    /// A package of Go: the files of the directory that its path ends with.
    fn package(&self, from: &str, target: &str) -> Vec<&'a str> {
        let mut rest = target;
        loop {
            // One component alone is ambiguous.
            if !rest.contains('/') {
                return Vec::new();
            }
            if let Some(files) = self
                .by_directory
                .get_or_init(|| self.by(|(directory, _)| directory))
                .get(rest)
            {
                let code = |path: &&&str| {
                    path.strip_suffix(".go")
                        .is_some_and(|stem| !stem.ends_with("_test"))
                };
                return files
                    .iter()
                    .filter(code)
                    .filter(|path| **path != from)
                    .copied()
                    .collect();
            }
            rest = match rest.split_once('/') {
                Some((_, rest)) => rest,
                None => return Vec::new(),
            };
        }
    }

    /// A class of Java: the file whose path ends with its name.
    fn class(&self, target: &str) -> Option<&'a str> {
        let path = target.replace('.', "/");
        // `a.b.C.d` may be a member of `a.b.C`.
        [path.as_str(), split(&path).0]
            .into_iter()
            .find_map(|path| {
                let (_, name) = split(path);
                let file = format!("{name}.java");
                let end = format!("{path}.java");
                self.only(&file, |known| {
                    known == end || known.ends_with(&format!("/{end}"))
                })
            })
    }

    /// A header: beside the file, or the only one of the tree whose path ends with `target`.
    fn header(&self, from: &str, target: &str) -> Option<&'a str> {
        let beside = climb(split(from).0, target).and_then(|path| self.get(&path));
        beside.or_else(|| {
            let (_, name) = split(target);
            self.only(name, |known| {
                known == target || known.ends_with(&format!("/{target}"))
            })
        })
    }

    /// The file with this last component that fits, if there is only one.
    fn only(&self, name: &str, fits: impl Fn(&str) -> bool) -> Option<&'a str> {
        let by_name = self.by_name.get_or_init(|| self.by(|(_, name)| name));
        let mut found = by_name.get(name)?.iter().filter(|path| fits(path));
        let first = found.next()?;
        found.next().is_none().then_some(*first)
    }
}

/// The directory and the last component.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn join(directory: &str, name: &str) -> String {
    match (directory, name) {
        ("", name) => name.to_owned(),
        (directory, "") => directory.to_owned(),
        (directory, name) => format!("{directory}/{name}"),
    }
}

/// `target` resolved from a directory; `None` outside the tree.
fn climb(directory: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests;
