//! The documents that `--events` prints.

use std::time::SystemTime;

use cellwright_diagnostics::failure::ErrorObject;
use cellwright_diagnostics::json_schema::Timestamp;
use cellwright_execution::{CellRef, ErrorReport, ExecutionStatus, KernelReport, ReportDocument};
use cellwright_operations::check::CheckReport;
use cellwright_stdext::rfc3339;
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::StillRunning;

/// An event with its time.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Stamped<T> {
    /// When the command printed the event.
    #[schemars(with = "Timestamp")]
    time: String,
    #[serde(flatten)]
    event: T,
}

impl<T> Stamped<T> {
    /// An event that is printed now.
    pub(super) fn now(event: T) -> Self {
        Self {
            time: rfc3339::format_micros(SystemTime::now()),
            event,
        }
    }
}

/// The kernel is ready.
#[derive(Serialize, JsonSchema)]
pub(crate) struct KernelReady<'a> {
    #[schemars(extend("const" = "kernel_ready"))]
    pub(super) event: &'static str,
    /// The kernel.
    pub(super) kernel: &'a KernelReport,
    /// Time since the start of the execution, in milliseconds.
    pub(super) kernel_ready_ms: f64,
}

/// A cell starts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Begin<'a> {
    #[schemars(extend("const" = "begin"))]
    pub(super) event: &'static str,
    #[serde(flatten)]
    pub(super) cell: &'a CellRef,
}

/// Text that the code wrote to a stream, without escape sequences.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Text {
    #[schemars(extend("const" = "text"))]
    pub(super) event: &'static str,
    /// Index of the running cell.
    pub(super) index: Option<usize>,
    /// The stream.
    #[schemars(extend("enum" = ["stdout", "stderr"]))]
    pub(super) stream: &'static str,
    /// The text; `\r` redraws a line.
    pub(super) text: String,
}

/// A display, or the value of a cell.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Display {
    #[schemars(extend("const" = "display"))]
    pub(super) event: &'static str,
    /// Index of the running cell.
    pub(super) index: Option<usize>,
    /// The stream to which a terminal shows it.
    #[schemars(extend("enum" = ["stdout"]))]
    pub(super) stream: &'static str,
    /// The display as text.
    pub(super) text: String,
    /// The images of the display.
    pub(super) images: Vec<DisplayedImage>,
    /// The display id.
    pub(super) display_id: Option<String>,
    /// Whether it replaces all earlier displays with its id, also those of other cells.
    pub(super) update: bool,
}

/// An image of a display.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DisplayedImage {
    /// MIME type.
    pub(super) mime: String,
    /// Size in bytes.
    pub(super) bytes: u64,
    /// Width in pixels.
    pub(super) width: Option<u32>,
    /// Height in pixels.
    pub(super) height: Option<u32>,
    /// The artifact with the image.
    pub(super) artifact: Option<String>,
}

/// The code raised an exception.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Raised {
    #[schemars(extend("const" = "error"))]
    pub(super) event: &'static str,
    /// Index of the running cell.
    pub(super) index: Option<usize>,
    /// The exception.
    pub(super) error: ErrorReport,
}

/// Output was dropped, because it arrived faster than it was read.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Lost {
    #[schemars(extend("const" = "lost"))]
    pub(super) event: &'static str,
    /// Index of the running cell.
    pub(super) index: Option<usize>,
    /// Size in bytes.
    pub(super) bytes: u64,
}

/// A cell ended.
#[derive(Serialize, JsonSchema)]
pub(crate) struct End<'a> {
    #[schemars(extend("const" = "end"))]
    pub(super) event: &'static str,
    #[serde(flatten)]
    pub(super) cell: &'a CellRef,
    /// How it ended.
    pub(super) status: ExecutionStatus,
    /// The number that the kernel gave the execution.
    pub(super) execution_count: Option<u32>,
    /// Duration in milliseconds.
    pub(super) duration_ms: f64,
    /// The exception that the cell raised, or why it did not finish.
    pub(super) error: Option<ErrorReport>,
    /// Whether the request expects an exception.
    pub(super) expected: bool,
}

/// The result, as the last event.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Done<'a> {
    #[schemars(extend("const" = "done"))]
    pub(super) event: &'static str,
    #[serde(flatten)]
    pub(super) report: &'a ReportDocument<'a>,
}

/// The run continues in the background, as the last event.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Continues<'a> {
    #[schemars(extend("const" = "running"))]
    pub(super) event: &'static str,
    #[serde(flatten)]
    pub(super) running: StillRunning<'a>,
}

/// The result of a check, as the last event.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Checked<'a> {
    #[schemars(extend("const" = "done"))]
    pub(super) event: &'static str,
    #[serde(flatten)]
    pub(super) report: &'a CheckReport,
}

/// The last event of a command that ran nothing.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Failed {
    #[schemars(extend("const" = "done"))]
    pub(super) event: &'static str,
    /// `not_started`.
    pub(super) status: ExecutionStatus,
    /// Why nothing ran.
    pub(super) error: ErrorObject,
}
