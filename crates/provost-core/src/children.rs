//! Children: agents that an agent starts through the driver, each under its own contract.
//!
//! # Invariants
//!
//! - A child has no more than its parent's contract grants, on any axis; an axis that a request
//!   does not state is empty.
//! - What a family has left is a fold over the events of the parent's ledger. A child's share is
//!   taken by the event that starts it, and what it did not use comes back by the event that ends
//!   it. The share of a child that was lost with its driver does not come back.
//! - A request carries no identity: authority belongs to the sandbox whose socket it came from.

mod admit;
mod child_contract;
mod family;
mod grant;
mod handoff;
mod letter;
mod message;
mod own_package;
pub mod policy;
#[cfg(test)]
mod tests;
mod tools;

pub use admit::{Admitted, Asking, ChildBase, admit};
pub use family::{
    ChildBudget, ChildEnd, ChildOf, ChildRefused, ChildStart, ChildState, Family, FamilyMember,
    PackageV1Record, Remaining, StrippedItem,
};
pub use grant::{ChildGrant, MOST_CHILDREN, MOST_LEVELS};
pub use handoff::{
    AskedHandoff, ContextRef, Handed, HandedDocument, HandoffRecord, MOST_HANDED, ProjectionAudit,
};
pub use letter::{
    FamilyMessage, MOST_MESSAGE_BYTES, MOST_MESSAGES, MessageDraft, MessageKind, MessageWay,
    Posting,
};
pub use message::{BrokerAnswer, BrokerRequest, ChildRow, ChildTask, LONGEST_MESSAGE, MessageRow};
pub use own_package::package_of;
pub use tools::{BROKER_COMMAND, ChildTool, MessageTool, SERVER, ToolSide, broker_tools};
