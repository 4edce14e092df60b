//! The names of the tools, for texts that mention them.

/// The names in the order in which clients list the tools.
pub(super) const TOOL_NAMES: [&str; 10] = [
    "read", "edit", "notebook", "write", "run", "eval", "runs", "kernels", "stop", "artifact",
];
