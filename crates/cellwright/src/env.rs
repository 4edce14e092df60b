//! Every environment variable that Cellwright reads, and what for.

use std::ffi::OsString;

/// Folder for things that can be made again, instead of `cellwright` in the user's cache folder
/// (`XDG_CACHE_HOME`, else `~/.cache`).
pub(crate) const CACHE_DIR: &str = "CELLWRIGHT_CACHE_DIR";

/// Folder for full outputs, instead of `cellwright/artifacts` in the user's state folder
/// (`XDG_STATE_HOME`, else `~/.local/state`). Kernels get it, too.
pub(crate) const ARTIFACTS_DIR: &str = "CELLWRIGHT_ARTIFACTS_DIR";

/// Folder where commands and the host meet, instead of `cellwright` in `XDG_RUNTIME_DIR` and what
/// stands in for it. It must be the user's alone.
pub(crate) const HOST_DIR: &str = "CELLWRIGHT_HOST_DIR";

/// The user's folder for sockets and the like, which ends with the login.
pub(crate) const XDG_RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";
/// Folder for settings and modules, instead of `cellwright` in the user's configuration folder
/// (`XDG_CONFIG_HOME`, else `~/.config`).
pub(crate) const CONFIG_DIR: &str = "CELLWRIGHT_CONFIG_DIR";

/// Folder for what Cellwright must remember, instead of `cellwright` in the user's state folder
/// (`XDG_STATE_HOME`, else `~/.local/state`).
pub(crate) const STATE_DIR: &str = "CELLWRIGHT_STATE_DIR";

/// Set for kernels: the name of the session that a cell runs in.
pub(crate) const SESSION: &str = "CELLWRIGHT_SESSION";

/// Set for kernels to 0: without the names that every cell finds.
pub(crate) const PRELUDE: &str = "CELLWRIGHT_PRELUDE";

/// Set for kernels: where verbs can be called from a cell.
pub(crate) const BRIDGE_URL: &str = "CELLWRIGHT_BRIDGE_URL";

/// Set for kernels: what a call must carry.
pub(crate) const BRIDGE_TOKEN: &str = "CELLWRIGHT_BRIDGE_TOKEN";

/// Set to anything but the empty string: no colour (see no-color.org).
pub(crate) const NO_COLOR: &str = "NO_COLOR";

/// The virtual environment that the user is in; its Python is preferred.
pub(crate) const VIRTUAL_ENV: &str = "VIRTUAL_ENV";

/// The conda environment that the user is in; its Python is preferred.
pub(crate) const CONDA_PREFIX: &str = "CONDA_PREFIX";

/// Where `python3` and `python` are looked for, and the programs of Jupyter's kernels.
pub(crate) const PATH: &str = "PATH";

/// The user's home, for `~` in `--python`, for Jupyter's folders, and where the search for a project's
/// settings ends.
pub(crate) const HOME: &str = "HOME";

/// More folders in which Jupyter's kernels are looked for, before all others.
pub(crate) const JUPYTER_PATH: &str = "JUPYTER_PATH";

/// The user's folder of Jupyter, instead of `jupyter` in the user's data folder.
pub(crate) const JUPYTER_DATA_DIR: &str = "JUPYTER_DATA_DIR";

/// Where running kernels are listed, instead of `runtime` in the user's folder of Jupyter.
pub(crate) const JUPYTER_RUNTIME_DIR: &str = "JUPYTER_RUNTIME_DIR";

/// Whether the kernels of an environment come before those of the user.
pub(crate) const JUPYTER_PREFER_ENV_PATH: &str = "JUPYTER_PREFER_ENV_PATH";

/// Where Python keeps what its user has installed, kernels of Jupyter's included.
pub(crate) const PYTHONUSERBASE: &str = "PYTHONUSERBASE";

/// The user's data folder, in which Jupyter's is.
pub(crate) const XDG_DATA_HOME: &str = "XDG_DATA_HOME";

/// The interpreter: setting `python.interpreter`.
pub(crate) const PYTHON: &str = "CELLWRIGHT_PYTHON";

/// Whether the interpreter is taken as it is: setting `python.skip_check`.
pub(crate) const PI_PYTHON_SKIP_CHECK: &str = "PI_PYTHON_SKIP_CHECK";

/// Sets `trace.frames`.
pub(crate) const PI_PYTHON_IPC_TRACE: &str = "PI_PYTHON_IPC_TRACE";

/// Sets `trace.startup`.
pub(crate) const PI_DEBUG_STARTUP: &str = "PI_DEBUG_STARTUP";

/// Whether code may be run: setting `eval.enabled`. `0` and `bash` for no, `1`, `py`, `mix` and `both`
/// for yes.
pub(crate) const PI_PY: &str = "PI_PY";

/// Seconds that a cell may take: setting `eval.timeout`.
pub(crate) const TIMEOUT: &str = "CELLWRIGHT_TIMEOUT";

/// Whose sessions they are: setting `eval.owner`.
pub(crate) const OWNER: &str = "CELLWRIGHT_OWNER";

/// Where a gateway is: setting `gateway.url`.
pub(crate) const GATEWAY_URL: &str = "CELLWRIGHT_GATEWAY_URL";

/// The same, as other tools name it.
pub(crate) const PI_PYTHON_GATEWAY_URL: &str = "PI_PYTHON_GATEWAY_URL";

/// The same, as Jupyter names it.
pub(crate) const JUPYTER_GATEWAY_URL: &str = "JUPYTER_GATEWAY_URL";

/// What lets us into a gateway: setting `gateway.token`.
pub(crate) const GATEWAY_TOKEN: &str = "CELLWRIGHT_GATEWAY_TOKEN";

/// The same, as other tools name it.
pub(crate) const PI_PYTHON_GATEWAY_TOKEN: &str = "PI_PYTHON_GATEWAY_TOKEN";

/// The same, as Jupyter names it.
pub(crate) const JUPYTER_GATEWAY_AUTH_TOKEN: &str = "JUPYTER_GATEWAY_AUTH_TOKEN";

/// The value of a variable, if it is set and not empty.
#[expect(clippy::disallowed_methods, reason = "the one place that may")]
pub(crate) fn value(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Everything, to be filtered for a kernel.
pub(crate) fn all() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}
