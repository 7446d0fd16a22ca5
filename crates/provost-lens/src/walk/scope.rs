//! Holds what is known of a function, class or namespace while it is being gone through.

use provost_core::structure::Confidence;

use super::stream::Stream;

/// What a scope is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Function,
    Class,
    Space,
}

/// A function, class or namespace that is being gone through.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that have nothing to do with each other"
)]
pub(super) struct Scope {
    pub(super) sort: Sort,
    /// Its name with what is around it; empty for a branch that only checks types.
    pub(super) name: String,
    /// The hash of its name alone.
    pub(super) simple: u32,
    pub(super) line: u32,
    pub(super) end_line: u32,
    pub(super) unsound: bool,
    pub(super) test: bool,
    pub(super) type_checking: bool,
    pub(super) unused: Option<Confidence>,
    /// Whether a class takes over something, or a space fulfils a promise.
    pub(super) derived: bool,

    pub(super) cyclomatic: u32,
    pub(super) cognitive: u32,
    pub(super) nesting: u32,
    /// How deep branches lie in each other here.
    pub(super) depth: u32,
    pub(super) statements: u32,
    /// How many nodes are around it.
    pub(super) frames: usize,
    /// How many nodes are around the statements of its block, once there is one.
    pub(super) block_frames: Option<usize>,
    pub(super) stream: Stream,

    /// Parts of the class that a method gets hold of by a word such as `self`.
    pub(super) parts: Vec<u32>,
    /// Names in a method.
    pub(super) touched: Vec<u32>,
    /// Names in a class that may be those of classes.
    pub(super) uses: Vec<u32>,
    /// Names in the declarations of the fields of a class.
    pub(super) fields: Vec<u32>,
    /// The methods of a class: their names, and what they touch.
    pub(super) methods: Vec<Method>,
}

/// A method of a class.
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
