//! The commit that lands: whose it is, what it says, how it is signed, and what stays untouched.

use provost_core::object::sha256;
use serde_json::{Value, json};

use crate::landing::{accepted, check, forge, land, landed, moved, refused};
use crate::stage::{Ask, Stage};

fn show(stage: &Stage, format: &str) -> String {
    stage.git(&["show", "-s", &format!("--format={format}"), "main"])
}

/// The types of the records after the seal.
fn after(stage: &Stage, run: &str) -> Vec<String> {
    let text = std::fs::read_to_string(stage.evidence(run, "after.jsonl")).unwrap_or_default();
    let kind = |line: &str| serde_json::from_str::<Value>(line).unwrap()["event_type"].clone();
    let kinds = text.lines().map(kind);
    kinds.map(|it| it.as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_commit_is_the_users_and_names_its_run() {
    for (stage, run) in [accepted(), moved()] {
        stage.git(&["config", "user.name", "Ada Lovelace"]);
        stage.git(&["config", "user.email", "ada@example.com"]);
        let base = stage.git(&["rev-parse", "main"]);
        let first = landed(&stage, &run);
        assert_eq!(
            show(&stage, "%an <%ae>|%cn <%ce>"),
            "Ada Lovelace <ada@example.com>|Ada Lovelace <ada@example.com>"
        );
        assert_eq!(show(&stage, "%s"), "make it good");
        let manifest = std::fs::read(stage.evidence(&run, "manifest.json")).unwrap();
        let digest = format!("sha256:{}", sha256(&manifest));
        for (key, want) in [
            ("Provost-Run", run.as_str()),
            ("Provost-Bundle", &digest),
            ("Co-authored-by", "sh <sh@provost.invalid>"),
        ] {
            let trailer = format!("%(trailers:key={key},valueonly)");
            assert_eq!(show(&stage, &trailer), want, "{key}");
        }
        assert_eq!(show(&stage, "%P"), base, "one parent");

        // Landed again, it is the same commit, also for another user.
        stage.git(&["reset", "-q", "--hard", &base]);
        stage.git(&["config", "user.name", "Another"]);
        stage.git(&["reflog", "expire", "--expire=now", "--all"]);
        stage.git(&[
            "update-ref",
            "-d",
            &format!("refs/provost/merged/{run}/{}", first.text("commit")),
        ]);
        stage.git(&["gc", "-q", "--prune=now"]);
        let again = landed(&stage, &run);
        assert_eq!(first.text("commit"), again.text("commit"));
        let written = after(&stage, &run);
        let written = written.iter().filter(|it| *it == "COMMIT_WRITTEN");
        assert_eq!(written.count(), 1);
    }
}

#[test]
fn a_commit_without_an_author_is_refused_with_the_command_that_helps() {
    let (stage, run) = accepted();
    stage.git(&["config", "--unset", "user.name"]);
    let outcome = land(&stage, &run);
    assert_eq!(
        (outcome.exit, outcome.code()),
        (4, "IDENTITY_MISSING"),
        "{outcome:?}"
    );
    let hint = outcome.json.pointer("/details/hint").unwrap().to_string();
    assert!(
        hint.contains("git config --global user.name"),
        "{outcome:?}"
    );
    assert_eq!(after(&stage, &run), Vec::<String>::new());
    stage.write("home/.gitconfig", "[user]\n\tname = Global\n");
    landed(&stage, &run);
    assert_eq!(show(&stage, "%an <%ae>"), "Global <author@localhost>");
}

/// Makes a key, and lets the global configuration sign with it; `more` is added to it.
fn signs(stage: &Stage, more: &str) {
    let key = stage.path("home/key");
    if !key.exists() {
        let mut made = stage.command("ssh-keygen");
        made.args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
            .arg(&key);
        assert_eq!(stage.spawn(made).wait().exit, 0);
        let public = std::fs::read_to_string(stage.path("home/key.pub")).unwrap();
        stage.write("home/signers", &format!("author@localhost {public}"));
    }
    let signers = stage.path("home/signers");
    let text = format!(
        "[commit]\n\tgpgSign = true\n[user]\n\tsigningKey = ~/key.pub\n[gpg]\n\tformat = ssh\n\
         [gpg \"ssh\"]\n\tallowedSignersFile = {}\n{more}",
        signers.display()
    );
    stage.write("home/.gitconfig", &text);
}

/// A script that leaves a mark and agrees, and whether it ran.
fn marker(stage: &Stage) -> (String, impl Fn() -> bool) {
    let mark = stage.path("ran");
    stage.script("sign.sh", &format!("touch {}", mark.display()));
    (stage.path("sign.sh").display().to_string(), move || {
        mark.exists()
    })
}

#[test]
fn a_signature_is_made_once_by_the_global_configuration_alone() {
    let (stage, run) = moved();
    let (program, ran) = marker(&stage);
    for key in [
        "gpg.program",
        "gpg.ssh.program",
        "gpg.ssh.defaultKeyCommand",
    ] {
        stage.git(&["config", key, &program]);
    }
    stage.git(&["config", "gpg.format", "openpgp"]);
    signs(&stage, "");
    let base = stage.git(&["rev-parse", "main"]);
    let first = landed(&stage, &run);
    assert!(!ran(), "a program of the repository was started");
    let formats = ["-c", "gpg.format=ssh", "-c", "gpg.ssh.program=ssh-keygen"];
    let shown = stage.git(&[&formats[..], &["show", "-s", "--format=%G?", "main"]].concat());
    assert_eq!(shown, "G");

    // After a crash, too, the same signature is used: no program signs again.
    stage.git(&["reset", "-q", "--hard", &base]);
    signs(&stage, "\tprogram = /bin/false\n");
    let again = landed(&stage, &run);
    assert_eq!(first.text("commit"), again.text("commit"));
}

#[test]
fn a_repository_cannot_ask_for_a_signature() {
    let (stage, run) = accepted();
    let (program, ran) = marker(&stage);
    for (key, value) in [("commit.gpgSign", "true"), ("gpg.program", &program)] {
        stage.git(&["config", key, value]);
    }
    landed(&stage, &run);
    assert!(!ran());
    assert!(
        !stage
            .git(&["cat-file", "commit", "main"])
            .contains("gpgsig")
    );
}

#[test]
fn a_commit_that_cannot_be_signed_does_not_land() {
    let (stage, run) = accepted();
    let saying = "echo no key today >&2; exit 1";
    stage.script("fails.sh", saying);
    let fails = format!("\tprogram = {}\n", stage.path("fails.sh").display());
    for program in [fails.as_str(), "\tprogram = /nonexistent/program\n"] {
        signs(&stage, program);
        let words = if program == fails {
            "no key today"
        } else {
            "not signed"
        };
        refused(&stage, &run, "SIGNING_FAILED", words);
        assert_eq!(after(&stage, &run), Vec::<String>::new(), "{program}");
    }
    signs(&stage, "");
    landed(&stage, &run);
}

#[test]
fn only_files_that_land_have_to_be_clean() {
    for (stage, run) in [accepted(), moved()] {
        stage.write("repo/docs/readme.md", "mine\n");
        stage.write("repo/docs/staged.md", "staged\n");
        stage.git(&["add", "docs/staged.md"]);
        stage.write("repo/untracked", "mine\n");
        let before = stage.git(&["status", "--porcelain"]);
        stage.write("repo/src/a.txt", "mine\n");
        refused(&stage, &run, "CHECKOUT_DIRTY", "`src/a.txt`");
        let outcome = land(&stage, &run);
        assert!(!outcome.text("reason").contains("docs/"), "{outcome:?}");
        stage.git(&["checkout", "-q", "src/a.txt"]);

        let outcome = land(&stage, &run);
        assert_eq!(outcome.exit, 0, "{outcome:?}");
        assert_eq!(stage.git(&["status", "--porcelain"]), before);
        let text = std::fs::read_to_string(stage.path("repo/src/a.txt")).unwrap();
        assert_eq!(text, "good\n");
        check(&stage, &run);
    }
}

#[test]
fn a_landing_that_an_earlier_version_began_is_finished_with_its_commit() {
    let (stage, run) = accepted();
    let branch = format!("provost/{run}");
    let commit = stage.git(&["rev-parse", &branch]);
    let landing = json!({
        "commit": commit,
        "tree": stage.git(&["rev-parse", &format!("{branch}^{{tree}}")]),
        "parent": stage.git(&["rev-parse", "main"]),
        "target": "refs/heads/main",
    });
    forge(&stage, &run, "LAND_STARTED", &landing);
    // The ref moved, and then the machine stopped.
    stage.git(&["update-ref", "refs/heads/main", &commit]);
    let outcome = landed(&stage, &run);
    assert_eq!(outcome.text("commit"), commit);
    assert_eq!(show(&stage, "%an"), "Provost");
}

#[test]
fn several_runs_land_in_order_and_one_that_conflicts_is_skipped() {
    let stage = Stage::new();
    let run = |script: &str| {
        let outcome = stage.run(script, &Ask::default());
        assert_eq!(outcome.code(), "OK", "{outcome:?}");
        outcome.text("run_id").to_owned()
    };
    let first = run("echo good > src/a.txt");
    let second = run("echo good too > src/a.txt");
    let third = run("echo good > src/a.txt; echo new > src/new.txt");
    let refused = stage.run("echo bad > src/a.txt", &Ask::default());
    assert_ne!(refused.code(), "OK");
    let all = stage.ask(&["land", "--all", "--json"]);
    assert_eq!(all.exit, 1, "{all:?}");
    let ids = |list: &str| -> Vec<String> {
        let rows = all.json[list].as_array().unwrap().iter();
        rows.map(|row| row["run_id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids("landed"), [first.clone(), third.clone()], "{all:?}");
    assert_eq!(ids("skipped"), std::slice::from_ref(&second), "{all:?}");
    assert_eq!(all.json["skipped"][0]["code"], "LAND_CONFLICT");
    let branches = stage.git(&["branch", "--list", "provost/*"]);
    assert_eq!(branches.trim(), format!("provost/{second}"));

    let named = stage.ask(&["land", &first, &third]);
    assert_eq!(named.exit, 0, "{named:?}");
    let text = String::from_utf8_lossy(&named.stdout).into_owned();
    assert_eq!(
        text.matches("landed before: main holds").count(),
        2,
        "{text}"
    );
    for run in [&first, &third] {
        check(&stage, run);
    }
}

#[test]
fn a_pull_request_has_foreign_text_in_fences_only() {
    let stage = Stage::new();
    let outcome = stage.run("echo good > src/a.txt", &Ask::default());
    let run = outcome.text("run_id");
    let written = stage.ask(&["export", run, "--as", "pr", "--json"]);
    assert_eq!(written.exit, 0, "{written:?}");
    assert_eq!(written.text("title"), "make it good");
    let body = written.text("body").to_owned();
    assert!(body.contains("```text\nM src/a.txt\n```"), "{body}");
    assert!(body.contains(&format!("`provost verify {run}`")), "{body}");
    let plain = stage.ask(&["export", run, "--as", "pr"]);
    assert_eq!(plain.stdout, format!("make it good\n\n{body}").into_bytes());

    let refused = stage.run("echo bad > src/a.txt", &Ask::default());
    let outcome = stage.ask(&["export", refused.text("run_id"), "--as", "pr", "--json"]);
    assert_eq!(outcome.code(), "NOT_ACCEPTED", "{outcome:?}");
}

#[test]
fn gc_removes_the_branch_of_a_refused_run_and_keeps_its_work() {
    let stage = Stage::new();
    let refused = stage.run("echo bad > src/a.txt", &Ask::default());
    let run = refused.text("run_id");
    // As a driver leaves it that dies before it records the branch.
    let kept = format!("refs/provost/runs/{run}/1");
    stage.git(&["branch", &format!("provost/{run}"), &kept]);
    let swept = stage.ask(&["gc", "--json"]);
    assert_eq!(swept.exit, 0, "{swept:?}");
    assert_eq!(stage.git(&["branch", "--list", "provost/*"]), "");
    assert_eq!(stage.git(&["show", &format!("{kept}:src/a.txt")]), "bad");

    // A branch that has other work stays.
    stage.git(&["branch", &format!("provost/{run}"), "main"]);
    let swept = stage.ask(&["gc", "--json"]);
    assert_eq!(swept.exit, 0, "{swept:?}");
    assert_ne!(stage.git(&["branch", "--list", "provost/*"]), "");
}
