//! Errors and notices as data. The `Display` texts are one sentence each, some of them the same as in
//! other notebook tools. The caller adds hints.

mod text_match;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub use text_match::{SimilarText, TextDifference, TextMatch};

/// A position in a file. Line and column count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Position {
    pub(crate) fn at_offset(offset: usize, bytes: &[u8]) -> Self {
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

/// Why the content of a file is not a supported notebook.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// Not JSON.
    #[error("{at}: {problem}")]
    Json {
        /// The syntax error.
        problem: &'static str,
        /// Its position.
        at: Position,
        /// Whether the content ends too early, as in a file that is being written.
        ended: bool,
    },
    /// Not UTF-8.
    #[error("{at}: the text is not UTF-8")]
    NotUtf8 {
        /// Position of the first invalid byte.
        at: Position,
    },
    /// JSON, but not an object.
    #[error("the top level is not an object")]
    NotAnObject,
    /// An object without a `cells` array.
    #[error("there is no `cells` array")]
    NoCells,
    /// `cells` is not an array.
    #[error("{at}: `cells` is not an array")]
    CellsNotAnArray {
        /// Position of the value of `cells`.
        at: Position,
    },
    /// An older format, which stores its cells in worksheets.
    #[error("nbformat {major} has no `cells` array: it stores cells in worksheets")]
    OldFormat {
        /// The major version, 3 or less.
        major: u32,
    },
    /// `nbformat` is missing or not a version number.
    #[error("`nbformat` is missing or not a number")]
    NoFormatNumber,
    /// A newer format.
    #[error("nbformat {major} is not supported; the supported version is 4")]
    NewFormat {
        /// The value of `nbformat`.
        major: String,
    },
    /// An invalid cell.
    #[error("{at}: {problem}")]
    BadCell {
        /// Its index.
        index: usize,
        /// Why it is invalid.
        problem: String,
        /// Its position.
        at: Position,
    },
    /// The cells of a file are not where its format stores them.
    #[error("its cells cannot be found: {problem}")]
    CellsNotFound {
        /// What is not as the format requires.
        problem: &'static str,
    },
    /// An upgraded notebook does not have the content of the original.
    #[error("after the conversion, {what} would differ from the original")]
    UpgradeDiffers {
        /// The part that differs.
        what: String,
    },
    /// 4 GiB or more.
    #[error("files of 4 GiB and more are not supported")]
    TooLarge,
}

/// Why an edit cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditError {
    /// The edited text does not start with a marker.
    NoFirstMarker {
        /// The number of the line that should be a marker, from 1.
        line: usize,
        /// The line, truncated.
        found: String,
        /// The rest of the text.
        content: UnmarkedText,
    },
    /// A fence around outputs in the edited text is not closed.
    OpenFence {
        /// Line of the opening fence, from 1.
        line: usize,
    },
    /// An index beyond the last cell.
    OutOfRange {
        /// The requested index.
        index: usize,
        /// The largest valid index; `None` if there is none.
        last: Option<usize>,
        /// Whether the index is an insert position.
        inserting: bool,
    },
    /// No cell has an id with that prefix, or several have.
    IdMatches {
        /// The requested prefix.
        prefix: String,
        /// The number of matches: 0 or several.
        count: usize,
        /// The matching ids, or all ids if none matches; at most ten.
        ids: Vec<String>,
    },
    /// The text to replace occurs several times.
    Matches {
        /// The number of matches.
        count: usize,
        /// The lines with matches; at most ten.
        matches: Vec<TextMatch>,
    },
    /// The text to replace does not occur.
    NoMatch {
        /// Texts that differ only in white space and case, or the most similar lines; at most three.
        similar: Vec<SimilarText>,
        /// Whether the text occurs without the first column of its lines, as in lines of a diff.
        has_diff_columns: bool,
    },
    /// No cell has this id.
    NoSuchId {
        /// The id.
        id: String,
        /// Existing ids; at most ten.
        ids: Vec<String>,
    },
    /// The text to replace is empty, or the same as its replacement.
    NothingToReplace,
    /// The text to replace is not a regular expression.
    InvalidPattern {
        /// Why it is invalid.
        reason: String,
    },
    /// The replacement names a group that the regular expression does not have.
    NoSuchGroup {
        /// Number or name of the group.
        name: String,
        /// The number of groups that there are.
        count: usize,
    },
    /// The metadata would not be valid.
    BadMetadata {
        /// The problem.
        problem: String,
    },
}

/// A text that does not start with a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnmarkedText {
    /// The text looks like the JSON of a notebook.
    NotebookJson,
    /// No line is a marker.
    NoMarker,
    /// A later line is a marker.
    BeforeMarker,
}

