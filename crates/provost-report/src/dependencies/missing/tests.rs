use provost_core::policy;

use super::*;

fn files(pairs: &[(&str, &str)]) -> ProjectFiles {
    let pair = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    pairs.iter().map(pair).collect()
}

/// What a command printed, and what it lacked by that; empty if nothing.
const PRINTED: &[(&str, &str)] = &[
    ("sh: 1: pytest: not found\n", "program pytest"),
    (
        "tests/all.sh: line 3: jest: command not found",
        "program jest",
    ),
    ("tests/all.sh: 3: jest: not found", "program jest"),
    (
        "make: pytest: No such file or directory\nmake: *** [test] Error 127",
        "program pytest",
    ),
    (
        "/usr/bin/env: 'node': No such file or directory",
        "program node",
    ),
    ("error Command \"jest\" not found.", "program jest"),
    ("ModuleNotFoundError: No module named 'six'", "Python six"),
    (
        "E   ModuleNotFoundError: No module named 'yaml.nodes'",
        "Python yaml.nodes",
    ),
    ("/usr/bin/python3: No module named pytest", "Python pytest"),
    ("ImportError: No module named six", "Python six"),
    (
        "Error: Cannot find module 'is-odd'\nRequire stack:",
        "Node is-odd",
    ),
    (
        "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@a/b' imported from /w/a.js",
        "Node @a/b",
    ),
    ("Error: Cannot find module './own'", ""),
    ("Error: Cannot find module '/workspace/dist/a.js'", ""),
    ("error: no matching package named `void` found", "Rust void"),
    ("error: failed to download `void v1.0.2`", "Rust void"),
    (
        "attempting to make an HTTP request, but --offline was specified",
        "packages of Rust",
    ),
    (
        "warning: spurious network error (3 tries remaining): [6] Could not resolve host: \
             index.crates.io",
        "packages of Rust",
    ),
    (
        "a.go:3:8: cannot find module providing package rsc.io/quote: module lookup disabled",
        "Go rsc.io/quote",
    ),
    (
        "[ERROR] Could not transfer artifact x:y:pom:1 from/to central",
        "packages of Java",
    ),
    (
        "No cached version of a:b:1.0 available for offline mode.",
        "Java a:b:1.0",
    ),
    (
        "npm error request to https://registry.npmjs.org/x failed: getaddrinfo EAI_AGAIN",
        "packages of Node",
    ),
    (
        "ERROR: No matching distribution found for six",
        "packages of Python",
    ),
    ("curl: (6) Could not resolve host: example.com", "network"),
    ("AssertionError: 1 != 2", ""),
    ("the page was not found", ""),
    ("./run.sh: ./build/a: not found", ""),
    ("", ""),
    // Text that is no name is not repeated.
    ("No module named '\u{1b}[2Jx'", ""),
    ("sh: 1: $(rm -r x): not found", ""),
    ("Cannot find module 'a\" ]\nnet = [\"b'", ""),
];

fn named(lack: &Lack) -> String {
    match lack {
        Lack::Program(name) => format!("program {name}"),
        Lack::Package(family, name) => format!("{family:?} {name}"),
        Lack::Packages(family) => format!("packages of {family:?}"),
        Lack::Network => "network".to_owned(),
    }
}

#[test]
fn what_was_missing_is_read_from_what_a_command_printed() {
    for (output, want) in PRINTED {
        let found = lack(output).as_ref().map(named).unwrap_or_default();
        assert_eq!(found, *want, "{output}");
    }
}

