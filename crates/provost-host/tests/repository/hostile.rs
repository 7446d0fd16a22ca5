//! Whatever an agent leaves to hang, mislead or escape becomes a finding.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use provost_core::change::FindingKind::{self, *};
use provost_host::capture::{CaptureError, Limits, Mode, Source, capture};
use provost_host::git::Repository;
use provost_host::workspace;

use crate::scratch::{Scratch, changed, chmod, found, git, put, take};

fn base() -> Scratch {
    let scratch = Scratch::new();
    scratch.file("src/lib.rs", "fn main() {}\n");
    scratch.file("README.md", "read me\n");
    scratch.file(".gitignore", "/target/\n");
    scratch.commit();
    scratch
}

/// Runs `damage` in a workspace and returns the findings of capture; then removes the workspace.
fn findings(damage: impl FnOnce(&Path)) -> Vec<(String, FindingKind)> {
    let scratch = base();
    let (repo, tree, workspace) = scratch.workspace("w");
    damage(&workspace.tree);
    let found = found(&take(&repo, &tree, &workspace)).into_iter().collect();
    workspace::remove(&scratch.cache(), &workspace.root).unwrap();
    assert!(!workspace.root.exists());
    found
}

fn fifo(path: &Path) {
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn special_files_are_found_and_do_not_block() {
    let got = findings(|root| {
        fifo(&root.join("src/pipe"));
        UnixListener::bind(root.join("s")).unwrap();
        std::fs::create_dir(root.join("target")).unwrap();
        fifo(&root.join("target/ignored"));
    });
    assert_eq!(
        got,
        [("s".into(), SpecialFile), ("src/pipe".into(), SpecialFile)]
    );
}

#[test]
fn a_huge_sparse_file_is_not_read() {
    let got = findings(|root| {
        let file = std::fs::File::create(root.join("big")).unwrap();
        file.set_len(1 << 40).unwrap();
        std::fs::create_dir(root.join("target")).unwrap();
        let file = std::fs::File::create(root.join("target/big")).unwrap();
        file.set_len(1 << 40).unwrap();
    });
    assert_eq!(got, [("big".into(), TooLarge)]);
}

#[test]
fn very_deep_directories_are_found_and_removed() {
    let got = findings(|root| {
        for start in ["deep", "target"] {
            std::fs::create_dir(root.join(start)).unwrap();
            let mut here = std::fs::File::open(root.join(start)).unwrap();
            for _ in 0..3000 {
                let mode = rustix::fs::Mode::RWXU;
                rustix::fs::mkdirat(&here, "d", mode).unwrap();
                let flags = rustix::fs::OFlags::RDONLY;
                here = rustix::fs::openat(&here, "d", flags, mode).unwrap().into();
            }
        }
    });
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].1, TooDeep);
    assert!(got[0].0.starts_with("deep/d/d/"));
}

#[test]
fn what_cannot_be_read_is_found() {
    let root_user = rustix::process::geteuid().is_root();
    let got = findings(|root| {
        put(root, "closed/file", "x");
        chmod(&root.join("closed"), 0);
        put(root, "secret", "x");
        chmod(&root.join("secret"), 0);
        put(root, "listed/file", "x");
        chmod(&root.join("listed"), 0o400);
        put(root, "target/closed/file", "x");
        chmod(&root.join("target/closed"), 0);
    });
    let want = [
        ("closed".into(), Unreadable),
        ("listed".into(), Unreadable),
        ("secret".into(), Unreadable),
    ];
    assert_eq!(got, if root_user { vec![] } else { want.to_vec() });
}

#[test]
fn names_that_mislead_are_found() {
    let got = findings(|root| {
        for name in [
            &b"new\nline"[..],
            b"back\\slash",
            b"\xff\xfe",
            b"esc\x1b[2J",
            b"fine \xc3\xbc",
        ] {
            std::fs::write(root.join(OsStr::from_bytes(name)), "x").unwrap();
        }
        std::fs::create_dir(root.join("bad\ndir")).unwrap();
        std::fs::write(root.join("bad\ndir/file"), "x").unwrap();
    });
    let want = [
        "\\xff\\xfe",
        "back\\x5cslash",
        "bad\\x0adir",
        "esc\\x1b[2J",
        "new\\x0aline",
    ];
    let names: std::collections::BTreeSet<&str> =
        got.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, want.into());
    assert!(got.iter().all(|(_, kind)| *kind == BadName));
}

#[test]
fn names_that_the_base_has_already_are_no_finding() {
    let scratch = Scratch::new();
    scratch.file("back\\slash", "x");
    scratch.file("Twin", "x");
    scratch.file("twin", "y");
    scratch.commit();
    let (repo, tree, workspace) = scratch.workspace("w");
    put(&workspace.tree, "twin", "changed");
    let captured = take(&repo, &tree, &workspace);
    assert_eq!(
        (changed(&captured), captured.findings),
        (vec!["twin".to_owned()], vec![])
    );
}

