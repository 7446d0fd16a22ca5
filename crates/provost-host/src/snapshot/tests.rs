use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A checkout made by hand: reading one needs no git.
fn checkout() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let git = place.path().join(".git");
    for directory in ["objects/info", "refs/heads", "refs/tags", "hooks", "info"] {
        fs::create_dir_all(git.join(directory)).unwrap();
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(git.join("config"), "[core]\n").unwrap();
    fs::write(git.join("refs/heads/main"), format!("{}\n", "1".repeat(40))).unwrap();
    let packed = format!(
        "# pack-refs\n{} refs/tags/v1\n^{}\n",
        "2".repeat(40),
        "3".repeat(40)
    );
    fs::write(git.join("packed-refs"), packed).unwrap();
    place
}

fn differences(act: impl FnOnce(&Path)) -> Vec<String> {
    let place = checkout();
    let before = Snapshot::take(place.path()).unwrap();
    act(&place.path().join(".git"));
    let now = Snapshot::take_at(before.layout.clone()).unwrap();
    let line = |sign: &Sign| format!("{:?} {}", sign.reason, sign.path);
    before.compare(&now).iter().map(line).collect()
}

#[test]
fn names_are_found_among_the_refs() {
    let place = checkout();
    let snapshot = Snapshot::take(place.path()).unwrap();
    let find = |name: &str| named(name, &snapshot.refs).map(|oid| oid.as_str()[..1].to_owned());
    let full = "a".repeat(40);
    let cases = [
        ("HEAD", Some("1")),
        ("main", Some("1")),
        ("heads/main", Some("1")),
        ("refs/heads/main", Some("1")),
        ("v1", Some("2")),
        (full.as_str(), Some("a")),
        ("nowhere", None),
        ("", None),
        ("HEAD~1", None),
    ];
    for (name, want) in cases {
        assert_eq!(find(name).as_deref(), want, "{name}");
    }
}

#[test]
fn a_snapshot_comes_back_from_its_text() {
    let place = checkout();
    let snapshot = Snapshot::take(place.path()).unwrap();
    let text = snapshot.render().to_string();
    assert_eq!(Snapshot::parse(text.as_bytes()).unwrap(), snapshot);
    let other = text.replace("\"version\":1", "\"version\":2");
    assert!(matches!(
        Snapshot::parse(other.as_bytes()),
        Err(SnapshotError::Version(2))
    ));
    for wrong in ["", "{}", "[]", "null"] {
        assert!(Snapshot::parse(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn what_steers_git_is_compared() {
    let write = |name: &'static str| move |git: &Path| fs::write(git.join(name), "x\n").unwrap();
    assert_eq!(differences(|_| ()), [""; 0]);
    assert_eq!(differences(write("COMMIT_EDITMSG")), [""; 0]);
    assert_eq!(differences(write("config")), ["RepoTamper .git/config"]);
    assert_eq!(
        differences(write("hooks/pre-commit")),
        ["RepoTamper .git/hooks/pre-commit"]
    );
    assert_eq!(
        differences(write("info/grafts")),
        ["RepoTamper .git/info/grafts"]
    );
    assert_eq!(
        differences(|git| fs::remove_file(git.join("config")).unwrap()),
        ["RepoTamper .git/config"]
    );
    assert_eq!(
        differences(|git| {
            fs::remove_dir(git.join("hooks")).unwrap();
            symlink("/etc", git.join("hooks")).unwrap();
        }),
        ["RepoTamper .git/hooks"]
    );
    assert_eq!(
        differences(write("info/sparse-checkout")),
        [
            "RepoTamper .git/info/sparse-checkout",
            "HiddenChange .git/info/sparse-checkout"
        ]
    );
}

#[test]
fn only_the_branch_of_the_work_may_move() {
    let point = |name: &'static str, digit: &'static str| {
        move |git: &Path| {
            let path = git.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{}\n", digit.repeat(40))).unwrap();
        }
    };
    assert_eq!(differences(point("refs/heads/main", "9")), [""; 0]);
    assert_eq!(differences(point("refs/provost/runs/x", "9")), [""; 0]);
    assert_eq!(differences(point("refs/tags/v1", "2")), [""; 0]);
    assert_eq!(
        differences(point("refs/tags/v1", "9")),
        ["RefsChanged refs/tags/v1"]
    );
    assert_eq!(
        differences(point("refs/heads/side", "9")),
        ["RefsChanged refs/heads/side"]
    );
    assert_eq!(
        differences(point("refs/replace/x", "9")),
        ["RefsChanged refs/replace/x", "RepoTamper refs/replace/x"]
    );
    assert_eq!(differences(point("HEAD", "9")), ["RefsChanged HEAD"]);
    assert_eq!(
        differences(|git| fs::remove_file(git.join("refs/heads/main")).unwrap()),
        ["RefsChanged refs/heads/main"]
    );
}

#[test]
fn what_is_no_checkout_has_no_snapshot() {
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(
        Snapshot::take(empty.path()),
        Err(SnapshotError::NoCheckout(_))
    ));
    let place = checkout();
    fs::create_dir(place.path().join(".git/reftable")).unwrap();
    assert!(matches!(
        Snapshot::take(place.path()),
        Err(SnapshotError::RefFormat(_))
    ));
    let place = checkout();
    fs::remove_file(place.path().join(".git/HEAD")).unwrap();
    assert!(Snapshot::take(place.path()).is_err());
}
