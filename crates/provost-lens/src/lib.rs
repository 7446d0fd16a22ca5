//! Sees the structure of source code.
//!
//! Facts, findings and health of changed files by tree-sitter live here, apart from the rest
//! because their dependencies are heavy.
