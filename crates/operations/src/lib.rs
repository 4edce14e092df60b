//! Operations: each takes a plain request and returns a typed result. The command line, MCP and the bridge are
//! front ends: they build the request and present the result. Nothing here parses arguments or prints.
//!
//! * Files: [`read`], [`write`](mod@write), [`edit`], [`cells`], [`outline`], [`upgrade`], [`diff`], [`artifact`], [`git`].
//!   [`change`] is the result of a change, [`file_path`] the file that it is about, [`stored_outputs`] its outputs as text.
//! * Code: [`eval`] and [`run`] prepare an execution, [`check`] runs one; [`parameters`] reads the parameters of a
//!   notebook, [`freshness`] queries the host for the cells that ran.
//! * Kernels: [`kernel_specs`], [`kernels`], [`history`], [`helpers`].
//! * The installation: [`doctor`], [`trust`]. [`finding`] is what they report.
//! * [`table`] and [`seconds`] format and parse values for every front end.
//!
//! ```
//! use cellwright_operations::table::align_columns;
//!
//! let rows = [["NAME", "STATE"], ["main", "idle"]].map(|row| row.map(str::to_owned).to_vec());
//! assert_eq!(align_columns(&rows), "NAME  STATE\nmain  idle\n");
//! ```

#![expect(
    missing_docs,
    reason = "an internal crate: most names need no description"
)]

pub mod artifact;
pub mod cells;
pub mod change;
pub mod check;
pub mod diff;
pub mod doctor;
pub mod edit;
pub mod eval;
pub mod file_path;
pub mod finding;
pub mod freshness;
pub mod git;
pub mod helpers;
pub mod history;
pub mod kernel_specs;
pub mod kernels;
pub mod metadata;
pub mod outline;
pub mod parameters;
pub mod read;
pub mod run;
pub mod seconds;
pub mod stored_outputs;
pub mod table;
pub mod trust;
pub mod upgrade;
pub mod write;
