//! `notebook figures`: lists and extracts the images in a notebook.

use std::path::PathBuf;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_operations::figures::{FiguresReport, list_figures};
use cellwright_operations::table::count;
use clap::Args;

use crate::console::Console;

/// Arguments of `notebook figures`.
#[derive(Debug, Args)]
#[command(after_help = "\
Lists the images in outputs and attachments. A file is named by its cell and its number in the cell: `cell-4-1.png`.

Examples:
  cellwright notebook figures a.ipynb
  cellwright notebook figures a.ipynb -o figures/
  cellwright read a.ipynb:cells=4:images")]
pub(super) struct FiguresArgs {
    /// Notebook
    path: PathBuf,
    /// Write the images into this directory
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Replace existing files
    #[arg(long, requires = "output")]
    force: bool,
}

/// Lists the images, and stores them on request.
pub(super) fn figures(
    args: &FiguresArgs,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    let mut report = list_figures(&args.path.as_path().into(), engine)?;
    if let Some(dir) = &args.output {
        report.write_files(dir, args.force)?;
    }
    show_figures(&report, console)?;
    if args.output.is_none() && !report.figures.is_empty() {
        console.note("`-o DIR` writes them into a directory");
    }
    Ok(())
}

/// Prints a list of images.
pub(crate) fn show_figures(report: &FiguresReport, console: &Console) -> Result<(), Failure> {
    if console.json {
        return console.print_json(report);
    }
    console.print_notices(&report.notices);
    if !report.figures.is_empty() {
        console.print_table(&report.table())?;
    }
    console.note(&count(report.figures.len(), "image"));
    Ok(())
}
