//! Every environment variable that Cellwright reads or sets for kernels.

use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

use cellwright_kernel::process::own_process;

use crate::environment;

/// Directory for caches, instead of `cellwright` in the user's cache directory (`XDG_CACHE_HOME`, else `~/.cache`).
pub const CACHE_DIR: &str = "CELLWRIGHT_CACHE_DIR";

/// Directory of the artifacts, instead of `cellwright/artifacts` in the user's state directory (`XDG_STATE_HOME`, else
/// `~/.local/state`). Also set for kernels.
pub const ARTIFACTS_DIR: &str = "CELLWRIGHT_ARTIFACTS_DIR";

/// Directory for the socket and the locks of the host, instead of `cellwright` in `XDG_RUNTIME_DIR` or its substitutes.
/// Other users must have no access to it.
pub const HOST_DIR: &str = "CELLWRIGHT_HOST_DIR";

/// The user's directory for sockets, which the system removes after logout.
pub const XDG_RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";

/// Directory for settings and modules, instead of `cellwright` in the user's configuration directory (`XDG_CONFIG_HOME`,
/// else `~/.config`).
pub const CONFIG_DIR: &str = "CELLWRIGHT_CONFIG_DIR";

/// Directory for persistent state, instead of `cellwright` in the user's state directory (`XDG_STATE_HOME`, else
/// `~/.local/state`).
pub const STATE_DIR: &str = "CELLWRIGHT_STATE_DIR";

/// Set for kernels: the name of the session.
pub const SESSION: &str = "CELLWRIGHT_SESSION";

/// Set to 0 for kernels without a prelude.
pub const PRELUDE: &str = "CELLWRIGHT_PRELUDE";

/// Set for kernels: the URL of the bridge, through which cells call verbs.
pub const BRIDGE_URL: &str = "CELLWRIGHT_BRIDGE_URL";

/// Set for kernels: the bearer token of calls to the bridge.
pub const BRIDGE_TOKEN: &str = "CELLWRIGHT_BRIDGE_TOKEN";

/// Disables colour if it is set and not empty (see no-color.org).
pub const NO_COLOR: &str = "NO_COLOR";

/// The editor for cells and notebooks; preferred to `EDITOR`.
pub const VISUAL: &str = "VISUAL";

/// The editor for cells and notebooks; `vi` without it.
pub const EDITOR: &str = "EDITOR";

/// The active virtual environment; its Python is preferred.
pub const VIRTUAL_ENV: &str = "VIRTUAL_ENV";

/// The active conda environment; its Python is preferred.
pub const CONDA_PREFIX: &str = "CONDA_PREFIX";

/// Search path for `python3` and `python`, and for the programs of Jupyter kernels.
pub const PATH: &str = "PATH";

/// The user's home directory: for `~` in `--python`, for Jupyter's directories, and as the end of the search for a
/// project's settings.
pub const HOME: &str = "HOME";

/// Directories in which kernelspecs are searched for first.
pub const JUPYTER_PATH: &str = "JUPYTER_PATH";

/// The user's Jupyter directory, instead of `jupyter` in the user's data directory.
pub const JUPYTER_DATA_DIR: &str = "JUPYTER_DATA_DIR";

/// Directory of connection files, instead of `runtime` in the user's Jupyter directory.
pub const JUPYTER_RUNTIME_DIR: &str = "JUPYTER_RUNTIME_DIR";

/// Whether kernelspecs of an environment take precedence over those of the user.
pub const JUPYTER_PREFER_ENV_PATH: &str = "JUPYTER_PREFER_ENV_PATH";

/// The directory in which Python installs packages for the user; it may contain kernelspecs.
pub const PYTHONUSERBASE: &str = "PYTHONUSERBASE";

/// The user's data directory, which contains the one of Jupyter.
pub const XDG_DATA_HOME: &str = "XDG_DATA_HOME";

/// Selects diagnostic events, as a list of filters: `debug`, or `cellwright_kernel=trace,info`. Commands write them to
/// stderr, the host writes them to its log.
pub const LOG: &str = "CELLWRIGHT_LOG";

/// Sets `python.interpreter`.
pub const PYTHON: &str = "CELLWRIGHT_PYTHON";

/// Sets `python.skip_check`.
pub const PI_PYTHON_SKIP_CHECK: &str = "PI_PYTHON_SKIP_CHECK";

/// Sets `trace.frames`.
pub const PI_PYTHON_IPC_TRACE: &str = "PI_PYTHON_IPC_TRACE";

/// Sets `trace.startup`.
pub const PI_DEBUG_STARTUP: &str = "PI_DEBUG_STARTUP";

/// Sets `eval.enabled`: `0` and `bash` for false; `1`, `py`, `mix` and `both` for true.
pub const PI_PY: &str = "PI_PY";

/// Sets `eval.timeout`, in seconds.
pub const TIMEOUT: &str = "CELLWRIGHT_TIMEOUT";

/// Sets `eval.owner`.
pub const OWNER: &str = "CELLWRIGHT_OWNER";

/// Sets `gateway.url`.
pub const GATEWAY_URL: &str = "CELLWRIGHT_GATEWAY_URL";

/// Sets `gateway.url`; the name in other tools.
pub const PI_PYTHON_GATEWAY_URL: &str = "PI_PYTHON_GATEWAY_URL";

