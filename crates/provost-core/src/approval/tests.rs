use serde_json::{Value, json};

use super::*;
use crate::contract;

const MINIMAL: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/examples/contract-minimal.json"
));

fn document(paths: &[&str], extra: &Value) -> Document {
    let mut value: Value = serde_json::from_str(MINIMAL).unwrap();
    value["allowed_paths"] = json!(paths);
    value["x_provost"] = extra.clone();
    contract::from_value(&value).unwrap()
}

fn asked(paths: &[&str], extra: &Value, unasked: &Unasked, named: &[Endpoint]) -> Vec<String> {
    let holds_most = |path: &RepoPath| path.as_str() == "app";
    let found = widenings(&document(paths, extra), unasked, named, &holds_most);
    found.into_iter().map(|it| it.path).collect()
}

/// A contract with every kind of widening.
fn wide() -> Value {
    json!({
        "author": "agent", "tier": "landlock", "net": ["api.example.com:443"],
        "permit": { "oracle": ["Cargo.lock"], "governing": ["./AGENTS.md"], "binary": ["a.png"],
                    "symlink": ["now"], "fewer_tests": true },
    })
}

const WIDE: [&str; 7] = [
    "/x_provost/author",
    "/allowed_paths/0",
    "/x_provost/permit/oracle/0",
    "/x_provost/permit/governing/0",
    "/x_provost/permit/fewer_tests",
    "/x_provost/net/0",
    "/x_provost/tier",
];

fn everything() -> Unasked {
    let scope = |text: &str| Scope::of(vec![RepoPath::try_from(text).unwrap()]);
    Unasked {
        paths: scope("app"),
        oracle: scope("Cargo.lock"),
        governing: scope("AGENTS.md"),
        net: vec!["API.example.com:443".parse().unwrap()],
        authors: vec!["agent".to_owned()],
        tier: Tier::Landlock,
        fewer_tests: true,
        idle_commands: true,
        agents: Vec::new(),
    }
}

#[test]
fn what_goes_beyond_the_policy_is_asked_about_and_nothing_else() {
    let none = Unasked::default();
    assert_eq!(asked(&["app"], &wide(), &none, &[]), WIDE);
    assert_eq!(asked(&["app"], &wide(), &everything(), &[]), [""; 0]);
    let narrow = ["app/main.py", "Makefile", "new"];
    assert_eq!(asked(&narrow, &json!({}), &none, &[]), [""; 0]);
    let person = json!({ "author": "person", "tier": "namespaces", "forbid": ["app/old"] });
    assert_eq!(asked(&["app/main.py"], &person, &none, &[]), [""; 0]);
}

#[test]
fn every_line_of_the_policy_lets_one_thing_pass() {
    type Change = fn(&mut Unasked);
    let cases: [(Change, &str); 7] = [
        (|it| it.authors.clear(), WIDE[0]),
        (|it| it.paths = Scope::default(), WIDE[1]),
        (|it| it.oracle = Scope::default(), WIDE[2]),
        (|it| it.governing = Scope::default(), WIDE[3]),
        (|it| it.fewer_tests = false, WIDE[4]),
        (|it| it.net.clear(), WIDE[5]),
        (|it| it.tier = Tier::Namespaces, WIDE[6]),
    ];
    for (change, want) in cases {
        let mut unasked = everything();
        change(&mut unasked);
        assert_eq!(asked(&["app"], &wide(), &unasked, &[]), [want]);
    }
}

#[test]
fn a_command_that_tests_nothing_is_asked_about() {
    let asked = |commands: &[(&str, bool)], unasked: &Unasked| -> Vec<String> {
        let mut document = document(&["app/main.py"], &json!({}));
        let test = document.acceptance_tests[0].clone();
        let with = |(cmd, must_pass): &(&str, bool)| {
            let mut test = test.clone();
            (test.cmd, test.must_pass) = ((*cmd).to_owned(), *must_pass);
            test
        };
        document.acceptance_tests = commands.iter().map(with).collect();
        let found = widenings(&document, unasked, &[], &|_| false);
        let kind = |it: &Widening| it.kind == Kind::IdleCommand;
        assert!(found.iter().all(kind), "{found:?}");
        found.into_iter().map(|it| it.path).collect()
    };
    let none = Unasked::default();
    for idle in [
        "git status",
        "pytest --version",
        "mvn test -DskipTests",
        "true",
    ] {
        let found = asked(&[("pytest", true), (idle, true)], &none);
        assert_eq!(found, ["/acceptance_tests/1/cmd"], "{idle}");
        assert_eq!(asked(&[(idle, true)], &everything()), [""; 0], "{idle}");
    }
    let fine = [
        ("pytest -q", true),
        ("ruff check src", true),
        ("sh check.sh", true),
    ];
    assert_eq!(asked(&fine, &none), [""; 0]);
    assert_eq!(
        asked(&[("pytest", true), ("git log -1", false)], &none),
        [""; 0]
    );
}

#[test]
fn a_broad_path_is_known_in_every_spelling_also_before_it_is_there() {
    let none = Unasked::default();
    for broad in ["app", "./app/", "app//", "src", "docs", "docs/."] {
        let found = asked(&["x/y", broad], &json!({}), &none, &[]);
        assert_eq!(found, ["/allowed_paths/1"], "{broad}");
    }
    // An entry that cannot be parsed is asked about, whatever the contract gate says of it.
    assert_eq!(asked(&["../x"], &json!({}), &everything(), &[]).len(), 1);
}

