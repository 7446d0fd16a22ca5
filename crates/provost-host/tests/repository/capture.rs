//! Capture turns the files that an agent left into exactly that tree.

use std::os::unix::fs::symlink;

use provost_core::object::{Mode as FileMode, ObjectFormat};
use provost_host::capture::{Limits, Mode, capture};
use provost_host::workspace;

use crate::scratch::{Scratch, changed, chmod, found, git, put, take};

/// A repository with everything that makes git change bytes.
fn odd(options: &[&str]) -> Scratch {
    let scratch = Scratch::with(options);
    scratch.file("plain.txt", "one\ntwo\n");
    scratch.file("crlf.txt", "one\r\ntwo\r\n");
    scratch.file("mixed.bin", b"a\0b\r\n");
    scratch.file("id.c", "$Id$\n");
    scratch.file("latin.txt", b"\xe9\n");
    scratch.file("empty", "");
    scratch.file("dir/deep/er/x.sh", "#!/bin/sh\n");
    chmod(&scratch.root().join("dir/deep/er/x.sh"), 0o755);
    scratch.file("dir.txt", "sorts before dir/");
    scratch.file("name with \"quotes\" and ünï", "odd\n");
    symlink("../plain.txt", scratch.root().join("dir/link")).unwrap();
    symlink("/nowhere", scratch.root().join("dangling")).unwrap();
    scratch.git(&["add", "-A"]);
    let attributes = "* text=auto eol=crlf\nid.c ident\n*.txt filter=evil diff=evil\n\
                      latin.txt working-tree-encoding=latin1\n";
    scratch.file(".gitattributes", attributes);
    scratch.file(".gitignore", "*.o\n/build/\n!keep.o\n");
    scratch.git(&["add", "-f", ".gitattributes", ".gitignore"]);
    scratch.git(&["commit", "-q", "-m", "odd"]);
    scratch
}

#[test]
fn an_untouched_workspace_is_the_base_tree() {
    for options in [&[][..], &["--object-format=sha256"]] {
        let scratch = odd(options);
        let (repo, tree, workspace) = scratch.workspace("w");
        let sha256 = repo.format() == ObjectFormat::Sha256;
        assert_eq!(sha256, !options.is_empty());
        let captured = take(&repo, &tree, &workspace);
        assert_eq!(captured.tree, tree);
        assert_eq!(captured.changes, []);
        assert_eq!(captured.findings, []);
        assert_eq!(captured.new_objects, 0);
        assert_eq!(git(&workspace.tree, &["status", "--porcelain"]), "");
        assert_eq!(
            git(&workspace.tree, &["log", "--oneline"]).lines().count(),
            1
        );
        workspace::remove(&scratch.cache(), &workspace.root).unwrap();
        assert!(!workspace.root.exists());
    }
}

