//! Objects and refs are verified when read and durable when written.

use std::collections::BTreeSet;
use std::io::Write as _;

use provost_core::object::{Kind, ObjectFormat, Oid};
use provost_core::pack;
use provost_core::path::RawPath;
use provost_host::git::{Expected, GitError, Lines, Merged, Person, Repository};
use provost_host::workspace;

use crate::scratch::{Scratch, chmod, git};

fn base() -> Scratch {
    let scratch = Scratch::new();
    scratch.file("a", "1\n2\n3\n4\n5\n");
    scratch.file("d/b", "b\n");
    scratch.commit();
    scratch
}

/// Stores `bytes` as the loose object `oid`, whatever their id is.
fn forge(scratch: &Scratch, oid: &Oid, kind: Kind, bytes: &[u8]) {
    let mut deflater = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    write!(deflater, "{} {}\0", kind.word(), bytes.len()).unwrap();
    deflater.write_all(bytes).unwrap();
    let (head, tail) = oid.as_str().split_at(2);
    let path = scratch.root().join(".git/objects").join(head).join(tail);
    if path.exists() {
        chmod(&path, 0o644);
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, deflater.finish().unwrap()).unwrap();
}

#[test]
fn a_branch_holds_what_is_in_its_history_and_nothing_else() {
    let scratch = base();
    let repo = scratch.open();
    let first = repo.resolve("HEAD").unwrap();
    scratch.file("a", "1\n2\nthree\n4\n5\n6\n");
    scratch.file("binary", "\0");
    let second = scratch.commit();
    scratch.git(&["checkout", "-q", "-b", "side", first.as_str()]);
    scratch.file("c", "c\n");
    let aside = scratch.commit();
    let gone = Oid::try_from("0123456789012345678901234567890123456789").unwrap();
    let all = BTreeSet::from([first.clone(), second.clone(), aside.clone(), gone]);
    let held = |tip: &Oid| repo.held_by(tip, &all).unwrap();
    assert_eq!(
        held(&second),
        BTreeSet::from([first.clone(), second.clone()])
    );
    assert_eq!(held(&aside), BTreeSet::from([first.clone(), aside]));
    assert!(repo.held_by(&second, &BTreeSet::new()).unwrap().is_empty());

    let tree = |commit: &Oid| repo.commit_tree(commit).unwrap();
    let counts = repo.line_counts(&tree(&first), &tree(&second)).unwrap();
    let (added, removed) = (2, 1);
    assert_eq!(counts[&RawPath::new("a")], Some(Lines { added, removed }));
    assert_eq!(counts[&RawPath::new("binary")], None);
}

#[test]
fn a_repository_is_found_from_every_place_in_it() {
    let scratch = base();
    let root = scratch.root().canonicalize().unwrap();
    let outer = scratch.outer().canonicalize().unwrap();
    git(&root, &["worktree", "add", "-q", "../linked", "-b", "side"]);
    git(&root, &["clone", "-q", "--bare", ".", "../bare.git"]);
    let open = |path: &std::path::Path| Repository::discover_with(path, &outer).unwrap();
    let common = root.join(".git");

    let repo = open(&root.join("d"));
    assert_eq!((repo.checkout(), repo.top()), (Some(&*root), Some(&*root)));
    assert_eq!((repo.git_dir(), repo.common_dir()), (&*common, &*common));
    let repo = open(&outer.join("linked/d"));
    assert_eq!(
        (repo.checkout(), repo.top()),
        (Some(&*outer.join("linked")), Some(&*root))
    );
    assert_eq!(repo.git_dir(), common.join("worktrees/linked"));
    assert_eq!(repo.objects(), common.join("objects"));
    assert_eq!(
        repo.head_branch().unwrap().as_deref(),
        Some("refs/heads/side")
    );
    assert_eq!(repo.checkouts().unwrap().len(), 2);
    let repo = open(&outer.join("bare.git/refs"));
    assert_eq!((repo.checkout(), repo.top()), (None, None));
    assert!(repo.resolve("HEAD").is_ok());
    assert_eq!(repo.checkouts().unwrap(), []);
    assert!(matches!(
        Repository::discover_with(&outer, &outer),
        Err(GitError::NotARepository { .. })
    ));
}

