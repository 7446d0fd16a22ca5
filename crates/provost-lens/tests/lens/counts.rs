//! Numbers that were counted by hand.

use crate::scene::{Scene, function, names};

struct Case {
    file: &'static str,
    text: &'static str,
    name: &'static str,
    cyclomatic: u32,
    cognitive: u32,
    nesting: u32,
    lines: (u32, u32),
}

const CASES: &[Case] = &[
    Case {
        file: "a.py",
        text: "def f(a, b):
    if a and b:
        for x in b:
            while x:
                x -= 1
    elif a or b or x:
        pass
    else:
        pass
    try:
        g()
    except ValueError:
        pass
    y = a if b else 0
    return [i for i in a if i]
",
        name: "f",
        // if, and, for, while, elif, two or, except, ternary, for and if of the list
        cyclomatic: 12,
        // if 1, and 1, for 2, while 3, elif 1, or 1, else 1, except 1, ternary 1
        cognitive: 12,
        nesting: 3,
        lines: (1, 15),
    },
    Case {
        file: "a.rs",
        text: "fn f(a: bool, b: Option<u8>) -> u8 {
    if a && true || false {
        loop { break; }
    } else if let Some(1) = b {
        return 1;
    } else {
        g();
    }
    match b {
        Some(1) => 1,
        Some(x) if x > 3 => x,
        _ => 0,
    }
}
",
        name: "f",
        // if, &&, ||, loop, if let, two arms
        cyclomatic: 8,
        // if 1, || 1, && 1, loop 2, else if 1, else 1, match 1
        cognitive: 8,
        nesting: 2,
        lines: (1, 14),
    },
    Case {
        file: "a.js",
        text: "function f(a, b) {
  for (const x of a) {
    if (x) { continue; }
    else if (b) { break; }
    else { g(); }
  }
  switch (a) {
    case 1: break;
    case 2: break;
    default: break;
  }
  const h = b ? 1 : 2;
  return a && b || h;
}
",
        name: "f",
        // for, if, else if, two cases, ternary, &&, ||
        cyclomatic: 9,
        // for 1, if 2, else if 1, else 1, switch 1, ternary 1, || 1, && 1
        cognitive: 9,
        nesting: 2,
        lines: (1, 14),
    },
    Case {
        file: "a.ts",
        text: "class T {
  f(a: number, b?: string): number {
    while (a > 0) {
      a -= 1;
    }
    return [1].map((x: number) => { if (x) { return a; } return 0; })[0];
  }
}
",
        name: "T.f",
        // while, if
        cyclomatic: 3,
        // while 1, if in a lambda 2
        cognitive: 3,
        nesting: 2,
        lines: (2, 7),
    },
    Case {
        file: "a.go",
        text: "package p

func f(a int, b bool) int {
\tfor i := 0; i < a; i++ {
\t\tif b && i > 2 {
\t\t\treturn 1
\t\t} else if i > 3 {
\t\t\treturn 2
\t\t} else {
\t\t\ta++
\t\t}
\t}
\tswitch {
\tcase a > 1:
\t\treturn 3
\tdefault:
\t\treturn 4
\t}
}
",
        name: "f",
        // for, if, &&, else if, case
        cyclomatic: 6,
        // for 1, if 2, && 1, else if 1, else 1, switch 1
        cognitive: 7,
        nesting: 2,
        lines: (3, 19),
    },
    Case {
        file: "T.java",
        text: "class T {
    int f(int a, boolean b) {
        while (a > 0) {
            if (b || a == 1) {
                a--;
            } else {
                a -= 2;
            }
        }
        try { g(); } catch (Exception e) { a = 0; }
        switch (a) {
            case 1: return 1;
            default: return b ? 2 : 3;
        }
    }
}
",
        name: "T.f",
        // while, if, ||, catch, case, ternary
        cyclomatic: 7,
        // while 1, if 2, || 1, else 1, catch 1, switch 1, ternary 2
        cognitive: 9,
        nesting: 2,
        lines: (2, 15),
    },
    Case {
        file: "a.c",
        text: "static int f(int a, int b) {
    if (a) {
        do { a--; } while (a && b);
    } else if (b) {
        a = 1;
    }
    switch (b) {
    case 1:
    case 2: a = 2; break;
    default: a = b ? 1 : 2;
    }
    return a;
}
",
        name: "f",
        // if, do, &&, else if, two cases, ternary
        cyclomatic: 8,
        // if 1, do 2, && 1, else if 1, switch 1, ternary 2
        cognitive: 8,
        nesting: 2,
        lines: (1, 13),
    },
    Case {
        file: "a.cpp",
        text: "namespace n {
int *f(const std::vector<int> &v, int &&r) {
    int s = 0;
    for (int x : v) {
        auto g = [&](int y) { if (y > 1) { s += y; } };
        g(x);
    }
    try { s++; } catch (...) { s = 0; }
    return s && r ? nullptr : nullptr;
}
}
",
        name: "n.f",
        // for, if, catch, &&, ternary; not the && of a reference
        cyclomatic: 6,
        // for 1, if in a lambda in a loop 3, catch 1, ternary 1, && 1
        cognitive: 7,
        nesting: 3,
        lines: (2, 10),
    },
];

