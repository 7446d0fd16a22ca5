use super::*;

const FILES: &[&str] = &[
    "pkg/__init__.py",
    "pkg/a.py",
    "pkg/sub/__init__.py",
    "pkg/sub/b.py",
    "src/lib.rs",
    "src/x.rs",
    "src/x/y.rs",
    "web/a.ts",
    "web/lib/index.ts",
    "m/util/u.go",
    "m/util/u_test.go",
    "java/a/b/C.java",
    "inc/p/h.h",
    "one/dup.h",
    "two/dup.h",
    "c/main.c",
];

/// Style, importing file, target, and the file that is meant.
type Case = (Imports, &'static str, &'static str, Option<&'static str>);

const CASES: &[Case] = &[
    (Imports::Dotted, "pkg/b.py", "pkg.a", Some("pkg/a.py")),
    (Imports::Dotted, "pkg/b.py", "pkg:a", Some("pkg/a.py")),
    (Imports::Dotted, "pkg/b.py", "pkg.a:add", Some("pkg/a.py")),
    (Imports::Dotted, "pkg/sub/b.py", "..a:add", Some("pkg/a.py")),
    (
        Imports::Dotted,
        "pkg/sub/b.py",
        ".:thing",
        Some("pkg/sub/__init__.py"),
    ),
    (Imports::Dotted, "pkg/b.py", "os.path", None),
    (
        Imports::Crate,
        "src/x/y.rs",
        "crate::x::Thing",
        Some("src/x.rs"),
    ),
    (
        Imports::Crate,
        "src/x.rs",
        "self::y::Deep",
        Some("src/x/y.rs"),
    ),
    (
        Imports::Crate,
        "src/x/y.rs",
        "super::Other",
        Some("src/x.rs"),
    ),
    (Imports::Crate, "src/x.rs", "std::io", None),
    (Imports::Quoted, "web/b.ts", "./a", Some("web/a.ts")),
    (Imports::Quoted, "web/b.ts", "./a.js", Some("web/a.ts")),
    (
        Imports::Quoted,
        "web/b.ts",
        "./lib",
        Some("web/lib/index.ts"),
    ),
    (Imports::Quoted, "web/b.ts", "react", None),
    (Imports::Quoted, "web/b.ts", "../../../etc", None),
    (
        Imports::Package,
        "m/main.go",
        "example.com/m/util",
        Some("m/util/u.go"),
    ),
    (
        Imports::Qualified,
        "java/x/D.java",
        "a.b.C",
        Some("java/a/b/C.java"),
    ),
    (
        Imports::Qualified,
        "java/x/D.java",
        "a.b.C.member",
        Some("java/a/b/C.java"),
    ),
    (Imports::Include, "c/main.c", "p/h.h", Some("inc/p/h.h")),
    (Imports::Include, "c/main.c", "dup.h", None),
    (Imports::Include, "one/x.c", "dup.h", Some("one/dup.h")),
];

#[test]
fn imports_are_read_as_they_are_written() {
    let cases: [(Imports, &str, &[&str]); 12] = [
        (Imports::Dotted, "import a.b as c, d", &["a.b", "d"]),
        (
            Imports::Dotted,
            "from .a import (b, # why\n  c)",
            &[".a:b", ".a:c"],
        ),
        (Imports::Dotted, "from . import x", &[".:x"]),
        (Imports::Dotted, "from a import *", &["a:*"]),
        (
            Imports::Crate,
            "pub use crate::a::{b, c::{d, e as f}};",
            &["crate::a::b", "crate::a::c::d", "crate::a::c::e"],
        ),
        (Imports::Crate, "use std::io;", &["std::io"]),
        (Imports::Quoted, "import x from \"./y\";", &["./y"]),
        (Imports::Quoted, "import './side'", &["./side"]),
        (
            Imports::Package,
            "alias \"example.com/m/pkg\"",
            &["example.com/m/pkg"],
        ),
        (Imports::Qualified, "import static a.b.C.d;", &["a.b.C.d"]),
        (Imports::Include, "#include \"x/y.h\"\n", &["x/y.h"]),
        (Imports::Include, "#include <stdio.h>\n", &[]),
    ];
    for (style, text, want) in cases {
        assert_eq!(targets(style, text), want, "{text}");
    }
    assert_eq!(called("require('./x')"), ["./x"]);
    assert_eq!(called("print('./x')"), Vec::<String>::new());
}

#[test]
fn a_target_is_the_file_it_means_or_nothing() {
    let files = Files::new(FILES.iter().copied());
    for (style, from, target, want) in CASES.iter().copied() {
        let found = files.resolve(style, from, target);
        assert_eq!(found.first().copied(), want, "{from} {target}");
    }
}
