//! [`Failure`]: an error as the caller sees it: message, causes, hints and exit code. Only this module decides them.

mod artifact;
mod document;
mod hint;
mod kernel;
mod server;

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};

use cellwright_notebook::select::SelectError;
use cellwright_notebook::{
    EditError, FormatError, NotebookError, Position, SimilarText, TextMatch, UnmarkedText,
};
use cellwright_stdext::error_chain;
use cellwright_stdext::private::temporary::NoTemporaryDir;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use document::{ErrorCell, ErrorDocument, ErrorObject};
pub use hint::{Hint, HintPart, command, flag, flag_value, hint};

/// An error as the caller sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    pub kind: Kind,
    pub message: String,
    pub causes: Vec<String>,
    pub hints: Vec<Hint>,
    #[serde(skip)]
    pub position: Option<Position>,
}

/// The kind of an error; it decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The arguments are invalid.
    BadArguments,
    /// A file is missing, or cannot be read or written.
    BadFile,
    /// The file is not a notebook.
    BadNotebook,
    /// The edit does not fit the notebook.
    BadEdit,
    /// The file has changed; nothing was written.
    Conflict,
    /// The settings are invalid.
    BadSettings,
    /// The settings forbid it.
    Refused,
    /// A kernel could not be started, or died.
    Kernel,
    /// A Jupyter server cannot be reached, or does not answer.
    ServerUnreachable,
    /// A Jupyter server rejects the credentials, or requires some.
    ServerUnauthorized,
    /// A Jupyter server answers otherwise than expected, or does not do what it was asked.
    ServerRefused,
    /// A Jupyter server was restarted, and its kernels ended with it.
    ServerRestarted,
    /// A kernel does not exist on its Jupyter server any more.
    KernelGone,
    /// The host could not be found, started or stopped.
    Host,
    /// The code raised an exception.
    Raised,
    /// The code exceeded its time limit.
    TimedOut,
    /// The code was cancelled.
    Cancelled,
    /// The reader of the output closed the pipe.
    ClosedPipe,
    /// A bug in Cellwright.
    Bug,
}

impl Failure {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            position: None,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// An error of a change to a notebook.
    pub fn from_change_error(error: NotebookError) -> Self {
        Self::from(error).after_edit()
    }

    /// Adds to the failure of an edit that nothing was written.
    #[must_use]
    pub fn after_edit(self) -> Self {
        if self.kind == Kind::BadEdit {
            return self.hint("nothing was written");
        }
        self
    }

    /// Adds that the change was made although its result could not be printed; `written` is the new revision, if any.
    #[must_use]
    pub fn after_change(self, written: Option<&str>) -> Self {
        let Some(revision) = written.filter(|_| !self.is_silent()) else {
            return self;
        };
        let mut failure = Self::new(
            self.kind,
            "The notebook was written, but the result could not be printed",
        );
        failure.causes = self.causes;
        failure.hint(format!(
            "do not repeat the change: the file is now at revision {revision}"
        ))
    }

    /// The reader of the output closed the pipe.
    pub fn closed_pipe() -> Self {
        Self::new(Kind::ClosedPipe, "the output was closed")
    }

    /// A panic, by its payload.
    pub fn from_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "unknown panic".to_owned());
        let mut failure = Self::new(Kind::Bug, "This is a bug in cellwright");
        failure.causes.push(text);
        failure.hint("please report it with the command you ran and, if you can, the file")
    }

    /// Whether the failure is not printed: a closed pipe is success.
    pub fn is_silent(&self) -> bool {
        self.kind == Kind::ClosedPipe
    }

    pub fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Raised => 1,
            Kind::BadArguments
            | Kind::BadFile
            | Kind::BadNotebook
            | Kind::BadEdit
            | Kind::BadSettings
            | Kind::Refused
            | Kind::Kernel
            | Kind::ServerUnreachable
            | Kind::ServerUnauthorized
            | Kind::ServerRefused
            | Kind::ServerRestarted
            | Kind::KernelGone
            | Kind::Host => 2,
            Kind::TimedOut => 124,
            Kind::Cancelled => 130,
            Kind::Conflict => 3,
            Kind::ClosedPipe => 0,
            Kind::Bug => 70,
        }
    }
}

/// Turns off the message of panics; [`Failure::from_panic`] reports them.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|_| {}));
}

/// The message and its causes. Front ends also render the hints.
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        self.causes
            .iter()
            .try_for_each(|cause| write!(f, ": {cause}"))
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    /// An error of stdin or stdout; files have their own errors.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::closed_pipe();
        }
        let mut failure = Self::new(
            Kind::BadFile,
            "Could not read the input or write the output",
        );
        failure.causes.push(error.to_string());
        failure
    }
}

