//! [`JupyterSpec`] and [`AttachedSpec`]: which Jupyter kernel to start or to attach to, and how.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use cellwright_jupyter::kernelspec::Kernelspec;
use serde::{Deserialize, Serialize};

use crate::env_json;

/// How to start a Jupyter kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JupyterSpec {
    /// Its kernelspec.
    pub kernelspec: Box<Kernelspec>,
    /// The interpreter that replaces a bare `python` in the kernelspec.
    pub python: Option<PathBuf>,
    /// Which of the two identify the kernel.
    pub identified_by: IdentifiedBy,
    /// Its whole environment, without the variables of its kernelspec.
    #[serde(with = "env_json")]
    pub env: Vec<(OsString, OsString)>,
    /// Jupyter's runtime directory, where other programs find the connection files of running kernels.
    pub runtime: PathBuf,
    /// The transport of its sockets.
    pub transport: Transport,
    /// How long it may take to become ready.
    pub start_timeout: Duration,
    /// How long a cell may run after an interrupt.
    pub interrupt_grace: Duration,
}

/// What identifies a Jupyter kernel: the parts of its spec that the user has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentifiedBy {
    /// The name of its kernelspec, with any interpreter.
    Kernelspec,
    /// Its interpreter: the kernelspec is that of ipykernel.
    Python,
    /// Both.
    KernelspecAndPython,
}

/// How to attach to a running kernel, which keeps running after the session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttachedSpec {
    /// Its connection file.
    pub connection_file: PathBuf,
    /// How long it may take to reply.
    pub start_timeout: Duration,
    /// How long a cell may run after an interrupt.
    pub interrupt_grace: Duration,
}

/// The transport of a kernel's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Unix sockets in a directory that only this user can access.
    #[default]
    Ipc,
    /// TCP on the loopback address. Messages are signed but not encrypted: other users of the machine can read them.
    Tcp,
}
