//! [`SettingsError`]: what can be wrong with settings. Words are in `failure/settings.rs`.

use std::path::PathBuf;

use cellwright_notebook::Position;

/// What is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingsError {
    /// The file is there and cannot be read as text.
    Unreadable { file: PathBuf, why: String },
    /// The file is no TOML.
    Syntax {
        file: PathBuf,
        at: Position,
        why: String,
    },
    /// There is no such setting.
    Unknown {
        file: PathBuf,
        at: Position,
        key: String,
        /// What may have been meant.
        near: Option<String>,
        /// What there is in that place.
        known: Vec<String>,
    },
    /// A setting of another sort.
    BadValue {
        file: PathBuf,
        at: Position,
        key: String,
        expected: String,
        found: &'static str,
        /// What the setting is for.
        meaning: Option<&'static str>,
    },
    /// A project's file may not say this.
    NotForProjects {
        file: PathBuf,
        at: Position,
        key: &'static str,
    },
    /// A variable with a value of another sort.
    BadVariable {
        variable: String,
        key: &'static str,
        expected: String,
    },
}
