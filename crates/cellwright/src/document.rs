//! [`Versioned`]: a JSON document with its version. [`StillRunning`]: the document of a run that continues.

use cellwright_diagnostics::notice::UserNotice;
use cellwright_host::reply::RunState;
use schemars::JsonSchema;
use serde::Serialize;

/// The version of the JSON that `--json` and `--events` print. It changes when a field is removed or renamed, or changes its
/// type, unit or meaning; a new field does not change it.
const VERSION: u32 = 1;

/// A document with its version as the first field.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Versioned<T> {
    /// Version of the JSON documents.
    #[schemars(extend("const" = VERSION))]
    version: u32,
    #[serde(flatten)]
    content: T,
}

impl<T> Versioned<T> {
    pub(crate) fn new(content: T) -> Self {
        Self {
            version: VERSION,
            content,
        }
    }
}

/// A run that continues in the background.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StillRunning<'a> {
    #[serde(flatten)]
    pub(crate) state: RunState,
    /// What the caller should know although nothing failed.
    pub(crate) notices: &'a [UserNotice],
}
