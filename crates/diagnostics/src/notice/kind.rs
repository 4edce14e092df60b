//! [`NoticeKind`]: the names of all notices.

use std::fmt;

use schemars::JsonSchema;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Serialize};

use crate::failure::{Hint, command, flag, flag_value, hint};

/// What a notice is about. The names in `--json`, in MCP replies and in the host protocol are those of the variants in
/// `snake_case`; [`fmt::Display`] writes the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "What a notice is about.")]
pub enum NoticeKind {
    // Edits of a notebook.
    NearMarker,
    /// A text with cells in the percent format of other tools.
    PercentFormat,
    MarkerTextDropped,
    UnknownCell,
    CellUsedTwice,
    SurrogateLost,
    AttachmentsDropped,
    MarkerTagsKept,
    Merged,
    Unchanged,
    Irregular,
    /// A notebook in nbformat 2 or 3, converted to show it.
    OldFormat,
    RangeSkipped,
    /// The content before a change could not be stored.
    UndoNotStored,
    /// By an edit, or because a cell has more outputs than a notebook should have.
    OutputsDropped,
    /// By a comparison with a commit that contains no outputs.
    OutputsIgnored,

    // Notebooks that are open in a Jupyter server.
    OpenInPage,
    OpenInRoom,
    ServerNotAsked,
    Overwritten,
    /// Another program wrote into a file that had been replaced.
    LateWrite,

    // Merges of notebooks.
    ConflictSource,
    ConflictDeleted,
    ConflictKind,
    ConflictMoved,
    ConflictMember,
    OutputsCleared,
    IdChanged,
    NotANotebook,
    AttributesOverridden,
    AttributesReplaced,

    // Output of cells.
    OutputTruncated,
    /// The output of a cell as a notebook stores it.
    StoredOutputTruncated,
    OutputNotStored,
    StreamsShortened,
    DisplaysMoved,
    ImagesOmitted,
    JsonOmitted,
    StatusDropped,
    LateOutput,
    InputRefused,
    /// What can be done about an exception of a cell.
    ErrorHint,

    // Runs of notebooks.
    NothingToRun,
    /// The directory of the notebook was moved while it ran; the notebook is in the moved directory.
    NotebookMoved,
    /// Why the cells run that are not fresh.
    StaleCells,
    /// Cells before the selected ones have not run on the kernel, which ends with the run.
    CellsNotRun,
    /// Cells before the selected ones have not run in the session.
    SessionCellsNotRun,
    OutputsMoved,
    OutputsOmitted,
    ParameterRepeated,
    NoParametersCell,
    UnknownParameter,
    YamlAmbiguous,

    // Kernels.
    KernelReplaced,
    KernelRestarted,
    KernelReset,
    KernelDied,
    KernelKilled,
    Interrupted,
    UncleanShutdown,
    MemoryHigh,
    MemoryExceeded,
    OutputIncomplete,
    ProtocolVersion,
    SetupFailed,
    MessagesRefused,
    /// A notice of a kernel backend whose name this enum does not have.
    KernelNotice,

    // Kernels on Jupyter servers.
    /// The code runs on another machine, in another directory.
    RemoteFiles,
    /// A credential of a server is visible to others, or was not sent.
    ServerCredentials,
    /// The connection to a server broke, and is open again.
    Reconnected,

    // Sessions and runs.
    SessionBusy,
    SessionEnded,
    SessionEvicted,
    SessionOtherCwd,
    /// The kernel of a session has another working directory than a new kernel would have.
    KernelOtherCwd,
    HostLost,
    StillRunning,
    HistoryIncomplete,

    // Environment variables.
    /// A requested variable does not exist, or does not reach the kernel.
    VariablesNotSet,
    /// The kernel of a session started with other variables than those of the caller.
    EnvironmentDiffers,

    // Settings, trust and modules.
    TimeoutCapped,
    SettingsIgnored,
    /// Markers, settings or environments that another user owns or can write to.
    ForeignFiles,
    NotTrusted,
    /// Code runs with an interpreter that was found in the project, for the first time.
    ProjectInterpreter,
    /// An interpreter was found in a project that is not trusted.
    InterpreterNotStarted,
    TrustUnreadable,
    ModuleChanged,
    ModuleFailed,
    ModulePrinted,
    ModuleUntrusted,

    // MCP replies.
    CallCancelled,
    CellsLeftOut,
    ListTruncated,
    TextTruncated,
}

impl NoticeKind {
    /// What the caller can do about a notice of this kind.
    pub fn hint(self) -> Option<Hint> {
        match self {
            Self::InputRefused => Some(hint![flag_value("answer", "TEXT"), " supplies input"]),
            Self::OldFormat => Some(hint![
                command("notebook upgrade PATH"),
                " converts the file; changes require it",
            ]),
            Self::CellsNotRun => Some(hint![
                flag_value("to", "CELL"),
                " also runs the cells before a cell, ",
                flag_value("session", "NAME"),
                " keeps the kernel for further runs",
            ]),
            Self::SessionCellsNotRun => Some(hint![
                flag_value("to", "CELL"),
                " also runs the cells before a cell",
            ]),
            Self::EnvironmentDiffers => Some(hint![
                flag_value("env", "NAME"),
                " sets a variable in the running kernel",
            ]),
            Self::SessionOtherCwd => Some(hint![
                flag_value("session", "@N"),
                " selects a session by its number",
            ]),
            Self::StoredOutputTruncated => Some(hint![flag("full"), " shows all of it"]),
            _ => None,
        }
    }

    /// Whether the failure of the execution reports the same event.
    pub fn repeats_failure(self) -> bool {
        matches!(
            self,
            Self::Interrupted | Self::KernelKilled | Self::KernelDied
        )
    }

    /// Whether the notice concerns outputs in a notebook or a report, not the output that a viewer shows.
    pub fn is_about_stored_outputs(self) -> bool {
        matches!(self, Self::StreamsShortened | Self::OutputsOmitted)
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let name: StrDeserializer<'_, Error> = name.into_deserializer();
        Self::deserialize(name).ok()
    }
}

impl fmt::Display for NoticeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json_form() {
        for kind in [NoticeKind::NearMarker, NoticeKind::SessionOtherCwd] {
            let json = serde_json::to_value(kind).unwrap();
            assert_eq!(json, kind.to_string());
            assert_eq!(NoticeKind::from_name(&kind.to_string()), Some(kind));
        }
        assert_eq!(NoticeKind::NotANotebook.to_string(), "not_a_notebook");
        assert_eq!(NoticeKind::from_name("no_such_kind"), None);
    }

    /// The `kernel` crate names the notices of its backends itself.
    #[test]
    fn notices_of_kernel_backends_have_kinds() {
        for name in [
            "output_incomplete",
            "protocol_version",
            "setup_failed",
            "messages_refused",
            "reconnected",
        ] {
            assert!(NoticeKind::from_name(name).is_some(), "{name}");
        }
    }
}
