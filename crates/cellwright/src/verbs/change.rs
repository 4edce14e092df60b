//! Prints what was done to a notebook.

use cellwright_diagnostics::failure::Failure;
use cellwright_operations::change::ChangeReport;

use crate::console::Console;

/// Prints the report. If printing fails, the error says that the notebook was written.
pub(super) fn show_change(report: &ChangeReport, screen: &Console) -> Result<(), Failure> {
    let written = report.changed.then_some(report.revision.as_str());
    print(report, screen).map_err(|failure| failure.after_change(written))
}

fn print(report: &ChangeReport, screen: &Console) -> Result<(), Failure> {
    if screen.json {
        return screen.print_json(report);
    }
    screen.print_notices(&report.notices);
    if !report.headline.is_empty() {
        screen.print(&format!("{}\n", report.headline))?;
    }
    screen.print(&format!("revision: {}\n", report.revision))?;
    screen.print_diff(&report.diff)
}