impl EditError {
    fn message_for(&self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::NoFirstMarker {
                content: UnmarkedText::NotebookJson,
                ..
            } => format!("The text for {path} is the JSON of a notebook, not its text view"),
            Self::NoFirstMarker { .. } => format!(
                "Invalid notebook editable representation for {path}: expected first line to be \
                 \"# %% [code] cell:0\", \"# %% [markdown] cell:0\", or \"# %% [raw] cell:0\"."
            ),
            Self::OpenFence { line } => format!(
                "Invalid notebook editable representation for {path}: the output fence on line \
                 {line} is not closed"
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
            Self::NoMatch { .. } => {
                format!("The text to replace does not occur in {path}")
            }
            Self::Matches { count, .. } => {
                format!("The text to replace occurs {count} times in {path}")
            }
            Self::NoSuchId { id, .. } => format!("No cell has the id \"{id}\" in {path}"),
            Self::BadMetadata { problem } => format!("Invalid metadata for {path}: {problem}"),
            Self::NothingToReplace => {
                "The text to replace is empty or the same as its replacement".to_owned()
            }
            Self::InvalidPattern { .. } => {
                "The text to replace is not a valid regular expression".to_owned()
            }
            Self::NoSuchGroup { name, .. } => {
                format!("The regular expression has no group `{name}`")
            }
        }
    }
}

/// Why a notebook file could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotebookError {
    /// The file does not exist.
    #[error("File not found: {}", path.display())]
    NotFound {
        /// The requested path.
        path: PathBuf,
    },
    /// The file to create already exists.
    #[error("File exists already: {}", path.display())]
    Exists {
        /// The requested path.
        path: PathBuf,
    },
    /// The directory of a file to create does not exist.
    #[error("Directory {} does not exist", path.display())]
    NoDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// The name of the file is not that of a notebook, and its content is not JSON.
    #[error("Not a Jupyter notebook: {}", path.display())]
    NotANotebook {
        /// The file.
        path: PathBuf,
    },
    /// A directory, device or pipe.
    #[error("Not a regular file: {}", path.display())]
    NotAFile {
        /// The requested path.
        path: PathBuf,
        /// The type of file, such as "a directory".
        file_type: &'static str,
    },
    /// A system call failed.
    #[error("Could not {step}: {}", path.display())]
    Io {
        /// The failed step, as an infinitive: "read", "create a temporary file in".
        step: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The content is not a supported notebook.
    #[error("{}: {}", format_title(error), path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Why the content is not supported.
        #[source]
        error: FormatError,
    },
    /// The edit does not fit the notebook.
    #[error("{}", error.message_for(path))]
    Edit {
        /// The notebook.
        path: PathBuf,
        /// Why the edit does not fit.
        error: EditError,
    },
    /// The file changed since the base revision of the edit, and the edit cannot be merged.
    #[error("{} changed since revision {revision}", path.display())]
    Conflict {
        /// The notebook.
        path: PathBuf,
        /// The base revision of the edit.
        revision: String,
        /// The current revision of the file.
        current: crate::Revision,
        /// Why it cannot be merged.
        reason: String,
    },
    /// A collaboration room of a Jupyter server has the file.
    #[error("{} is open in JupyterLab, in a live collaboration room", path.display())]
    OpenInRoom {
        /// The notebook.
        path: PathBuf,
        /// Address of the server.
        server: String,
    },
    /// Another process holds the lock or keeps changing the file.
    #[error("Another process is writing {}", path.display())]
    Busy {
        /// The notebook.
        path: PathBuf,
    },
    /// The save succeeded, but the file read back has different content.
    #[error("{} was changed by another program right after it was saved", path.display())]
    NotReadBack {
        /// The notebook.
        path: PathBuf,
    },
    /// The new file is in place, but the directory could not be flushed.
    #[error("{} is written, but may not survive a power cut", path.display())]
    NotDurable {
        /// The notebook.
        path: PathBuf,
        /// The error of the flush.
        source: io::Error,
    },
}

impl NotebookError {
    /// Replaces the path of the file or directory that the error is about.
    #[must_use]
    pub fn map_path(mut self, map: impl FnOnce(PathBuf) -> PathBuf) -> Self {
        let path = match &mut self {
            Self::NotFound { path }
            | Self::Exists { path }
            | Self::NoDirectory { path }
            | Self::NotANotebook { path }
            | Self::NotAFile { path, .. }
            | Self::Io { path, .. }
            | Self::Format { path, .. }
            | Self::Edit { path, .. }
            | Self::Conflict { path, .. }
            | Self::OpenInRoom { path, .. }
            | Self::Busy { path }
            | Self::NotReadBack { path }
            | Self::NotDurable { path, .. } => path,
        };
        *path = map(std::mem::take(path));
        self
    }
}

