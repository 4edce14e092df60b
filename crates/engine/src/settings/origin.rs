//! [`Origin`]: where the value of a setting comes from.

use std::fmt;
use std::path::PathBuf;

use serde_json::{Value as Json, json};

/// Where the value of a setting comes from; later variants take precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The built-in default.
    Default,
    /// The user's file.
    User(FileLine),
    /// The project's file.
    Project(FileLine),
    /// An environment variable.
    Variable(String),
    /// A flag of the command line.
    Flag(&'static str),
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLine {
    pub file: PathBuf,
    pub line: usize,
}

impl Origin {
    /// The origin in `--json`.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Default => json!({"kind": "default"}),
            Self::User(at) => {
                json!({"kind": "user", "file": at.file.to_string_lossy(), "line": at.line})
            }
            Self::Project(at) => {
                json!({"kind": "project", "file": at.file.to_string_lossy(), "line": at.line})
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
            Self::User(at) | Self::Project(at) => at.fmt(f),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for FileLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}
