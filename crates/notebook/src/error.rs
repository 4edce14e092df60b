//! What can go wrong, as data. Words for people come from the caller; the `Display` texts here are
//! the short sentences that other tools of this kind use too.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Where something stands in a file; both count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Position {
    pub(crate) fn of(offset: usize, bytes: &[u8]) -> Self {
        let before = &bytes[..offset.min(bytes.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let line_start_text = before[line_start..].strip_prefix(b"\xef\xbb\xbf");
        let column = String::from_utf8_lossy(line_start_text.unwrap_or(&before[line_start..]));
        Self {
            line: 1 + memchr::memchr_iter(b'\n', before).count(),
            column: 1 + column.chars().count(),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// What is wrong with the content of a notebook.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// Not JSON.
    #[error("{at}: {what}")]
    Json {
        /// What was expected or found.
        what: &'static str,
        /// Where.
        at: Position,
        /// The content ends too early, as in a file that is being written.
        ended: bool,
    },
    /// Not UTF-8.
    #[error("{at}: the text is not UTF-8")]
    NotUtf8 {
        /// Where the first bad byte is.
        at: Position,
    },
    /// JSON, but not an object.
    #[error("the top level is not an object")]
    NotAnObject,
    /// An object without a `cells` array.
    #[error("there is no `cells` array")]
    NoCells,
    /// `cells` is something else than an array.
    #[error("{at}: `cells` is not an array")]
    CellsNotAnArray {
        /// Where `cells` begins.
        at: Position,
    },
    /// Written in an older format that keeps its cells elsewhere.
    #[error("it is in the old format nbformat {major}")]
    OldFormat {
        /// The format's major number, 3 or less.
        major: u32,
    },
    /// No `nbformat` number, or one that is no version.
    #[error("`nbformat` is missing or not a number")]
    NoFormatNumber,
    /// A format of the future.
    #[error("nbformat {major} is not known; only 4 is")]
    NewFormat {
        /// What `nbformat` says.
        major: String,
    },
    /// A cell that is not one.
    #[error("{at}: {what}")]
    BadCell {
        /// Its index.
        index: usize,
        /// What is wrong with it.
        what: String,
        /// Where.
        at: Position,
    },
    /// More than 4 GiB.
    #[error("files of 4 GiB and more are not supported")]
    TooLarge,
}

/// What is wrong with an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditError {
    /// The edited text does not begin with a marker.
    NoFirstMarker {
        /// The first line, shortened.
        found: String,
    },
    /// A block of shown outputs in the edited text is not closed.
    OpenFence {
        /// Where the block begins, from 1.
        line: usize,
    },
    /// An index beyond the cells there are.
    OutOfRange {
        /// The index asked for.
        index: usize,
        /// The largest index allowed; `None` if no index is.
        last: Option<usize>,
        /// Whether it was a place to insert at.
        inserting: bool,
    },
    /// No cell has that id, or several have.
    IdMatches {
        /// The prefix asked for.
        prefix: String,
        /// How many match: 0 or several.
        count: usize,
        /// The ids that match, or when none does the ids there are; at most ten.
        ids: Vec<String>,
    },
    /// The text to replace does not occur, or occurs several times.
    Matches {
        /// How often the text occurs.
        count: usize,
        /// Lines of the text view where it does; at most ten.
        lines: Vec<usize>,
    },
    /// The text to replace is empty, or the same as its replacement.
    NothingToReplace,
}

impl EditError {
    fn in_file(&self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::NoFirstMarker { .. } => format!(
                "Invalid notebook editable representation for {path}: expected first line to be \
                 \"# %% [code] cell:0\", \"# %% [markdown] cell:0\", or \"# %% [raw] cell:0\"."
            ),
            Self::OpenFence { line } => format!(
                "Invalid notebook editable representation for {path}: the outputs that begin on \
                 line {line} have no end"
            ),
            Self::OutOfRange {
                index,
                last,
                inserting,
            } => {
                let action = if *inserting { " for insert" } else { "" };
                match last {
                    Some(last) => {
                        format!("Cell index {index} out of range{action} (0-{last}) in {path}")
                    }
                    None => format!(
                        "Cell index {index} out of range{action}: there are no cells in {path}"
                    ),
                }
            }
            Self::IdMatches { prefix, count, .. } => match count {
                0 => format!("No cell has an id that begins with \"{prefix}\" in {path}"),
                _ => format!("{count} cells have an id that begins with \"{prefix}\" in {path}"),
            },
            Self::Matches { count: 0, .. } => {
                format!("The text to replace does not occur in {path}")
            }
            Self::Matches { count, .. } => {
                format!("The text to replace occurs {count} times in {path}")
            }
            Self::NothingToReplace => {
                "The text to replace is empty or the same as its replacement".to_owned()
            }
        }
    }
}

/// What went wrong with a notebook file or an operation on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotebookError {
    /// There is no such file.
    #[error("File not found: {}", path.display())]
    NotFound {
        /// The path asked for.
        path: PathBuf,
    },
    /// The file is there but was asked to be created.
    #[error("File exists already: {}", path.display())]
    Exists {
        /// The path asked for.
        path: PathBuf,
    },
    /// A directory, device or pipe.
    #[error("Not a regular file: {}", path.display())]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// The operating system refused.
    #[error("Could not {step}: {}", path.display())]
    Io {
        /// What was being done, as an infinitive: "read", "create a temporary file in".
        step: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The content is no notebook.
    #[error("{}: {}", format_title(error), path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        error: FormatError,
    },
    /// The edit asks for something the notebook does not have.
    #[error("{}", error.in_file(path))]
    Edit {
        /// The notebook.
        path: PathBuf,
        /// What is wrong with the edit.
        error: EditError,
    },
    /// The file changed since the revision the edit was made for, in a way that cannot be merged.
    #[error("{} changed since revision {revision}", path.display())]
    Conflict {
        /// The notebook.
        path: PathBuf,
        /// The revision the edit was made for.
        revision: String,
        /// The revision the file has now.
        current: crate::Revision,
        /// Why it cannot be merged.
        why: String,
    },
    /// Another process holds the lock on the file.
    #[error("Another process is writing {}", path.display())]
    Busy {
        /// The notebook.
        path: PathBuf,
    },
    /// The content was written but is not what the file holds now.
    #[error("{} was replaced by somebody else right after it was written", path.display())]
    NotReadBack {
        /// The notebook.
        path: PathBuf,
    },
    /// The folder could not be flushed after the new file was put in place.
    #[error("{} is written, but may not survive a power cut", path.display())]
    NotDurable {
        /// The notebook.
        path: PathBuf,
        /// Why the folder could not be flushed.
        source: io::Error,
    },
    /// A notebook in the newest format was asked to be upgraded.
    #[error("nbformat {major} cannot be upgraded: {}", path.display())]
    CannotUpgrade {
        /// The notebook.
        path: PathBuf,
        /// Its format.
        major: u32,
    },
}

