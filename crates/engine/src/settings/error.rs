//! [`SettingsError`]: errors in settings. `settings/failure.rs` has their messages.

use std::path::PathBuf;

use cellwright_notebook::Position;

/// An error in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// The file exists and cannot be read as text.
    Unreadable { file: PathBuf, reason: String },
    /// The file is not TOML.
    Syntax {
        file: PathBuf,
        at: Position,
        reason: String,
    },
    /// The setting does not exist.
    Unknown {
        file: PathBuf,
        at: Position,
        key: String,
        /// The existing setting with the most similar name.
        suggestion: Option<String>,
        /// The settings or tables that exist there.
        existing: Vec<String>,
    },
    /// The value has another type or form.
    BadValue {
        file: PathBuf,
        at: Position,
        key: String,
        expected: String,
        found: &'static str,
        /// What the setting does; `None` for a table.
        meaning: Option<&'static str>,
    },
    /// A project's file must not contain this setting.
    NotForProjects {
        file: PathBuf,
        at: Position,
        key: String,
    },
    /// The name of a server has other characters than allowed.
    BadServerName { file: PathBuf, at: Position },
    /// A server has no URL.
    NoServerUrl {
        file: PathBuf,
        at: Position,
        name: String,
    },
    /// The value of an environment variable has another type or form.
    BadVariable {
        variable: String,
        key: &'static str,
        expected: String,
    },
}