#[test]
fn the_advice_is_the_step_of_the_project() {
    let npm = files(&[
        ("package.json", "{}"),
        ("package-lock.json", "\"node_modules/x\""),
    ]);
    let uv = files(&[("pyproject.toml", "[project]"), ("uv.lock", "x")]);
    let cargo = files(&[("Cargo.toml", "[dependencies]\nvoid = \"1\"")]);
    let none = ProjectFiles::new();
    let cases: &[(&str, &str, &ProjectFiles, Option<&str>)] = &[
        (
            "the lock file decides",
            "Cannot find module 'x'",
            &npm,
            Some("run = \"npm ci\""),
        ),
        (
            "a known program",
            "sh: 1: jest: not found",
            &npm,
            Some("run = \"npm ci\""),
        ),
        (
            "the only step",
            "sh: 1: frob: not found",
            &npm,
            Some("run = \"npm ci\""),
        ),
        ("the tool itself", "sh: 1: npm: not found", &npm, None),
        (
            "another language",
            "No module named 'six'",
            &uv,
            Some("run = \"uv sync --frozen\""),
        ),
        (
            "no lock file",
            "no matching package named `void` found",
            &cargo,
            Some("\"cargo fetch\""),
        ),
        (
            "no file at all",
            "No module named 'six'",
            &none,
            Some("pip install -r requirements.txt"),
        ),
        ("an unknown program", "sh: 1: frob: not found", &none, None),
        (
            "the network",
            "Could not resolve host: a.example",
            &npm,
            Some("run = \"npm ci\""),
        ),
        (
            "no crate",
            "no matching package named `void` found",
            &none,
            None,
        ),
    ];
    for (name, output, files, want) in cases {
        let found = advice(&lack(output).unwrap(), files, &[]);
        let add = found.as_ref().and_then(|advice| advice.add.clone());
        match want {
            Some(want) => assert!(add.unwrap().contains(want), "{name}: {found:?}"),
            None => assert_eq!(add, None, "{name}"),
        }
    }
}

#[test]
fn what_a_step_did_not_bring_is_named_in_its_inputs() {
    let text = "[[prepare]]\nrun = \"npm ci\"\ninputs = [\"package.json\", \"package-lock.json\"]\n\
        outputs = [\"node_modules\"]\n";
    let steps = policy::parse(text.as_bytes()).unwrap().prepare;
    let npm = files(&[
        ("package.json", "{}"),
        ("package-lock.json", "\"node_modules/x\""),
    ]);
    let found = advice(&lack("Cannot find module 'x'").unwrap(), &npm, &steps).unwrap();
    assert_eq!(found.add, None);
    let want = "`x` is not in what the step `npm` prepares; name it in package.json or \
        package-lock.json, and commit that";
    assert_eq!(found.what, want);
}

#[test]
fn a_place_that_was_printed_is_never_proposed() {
    let npm = files(&[
        ("package.json", "{}"),
        ("package-lock.json", "\"node_modules/x\""),
    ]);
    for output in [
        "Could not resolve host: evil.example",
        "getaddrinfo ENOTFOUND evil.example",
        "Cannot find module 'evil.example:443'",
    ] {
        let add = advice(&lack(output).unwrap(), &npm, &[]).and_then(|it| it.add);
        assert!(!add.unwrap().contains("evil"), "{output}");
    }
}

#[test]
fn a_step_that_was_refused_a_place_gets_the_whole_line_of_its_grants() {
    let text = "[[prepare]]\nrun = \"sh get.sh\"\ninputs = [\"get.sh\"]\noutputs = [\"deps\"]\n\
        net = [\"a.example:443\"]\n";
    let step = policy::parse(text.as_bytes()).unwrap().prepare.remove(0);
    let refused = |places: &[&str]| places.iter().map(|it| (*it).to_owned()).collect();
    let cases = [
        (
            "",
            &["b.example:443"][..],
            Some("net = [\"a.example:443\", \"b.example:443\"]"),
        ),
        (
            "Could not resolve host: pypi.org",
            &[],
            Some("\"files.pythonhosted.org:443\""),
        ),
        ("No module named 'six'", &["a.example:443"], None),
        // What it printed adds no place by itself.
        ("Could not resolve host: evil.example", &[], None),
        ("it broke", &[], None),
    ];
    for (output, places, want) in cases {
        let found = grants(output, &step, &refused(places));
        match want {
            Some(want) => assert!(found.as_ref().unwrap().contains(want), "{found:?}"),
            None => assert_eq!(found, None, "{output}"),
        }
    }
}
