//! Walks the syntax tree of one file once and collects its facts.
//!
//! # Invariants
//!
//! - No recursion: the depth of the input is only the length of a list.
//! - Each token is visited once, whatever the nesting.

mod cohesion;
mod definition;
mod scope;
mod stream;

use crate::structure::Parse;
use tree_sitter::{Node, Tree, TreeCursor};

use crate::facts::{Facts, Hashes, ImportFact, bytes_hash, line_count, name_hash, words};
use crate::imports;
use crate::language::{Loaded, Roles};
use scope::Scope;

/// The longest text that is searched for names; longer ones are prose or data.
const LONGEST_TEXT: usize = 200;

/// The facts in `tree`, which was parsed from `source`.
pub(crate) fn facts(language: &Loaded, source: &[u8], tree: &Tree) -> Facts<'static> {
    let mut walk = Walk::new(language, source);
    walk.run(&mut tree.walk());
    let parse = if tree.root_node().has_error() {
        Parse::Errors
    } else {
        Parse::Clean
    };
    walk.functions.sort_by_key(|one| (one.line, one.end_line));
    walk.classes.sort_by_key(|one| (one.line, one.end_line));
    walk.imports.sort();
    walk.imports.dedup();
    Facts {
        lines: line_count(source),
        parse,
        functions: walk.functions,
        classes: walk.classes,
        imports: walk.imports,
        references: walk.references.into_iter().collect(),
        own: walk.own.into_iter().collect(),
        mentions: walk.mentions.into_iter().collect(),
    }
}

/// A node during the walk.
#[derive(Debug, Clone, Copy)]
struct Frame {
    roles: Roles,
    /// Its logical operator, or 0.
    logic: u16,
    /// The node on the other side of this branch, if there is one.
    other: usize,
    /// Whether leaving it ends a scope.
    scope: bool,
    /// Whether branches in it are nested one level deeper.
    deeper: bool,
    /// Whether leaving it ends a statement of the block of a function.
    statement: bool,
}

/// What an attribute says about the item after it.
#[derive(Debug, Clone, Copy, Default)]
struct Attribute {
    /// The item is only for tests.
    test: bool,
}

struct Walk<'a> {
    language: &'a Loaded,
    source: &'a [u8],
    frames: Vec<Frame>,
    scopes: Vec<Scope>,
    /// Indexes in `scopes` of the open functions and classes, outermost first.
    functions_open: Vec<usize>,
    classes_open: Vec<usize>,
    /// The name of a lambda directly below this depth.
    lambda_name: Option<(usize, String)>,
    /// The attribute of the next item.
    attribute: Option<Attribute>,
    functions: Vec<crate::facts::FunctionFact<'static>>,
    classes: Vec<crate::facts::ClassFact<'static>>,
    imports: Vec<ImportFact<'static>>,
    references: Vec<u32>,
    own: Vec<u32>,
    mentions: Vec<u32>,
    /// Nodes that only name a definition, the next one last.
    naming: Vec<usize>,
    /// Nodes that name a member, the next one last.
    naming_parts: Vec<usize>,
}

impl<'a> Walk<'a> {
    fn new(language: &'a Loaded, source: &'a [u8]) -> Self {
        Self {
            language,
            source,
            frames: Vec::new(),
            scopes: Vec::new(),
            functions_open: Vec::new(),
            classes_open: Vec::new(),
            lambda_name: None,
            attribute: None,
            functions: Vec::new(),
            classes: Vec::new(),
            imports: Vec::new(),
            references: Vec::new(),
            own: Vec::new(),
            mentions: Vec::new(),
            naming: Vec::new(),
            naming_parts: Vec::new(),
        }
    }

