use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::thread;

use super::*;

fn scratch() -> (tempfile::TempDir, Keys) {
    let scratch = tempfile::tempdir().unwrap();
    let keys = Keys::at(scratch.path().join("config/provost/keys"));
    (scratch, keys)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_key_is_made_once_and_found_again() {
    let (_scratch, keys) = scratch();
    assert!(keys.load().unwrap().is_none());
    assert_eq!(keys.trusted().unwrap(), []);
    let (made, origin) = keys.load_or_create().unwrap();
    assert_eq!(origin, Origin::Made);
    let (found, origin) = keys.load_or_create().unwrap();
    assert_eq!(origin, Origin::Found);
    assert_eq!(made.public(), found.public());
    assert_eq!(keys.trusted().unwrap(), [made.named()]);
    assert_eq!(mode(keys.directory()), 0o700);
    assert_eq!(mode(&keys.directory().join(SECRET)), 0o600);
    assert!(matches!(keys.create("x"), Err(KeysError::Exists { .. })));
    let left = fs::read_dir(keys.directory()).unwrap().count();
    assert_eq!(left, 2, "no draft is left behind");
}

#[test]
fn many_at_once_get_one_key() {
    let (_scratch, keys) = scratch();
    let public: Vec<_> = thread::scope(|scope| {
        let one = || scope.spawn(|| keys.load_or_create().unwrap().0.public());
        let all: Vec<_> = (0..8).map(|_| one()).collect();
        all.into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(public.iter().all(|key| *key == public[0]), "{public:?}");
}

#[test]
fn a_public_line_that_was_lost_comes_back() {
    let (_scratch, keys) = scratch();
    let key = keys.create("ada").unwrap();
    fs::remove_file(keys.directory().join(PUBLIC)).unwrap();
    keys.load_or_create().unwrap();
    assert_eq!(keys.own().unwrap(), Some(key.named()));
    let other = SigningKey::from_seed(&[3; 32], "").unwrap().named();
    fs::write(keys.directory().join(PUBLIC), format!("{other}\n")).unwrap();
    keys.load_or_create().unwrap();
    assert_eq!(keys.trusted().unwrap(), [key.named()]);
}

#[test]
fn keys_that_other_users_have_access_to_are_not_used() {
    let (_scratch, keys) = scratch();
    keys.create("").unwrap();
    let secret = keys.directory().join(SECRET);
    for loose in [0o640, 0o604, 0o660] {
        set_mode(&secret, loose);
        let error = keys.load_or_create().unwrap_err();
        assert!(matches!(error, KeysError::Loose { .. }), "{error}");
        assert!(error.to_string().contains("chmod 600"), "{error}");
        // The list of trusted keys is in another file.
        assert!(keys.trusted().is_ok());
    }
    set_mode(&secret, 0o600);
    set_mode(keys.directory(), 0o750);
    assert!(matches!(
        keys.load(),
        Err(KeysError::Loose { wanted: 0o700, .. })
    ));
    assert!(keys.trusted().is_err());
    set_mode(keys.directory(), 0o700);
    set_mode(&keys.directory().join(PUBLIC), 0o664);
    assert!(keys.trusted().is_err());
}

#[test]
fn a_secret_that_is_no_regular_file_is_refused() {
    let (scratch, keys) = scratch();
    keys.create("").unwrap();
    let secret = keys.directory().join(SECRET);
    let moved = scratch.path().join("moved");
    fs::rename(&secret, &moved).unwrap();
    symlink(&moved, &secret).unwrap();
    assert!(matches!(keys.load(), Err(KeysError::NotRegular { .. })));
    fs::remove_file(&secret).unwrap();
    fs::create_dir(&secret).unwrap();
    assert!(keys.load_or_create().is_err());
    fs::remove_dir(&secret).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &secret, fifo, 0o600.into(), 0).unwrap();
    assert!(matches!(keys.load(), Err(KeysError::NotRegular { .. })));
}

#[test]
fn what_is_no_key_is_named_by_its_line() {
    let (_scratch, keys) = scratch();
    keys.create("").unwrap();
    let other = SigningKey::from_seed(&[3; 32], "bob").unwrap().named();
    assert!(keys.trust(&other).unwrap());
    assert!(!keys.trust(&other).unwrap());
    assert_eq!(keys.trusted().unwrap().len(), 2);
    let list = keys.directory().join(TRUSTED);
    let text = fs::read_to_string(&list).unwrap();
    fs::write(&list, format!("# friends\n\n{text}nonsense\n")).unwrap();
    let error = keys.trusted().unwrap_err();
    assert!(error.to_string().starts_with("line 4 of"), "{error}");
    fs::write(keys.directory().join(SECRET), "").unwrap();
    assert!(matches!(
        keys.load_or_create(),
        Err(KeysError::Line { line: 1, .. })
    ));
}

#[test]
fn keys_in_the_repository_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let repository = scratch.path().join("repository");
    fs::create_dir(&repository).unwrap();
    let detour = scratch.path().join("detour");
    symlink(&repository, &detour).unwrap();
    for inside in ["repository/keys", "repository/a/b/keys", "detour/keys"] {
        let keys = Keys::at(scratch.path().join(inside)).outside(&repository);
        assert!(
            matches!(keys, Err(KeysError::InsideRepository { .. })),
            "{inside}"
        );
    }
    assert!(
        Keys::at(scratch.path().join("repository-keys"))
            .outside(&repository)
            .is_ok()
    );
}

#[test]
fn the_environment_says_where_keys_are() {
    type Case<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>);
    let cases: [Case<'_>; 7] = [
        (&[("PROVOST_KEYS", "/k"), ("HOME", "/h")], Some("/k")),
        (
            &[("PROVOST_KEYS", ""), ("HOME", "/h")],
            Some("/h/.config/provost/keys"),
        ),
        (&[("PROVOST_KEYS", "k"), ("HOME", "/h")], None),
        (
            &[("XDG_CONFIG_HOME", "/c"), ("HOME", "/h")],
            Some("/c/provost/keys"),
        ),
        (
            &[("XDG_CONFIG_HOME", "c"), ("HOME", "/h")],
            Some("/h/.config/provost/keys"),
        ),
        (&[("HOME", "h")], None),
        (&[], None),
    ];
    for (variables, want) in cases {
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).into())
        };
        let got = place::directory(value).ok();
        assert_eq!(got.as_deref(), want.map(Path::new), "{variables:?}");
    }
}
