//! What to start, or to find.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use cellwright_jupyter::kernelspec::Kernelspec;

use crate::process::Supervisor;

/// How to get a Jupyter kernel.
#[derive(Clone, Debug)]
pub struct JupyterSpec {
    /// Which one.
    pub source: Source,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its whole environment, what its kernelspec wants not yet included.
    pub env: Vec<(OsString, OsString)>,
    /// Who keeps it from outliving us.
    pub supervisor: Supervisor,
    /// Where running kernels are listed for other programs: Jupyter's runtime folder.
    pub runtime: PathBuf,
    /// Folders for its sockets; the first that works is used.
    pub sockets: Vec<PathBuf>,
    /// Folders for our own Python files; the first that works is used.
    pub staging: Vec<PathBuf>,
    /// How its sockets are reached.
    pub transport: Transport,
    /// How long it may take to be ready.
    pub start_timeout: Duration,
    /// How long a cell has to end after an interrupt.
    pub interrupt_grace: Duration,
}

/// Which kernel.
#[derive(Clone, Debug)]
pub enum Source {
    /// One that we start.
    Start {
        /// How.
        kernelspec: Box<Kernelspec>,
        /// The interpreter that takes the place of a bare `python` in it.
        python: Option<PathBuf>,
    },
    /// One that runs already, and that we leave running.
    Existing {
        /// Its connection file.
        connection_file: PathBuf,
    },
}

/// How sockets are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Through the file system where the kernel can do that, else over loopback.
    #[default]
    Auto,
    /// Through the file system.
    Ipc,
    /// Over loopback.
    Tcp,
}
