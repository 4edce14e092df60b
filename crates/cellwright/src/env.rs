//! Every environment variable that Cellwright reads, and what for.

use std::ffi::OsString;

/// Folder for things that can be made again, instead of `cellwright` in the user's cache folder
/// (`XDG_CACHE_HOME`, else `~/.cache`).
pub(crate) const CACHE_DIR: &str = "CELLWRIGHT_CACHE_DIR";

/// Folder for full outputs, instead of `cellwright/artifacts` in the user's state folder
/// (`XDG_STATE_HOME`, else `~/.local/state`). Kernels get it, too.
pub(crate) const ARTIFACTS_DIR: &str = "CELLWRIGHT_ARTIFACTS_DIR";

/// Folder for settings and modules, instead of `cellwright` in the user's configuration folder
/// (`XDG_CONFIG_HOME`, else `~/.config`).
pub(crate) const CONFIG_DIR: &str = "CELLWRIGHT_CONFIG_DIR";

/// Folder for what Cellwright must remember, instead of `cellwright` in the user's state folder
/// (`XDG_STATE_HOME`, else `~/.local/state`).
pub(crate) const STATE_DIR: &str = "CELLWRIGHT_STATE_DIR";

/// Set for kernels: the name of the session that a cell runs in.
pub(crate) const SESSION: &str = "CELLWRIGHT_SESSION";

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

/// Where `python3` and `python` are looked for.
pub(crate) const PATH: &str = "PATH";

/// The user's home, for `~` in `--python`.
pub(crate) const HOME: &str = "HOME";

/// The value of a variable, if it is set and not empty.
#[expect(clippy::disallowed_methods, reason = "the one place that may")]
pub(crate) fn value(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Everything, to be filtered for a kernel.
pub(crate) fn all() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}
