//! [`Failure`]: every error in words, with what to do next and the exit code. The only place where
//! that is decided.

mod host;
mod kernel;
mod run;
mod settings;

pub(crate) use run::capitalised;

use std::any::Any;
use std::error::Error as _;
use std::io;
use std::path::Path;

use cellwright_notebook::select::SelectError;
use cellwright_notebook::{EditError, FormatError, NotebookError, Position};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An error in words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
    pub(crate) hints: Vec<String>,
    #[serde(skip)]
    position: Option<Position>,
}

/// What sort of error it is; decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The arguments do not make sense.
    BadArguments,
    /// A file is missing, unreadable or cannot be written.
    BadFile,
    /// The file is no notebook.
    BadNotebook,
    /// The edit does not fit the notebook.
    BadEdit,
    /// Somebody else changed the file; nothing was written.
    Conflict,
    /// The settings do not make sense.
    BadSettings,
    /// The settings forbid it.
    Refused,
    /// A kernel could not be started, or died.
    Kernel,
    /// The host could not be found, started or ended.
    Host,
    /// The code failed.
    Raised,
    /// The code took too long.
    TimedOut,
    /// Somebody stopped the code.
    Cancelled,
    /// Whoever read our output has gone.
    ClosedPipe,
    /// Our bug.
    Bug,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::BadArguments => "bad_arguments",
            Self::BadFile => "bad_file",
            Self::BadNotebook => "bad_notebook",
            Self::BadEdit => "bad_edit",
            Self::Conflict => "conflict",
            Self::BadSettings => "bad_settings",
            Self::Refused => "refused",
            Self::Kernel => "kernel",
            Self::Host => "host",
            Self::Raised => "raised",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::ClosedPipe => "closed_pipe",
            Self::Bug => "bug",
        }
    }
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            position: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// What is wrong with a change that was asked for.
    pub(crate) fn of_change(error: NotebookError) -> Self {
        let failure = Self::from(error);
        if failure.kind == Kind::BadEdit {
            return failure.hint("nothing was written");
        }
        failure
    }

    /// The answer to a change could not be given; `written` is the revision, if there is a new one.
    pub(crate) fn after_change(self, written: Option<&str>) -> Self {
        let Some(revision) = written.filter(|_| !self.is_silent()) else {
            return self;
        };
        let mut failure = Self::new(
            self.kind,
            "The notebook was written, but the answer could not be printed",
        );
        failure.causes = self.causes;
        failure.hint(format!(
            "do not repeat it: the file is now at revision {revision}"
        ))
    }

    /// Whoever read our output has gone.
    pub(crate) fn closed_pipe() -> Self {
        Self::new(Kind::ClosedPipe, "the output was closed")
    }

    /// What a panic left behind.
    pub(crate) fn bug(panic: &(dyn Any + Send)) -> Self {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "unknown panic".to_owned());
        let mut failure = Self::new(Kind::Bug, "This is a bug in cellwright");
        failure.causes.push(text);
        failure.hint("please report it with the command you ran and, if you can, the file")
    }

    /// A reader that closed the pipe has what it wanted.
    pub(crate) fn is_silent(&self) -> bool {
        self.kind == Kind::ClosedPipe
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::Raised => 1,
            Kind::BadArguments
            | Kind::BadFile
            | Kind::BadNotebook
            | Kind::BadEdit
            | Kind::BadSettings
            | Kind::Refused
            | Kind::Kernel
            | Kind::Host => 2,
            Kind::TimedOut => 124,
            Kind::Cancelled => 130,
            Kind::Conflict => 3,
            Kind::ClosedPipe => 0,
            Kind::Bug => 70,
        }
    }

    /// The error as `--json` prints it.
    pub(crate) fn document(&self) -> Value {
        json!({"error": {
            "kind": self.kind.name(),
            "message": self.message,
            "causes": self.causes,
            "hints": self.hints,
            "line": self.position.map(|at| at.line),
            "column": self.position.map(|at| at.column),
            "exit_code": self.exit_code(),
        }})
    }
}

/// Keeps panics from printing on their own; [`Failure::bug`] tells.
pub(crate) fn quiet_panics() {
    std::panic::set_hook(Box::new(|_| {}));
}

