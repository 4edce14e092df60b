//! `kernels history` and `kernels export`: the cells that ran in a session, as a list and as a notebook.

use std::path::Path;

use cellwright_diagnostics::failure::Failure;
use cellwright_host::kernel_host::KernelHost;
use cellwright_host::protocol::SessionSelector;
use cellwright_operations::history::{HistoryReport, Journal, history_table};
use cellwright_operations::table::count;

use crate::console::Console;

fn open(session: &SessionSelector) -> Result<Journal, Failure> {
    let host = KernelHost::Shared;
    let info = host.block_on(host.journal(session.clone()))?;
    Journal::open(info.ok_or_else(cellwright_host::host_not_running)?)
}

/// Lists the cells.
pub(super) fn history(
    name: &str,
    session: &SessionSelector,
    console: &Console,
) -> Result<(), Failure> {
    let mut journal = open(session)?;
    let cells = journal.read_cells()?;
    console.print_notices(journal.lost_notice().as_slice());
    if console.json {
        return console.print_json(&HistoryReport {
            session: name.to_owned(),
            cells,
            notices: journal.lost_notice().into_iter().collect(),
        });
    }
    let Some(table) = history_table(&cells) else {
        console.note("nothing ran so far");
        return Ok(());
    };
    console.print_table(&table)
}

/// Saves the cells as a notebook.
pub(super) fn export(
    session: &SessionSelector,
    out: &Path,
    force: bool,
    console: &Console,
) -> Result<(), Failure> {
    let mut journal = open(session)?;
    if out == Path::new("-") {
        let mut notebook = Vec::new();
        journal.write_notebook(&mut notebook)?;
        console.print_notices(journal.lost_notice().as_slice());
        return console.write_bytes(&notebook);
    }
    let report = journal.export(&out.into(), force)?;
    console.print_notices(report.lost_notice().as_slice());
    if console.json {
        return console.print_json(&report);
    }
    console.note(&format!(
        "{}: {}",
        report.path,
        count(report.total_cells, "cell")
    ));
    Ok(())
}
