//! Says what the kinds of nodes mean in each language.
//!
//! A language is a [`Spec`]: names of kinds and fields, and a few choices between ways that are
//! written once ([`Imports`], [`Naming`], [`Members`]). No language has code of its own.

mod families;
mod scripts;

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use provost_core::structure::Confidence;
use tree_sitter::Language;

/// What a kind of node means; one kind may mean several things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Roles(u32);

macro_rules! roles {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $field:ident;)+) => {
        impl Roles {
            $($(#[$doc])* pub(crate) const $name: Self = Self(1 << $bit);)+
        }

        /// The names of the kinds that mean something.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct Kinds {
            $($(#[$doc])* pub(crate) $field: &'static [&'static str],)+
        }

        impl Kinds {
            /// No kind means anything.
            pub(crate) const NONE: Self = Self { $($field: &[],)+ };

            fn each(&self) -> impl Iterator<Item = (Roles, &'static str)> + use<> {
                [$((Roles::$name, self.$field),)+]
                    .into_iter()
                    .flat_map(|(role, names)| names.iter().map(move |name| (role, *name)))
            }
        }
    };
}

roles! {
    /// A function with a name.
    FUNCTION = 0, function;
    /// A function that has a name only if what is around it gives one.
    LAMBDA = 1, lambda;
    /// Gives a name to the lambda right below it.
    NAMER = 2, namer;
    /// A class, or what comes near to one.
    CLASS = 3, class;
    /// Only part of the names of what is in it.
    SPACE = 4, space;
    /// A branch that may be followed by others.
    IF = 5, branch;
    /// The other side of a branch.
    ELSE = 6, otherwise;
    /// A branch on the other side of a branch, as one node.
    ELIF = 7, elif;
    /// A loop.
    LOOP = 8, repeat;
    /// What happens when something goes wrong.
    CATCH = 9, catch;
    /// A choice between cases.
    SWITCH = 10, switch;
    /// One of them.
    CASE = 11, case;
    /// A branch that is an expression.
    TERNARY = 12, ternary;
    /// A loop or branch inside a literal.
    COMPREHENSION = 13, comprehension;
    /// What an operator of logic stands in.
    BOOLEAN = 14, boolean;
    /// A statement.
    STATEMENT = 15, statement;
    /// A comment.
    COMMENT = 16, comment;
    /// A name.
    IDENTIFIER = 17, identifier;
    /// The name of a part of something.
    MEMBER = 18, member;
    /// The name of a type.
    TYPE_NAME = 19, type_name;
    /// A value.
    LITERAL = 20, literal;
    /// A value that may hold names.
    STRING = 21, string;
    /// Says that another file is needed.
    IMPORT = 22, import;
    /// Says something about the item that follows it.
    ATTRIBUTE = 23, attribute;
    /// Says something about the item that it is in.
    MODIFIER = 24, modifier;
    /// Makes what is in it known to others.
    EXPORT = 25, export;
    /// Gets hold of a part of something.
    ACCESS = 26, access;
    /// Declares parts of a class.
    FIELD = 27, field;
    /// A call, which may be an import.
    CALL = 28, call;
    /// Holds a definition and something that may use it.
    DECORATED = 29, decorated;
    /// Text that is not parsed, and may hold names.
    OPAQUE = 30, opaque;
}

impl Roles {
    /// Whether it means one of `other`.
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One language.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec {
    /// Its name in reports.
    pub(crate) name: &'static str,
    /// How the names of its files end.
    pub(crate) endings: &'static [&'static str],
    pub(crate) grammar: fn() -> Language,
    /// What the kinds of nodes mean.
    pub(crate) kinds: Kinds,
    /// The operators of logic.
    pub(crate) logic: &'static [&'static str],
    /// How a default case begins.
    pub(crate) default_case: &'static [&'static str],
    /// Whether a text that stands alone is documentation.
    pub(crate) docstrings: bool,
    /// How a name says whether others may use it.
    pub(crate) naming: Naming,
    /// Words before an item that make it known to others.
    pub(crate) public: &'static [&'static str],
    /// Words before an item that keep it to its file or class.
    pub(crate) private: &'static [&'static str],
    /// How sure it is that an item without any such word and without any use is unused.
    pub(crate) unmarked: Confidence,
    /// The same for a method.
    pub(crate) unmarked_method: Confidence,
    /// Names that are called by nobody in sight.
    pub(crate) entry_points: &'static [&'static str],
    /// Whether a class without a body only uses a name.
    pub(crate) class_has_body: bool,
    /// How methods get hold of the parts of their class.
    pub(crate) members: Members,
    /// How imports are written.
    pub(crate) imports: Imports,
    /// How sure it is that a circle of imports is a defect.
    pub(crate) circles: Confidence,
}

