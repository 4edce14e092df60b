//! Every environment variable that Cellwright reads, and what for.

/// Folder for things that can be made again, instead of `cellwright` in the user's cache folder
/// (`XDG_CACHE_HOME`, else `~/.cache`).
pub(crate) const CACHE_DIR: &str = "CELLWRIGHT_CACHE_DIR";

/// Set to anything but the empty string: no colour (see no-color.org).
pub(crate) const NO_COLOR: &str = "NO_COLOR";

/// The value of a variable, if it is set and not empty.
#[expect(clippy::disallowed_methods, reason = "the one place that may")]
pub(crate) fn value(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
