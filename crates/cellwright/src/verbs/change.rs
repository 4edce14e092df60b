//! Prints what was done to a notebook.

use cellwright_diagnostics::failure::Failure;
use cellwright_operations::change::ChangeReport;

use crate::console::Console;

/// Prints the report. If printing fails, the error states that the notebook was written.
pub(super) fn show_change(report: &ChangeReport, console: &Console) -> Result<(), Failure> {
    let written = report.changed.then_some(report.revision.as_str());
    print(report, console).map_err(|failure| failure.after_change(written))
}

fn print(report: &ChangeReport, console: &Console) -> Result<(), Failure> {
    if console.json {
        return console.print_json(report);
    }
    console.print_notices(&report.notices);
    if !report.headline.is_empty() {
        console.print(&format!("{}\n", report.headline))?;
    }
    console.print(&format!("revision: {}\n", report.revision))?;
    console.print_diff(&report.diff)
}
