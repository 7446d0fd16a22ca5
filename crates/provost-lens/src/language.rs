//! Describes the languages: what their node kinds mean.
//!
//! A language is a [`Spec`]: names of kinds and fields, and a few choices between shared
//! implementations ([`Imports`], [`Naming`], [`Members`]). No language has code of its own.

mod families;
mod scripts;

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use crate::structure::Confidence;
use tree_sitter::Language;

/// What a kind of node means; one kind may have several roles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Roles(u32);

macro_rules! roles {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $field:ident;)+) => {
        impl Roles {
            $($(#[$doc])* pub(crate) const $name: Self = Self(1 << $bit);)+
        }

        /// The names of the kinds with a role, separated by blanks.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct Kinds {
            $($(#[$doc])* pub(crate) $field: &'static str,)+
        }

        impl Kinds {
            /// No kind has a role.
            pub(crate) const NONE: Self = Self { $($field: "",)+ };

            fn each(&self) -> impl Iterator<Item = (Roles, &'static str)> + use<> {
                [$((Roles::$name, self.$field),)+]
                    .into_iter()
                    .flat_map(|(role, names)| names.split_whitespace().map(move |name| (role, name)))
            }
        }
    };
}

roles! {
    /// A function with a name.
    FUNCTION = 0, function;
    /// A function that is named only by its surroundings.
    LAMBDA = 1, lambda;
    /// Gives a name to the lambda directly below it.
    NAMER = 2, namer;
    /// A class or a similar type.
    CLASS = 3, class;
    /// Qualifies the names in it, and nothing else.
    SPACE = 4, space;
    /// A branch that may be followed by others.
    IF = 5, branch;
    /// The other side of a branch.
    ELSE = 6, otherwise;
    /// A branch on the other side of a branch, as one node.
    ELIF = 7, elif;
    LOOP = 8, repeat;
    /// An error handler.
    CATCH = 9, catch;
    /// A choice between cases.
    SWITCH = 10, switch;
    /// One case of a switch.
    CASE = 11, case;
    /// A branch that is an expression.
    TERNARY = 12, ternary;
    /// A loop or branch inside a literal.
    COMPREHENSION = 13, comprehension;
    /// Contains a logical operator.
    BOOLEAN = 14, boolean;
    STATEMENT = 15, statement;
    COMMENT = 16, comment;
    IDENTIFIER = 17, identifier;
    /// The name of a member.
    MEMBER = 18, member;
    TYPE_NAME = 19, type_name;
    LITERAL = 20, literal;
    /// A literal that may contain names.
    STRING = 21, string;
    IMPORT = 22, import;
    /// Annotates the item that follows it.
    ATTRIBUTE = 23, attribute;
    /// Annotates the item that contains it.
    MODIFIER = 24, modifier;
    /// Makes its content visible to other files.
    EXPORT = 25, export;
    /// Accesses a member.
    ACCESS = 26, access;
    /// Declares members of a class.
    FIELD = 27, field;
    /// A call, which may be an import.
    CALL = 28, call;
    /// Contains a definition and something that may use it.
    DECORATED = 29, decorated;
    /// Text that is not parsed, and may contain names.
    OPAQUE = 30, opaque;
}

impl Roles {
    /// Whether it has one of the roles in `other`.
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The union of both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec {
    /// Its name in reports.
    pub(crate) name: &'static str,
    /// Suffixes of its file names.
    pub(crate) endings: &'static [&'static str],
    pub(crate) grammar: fn() -> Language,
    /// Which kinds of nodes have which roles.
    pub(crate) kinds: Kinds,
    /// The logical operators.
    pub(crate) logic: &'static [&'static str],
    /// How a default case begins.
    pub(crate) default_case: &'static [&'static str],
    /// Whether a text that stands alone is documentation.
    pub(crate) docstrings: bool,
    /// How a name marks an item as public or private.
    pub(crate) naming: Naming,
    /// Modifiers that make an item visible to other files.
    pub(crate) public: &'static [&'static str],
    /// Modifiers that restrict an item to its file or class.
    pub(crate) private: &'static [&'static str],
    /// How surely an item without a modifier and without any use is unused.
    pub(crate) unmarked: Confidence,
    /// The same for a method.
    pub(crate) unmarked_method: Confidence,
    /// Names that are called from outside the tree.
    pub(crate) entry_points: &'static [&'static str],
    /// Whether a class without a body only uses a name.
    pub(crate) class_has_body: bool,
    /// How methods access the members of their class.
    pub(crate) members: Members,
    pub(crate) imports: Imports,
    /// How surely a circle of imports is a defect.
    pub(crate) circles: Confidence,
}

/// How a name marks an item as public or private.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// It does not.
    Silent,
    /// A leading underscore keeps it private; two on both sides belong to the language.
    Underscore,
    /// A capital letter makes it public.
    Capital,
}

/// How methods access the members of their class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Members {
    /// Through one of these words; object and member are these fields of an access node.
    Through {
        words: &'static [&'static str],
        object: &'static str,
        part: &'static str,
    },
    /// By their bare names.
    Bare,
    /// Unknown from the syntax.
    Unknown,
}

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
        // A kind may have several ids.
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

    pub(crate) fn roles(&self, kind: u16) -> Roles {
        self.roles
            .get(usize::from(kind))
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn is_logic(&self, kind: u16) -> bool {
        self.logic.contains(&kind)
    }
}

/// Every language of this build, loaded at its first use.
static ALL: LazyLock<Vec<OnceLock<Loaded>>> =
    LazyLock::new(|| specs().map(|_| OnceLock::new()).collect());

fn specs() -> impl Iterator<Item = &'static Spec> {
    scripts::SPECS.iter().chain(families::SPECS)
}

/// The language with this index, without its grammar.
pub(crate) fn spec(place: usize) -> Option<&'static Spec> {
    specs().nth(place)
}

/// The language with this index, with its grammar.
pub(crate) fn loaded(place: usize) -> Option<&'static Loaded> {
    let spec = spec(place)?;
    Some(ALL.get(place)?.get_or_init(|| Loaded::new(spec)))
}

/// Index of the language of a file, by the suffix of its name.
pub(crate) fn of(path: &str) -> Option<usize> {
    let (_, ending) = path.rsplit_once('.')?;
    specs().position(|spec| spec.endings.contains(&ending))
}

/// Index of the language with this name.
pub(crate) fn named(name: &str) -> Option<usize> {
    specs().position(|spec| spec.name == name)
}

/// The name of the language with this index.
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
