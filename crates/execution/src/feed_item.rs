//! [`FeedItem`]: what a viewer receives while code runs, and its encoding for a spool file or a socket.

use std::borrow::Cow;
use std::io;

use cellwright_output::{Bundle, Data, Encoding, Event, Figure, Stream, Traceback};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::CellEvent;

/// Size in bytes above which a representation that is not text is left out of a [`DisplayItem`]: no viewer shows an
/// image of this size while code runs. The outputs of the cell contain it.
const LIVE_DATA_LIMIT: u64 = 16 * 1024 * 1024;

/// One item for a viewer.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedItem {
    /// A cell starts.
    CellStart,
    /// Bytes of a stream, in any chunks.
    Text(Stream, Vec<u8>),
    /// A display, or the update of one.
    Display(Box<DisplayItem>),
    /// The cell clears its output, now or at its next output.
    Clear {
        /// Whether to wait for the next output.
        wait: bool,
    },
    /// The cell raised an exception.
    Error(Traceback),
    /// The start or the end of a cell, or the kernel.
    CellEvent(Box<CellEvent>),
    /// Number of bytes that were dropped, because the reader was too slow.
    Dropped(u64),
}

/// A display with all its representations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DisplayItem {
    /// The representations by MIME type.
    pub bundle: Bundle,
    /// Representations that are too large for a viewer.
    pub omitted: Vec<OmittedData>,
    /// The images among the representations, with their artifacts.
    pub figures: Vec<Figure>,
    /// The display id.
    pub id: Option<String>,
    /// Whether this replaces the displays with the same id.
    pub is_update: bool,
    /// The execution count, if this is the result of the cell.
    pub execution_count: Option<u32>,
}

/// A representation that is too large for a viewer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedData {
    /// The MIME type.
    pub mime: String,
    /// Size in bytes.
    pub bytes: u64,
}

impl FeedItem {
    /// The item for an event of a kernel; `None` for events that viewers do not receive.
    pub(super) fn from_event(event: &Event<'_>) -> Option<Self> {
        match event {
            Event::Text { stream, bytes } => Some(Self::Text(*stream, bytes.to_vec())),
            Event::Display { bundle, id, result } => Some(Self::Display(Box::new(DisplayItem {
                id: id.clone(),
                execution_count: *result,
                ..DisplayItem::new(bundle)
            }))),
            Event::Update { bundle, id } => Some(Self::Display(Box::new(DisplayItem {
                id: Some(id.clone()),
                is_update: true,
                ..DisplayItem::new(bundle)
            }))),
            Event::Clear { wait } => Some(Self::Clear { wait: *wait }),
            Event::Raised(traceback) => Some(Self::Error(traceback.clone())),
            // Viewers show all output. The report mentions refused input. `ProgressLine` converts progress bars.
            Event::ShowOnly(_)
            | Event::InputRefused { .. }
            | Event::Progress(_)
            | Event::WidgetState(_) => None,
        }
    }

    /// Adds the images of a display, as the capture has stored them.
    pub(super) fn set_figures(&mut self, figures: Vec<Figure>) {
        if let Self::Display(display) = self {
            display.figures = figures;
        }
    }

    /// A display of plain text.
    pub fn plain_text(text: impl Into<String>) -> Self {
        Self::Display(Box::new(DisplayItem {
            bundle: Bundle::text("text/plain", text),
            ..DisplayItem::default()
        }))
    }

    /// Approximate size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Text(_, bytes) => bytes.len(),
            Self::Display(display) => usize::try_from(display.bundle.size()).unwrap_or(usize::MAX),
            Self::Error(traceback) => {
                traceback.value.len() + traceback.lines.iter().map(String::len).sum::<usize>()
            }
            Self::CellEvent(_) => size_of::<CellEvent>(),
            Self::CellStart | Self::Clear { .. } | Self::Dropped(_) => 0,
        }
    }
}

impl DisplayItem {
    fn new(bundle: &Bundle) -> Self {
        let is_live = |(mime, data): &&(String, Data)| {
            mime.starts_with("text/") || data.size() <= LIVE_DATA_LIMIT
        };
        let omitted = bundle.data.iter().filter(|entry| !is_live(entry));
        Self {
            bundle: Bundle {
                data: bundle.data.iter().filter(is_live).cloned().collect(),
                metadata: bundle.metadata.clone(),
            },
            omitted: omitted
                .map(|(mime, data)| OmittedData {
                    mime: mime.clone(),
                    bytes: data.size(),
                })
                .collect(),
            ..Self::default()
        }
    }
}

