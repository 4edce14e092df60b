//! `notebook parameters`: lists the parameters that a notebook accepts.

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_operations::declared_parameters::list_parameters;
use clap::Args;

use crate::console::Console;
use crate::verbs::notebook_input::NotebookInput;

/// Arguments of `notebook parameters`.
#[derive(Debug, Args)]
#[command(after_help = "\
Lists the variables that the cell tagged `parameters` assigns, with their default values, types and comments. No code \
runs. `run -p NAME=VALUE` sets a parameter.

Examples:
  cellwright notebook parameters a.ipynb
  cellwright notebook parameters a.ipynb --json | jq -r '.parameters[].name'
  cellwright notebook tag a.ipynb 0 parameters")]
pub(super) struct ParametersArgs {
    /// Notebook, or `-` to read it from stdin
    path: PathBuf,
}

/// Prints the parameters.
pub(super) fn parameters(
    args: &ParametersArgs,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    let input = NotebookInput::open(&args.path, console)?;
    let report = list_parameters(input.file(), engine)?;
    if console.json {
        return console.print_json(&report);
    }
    console.print_notices(&report.notices);
    if !report.parameters.is_empty() {
        console.print_table(&report.table())?;
    }
    if let Some(mut remark) = report.remark() {
        if !report.parameters.is_empty() {
            remark.push_str("; `run PATH -p NAME=VALUE` sets a parameter");
        }
        console.note(&remark);
    }
    Ok(())
}
