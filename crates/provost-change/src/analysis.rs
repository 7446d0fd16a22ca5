//! Analyses of the checkout by the lens, and questions about them.

pub(crate) mod answer;
pub(crate) mod perform;
pub(crate) mod queries;
pub mod run;
