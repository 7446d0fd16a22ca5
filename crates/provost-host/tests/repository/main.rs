//! Tests of the git module, capture and workspaces with real git and real directories.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod capture;
mod hostile;
mod ignore_patterns;
mod ignored;
mod kinds;
mod land;
mod lower;
mod objects;
mod origin;
mod overlay;
mod property;
mod remembered;
mod scratch;
mod workspace;