impl From<NoTemporaryDir> for Failure {
    fn from(error: NoTemporaryDir) -> Self {
        let mut failure = Self::new(Kind::BadFile, "There is no directory for temporary files");
        let problems = error.tried.into_iter();
        failure.causes = problems
            .map(|(dir, problem)| format!("{}: {problem}", dir.display()))
            .collect();
        failure.hint("set TMPDIR to an existing directory that belongs to you and has free space")
    }
}

impl From<SelectError> for Failure {
    fn from(error: SelectError) -> Self {
        Self::new(Kind::BadArguments, error.to_string())
    }
}

impl From<NotebookError> for Failure {
    fn from(error: NotebookError) -> Self {
        Self::from_notebook_error(error, &|dir| Some(dir.to_owned()))
    }
}

impl Failure {
    /// Converts an error. `open_dir` returns the path that opens a directory whose notebooks a hint lists, or `None` if it must
    /// not be listed.
    pub fn from_notebook_error(
        error: NotebookError,
        open_dir: &dyn Fn(&Path) -> Option<PathBuf>,
    ) -> Self {
        let mut failure = Self::new(notebook_error_kind(&error), error.to_string());
        failure.add_causes(&error);
        match error {
            NotebookError::Format { path, error } => failure.add_format_hints(&path, &error),
            NotebookError::Edit { path, error } => failure.add_edit_hints(&path, &error),
            NotebookError::Conflict {
                path,
                current,
                reason,
                ..
            } => {
                failure.causes.push(reason);
                failure.hints.push("nothing was written".into());
                failure.hints.push(hint![
                    "read it again (",
                    command(format!("read {}", path.display())),
                    format!(") and repeat the edit; the file is now at revision {current}"),
                ]);
            }
            NotebookError::NotFound { path } => {
                let dir = path.parent().unwrap_or(&path);
                let dir = open_dir(dir);
                failure
                    .hints
                    .extend(dir.and_then(|dir| notebooks_hint(&dir)));
            }
            NotebookError::NoDirectory { path } => {
                let create = format!("create it with `mkdir -p {}`", path.display());
                failure.hints.push("nothing was written".into());
                failure.hints.push(create.into());
            }
            NotebookError::NotANotebook { path } => failure.add_extension_hints(&path),
            NotebookError::NotAFile { path, file_type } => {
                failure.causes.push(format!("it is {file_type}"));
                let dir = open_dir(&path);
                failure
                    .hints
                    .extend(dir.and_then(|dir| notebooks_hint(&dir)));
            }
            NotebookError::Io { step, .. } if step != "read" && step != "find" => {
                failure.hints.push("nothing was written".into());
            }
            NotebookError::Busy { .. } => {
                failure
                    .hints
                    .push("nothing was written; try again in a moment".into());
            }
            NotebookError::OpenInRoom { server, .. } => {
                failure.causes.push(format!(
                    "the server at {server} would replace text that is being typed there by the new file"
                ));
                failure.hints.push("nothing was written".into());
                failure.hints.push(
                    "close the notebook in JupyterLab; its room ends about a minute after the last page is closed"
                        .into(),
                );
                failure.hints.push(hint![
                    flag("force"),
                    " writes anyway; text that is being typed there is lost",
                ]);
            }
            NotebookError::NotReadBack { path } => failure.hints.push(hint![
                command(format!("read {}", path.display())),
                " shows its present content",
            ]),
            _ => {}
        }
        failure
    }
}

fn notebook_error_kind(error: &NotebookError) -> Kind {
    match error {
        NotebookError::Format { .. } | NotebookError::NotANotebook { .. } => Kind::BadNotebook,
        NotebookError::Edit { .. } => Kind::BadEdit,
        NotebookError::Conflict { .. }
        | NotebookError::NotReadBack { .. }
        | NotebookError::OpenInRoom { .. } => Kind::Conflict,
        _ => Kind::BadFile,
    }
}

impl Failure {
    /// Adds the chain of sources of an error as causes.
    pub fn add_causes(&mut self, error: &dyn std::error::Error) {
        self.causes
            .extend(error_chain::causes(error).map(ToString::to_string));
    }

