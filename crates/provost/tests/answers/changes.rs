//! Controlled changes of a shared checkout, and the hooks of git.

use provost_testkit::stage::Stage;

/// `provost change` as an agent with a name.
fn of<'a>(name: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    [&["change"], &words[..1], &["--agent", name], &words[1..]].concat()
}

#[test]
fn two_agents_change_a_checkout() {
    let stage = Stage::new();
    let code = "def add(a, b):\n    return a + b\n";
    stage.commit(&[("src/m.py", code), ("docs/guide.md", "# guide\n")]);
    let mut transcript = stage.transcript();
    let start = ["start", "Say more", "--file", "docs/guide.md"];
    transcript.plain(&of("ada", &start));
    transcript.plain(&of("ada", &["analyze"]));
    transcript.json(&of("bob", &["analyze"]));
    transcript.plain(&of("ada", &start));
    transcript.json(&of("ada", &["list"]));
    transcript.plain(&of("bob", &start));
    transcript.json(&of("bob", &start));
    transcript.plain(&of(
        "bob",
        &["queue", "Say more too", "--file", "docs/guide.md"],
    ));
    transcript.plain(&of("bob", &["list"]));
    let listed = stage.ask(&["change", "list", "--agent", "ada", "--json"]);
    let id = listed.json.pointer("/workspace_intents/0/intent_id");
    let id = id.unwrap().as_str().unwrap().to_owned();
    transcript.plain(&of("ada", &["status", &id]));
    transcript.json(&of("ada", &["status", &id]));
    transcript.plain(&of("ada", &["renew", &id]));
    stage.write("repo/docs/guide.md", "# more\n");
    transcript.plain(&of("ada", &["check", &id, "--file", "docs/guide.md"]));
    transcript.plain(&of("bob", &["finish", &id, "--file", "docs/guide.md"]));
    transcript.plain(&of(
        "ada",
        &["finish", &id, "--file", "docs/guide.md", "--full"],
    ));
    transcript.plain(&["status"]);
    transcript.plain(&of("ada", &["list"]));
    transcript.plain(&of("ada", &["clear"]));
    transcript.json(&of("ada", &["gc"]));
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn a_change_that_is_not_as_declared_is_refused() {
    let stage = Stage::new();
    let code = "def add(a, b):\n    return a + b\n";
    stage.commit(&[
        ("src/m.py", code),
        ("src/n.py", code),
        ("docs/guide.md", "# guide\n"),
    ]);
    let mut transcript = stage.transcript();
    stage.ask(&of("ada", &["analyze"]));
    let started = stage.ask(&of(
        "ada",
        &["start", "Subtract", "--file", "src/m.py", "--json"],
    ));
    let id = started.text("intent_id").to_owned();
    stage.write("repo/src/m.py", "def sub(a, b):\n    return a - b\n");
    stage.write("repo/src/n.py", "def sub(a, b):\n    return a - b\n");
    let finish = ["finish", &id, "--file", "src/m.py", "--file", "src/n.py"];
    transcript.plain(&of("ada", &finish));
    transcript.json(&of("ada", &finish));
    transcript.plain(&of("ada", &["finish", &id, "--file", "src/m.py"]));
    transcript.plain(&of("ada", &["analyze"]));
    transcript.plain(&of(
        "ada",
        &["verify", "--intent", &id, "--file", "src/m.py"],
    ));
    transcript.plain(&of("ada", &["claims", "No regressions."]));
    transcript.plain(&of("ada", &["gates", "--gate", "fail_cycles"]));
    transcript.plain(&of("ada", &["start", "More", "--file", "src/m.py"]));
    transcript.plain(&of("ada", &["start", "More", "--file", ".git/config"]));
    transcript.plain(&of("ada", &["receipt", "nothing"]));
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn hooks_are_installed_asked_and_taken_out() {
    let stage = Stage::new();
    let mut transcript = stage.transcript();
    let file = stage.path("contract.json").display().to_string();
    let new = ["contract", "new", &file, "Make it good"];
    let rights = ["--allow", "src/a.txt", "--accept", "sh check.sh"];
    stage.ask(&[&new[..], &rights].concat());
    transcript.both(&["hook", "status"]);
    transcript.plain(&["hook", "install"]);
    transcript.plain(&["hook", "install", "claude"]);
    transcript.plain(&["hook", "bind", &file]);
    transcript.both(&["hook", "status"]);
    transcript.plain(&["hook", "selftest", "claude"]);
    transcript.plain(&["hook", "unbind"]);
    transcript.plain(&["hook", "uninstall", "claude"]);
    transcript.plain(&["hook", "uninstall"]);
    transcript.both(&["hook", "status"]);
    insta::assert_snapshot!(transcript.text());
}

#[test]
fn source_code_is_analysed() {
    let stage = Stage::new();
    let body = "def f(a):\n    if a:\n        return 1\n    return 2\n";
    stage.commit(&[("src/m.py", body), ("src/n.py", body)]);
    let mut transcript = stage.transcript();
    transcript.both(&["analyze", "src"]);
    transcript.plain(&["analyze", "nowhere"]);
    insta::assert_snapshot!(transcript.text());
}