#[test]
fn every_language_counts_as_by_hand() {
    for case in CASES {
        let scene = Scene::new(&[(case.file, case.text)]);
        let report = scene.report();
        let one = function(&report, case.name);
        assert_eq!(one.cyclomatic, case.cyclomatic, "{} cyclomatic", case.file);
        assert_eq!(one.cognitive, case.cognitive, "{} cognitive", case.file);
        assert_eq!(one.nesting, case.nesting, "{} nesting", case.file);
        assert_eq!((one.line, one.end_line), case.lines, "{} lines", case.file);
        assert!(!one.unsound, "{}", case.file);
    }
}

#[test]
fn functions_have_the_names_that_people_use() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "a.py",
            "class A:\n    def m(self):\n        def inner():\n            pass\n        return inner\n",
            &["A.m", "A.m.inner"],
        ),
        (
            "a.rs",
            "impl A { fn m(&self) {} }\nmod b { fn c() {} }\nimpl T for A { fn t() {} }\n",
            &["A.m", "b.c", "A.t"],
        ),
        (
            "a.js",
            "const h = () => 1;\nclass K { m() {} p = () => 2; }\nexport default function d() {}\nx.y = function () {};\nrun(() => 3);\n",
            &["h", "K.m", "K.p", "d", "y"],
        ),
        (
            "a.go",
            "package p\nfunc (r *T) M() {}\nfunc g() {}\n",
            &["T.M", "g"],
        ),
        (
            "A.java",
            "class A { A() {} void m() {} class B { void n() {} } }\n",
            &["A.A", "A.m", "A.B.n"],
        ),
        (
            "a.c",
            "char *name(void) { return 0; }\nint (*pick(int a))(int) { return 0; }\n",
            &["name", "pick"],
        ),
        (
            "a.cpp",
            "struct S { void m() {} };\nvoid S::n() {}\n",
            &["S.m", "S::n"],
        ),
    ];
    for (file, text, want) in cases {
        let scene = Scene::new(&[(file, text)]);
        let report = scene.report();
        assert_eq!(names(&report), *want, "{file}");
    }
}

#[test]
fn a_class_falls_into_the_parts_that_share_nothing() {
    let cases = [
        (
            "a.py",
            "class A:
    def __init__(self):
        self.x = self.y = 0
    def one(self):
        return self.x
    def two(self):
        return self.x + 1
    def three(self):
        return self.y
    def free(self):
        return 4
",
            Some(2),
        ),
        (
            "a.py",
            "class A:
    def one(self):
        return self.two()
    def two(self):
        return 2
",
            Some(1),
        ),
        (
            "a.ts",
            "class A { x = 1; y = 2; one() { return this.x; } two() { return this.y; } }\n",
            Some(2),
        ),
        (
            "A.java",
            "class A { int x; int y; int one() { return x; } int two() { return x; } int three() { return y; } }\n",
            Some(2),
        ),
        (
            "a.cpp",
            "class A { int x; int y; int one() { return x; } int two() { return y; } };\n",
            Some(2),
        ),
        (
            "a.rs",
            "struct A { x: u8 }\nimpl A { fn one(&self) -> u8 { self.x } }\n",
            None,
        ),
    ];
    for (file, text, want) in cases {
        let report = Scene::new(&[(file, text)]).report();
        assert_eq!(
            report.classes[0].cohesion, want,
            "{file}: {:?}",
            report.classes
        );
    }
}

#[test]
fn a_class_uses_those_of_its_tree() {
    let scene = Scene::new(&[
        ("a.py", "class A:\n    pass\nclass B:\n    pass\n"),
        (
            "b.py",
            "class C(A):\n    def m(self):\n        return [B(), str(), Elsewhere(), C()]\n",
        ),
    ]);
    let report = scene.report();
    let class = report
        .classes
        .iter()
        .find(|class| class.name == "C")
        .unwrap();
    assert_eq!(class.coupling, 2);
}