#[test]
fn twins_are_found() {
    let got = findings(|root| {
        put(root, "readme.MD", "x");
        put(root, "SRC/other", "x");
        put(root, "target/LIB", "x");
        put(root, "target/lib", "x");
    });
    assert_eq!(
        got,
        [("SRC".into(), CaseTwin), ("readme.MD".into(), CaseTwin)]
    );
}

#[test]
fn twins_in_the_form_of_their_letters_are_found() {
    let scratch = Scratch::new();
    scratch.file("caf\u{e9}/menu", "x");
    scratch.file("plain", "x");
    scratch.commit();
    let (repo, tree, workspace) = scratch.workspace("w");
    put(&workspace.tree, "cafe\u{301}/wine", "x");
    put(&workspace.tree, "CAF\u{c9}/MENU", "x");
    put(&workspace.tree, "plain.", "x");
    put(&workspace.tree, "new/\u{fc}", "x");
    put(&workspace.tree, "new/u\u{308}", "x");
    put(&workspace.tree, "new/u", "x");
    let want = [
        "CAF\u{c9}",
        "CAF\u{c9}/MENU",
        "cafe\u{301}",
        "new/u\u{308}",
        "new/\u{fc}",
        "plain.",
    ];
    assert_eq!(
        found(&take(&repo, &tree, &workspace)),
        want.map(|path| (path.to_owned(), CaseTwin)).into()
    );
}

#[test]
fn hard_links_are_found_where_they_matter() {
    let got = findings(|root| {
        std::fs::hard_link(root.join("src/lib.rs"), root.join("copy.rs")).unwrap();
        put(root, "target/out", "built");
        std::fs::hard_link(root.join("target/out"), root.join("out")).unwrap();
        std::fs::hard_link(root.join("README.md"), root.join("target/readme")).unwrap();
    });
    let want = [
        ("copy.rs", HardLink),
        ("out", HardLink),
        ("src/lib.rs", HardLink),
    ];
    assert_eq!(got, want.map(|(path, kind)| (path.to_owned(), kind)));
}

#[test]
fn set_id_bits_are_found() {
    let got = findings(|root| {
        put(root, "run", "x");
        chmod(&root.join("run"), 0o4755);
        put(root, "group", "x");
        chmod(&root.join("group"), 0o2755);
    });
    assert_eq!(got, [("group".into(), SetId), ("run".into(), SetId)]);
}

#[test]
fn repositories_inside_are_found_and_their_files_seen() {
    let scratch = base();
    let (repo, tree, workspace) = scratch.workspace("w");
    let root = &workspace.tree;
    std::fs::create_dir(root.join("vendor")).unwrap();
    git(&root.join("vendor"), &["init", "-q"]);
    put(root, "vendor/code.c", "x");
    put(root, "file/.git", "gitdir: /elsewhere\n");
    put(root, "case/.GIT/config", "x");
    put(root, ".Git/config", "x");
    put(root, "git~1/config", "x");
    put(root, "blank/.git /config", "x");
    put(root, "stream/.git::$INDEX_ALLOCATION/config", "x");
    put(root, "skipped/.g\u{200c}it/config", "x");
    let captured = take(&repo, &tree, &workspace);
    let want = [
        ".Git", "blank", "case", "file", "git~1", "skipped", "stream", "vendor",
    ];
    let want = want.map(|path| (path.to_owned(), NestedRepository));
    assert_eq!(found(&captured), want.into());
    assert_eq!(changed(&captured), ["vendor/code.c"]);
}

#[test]
fn the_workspace_s_own_git_directory_decides_nothing() {
    let scratch = base();
    let (repo, tree, workspace) = scratch.workspace("w");
    let git_dir = workspace.git.clone().unwrap();
    std::fs::remove_dir_all(&git_dir).unwrap();
    symlink("/etc", &git_dir).unwrap();
    assert_eq!(take(&repo, &tree, &workspace).tree, tree);
    std::fs::remove_file(&git_dir).unwrap();
    std::fs::write(&git_dir, "gitdir: /etc\n").unwrap();
    let captured = take(&repo, &tree, &workspace);
    assert_eq!((captured.tree, captured.findings), (tree, vec![]));
}

#[test]
fn links_are_never_followed() {
    let scratch = base();
    let outside = scratch.outer().join("outside");
    put(&outside, "lib.rs", "outside\n");
    let (repo, tree, workspace) = scratch.workspace("w");
    std::fs::remove_dir_all(workspace.tree.join("src")).unwrap();
    symlink(&outside, workspace.tree.join("src")).unwrap();
    symlink(".", workspace.tree.join("loop")).unwrap();
    let captured = take(&repo, &tree, &workspace);
    assert_eq!(changed(&captured), ["loop", "src", "src/lib.rs"]);
    workspace::remove(&scratch.cache(), &workspace.root).unwrap();
    assert!(outside.join("lib.rs").exists());

    symlink(&outside, scratch.cache().join("link")).unwrap();
    let at = scratch.cache().join("link");
    let result = capture(
        &repo,
        &tree,
        &Source::Directory(at),
        &Limits::default(),
        Mode::Record,
    );
    assert!(
        matches!(result, Err(CaptureError::Open { .. })),
        "{result:?}"
    );
}