#[test]
fn edits_are_seen_whatever_git_in_the_workspace_says() {
    for options in [&[][..], &["--object-format=sha256"]] {
        let scratch = odd(options);
        let (repo, tree, workspace) = scratch.workspace("w");
        let root = &workspace.tree;
        put(root, "plain.txt", "changed\n");
        put(root, "new/file.txt", "new\r\n");
        put(root, "new/.gitignore", "*\n");
        put(root, "x.o", "object");
        put(root, "build/out", "1234567");
        std::fs::remove_file(root.join("empty")).unwrap();
        std::fs::rename(root.join("dir/deep/er/x.sh"), root.join("moved.sh")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        put(root, ".git/info/exclude", "etc\nnew\n");
        git(root, &["add", "-A"]);
        git(root, &["update-index", "--assume-unchanged", "plain.txt"]);
        git(
            root,
            &["config", "filter.evil.clean", "touch ran; echo evil"],
        );
        git(root, &["config", "core.worktree", "/"]);
        let captured = take(&repo, &tree, &workspace);
        let want = [
            "dir/deep/er/x.sh",
            "empty",
            "etc",
            "moved.sh",
            "new/.gitignore",
            "new/file.txt",
            "plain.txt",
        ];
        assert_eq!(changed(&captured), want);
        assert_eq!(found(&captured), [].into());
        assert_eq!((captured.ignored.files, captured.ignored.bytes), (2, 13));
        let link = captured.changes[2].link.as_ref().unwrap();
        assert_eq!(link.to_string(), "/etc");
        assert!(!root.join("ran").exists());
        let read = repo.read_tree(&captured.tree).unwrap();
        let files = &read.files;
        assert_eq!(files.len(), 15);
        let names = repo.names(&tree, &captured.tree).unwrap();
        assert_eq!(
            names,
            captured
                .changes
                .iter()
                .map(|one| one.path.clone())
                .collect::<Vec<_>>()
        );
        scratch.git(&["fsck", "--strict", captured.tree.as_str()]);
    }
}

#[test]
fn a_comparison_gives_the_same_tree_and_writes_nothing() {
    let scratch = odd(&[]);
    let (repo, tree, workspace) = scratch.workspace("w");
    put(&workspace.tree, "plain.txt", "changed\n");
    let limits = Limits::default();
    let compared = capture(&repo, &tree, &workspace.source(), &limits, Mode::Compare).unwrap();
    assert!(repo.read_tree(&compared.tree).is_err());
    let captured = take(&repo, &tree, &workspace);
    assert_eq!(captured.tree, compared.tree);
    assert_eq!(compared.new_objects, 2);
    assert!(repo.read_tree(&compared.tree).is_ok());
}

#[test]
fn modes_kinds_and_bytes_are_distinguished() {
    let scratch = odd(&[]);
    let (repo, tree, workspace) = scratch.workspace("w");
    let root = &workspace.tree;
    chmod(&root.join("plain.txt"), 0o755);
    chmod(&root.join("dir/deep/er/x.sh"), 0o611);
    std::fs::remove_file(root.join("dangling")).unwrap();
    put(root, "dangling", "/nowhere");
    std::fs::remove_file(root.join("crlf.txt")).unwrap();
    symlink("x", root.join("crlf.txt")).unwrap();
    put(root, "mixed.bin", "text now\n");
    let mut late = vec![b'a'; 100_000];
    late.push(0);
    put(root, "late.bin", &late);
    std::fs::remove_file(root.join("dir.txt")).unwrap();
    put(root, "dir.txt/inner", "directory now\n");
    let captured = take(&repo, &tree, &workspace);
    let facts: Vec<_> = captured
        .changes
        .iter()
        .map(|one| {
            let mode = |side: &Option<provost_core::change::Node>| side.as_ref().map(|it| it.mode);
            (
                one.path.to_string(),
                mode(&one.before),
                mode(&one.after),
                one.binary,
            )
        })
        .collect();
    let (file, run, link) = (
        Some(FileMode::File),
        Some(FileMode::Executable),
        Some(FileMode::Symlink),
    );
    let want = [
        ("crlf.txt", file, link, false),
        ("dangling", link, file, false),
        ("dir.txt", file, None, false),
        ("dir.txt/inner", None, file, false),
        ("dir/deep/er/x.sh", run, file, false),
        ("late.bin", None, file, true),
        ("mixed.bin", file, file, true),
        ("plain.txt", file, run, false),
    ];
    let want: Vec<_> = want
        .map(|(path, b, a, binary)| (path.to_owned(), b, a, binary))
        .into();
    assert_eq!(facts, want);
}

#[test]
fn a_gitlink_stays_as_long_as_its_directory_is_empty() {
    let scratch = Scratch::new();
    scratch.file("a", "a");
    let commit = scratch.commit();
    let entry = format!("160000,{commit},sub/module");
    scratch.git(&["update-index", "--add", "--cacheinfo", &entry]);
    scratch.git(&["commit", "-q", "-m", "module"]);
    let (repo, tree, workspace) = scratch.workspace("w");
    assert!(workspace.tree.join("sub/module").is_dir());
    assert_eq!(take(&repo, &tree, &workspace).tree, tree);

    put(&workspace.tree, "sub/module/file", "x");
    let captured = take(&repo, &tree, &workspace);
    assert_eq!(changed(&captured), ["sub/module", "sub/module/file"]);
    std::fs::remove_dir_all(workspace.tree.join("sub")).unwrap();
    let captured = take(&repo, &tree, &workspace);
    assert_eq!(changed(&captured), ["sub/module"]);
}

#[test]
fn a_mode_of_old_repositories_is_no_change() {
    let scratch = Scratch::new();
    scratch.file("a", "a\n");
    scratch.commit();
    let repo = scratch.open();
    let oid = repo
        .write(provost_core::object::Kind::Blob, b"text\n")
        .unwrap();
    // As git wrote trees in its first months; no present version does.
    let mut inner = b"100664 old\0".to_vec();
    inner.extend(oid.to_bytes());
    let inner = write_tree(&scratch, &inner);
    let mut root = b"100664 beside\0".to_vec();
    root.extend(oid.to_bytes());
    root.extend(b"40000 dir\0");
    root.extend(inner.to_bytes());
    root.extend(b"100664 other\0");
    root.extend(oid.to_bytes());
    let root = write_tree(&scratch, &root);
    let commit = scratch.git(&["commit-tree", "-m", "old", root.as_str()]);
    scratch.git(&["update-ref", "HEAD", &commit]);

    let (repo, tree, workspace) = scratch.workspace("w");
    assert_eq!(tree, root);
    let captured = take(&repo, &tree, &workspace);
    assert_eq!((captured.tree, captured.changes), (tree.clone(), vec![]));
    assert_eq!(git(&workspace.tree, &["status", "--porcelain"]), "");

    put(&workspace.tree, "other", "changed\n");
    let captured = take(&repo, &tree, &workspace);
    assert_eq!(changed(&captured), ["other"]);
    assert_eq!(found(&captured), [].into());
    let names = repo.names(&tree, &captured.tree).unwrap();
    assert_eq!(names, [provost_core::path::RawPath::new("other")]);
    let patch = String::from_utf8(repo.patch(&tree, &captured.tree).unwrap()).unwrap();
    assert_eq!(patch.matches("diff --git").count(), 1, "{patch}");
    scratch.git(&["fsck", "--strict", captured.tree.as_str()]);
}

/// Writes a tree object without git's checks.
fn write_tree(scratch: &Scratch, bytes: &[u8]) -> provost_core::object::Oid {
    std::fs::write(scratch.outer().join("tree"), bytes).unwrap();
    let arguments = ["hash-object", "-w", "--literally", "-t", "tree", "../tree"];
    scratch.git(&arguments).try_into().unwrap()
}

#[test]
fn empty_directories_vanish() {
    let scratch = Scratch::new();
    scratch.file("a/b", "a");
    scratch.commit();
    let (repo, tree, workspace) = scratch.workspace("w");
    std::fs::create_dir_all(workspace.tree.join("x/y/z")).unwrap();
    let captured = take(&repo, &tree, &workspace);
    assert_eq!((captured.tree, captured.findings), (tree, vec![]));
}