#[test]
fn only_a_commit_is_resolved() {
    let scratch = base();
    let repo = scratch.open();
    scratch.git(&["tag", "-a", "-m", "t", "v1"]);
    let head: Oid = scratch.git(&["rev-parse", "HEAD"]).try_into().unwrap();
    for rev in [
        "HEAD",
        "main",
        "v1",
        head.as_str(),
        head.short(),
        "HEAD^{tree}^{commit}",
    ] {
        let want = !rev.contains("tree");
        assert_eq!(repo.resolve(rev).ok(), want.then(|| head.clone()), "{rev}");
    }
    for rev in [
        "",
        "-",
        "--all",
        "nothing",
        "HEAD:a",
        "HEAD\n",
        "0123456789",
    ] {
        assert!(
            matches!(repo.resolve(rev), Err(GitError::NoCommit { .. })),
            "{rev}"
        );
    }
}

#[test]
fn replacements_and_grafts_do_not_count() {
    let scratch = base();
    let repo = scratch.open();
    let first = repo.resolve("HEAD").unwrap();
    scratch.file("second", "x");
    let second = scratch.commit();
    let tree = repo.commit_tree(&second).unwrap();
    let evil = scratch.git(&["commit-tree", "-m", "evil", "HEAD~1^{tree}"]);
    scratch.git(&["replace", second.as_str(), &evil]);
    assert_eq!(repo.commit_tree(&second).unwrap(), tree);
    assert_eq!(repo.resolve("HEAD~1").unwrap(), first);
    scratch.git(&["replace", "-d", second.as_str()]);
    scratch.file(".git/info/grafts", format!("{second}\n"));
    assert_eq!(repo.resolve("HEAD~1").unwrap(), first);
    assert!(repo.follows(&second, &first).unwrap());
}

#[test]
fn forged_objects_are_refused() {
    let scratch = base();
    let repo = scratch.open();
    let head = repo.resolve("HEAD").unwrap();
    let tree = repo.commit_tree(&head).unwrap();
    let inner: Oid = scratch.git(&["rev-parse", "HEAD:d"]).try_into().unwrap();
    let blob: Oid = scratch.git(&["rev-parse", "HEAD:a"]).try_into().unwrap();

    forge(&scratch, &blob, Kind::Blob, b"forged");
    assert!(matches!(repo.blob(&blob), Err(GitError::Forged { .. })));
    let made = workspace::create(&repo, &tree, &scratch.cache().join("w"), None);
    assert!(made.is_err());
    forge(&scratch, &inner, Kind::Tree, b"");
    assert!(
        repo.read_tree(&tree).is_ok(),
        "it was read while it was sound"
    );
    let read = scratch.open().read_tree(&tree);
    assert!(matches!(read, Err(GitError::Forged { .. })), "{read:?}");
    forge(
        &scratch,
        &head,
        Kind::Commit,
        format!("tree {inner}\n\n").as_bytes(),
    );
    assert!(repo.commit_tree(&head).is_err());
    assert!(repo.resolve("HEAD").is_err());
    let missing = ObjectFormat::Sha1
        .oid(Kind::Blob, b"no repository has this")
        .unwrap();
    assert!(matches!(repo.blob(&missing), Err(GitError::Missing { .. })));
    assert!(matches!(repo.blob(&tree), Err(GitError::WrongKind { .. })));
}

#[test]
fn a_tree_that_would_write_into_git_directories_is_refused() {
    let scratch = base();
    let repo = scratch.open();
    let blob = repo.write(Kind::Blob, b"[core]\n").unwrap();
    for name in [".git", ".GIT", "..", "a/b"] {
        let mut bytes = format!("100644 {name}\0").into_bytes();
        bytes.extend_from_slice(&blob.to_bytes());
        let oid = ObjectFormat::Sha1.oid(Kind::Tree, &bytes).unwrap();
        forge(&scratch, &oid, Kind::Tree, &bytes);
        let made = workspace::create(&repo, &oid, &scratch.cache().join("w"), None);
        assert!(made.is_err(), "{name}");
        workspace::remove(&scratch.cache(), &scratch.cache().join("w")).unwrap();
    }
}

