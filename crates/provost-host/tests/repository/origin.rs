//! Moved or copied content names its source.

use provost_core::change::Movement::{self, Copy, Rename};
use provost_host::capture::Captured;

use crate::scratch::{Scratch, put, take};

fn origins(captured: &Captured) -> Vec<(String, String, Movement, u8)> {
    captured
        .changes
        .iter()
        .filter_map(|change| {
            let origin = change.origin.as_ref()?;
            let (path, source) = (change.path.to_string(), origin.path.to_string());
            Some((path, source, origin.how, origin.likeness))
        })
        .collect()
}

#[test]
fn moves_and_copies_name_their_source() {
    let scratch = Scratch::new();
    let text = |word: &str| {
        let lines: Vec<String> = (0..40).map(|line| format!("{word} {line}\n")).collect();
        lines.concat()
    };
    scratch.file("secret/keys.txt", text("key"));
    scratch.file("lib/old.rs", text("old"));
    scratch.file("lib/edited.rs", text("edited"));
    scratch.file("tiny", "x\n");
    scratch.commit();
    let (repo, tree, workspace) = scratch.workspace("w");
    let root = &workspace.tree;
    put(root, "app/exact-copy", text("key"));
    put(root, "app/edited-copy", text("key") + "more\n");
    let part: Vec<String> = (0..30).map(|line| format!("key {line}\n")).collect();
    put(root, "app/part", part.concat() + &"own\n".repeat(10));
    put(root, "app/tiny", "x\n");
    put(root, "app/own", "something else entirely\n".repeat(9));
    std::fs::rename(root.join("lib/old.rs"), root.join("app/new.rs")).unwrap();
    std::fs::remove_file(root.join("lib/edited.rs")).unwrap();
    put(
        root,
        "app/edited.rs",
        text("edited").replace("edited 3\n", "different\n"),
    );
    let captured = take(&repo, &tree, &workspace);
    let want = [
        ("app/edited-copy", "secret/keys.txt", Copy, 98),
        ("app/edited.rs", "lib/edited.rs", Rename, 97),
        ("app/exact-copy", "secret/keys.txt", Copy, 100),
        ("app/new.rs", "lib/old.rs", Rename, 100),
        ("app/part", "secret/keys.txt", Copy, 74),
    ];
    let want = want
        .map(|(path, source, how, likeness)| (path.to_owned(), source.to_owned(), how, likeness));
    assert_eq!(origins(&captured), want);
}
