//! `kernels specs`: lists the kernels that can be started.

use std::path::Path;

use cellwright_diagnostics::failure::Failure;

use crate::console::Console;
use crate::engine::Engine;
use crate::operations::kernel_specs::list_kernel_specs;
use crate::operations::kernels::specs_table;

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
    screen.print(&specs_table(&rows))?;
    let broken = rows.iter().filter(|row| !row.ok).count();
    if broken > 0 {
        screen.note(&format!(
            "{broken} of {} cannot be started; `cellwright doctor` explains what to do",
            rows.len()
        ));
    }
    Ok(())
}