impl From<io::Error> for Failure {
    /// Trouble with stdout or stdin; files have errors of their own.
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

impl From<SelectError> for Failure {
    fn from(error: SelectError) -> Self {
        Self::new(Kind::BadArguments, error.to_string())
    }
}

impl From<NotebookError> for Failure {
    fn from(error: NotebookError) -> Self {
        let mut failure = Self::new(kind_of(&error), error.to_string());
        let mut cause = error.source();
        while let Some(inner) = cause {
            failure.causes.push(inner.to_string());
            cause = inner.source();
        }
        match error {
            NotebookError::Format { path, error } => failure.explain_format(&path, &error),
            NotebookError::Edit { path, error } => failure.explain_edit(&path, &error),
            NotebookError::Conflict {
                path, current, why, ..
            } => {
                failure.causes.push(why);
                failure.hints.push("nothing was written".to_owned());
                failure.hints.push(format!(
                    "read it again (`cellwright read {}`) and repeat the edit; the file is now at \
                     revision {current}",
                    path.display()
                ));
            }
            NotebookError::NotFound { path } => {
                let folder = path.parent().unwrap_or(&path);
                failure.hints.extend(notebooks_in(folder));
            }
            NotebookError::NotAFile { path, what } => {
                failure.causes.push(format!("it is {what}"));
                failure.hints.extend(notebooks_in(&path));
            }
            NotebookError::Io { step, .. } if step != "read" && step != "find" => {
                failure.hints.push("nothing was written".to_owned());
            }
            NotebookError::Busy { .. } => {
                failure
                    .hints
                    .push("nothing was written; try again in a moment".to_owned());
            }
            NotebookError::NotReadBack { path } => failure.hints.push(format!(
                "see what is in it now with `cellwright read {}`",
                path.display()
            )),
            _ => {}
        }
        failure
    }
}

fn kind_of(error: &NotebookError) -> Kind {
    match error {
        NotebookError::Format { .. } => Kind::BadNotebook,
        NotebookError::Edit { .. } => Kind::BadEdit,
        NotebookError::Conflict { .. } | NotebookError::NotReadBack { .. } => Kind::Conflict,
        _ => Kind::BadFile,
    }
}

impl Failure {
    fn explain_format(&mut self, path: &Path, error: &FormatError) {
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
                format!("`cellwright notebook upgrade {path}` converts it to nbformat 4.5")
            }
            FormatError::OldFormat { .. } | FormatError::NewFormat { .. } => {
                "only nbformat 4 can be edited".to_owned()
            }
            FormatError::Empty | FormatError::Json { ended: true, .. } => {
                "somebody may be writing it at this moment, or a save was cut short".to_owned()
            }
            FormatError::Json { .. } | FormatError::NotUtf8 { .. } => {
                format!("`cellwright read {path}:raw` shows the file as it is")
            }
            _ => return,
        };
        self.hints.push(hint);
    }

    fn explain_edit(&mut self, path: &Path, error: &EditError) {
        let path = path.display();
        match error {
            EditError::NoFirstMarker { found } => {
                self.causes.push(format!("line 1 is `{found}`"));
                self.hints.push(format!(
                    "start from the text that `cellwright read {path}` prints; nothing may stand \
                     before the first marker"
                ));
            }
            EditError::OutOfRange { .. } => self.hints.push(format!(
                "`cellwright notebook outline {path}` lists the cells"
            )),
            EditError::IdMatches { count, ids, .. } => {
                if !ids.is_empty() {
                    let which = if *count == 0 {
                        "ids there are"
                    } else {
                        "matching"
                    };
                    self.hints.push(format!("{which}: {}", ids.join(", ")));
                }
                self.hints.push(format!(
                    "`cellwright notebook outline {path}` lists the cells"
                ));
            }
            EditError::Matches { count: 0, .. } => self.hints.push(format!(
                "the text must be exactly as `cellwright read {path}` prints it, white space \
                 included"
            )),
            EditError::Matches { lines, .. } => {
                let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
                self.causes.push(format!("on lines {}", lines.join(", ")));
                self.hints
                    .push("give more of the text around it, or replace them all with --all".into());
            }
            _ => {}
        }
    }
}

/// The notebooks in a folder, to choose from.
fn notebooks_in(folder: &Path) -> Option<String> {
    const MOST: usize = 5;
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.to_lowercase().ends_with(".ipynb"))
        .collect();
    names.sort();
    let more = if names.len() > MOST { ", …" } else { "" };
    names.truncate(MOST);
    (!names.is_empty()).then(|| format!("notebooks there: {}{more}", names.join(", ")))
}