/// An encoded item without its data, which is encoded as raw bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields of `FeedItem`")]
pub enum ItemHead {
    CellStart,
    Text {
        stream: StreamName,
    },
    Display {
        parts: Vec<PartHead>,
        metadata: Map<String, Value>,
        omitted: Vec<OmittedData>,
        figures: Vec<Figure>,
        id: Option<String>,
        is_update: bool,
        execution_count: Option<u32>,
    },
    Clear {
        wait: bool,
    },
    Error {
        name: String,
        value: String,
        lines: Vec<String>,
    },
    CellEvent(Box<CellEvent>),
    Dropped {
        bytes: u64,
    },
}

/// A representation of an encoded display.
#[derive(Debug, Serialize, Deserialize)]
pub struct PartHead {
    mime: String,
    encoding: PartEncoding,
    /// Size of its data, in bytes.
    bytes: usize,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartEncoding {
    Text,
    Json,
    Bytes,
}

/// The stream of encoded text.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamName {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl FeedItem {
    /// Encodes an item as a head and raw bytes.
    pub fn encode(&self) -> io::Result<(ItemHead, Cow<'_, [u8]>)> {
        let head = match self {
            Self::CellStart => ItemHead::CellStart,
            Self::Text(stream, bytes) => {
                let stream = match stream {
                    Stream::Stdout => StreamName::Stdout,
                    Stream::Stderr => StreamName::Stderr,
                };
                return Ok((ItemHead::Text { stream }, Cow::Borrowed(bytes)));
            }
            Self::Display(display) => {
                let (head, data) = encode_display(display)?;
                return Ok((head, Cow::Owned(data)));
            }
            Self::Clear { wait } => ItemHead::Clear { wait: *wait },
            Self::Error(traceback) => ItemHead::Error {
                name: traceback.name.clone(),
                value: traceback.value.clone(),
                lines: traceback.lines.clone(),
            },
            Self::CellEvent(event) => ItemHead::CellEvent(event.clone()),
            Self::Dropped(bytes) => ItemHead::Dropped { bytes: *bytes },
        };
        Ok((head, Cow::Borrowed(&[])))
    }

    /// Decodes an item.
    pub fn decode(head: ItemHead, data: Vec<u8>) -> io::Result<Self> {
        Ok(match head {
            ItemHead::CellStart => Self::CellStart,
            ItemHead::Text { stream } => {
                let stream = match stream {
                    StreamName::Stdout => Stream::Stdout,
                    StreamName::Stderr => Stream::Stderr,
                };
                Self::Text(stream, data)
            }
            ItemHead::Display {
                parts,
                metadata,
                omitted,
                figures,
                id,
                is_update,
                execution_count,
            } => Self::Display(Box::new(DisplayItem {
                bundle: Bundle {
                    data: decode_parts(parts, &data)?,
                    metadata,
                },
                omitted,
                figures,
                id,
                is_update,
                execution_count,
            })),
            ItemHead::Clear { wait } => Self::Clear { wait },
            ItemHead::Error { name, value, lines } => Self::Error(Traceback { name, value, lines }),
            ItemHead::CellEvent(event) => Self::CellEvent(event),
            ItemHead::Dropped { bytes } => Self::Dropped(bytes),
        })
    }
}

fn encode_display(display: &DisplayItem) -> io::Result<(ItemHead, Vec<u8>)> {
    let mut data = Vec::new();
    let mut parts = Vec::new();
    for (mime, part) in &display.bundle.data {
        let start = data.len();
        let encoding = match part {
            Data::Text(text) => {
                data.extend_from_slice(text.as_bytes());
                PartEncoding::Text
            }
            Data::Json(value) => {
                serde_json::to_writer(&mut data, value)?;
                PartEncoding::Json
            }
            Data::Bytes(bytes) => {
                data.extend_from_slice(bytes);
                PartEncoding::Bytes
            }
            Data::Stored(stored) => {
                stored.read(|bytes| {
                    data.extend_from_slice(bytes);
                    Ok(())
                })?;
                match stored.encoding() {
                    Encoding::Bytes => PartEncoding::Bytes,
                    Encoding::Text => PartEncoding::Text,
                    Encoding::Json => PartEncoding::Json,
                }
            }
        };
        parts.push(PartHead {
            mime: mime.clone(),
            encoding,
            bytes: data.len() - start,
        });
    }
    let head = ItemHead::Display {
        parts,
        metadata: display.bundle.metadata.clone(),
        omitted: display.omitted.clone(),
        figures: display.figures.clone(),
        id: display.id.clone(),
        is_update: display.is_update,
        execution_count: display.execution_count,
    };
    Ok((head, data))
}

