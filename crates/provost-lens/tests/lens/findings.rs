//! What the lens finds, and what it does not.

use proptest::prelude::*;
use provost_lens::structure::compare::{DeltaVerdict, compare};
use provost_lens::structure::{Category, Confidence, Settings};

use crate::scene::{Scene, deciding, ids, repeated};

const LONG: &str = "def NAME(values):
    total = 0
    for value in values:
        if value > 10:
            total += value * 2
        elif value < 0:
            total -= 1
        else:
            total += 7
    for other in reversed(values):
        print(other, 'seen')
        total = total - other.size
    if total > 100:
        raise ValueError('much')
    return total
";

fn named(name: &str) -> String {
    LONG.replace("NAME", name)
}

/// Uses the names, so that nothing is unused.
const USES: (&str, &str) = ("use.py", "one()\ntwo()\nthree()\nfour()\n");

#[test]
fn a_copy_is_found_under_other_names_and_not_with_other_parts() {
    let renamed = named("two")
        .replace("total", "sum_")
        .replace("value", "item")
        .replace("100", "99");
    let other = named("three").replace(".size", ".weight");
    let scene = Scene::new(&[
        ("a.py", &named("one")),
        ("b.py", &renamed),
        ("c.py", &other),
        USES,
    ]);
    let report = scene.report();
    let copies: Vec<_> = report
        .findings
        .iter()
        .filter(|one| one.category == Category::Function)
        .collect();
    assert_eq!(copies.len(), 1, "{:?}", report.findings);
    let places: Vec<&str> = copies[0]
        .places
        .iter()
        .map(|spot| spot.path.as_str())
        .collect();
    assert_eq!((places, copies[0].value), (vec!["a.py", "b.py"], 2));
}

#[test]
fn a_copy_that_was_edited_is_nearly_one_and_decides_nothing() {
    let edited = named("two").replace("    if total > 100:", "    if total > 100 and values:");
    let scene = Scene::new(&[("a.py", &named("one")), ("b.py", &edited), USES]);
    let report = scene.report();
    assert_eq!(
        ids(&report, |one| one.category == Category::Near).len(),
        1,
        "{:?}",
        report.findings
    );
    assert_eq!(deciding(&report), Vec::<&str>::new());
}

#[test]
fn short_functions_are_no_copies() {
    let text = "def one(a):\n    return a + 1\n\n\ndef two(b):\n    return b + 1\n";
    assert_eq!(
        deciding(&Scene::new(&[("a.py", text), USES]).report()),
        Vec::<&str>::new()
    );
    let mut settings = Settings::default();
    (settings.min_loc, settings.min_stmt) = (2, 1);
    let report = Scene::new(&[("a.py", text), USES]).with(&settings, None);
    assert_eq!(
        ids(&report, |one| one.category == Category::Function).len(),
        1
    );
}

#[test]
fn a_run_of_statements_is_found_inside_other_functions() {
    let run = repeated("    stepAT(\n        here,\n    )\n", 0..12);
    let one = format!("def one(here):\n    begin()\n{run}    return 1\n");
    let two =
        format!("def two(here):\n    if here:\n        pass\n{run}    stop()\n    return here\n");
    let report = Scene::new(&[("a.py", &one), ("b.py", &two), USES]).report();
    let found: Vec<_> = report
        .findings
        .iter()
        .filter(|one| one.category == Category::Block)
        .collect();
    assert_eq!(found.len(), 1, "{:?}", report.findings);
    let lines: Vec<(u32, u32)> = found[0]
        .places
        .iter()
        .map(|spot| (spot.line, spot.end_line))
        .collect();
    assert_eq!(lines, [(3, 38), (4, 39)]);
}

#[test]
fn repetition_within_a_function_is_no_copy_of_itself() {
    let run = repeated("    total = total + values[AT]\n", 0..30);
    let text = format!("def one(values):\n    total = 0\n{run}    return total\n");
    let report = Scene::new(&[("a.py", &text), USES]).report();
    let overlap = report
        .findings
        .iter()
        .filter(|one| one.category == Category::Block);
    for finding in overlap {
        let (first, second) = (&finding.places[0], &finding.places[1]);
        assert!(first.end_line < second.line, "{finding:?}");
    }
}

