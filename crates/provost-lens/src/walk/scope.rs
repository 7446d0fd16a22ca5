//! State of a function, class or namespace during the walk.

use crate::structure::Confidence;

use super::stream::Stream;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Function,
    Class,
    Space,
}

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that have nothing to do with each other"
)]
pub(super) struct Scope {
    pub(super) sort: Sort,
    /// The qualified name; empty for a branch that is only for type checkers.
    pub(super) name: String,
    /// Hash of the unqualified name.
    pub(super) simple: u32,
    pub(super) line: u32,
    pub(super) end_line: u32,
    pub(super) unsound: bool,
    pub(super) test: bool,
    pub(super) type_checking: bool,
    pub(super) unused: Option<Confidence>,
    /// Whether a class inherits, or a space implements a trait or interface.
    pub(super) derived: bool,

    pub(super) cyclomatic: u32,
    pub(super) cognitive: u32,
    pub(super) nesting: u32,
    /// Present nesting of branches.
    pub(super) depth: u32,
    pub(super) statements: u32,
    /// How many nodes are around it.
    pub(super) frames: usize,
    /// How many nodes are around the statements of its block, once known.
    pub(super) block_frames: Option<usize>,
    pub(super) stream: Stream,

    /// Members of the class that a method accesses through a word such as `self`.
    pub(super) parts: Vec<u32>,
    pub(super) touched: Vec<u32>,
    /// Names in a class that may be those of classes.
    pub(super) uses: Vec<u32>,
    /// Names in the field declarations of a class.
    pub(super) fields: Vec<u32>,
    /// The methods of a class: their names, and the members they access.
    pub(super) methods: Vec<Method>,
}

#[derive(Debug)]
pub(super) struct Method {
    pub(super) name: u32,
    pub(super) constructor: bool,
    pub(super) parts: Vec<u32>,
    pub(super) touched: Vec<u32>,
}

impl Scope {
    pub(super) fn new(sort: Sort, name: String) -> Self {
        Self {
            sort,
            name,
            simple: 0,
            line: 0,
            end_line: 0,
            unsound: false,
            test: false,
            type_checking: false,
            unused: None,
            derived: false,
            cyclomatic: 1,
            cognitive: 0,
            nesting: 0,
            depth: 0,
            statements: 0,
            frames: 0,
            block_frames: None,
            stream: Stream::default(),
            parts: Vec::new(),
            touched: Vec::new(),
            uses: Vec::new(),
            fields: Vec::new(),
            methods: Vec::new(),
        }
    }
}
