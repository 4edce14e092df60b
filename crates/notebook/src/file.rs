//! Notebook files: looking at them, loading them, and changing them safely.
//!
//! Inside: `load` reads and waits out half-written files, `lock` keeps our own writers apart, `save`
//! replaces a file so that every reader sees the old or the new one, `os` holds what is particular
//! to the operating system, `change` puts them together. `survey` and `record` are for notebooks that run:
//! they hold no outputs, whatever their size.

mod change;
mod load;
mod lock;
mod os;
mod record;
mod save;
mod survey;

pub use change::{Changed, Missing, Request, change, upgrade};
pub use load::{glance, load, load_raw, remember};
pub use record::{Conflict, Entry, Piece, Record, Recorded, copy, record};
pub use save::Step;
pub use survey::{Survey, survey};