/// A file, its text, and what is unused in it.
type UnusedCase = (
    &'static str,
    &'static str,
    &'static [(&'static str, Confidence)],
);

#[test]
fn an_unnamed_item_is_unused_as_surely_as_its_language_allows() {
    let cases: &[UnusedCase] = &[
        (
            "a.py",
            "def used():\n    pass\ndef public():\n    pass\ndef _private():\n    pass\ndef again():\n    again()\nused()\n@register\ndef hooked():\n    pass\ndef __getattr__(n):\n    pass\n",
            &[
                ("_private", Confidence::High),
                ("again", Confidence::Medium),
                ("hooked", Confidence::Low),
                ("public", Confidence::Medium),
            ],
        ),
        (
            "a.rs",
            "pub fn public() {}\nfn private() {}\nfn used() {}\nfn main() { used(); }\n#[test]\nfn check() {}\nstruct S;\nimpl Display for S { fn fmt(&self) {} }\n#[cfg(test)]\nmod tests { fn helper() {} }\n",
            &[
                ("S", Confidence::High),
                ("private", Confidence::High),
                ("public", Confidence::Low),
            ],
        ),
        (
            "a.ts",
            "export function open() {}\nfunction closed() {}\nexport const arrow = () => 1;\nclass K { private p() {} q() {} }\nnew K();\n",
            &[
                ("K.p", Confidence::High),
                ("K.q", Confidence::Low),
                ("arrow", Confidence::Low),
                ("closed", Confidence::High),
                ("open", Confidence::Low),
            ],
        ),
        (
            "a.go",
            "package p\nfunc Open() {}\nfunc closed() {}\nfunc init() {}\n",
            &[("Open", Confidence::Low), ("closed", Confidence::High)],
        ),
        (
            "A.java",
            "class A { private int p() { return 1; } public int q() { return 2; } @Override int r() { return 3; } }\n",
            &[
                ("A", Confidence::Medium),
                ("A.p", Confidence::High),
                ("A.q", Confidence::Low),
                ("A.r", Confidence::Low),
            ],
        ),
        (
            "a.c",
            "static int kept(void) { return 1; }\nint open(void) { return 2; }\nint main(void) { return 0; }\n",
            &[("kept", Confidence::High), ("open", Confidence::Low)],
        ),
    ];
    for (file, text, want) in cases {
        let report = Scene::new(&[(file, text)]).report();
        let found: Vec<(&str, Confidence)> = report
            .findings
            .iter()
            .filter(|one| {
                matches!(
                    one.category,
                    Category::UnusedFunction | Category::UnusedClass
                )
            })
            .map(|one| (one.symbol.as_str(), one.confidence))
            .collect();
        assert_eq!(found, *want, "{file}");
    }
}

#[test]
fn a_name_in_another_file_or_in_a_text_counts() {
    let text = "def run_it():\n    pass\n";
    let cases: &[(&str, &str, &[Confidence])] = &[
        ("b.py", "from a import run_it\n", &[]),
        ("b.py", "call('a.run_it')\n", &[Confidence::Low]),
        ("setup.toml", "entry = 'a:run_it'\n", &[Confidence::Low]),
        ("notes.md", "run_it is great\n", &[Confidence::Medium]),
        ("tests/test_a.py", "run_it()\n", &[]),
    ];
    for (file, other, want) in cases {
        let report = Scene::new(&[("a.py", text), (file, other)]).report();
        let found: Vec<Confidence> = report
            .findings
            .iter()
            .filter(|one| one.symbol == "run_it")
            .map(|one| one.confidence)
            .collect();
        assert_eq!(found, *want, "{file} {other}");
    }
}

