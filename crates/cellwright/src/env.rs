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

/// Seconds that a host with nothing to do stays; 0 for ever.
pub(crate) const HOST_IDLE_EXIT: &str = "CELLWRIGHT_HOST_IDLE_EXIT";

/// The user's folder for sockets and the like, which ends with the login.
pub(crate) const XDG_RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";

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
