use provost_core::object::Mode;

use super::*;

const OID: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

fn node(mode: Mode) -> Node {
    Node {
        mode,
        oid: Oid::try_from(OID).unwrap(),
    }
}

fn files(paths: &[&str]) -> Files {
    let file = |path: &&str| (RawPath::new(*path), node(Mode::File));
    paths.iter().map(file).collect()
}

/// A change as `+path` (new), `-path` (gone), `x path` (another mode) or `path` (other content).
fn change(text: &str) -> Change {
    let (kind, path) = match text.as_bytes()[0] {
        b'+' | b'-' | b'x' if !text.starts_with("x/") => (&text[..1], text[1..].trim_start()),
        _ => ("", text),
    };
    let after = match kind {
        "-" => None,
        "x" => Some(node(Mode::Executable)),
        _ => Some(node(Mode::File)),
    };
    Change {
        path: RawPath::new(path),
        before: (kind != "+").then(|| node(Mode::File)),
        after,
        binary: false,
        origin: None,
        link: None,
    }
}

fn start(tree: &[&str], changes: &[&str], steps: &[Step]) -> Result<String, String> {
    let changes: Vec<Change> = changes.iter().map(|text| change(text)).collect();
    let protect = Extra {
        oracle: provost_core::scope::Scope::of(vec![RepoPath::try_from("golden").unwrap()]),
        ..Extra::default()
    };
    let facts = Facts {
        files: &files(tree),
        changes: &changes,
        protect: &protect,
        steps,
    };
    match decide(&facts) {
        Start::Warm(newer) => {
            let newer: Vec<String> = newer.iter().map(ToString::to_string).collect();
            Ok(newer.join(" "))
        }
        Start::Cold(reason) => Err(reason),
    }
}

#[test]
fn what_a_change_touches_decides_about_a_warm_start() {
    let cargo = ["Cargo.toml", "src/lib.rs", "src/a.rs"];
    let cases: [(&str, &[&str], &str); 12] = [
        ("an edit", &["src/a.rs"], ""),
        ("nothing", &[], ""),
        (
            "a deletion",
            &["src/lib.rs", "-src/a.rs"],
            "`src/a.rs` is deleted or renamed",
        ),
        (
            "a rename",
            &["+src/b.rs", "-src/a.rs"],
            "`src/a.rs` is deleted or renamed",
        ),
        ("a mode", &["x src/a.rs"], "the mode of `src/a.rs` changed"),
        (
            "a manifest",
            &["Cargo.toml"],
            "`Cargo.toml` is a build or oracle file",
        ),
        (
            "a lock file",
            &["+Cargo.lock"],
            "`Cargo.lock` is a build or oracle file",
        ),
        (
            "a build script",
            &["+build.rs"],
            "`build.rs` is a build or oracle file",
        ),
        (
            "a configuration",
            &["+.cargo/config.toml"],
            "`.cargo/config.toml` is a build or oracle file",
        ),
        (
            "an oracle of the policy",
            &["golden/one"],
            "`golden/one` is a build or oracle file",
        ),
        (
            "a rule for agents",
            &["AGENTS.md"],
            "`AGENTS.md` is a build or oracle file",
        ),
        (
            "a policy",
            &["provost.toml"],
            "`provost.toml` is a build or oracle file",
        ),
    ];
    for (name, changes, want) in cases {
        let found = start(&cargo, changes, &[]).err().unwrap_or_default();
        assert_eq!(found, want, "{name}");
    }
}

#[test]
fn inputs_of_preparation_and_unknown_inputs_of_gradle_are_cold() {
    let step = Step {
        name: "deps".to_owned(),
        run: vec![vec!["make".to_owned()]],
        inputs: vec![RepoPath::try_from("deps").unwrap()],
        outputs: Vec::new(),
        net: Vec::new(),
        env: BTreeMap::new(),
        mount: None,
    };
    let found = start(&["Cargo.toml"], &["deps/list"], std::slice::from_ref(&step)).unwrap_err();
    assert_eq!(found, "`deps/list` is an input of a `[[prepare]]` step");
    assert!(start(&["Cargo.toml"], &["deps2/list"], &[step]).is_ok());
    let gradle = [
        "app/build.gradle.kts",
        "app/src/main/java/A.java",
        "data/x.csv",
    ];
    assert!(start(&gradle, &["app/src/main/java/A.java"], &[]).is_ok());
    let found = start(&gradle, &["data/x.csv"], &[]).unwrap_err();
    assert_eq!(
        found,
        "`data/x.csv` may be an input that Gradle does not know"
    );
}