#[test]
fn a_circle_of_imports_is_found_unless_it_is_closed_later() {
    let at_once = Scene::new(&[
        ("p/__init__.py", ""),
        ("p/a.py", "from p.b import B\n\nB\n"),
        ("p/b.py", "from . import a\n\na\n"),
    ]);
    let report = at_once.report();
    assert_eq!(
        ids(&report, |one| one.category == Category::DependencyCycle).len(),
        1
    );
    let later = Scene::new(&[
        ("p/__init__.py", ""),
        ("p/a.py", "from p.b import B\n\nB\n"),
        (
            "p/b.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import a\n\na\n",
        ),
    ]);
    let report = later.report();
    assert_eq!(
        ids(&report, |one| one.category == Category::DependencyCycle),
        Vec::<&str>::new()
    );
    assert_eq!(report.imports.len(), 2, "{:?}", report.imports);
    let script = Scene::new(&[
        ("a.ts", "import { b } from './b';\nexport const a = b;\n"),
        ("b.ts", "import { a } from './a';\nexport const b = a;\n"),
    ]);
    let report = script.report();
    assert_eq!(
        ids(&report, |one| one.category == Category::DependencyCycle).len(),
        1
    );
}

#[test]
fn the_toy_example_behaves_as_documented() {
    let files = [
        ("pkg/__init__.py", ""),
        ("pkg/a.py", "def add(a, b):\n    return a + b\n"),
        (
            "pkg/b.py",
            "from pkg.a import add\n\n\ndef twice(x):\n    return add(x, x)\n",
        ),
        ("pkg/c.py", "def shout(text):\n    return text.upper()\n"),
        (
            "pkg/main.py",
            "from pkg.b import twice\nfrom pkg.c import shout\n\n\nprint(twice(2))\nprint(shout('x'))\n",
        ),
        ("README.md", "# readme\n"),
    ];
    let scene = Scene::new(&files);
    let before = scene.report();
    assert_eq!(deciding(&before), Vec::<&str>::new());
    let dead = "def add(a, b):\n    \"\"\"Sum.\"\"\"\n    return a + b\n\n\ndef never_called(q):\n    return q * 3\n";
    let branches = repeated(
        "    if a > AT and b < AT:\n        total += AT\n    elif a == AT:\n        total -= AT\n",
        1..5,
    );
    let branches = format!("def add(a, b):\n    total = a\n{branches}    return total + b\n");
    let cases = [
        (
            "documented",
            "def add(a, b):\n    \"\"\"Sum.\"\"\"\n    return a + b\n",
            DeltaVerdict::Stable,
            0,
        ),
        (
            "another sign",
            "def add(a, b):\n    return a - b\n",
            DeltaVerdict::Stable,
            0,
        ),
        ("something dead", dead, DeltaVerdict::Regressed, 1),
        (
            "many branches",
            branches.as_str(),
            DeltaVerdict::Regressed,
            0,
        ),
    ];
    for (name, text, verdict, regressions) in cases {
        let scene = Scene::new(&files);
        scene.write("pkg/a.py", text.as_bytes());
        let after = scene.report();
        assert_ne!(before.digest(), after.digest(), "{name}");
        let delta = compare(&before, &after);
        assert_eq!(delta.verdict, verdict, "{name}: {delta:?}");
        assert_eq!(delta.regressions.len(), regressions, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn moving_files_keeps_the_ids(places in proptest::collection::vec("[a-d]{1,2}(/[a-d]{1,2}){0,2}", 3)) {
        let texts = [
            named("one") + "def lost():\n    pass\n",
            named("two"),
            "class Big:\n    def m(self):\n        pass\ndef lost():\n    return 2\n".to_owned(),
        ];
        let here: Vec<(String, &String)> = texts.iter().enumerate().map(|(at, text)| (format!("m{at}.py"), text)).collect();
        let there: Vec<(String, &String)> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| (format!("{}/m{at}.py", places[at]), text))
            .collect();
        let scene = |files: &[(String, &String)]| {
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            Scene::new(&files).report()
        };
        let (before, after) = (scene(&here), scene(&there));
        prop_assert!(before.findings.len() >= 4);
        prop_assert_eq!(ids(&before, |_| true), ids(&after, |_| true));
        let functions = |report: &provost_lens::structure::Report| {
            let mut ids: Vec<String> = report.functions.iter().map(|one| one.id.clone()).collect();
            ids.sort();
            ids
        };
        prop_assert_eq!(functions(&before), functions(&after));
        let delta = compare(&before, &after);
        prop_assert_eq!(delta.verdict, DeltaVerdict::Stable);
        prop_assert_eq!(delta.patch.map(|patch| (patch.added, patch.removed, patch.changed)), Some((0, 0, 0)));
    }
}
