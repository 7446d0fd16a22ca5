use proptest::prelude::*;

use super::*;
use crate::object::{Kind, ObjectFormat};

fn side(mode: Mode) -> Node {
    let oid = ObjectFormat::Sha1.oid(Kind::Blob, b"x").unwrap();
    Node { mode, oid }
}

fn edit(path: &str) -> Change {
    Change {
        path: RawPath::new(path),
        before: Some(side(Mode::File)),
        after: Some(side(Mode::Executable)),
        binary: false,
        origin: None,
        link: None,
    }
}

fn link(path: &str, target: &str) -> Change {
    Change {
        before: None,
        after: Some(side(Mode::Symlink)),
        link: Some(RawPath::new(target)),
        ..edit(path)
    }
}

fn gone(path: &str, mode: Mode) -> Change {
    Change {
        before: Some(side(mode)),
        after: None,
        ..edit(path)
    }
}

fn moved(path: &str, from: &str, how: Movement) -> Change {
    alike(path, from, how, EXACT)
}

fn alike(path: &str, from: &str, how: Movement, likeness: u8) -> Change {
    Change {
        origin: Some(Origin {
            path: RawPath::new(from),
            how,
            likeness,
        }),
        ..edit(path)
    }
}

fn found(path: &str, kind: FindingKind) -> Finding {
    Finding {
        path: RawPath::new(path),
        kind,
        note: String::new(),
    }
}

fn scope(entries: &[&str]) -> Scope {
    Scope::parse(entries).unwrap()
}

/// `reason path` for every row, with scope `app` and `.env` and nothing permitted.
fn check(changes: &[Change], findings: &[Finding], permit: &Permit) -> Vec<String> {
    let facts = Facts {
        changes,
        findings,
        signs: &[],
    };
    let rules = Rules {
        scope: &scope(&["app", ".env", "pytest.ini", ".gitmodules"]),
        forbid: &scope(&["app/frozen"]),
        permit,
        extra: &Extra::default(),
    };
    let verdict = judge(&facts, &rules);
    let details = verdict.details.unwrap();
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows: Vec<String> = details["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{} {}", text(row, "reason"), text(row, "path")))
        .collect();
    assert_eq!(verdict.allow, rows.is_empty());
    rows
}

#[test]
fn a_change_is_refused_for_every_rule_it_breaks() {
    let nothing = Permit::default();
    let binary = |path: &str| Change {
        binary: true,
        ..edit(path)
    };
    let cases: [(Change, &[&str]); 23] = [
        (edit("app/a"), &[]),
        (edit("app2/a"), &["out_of_scope app2/a"]),
        (edit("app/frozen/a"), &["out_of_scope app/frozen/a"]),
        (edit("app/FROZEN./a"), &["out_of_scope app/FROZEN./a"]),
        (edit("app/.env"), &["protected_path app/.env"]),
        (edit("app/.ENV "), &["protected_path app/.ENV "]),
        (edit("app/git~1/x"), &["protected_path app/git~1/x"]),
        (edit("app/.git:s/x"), &["protected_path app/.git:s/x"]),
        (edit("app/claude.MD"), &["protected_path app/claude.MD"]),
        (
            edit("app/GITMOD~1"),
            &[
                "protected_path app/GITMOD~1",
                "submodule_change app/GITMOD~1",
            ],
        ),
        (edit(".env"), &["protected_path .env"]),
        (edit("pytest.ini"), &["protected_path pytest.ini"]),
        (edit("app/CLAUDE.md"), &["protected_path app/CLAUDE.md"]),
        (
            edit(".github/ci.yml"),
            &[
                "out_of_scope .github/ci.yml",
                "protected_path .github/ci.yml",
            ],
        ),
        (
            edit(".gitmodules"),
            &["protected_path .gitmodules", "submodule_change .gitmodules"],
        ),
        (
            edit("app/a\nb"),
            &["out_of_scope app/a\\x0ab", "unverifiable app/a\\x0ab"],
        ),
        (binary("app/a"), &["binary_change app/a"]),
        (link("app/l", "a"), &["symlink_change app/l"]),
        (
            link("app/l", "../o"),
            &["symlink_change app/l", "symlink_escape app/l"],
        ),
        (
            link("app/l", "/etc"),
            &["symlink_change app/l", "symlink_escape app/l"],
        ),
        (
            Change {
                link: None,
                ..link("app/l", "a")
            },
            &["symlink_change app/l", "unverifiable app/l"],
        ),
        (gone("app/l", Mode::Symlink), &["symlink_change app/l"]),
        (gone("app/m", Mode::Gitlink), &["submodule_change app/m"]),
    ];
    for (change, want) in cases {
        assert_eq!(
            check(std::slice::from_ref(&change), &[], &nothing),
            want,
            "{change:?}"
        );
    }
}