    fn add_format_hints(&mut self, path: &Path, error: &FormatError) {
        let path = path.display();
        self.position = match error {
            FormatError::Json { at, .. }
            | FormatError::NotUtf8 { at }
            | FormatError::CellsNotAnArray { at }
            | FormatError::BadCell { at, .. } => Some(*at),
            _ => None,
        };
        let hint = match error {
            FormatError::OldFormat { major: 2..=3 } => {
                hint![
                    command(format!("notebook upgrade {path}")),
                    " converts it to nbformat 4.5",
                ]
            }
            FormatError::OldFormat { .. } | FormatError::NewFormat { .. } => {
                "only nbformat 4 can be edited".into()
            }
            FormatError::Empty | FormatError::Json { ended: true, .. } => {
                "another program may be writing it, or a save was incomplete".into()
            }
            FormatError::Json { .. } | FormatError::NotUtf8 { .. } => {
                hint![
                    command(format!("read {path}:raw")),
                    " shows the file as it is",
                ]
            }
            _ => return,
        };
        self.hints.push(hint);
    }

    fn add_extension_hints(&mut self, path: &Path) {
        self.causes.push(
            "only Jupyter notebooks (.ipynb) can be read, created, edited and run".to_owned(),
        );
        if path.exists() {
            self.hints.push(hint![
                command(format!("read {}:raw", path.display())),
                " shows the file as it is",
            ]);
        }
    }

    fn add_edit_hints(&mut self, path: &Path, error: &EditError) {
        match error {
            EditError::NoFirstMarker {
                line,
                found,
                content,
            } => {
                if *content != UnmarkedText::NotebookJson {
                    self.causes.push(format!("line {line} is `{found}`"));
                }
                if *content == UnmarkedText::BeforeMarker {
                    self.hints
                        .push("no text may precede the first marker".into());
                }
                self.hints
                    .push("start each cell with a line `# %% [code]` or `# %% [markdown]`".into());
            }
            EditError::OutOfRange { .. } => self.hints.push(outline_hint(path)),
            EditError::NoSuchId { ids, .. } => {
                if !ids.is_empty() {
                    self.hints
                        .push(format!("existing ids: {}", ids.join(", ")).into());
                }
                self.hints.push(
                    "name a cell by its index, its whole id, or `id:` and the start of its id"
                        .into(),
                );
                self.hints.push(outline_hint(path));
            }
            EditError::IdMatches { count, ids, .. } => {
                if !ids.is_empty() {
                    let which = if *count == 0 {
                        "existing ids"
                    } else {
                        "matching ids"
                    };
                    self.hints
                        .push(format!("{which}: {}", ids.join(", ")).into());
                }
                self.hints.push(outline_hint(path));
            }
            EditError::NoMatch {
                similar,
                has_diff_columns,
            } => {
                let describe = |found: &SimilarText| format!("similar text: {found}");
                self.causes.extend(similar.iter().map(describe));
                if *has_diff_columns {
                    self.hints.push(
                        "the text has the first column of a diff: remove the `+` or the space at the \
                         start of each line, and the lines that start with `-`"
                            .into(),
                    );
                }
                self.hints.push(hint![
                    "the text must be exactly as in ",
                    command(format!("read {}", path.display())),
                    ", including white space",
                ]);
            }
            EditError::Matches { count, matches } => {
                self.causes.extend(matches.iter().map(TextMatch::to_string));
                if matches.len() < *count {
                    self.causes.push(format!("{count} matches in total"));
                }
                self.hints.push(hint![
                    "give more of the surrounding text, or replace all matches with ",
                    flag("all"),
                ]);
            }
            EditError::InvalidPattern { reason } => {
                self.causes.push(reason.clone());
                self.hints.push(hint![
                    "without ",
                    flag("regex"),
                    ", the text is searched as it is",
                ]);
            }
            EditError::NoSuchGroup { count, .. } => self.hints.push(
                format!(
                    "groups are `$0` to `${count}` and `${{name}}` for `(?<name>…)`; a dollar sign is `$$`"
                )
                .into(),
            ),
            _ => {}
        }
    }
}

/// A hint that names the command that lists the cells.
pub fn outline_hint(path: &Path) -> Hint {
    hint![
        command(format!("notebook outline {}", path.display())),
        " lists the cells",
    ]
}

/// A hint that lists the notebooks in a directory.
fn notebooks_hint(dir: &Path) -> Option<Hint> {
    const LISTED_MAX: usize = 5;
    let dir = if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    };
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.to_lowercase().ends_with(".ipynb"))
        .collect();
    names.sort();
    let more = if names.len() > LISTED_MAX {
        ", …"
    } else {
        ""
    };
    names.truncate(LISTED_MAX);
    (!names.is_empty()).then(|| format!("notebooks there: {}{more}", names.join(", ")).into())
}

/// Messages begin with a capital letter.
pub fn capitalize(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}
