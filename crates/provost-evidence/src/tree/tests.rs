use proptest::prelude::*;

use super::*;

const SHA1: ObjectFormat = ObjectFormat::Sha1;

fn blob(text: &str) -> Node {
    Node {
        mode: Mode::File,
        oid: SHA1.oid(Kind::Blob, text.as_bytes()).unwrap(),
    }
}

fn raw(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (mode, name) in entries {
        bytes.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        bytes.extend_from_slice(&[7; 20]);
    }
    bytes
}

fn files(paths: &[(&str, &str)]) -> BTreeMap<RawPath, Node> {
    paths
        .iter()
        .map(|(path, text)| (RawPath::new(*path), blob(text)))
        .collect()
}

#[test]
fn a_tree_that_git_would_not_write_is_refused() {
    let name = |name: &str| TreeError::Name {
        name: RawPath::new(name),
    };
    let twice = |name: &str| TreeError::Twice {
        path: RawPath::new(name),
    };
    let order = |name: &str| TreeError::Order {
        name: RawPath::new(name),
    };
    let file = "100644";
    let cases = [
        (raw(&[(file, "b"), (file, "a")]), order("a")),
        (raw(&[("40000", "a"), (file, "a.b")]), order("a.b")),
        (raw(&[(file, "a"), (file, "a")]), twice("a")),
        (
            raw(&[(file, "a"), (file, "a.b"), ("40000", "a")]),
            twice("a"),
        ),
        (raw(&[(file, "")]), name("")),
        (raw(&[(file, ".")]), name(".")),
        (raw(&[("40000", "..")]), name("..")),
        (raw(&[("40000", ".git")]), name(".git")),
        (raw(&[("40000", ".GiT")]), name(".GiT")),
        (raw(&[("40000", "git~1")]), name("git~1")),
        (raw(&[("40000", ".git .")]), name(".git .")),
        (raw(&[(file, ".git::$DATA")]), name(".git::$DATA")),
        (raw(&[("40000", ".g\u{200c}it")]), name(".g\u{200c}it")),
        (raw(&[(file, "a/b")]), name("a/b")),
        (raw(&[("040000", "a")]), TreeError::Damaged { at: 0 }),
        (raw(&[("100600", "a")]), TreeError::Damaged { at: 0 }),
        (
            raw(&[(file, "a"), ("1006440000", "b")]),
            TreeError::Damaged { at: 29 },
        ),
        (
            raw(&[(file, "a")])[..20].to_vec(),
            TreeError::Damaged { at: 0 },
        ),
    ];
    for (bytes, want) in cases {
        assert_eq!(parse(&bytes, SHA1), Err(want), "{}", RawPath::new(bytes));
    }
}

#[test]
fn files_make_the_tree_that_git_makes() {
    // `git hash-object -t tree` of the same files.
    let (root, trees) = build(&files(&[]), SHA1).unwrap();
    assert_eq!(root.as_str(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    assert_eq!(trees.len(), 1);
    let (_, trees) = build(&files(&[("a", "1"), ("a.b", "2"), ("a0/c/d", "3")]), SHA1).unwrap();
    assert_eq!(trees.len(), 3);
}

#[test]
fn files_that_cannot_stand_together_make_no_tree() {
    for paths in [
        [("a", "1"), ("a/b", "2")],
        [("a//b", "1"), ("c", "2")],
        [("a/.git/config", "1"), ("c", "2")],
        [("a/../b", "1"), ("c", "2")],
        [("/a", "1"), ("c", "2")],
    ] {
        assert!(build(&files(&paths), SHA1).is_err(), "{paths:?}");
    }
}

#[test]
fn a_forged_or_missing_tree_is_an_error() {
    let (before, mut trees) = build(&files(&[("d/a", "1")]), SHA1).unwrap();
    let (after, more) = build(&files(&[("d/a", "2")]), SHA1).unwrap();
    trees.extend(more);
    let lookup = |oid: &Oid| trees.get(oid).cloned();
    assert_eq!(diff(&before, &after, lookup).unwrap().len(), 1);

    let forged = |oid: &Oid| {
        let wanted = if *oid == after { &before } else { oid };
        trees.get(wanted).cloned()
    };
    assert!(matches!(
        diff(&before, &after, forged),
        Err(TreeError::Forged { .. })
    ));
    let missing = |oid: &Oid| (*oid != after).then(|| trees[oid].clone());
    assert!(matches!(
        diff(&before, &after, missing),
        Err(TreeError::Missing { .. })
    ));
}

#[test]
fn a_commit_names_its_tree() {
    let oid = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    let bytes = format!("tree {oid}\nauthor a <a> 0 +0000\n\nx");
    assert_eq!(commit_tree(bytes.as_bytes()), Some(oid.try_into().unwrap()));
    assert_eq!(commit_tree(b"tree 4b825d\n"), None);
    assert_eq!(commit_tree(b"parent x\n"), None);
}

fn some_files() -> impl Strategy<Value = BTreeMap<RawPath, Node>> {
    let path = proptest::collection::vec("[ab.0]{1,2}", 1..4).prop_map(|parts| parts.join("/"));
    proptest::collection::btree_map(path, "[xyz]", 0..12).prop_map(|map| {
        let mut files: BTreeMap<RawPath, Node> = BTreeMap::new();
        for (path, text) in map {
            let safe = path.split('/').all(|part| name_is_safe(part.as_bytes()));
            let clash = files.keys().any(|other| {
                let other = other.to_string();
                path.starts_with(&format!("{other}/")) || other.starts_with(&format!("{path}/"))
            });
            if safe && !clash {
                files.insert(RawPath::new(path), blob(&text));
            }
        }
        files
    })
}

proptest! {
    #[test]
    fn the_difference_of_two_trees_is_that_of_their_files(
        one in some_files(),
        other in some_files(),
    ) {
        let (before, mut trees) = build(&one, SHA1).unwrap();
        let (after, more) = build(&other, SHA1).unwrap();
        trees.extend(more);
        for bytes in trees.values() {
            prop_assert_eq!(&render(parse(bytes, SHA1).unwrap()), bytes);
        }
        let changes = diff(&before, &after, |oid| trees.get(oid).cloned()).unwrap();
        let paths: BTreeSet<&RawPath> = one.keys().chain(other.keys()).collect();
        let want: Vec<Change> = paths
            .into_iter()
            .filter(|path| one.get(*path) != other.get(*path))
            .map(|path| change(path.clone(), one.get(path).cloned(), other.get(path).cloned()))
            .collect();
        prop_assert_eq!(changes, want);
    }

    #[test]
    fn parse_takes_any_bytes(bytes: Vec<u8>) {
        let _ = parse(&bytes, SHA1);
    }
}
