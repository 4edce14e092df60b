//! Captures the output of running code: text for models, outputs for notebooks, and artifacts for everything
//! that is too long.
//!
//! The crate does not depend on kernels or notebook files, prints nothing, and reads no environment variables.
//!
//! # Flow
//!
//! ```text
//! kernel ─ Event ─▶ Capture ─┬─▶ CellText     text of the cell: cleaned, bounded, in order of events
//!                            ├─▶ Outputs      nbformat 4 outputs, large values in a Scratch file
//!                            └─▶ SpillBuffer  raw bytes, an artifact if they exceed the text limit
//!                   Capture::finish ─▶ Captured { text, outputs, images, json, notices, … }
//! ```
//!
//! A kernel pushes the [`Event`]s of one cell into a [`Capture`], which never waits, never fails, and holds a
//! bounded amount of memory. [`Capture::finish`] returns a [`Captured`]. Everything that a limit cuts is
//! counted and reported as a [`Notice`].
//!
//! # Modules, in reading order
//!
//! Input:
//!
//! * `event`: [`Event`], [`Stream`] and [`Traceback`], and the [`Sink`] trait that receives events.
//! * `bundle`: [`Bundle`], the representations ([`Data`]) of one displayed value by MIME type.
//! * `stored_value`, `scratch`: [`StoredValue`], a value in a file instead of memory, and [`Scratch`], the
//!   unnamed file that holds such values.
//! * `limits`: [`Limits`], all limits with their reasons.
//!
//! Capture:
//!
//! * `capture`: [`Capture`], the sink of one cell, and [`Captured`], its result.
//! * `notice`: [`Notice`], the facts about an output that the caller should report.
//!
//! Text for models:
//!
//! * `cell_text`: stream text, display text and tracebacks in order of events, with a [`Truncation`].
//! * `display_text`: selects the representation of a bundle that becomes text.
//! * [`clean`]: renders text as a terminal would, line by line.
//! * `html`: converts HTML to Markdown.
//! * `head_tail`: keeps the beginning and the end of a long text.
//! * `image`, `bounded_json`: [`Image`] and [`BoundedJson`], values within a model's limits. [`Figure`] is the line that
//!   names an image in the text.
//! * `live_text`: [`LiveText`] converts stream bytes for a viewer while the cell runs.
//!
//! Outputs for notebooks:
//!
//! * `outputs`: [`Outputs`]. [`Outputs::write`] writes them in nbformat 4, unchanged except for redrawn lines,
//!   and reads data that is not in memory from disk.
//! * `json_style`: [`JsonStyle`], the layout of the written JSON.
//!
//! Complete outputs on disk:
//!
//! * `artifact`: [`Artifacts`], the directory of complete outputs, and [`Artifact`], one of them, which is read by
//!   lines or searched. If a cell displays nothing, its artifact is exactly the bytes of its streams in order
//!   of arrival; otherwise the text of displays is in between. [`ProjectTag`] is the project that stored it.
//!
//! Helpers: `utf8`, `base64_text` (incremental decoding), `size` (text and byte sizes), `files` (private files,
//! access at an offset).
//!
//! # Example
//!
//! ```
//! use cellwright_output::{Bundle, Capture, Event, JsonStyle, Limits, Sink, Stream};
//!
//! let mut capture = Capture::new(Limits::default(), None);
//! for bytes in [&b"\r 50%"[..], b"\r100%\n", b"\x1b[31mred\x1b[0m \xe2", b"\x82\xac\n"] {
//!     capture.push(Event::Text { stream: Stream::Stdout, bytes });
//! }
//! let bundle = Bundle::text("text/html", "<b>bold</b>");
//! capture.push(Event::Display { bundle, id: None, result: Some(1) });
//!
//! let captured = capture.finish();
//! assert_eq!(captured.text, "100%\nred €\n**bold**\n");
//!
//! let mut json = Vec::new();
//! captured.outputs.write(&mut json, &JsonStyle::compact(), 0)?;
//! let json = String::from_utf8_lossy(&json);
//! assert!(json.ends_with(r#""execution_count":1,"metadata":{},"output_type":"execute_result"}]"#));
//! # Ok::<(), std::io::Error>(())
//! ```

mod artifact;
mod base64_text;
mod bounded_json;
mod bundle;
mod capture;
mod cell_text;
pub mod clean;
mod display_text;
mod event;
mod figure;
mod files;
mod head_tail;
mod html;
mod image;
mod json_style;
mod limits;
mod live_text;
mod notice;
mod outputs;
mod scratch;
mod size;
mod stored_value;
mod utf8;
mod widgets;

pub use artifact::{
    Artifact, ArtifactError, ArtifactId, ArtifactInfo, ArtifactKind, ArtifactOrigin, ArtifactScope,
    ArtifactWriter, Artifacts, Pattern, ProjectTag, Retention, SearchHit, SearchOptions,
    SearchResults, StoreFailure, SweepReport,
};
pub use bounded_json::BoundedJson;
pub use bundle::{Bundle, Data};
pub use capture::{Capture, Captured, UpdatableText};
pub use cell_text::{TruncatedLines, Truncation};
pub use display_text::displayed_text;
pub use event::{Event, Sink, Stream, Traceback};
pub use figure::Figure;
pub use head_tail::ElisionLine;
pub use image::{BoundedImage, Image};
pub use json_style::JsonStyle;
pub use limits::Limits;
pub use live_text::{LiveTarget, LiveText};
pub use notice::Notice;
pub use outputs::Outputs;
pub use scratch::{Scratch, ScratchWriter};
pub use size::{ByteSize, TextSize};
pub use stored_value::{Encoding, StoredValue};
pub use widgets::{CommMessage, Progress, ProgressState, WidgetModels, view_id};