fn decode_parts(parts: Vec<PartHead>, mut data: &[u8]) -> io::Result<Vec<(String, Data)>> {
    let mut decoded = Vec::new();
    for part in parts {
        let Some((bytes, rest)) = data.split_at_checked(part.bytes) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        data = rest;
        let value = match part.encoding {
            PartEncoding::Text => Data::Text(String::from_utf8_lossy(bytes).into_owned()),
            PartEncoding::Json => Data::Json(serde_json::from_slice(bytes)?),
            PartEncoding::Bytes => Data::Bytes(bytes.to_vec()),
        };
        decoded.push((part.mime, value));
    }
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{CellRef, ErrorReport, ExecutionStatus};

    fn round_trip(item: &FeedItem) -> FeedItem {
        let (head, data) = item.encode().unwrap();
        let head = serde_json::to_vec(&head).unwrap();
        FeedItem::decode(serde_json::from_slice(&head).unwrap(), data.into_owned()).unwrap()
    }

    #[test]
    fn every_item_survives_encoding() {
        let cell = CellRef {
            index: 3,
            id: Some("a".to_owned()),
            number: 1,
            total: 2,
            first_line: "x = 1".to_owned(),
        };
        let mut metadata = Map::new();
        metadata.insert("image/png".to_owned(), json!({"width": 4}));
        let bundle = Bundle {
            data: vec![
                ("text/plain".to_owned(), Data::Text("é".to_owned())),
                ("application/json".to_owned(), Data::Json(json!({"a": [1]}))),
                ("image/png".to_owned(), Data::Bytes(vec![0, 255, 10])),
            ],
            metadata,
        };
        let display = DisplayItem {
            bundle,
            omitted: vec![OmittedData {
                mime: "image/svg+xml".to_owned(),
                bytes: 1 << 40,
            }],
            figures: vec![Figure {
                mime: "image/png".to_owned(),
                bytes: 3,
                width: Some(4),
                height: None,
                artifact: "artifact://7".parse().ok(),
            }],
            id: Some("d".to_owned()),
            is_update: true,
            execution_count: Some(7),
        };
        for item in [
            FeedItem::CellStart,
            FeedItem::Text(Stream::Stderr, vec![0xff, b'\n', 0]),
            FeedItem::Display(Box::new(display)),
            FeedItem::plain_text("text"),
            FeedItem::Clear { wait: true },
            FeedItem::Error(Traceback {
                name: "E".to_owned(),
                value: "v".to_owned(),
                lines: vec!["a".to_owned(), "b".to_owned()],
            }),
            FeedItem::CellEvent(Box::new(CellEvent::Begin { cell: cell.clone() })),
            FeedItem::CellEvent(Box::new(CellEvent::End {
                cell,
                status: ExecutionStatus::Timeout,
                execution_count: None,
                duration_ms: 1.5,
                error: Some(ErrorReport {
                    ename: "E".to_owned(),
                    evalue: "v".to_owned(),
                    traceback: vec!["line".to_owned()],
                    hints: vec!["hint".to_owned()],
                }),
                expected: false,
            })),
            FeedItem::Dropped(u64::MAX),
        ] {
            assert_eq!(round_trip(&item), item);
        }
    }

    #[test]
    fn truncated_data_is_an_error() {
        let item = FeedItem::plain_text("four");
        let (head, data) = item.encode().unwrap();
        assert!(FeedItem::decode(head, data[..3].to_vec()).is_err());
    }

    #[test]
    fn large_images_are_omitted_and_large_text_is_not() {
        let size = usize::try_from(LIVE_DATA_LIMIT).unwrap() + 1;
        let bundle = Bundle::text("text/plain", "x".repeat(size))
            .with("image/png", Data::Bytes(vec![0; size]));
        let event = Event::Display {
            bundle,
            id: None,
            result: None,
        };
        let Some(FeedItem::Display(display)) = FeedItem::from_event(&event) else {
            panic!("no display");
        };
        assert!(display.bundle.get("text/plain").is_some());
        assert!(display.bundle.get("image/png").is_none());
        let omitted = OmittedData {
            mime: "image/png".to_owned(),
            bytes: LIVE_DATA_LIMIT + 1,
        };
        assert_eq!(display.omitted, [omitted]);
    }
}
