//! Rust, Go, Java, C and C++.

#[cfg(any(
    feature = "rust",
    feature = "go",
    feature = "java",
    feature = "c",
    feature = "cpp"
))]
use crate::structure::Confidence;

use super::Spec;
#[cfg(any(
    feature = "rust",
    feature = "go",
    feature = "java",
    feature = "c",
    feature = "cpp"
))]
use super::{Imports, Kinds, Members, Naming};

pub(super) const SPECS: &[Spec] = &[
    #[cfg(feature = "rust")]
    RUST,
    #[cfg(feature = "go")]
    GO,
    #[cfg(feature = "java")]
    JAVA,
    #[cfg(feature = "c")]
    C,
    #[cfg(feature = "cpp")]
    CPP,
];

#[cfg(feature = "rust")]
const RUST: Spec = Spec {
    name: "rust",
    endings: &["rs"],
    grammar: || tree_sitter_rust::LANGUAGE.into(),
    kinds: Kinds {
        function: "function_item",
        lambda: "closure_expression",
        class: "struct_item enum_item union_item trait_item",
        space: "impl_item mod_item",
        branch: "if_expression",
        otherwise: "else_clause",
        repeat: "for_expression while_expression loop_expression",
        switch: "match_expression",
        case: "match_arm",
        boolean: "binary_expression let_chain",
        statement: "expression_statement let_declaration const_item static_item function_item \
            use_declaration macro_invocation",
        comment: "line_comment block_comment",
        identifier: "identifier shorthand_field_identifier",
        member: "field_identifier",
        type_name: "type_identifier",
        literal: "integer_literal float_literal boolean_literal char_literal string_content \
            escape_sequence",
        string: "string_content",
        import: "use_declaration extern_crate_declaration",
        attribute: "attribute_item",
        modifier: "visibility_modifier extern_modifier",
        ..Kinds::NONE
    },
    logic: &["&&", "||"],
    default_case: &["_"],
    docstrings: false,
    naming: Naming::Silent,
    public: &["pub", "extern"],
    private: &[],
    unmarked: Confidence::High,
    // Only traits have methods here; other types call them.
    unmarked_method: Confidence::Low,
    entry_points: &["main"],
    class_has_body: false,
    members: Members::Unknown,
    imports: Imports::Crate,
    circles: Confidence::Low,
};

#[cfg(feature = "go")]
const GO: Spec = Spec {
    name: "go",
    endings: &["go"],
    grammar: || tree_sitter_go::LANGUAGE.into(),
    kinds: Kinds {
        function: "function_declaration method_declaration",
        lambda: "func_literal",
        class: "type_spec",
        branch: "if_statement",
        repeat: "for_statement",
        switch: "expression_switch_statement type_switch_statement select_statement",
        case: "expression_case type_case communication_case",
        boolean: "binary_expression",
        statement: "assignment_statement break_statement const_declaration continue_statement \
            dec_statement defer_statement expression_statement expression_switch_statement \
            fallthrough_statement for_statement go_statement goto_statement if_statement \
            inc_statement labeled_statement return_statement select_statement send_statement \
            short_var_declaration type_switch_statement var_declaration",
        comment: "comment",
        identifier: "identifier package_identifier",
        member: "field_identifier",
        type_name: "type_identifier",
        literal: "int_literal float_literal imaginary_literal rune_literal \
            interpreted_string_literal_content raw_string_literal_content escape_sequence true \
            false nil iota",
        string: "interpreted_string_literal_content",
        import: "import_spec",
        ..Kinds::NONE
    },
    logic: &["&&", "||"],
    default_case: &[],
    docstrings: false,
    naming: Naming::Capital,
    public: &[],
    private: &[],
    unmarked: Confidence::High,
    // It may be there for an interface.
    unmarked_method: Confidence::Low,
    entry_points: &["main", "init"],
    class_has_body: false,
    members: Members::Unknown,
    imports: Imports::Package,
    circles: Confidence::High,
};

