//! Operations: each takes a plain request and returns a typed result. The command line, MCP and the bridge are
//! front ends: they build the request and present the result. Nothing here parses arguments or prints.
//!
//! * [`api`] is the entry for Rust programs.
//! * Files: [`read`], [`write`](mod@write), [`edit`], [`cells`], [`editable`], [`outline`], [`upgrade`], [`undo`](mod@undo), [`diff`],
//!   [`artifact`], [`figures`], [`git`].
//!   [`change`] is the result of a change, [`file_path`] the file that it is about, [`stored_outputs`] its outputs as text.
//! * Code: [`eval`] and [`run`] prepare an execution, [`check`] runs one; [`parameters`] reads the parameters of a
//!   notebook, [`declared_parameters`] lists those that it accepts, [`freshness`] queries the host for the cells that ran.
//! * Kernels: [`kernel_specs`], [`kernels`], [`history`], [`helpers`].
//! * The installation: [`doctor`], [`trust`]. [`finding`] is what they report.
//! * [`table`] and [`seconds`] format and parse values for every front end.
//!
//! ```
//! use cellwright_operations::table::Table;
//!
//! let mut table = Table::new(["NAME", "STATE"]).clip("NAME");
//! table.push(["main", "idle"].map(str::to_owned));
//! assert_eq!(table.to_string(), "NAME  STATE\nmain  idle\n");
//! ```

#![expect(
    missing_docs,
    reason = "an internal crate: most names need no description"
)]

pub mod api;
pub mod artifact;
pub mod cells;
pub mod change;
pub mod check;
pub mod declared_parameters;
pub mod diff;
pub mod doctor;
pub mod edit;
pub mod editable;
mod environment;
pub mod eval;
pub mod figures;
pub mod file_path;
pub mod finding;
pub mod freshness;
pub mod gateway;
pub mod git;
pub mod helpers;
pub mod history;
pub mod kernel_specs;
pub mod kernels;
pub mod location;
pub mod metadata;
pub mod outline;
pub mod parameters;
pub mod read;
pub mod run;
pub mod seconds;
pub mod server_kernels;
pub mod stored_outputs;
pub mod table;
pub mod trust;
pub mod undo;
pub mod upgrade;
pub mod write;
