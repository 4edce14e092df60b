//! What the starter of a keeper and the keeper agree on.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The first argument that makes the binary a keeper. The directory of the gateway follows.
pub const KEEPER_ARG: &str = "__gateway";

/// The line that a keeper sends to its starter when the gateway answers.
pub(crate) const READY_LINE: &str = "ready";

/// The start of the line that it sends when the gateway cannot start; the reason follows.
pub(crate) const FAILED_LINE_PREFIX: &str = "failed: ";

/// The configuration of the gateway.
pub(crate) const CONFIG_FILE: &str = "gateway_config.py";

/// The file with [`KeeperOptions`].
pub(crate) const OPTIONS_FILE: &str = "options.json";

/// What the keeper and the configuration of the gateway read.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeeperOptions {
    pub(crate) token: String,
    /// `ipc` or `tcp`, for the sockets between the gateway and its kernels.
    pub(crate) transport: String,
    pub(crate) python: PathBuf,
    pub(crate) version: Option<String>,
    pub(crate) idle_timeout: Duration,
    pub(crate) start_timeout: Duration,
}
