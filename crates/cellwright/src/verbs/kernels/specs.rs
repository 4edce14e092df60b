//! `kernels specs`: lists the kernels that can be started.

use std::path::Path;

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_operations::kernel_specs::list_kernel_specs;
use cellwright_operations::kernels::specs_table;

use crate::console::Console;

/// Prints the kernels that can be started.
pub(super) fn specs(
    cwd: Option<&Path>,
    python: Option<&Path>,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    let list = list_kernel_specs(cwd, python, engine)?;
    if console.json {
        return console.print_json(&list);
    }
    let rows = list.specs;
    console.print_table(&specs_table(&rows))?;
    let broken = rows.iter().filter(|row| !row.ok).count();
    if broken > 0 {
        console.note(&format!(
            "{broken} of {} cannot be started; `cellwright doctor` explains what to do",
            rows.len()
        ));
    }
    console.print_notices(&list.notices);
    Ok(())
}
