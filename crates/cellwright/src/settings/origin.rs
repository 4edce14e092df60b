//! [`Origin`]: where a value came from.

use std::fmt;
use std::path::PathBuf;

use serde_json::{Value as Json, json};

/// Where a value came from; later ones win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody said otherwise.
    Default,
    /// The user's file.
    User(Place),
    /// The project's file.
    Project(Place),
    /// An environment variable.
    Variable(String),
    /// An argument of the command.
    Flag(&'static str),
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
}

impl Origin {
    /// The origin for programs.
    pub(crate) fn json(&self) -> Json {
        match self {
            Self::Default => json!({"kind": "default"}),
            Self::User(place) => {
                json!({"kind": "user", "file": place.file.to_string_lossy(), "line": place.line})
            }
            Self::Project(place) => {
                json!({"kind": "project", "file": place.file.to_string_lossy(), "line": place.line})
            }
            Self::Variable(name) => json!({"kind": "environment", "variable": name}),
            Self::Flag(name) => json!({"kind": "flag", "flag": name}),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(place) | Self::Project(place) => place.fmt(f),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}