    fn run(&mut self, cursor: &mut TreeCursor<'_>) {
        loop {
            let node = cursor.node();
            let down = self.enter(node);
            if down && cursor.goto_first_child() {
                continue;
            }
            loop {
                self.leave();
                if cursor.goto_next_sibling() {
                    break;
                }
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    fn text(&self, node: Node<'_>) -> &'a [u8] {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    /// Begins a node, and returns whether its children are visited.
    fn enter(&mut self, node: Node<'_>) -> bool {
        let roles = if node.is_named() {
            self.language.roles(node.kind_id())
        } else {
            Roles::default()
        };
        let mut frame = Frame {
            roles,
            logic: 0,
            other: 0,
            scope: false,
            deeper: false,
            statement: false,
        };
        if roles.has(Roles::COMMENT) || self.is_docstring(node, roles) {
            self.frames.push(frame);
            return false;
        }
        if roles.has(Roles::ATTRIBUTE.and(Roles::OPAQUE)) {
            self.take_attribute(node, roles);
            self.frames.push(frame);
            return false;
        }
        if roles.has(Roles::STATEMENT) {
            frame.statement = self.open_statement(node);
        }
        if roles.has(Roles::NAMER) {
            self.name_lambda(node);
        }
        frame.scope = self.open_scope(node, roles);
        if node.is_named() {
            // The attribute was about this node, or about nothing.
            self.attribute = None;
        }
        if roles.has(Roles::IMPORT.and(Roles::CALL)) {
            self.take_imports(node, roles);
        }
        self.branch(node, &mut frame);
        if roles.has(Roles::ACCESS) {
            self.take_access(node);
        }
        if roles.has(Roles::FIELD) {
            self.take_fields(node);
        }
        let leaf = node.child_count() == 0;
        if leaf {
            self.token(node, roles);
        }
        self.frames.push(frame);
        !leaf
    }

    /// Ends the innermost node.
    fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        if let Some((depth, _)) = &self.lambda_name
            && *depth > self.frames.len()
        {
            self.lambda_name = None;
        }
        if frame.deeper
            && let Some(scope) = self.function()
        {
            scope.depth = scope.depth.saturating_sub(1);
        }
        if frame.scope {
            self.close_scope();
        }
        if frame.statement
            && let Some(scope) = self.function()
        {
            scope.stream.end_statement();
        }
    }

    /// The innermost open function.
    fn function(&mut self) -> Option<&mut Scope> {
        let at = *self.functions_open.last()?;
        self.scopes.get_mut(at)
    }

    fn is_docstring(&self, node: Node<'_>, roles: Roles) -> bool {
        self.language.spec.docstrings
            && roles.has(Roles::STATEMENT)
            && node.named_child_count() == 1
            && node
                .named_child(0)
                .is_some_and(|only| only.kind() == "string")
    }

    fn take_attribute(&mut self, node: Node<'_>, roles: Roles) {
        let text = self.text(node);
        self.references.extend(words(text).map(name_hash));
        if roles.has(Roles::ATTRIBUTE) {
            let known = self.attribute.get_or_insert_default();
            known.test |= words(text).any(|word| word == b"test");
        }
    }

    fn take_imports(&mut self, node: Node<'_>, roles: Roles) {
        let text = String::from_utf8_lossy(self.text(node));
        let style = self.language.spec.imports;
        let targets = if roles.has(Roles::IMPORT) {
            imports::targets(style, &text)
        } else {
            imports::called(&text)
        };
        let deferred = !self.functions_open.is_empty() || self.in_type_checking();
        let in_test = self.scopes.iter().any(|scope| scope.test);
        for target in targets {
            self.imports.push(ImportFact {
                target: target.into(),
                deferred: deferred || in_test,
            });
        }
    }

    /// Whether the present node is only for type checkers.
    fn in_type_checking(&self) -> bool {
        self.scopes.last().is_some_and(|scope| scope.type_checking)
    }

    /// Counts a branch, a loop or an operator.
    fn branch(&mut self, node: Node<'_>, frame: &mut Frame) {
        let roles = frame.roles;
        let parent = self.frames.last().copied();
        let within = |role: Roles| parent.is_some_and(|parent| parent.roles.has(role));
        if !node.is_named() {
            let logic = self.language.is_logic(node.kind_id()) && within(Roles::BOOLEAN);
            if logic {
                self.count(1, 0);
            }
            return;
        }
        if roles.has(Roles::BOOLEAN) {
            let operator = self.operator(node);
            frame.logic = operator;
            // A row of the same operator counts once.
            let same = parent.is_some_and(|parent| parent.logic == operator);
            if operator != 0 && !same {
                self.count(0, 1);
            }
        }
        let nesting = Roles::LOOP
            .and(Roles::CATCH)
            .and(Roles::SWITCH)
            .and(Roles::TERNARY);
        if roles.has(Roles::IF) {
            let alternative = parent.is_some_and(|parent| parent.other == node.id());
            let chained = within(Roles::ELSE) || alternative;
            if chained {
                self.count(1, 1);
            } else {
                self.count_nested(1);
                frame.deeper = true;
            }
            if let Some(other) = node.child_by_field_name("alternative") {
                frame.other = other.id();
                // An `else` without a node of its own.
                if !self.is_chain(other) {
                    self.count(0, 1);
                }
            }
        } else if roles.has(nesting) {
            self.count_nested(u32::from(!roles.has(Roles::SWITCH)));
            frame.deeper = true;
        } else if roles.has(Roles::ELIF) {
            self.count(1, 1);
        } else if roles.has(Roles::ELSE) && within(Roles::IF) {
            let chain = node.named_child_count() == 1
                && node
                    .named_child(0)
                    .is_some_and(|only| self.is(only, Roles::IF));
            if !chain {
                self.count(0, 1);
            }
        } else if roles.has(Roles::COMPREHENSION)
            || (roles.has(Roles::CASE) && !self.is_default(node))
        {
            self.count(1, 0);
        }
        if roles.has(Roles::LAMBDA) && !frame.scope {
            frame.deeper = self.deepen();
        }
        if frame.deeper && !roles.has(Roles::LAMBDA) {
            frame.deeper = self.deepen();
        }
    }

    fn is(&self, node: Node<'_>, role: Roles) -> bool {
        self.language.roles(node.kind_id()).has(role)
    }

    /// Whether the other side of a branch is itself a branch, or a node that counts by itself.
    fn is_chain(&self, other: Node<'_>) -> bool {
        self.is(other, Roles::IF.and(Roles::ELSE).and(Roles::ELIF))
    }

    /// The logical operator of a node, or 0.
    fn operator(&self, node: Node<'_>) -> u16 {
        let found = (0..4)
            .filter_map(|at| node.child(at))
            .map(|child| child.kind_id())
            .find(|kind| self.language.is_logic(*kind));
        found.unwrap_or(0)
    }

    fn is_default(&self, node: Node<'_>) -> bool {
        let words = self.language.spec.default_case;
        (0..2)
            .filter_map(|at| node.child(at))
            .any(|child| words.iter().any(|word| self.text(child) == word.as_bytes()))
    }

    fn count(&mut self, cyclomatic: u32, cognitive: u32) {
        if let Some(scope) = self.function() {
            scope.cyclomatic += cyclomatic;
            scope.cognitive += cognitive;
        }
    }

    fn count_nested(&mut self, cyclomatic: u32) {
        let depth = self.function().map_or(0, |scope| scope.depth);
        self.count(cyclomatic, 1 + depth);
    }

    fn deepen(&mut self) -> bool {
        let Some(scope) = self.function() else {
            return false;
        };
        scope.depth += 1;
        scope.nesting = scope.nesting.max(scope.depth);
        true
    }

    fn token(&mut self, node: Node<'_>, roles: Roles) {
        let text = self.text(node);
        if text.is_empty() {
            return;
        }
        let names = Roles::IDENTIFIER.and(Roles::MEMBER).and(Roles::TYPE_NAME);
        let token = if roles.has(names) {
            let naming = self.naming.last() == Some(&node.id());
            if naming {
                self.naming.pop();
            } else {
                self.reference(text, roles);
            }
            let hash = bytes_hash(text);
            let part = self.naming_parts.last() == Some(&node.id());
            if part {
                self.naming_parts.pop();
            }
            if part || roles.has(Roles::MEMBER) {
                stream::Token::Member(hash)
            } else {
                stream::Token::Name(hash)
            }
        } else if roles.has(Roles::LITERAL) {
            if roles.has(Roles::STRING) && text.len() <= LONGEST_TEXT {
                self.mentions.extend(words(text).map(name_hash));
            }
            stream::Token::Value(bytes_hash(text))
        } else {
            // A word without a kind of its own, such as `u8`, is recognised by its text.
            let letters = if node.is_named() {
                bytes_hash(text)
            } else {
                node.kind_id().into()
            };
            stream::Token::Fixed(letters)
        };
        if let Some(scope) = self.function() {
            scope.stream.token(token);
        }
    }

    fn reference(&mut self, text: &[u8], roles: Roles) {
        let hash = name_hash(text);
        let itself = |scope: &Scope| scope.simple == hash;
        // The innermost few suffice.
        if self.scopes.iter().rev().take(8).any(itself) {
            self.own.push(hash);
        } else {
            self.references.push(hash);
        }
        let kind = roles.has(Roles::TYPE_NAME) || text[0].is_ascii_uppercase();
        if let Some(class) = self.classes_open.last().copied() {
            if kind {
                self.scopes[class].uses.push(hash);
            }
            if let Some(method) = self.functions_open.iter().copied().find(|at| *at > class) {
                self.scopes[method].touched.push(hash);
            }
        }
    }

    /// Records that members of a class are accessed through a word such as `self`.
    fn take_access(&mut self, node: Node<'_>) {
        let fields = ["attribute", "property", "field", "name"];
        let part = fields
            .iter()
            .find_map(|field| node.child_by_field_name(field));
        if let Some(part) = part.filter(|part| part.child_count() == 0) {
            self.naming_parts.push(part.id());
        }
        if let Some(hash) = cohesion::part(self.language.spec.members, node, self.source)
            && let Some(class) = self.classes_open.last().copied()
            && let Some(method) = self.functions_open.iter().copied().find(|at| *at > class)
        {
            self.scopes[method].parts.push(hash);
        }
    }

    fn take_fields(&mut self, node: Node<'_>) {
        if let Some(class) = self.classes_open.last().copied() {
            let text = self.text(node);
            let hashes: Hashes<'_> = words(text).map(name_hash).collect();
            self.scopes[class].fields.extend(hashes.all());
        }
    }
}
