//! Input that is not what it claims, or too large to read.

use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use provost_lens::TreeSitterLens;
use provost_lens::structure::compare::{DeltaVerdict, compare};
use provost_lens::structure::{Parse, Settings};

use crate::scene::{Scene, deciding, listing, repeated};

fn parse_of(path: &str, bytes: &[u8]) -> Parse {
    let scene = Scene::new(&[]);
    scene.write(path, bytes);
    let report = scene.report();
    assert_eq!(deciding(&report), Vec::<&str>::new(), "{path}");
    report.files[0].parse
}

#[test]
fn a_wrong_language_is_reported_and_finds_nothing() {
    assert_eq!(parse_of("a.py", b"\x00\x01\xff\xfe"), Parse::NotText);
    assert_eq!(
        parse_of(
            "a.rs",
            "#include <stdio.h>\nint main() { return 0; }".as_bytes()
        ),
        Parse::Errors
    );
    assert_eq!(
        parse_of("a.java", b"%PDF-1.4 not java at all {{{{"),
        Parse::Errors
    );
    assert_eq!(parse_of("a.go", b""), Parse::Clean);
    assert_eq!(
        parse_of("a.py", &b"x = 1\n".repeat(400_000)),
        Parse::TooLarge
    );
}

#[test]
fn bombs_end_in_time() {
    let deep = 200_000;
    let bombs: Vec<(&str, String)> = vec![
        ("a.py", "(".repeat(deep)),
        ("b.py", "[".repeat(deep) + &"]".repeat(deep)),
        ("c.js", "{".repeat(deep)),
        ("d.js", "a=>".repeat(deep)),
        ("e.rs", "fn f(){".repeat(50_000)),
        ("f.c", "if(x)".repeat(deep)),
        ("g.cpp", "a<b<".repeat(20_000)),
        (
            "h.py",
            (0..2_000).map(|at| " ".repeat(at) + "if x:\n").collect(),
        ),
        ("i.ts", "`${".repeat(deep)),
        ("j.go", "func(){".repeat(50_000)),
        ("k.java", "class A{".repeat(50_000)),
        ("l.py", "x and ".repeat(deep) + "y"),
        ("m.py", "import a\n".repeat(100_000)),
        ("n.py", repeated("def fAT(): return AT\n", 0..20_000)),
    ];
    for (path, text) in bombs {
        let scene = Scene::new(&[(path, &text)]);
        let start = Instant::now();
        let report = scene.report();
        let took = start.elapsed();
        assert!(took < Duration::from_mins(1), "{path} took {took:?}");
        assert_eq!(report.files.len(), 1, "{path}");
    }
}

/// Peak memory of this process, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let digits = line.unwrap().trim().trim_end_matches(" kB");
    digits.parse::<u64>().unwrap() * 1024
}

#[test]
fn files_of_fifty_megabytes_end_in_time_and_memory_and_decide_nothing() {
    let size = 50 << 20;
    let fill = |word: &str| word.repeat(size / word.len()).into_bytes();
    let scene = Scene::new(&[("kept.py", "def kept():\n    return 1\n")]);
    scene.write("lines.py", &fill("value = other(value)\n"));
    scene.write("line.js", &fill("a+"));
    scene.write("text.json", &fill("{\"a\": "));
    let sparse = std::fs::File::create(scene.root().join("hole.c")).unwrap();
    sparse.set_len(100 << 20).unwrap();
    let start = Instant::now();
    let report = scene.remembered();
    let parses: Vec<Parse> = report.files.iter().map(|file| file.parse).collect();
    let large = Parse::TooLarge;
    assert_eq!(parses, [Parse::Unread, Parse::Clean, large, large]);
    assert_eq!(
        deciding(&report),
        ["dead_code:kept"],
        "it is in another language"
    );
    let (took, held) = (start.elapsed(), peak());
    assert!(took < Duration::from_mins(2), "{took:?}");
    assert!(held < 1 << 30, "{held} bytes");
    assert_eq!(scene.remembered(), report);
}