#[test]
fn a_place_that_the_person_named_is_not_asked_about() {
    let net = json!({ "net": ["api.example.com:443", "api.example.com:80"] });
    let named = ["api.example.com:443".parse().unwrap()];
    let found = asked(&["x/y"], &net, &Unasked::default(), &named);
    assert_eq!(found, ["/x_provost/net/1"]);
}

#[test]
fn agents_are_known_by_the_roster_or_by_their_own_word() {
    for (author, want) in [
        ("agent", true),
        ("agent:planner", true),
        ("agent-pm", true),
        ("Agent", true),
        ("Agent:x", true),
        ("AGENT:planner", true),
        ("Agent-PM", true),
        ("agents", false),
        ("person", false),
        ("ann", false),
        ("", false),
    ] {
        assert_eq!(is_agent(author), want, "{author}");
    }
}

#[test]
fn a_digest_is_of_everything_that_is_asked() {
    let widening = |path: &str| Widening {
        kind: Kind::Path,
        path: path.to_owned(),
        problem: "is wide".to_owned(),
    };
    let base: [Oid; 2] = ["1", "2"].map(|digit| Oid::try_from(digit.repeat(40).as_str()).unwrap());
    let agents = [vec!["a".to_owned()], vec!["a".to_owned(), "b".to_owned()]];
    let lists = [vec![widening("/a")], vec![widening("/a"), widening("/b")]];
    let of = |change: usize| {
        let pick = |at: usize| usize::from(change == at);
        let question = Question {
            run_id: ["r", "s"][pick(1)],
            contract_sha256: ["c", "d"][pick(2)],
            base_commit: &base[pick(3)],
            target: [Some("main"), None][pick(4)],
            agent: &agents[pick(5)],
            review: [None, Some(agents[0].as_slice())][pick(6)],
            widenings: &lists[pick(7)],
        };
        question.digest()
    };
    let first = of(0);
    assert_eq!((first.len(), of(0)), (64, first.clone()));
    for change in 1..=7 {
        assert_ne!(of(change), first, "{change}");
    }
}

#[test]
fn an_approval_is_over_at_its_time_and_when_the_time_is_invalid() {
    let until = |text: &str| Approval {
        digest: String::new(),
        by: Person {
            user: "ann".to_owned(),
            uid: 1,
            host: "here".to_owned(),
        },
        until: text.to_owned(),
        how: AnswerMeans::Terminal,
        reason: String::new(),
        signature: None,
    };
    let second = until("1970-01-01T00:00:01Z");
    assert!(!second.is_over(999));
    assert!(second.is_over(1000));
    assert!(until("soon").is_over(0));
}

#[test]
fn judging_refused_work_less_strictly_is_asked_about() {
    let first = |mode: Value, commands: Value| {
        let mut value = serde_json::to_value(document(&["app"], &json!({}))).unwrap();
        value["x_provost"] = mode;
        value["acceptance_tests"] = commands;
        contract::from_value(&value).unwrap()
    };
    let test = |cmd: &str, must: bool| json!({ "name": "one", "cmd": cmd, "must_pass": must });
    let strict = json!({});
    let lax = json!({ "accept_mode": "no-regression" });
    let both = json!([test("pytest -q", true), test("npm test", true)]);
    let words = |text: &str| vec![text.to_owned()];
    let (a, b) = (words("review"), words("other"));
    let cases = [
        ("the same", &strict, &both, Some(&a), Vec::new()),
        (
            "a command more",
            &strict,
            &json!([
                test("npm test", true),
                test("go test", true),
                test("pytest -q", true)
            ]),
            Some(&a),
            Vec::new(),
        ),
        (
            "a command less",
            &strict,
            &json!([test("npm test", true)]),
            Some(&a),
            vec![Kind::Commands],
        ),
        (
            "need not pass",
            &strict,
            &json!([test("pytest -q", false), test("npm test", true)]),
            Some(&a),
            vec![Kind::Commands],
        ),
        (
            "another reviewer",
            &strict,
            &both,
            Some(&b),
            vec![Kind::Reviewer],
        ),
        ("no reviewer", &strict, &both, None, vec![Kind::Reviewer]),
        (
            "another mode",
            &lax,
            &both,
            Some(&a),
            vec![Kind::AcceptMode],
        ),
    ];
    let before = first(strict.clone(), both.clone());
    for (name, mode, commands, reviewer, want) in cases {
        let after = first(mode.clone(), commands.clone());
        let reviewer = reviewer.map(Vec::as_slice);
        let found = laxer((&before, Some(a.as_slice())), (&after, reviewer));
        let kinds: Vec<Kind> = found.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, want, "{name}");
    }
    let lax_before = first(lax, both.clone());
    let same = laxer((&lax_before, None), (&lax_before, Some(a.as_slice())));
    assert_eq!(same, [], "the mode is the same, and a reviewer is new");
    let stricter = first(strict, both);
    assert_eq!(laxer((&lax_before, None), (&stricter, None)), []);
}

#[test]
fn fewer_tests_for_refused_work_are_asked_about() {
    let strict = document(&["app"], &json!({}));
    let mut value = serde_json::to_value(&strict).unwrap();
    value["x_provost"] = json!({ "permit": { "fewer_tests": true } });
    let fewer = contract::from_value(&value).unwrap();
    let found = laxer((&strict, None), (&fewer, None));
    let kinds: Vec<Kind> = found.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [Kind::FewerTests]);
    assert_eq!(
        laxer((&fewer, None), (&fewer, None)),
        [],
        "permitted before"
    );
}
