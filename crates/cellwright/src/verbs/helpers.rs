//! `helpers`: lists the functions that code in a kernel can use.

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_operations::helpers::{HelpersRequest, list_helpers};
use clap::Args;

use crate::console::Console;
use crate::verbs::kernel_args::interpreter;

/// Arguments of `helpers`.
#[derive(Debug, Args)]
#[command(after_help = "\
Your own functions come from *.py files in `~/.config/cellwright/modules`, and from `.cellwright/modules` in a \
trusted project (`cellwright trust`).

Examples:
  cellwright helpers
  cellwright helpers read run
  cellwright helpers --json")]
pub(crate) struct HelpersArgs {
    /// Functions to print with their full documentation [default: a list of all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Directory in which code would run [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Python interpreter: a path, the directory of an environment, or a command
    #[arg(long, value_name = "PYTHON", value_parser = interpreter)]
    python: Option<PathBuf>,
}

/// Lists the functions and prints them.
pub(crate) fn helpers(
    args: &HelpersArgs,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    let request = HelpersRequest {
        names: args.names.clone(),
        cwd: args.cwd.clone(),
        python: args.python.clone(),
    };
    let report = list_helpers(&request, engine)?;
    if console.json {
        return console.print_json(&report);
    }
    let doc_lines_max = if args.names.is_empty() { 1 } else { usize::MAX };
    let mut text = String::new();
    let mut module = None;
    for function in &report.helpers {
        if function.module.as_deref() != module {
            module = function.module.as_deref();
            text.push_str(&format!("\nfrom {}:\n", module.unwrap_or_default()));
        }
        text.push_str(&format!("{}{}\n", function.name, function.signature));
        for line in function.doc.lines().take(doc_lines_max) {
            let line = format!("    {line}");
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    console.print(&text)?;
    console.print_notices(&report.notices);
    Ok(())
}
