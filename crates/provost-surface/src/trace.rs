//! The trace that the records of this call belong to.

use std::sync::Once;

use provost_host::ids::{self, NoRandomness, TRACE_PARENT};

use crate::show::print_message;

/// The trace id of a new run or case: that of the caller, if its environment names a valid one.
pub fn trace_id() -> Result<String, NoRandomness> {
    static NOTED: Once = Once::new();
    let Some(parent) = std::env::var_os(TRACE_PARENT) else {
        return ids::trace_id();
    };
    if let Some(trace) = parent.to_str().and_then(ids::trace_of) {
        return Ok(trace);
    }
    NOTED.call_once(|| {
        print_message(&format!(
            "note: {TRACE_PARENT} is no valid trace context and is ignored"
        ));
    });
    ids::trace_id()
}