#[test]
fn permits_open_what_they_name_and_no_more() {
    let all = Permit {
        oracle: scope(&["pytest.ini"]),
        governing: scope(&["app"]),
        binary: scope(&["app/logo.png"]),
        symlink: scope(&["app/l"]),
    };
    let binary = |path: &str| Change {
        binary: true,
        ..edit(path)
    };
    let cases: [(Change, &[&str]); 8] = [
        (edit("pytest.ini"), &[]),
        (edit("app/CLAUDE.md"), &[]),
        (edit("app/tox.ini"), &["protected_path app/tox.ini"]),
        (edit(".env"), &["protected_path .env"]),
        (binary("app/logo.png"), &[]),
        (
            binary("app/logo.png.bak"),
            &["binary_change app/logo.png.bak"],
        ),
        (link("app/l", "../o"), &[]),
        (link("app/l", "../../o"), &["symlink_escape app/l"]),
    ];
    for (change, want) in cases {
        assert_eq!(
            check(std::slice::from_ref(&change), &[], &all),
            want,
            "{change:?}"
        );
    }
}

#[test]
fn content_from_outside_the_scope_is_refused_at_its_source() {
    let cases: [(Change, &[&str]); 6] = [
        (moved("app/a", "app/b", Movement::Rename), &[]),
        (moved("app/a", "b", Movement::Rename), &["out_of_scope b"]),
        (
            moved("app/a", "b", Movement::Copy),
            &["copy_source_out_of_scope b"],
        ),
        (
            alike("app/a", "b", Movement::Copy, COPY),
            &["copy_source_out_of_scope b"],
        ),
        (alike("app/a", "b", Movement::Copy, COPY - 1), &[]),
        (
            alike("app/a", "b", Movement::Rename, 50),
            &["out_of_scope b"],
        ),
    ];
    for (change, want) in cases {
        let rows = check(std::slice::from_ref(&change), &[], &Permit::default());
        assert_eq!(rows, want, "{change:?}");
    }
}

#[test]
fn every_finding_refuses() {
    use FindingKind as Kind;
    let cases: [(Finding, &[&str]); 7] = [
        (
            found("app/v", Kind::NestedRepository),
            &["nested_repository app/v"],
        ),
        (
            found("v", Kind::NestedRepository),
            &["nested_repository v", "out_of_scope v"],
        ),
        (found("app/p", Kind::SpecialFile), &["special_file app/p"]),
        (found("app/A", Kind::CaseTwin), &["case_collision app/A"]),
        (found("app/h", Kind::HardLink), &["hidden_change app/h"]),
        (
            found("o/u", Kind::Unreadable),
            &["out_of_scope o/u", "unverifiable o/u"],
        ),
        (
            found("app/\u{1}", Kind::BadName),
            &["out_of_scope app/\\x01", "unverifiable app/\\x01"],
        ),
    ];
    for (finding, want) in cases {
        let rows = check(&[], std::slice::from_ref(&finding), &Permit::default());
        assert_eq!(rows, want, "{finding:?}");
    }
}