/// How a name says whether others may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// It does not.
    Silent,
    /// A leading underscore keeps it private; two on both sides belong to the language.
    Underscore,
    /// A capital letter makes it public.
    Capital,
}

/// How methods get hold of the parts of their class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Members {
    /// Through one of these words: object and part are these fields of an access.
    Through {
        words: &'static [&'static str],
        object: &'static str,
        part: &'static str,
    },
    /// By their bare names.
    Bare,
    /// That cannot be said.
    Unknown,
}

/// How imports are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Imports {
    /// `import a.b`, `from .c import d`.
    Dotted,
    /// `use crate::a::b`, `mod c;`.
    Crate,
    /// `import x from "./y"`, `require("./y")`.
    Quoted,
    /// `import "module/path"`.
    Package,
    /// `import a.b.C;`.
    Qualified,
    /// `#include "x.h"`.
    Include,
}

/// A language with its grammar loaded.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) spec: &'static Spec,
    pub(crate) grammar: Language,
    roles: Vec<Roles>,
    logic: Vec<u16>,
}

impl Loaded {
    fn new(spec: &'static Spec) -> Self {
        let grammar = (spec.grammar)();
        let mut meanings: BTreeMap<&str, Roles> = BTreeMap::new();
        for (role, name) in spec.kinds.each() {
            let known = meanings.entry(name).or_default();
            *known = known.and(role);
        }
        // A kind may have several numbers.
        let meaning = |number: usize| {
            let number = u16::try_from(number).ok()?;
            let named = grammar.node_kind_is_named(number);
            let name = grammar.node_kind_for_id(number).filter(|_| named)?;
            meanings.get(name).copied()
        };
        let roles = (0..grammar.node_kind_count())
            .map(|number| meaning(number).unwrap_or_default())
            .collect();
        let logic = spec
            .logic
            .iter()
            .map(|word| grammar.id_for_node_kind(word, false))
            .collect();
        Self {
            spec,
            grammar,
            roles,
            logic,
        }
    }

    /// What a kind of node means.
    pub(crate) fn roles(&self, kind: u16) -> Roles {
        self.roles
            .get(usize::from(kind))
            .copied()
            .unwrap_or_default()
    }

    /// Whether a kind of token is an operator of logic.
    pub(crate) fn is_logic(&self, kind: u16) -> bool {
        self.logic.contains(&kind)
    }
}

/// Every language of this build, loaded when it is needed first.
static ALL: LazyLock<Vec<OnceLock<Loaded>>> =
    LazyLock::new(|| specs().map(|_| OnceLock::new()).collect());

/// The languages of this build.
fn specs() -> impl Iterator<Item = &'static Spec> {
    scripts::SPECS.iter().chain(families::SPECS)
}

/// The language at a place, without its grammar.
pub(crate) fn spec(place: usize) -> Option<&'static Spec> {
    specs().nth(place)
}

/// The language at a place.
pub(crate) fn loaded(place: usize) -> Option<&'static Loaded> {
    let spec = spec(place)?;
    Some(ALL.get(place)?.get_or_init(|| Loaded::new(spec)))
}

/// Which language a file is in, by the end of its name: a place among all.
pub(crate) fn of(path: &str) -> Option<usize> {
    let (_, ending) = path.rsplit_once('.')?;
    specs().position(|spec| spec.endings.contains(&ending))
}

/// The place of the language with this name.
pub(crate) fn named(name: &str) -> Option<usize> {
    specs().position(|spec| spec.name == name)
}

/// The name of the language at a place.
pub(crate) fn name(place: usize) -> &'static str {
    spec(place).map_or("", |spec| spec.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_one_of_its_grammar() {
        for language in (0..).map_while(loaded) {
            for (_, kind) in language.spec.kinds.each() {
                let known = language.grammar.id_for_node_kind(kind, true);
                assert_ne!(known, 0, "{} has no `{kind}`", language.spec.name);
            }
            for word in language.spec.logic {
                let known = language.grammar.id_for_node_kind(word, false);
                assert_ne!(known, 0, "{} has no `{word}`", language.spec.name);
            }
        }
    }

    #[test]
    fn a_file_is_of_the_language_of_its_ending() {
        let name_of = |path: &str| of(path).map(name);
        let cases = [
            ("a/b.py", Some("python")),
            ("a.rs", Some("rust")),
            ("a.tsx", Some("tsx")),
            ("a.mjs", Some("javascript")),
            ("a.h", Some("c")),
            ("a.hpp", Some("cpp")),
            ("README", None),
            ("a.md", None),
        ];
        for (path, want) in cases {
            assert_eq!(name_of(path), want, "{path}");
        }
    }
}
