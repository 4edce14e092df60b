//! [`JupyterSpec`]: which Jupyter kernel to start or to attach to, and how.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use cellwright_jupyter::kernelspec::Kernelspec;

use crate::process::Supervisor;

/// How to start a Jupyter kernel, or to attach to one.
#[derive(Clone, Debug)]
pub struct JupyterSpec {
    /// The kernel to start or to attach to.
    pub source: KernelSource,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its whole environment, without the variables of its kernelspec.
    pub env: Vec<(OsString, OsString)>,
    /// The program that ends the kernel when the owner exits.
    pub supervisor: Supervisor,
    /// Jupyter's runtime folder, where other programs find the connection files of running kernels.
    pub runtime: PathBuf,
    /// Folders for its sockets; the first usable one is taken.
    pub sockets: Vec<PathBuf>,
    /// Folders for the Python files of the hooks; the first usable one is taken.
    pub staging: Vec<PathBuf>,
    /// The transport of its sockets.
    pub transport: Transport,
    /// How long it may take to become ready.
    pub start_timeout: Duration,
    /// How long a cell may run after an interrupt.
    pub interrupt_grace: Duration,
}

/// The kernel to start or to attach to.
#[derive(Clone, Debug)]
pub enum KernelSource {
    /// A kernel to start.
    Start {
        /// Its kernelspec.
        kernelspec: Box<Kernelspec>,
        /// The interpreter that replaces a bare `python` in the kernelspec.
        python: Option<PathBuf>,
    },
    /// A running kernel, which keeps running after the session.
    Existing {
        /// Its connection file.
        connection_file: PathBuf,
    },
}

/// The transport of a kernel's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// IPC if the kernel supports it, else TCP.
    #[default]
    Auto,
    /// Unix sockets in the file system.
    Ipc,
    /// TCP on the loopback address.
    Tcp,
}