#[test]
fn all_violations_are_reported_and_nothing_passes_without_a_scope() {
    let changes = [edit("z"), edit("app/a"), edit("b")];
    let rows = check(
        &changes,
        &[found("c", FindingKind::TooLarge)],
        &Permit::default(),
    );
    assert_eq!(
        rows,
        [
            "out_of_scope b",
            "out_of_scope c",
            "unverifiable c",
            "out_of_scope z"
        ]
    );
    let rules = Rules {
        scope: &Scope::default(),
        forbid: &Scope::default(),
        permit: &Permit::default(),
        extra: &Extra::default(),
    };
    let facts = |changes| Facts {
        changes,
        ..Facts::default()
    };
    let one = [edit("a")];
    assert!(!judge(&facts(&one), &rules).allow);
    assert!(judge(&facts(&[]), &rules).allow);
    let sign = Sign {
        path: RawPath::new(".git/config"),
        reason: Reason::RepoTamper,
        problem: "differs".to_owned(),
    };
    let facts = Facts {
        signs: &[sign],
        ..Facts::default()
    };
    assert!(!judge(&facts, &rules).allow);
}

fn any_path() -> impl Strategy<Value = String> {
    "(a|b|ab)(/(a|b|ab)){0,2}"
}

fn any_change() -> impl Strategy<Value = Change> {
    let how = prop_oneof![Just(Movement::Rename), Just(Movement::Copy)];
    (
        any_path(),
        prop::option::of((any_path(), how)),
        prop::option::of(any_path()),
    )
        .prop_map(|(path, origin, target)| {
            let change = match target {
                Some(target) => link(&path, &format!("../{target}")),
                None => edit(&path),
            };
            Change {
                origin: origin.map(|(path, how)| Origin {
                    path: RawPath::new(path),
                    how,
                    likeness: EXACT,
                }),
                ..change
            }
        })
}

proptest! {
    #[test]
    fn what_is_allowed_lies_inside_and_stays_allowed_in_a_wider_scope(
        changes in prop::collection::vec(any_change(), 0..4),
        entries in prop::collection::vec(any_path(), 1..4),
        more in any_path(),
        links in any_path(),
    ) {
        let narrow = Scope::parse(&entries).unwrap();
        let wide = Scope::parse(&[entries, vec![more]].concat()).unwrap();
        let permit = Permit { symlink: Scope::parse(&[links]).unwrap(), ..Permit::default() };
        let facts = Facts { changes: &changes, ..Facts::default() };
        let allows = |scope: &Scope| {
            let (forbid, extra) = (&Scope::default(), &Extra::default());
            judge(&facts, &Rules { scope, forbid, permit: &permit, extra }).allow
        };
        if allows(&narrow) {
            for change in &changes {
                prop_assert!(narrow.covers_raw(&change.path));
                prop_assert!(change.origin.as_ref().is_none_or(|it| narrow.covers_raw(&it.path)));
            }
            prop_assert!(allows(&wide));
        }
    }
}

#[test]
fn a_new_name_that_looks_like_another_is_refused_and_an_old_one_is_not() {
    let scope = Scope::parse(&["src"]).unwrap();
    let (forbid, permit, extra) = (Scope::default(), Permit::default(), Extra::default());
    let rules = Rules {
        scope: &scope,
        forbid: &forbid,
        permit: &permit,
        extra: &extra,
    };
    let judged = |change: Change| {
        let facts = Facts {
            changes: &[change],
            ..Facts::default()
        };
        judge(&facts, &rules)
    };
    for name in ["src/a\u{200b}b", "src/\u{202e}x", "src/d\u{2066}/x"] {
        let fresh = Change {
            before: None,
            ..edit(name)
        };
        let verdict = judged(fresh);
        assert!(
            verdict
                .reason
                .contains("an invisible letter in its name (U+20"),
            "{verdict:?}"
        );
        assert!(judged(edit(name)).allow, "{name:?}");
    }
    for path in [
        "src/sitecustomize.py",
        "src/lib/x.pth",
        "src/UserCustomize.py",
    ] {
        assert!(
            judged(edit(path))
                .reason
                .contains("decides what passing means"),
            "{path}"
        );
    }
}
