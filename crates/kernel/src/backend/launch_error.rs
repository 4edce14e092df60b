//! Why the process of a kernel could not be started.

use std::path::PathBuf;

use super::runner::check_directory;
use crate::error::KernelError;
use crate::launch_context::LaunchContext;
use crate::process::StartError;

/// The error of a kernel whose program could not be started.
pub(super) fn launch_error(
    error: StartError,
    program: PathBuf,
    context: &LaunchContext,
) -> KernelError {
    match error {
        // The system reports a directory that is gone in the same way as a missing program.
        StartError::Program(source) => match check_directory(&context.cwd) {
            Ok(()) => KernelError::from_launch(program, source),
            Err(error) => error,
        },
        StartError::Supervisor(source) => {
            KernelError::from_launch(context.supervisor.program().clone(), source)
        }
    }
}
