//! Hooks of git that `provost init` installs.

use crate::stage::{Outcome, Stage};

fn commit(stage: &Stage) -> Outcome {
    stage.write("repo/src/a.txt", "changed\n");
    let mut command = stage.command("git");
    let at = stage.path("repo").display().to_string();
    command.args(["-C", &at, "commit", "-q", "-a", "-m", "change"]);
    stage.spawn(command).wait()
}

#[test]
fn init_installs_hooks_if_it_is_asked_and_they_require_what_the_repository_requires() {
    let stage = Stage::new();
    let plain = stage.ask(&["init", "--no-try", "--json"]);
    assert_eq!(plain.exit, 0, "{plain:?}");
    assert!(plain.json["hooks"].is_null(), "no terminal, no question");
    let hook = stage.path("repo/.git/hooks/pre-push");
    assert!(!hook.exists());

    let made = stage.ask(&["init", "--no-try", "--hooks", "--json"]);
    assert_eq!(made.exit, 0, "{made:?}");
    assert_eq!(made.json["hooks"]["require"], false, "{made:?}");
    assert!(hook.exists());
    assert_eq!(
        commit(&stage).exit,
        0,
        "nothing is bound, nothing is required"
    );

    stage.commit(&[("provost.toml", "[hooks]\nrequire = true\n")]);
    let made = stage.ask(&["init", "--no-try", "--hooks", "--json"]);
    assert_eq!(made.json["hooks"]["require"], true, "{made:?}");
    stage.write("repo/src/b.txt", "more\n");
    let refused = commit(&stage);
    assert_ne!(refused.exit, 0, "{refused:?}");
    assert!(
        format!("{refused:?}").contains("HOOK_UNBOUND"),
        "{refused:?}"
    );
    let remote = stage.path("remote.git").display().to_string();
    stage.git(&["init", "-q", "--bare", &remote]);
    let mut push = stage.command("git");
    push.args(["push", "-q", &remote, "main"]);
    let refused = stage.spawn(push).wait();
    assert_ne!(refused.exit, 0, "{refused:?}");
    assert!(
        format!("{refused:?}").contains("HOOK_UNBOUND"),
        "{refused:?}"
    );
    let lifted = stage.ask(&["hook", "install", "--no-require", "--json"]);
    assert_eq!(lifted.code(), "HOOK_UNBOUND", "{lifted:?}");
}
