use super::*;
use crate::object::Mode;

fn raw(name: &str, run: &str, inputs: &[&str], outputs: &[&str]) -> RawStep {
    let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect();
    RawStep {
        name: (!name.is_empty()).then(|| name.to_owned()),
        run: Lines::One(run.to_owned()),
        inputs: texts(inputs),
        outputs: texts(outputs),
        ..RawStep::default()
    }
}

fn npm() -> Step {
    let raw = raw("", "npm ci", &["package-lock.json"], &["node_modules"]);
    steps(vec![raw]).unwrap().remove(0)
}

fn tree(files: &[(&str, char)]) -> BTreeMap<RawPath, Node> {
    let node = |digit: char| Node {
        mode: Mode::File,
        oid: Oid::try_from(digit.to_string().repeat(40).as_str()).unwrap(),
    };
    let entry = |(path, digit): &(&str, char)| (RawPath::new(*path), node(*digit));
    files.iter().map(entry).collect()
}

#[test]
fn a_step_is_called_after_its_program() {
    assert_eq!(npm().name, "npm");
    let long = raw("", "/usr/bin/python3 -m venv .venv", &["a"], &[".venv"]);
    assert_eq!(steps(vec![long]).unwrap()[0].name, "python3");
}

#[test]
fn steps_that_cannot_be_done_are_refused() {
    let with = |name: &str, value: &str| {
        let mut step = raw("x", "make", &["a"], &["b"]);
        step.env.insert(name.to_owned(), value.to_owned());
        step
    };
    let net = |place: &str| RawStep {
        net: vec![place.to_owned()],
        ..raw("x", "make", &["a"], &["b"])
    };
    let cases: [(RawStep, &str); 15] = [
        (RawStep::default(), "prepare: step 1: names no `run`"),
        (
            raw("x", "", &["a"], &["b"]),
            "prepare: x: run: a command is empty",
        ),
        (
            raw("x", "make", &[], &["b"]),
            "prepare: x: names no `inputs`",
        ),
        (
            raw("x", "make", &["a"], &[]),
            "prepare: x: names no `outputs`",
        ),
        (raw("a/b", "make", &["a"], &["b"]), "is not of letters"),
        (
            raw("x", "make | tee", &["a"], &["b"]),
            "prepare: x: run: `make | tee`",
        ),
        (
            raw("x", "make", &["../a"], &["b"]),
            "inputs: `../a` has a `..`",
        ),
        (
            raw("x", "make", &["a"], &["/b"]),
            "outputs: `/b` is absolute",
        ),
        (
            raw("x", "make", &["a"], &["~/../b"]),
            "outputs: `~/../b` has a `..`",
        ),
        (raw("x", "make", &["a"], &["~"]), "begins with `~`"),
        (raw("x", "make", &["a"], &[".git/b"]), "is kept for git"),
        (
            raw("x", "make", &["a"], &["b", "b/c"]),
            "`b` and `b/c` lie in each other",
        ),
        (with("PATH", "/x"), "env: `PATH` belongs to the sandbox"),
        (with("A=B", "x"), "env: `A=B` is no name"),
        (net("*:443"), "net: `*:443` holds a wildcard"),
    ];
    for (raw, want) in cases {
        let said = steps(vec![raw]).unwrap_err().to_string();
        assert!(said.contains(want), "{said}\nwanted {want}");
    }
    let twins = vec![raw("x", "a", &["a"], &["b"]), raw("x", "a", &["a"], &["c"])];
    let said = steps(twins).unwrap_err().to_string();
    assert!(said.contains("two steps are called `x`"), "{said}");
}

#[test]
fn a_home_and_a_tree_do_not_clash() {
    let both = vec![raw("x", "make", &["a"], &["cache", "~/cache"])];
    assert!(steps(both).is_ok());
}

