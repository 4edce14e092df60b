//! What the reader of an output should know besides it, as data and in a short sentence.

use std::fmt;

use crate::artifact::{ArtifactId, Failure};
use crate::size::Bytes;
use crate::text::Cut;

/// Something the reader should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Not all of the text is shown.
    Cut(Cut),
    /// The whole output could not be kept.
    NotKept {
        /// Why.
        failure: Failure,
        /// The artifact, if there is one: it holds the first `kept` bytes.
        artifact: Option<ArtifactId>,
        /// Bytes that are kept.
        kept: u64,
        /// Bytes that are not.
        lost: u64,
    },
    /// The notebook's outputs hold the beginning and the end of what was printed.
    StreamsShortened {
        /// Bytes that are missing.
        bytes: u64,
        /// Where they are.
        artifact: Option<ArtifactId>,
    },
    /// Displayed values were too large to hold together; some are in artifacts, or lost.
    DisplaysMoved {
        /// Where they are.
        artifacts: Vec<ArtifactId>,
        /// How many could not be kept.
        lost: u64,
    },
    /// There were more outputs than a notebook should have.
    OutputsDropped {
        /// How many are missing.
        count: u64,
    },
    /// There were more images than are listed.
    ImagesOmitted {
        /// How many are not listed.
        count: u64,
    },
    /// There were more JSON values than are listed.
    JsonOmitted {
        /// How many are not listed.
        count: u64,
    },
    /// There were more status events than are kept.
    StatusDropped {
        /// How many are missing.
        count: u64,
    },
}

impl Notice {
    /// A short name for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Cut(_) => "output_cut",
            Self::NotKept { .. } => "output_not_kept",
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
            Self::Cut(cut) => cut.fmt(f),
            Self::NotKept {
                failure,
                artifact: Some(artifact),
                kept,
                lost,
            } => write!(
                f,
                "{artifact} holds the first {} of the output; {} are lost: {failure}",
                Bytes(*kept),
                Bytes(*lost)
            ),
            Self::NotKept { failure, .. } => {
                write!(f, "the whole output could not be kept: {failure}")
            }
            Self::StreamsShortened { bytes, artifact } => {
                write!(
                    f,
                    "{} of the printed text are left out of the notebook's outputs",
                    Bytes(*bytes)
                )?;
                match artifact {
                    Some(artifact) => write!(f, "; all of it is in {artifact}"),
                    None => Ok(()),
                }
            }
            Self::DisplaysMoved { artifacts, lost } => {
                f.write_str("too much was displayed to hold it all")?;
                for (at, artifact) in artifacts.iter().enumerate() {
                    let before = if at == 0 { "; moved to " } else { ", " };
                    write!(f, "{before}{artifact}")?;
                }
                if *lost > 0 {
                    write!(f, "; {lost} could not be kept")?;
                }
                Ok(())
            }
            Self::OutputsDropped { count } => {
                write!(f, "{count} outputs are left out: there were too many")
            }
            Self::ImagesOmitted { count } => write!(f, "{count} more images are not listed"),
            Self::JsonOmitted { count } => write!(f, "{count} more JSON values are not listed"),
            Self::StatusDropped { count } => {
                write!(f, "{count} earlier status events are left out")
            }
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "showing {} of {} lines, {} of {}",
            self.shown.lines,
            self.total.lines,
            Bytes(self.shown.bytes),
            Bytes(self.total.bytes)
        )?;
        if self.columns.lines > 0 {
            write!(f, "; {} long lines are cut", self.columns.lines)?;
        }
        match self.artifact {
            Some(artifact) if self.lost > 0 => {
                write!(f, "; {artifact} has all but the last {}", Bytes(self.lost))
            }
            Some(artifact) => write!(f, "; all of it is in {artifact}"),
            None => f.write_str("; the rest is lost"),
        }
    }
}
