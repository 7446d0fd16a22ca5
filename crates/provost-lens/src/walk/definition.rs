//! Opens and closes scopes, and estimates how surely a definition is unused.

use crate::structure::Confidence;
use tree_sitter::Node;

use super::scope::{Method, Scope, Sort};
use super::stream::Token;
use super::{Walk, cohesion};
use crate::facts::{ClassFact, FunctionFact, Hashes, name_hash};
use crate::language::{Naming, Roles};

/// The longest name, in bytes.
const LONGEST_NAME: usize = 200;
const DEEPEST_NAME: usize = 32;

/// The longest qualified name; beyond it the qualification is cut.
const LONGEST_PATH: usize = 400;

impl Walk<'_> {
    /// Records the name that a lambda directly below `node` gets.
    pub(super) fn name_lambda(&mut self, node: Node<'_>) {
        let value = ["value", "right"]
            .iter()
            .find_map(|field| node.child_by_field_name(field));
        if !value.is_some_and(|value| self.is(value, Roles::LAMBDA)) {
            return;
        }
        let fields = ["name", "key", "property", "left"];
        let place = fields
            .iter()
            .find_map(|field| node.child_by_field_name(field));
        let Some(place) = place else { return };
        if let Some(name) = self.short_text(place) {
            let simple = name.rsplit('.').next().unwrap_or_default();
            let letter = |letter: char| letter.is_alphanumeric() || "_$#".contains(letter);
            // A computed or quoted key is no name.
            if simple.is_empty() || !simple.chars().all(letter) {
                return;
            }
            self.lambda_name = Some((self.frames.len() + 1, simple.to_owned()));
            // A variable is only named here; a member may be used by what it belongs to.
            if self.is(place, Roles::IDENTIFIER) && node.child_by_field_name("value").is_some() {
                self.naming.push(place.id());
            }
        }
    }

    /// Begins a scope if `node` is one, and returns whether it did.
    pub(super) fn open_scope(&mut self, node: Node<'_>, roles: Roles) -> bool {
        let depth = self.frames.len();
        let sort = if roles.has(Roles::FUNCTION) {
            Sort::Function
        } else if roles.has(Roles::CLASS) {
            Sort::Class
        } else if roles.has(Roles::SPACE) || self.is_type_checking(node, roles) {
            Sort::Space
        } else if roles.has(Roles::LAMBDA)
            && self
                .lambda_name
                .as_ref()
                .is_some_and(|(at, _)| *at == depth)
        {
            Sort::Function
        } else {
            return false;
        };
        let (name, place) = match self.lambda_name.take() {
            Some((at, name)) if at == depth && roles.has(Roles::LAMBDA) => (name, None),
            kept => {
                self.lambda_name = kept;
                let place = name_of(node);
                let name = place.and_then(|place| match sort {
                    // Of `Type<T>` only the type.
                    Sort::Space => self.short_text(last_leaf(place)),
                    Sort::Function | Sort::Class => self.short_text(place),
                });
                let receiver = self.receiver(node);
                (receiver + &name.unwrap_or_default(), place)
            }
        };
        if sort != Sort::Space && name.is_empty() {
            return false;
        }
        // A type without a body, such as `struct point p;`, only uses the name.
        let bodiless = node.child_by_field_name("body").is_none();
        if sort == Sort::Class && bodiless && self.language.spec.class_has_body {
            return false;
        }
        if let Some(place) = place
            && (sort != Sort::Space || node.child_by_field_name("type").is_some())
        {
            self.naming.push(last_leaf(place).id());
        }
        let scope = self.scope(node, roles, sort, &name);
        let at = self.scopes.len();
        self.scopes.push(scope);
        match sort {
            Sort::Function => self.functions_open.push(at),
            Sort::Class => self.classes_open.push(at),
            Sort::Space => {}
        }
        true
    }

    /// The type of a method that is defined outside of its type, with a dot.
    fn receiver(&self, node: Node<'_>) -> String {
        let Some(receiver) = node.child_by_field_name("receiver") else {
            return String::new();
        };
        let text = String::from_utf8_lossy(self.text(receiver));
        let plain = text.split('[').next().unwrap_or_default();
        let letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        let name = plain
            .rsplit(|other| !letter(other))
            .find(|part| !part.is_empty());
        match name {
            Some(name) if name.len() <= LONGEST_NAME => format!("{name}."),
            _ => String::new(),
        }
    }

    fn scope(&self, node: Node<'_>, roles: Roles, sort: Sort, name: &str) -> Scope {
        let around = self.scopes.last();
        let simple = name.rsplit(['.', ':']).next().unwrap_or(name);
        let path = match around.map(|scope| scope.name.as_str()) {
            Some(outer) if !outer.is_empty() && outer.len() < LONGEST_PATH && !name.is_empty() => {
                format!("{outer}.{name}")
            }
            Some(outer) if name.is_empty() => outer.to_owned(),
            _ => name.to_owned(),
        };
        let mut scope = Scope::new(sort, path);
        scope.simple = if sort == Sort::Space {
            0
        } else {
            name_hash(simple.as_bytes())
        };
        scope.line = line(node.start_position().row);
        scope.end_line = line(last_row(node));
        scope.unsound = node.has_error();
        scope.type_checking =
            self.is_type_checking(node, roles) || around.is_some_and(|scope| scope.type_checking);
        let marked = self.attribute.is_some_and(|attribute| attribute.test);
        scope.test = marked || around.is_some_and(|scope| scope.test);
        scope.derived = ["superclasses", "trait", "superclass", "interfaces"]
            .iter()
            .any(|field| node.child_by_field_name(field).is_some())
            || (0..node.named_child_count().min(8)).any(|at| {
                let child = u32::try_from(at).ok().and_then(|at| node.named_child(at));
                child.is_some_and(|child| {
                    matches!(child.kind(), "class_heritage" | "base_class_clause")
                })
            });
        scope.frames = self.frames.len();
        if sort != Sort::Space {
            scope.unused = self.unused(node, sort, simple);
            // A class that inherits is often found through its base class.
            if sort == Sort::Class && scope.derived {
                scope.unused = scope.unused.map(|_| Confidence::Low);
            }
        }
        scope
    }

    /// Whether a branch is only for type checkers.
    fn is_type_checking(&self, node: Node<'_>, roles: Roles) -> bool {
        roles.has(Roles::IF)
            && self.functions_open.is_empty()
            && node
                .child_by_field_name("condition")
                .is_some_and(|condition| self.text(condition).ends_with(b"TYPE_CHECKING"))
    }

    /// How surely an item is unused if no code names it.
    fn unused(&self, node: Node<'_>, sort: Sort, name: &str) -> Option<Confidence> {
        let spec = self.language.spec;
        let around = self.scopes.last();
        if spec.entry_points.contains(&name) || around.is_some_and(|scope| scope.test) {
            return None;
        }
        let method = around.is_some_and(|scope| scope.sort == Sort::Class)
            || node.child_by_field_name("receiver").is_some();
        let derived = around.is_some_and(|scope| scope.derived);
        // What is inside a function is used by it, and trait or interface members are called
        // elsewhere.
        let fulfils = around.is_some_and(|scope| scope.sort == Sort::Space && scope.derived);
        let local = sort == Sort::Class && !self.functions_open.is_empty();
        if local || fulfils {
            return None;
        }
        let decorated = self
            .frames
            .last()
            .is_some_and(|frame| frame.roles.has(Roles::DECORATED));
        if decorated || self.attribute.is_some() {
            return Some(Confidence::Low);
        }
        let words = self.modifiers(node);
        let marked = |list: &[&str]| list.iter().any(|word| words.contains(word));
        if marked(spec.private) {
            return Some(Confidence::High);
        }
        // `export const f = …` has the declaration and the name in between.
        let near = &self.frames[self.frames.len().saturating_sub(3)..];
        let exported = near.iter().any(|frame| frame.roles.has(Roles::EXPORT));
        if marked(spec.public) || exported {
            return Some(Confidence::Low);
        }
        match spec.naming {
            Naming::Underscore if name.starts_with("__") && name.ends_with("__") => return None,
            Naming::Underscore if name.starts_with("visit_") => return Some(Confidence::Low),
            Naming::Underscore if name.starts_with('_') && !derived => {
                return Some(Confidence::High);
            }
            Naming::Capital if name.starts_with(char::is_uppercase) => {
                return Some(Confidence::Low);
            }
            Naming::Underscore | Naming::Capital | Naming::Silent => {}
        }
        let constructor = method && around.is_some_and(|scope| ends_with_name(&scope.name, name));
        if constructor || name.starts_with('~') || name.contains("operator") {
            return None;
        }
        Some(match method {
            true if derived => Confidence::Low,
            true => spec.unmarked_method,
            false => spec.unmarked,
        })
    }

    /// The modifiers in front of an item, as text.
    fn modifiers(&self, node: Node<'_>) -> String {
        let mut words = String::new();
        let children = node.child_count().min(8);
        for at in 0..children {
            let child = node.child(at);
            if let Some(child) = child
                && self.is(child, Roles::MODIFIER)
            {
                words.push_str(child.kind());
                words.push(' ');
                words.push_str(&String::from_utf8_lossy(self.text(child)));
                words.push(' ');
            }
        }
        words
    }

    pub(super) fn close_scope(&mut self) {
        let Some(scope) = self.scopes.pop() else {
            return;
        };
        match scope.sort {
            Sort::Space => {}
            Sort::Function => {
                self.functions_open.pop();
                self.close_function(scope);
            }
            Sort::Class => {
                self.classes_open.pop();
                self.close_class(scope);
            }
        }
    }

    fn close_function(&mut self, scope: Scope) {
        let test = scope.test;
        let done = scope.stream.finish();
        if let Some(outer) = self.function() {
            outer.stream.token(Token::Inner(done.shape, done.text));
            outer.statements = outer.statements.saturating_add(scope.statements);
            outer.parts.extend(&scope.parts);
            outer.touched.extend(&scope.touched);
        }
        // A method belongs to the innermost class.
        if let Some(class) = self
            .scopes
            .last_mut()
            .filter(|class| class.sort == Sort::Class)
        {
            let name = scope.name.rsplit('.').next().unwrap_or_default();
            let constructor =
                matches!(name, "__init__" | "constructor") || ends_with_name(&class.name, name);
            class.methods.push(Method {
                name: scope.simple,
                constructor,
                parts: scope.parts,
                touched: scope.touched,
            });
        }
        self.functions.push(FunctionFact {
            name: scope.name.into(),
            line: scope.line,
            end_line: scope.end_line,
            statements: scope.statements,
            cyclomatic: scope.cyclomatic,
            cognitive: scope.cognitive,
            nesting: scope.nesting,
            shape: done.shape,
            text: done.text,
            tokens: done.tokens,
            sketch: done.sketch,
            block: done.block,
            unused: scope.unused,
            unsound: scope.unsound,
            test,
        });
    }

    fn close_class(&mut self, scope: Scope) {
        let members = self.language.spec.members;
        let own = scope.simple;
        let uses: Hashes<'static> = scope.uses.into_iter().filter(|name| *name != own).collect();
        // What an inner class uses, the outer one uses too.
        if let Some(outer) = self.classes_open.last().copied() {
            self.scopes[outer].uses.extend(uses.all());
        }
        self.classes.push(ClassFact {
            name: scope.name.into(),
            line: scope.line,
            end_line: scope.end_line,
            methods: u32::try_from(scope.methods.len()).unwrap_or(u32::MAX),
            uses,
            cohesion: cohesion::parts(members, &scope.methods, &scope.fields),
            unused: scope.unused,
            test: scope.test,
        });
    }

    /// Begins a statement, and returns whether it belongs to the block of a function.
    pub(super) fn open_statement(&mut self, node: Node<'_>) -> bool {
        let depth = self.frames.len();
        let (first, last) = (line(node.start_position().row), line(last_row(node)));
        let Some(scope) = self.function() else {
            return false;
        };
        scope.statements = scope.statements.saturating_add(1);
        // The first statement shows the depth of the block: in the body, or in a list in it.
        if scope.block_frames.is_none() && depth <= scope.frames + 3 {
            scope.block_frames = Some(depth);
        }
        if scope.block_frames != Some(depth) {
            return false;
        }
        scope.stream.begin_statement(first, last);
        true
    }

    fn short_text(&self, node: Node<'_>) -> Option<String> {
        let text = self.text(node);
        let fits = !text.is_empty() && text.len() <= LONGEST_NAME;
        let text = fits.then(|| String::from_utf8_lossy(text))?;
        // A name over several lines, or a computed one, does not count.
        let plain = |letter: char| !letter.is_whitespace() && !letter.is_control();
        text.chars().all(plain).then(|| text.into_owned())
    }
}

