//! Everything that touches the machine, on top of sandboxes: git, capture, workspaces, agents.
//!
//! # Invariants
//!
//! - Nothing an agent wrote is trusted or executed outside a sandbox.
//! - There is no `unsafe` here; see `provost-sandbox`.

pub mod agent;
pub mod answer_box;
pub mod bundle;
pub mod cache;
pub mod cancel_request;
pub mod capture;
pub mod clock;
pub mod denied_writes;
pub mod hooks;
pub mod ids;
pub mod inspect;
pub mod inventory;
pub mod kept_work;
pub mod keys;
pub mod login;
pub mod machine;
pub mod origin;
pub mod packet_commands;
pub mod project;
pub mod runtime_root;
pub mod shared_checkout;
pub mod snapshot;
pub mod spend;
pub mod untrusted_files;
pub mod user_file;
pub mod user_state;
pub mod virtual_environment;
pub mod workspace;

pub use provost_git as git;
pub use provost_model_record as model_record;
pub use provost_sandbox::{self as sandbox, process_owner, proxy};
