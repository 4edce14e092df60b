//! [`LaunchContext`]: where a kernel starts, and the resources of the process that starts it.

use std::path::PathBuf;

use crate::process::Supervisor;

/// Where a kernel starts, and the resources of the process that starts it.
///
/// A [`KernelSpec`](crate::KernelSpec) can be sent to another process; a context cannot. The process that starts the
/// kernel supplies its own.
#[derive(Clone, Debug)]
pub struct LaunchContext {
    /// The working directory of the kernel.
    pub cwd: PathBuf,
    /// The program that ends the kernel when the owner exits.
    pub supervisor: Supervisor,
    /// Directories for the Python files that Cellwright puts into kernels; the first usable one is taken.
    pub staging: Vec<PathBuf>,
    /// Directories for the sockets of Jupyter kernels; the first usable one is taken. Without one, kernels start
    /// only over TCP.
    pub sockets: Vec<PathBuf>,
}
