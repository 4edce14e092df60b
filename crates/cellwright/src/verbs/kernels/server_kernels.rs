//! The kernels of a Jupyter server: lists, interrupts, restarts and ends them.

use cellwright_diagnostics::failure::Failure;
use cellwright_engine::engine::Engine;
use cellwright_engine::kernels::working_directory;
use cellwright_engine::servers::ServerChoice;
use cellwright_operations::kernels::server_kernels_table;
use cellwright_operations::server_kernels::{self, ServerKernelAction};

use super::list::sessions;
use crate::console::Console;

/// Prints the kernels of a server.
pub(super) fn list(
    choice: &ServerChoice,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    let cwd = working_directory(None)?;
    let list = server_kernels::list(choice, &sessions()?, &cwd, engine)?;
    if console.json {
        return console.print_json(&list);
    }
    console.print_notices(&list.notices);
    if let Some(table) = server_kernels_table(&list.kernels) {
        return console.print_table(&table);
    }
    console.note(&format!("no kernels on the server {}", list.server));
    Ok(())
}

/// Interrupts, restarts or ends a kernel of a server.
pub(super) fn act(
    action: ServerKernelAction,
    choice: &ServerChoice,
    kernel: &str,
    engine: &Engine,
    console: &Console,
) -> Result<(), Failure> {
    let cwd = working_directory(None)?;
    let result = server_kernels::act(action, choice, kernel, &cwd, engine)?;
    if console.json {
        return console.print_json(&result);
    }
    console.print_notices(&result.notices);
    console.note(&format!(
        "kernel {} on the server {} was {}",
        result.kernel_id,
        result.server,
        action.name()
    ));
    Ok(())
}
