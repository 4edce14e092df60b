//! Captures the output of running code: text for models, outputs for notebooks, and artifacts for everything
//! that is too long.
//!
//! The crate does not know kernels or notebook files, prints nothing, and reads no environment variables.
//!
//! # Tour
//!
//! 1. An [`Event`] is one thing a running cell does: it writes to a [`Stream`], displays a [`Bundle`], updates
//!    or clears a display, raises a [`Traceback`]. A [`Bundle`] holds the representations ([`Data`]) of one
//!    value by MIME type. Large representations are [`StoredValue`]s in a [`Scratch`] file.
//! 2. A [`Capture`] is the [`Sink`] that receives the events of one cell. It never waits, never fails, and
//!    holds a few megabytes at most. [`Capture::finish`] returns a [`Captured`].
//! 3. [`Captured::text`] is the text for a model. Streams are decoded (`utf8`) and rendered as on a terminal
//!    ([`clean`]); displays contribute one representation (`display_text`), with HTML converted to Markdown
//!    (`html`). The beginning and the end are kept (`head_tail`), in the order of events (`cell_text`). A
//!    [`Truncation`] states how much was cut.
//! 4. [`Captured::outputs`] are the [`Outputs`] for a notebook in nbformat 4, unchanged except for redrawn
//!    lines. [`Outputs::write`] reads data that is not in memory from disk.
//! 5. [`Captured::images`] and [`Captured::json`] list images ([`Image`], [`BoundedImage`]) and JSON values
//!    ([`BoundedJson`]) within a model's limits.
//! 6. [`Artifacts`] is the folder of complete outputs. If a cell displays nothing, its artifact is exactly the
//!    bytes of its streams in order of arrival; otherwise the text of displays is in between. An [`Artifact`]
//!    is read by lines or searched.
//! 7. All limits are in [`Limits`]. Everything that a limit cuts is counted and reported as a [`Notice`].
//! 8. [`LiveText`] converts stream bytes for a viewer while the cell runs.
//!
//! # Example
//!
//! ```
//! use cellwright_output::{Bundle, Capture, Event, Limits, Sink, Stream};
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
//! assert_eq!(captured.outputs.to_values()[1]["execution_count"], 1);
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

pub use artifact::{
    Artifact, ArtifactError, ArtifactId, ArtifactInfo, ArtifactKind, ArtifactWriter, Artifacts,
    Excerpt, Pattern, Retention, SearchHit, SearchOptions, SearchResults, SpillBuffer, SpillReport,
    StoreFailure, SweepReport,
};
pub use bounded_json::BoundedJson;
pub use bundle::{Bundle, Data};
pub use capture::{Capture, Captured, Snapshot};
pub use cell_text::{TruncatedLines, Truncation};
pub use display_text::displayed_text;
pub use event::{Event, Sink, Stream, Traceback};
pub use image::{BoundedImage, Image};
pub use json_style::JsonStyle;
pub use limits::{ImageLimits, Limits};
pub use live_text::{LiveTarget, LiveText};
pub use notice::Notice;
pub use outputs::Outputs;
pub use scratch::{Scratch, ScratchWriter};
pub use size::{ByteSize, TextSize};
pub use stored_value::{Encoding, StoredValue};
