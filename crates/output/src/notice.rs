//! Notices about a cell's output, as data and as short sentences.

use std::fmt;

use crate::artifact::{ArtifactId, StoreFailure};
use crate::cell_text::Truncation;
use crate::size::ByteSize;

/// A notice about a cell's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The text is truncated.
    Truncated(Truncation),
    /// The complete output could not be stored.
    NotStored {
        /// The error.
        failure: StoreFailure,
        /// The artifact with the first `kept` bytes, if one was created.
        artifact: Option<ArtifactId>,
        /// Bytes stored.
        kept: u64,
        /// Bytes lost.
        lost: u64,
    },
    /// The notebook's outputs hold only the beginning and the end of the stream text.
    StreamsShortened {
        /// Bytes missing from the outputs.
        bytes: u64,
        /// The artifact with the complete text.
        artifact: Option<ArtifactId>,
    },
    /// Displayed values exceeded the memory limit; they were moved to artifacts, or lost.
    DisplaysMoved {
        /// The artifacts.
        artifacts: Vec<ArtifactId>,
        /// Number of values lost.
        lost: u64,
    },
    /// The cell had too many outputs.
    OutputsDropped {
        /// Number of dropped outputs.
        count: u64,
    },
    /// The cell displayed too many images.
    ImagesOmitted {
        /// Number of images not listed.
        count: u64,
    },
    /// The cell displayed too many JSON values.
    JsonOmitted {
        /// Number of values not listed.
        count: u64,
    },
    /// The cell sent too many status events.
    StatusDropped {
        /// Number of dropped events.
        count: u64,
    },
}

impl Notice {
    /// Returns the notice's name in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Truncated(_) => "output_truncated",
            Self::NotStored { .. } => "output_not_stored",
            Self::StreamsShortened { .. } => "streams_shortened",
            Self::DisplaysMoved { .. } => "displays_moved",
            Self::OutputsDropped { .. } => "outputs_dropped",
            Self::ImagesOmitted { .. } => "images_omitted",
            Self::JsonOmitted { .. } => "json_omitted",
            Self::StatusDropped { .. } => "status_dropped",
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated(truncation) => truncation.fmt(f),
            Self::NotStored {
                failure,
                artifact: Some(artifact),
                kept,
                lost,
            } => write!(
                f,
                "{artifact} holds the first {} of the output; {} are lost: {failure}",
                ByteSize(*kept),
                ByteSize(*lost)
            ),
            Self::NotStored { failure, .. } => {
                write!(f, "the complete output could not be stored: {failure}")
            }
            Self::StreamsShortened { bytes, artifact } => {
                write!(
                    f,
                    "{} of stream text are left out of the notebook's outputs",
                    ByteSize(*bytes)
                )?;
                match artifact {
                    Some(artifact) => write!(f, "; all of it is in {artifact}"),
                    None => Ok(()),
                }
            }
            Self::DisplaysMoved { artifacts, lost } => {
                f.write_str("displayed values exceeded the memory limit")?;
                for (at, artifact) in artifacts.iter().enumerate() {
                    let before = if at == 0 { "; stored in " } else { ", " };
                    write!(f, "{before}{artifact}")?;
                }
                if *lost > 0 {
                    write!(f, "; {lost} could not be stored")?;
                }
                Ok(())
            }
            Self::OutputsDropped { count } => {
                write!(f, "{count} outputs beyond the limit are left out")
            }
            Self::ImagesOmitted { count } => write!(f, "{count} more images are not listed"),
            Self::JsonOmitted { count } => write!(f, "{count} more JSON values are not listed"),
            Self::StatusDropped { count } => {
                write!(f, "{count} earlier status events are left out")
            }
        }
    }
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "showing {} of {} lines, {} of {}",
            self.shown.lines,
            self.total.lines,
            ByteSize(self.shown.bytes),
            ByteSize(self.total.bytes)
        )?;
        if self.long_lines.lines > 0 {
            write!(f, "; {} long lines are truncated", self.long_lines.lines)?;
        }
        match self.artifact {
            Some(artifact) if self.lost > 0 => {
                write!(
                    f,
                    "; {artifact} has all but the last {}",
                    ByteSize(self.lost)
                )
            }
            Some(artifact) => write!(f, "; all of it is in {artifact}"),
            None => f.write_str("; the rest is lost"),
        }
    }
}
