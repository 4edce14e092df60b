//! What running code produces: picked, cleaned, bounded, stored.
//!
//! Whoever runs code pushes [`Event`]s into a [`Capture`]. It never waits, never fails, and holds a
//! few megabytes at most, whatever comes. At the end there is a [`Captured`]: the text that a model
//! reads, the outputs for a notebook, images and JSON beside them, and what had to be left out.
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
//!
//! * Text: bytes become characters (`utf8`), what a terminal would do with them is done ([`clean`]),
//!   the beginning and the end are kept (`window`), in the order of events (`text`). [`Live`] does
//!   the same for people who watch.
//! * Outputs: [`Outputs`] are nbformat 4, as they came, but for lines that were drawn again and again;
//!   what is too large for memory is read from where it is when it is needed ([`Outputs::write`]).
//! * [`Artifacts`] keep what was left out, byte for byte as it came. With nothing displayed between,
//!   the artifact of a cell is exactly the bytes of its streams in order of arrival; otherwise the
//!   text of what was displayed stands where it came.
//! * Every number is in [`Limits`]; what they cut is counted and said, as [`Cut`] and [`Notice`].
//! * Values: `pick` says which representation is shown. HTML becomes Markdown by `htmd`, which is the
//!   smallest of the libraries for it, with tables of our own because it loses their row headers.
//!
//! The crate knows nothing of kernels and notebook files, prints nothing and reads no environment.

mod artifact;
mod bundle;
mod capture;
pub mod clean;
mod event;
mod html;
mod image;
mod json;
mod limits;
mod live;
mod notice;
mod outputs;
mod pick;
mod scratch;
mod size;
mod stored;
mod style;
mod text;
mod utf8;
mod window;

pub use artifact::{
    Artifact, ArtifactError, ArtifactId, Artifacts, Entry, Failure, Hit, Hits, Kind, Passage,
    Pattern, Recording, Retention, Search, Spill, Spilled, Swept,
};
pub use bundle::{Bundle, Data};
pub use capture::{Capture, Captured, Snapshot};
pub use event::{Event, Sink, Stream, Traceback};
pub use image::{Bounded, Image};
pub use json::Json;
pub use limits::{ImageLimits, Limits};
pub use live::{Live, Target};
pub use notice::Notice;
pub use outputs::Outputs;
pub use pick::text as displayed_text;
pub use scratch::{Room, Scratch};
pub use size::{Bytes, Size};
pub use stored::{Form, Stored};
pub use style::Style;
pub use text::{Columns, Cut};