#[test]
fn packs_of_any_size_arrive() {
    for format in ["sha1", "sha256"] {
        let scratch = Scratch::with(&["--object-format", format]);
        let repo = scratch.open();
        for count in [0, 1, 99, 100, 2000] {
            let mut writer = pack::Writer::new(repo.format());
            let mut oids = Vec::new();
            for number in 0..count {
                let bytes = format!("{count} {number} {}", "x".repeat(number));
                oids.push(writer.add(Kind::Blob, bytes.as_bytes()).unwrap());
            }
            repo.write_pack(writer.finish()).unwrap();
            let mut arrived = 0;
            let read = repo.batch().unwrap().each(&oids, |_, kind, _| {
                arrived += usize::from(kind == Kind::Blob);
                Ok::<(), GitError>(())
            });
            read.unwrap();
            assert_eq!(arrived, count);
        }
        scratch.git(&["fsck", "--strict"]);
    }
}

#[test]
fn a_commit_is_a_function_of_its_arguments() {
    let scratch = base();
    let repo = scratch.open();
    let head = repo.resolve("HEAD").unwrap();
    let tree = repo.commit_tree(&head).unwrap();
    let person = Person {
        name: "A B".to_owned(),
        mail: "a@b".to_owned(),
        time: 1_700_000_000,
    };
    let make = || {
        repo.commit(
            &tree,
            std::slice::from_ref(&head),
            "words\n\n",
            &person,
            &person,
        )
    };
    let commit = make().unwrap();
    assert_eq!(make().unwrap(), commit);
    assert_eq!(repo.commit_tree(&commit).unwrap(), tree);
    assert_eq!(
        scratch.git(&["log", "-1", "--format=%an|%ae|%at|%s", commit.as_str()]),
        "A B|a@b|1700000000|words"
    );
    scratch.git(&["fsck", "--strict", commit.as_str()]);
    for name in ["", "a<b", "a\nb"] {
        let bad = Person {
            name: name.to_owned(),
            ..person.clone()
        };
        assert!(
            repo.commit(&tree, &[], "x", &bad, &person).is_err(),
            "{name:?}"
        );
    }
    assert!(repo.commit(&head, &[], "x", &person, &person).is_err());
}

#[test]
fn refs_move_by_compare_and_swap_and_only_ours() {
    let scratch = base();
    let repo = scratch.open();
    let one = repo.resolve("HEAD").unwrap();
    let two = scratch.commit();
    let two = if two == one {
        scratch.git(&["rev-parse", "HEAD"]).try_into().unwrap()
    } else {
        two
    };
    let name = "refs/provost/run/1";
    repo.keep(name, &one, &Expected::Absent).unwrap();
    let again = repo.keep(name, &two, &Expected::Absent);
    assert!(matches!(again, Err(GitError::RefMoved { .. })), "{again:?}");
    repo.keep(name, &two, &Expected::Is(one.clone())).unwrap();
    let late = repo.keep(name, &one, &Expected::Is(one.clone()));
    assert!(matches!(late, Err(GitError::RefMoved { .. })), "{late:?}");
    repo.keep("refs/heads/provost/x", &one, &Expected::Any)
        .unwrap();
    assert_eq!(
        repo.refs("refs/provost/").unwrap(),
        [(name.to_owned(), two.clone())].into()
    );
    assert!(repo.delete_ref(name, &one).is_err());
    repo.delete_ref(name, &two).unwrap();
    assert_eq!(repo.ref_value(name).unwrap(), None);
    for name in [
        "refs/heads/main",
        "HEAD",
        "refs/provost",
        "refs/provost/",
        "refs/provost/../heads/main",
        "refs/provost/a..b",
        "refs/provost/-x",
        "refs/provost/a b",
        "refs/provost/.a",
        "refs/provost/a.lock",
        "refs/heads/provostx",
    ] {
        let refused = repo.keep(name, &one, &Expected::Any);
        assert!(
            matches!(refused, Err(GitError::RefRefused { .. })),
            "{name}"
        );
    }
    // A symbolic ref of ours is replaced, not followed.
    scratch.git(&["symbolic-ref", "refs/provost/sym", "refs/heads/main"]);
    let main = repo.ref_value("refs/heads/main").unwrap();
    repo.keep("refs/provost/sym", &one, &Expected::Any).unwrap();
    assert_eq!(repo.ref_value("refs/heads/main").unwrap(), main);
}

