//! [`ErrorDocument`]: a failure in `--json`.

use cellwright_stdext::secret::redact;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Failure, Kind};

/// A verb that failed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ErrorDocument {
    /// What failed, and why.
    pub error: ErrorObject,
}

/// What failed, why, and what to do next.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ErrorObject {
    /// Kind of the error; it decides the exit code.
    pub kind: Kind,
    /// What failed, and the file or the cell.
    pub message: String,
    /// Causes, from the outermost to the innermost.
    pub causes: Vec<String>,
    /// What to do next.
    pub hints: Vec<String>,
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// Column in the line, in characters, from 1.
    pub column: Option<usize>,
    /// Exit code of the command.
    pub exit_code: u8,
    /// Name of the exception that the code raised.
    pub ename: Option<String>,
    /// Message of the exception.
    pub evalue: Option<String>,
    /// The cell that failed.
    pub cell: Option<ErrorCell>,
}

/// The cell that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ErrorCell {
    /// Index in the notebook, or in the request, from 0.
    pub index: usize,
    /// Cell id.
    pub id: Option<String>,
}

impl Failure {
    /// The failure in `--json`.
    pub fn document(&self) -> ErrorDocument {
        ErrorDocument {
            error: self.error_object(),
        }
    }

    /// The failure as a member of a document, without credentials.
    pub fn error_object(&self) -> ErrorObject {
        ErrorObject {
            kind: self.kind,
            message: redact(&self.message).into_owned(),
            causes: self
                .causes
                .iter()
                .map(|cause| redact(cause).into_owned())
                .collect(),
            hints: self
                .hints
                .iter()
                .map(|hint| redact(&hint.for_command_line()).into_owned())
                .collect(),
            line: self.position.map(|at| at.line),
            column: self.position.map(|at| at.column),
            exit_code: self.exit_code(),
            ename: None,
            evalue: None,
            cell: None,
        }
    }
}
