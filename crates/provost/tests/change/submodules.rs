//! What is inside of submodules.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::Ground;

impl Ground {
    /// Adds a submodule at `lib`, with one file.
    fn add_submodule(&self) {
        let source = self.home.join("source");
        std::fs::create_dir_all(&source).unwrap();
        std::fs::write(source.join("lib.txt"), "one\n").unwrap();
        let place = source.to_str().unwrap();
        self.git(&["-C", place, "init", "-q", "-b", "main"]);
        self.git(&["-C", place, "add", "-A"]);
        self.git(&["-C", place, "commit", "-qm", "lib"]);
        let allow = "protocol.file.allow=always";
        self.git(&["-c", allow, "submodule", "add", "-q", place, "lib"]);
        self.git(&["commit", "-qm", "a submodule"]);
    }

    /// Whether a start on `path` is refused because of dirt.
    fn is_dirty(&self, path: &str) -> bool {
        assert_eq!(self.change("ada", &["analyze"]).0, 0);
        let (_, answer) = self.change("ada", &["start", "work", "--file", path]);
        self.change("ada", &["clear"]);
        answer["workspace_hygiene"]["blocks_edit"] == json!(true)
    }
}

#[test]
fn a_submodule_is_looked_into_and_starts_nothing() {
    let ground = Ground::new();
    ground.add_submodule();
    assert!(!ground.is_dirty("lib"));
    let sprung = ground.home.join("sprung");
    let trap = ground.home.join("trap");
    std::fs::write(
        &trap,
        format!("#!/bin/sh\ntouch {}\ncat\n", sprung.display()),
    )
    .unwrap();
    std::fs::set_permissions(&trap, PermissionsExt::from_mode(0o755)).unwrap();
    let trap = trap.to_str().unwrap();
    for name in ["core.fsmonitor", "filter.trap.clean", "filter.trap.process"] {
        ground.git(&["-C", "lib", "config", name, trap]);
    }
    let hooks = ground.repo.join(".git/modules/lib/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    for name in ["post-index-change", "fsmonitor-watchman"] {
        std::fs::copy(trap, hooks.join(name)).unwrap();
    }
    ground.write("lib/.gitattributes", "* filter=trap\n");
    ground.write("lib/lib.txt", "two\n");
    assert!(ground.is_dirty("lib/lib.txt"));
    assert!(ground.is_dirty("lib/.gitattributes"));
    assert!(ground.is_dirty("lib"));
    assert!(!ground.is_dirty("docs"));
    assert!(!sprung.exists(), "something of the submodule was started");
}

#[test]
fn only_the_outermost_checkout_holds_things_of_our_own() {
    let ground = Ground::new();
    ground.add_submodule();
    for place in [".provost", "lib/.provost"] {
        std::fs::create_dir_all(ground.repo.join(place)).unwrap();
    }
    ground.write(".provost/note", "ours\n");
    assert_eq!(ground.change("ada", &["analyze"]).1["dirty_paths"], 0);
    assert!(!ground.is_dirty("lib"));
    ground.write("lib/.provost/note", "not ours\n");
    assert!(ground.is_dirty("lib"));
    // Neither is anybody's to declare.
    for path in [".provost/note", "lib/.provost/note"] {
        let start = ["start", "work", "--file", path];
        assert_eq!(ground.change("ada", &start).0, 2, "{path}");
    }
}

#[test]
fn a_submodule_that_cannot_be_looked_into_is_dirty() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 3] = [
        ("a gitdir that leads nowhere", |lib| {
            std::fs::write(lib.join(".git"), "gitdir: ../nowhere\n").unwrap();
        }),
        ("files without a repository", |lib| {
            std::fs::remove_file(lib.join(".git")).unwrap();
        }),
        ("another checkout instead", |lib| {
            std::fs::remove_file(lib.join(".git")).unwrap();
            std::fs::write(lib.join(".git"), "gitdir: ../.git\n").unwrap();
        }),
    ];
    for (name, harm) in harms {
        let ground = Ground::new();
        ground.add_submodule();
        harm(&ground.repo.join("lib"));
        assert!(ground.is_dirty("lib"), "{name}");
    }
    let ground = Ground::new();
    ground.add_submodule();
    ground.git(&["submodule", "deinit", "-q", "lib"]);
    assert!(!ground.is_dirty("lib"), "never checked out");
}
