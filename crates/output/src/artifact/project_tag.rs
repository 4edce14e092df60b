//! [`ProjectTag`]: the project that an artifact belongs to.

use std::fmt;

use cellwright_stdext::hex;
use serde::{Deserialize, Serialize};

/// Identifies a project of the user in the file names of its artifacts, as eight hexadecimal digits. The caller derives
/// it from the directory of the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ProjectTag([u8; 4]);

impl ProjectTag {
    /// Creates a tag from the first bytes of a hash.
    pub fn new(hash: [u8; 4]) -> Self {
        Self(hash)
    }

    /// Parses eight lowercase hexadecimal digits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        hex::decode(text.as_bytes()).map(Self)
    }
}

impl fmt::Display for ProjectTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl From<ProjectTag> for String {
    fn from(tag: ProjectTag) -> Self {
        tag.to_string()
    }
}

impl TryFrom<String> for ProjectTag {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not the tag of a project"))
    }
}
