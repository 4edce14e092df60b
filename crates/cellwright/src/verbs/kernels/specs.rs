//! `kernels specs`: lists the kernels that can be started.

use std::path::Path;

use crate::console::Console;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::operations::kernel_specs::{KernelSpecEntry, list_kernel_specs};
use crate::table::align_columns;

/// Prints the kernels that can be started.
pub(super) fn specs(
    cwd: Option<&Path>,
    python: Option<&Path>,
    engine: &Engine,
    screen: &Console,
) -> Result<(), Failure> {
    let rows = list_kernel_specs(cwd, python, engine)?;
    if screen.json {
        return screen.print_json(&rows);
    }
    screen.print(&table(&rows))?;
    let broken = rows.iter().filter(|row| !row.ok).count();
    if broken > 0 {
        screen.note(&format!(
            "{broken} of {} cannot be started; `cellwright doctor` explains what to do",
            rows.len()
        ));
    }
    Ok(())
}

/// Kernels in columns.
pub(crate) fn table(rows: &[KernelSpecEntry]) -> String {
    let head = ["NAME", "BACKEND", "LANGUAGE", "STARTS", "FROM"];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        table.push(vec![
            row.name.clone(),
            row.backend.to_owned(),
            row.language.clone().unwrap_or_else(|| "-".to_owned()),
            match &row.reason {
                Some(reason) => format!("broken: {}", reason.replace(char::is_control, " ")),
                None => row.starts.clone(),
            },
            row.folder
                .clone()
                .or_else(|| row.origin.clone())
                .unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    align_columns(&table)
}