/// The node that names what `node` defines.
fn name_of(node: Node<'_>) -> Option<Node<'_>> {
    let direct = ["name", "type"]
        .iter()
        .find_map(|field| node.child_by_field_name(field));
    let Some(mut at) = node.child_by_field_name("declarator") else {
        return direct;
    };
    for _ in 0..DEEPEST_NAME {
        let next = at.child_by_field_name("declarator").or_else(|| {
            let wraps = at.kind().ends_with("_declarator");
            wraps.then(|| at.named_child(0)).flatten()
        });
        match next {
            Some(next) => at = next,
            None => return Some(at),
        }
    }
    None
}

/// The last token of a name with several parts.
fn last_leaf(mut node: Node<'_>) -> Node<'_> {
    for _ in 0..DEEPEST_NAME {
        let last = node.named_child_count().checked_sub(1);
        let last = last.and_then(|at| u32::try_from(at).ok());
        let next = ["name", "type"]
            .iter()
            .find_map(|field| node.child_by_field_name(field))
            .or_else(|| last.and_then(|at| node.named_child(at)));
        match next {
            Some(child) => node = child,
            None => break,
        }
    }
    node
}

/// The row of the last character; a node that ends before the first column ends a row earlier.
fn last_row(node: Node<'_>) -> usize {
    let end = node.end_position();
    if end.column == 0 && end.row > node.start_position().row {
        end.row - 1
    } else {
        end.row
    }
}

/// A row as a line number, from 1.
fn line(row: usize) -> u32 {
    u32::try_from(row + 1).unwrap_or(u32::MAX)
}

fn ends_with_name(path: &str, name: &str) -> bool {
    path.rsplit('.').next() == Some(name)
}