#[test]
fn trees_merge_or_conflict() {
    let scratch = base();
    let repo = scratch.open();
    let tree = |repo: &Repository| repo.commit_tree(&repo.resolve("HEAD").unwrap()).unwrap();
    let base = tree(&repo);
    scratch.file("a", "1\n2\n3\n4\nfive\n");
    scratch.commit();
    let ours = tree(&repo);
    scratch.git(&["reset", "-q", "--hard", "HEAD^"]);
    scratch.file("a", "one\n2\n3\n4\n5\n");
    scratch.file("new", "n");
    scratch.commit();
    let theirs = tree(&repo);
    let Merged::Clean(merged) = repo.merge_tree(&base, &ours, &theirs).unwrap() else {
        panic!("no clean merge");
    };
    let read = repo.read_tree(&merged).unwrap();
    let files = &read.files;
    let bytes = repo
        .blob(&files[&provost_core::path::RawPath::new("a")].oid)
        .unwrap();
    assert_eq!(bytes, b"one\n2\n3\n4\nfive\n");
    scratch.file("a", "1\n2\n3\n4\nfünf\n");
    scratch.commit();
    let conflict = repo.merge_tree(&base, &ours, &tree(&repo)).unwrap();
    assert_eq!(
        conflict,
        Merged::Conflict(vec![provost_core::path::RawPath::new("a")])
    );
}

/// The files of the store's packs with this extension.
fn packs(scratch: &Scratch, extension: &str) -> Vec<std::path::PathBuf> {
    let place = scratch.root().join(".git/objects/pack");
    let entries = std::fs::read_dir(place).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == extension))
        .collect()
}

#[test]
fn what_is_written_is_held_until_it_is_released_and_git_reads_it() {
    for count in [1, 2, 99, 100, 150] {
        let scratch = base();
        let repo = scratch.open();
        // One `.keep` file of a dead process, one of another program.
        let place = scratch.root().join(".git/objects/pack");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("pack-dead.keep"), "provost {}").unwrap();
        std::fs::write(place.join("pack-mine.keep"), "mine").unwrap();
        let mut writer = pack::Writer::new(repo.format());
        let mut all = Vec::new();
        for number in 0..count {
            let bytes = format!("object {number}\n");
            all.push((writer.add(Kind::Blob, bytes.as_bytes()).unwrap(), bytes));
        }
        repo.write_pack(writer.finish()).unwrap();
        let again = all[0].1.as_bytes();
        assert_eq!(repo.write(Kind::Blob, again).unwrap(), all[0].0);
        assert_eq!(packs(&scratch, "keep").len(), 3, "{count}");
        for words in [
            &["gc", "-q", "--prune=now"][..],
            &["repack", "-a", "-d", "-q"],
            &["prune", "--expire=now"],
            &["fsck", "--full"],
        ] {
            scratch.git(words);
        }
        for (oid, bytes) in &all {
            assert_eq!(repo.blob(oid).unwrap(), bytes.as_bytes(), "{count}");
        }
        for index in packs(&scratch, "idx") {
            scratch.git(&["verify-pack", &index.display().to_string()]);
        }
        repo.release();
        let left = packs(&scratch, "keep");
        assert_eq!(left, [place.join("pack-mine.keep")], "{count}");
    }
}

#[test]
fn a_ref_to_what_is_not_there_is_taken_back_and_found() {
    let scratch = base();
    let repo = scratch.open();
    let name = "refs/provost/runs/x/1";
    let commit = repo.resolve("HEAD").unwrap();
    repo.keep(name, &commit, &Expected::Any).unwrap();
    let gone = Oid::try_from("0123456789012345678901234567890123456789").unwrap();
    let other = "refs/provost/runs/y/1";
    assert!(repo.keep(other, &gone, &Expected::Any).is_err());
    assert_eq!(repo.ref_value(other).unwrap(), None);
    let refs = repo.refs("refs/provost/").unwrap();
    assert_eq!(repo.dangling(refs.iter()).unwrap(), [""; 0]);
    // First a file of the tree is pruned, then the commit itself.
    let blob = scratch.git(&["rev-parse", "HEAD:d/b"]);
    let tree = scratch.git(&["rev-parse", "HEAD^{tree}"]);
    for object in [blob, tree, commit.to_string()] {
        let path = format!(".git/objects/{}/{}", &object[..2], &object[2..]);
        std::fs::remove_file(scratch.root().join(path)).unwrap();
        let repo = scratch.open();
        assert_eq!(repo.dangling(refs.iter()).unwrap(), [name], "{object}");
    }
}
