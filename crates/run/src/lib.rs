//! Runs a notebook's cells on a kernel and writes what they put out back into the file.

mod about;
mod choice;
pub mod compare;
mod edits;
mod freshness;
mod lenient;
mod listing;
mod order;
pub mod parameters;
mod perform;
mod recorder;
mod saver;
mod spool;
mod unfinished;

pub use choice::{Choice, ChoiceError};
pub use edits::{BadEdit, Edit};
pub use freshness::{Freshness, Ledger};
pub use listing::{Listed, Listing};
pub use order::{LookError, Order, Planned, Seen, edit, look};
pub use perform::{CellReport, CellStatus, Options, Report, RunError, run};
pub use recorder::{CommitError, Conflict, Ended, Places, Recorder, Written};
pub use unfinished::unfinished;

/// The tag of a cell that does not run.
pub const SKIPPED: &str = "skip-execution";

/// The tag of a cell that may fail.
pub const MAY_RAISE: &str = "raises-exception";