#[test]
fn limits_are_findings() {
    let scratch = base();
    let (repo, tree, workspace) = scratch.workspace("w");
    for number in 0..50 {
        put(&workspace.tree, &format!("many/{number:02}"), "0123456789");
        put(
            &workspace.tree,
            &format!("target/{number:02}"),
            "0123456789",
        );
    }
    let normal = Limits::default();
    let cases = [
        (
            "count",
            Limits {
                count: 30,
                ..normal.clone()
            },
            TooMany,
        ),
        (
            "ignored",
            Limits {
                ignored_count: 30,
                ..normal.clone()
            },
            TooMany,
        ),
        (
            "total",
            Limits {
                total_bytes: 100,
                ..normal.clone()
            },
            TooLarge,
        ),
        (
            "new",
            Limits {
                new_bytes: 100,
                ..normal.clone()
            },
            TooLarge,
        ),
        (
            "one",
            Limits {
                file_bytes: 9,
                ..normal.clone()
            },
            TooLarge,
        ),
        (
            "depth",
            Limits {
                depth: 0,
                ..normal.clone()
            },
            TooDeep,
        ),
    ];
    for (name, limits, want) in cases {
        let captured = capture(&repo, &tree, &workspace.source(), &limits, Mode::Record).unwrap();
        let kinds: Vec<FindingKind> = captured.findings.iter().map(|one| one.kind).collect();
        let all = !kinds.is_empty() && kinds.iter().all(|kind| *kind == want);
        // All fifty files differ, so the new-content limit is only hit by distinct bytes as well.
        assert!(all, "{name}: {kinds:?}");
    }
}

#[test]
fn more_changes_than_the_limit_are_not_captured() {
    let scratch = base();
    let (repo, tree, workspace) = scratch.workspace("w");
    let root = &workspace.tree;
    put(root, "README.md", "changed\n");
    put(root, "new", "new\n");
    std::fs::remove_file(root.join("src/lib.rs")).unwrap();
    let at_most = |changes| {
        let limits = Limits {
            changes,
            ..Limits::default()
        };
        let captured = capture(&repo, &tree, &workspace.source(), &limits, Mode::Record);
        captured.map(|captured| captured.changes.len())
    };
    assert_eq!(at_most(3).unwrap(), 3);
    // By added and removed paths, and by files changed in place.
    for most in [0, 1, 2] {
        let refused = at_most(most);
        assert!(
            matches!(refused, Err(CaptureError::TooManyChanges { most: it }) if it == most),
            "{refused:?}"
        );
    }
}

#[test]
fn inherited_git_variables_have_no_effect() {
    const INNER: &str = "PROVOST_TEST_INNER";
    if let Some(root) = std::env::var_os(INNER) {
        let repo = Repository::discover_with(Path::new(&root), &std::env::temp_dir()).unwrap();
        assert_eq!(
            repo.checkout().unwrap(),
            Path::new(&root).canonicalize().unwrap()
        );
        let head = repo.resolve("HEAD").unwrap();
        let tree = repo.commit_tree(&head).unwrap();
        assert_eq!(repo.read_tree(&tree).unwrap().files.len(), 3);
        repo.write(provost_core::object::Kind::Blob, b"written")
            .unwrap();
        return;
    }
    let scratch = base();
    let other = Scratch::new();
    let script = other.outer().join("evil");
    let ran = other.outer().join("ran");
    put(
        other.outer(),
        "evil",
        format!("#!/bin/sh\ntouch {}\n", ran.display()),
    );
    chmod(&script, 0o755);
    put(
        other.outer(),
        "git",
        format!("#!/bin/sh\ntouch {}\n", ran.display()),
    );
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::inherited_git_variables_have_no_effect"])
        .env(INNER, scratch.root())
        .env("GIT_DIR", other.root().join(".git"))
        .env("GIT_WORK_TREE", other.root())
        .env("GIT_INDEX_FILE", other.root().join("index"))
        .env("GIT_OBJECT_DIRECTORY", other.root().join(".git/objects"))
        .env("GIT_CONFIG_COUNT", "2")
        .env("GIT_CONFIG_KEY_0", "core.fsmonitor")
        .env("GIT_CONFIG_VALUE_0", &script)
        .env("GIT_CONFIG_KEY_1", "diff.external")
        .env("GIT_CONFIG_VALUE_1", &script)
        .env("GIT_EXEC_PATH", other.outer())
        .env("GIT_TRACE", ran.as_os_str())
        .env("GIT_PAGER", &script)
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert!(!ran.exists());
    assert_eq!(other.git(&["count-objects"]), "0 objects, 0 kilobytes");
}