#[cfg(feature = "java")]
const JAVA: Spec = Spec {
    name: "java",
    endings: &["java"],
    grammar: || tree_sitter_java::LANGUAGE.into(),
    kinds: Kinds {
        function: "method_declaration constructor_declaration compact_constructor_declaration",
        lambda: "lambda_expression",
        class: "class_declaration interface_declaration enum_declaration record_declaration",
        branch: "if_statement",
        repeat: "for_statement enhanced_for_statement while_statement do_statement",
        catch: "catch_clause",
        switch: "switch_expression",
        case: "switch_label",
        ternary: "ternary_expression",
        boolean: "binary_expression",
        statement: "assert_statement break_statement continue_statement do_statement \
            enhanced_for_statement expression_statement for_statement if_statement \
            labeled_statement local_variable_declaration return_statement switch_expression \
            synchronized_statement throw_statement try_statement try_with_resources_statement \
            while_statement yield_statement explicit_constructor_invocation",
        comment: "line_comment block_comment",
        identifier: "identifier",
        type_name: "type_identifier",
        literal: "decimal_integer_literal hex_integer_literal octal_integer_literal \
            binary_integer_literal decimal_floating_point_literal hex_floating_point_literal \
            character_literal string_fragment multiline_string_fragment escape_sequence true \
            false null_literal",
        string: "string_fragment",
        import: "import_declaration",
        modifier: "modifiers",
        access: "field_access method_invocation",
        field: "field_declaration",
        ..Kinds::NONE
    },
    logic: &["&&", "||"],
    default_case: &["default"],
    docstrings: false,
    naming: Naming::Silent,
    public: &["public", "protected", "@"],
    private: &["private"],
    unmarked: Confidence::Medium,
    unmarked_method: Confidence::Low,
    entry_points: &["main"],
    class_has_body: false,
    members: Members::Bare,
    imports: Imports::Qualified,
    circles: Confidence::Low,
};

#[cfg(any(feature = "c", feature = "cpp"))]
const NATIVE: Kinds = Kinds {
    function: "function_definition",
    branch: "if_statement",
    otherwise: "else_clause",
    repeat: "for_statement while_statement do_statement",
    switch: "switch_statement",
    case: "case_statement",
    ternary: "conditional_expression",
    boolean: "binary_expression",
    statement: "break_statement case_statement continue_statement declaration do_statement \
        expression_statement for_statement goto_statement if_statement \
        labeled_statement return_statement switch_statement while_statement",
    comment: "comment",
    identifier: "identifier",
    member: "field_identifier",
    type_name: "type_identifier",
    literal: "number_literal character string_content escape_sequence true false null",
    string: "string_content",
    import: "preproc_include",
    opaque: "preproc_arg",
    modifier: "storage_class_specifier attribute_specifier",
    ..Kinds::NONE
};

#[cfg(feature = "c")]
const C: Spec = Spec {
    name: "c",
    endings: &["c", "h"],
    grammar: || tree_sitter_c::LANGUAGE.into(),
    kinds: NATIVE,
    logic: &["&&", "||"],
    default_case: &["default"],
    docstrings: false,
    naming: Naming::Silent,
    public: &["extern", "__attribute__"],
    private: &["static"],
    unmarked: Confidence::Low,
    unmarked_method: Confidence::Low,
    entry_points: &["main"],
    class_has_body: true,
    members: Members::Unknown,
    imports: Imports::Include,
    circles: Confidence::Medium,
};

#[cfg(feature = "cpp")]
const CPP: Spec = Spec {
    name: "cpp",
    endings: &["cc", "cpp", "cxx", "hpp", "hh", "hxx", "ipp"],
    grammar: || tree_sitter_cpp::LANGUAGE.into(),
    kinds: Kinds {
        lambda: "lambda_expression",
        class: "class_specifier struct_specifier",
        space: "namespace_definition",
        repeat: "for_statement while_statement do_statement for_range_loop",
        catch: "catch_clause",
        identifier: "identifier namespace_identifier",
        field: "field_declaration",
        statement: "break_statement case_statement continue_statement declaration do_statement \
            expression_statement for_statement goto_statement if_statement labeled_statement \
            return_statement switch_statement while_statement for_range_loop try_statement \
            throw_statement",
        ..NATIVE
    },
    logic: &["&&", "||"],
    default_case: &["default"],
    docstrings: false,
    naming: Naming::Silent,
    public: &["extern", "virtual", "__attribute__"],
    private: &["static"],
    unmarked: Confidence::Low,
    unmarked_method: Confidence::Low,
    entry_points: &["main"],
    class_has_body: true,
    members: Members::Bare,
    imports: Imports::Include,
    circles: Confidence::Medium,
};
