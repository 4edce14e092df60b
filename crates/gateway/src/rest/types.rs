//! The answers of a Jupyter server. Fields that a server leaves out are empty.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A kernel on a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteKernel {
    /// Its id.
    pub id: String,
    /// The name of its kernelspec.
    #[serde(default)]
    pub name: String,
    /// `idle`, `busy`, `starting`, `restarting` or `dead`.
    #[serde(default)]
    pub execution_state: Option<String>,
    /// When it was last used, RFC 3339.
    #[serde(default)]
    pub last_activity: Option<String>,
    /// How many clients are connected.
    #[serde(default)]
    pub connections: Option<u64>,
    /// The process that owns the kernel. Only Cellwright's own gateway tells.
    #[serde(default, rename = "cellwright_owner")]
    pub owner: Option<KernelOwner>,
}

/// The process that owns a kernel on Cellwright's own gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelOwner {
    /// Its process id.
    pub pid: u32,
    /// Its start time in clock ticks since the boot of the system, where the system reports it.
    #[serde(default)]
    pub start_ticks: Option<u64>,
    /// The name of the session that has the kernel.
    #[serde(default)]
    pub session: Option<String>,
    /// The working directory in which the kernel started.
    #[serde(default)]
    pub cwd: Option<String>,
}

/// A notebook or a console that has a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteSession {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// The path of the notebook on the server.
    #[serde(default)]
    pub path: Option<String>,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// `notebook` or `console`.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// Its kernel.
    pub kernel: Option<RemoteKernel>,
}

/// When a server was started, and what it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// When it was started, RFC 3339.
    #[serde(default)]
    pub started: Option<String>,
    /// How many kernels it has.
    #[serde(default)]
    pub kernels: Option<u64>,
}

/// The kernels that are installed on a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteKernelspecs {
    /// The one that the server starts if none is named.
    pub default: Option<String>,
    /// All of them, by name.
    pub kernelspecs: Vec<RemoteKernelspec>,
}

/// A kernel that is installed on a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteKernelspec {
    /// Its name.
    pub name: String,
    /// Its name for users.
    pub display_name: String,
    /// Its language.
    pub language: String,
}

impl RemoteKernelspecs {
    pub(super) fn parse(value: &Value) -> Option<Self> {
        let all = value["kernelspecs"].as_object()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut kernelspecs: Vec<_> = all
            .iter()
            .map(|(name, kernelspec)| RemoteKernelspec {
                name: name.clone(),
                display_name: text(&kernelspec["spec"]["display_name"]),
                language: text(&kernelspec["spec"]["language"]),
            })
            .collect();
        kernelspecs.sort_by(|one, other| one.name.cmp(&other.name));
        Some(Self {
            default: value["default"].as_str().map(str::to_owned),
            kernelspecs,
        })
    }

    /// The kernelspec of that name.
    pub fn find(&self, name: &str) -> Option<&RemoteKernelspec> {
        let is_named = |kernelspec: &&RemoteKernelspec| kernelspec.name.eq_ignore_ascii_case(name);
        self.kernelspecs.iter().find(is_named)
    }
}

/// Which kernel to start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StartRequest {
    /// The name of the kernelspec. `None`: the server's default.
    pub name: Option<String>,
    /// Environment variables. Servers ignore those that they do not allow.
    pub env: Vec<(String, String)>,
    /// The working directory, relative to the root directory of the server.
    pub path: Option<String>,
}