/// Sets `gateway.url`; the name in Jupyter.
pub const JUPYTER_GATEWAY_URL: &str = "JUPYTER_GATEWAY_URL";

/// Sets `gateway.token`.
pub const GATEWAY_TOKEN: &str = "CELLWRIGHT_GATEWAY_TOKEN";

/// Sets `gateway.token`; the name in other tools.
pub const PI_PYTHON_GATEWAY_TOKEN: &str = "PI_PYTHON_GATEWAY_TOKEN";

/// Sets `gateway.token`; the name in Jupyter.
pub const JUPYTER_GATEWAY_AUTH_TOKEN: &str = "JUPYTER_GATEWAY_AUTH_TOKEN";

/// Word before the token of `gateway.url`; the name in Jupyter.
pub const JUPYTER_GATEWAY_AUTH_SCHEME: &str = "JUPYTER_GATEWAY_AUTH_SCHEME";

/// Headers for `gateway.url`, as a JSON object; the name in Jupyter.
pub const JUPYTER_GATEWAY_HEADERS: &str = "JUPYTER_GATEWAY_HEADERS";

/// Rejected if it is false: certificates are always verified.
pub const JUPYTER_GATEWAY_VALIDATE_CERT: &str = "JUPYTER_GATEWAY_VALIDATE_CERT";

/// PEM file with the certificate authorities of `gateway.url`; the name in Jupyter.
pub const JUPYTER_GATEWAY_CA_CERTS: &str = "JUPYTER_GATEWAY_CA_CERTS";

/// PEM file with the client's certificate for `gateway.url`; the name in Jupyter.
pub const JUPYTER_GATEWAY_CLIENT_CERT: &str = "JUPYTER_GATEWAY_CLIENT_CERT";

/// PEM file with the key of the client's certificate; the name in Jupyter.
pub const JUPYTER_GATEWAY_CLIENT_KEY: &str = "JUPYTER_GATEWAY_CLIENT_KEY";

/// Names of variables to pass to kernels on `gateway.url`, with commas; the name in Jupyter.
pub const JUPYTER_GATEWAY_ALLOWED_ENVS: &str = "JUPYTER_GATEWAY_ALLOWED_ENVS";

/// The former name of `JUPYTER_GATEWAY_ALLOWED_ENVS`.
pub const JUPYTER_GATEWAY_ENV_WHITELIST: &str = "JUPYTER_GATEWAY_ENV_WHITELIST";

/// Time limit of a request to `gateway.url`, in seconds; the name in Jupyter.
pub const JUPYTER_GATEWAY_REQUEST_TIMEOUT: &str = "JUPYTER_GATEWAY_REQUEST_TIMEOUT";

/// The same, if `JUPYTER_GATEWAY_REQUEST_TIMEOUT` is not set.
pub const JUPYTER_GATEWAY_CONNECT_TIMEOUT: &str = "JUPYTER_GATEWAY_CONNECT_TIMEOUT";

/// Proxy for `http` servers.
pub const HTTP_PROXY: &str = "HTTP_PROXY";

/// Proxy for `http` servers.
pub const HTTP_PROXY_LOWER: &str = "http_proxy";

/// Proxy for `https` servers.
pub const HTTPS_PROXY: &str = "HTTPS_PROXY";

/// Proxy for `https` servers.
pub const HTTPS_PROXY_LOWER: &str = "https_proxy";

/// Proxy for all servers.
pub const ALL_PROXY: &str = "ALL_PROXY";

/// Proxy for all servers.
pub const ALL_PROXY_LOWER: &str = "all_proxy";

/// Hosts that are reached without a proxy.
pub const NO_PROXY: &str = "NO_PROXY";

/// Hosts that are reached without a proxy.
pub const NO_PROXY_LOWER: &str = "no_proxy";

/// The variables that [`hide_values`] saved.
static SAVED: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// Returns the value of a variable if it is set and not empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the only place that reads the environment"
)]
pub fn value(name: &str) -> Option<OsString> {
    let value = match SAVED.get() {
        Some(saved) => {
            let found = saved.iter().find(|(other, _)| other == name);
            found.map(|(_, value)| value.clone())
        }
        None => std::env::var_os(name),
    };
    value.filter(|value| !value.is_empty())
}

/// Returns all variables. Kernels get a filtered selection of them, other programs get all.
pub fn all() -> Vec<(OsString, OsString)> {
    match SAVED.get() {
        Some(saved) => saved.clone(),
        None => std::env::vars_os().collect(),
    }
}

/// Saves all variables for [`value`] and [`all`] and removes their values from what other processes can read about this one,
/// except for those that its own libraries read. Otherwise code in a kernel could read in `/proc/PID/environ` of this process
/// what it does not receive. A process that this one starts without an explicit environment receives empty values.
///
/// Call it before other threads exist. Where the system does not support it, the values stay.
pub fn hide_values() {
    if SAVED.set(std::env::vars_os().collect()).is_err() {
        return;
    }
    let is_kept = |name: &OsStr, value: &OsStr| {
        let name = name.to_str();
        name.is_some_and(|name| environment::is_own_variable(name, value))
    };
    let hidden = own_process::erase_environment_values(&is_kept);
    let protected = own_process::forbid_inspection();
    if let Err(error) = hidden.and(protected) {
        tracing::debug!(%error, "other processes can read the environment of this one");
    }
}
