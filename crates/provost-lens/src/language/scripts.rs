//! Python, JavaScript and TypeScript.

#[cfg(any(feature = "python", feature = "javascript", feature = "typescript"))]
use crate::structure::Confidence;

use super::Spec;
#[cfg(any(feature = "python", feature = "javascript", feature = "typescript"))]
use super::{Imports, Kinds, Members, Naming};

pub(super) const SPECS: &[Spec] = &[
    #[cfg(feature = "python")]
    PYTHON,
    #[cfg(feature = "javascript")]
    JAVASCRIPT,
    #[cfg(feature = "typescript")]
    TYPESCRIPT,
    #[cfg(feature = "typescript")]
    TSX,
];

#[cfg(feature = "python")]
const PYTHON: Spec = Spec {
    name: "python",
    endings: &["py", "pyi"],
    grammar: || tree_sitter_python::LANGUAGE.into(),
    kinds: Kinds {
        function: "function_definition",
        lambda: "lambda",
        class: "class_definition",
        branch: "if_statement",
        otherwise: "else_clause",
        elif: "elif_clause",
        repeat: "for_statement while_statement",
        catch: "except_clause",
        switch: "match_statement",
        case: "case_clause",
        ternary: "conditional_expression",
        comprehension: "for_in_clause if_clause",
        boolean: "boolean_operator",
        statement: "assert_statement break_statement continue_statement delete_statement \
            exec_statement expression_statement for_statement function_definition class_definition \
            decorated_definition future_import_statement global_statement if_statement \
            import_from_statement import_statement match_statement nonlocal_statement \
            pass_statement print_statement raise_statement return_statement try_statement \
            type_alias_statement while_statement with_statement",
        comment: "comment",
        identifier: "identifier",
        literal: "integer float string_content escape_sequence true false none",
        string: "string_content",
        import: "import_statement import_from_statement future_import_statement",
        decorated: "decorated_definition",
        access: "attribute",
        ..Kinds::NONE
    },
    logic: &["and", "or"],
    default_case: &["_"],
    docstrings: true,
    naming: Naming::Underscore,
    public: &[],
    private: &[],
    unmarked: Confidence::Medium,
    unmarked_method: Confidence::Medium,
    entry_points: &["main"],
    class_has_body: false,
    members: Members::Through {
        words: &["self", "cls"],
        object: "object",
        part: "attribute",
    },
    imports: Imports::Dotted,
    circles: Confidence::High,
};

#[cfg(any(feature = "javascript", feature = "typescript"))]
const SCRIPT: Kinds = Kinds {
    function: "function_declaration generator_function_declaration method_definition",
    lambda: "arrow_function function_expression generator_function",
    class: "class_declaration",
    branch: "if_statement",
    otherwise: "else_clause",
    repeat: "for_statement for_in_statement while_statement do_statement",
    catch: "catch_clause",
    switch: "switch_statement",
    case: "switch_case",
    ternary: "ternary_expression",
    boolean: "binary_expression",
    statement: "break_statement continue_statement debugger_statement do_statement \
        export_statement expression_statement for_in_statement for_statement \
        function_declaration generator_function_declaration class_declaration \
        if_statement import_statement labeled_statement lexical_declaration \
        return_statement switch_statement throw_statement try_statement \
        variable_declaration while_statement with_statement",
    comment: "comment html_comment hash_bang_line",
    identifier: "identifier shorthand_property_identifier",
    member: "property_identifier private_property_identifier",
    literal: "number string_fragment escape_sequence regex_pattern true false null undefined",
    string: "string_fragment",
    import: "import_statement",
    modifier: "decorator",
    export: "export_statement",
    access: "member_expression",
    call: "call_expression",
    ..Kinds::NONE
};

#[cfg(any(feature = "javascript", feature = "typescript"))]
const SCRIPT_MEMBERS: Members = Members::Through {
    words: &["this"],
    object: "object",
    part: "property",
};

#[cfg(feature = "javascript")]
const JAVASCRIPT: Spec = Spec {
    name: "javascript",
    endings: &["js", "mjs", "cjs", "jsx"],
    grammar: || tree_sitter_javascript::LANGUAGE.into(),
    kinds: Kinds {
        namer: "variable_declarator pair field_definition assignment_expression",
        ..SCRIPT
    },
    logic: &["&&", "||"],
    default_case: &[],
    docstrings: false,
    naming: Naming::Silent,
    public: &["decorator"],
    private: &[],
    // A script may be loaded beside others that use its names.
    unmarked: Confidence::Medium,
    unmarked_method: Confidence::Low,
    entry_points: &["constructor", "main"],
    class_has_body: false,
    members: SCRIPT_MEMBERS,
    imports: Imports::Quoted,
    circles: Confidence::High,
};

#[cfg(feature = "typescript")]
const TYPESCRIPT: Spec = Spec {
    name: "typescript",
    endings: &["ts", "mts", "cts"],
    grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
    kinds: Kinds {
        class: "class_declaration abstract_class_declaration",
        space: "internal_module",
        namer: "variable_declarator pair public_field_definition assignment_expression",
        type_name: "type_identifier",
        modifier: "decorator accessibility_modifier override_modifier",
        ..SCRIPT
    },
    logic: &["&&", "||"],
    default_case: &[],
    docstrings: false,
    naming: Naming::Silent,
    public: &["decorator", "public", "protected", "override"],
    private: &["private"],
    unmarked: Confidence::High,
    unmarked_method: Confidence::Low,
    entry_points: &["constructor", "main"],
    class_has_body: false,
    members: SCRIPT_MEMBERS,
    imports: Imports::Quoted,
    circles: Confidence::High,
};

#[cfg(feature = "typescript")]
const TSX: Spec = Spec {
    name: "tsx",
    endings: &["tsx"],
    grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
    ..TYPESCRIPT
};
