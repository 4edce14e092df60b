//! Notebook files: reads, loads and safely changes them.
//!
//! `load` reads files and waits for half-written ones, `lock` serialises Cellwright's own
//! writers, `save` writes a new file and `replace` puts it in place so that every reader sees the old or
//! the new one, with the leases of `lease`, `os` holds the parts specific to Unix, `guard` asks whether another program has the file open, and `change`
//! combines them. `survey` and `record` serve running
//! notebooks: they never keep outputs in memory, whatever their size.

mod attempts;
mod change;
mod guard;
mod lease;
mod load;
mod lock;
mod metadata_diff;
mod os;
mod record;
mod replace;
mod restore;
mod save;
mod survey;

pub use change::{ChangeOutcome, ChangeRequest, OnMissing, change, upgrade};
pub use guard::{GuardRequest, WriteGuard, WritePermit, WriteRefusal};
pub use load::{
    has_notebook_extension, load, load_any_format, load_raw, load_with_notices, read_view,
};
pub use os::open;
pub use record::{
    CellConflict, CellUpdate, CellUpdates, DetachedFiles, RecordReport, RecordRequest, Segment,
    copy, record,
};
pub use restore::{RestoreOutcome, Restored, restore};
pub use save::{SaveStep, check_replaceable};
pub use survey::{RecordBase, Survey, survey};
