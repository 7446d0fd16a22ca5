use std::fs;
use std::os::unix::fs::{chown, symlink};

use super::*;

const FILE: LoginFile = LoginFile::Claude;

fn written(directory: &Path, mode: u32) -> PathBuf {
    let path = directory.join("login");
    fs::write(&path, "{}").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn only_a_regular_file_of_this_user_that_no_other_user_reads_is_read() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for mode in [0o600, 0o400, 0o700] {
        assert_eq!(
            bytes(&written(home, mode), FILE).unwrap(),
            b"{}",
            "{mode:o}"
        );
        fs::remove_file(home.join("login")).unwrap();
    }
    for mode in [0o640, 0o604, 0o644, 0o620, 0o602, 0o610, 0o666] {
        let error = bytes(&written(home, mode), FILE).unwrap_err();
        assert!(
            matches!(error, LoginError::Loose { .. }),
            "{mode:o}: {error}"
        );
        assert!(error.hint().starts_with("chmod 600 '/"), "{}", error.hint());
    }
    let missing = bytes(&home.join("gone"), FILE).unwrap_err();
    assert!(matches!(missing, LoginError::Missing { .. }), "{missing}");
    let missing = bytes(&home.join("gone/login"), FILE).unwrap_err();
    assert!(matches!(missing, LoginError::Missing { .. }), "{missing}");
}

#[test]
fn neither_the_file_nor_its_directory_is_a_link() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fs::create_dir(home.join("real")).unwrap();
    let real = written(&home.join("real"), 0o600);
    symlink(&real, home.join("link")).unwrap();
    symlink(home.join("real"), home.join("directory")).unwrap();
    symlink(home.join("gone"), home.join("dangling")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, home.join("fifo"), Mode::RUSR).unwrap();
    for name in ["link", "directory/login", "dangling", "fifo", "real"] {
        let error = bytes(&home.join(name), FILE).unwrap_err();
        assert!(
            matches!(error, LoginError::NotRegular { .. }),
            "{name}: {error:?}"
        );
    }
    assert!(bytes(&real, FILE).is_ok());
}

#[test]
fn a_file_of_another_user_or_without_end_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = written(home.path(), 0o600);
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(LARGEST).unwrap();
    assert!(bytes(&path, FILE).is_ok());
    file.set_len(LARGEST + 1).unwrap();
    let error = bytes(&path, FILE).unwrap_err();
    assert!(matches!(error, LoginError::TooLarge { .. }), "{error}");
    if chown(&path, Some(12_345), None).is_err() {
        provost_testkit::skip("only root can give a file to another user");
        return;
    }
    let error = bytes(&path, FILE).unwrap_err();
    assert!(
        matches!(error, LoginError::Foreign { owner: 12_345, .. }),
        "{error}"
    );
}

#[test]
fn the_variable_of_the_program_comes_before_the_home() {
    let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/home/ann"));
    let place = |file| place_by(file, home).unwrap();
    let claude = Path::new("/home/ann/.claude/.credentials.json");
    assert_eq!(place(LoginFile::Claude), claude);
    assert_eq!(
        place(LoginFile::Codex),
        Path::new("/home/ann/.codex/auth.json")
    );
    let own = |name: &str| match name {
        "CLAUDE_CONFIG_DIR" | "CODEX_HOME" => Some(PathBuf::from("/srv/login")),
        _ => home(name),
    };
    let place = place_by(LoginFile::Codex, own).unwrap();
    assert_eq!(place, Path::new("/srv/login/auth.json"));
    let relative = |_: &str| Some(PathBuf::from("login"));
    let error = place_by(LoginFile::Codex, relative).unwrap_err();
    assert!(matches!(error, LoginError::NoPlace), "{error}");
}