fn format_title(error: &FormatError) -> String {
    match error {
        FormatError::Empty | FormatError::Json { .. } | FormatError::NotUtf8 { .. } => {
            "Invalid JSON in notebook".to_owned()
        }
        FormatError::NotAnObject => "Invalid notebook structure (expected object)".to_owned(),
        FormatError::NoCells
        | FormatError::CellsNotAnArray { .. }
        | FormatError::CellsNotFound { .. } => {
            "Invalid notebook structure (missing cells array)".to_owned()
        }
        FormatError::OldFormat { major } => format!("Old notebook format (nbformat {major})"),
        FormatError::NoFormatNumber | FormatError::NewFormat { .. } => {
            "Unknown notebook format".to_owned()
        }
        FormatError::BadCell { index, .. } => format!("Invalid notebook cell {index}"),
        FormatError::UpgradeDiffers { .. } => "Cannot upgrade the notebook without loss".to_owned(),
        FormatError::TooLarge => "Notebook too large".to_owned(),
    }
}

impl FormatError {
    /// Whether the content is not JSON, for example because another program is writing the file.
    pub(crate) fn is_not_json(&self) -> bool {
        matches!(self, Self::Empty | Self::Json { .. } | Self::NotUtf8 { .. })
    }
}

/// The text after a marker of the percent format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerText {
    /// Line of the marker, from 1.
    pub line: usize,
    /// The title or metadata.
    pub text: String,
}

/// A fact that the caller should report although the operation succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A line that is almost a marker was kept as text.
    NearMarker {
        /// Line of the text, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// The text, or a part of it, was read as percent format.
    PercentFormat {
        /// The number of skipped lines of the header; 0 without a header.
        header_lines: usize,
        /// The number of cells whose text lost its comment signs.
        uncommented: usize,
        /// The number of cells whose text lost its triple quotes.
        unquoted: usize,
    },
    /// Titles and metadata after markers, which a notebook does not get.
    MarkerTextDropped {
        /// The markers, in the order of the text.
        markers: Vec<MarkerText>,
    },
    /// `cell:N` or `id:ID` names no existing cell; the block became a new cell.
    UnknownCell {
        /// Line of the marker, from 1.
        line: usize,
        /// The number or id it names.
        name: String,
    },
    /// `cell:N` or `id:ID` names a cell that an earlier block already uses; the block became a new cell.
    UsedTwice {
        /// Line of the marker, from 1.
        line: usize,
        /// The number or id it names.
        name: String,
    },
    /// A lone surrogate, which UTF-8 cannot represent, was replaced in an edited line.
    SurrogateLost {
        /// Index of the cell in the new notebook.
        cell: usize,
    },
    /// A cell that is no longer code lost its outputs.
    OutputsDropped {
        /// Index of the cell in the new notebook.
        cell: usize,
    },
    /// A cell that became code lost its attachments.
    AttachmentsDropped {
        /// Index of the cell in the new notebook.
        cell: usize,
    },
    /// The file had changed since the base revision; both changes are in it now.
    Merged {
        /// The revision that the edit was merged with.
        with: crate::Revision,
    },
    /// The notebook already has the requested content.
    Unchanged,
    /// The tags of a marker differ from those of its cell, which keeps its own.
    MarkerTagsKept {
        /// Line of the marker, from 1.
        line: usize,
        /// Index of the cell in the old notebook.
        cell: usize,
    },
    /// An irregularity that a validator would report, left unchanged.
    Irregular {
        /// Index of the cell.
        cell: usize,
        /// The irregularity.
        problem: &'static str,
    },
    /// The file has an older format; its cells are shown after a conversion in memory.
    OldFormat {
        /// Major and minor version of the file.
        from: (u32, u32),
    },
    /// A page of a Jupyter server shows the notebook as it was before the write.
    OpenInPage {
        /// Address of the server.
        server: String,
    },
    /// A collaboration room had the notebook, and the caller accepted the loss of text that is typed there.
    OpenInRoom {
        /// Address of the server.
        server: String,
    },
    /// A Jupyter server could not be asked whether it has the notebook open.
    ServerNotAsked {
        /// Address of the server; `None` for several.
        server: Option<String>,
        /// Why it could not be asked.
        reason: String,
    },
    /// A write to the notebook, made while a page had it open, has been overwritten.
    Overwritten {
        /// Time of the write.
        at: String,
        /// Revision of the write.
        revision: String,
        /// Address of the server of the page.
        server: String,
    },
    /// Another program wrote into the old file after it was replaced, and its text could not be merged.
    LateWrite {
        /// Revision of the file with its text.
        revision: crate::Revision,
        /// Whether an undo restores that file.
        stored: bool,
    },
    /// The content before the change could not be stored, so that the change cannot be undone.
    UndoNotStored {
        /// Why it could not be stored.
        reason: String,
    },
    /// A requested line range is beyond the last line.
    RangeSkipped {
        /// The first requested line.
        start: usize,
        /// The last requested line, if given.
        end: Option<usize>,
        /// The number of lines.
        total: usize,
    },
}

impl Notice {
    /// Whether the notice is about a program that has the notebook open.
    pub fn is_about_open_notebook(&self) -> bool {
        matches!(
            self,
            Self::OpenInPage { .. }
                | Self::OpenInRoom { .. }
                | Self::ServerNotAsked { .. }
                | Self::Overwritten { .. }
                | Self::LateWrite { .. }
        )
    }
}