#[test]
fn files_count_as_newer_where_cargo_may_not_see_a_change() {
    let plain = [
        "Cargo.toml",
        "src/a.rs",
        "src/lib.rs",
        "x/Cargo.toml",
        "x/m.sql",
        "x/src/lib.rs",
    ];
    let whole = plain.join(" ");
    let package = "x/Cargo.toml x/m.sql x/src/lib.rs";
    let built = [
        "Cargo.toml",
        "a/Cargo.toml",
        "a/build.rs",
        "a/src/lib.rs",
        "src/lib.rs",
    ];
    let apart = ["docs/a.md", "rust/Cargo.toml", "rust/src/lib.rs"];
    let cases: [(&str, &[&str], &[&str], &str); 8] = [
        ("an edit", &plain, &["src/a.rs"], "src/a.rs"),
        (
            "an edit of a member",
            &plain,
            &["x/src/lib.rs"],
            "x/src/lib.rs",
        ),
        ("a new module", &plain, &["+src/lib.rs"], &whole),
        ("a new file of a member", &plain, &["+x/m.sql"], package),
        ("what a macro may read", &plain, &["x/m.sql"], package),
        (
            "a package with a build script",
            &built,
            &["a/src/lib.rs"],
            "a/Cargo.toml a/build.rs a/src/lib.rs",
        ),
        (
            "outside of every package",
            &apart,
            &["docs/a.md"],
            &apart.join(" "),
        ),
        ("no cargo", &["a.go", "b.go", "go.mod"], &["a.go"], "a.go"),
    ];
    for (name, tree, changes, want) in cases {
        assert_eq!(start(tree, changes, &[]), Ok(want.to_owned()), "{name}");
    }
}

#[test]
fn caches_are_where_the_tools_of_the_project_keep_them() {
    type Row<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a str, &'a str);
    let output = |text: &str| Output::try_from(text.to_owned()).unwrap();
    let step = |place: &str| Step {
        name: "deps".to_owned(),
        run: vec![vec!["make".to_owned()]],
        inputs: Vec::new(),
        outputs: vec![output(place)],
        net: Vec::new(),
        env: BTreeMap::new(),
        mount: None,
    };
    let cases: [Row<'_>; 9] = [
        ("none", &["README.md"], &[], "deps", ""),
        (
            "cargo",
            &["Cargo.toml", "a/Cargo.toml"],
            &[],
            "deps",
            "target",
        ),
        (
            "two workspaces",
            &["a/Cargo.toml", "b/c/Cargo.toml"],
            &[],
            "deps",
            "a/target b/c/target",
        ),
        ("go", &["x/go.mod"], &[], "deps", "~/.cache/go-build"),
        (
            "gradle",
            &["app/build.gradle"],
            &[],
            "deps",
            "~/.gradle/caches/build-cache-1",
        ),
        ("c", &["a.c"], &[], "deps", "~/.cache/ccache"),
        (
            "of the policy",
            &["x"],
            &["build", "~/.cache/x"],
            "deps",
            "build ~/.cache/x",
        ),
        (
            "tracked",
            &["Cargo.toml", "target/x"],
            &["build"],
            "deps",
            "build",
        ),
        ("prepared", &["Cargo.toml"], &[], "target/deps", ""),
    ];
    for (name, tree, more, prepared, want) in cases {
        let more: Vec<Output> = more.iter().map(|text| output(text)).collect();
        let found = directories(&files(tree), &more, &[step(prepared)]);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.join(" "), want, "{name}");
    }
}