#[test]
fn lines_of_a_megabyte_end_in_time() {
    let long = 1 << 20;
    let lines = [
        ("a.py", format!("x = [{}]\n", "1, ".repeat(long / 3))),
        (
            "b.js",
            format!("var x = {};\n", "f(a)+".repeat(long / 5) + "1"),
        ),
        ("c.rs", format!("// {}\nfn f() {{}}\n", "x".repeat(long))),
        (
            "d.c",
            format!("char *s = \"{}\";\n", "\\n".repeat(long / 2)),
        ),
        (
            "e.ts",
            format!("let x = {}\n", "a?b:".repeat(long / 4) + "c"),
        ),
        ("f.py", format!("def {}():\n    pass\n", "f".repeat(long))),
        ("g.py", format!("import {}\n", "a.".repeat(long / 2) + "b")),
    ];
    for (path, text) in lines {
        let scene = Scene::new(&[(path, &text)]);
        let start = Instant::now();
        let report = scene.report();
        let took = start.elapsed();
        assert!(took < Duration::from_mins(1), "{path} took {took:?}");
        assert_eq!(report.files.len(), 1, "{path}");
    }
}

#[test]
fn a_syntax_error_decides_nothing() {
    let fine = "def one():\n    return 1\n\n\ndef two():\n    return one()\n\n\ntwo()\n";
    let broken = "def one(:\n    return 1\n\n\ndef two():\n    return one()\n\n\ntwo()\n";
    let (before, after) = (
        Scene::new(&[("a.py", fine)]),
        Scene::new(&[("a.py", broken)]),
    );
    let delta = compare(&before.report(), &after.report());
    assert_eq!(delta.regressions, []);
    assert_eq!(delta.parse_worsened.len(), 1);
    assert_eq!(delta.verdict, DeltaVerdict::Regressed, "health shows it");
}

#[test]
fn a_user_that_cannot_be_read_makes_nothing_unused() {
    let defined = ("a.py", "def helper():\n    return 1\n");
    let caller = "from a import helper\nhelper()\n";
    let filler = "x = 1\n".repeat(400_000);
    for (name, text) in [
        ("large", format!("{caller}{filler}")),
        ("broken", format!("((({caller}")),
    ] {
        let scene = Scene::new(&[defined, ("b.py", &text)]);
        assert_eq!(deciding(&scene.report()), Vec::<&str>::new(), "{name}");
    }
    let scene = Scene::new(&[defined]);
    scene.write("b.py", &[caller.as_bytes(), b"\xff\xfe"].concat());
    assert_eq!(deciding(&scene.report()), Vec::<&str>::new(), "not text");
}

#[test]
fn links_are_not_followed() {
    let scene = Scene::new(&[("a.py", "def one():\n    pass\none()\n")]);
    let outside = scene.cache();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("b.py"), "def secret():\n    pass\n").unwrap();
    std::os::unix::fs::symlink(outside.join("b.py"), scene.root().join("b.py")).unwrap();
    std::os::unix::fs::symlink(&outside, scene.root().join("dir")).unwrap();
    let lens = TreeSitterLens {
        list: listing(&["a.py", "b.py", "dir/b.py", "gone.py"]),
        cache: None,
    };
    let report = lens.analyze(&scene.root(), &Settings::default()).unwrap();
    let names: Vec<&str> = report
        .functions
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["one"]);
}

#[test]
fn names_that_are_not_text_and_settings_that_make_no_sense_are_no_trouble() {
    let scene = Scene::new(&[]);
    let odd = scene.root().join(std::ffi::OsStr::from_bytes(b"\xff.py"));
    std::fs::write(odd, "def f():\n    pass\n").unwrap();
    let report = scene.report();
    assert_eq!((report.tree_files, report.files.len()), (1, 0));
    assert_eq!(report.health, None);
    let lens = TreeSitterLens {
        list: listing(&[]),
        cache: None,
    };
    let settings = Settings {
        block_min_stmt: 0,
        ..Settings::default()
    };
    assert!(lens.analyze(&scene.root(), &settings).is_err());
    assert!(
        lens.analyze(&scene.root().join("nowhere"), &Settings::default())
            .is_err()
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn garbage_is_read_without_a_fuss(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "def", "class", "fn", "if", "else", "for", "while", "(", ")", "{", "}", ":", ";", "\n    ", "\n",
                "=", "=>", "import", "from", "x", "self", ".", "\"", "'", "match", "case", "switch", "<", ">", "&&",
                "#include", "use", "::", "struct", "impl", "func", "export", "const", "[", "]", ",", "@a", "async",
            ]),
            0..120,
        ),
        ending in proptest::sample::select(vec!["py", "rs", "js", "ts", "tsx", "go", "java", "c", "h", "cpp"]),
    ) {
        let scene = Scene::new(&[]);
        scene.write(&format!("a.{ending}"), &bytes);
        scene.write(&format!("b.{ending}"), words.join(" ").as_bytes());
        let report = scene.report();
        prop_assert_eq!(report.files.len(), 2);
        prop_assert_eq!(report, scene.report());
    }
}