fn format_title(error: &FormatError) -> String {
    match error {
        FormatError::Empty | FormatError::Json { .. } | FormatError::NotUtf8 { .. } => {
            "Invalid JSON in notebook".to_owned()
        }
        FormatError::NotAnObject => "Invalid notebook structure (expected object)".to_owned(),
        FormatError::NoCells
        | FormatError::CellsNotAnArray { .. }
        | FormatError::OldFormat { .. } => {
            "Invalid notebook structure (missing cells array)".to_owned()
        }
        FormatError::NoFormatNumber | FormatError::NewFormat { .. } => {
            "Unknown notebook format".to_owned()
        }
        FormatError::BadCell { index, .. } => format!("Invalid notebook cell {index}"),
        FormatError::TooLarge => "Notebook too large".to_owned(),
    }
}

impl FormatError {
    /// Whether a file that somebody is writing at this moment could look like this.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Empty | Self::Json { .. } | Self::NotUtf8 { .. })
    }
}

/// Something the caller should know although nothing failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A line that is almost a marker and was taken as text.
    NearMarker {
        /// Line of the text, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// `cell:N` names a cell that is not there; a new cell was made.
    UnknownCell {
        /// Line of the marker, from 1.
        line: usize,
        /// The number or id it names.
        name: String,
    },
    /// `cell:N` names a cell that an earlier block took; a new cell was made.
    UsedTwice {
        /// Line of the marker, from 1.
        line: usize,
        /// The number or id it names.
        name: String,
    },
    /// A lone surrogate, which text cannot carry, was replaced in an edited line.
    SurrogateLost {
        /// Index of the cell in the new notebook.
        cell: usize,
    },
    /// A cell that is no longer code had outputs.
    OutputsDropped {
        /// Index of the cell in the new notebook.
        cell: usize,
    },
    /// A cell that is code now had attachments.
    AttachmentsDropped {
        /// Index of the cell in the new notebook.
        cell: usize,
    },
    /// The file had changed meanwhile; both changes are in it now.
    Merged {
        /// The revision that the file had.
        with: crate::Revision,
    },
    /// The edit asked for what is there already.
    Unchanged,
    /// Something that a validator would complain about, left as it is.
    Irregular {
        /// Index of the cell.
        cell: usize,
        /// What is odd.
        what: &'static str,
    },
    /// A requested line range lies beyond the end.
    RangeSkipped {
        /// First line asked for.
        start: usize,
        /// Last line asked for, if there was one.
        end: Option<usize>,
        /// How many lines there are.
        total: usize,
    },
}