#[test]
fn a_key_follows_from_all_that_the_layer_follows_from() {
    let lock = [("package-lock.json", 'a'), ("src/a.js", 'b')];
    let key_of = |step: &Step, files: &[(&str, char)], circumstances| {
        let files = tree(files);
        key(step, &step.inputs_in(&files).unwrap(), circumstances)
    };
    let usual = Circumstances {
        toolchain: "one",
        before: &[],
        untrusted: None,
        loopback: true,
    };
    let first = key_of(&npm(), &lock, usual);
    let source = [("package-lock.json", 'a'), ("src/a.js", 'c')];
    assert_eq!(key_of(&npm(), &source, usual), first, "no input changed");

    let mut other = npm();
    other.run[0].push("--quiet".to_owned());
    let before = ["earlier".to_owned()];
    let of = |circumstances| key_of(&npm(), &lock, circumstances);
    let oid = Oid::try_from("d".repeat(40).as_str()).unwrap();
    let cases = [
        (
            "input",
            key_of(&npm(), &[("package-lock.json", 'c')], usual),
        ),
        ("step", key_of(&other, &lock, usual)),
        (
            "toolchain",
            of(Circumstances {
                toolchain: "two",
                ..usual
            }),
        ),
        (
            "earlier step",
            of(Circumstances {
                before: &before,
                ..usual
            }),
        ),
        (
            "loopback",
            of(Circumstances {
                loopback: false,
                ..usual
            }),
        ),
        (
            "tree",
            of(Circumstances {
                untrusted: Some(&oid),
                ..usual
            }),
        ),
    ];
    let mut seen = BTreeSet::from([first]);
    for (name, key) in cases {
        assert!(seen.insert(key), "{name}");
    }
}

#[test]
fn an_input_may_be_a_directory_and_must_be_there() {
    let step = steps(vec![raw("x", "make", &["deps", "lock"], &["out"])]);
    let step = &step.unwrap()[0];
    let files = tree(&[
        ("deps/a", 'a'),
        ("deps/b/c", 'b'),
        ("lock", 'c'),
        ("other", 'd'),
    ]);
    let found: Vec<String> = step
        .inputs_in(&files)
        .unwrap()
        .keys()
        .map(ToString::to_string)
        .collect();
    assert_eq!(found, ["deps/a", "deps/b/c", "lock"]);
    let files = tree(&[("deps/a", 'a'), ("lockfile", 'c')]);
    assert_eq!(step.inputs_in(&files).unwrap_err().as_str(), "lock");
}

#[test]
fn what_the_tree_keeps_where_an_output_goes_is_found() {
    let step = steps(vec![raw(
        "x",
        "make",
        &["a"],
        &["web/node_modules", "~/.npm"],
    )])
    .unwrap();
    let found = |path: &str| !in_the_way(&step, &tree(&[(path, 'a')])).is_empty();
    for (path, want) in [
        ("web/node_modules/x.js", true),
        ("web/node_modules", true),
        ("web", true),
        ("Web/Node_Modules/x", true),
        ("web/node_modules2/x", false),
        ("we", false),
        (".npm/x", false),
    ] {
        assert_eq!(found(path), want, "{path}");
    }
}

#[test]
fn a_tool_is_led_to_its_outputs_and_kept_from_the_network_where_they_are_used() {
    let mut raw = raw("", "cargo fetch", &["Cargo.lock"], &["~/.cargo"]);
    raw.env.insert("MINE".to_owned(), "~/.cargo/x".to_owned());
    let step = &steps(vec![raw]).unwrap()[0];
    let words = |used| {
        let all = step.variables("/h", used).into_iter();
        all.map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        words(Use::Made),
        ["CARGO_HOME=/h/.cargo", "MINE=/h/.cargo/x"]
    );
    assert_eq!(
        words(Use::Used),
        [
            "CARGO_HOME=/h/.cargo",
            "CARGO_NET_OFFLINE=true",
            "MINE=/h/.cargo/x"
        ]
    );
}
