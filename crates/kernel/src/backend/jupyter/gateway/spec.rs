//! [`GatewaySpec`]: which kernel on a server to start or to attach to.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use cellwright_gateway::Server;
use serde::{Deserialize, Serialize};

/// Which kernel on a server to start or to attach to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GatewaySpec {
    /// The server.
    pub server: Box<Server>,
    /// The kernel.
    pub target: GatewayTarget,
    /// Whether the kernel has the files of this machine.
    pub files: FileAccess,
    /// Set if the server is the shared gateway of this user. The launcher then sets `server` before each start.
    pub local: Option<Box<LocalGateway>>,
    /// How long all phases of the start may take together.
    pub start_timeout: Duration,
    /// How long a cell may run after an interrupt.
    pub interrupt_grace: Duration,
}

/// The shared gateway of this user, which is started for a kernel if it does not run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LocalGateway {
    /// The directory with its files.
    pub dir: PathBuf,
    /// The interpreter that runs the gateway, if it has to be started.
    pub python: PathBuf,
    /// The environment variables of the kernel, also of a gateway that has to be started.
    #[serde(with = "crate::env_json")]
    pub env: Vec<(OsString, OsString)>,
    /// Identifies the kernel for users: its kernelspec, or its interpreter.
    pub kernel: String,
    /// The name of its kernelspec, as it is installed for the user.
    pub name: String,
    /// Its name to display.
    pub display_name: String,
    /// The program of the kernel.
    pub program: PathBuf,
    /// Whether the program is an interpreter that must have ipykernel.
    pub needs_ipykernel: bool,
    /// The content of `kernel.json` with which the gateway starts the kernel, under the name of the target.
    pub kernelspec: String,
    /// How long the gateway may take to start.
    pub start_timeout: Duration,
    /// After how much time without kernels the gateway ends. Zero: never.
    pub idle_timeout: Duration,
}

/// The kernel of a [`GatewaySpec`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatewayTarget {
    /// One to start.
    Start {
        /// The name of its kernelspec. `None`: the server's default.
        kernelspec: Option<String>,
        /// Environment variables to start it with. A server ignores those that it does not allow.
        env: Vec<(String, String)>,
        /// Whether it gets the prelude, if it runs Python.
        prelude: bool,
    },
    /// A running one, which keeps running.
    Existing {
        /// Its id on the server.
        id: String,
    },
}

/// Whether a kernel has the files of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// The server runs on this machine as this user: a working directory of this machine exists for its kernels.
    ThisMachine,
    /// The files of the kernel are those of another machine.
    OtherMachine,
}

impl GatewaySpec {
    /// Whether another program started the kernel.
    pub fn is_attached(&self) -> bool {
        matches!(self.target, GatewayTarget::Existing { .. })
    }
}
