//! Frames: one line of JSON, then the raw payloads that it announces. A frame may have any size up to a
//! limit, arrives in any pieces, and is scanned once.

mod payload;

use std::collections::VecDeque;

use cellwright_output::{Bundle, Data, Scratch};
use cellwright_stdext::Directory;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use self::payload::{LARGE_PAYLOAD_SIZE, Payload};
use super::trace::Trace;
use crate::kernel::{HistoryMode, KernelQuery, Request, Stdin};

/// The longest line and the largest sum of payloads, in bytes. A display of this size is a mistake, and would not
/// fit into memory later either.
const FRAME_SIZE_MAX: usize = 1 << 30;

/// Bytes of a large payload that are read at once.
const PAYLOAD_READ_SIZE: usize = 256 * 1024;

/// A frame from the runner. Every type of frame uses some of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "holds the fields of all types of frames"
)]
pub(super) struct Frame {
    #[serde(rename = "t")]
    pub(super) frame_type: String,
    /// The number of the sync marker before it.
    #[serde(rename = "n")]
    pub(super) marker: Option<u64>,
    /// The id of the request that it belongs to.
    pub(super) id: Option<u64>,
    pub(super) count: Option<u32>,
    data: Vec<(String, String, Box<RawValue>)>,
    metadata: Option<Box<RawValue>>,
    pub(super) display_id: Option<String>,
    pub(super) update: bool,
    pub(super) wait: bool,
    pub(super) ename: String,
    pub(super) evalue: String,
    pub(super) traceback: Vec<String>,
    pub(super) prompt: String,
    pub(super) password: bool,
    pub(super) status: String,
    pub(super) cell: Option<u64>,
    pub(super) ok: bool,
    pub(super) value: Option<Box<RawValue>>,
    pub(super) error: String,
    pub(super) version: String,
    pub(super) executable: String,
    pub(super) nonce: String,
    bin: Vec<usize>,
    #[serde(skip)]
    payloads: VecDeque<Option<Payload>>,
}

impl Frame {
    /// Takes the displayed bundle out of the frame.
    pub(super) fn take_bundle(&mut self) -> Bundle {
        let mut data = Vec::with_capacity(self.data.len());
        for (mime, kind, value) in std::mem::take(&mut self.data) {
            let text = value.get();
            let decoded = match kind.as_str() {
                "text" => serde_json::from_str(text).ok().map(Data::Text),
                "bin" | "utf8" => serde_json::from_str::<usize>(text)
                    .ok()
                    .and_then(|index| self.payloads.get_mut(index)?.take())
                    .map(|payload| match kind.as_str() {
                        "utf8" => payload.into_text(),
                        _ => payload.into_binary(),
                    }),
                // JSON nested too deeply for a tree is kept as text.
                _ => serde_json::from_str(text)
                    .map(Data::Json)
                    .or_else(|_| Ok::<_, ()>(Data::Text(text.to_owned())))
                    .ok(),
            };
            if let Some(decoded) = decoded {
                data.push((mime, decoded));
            }
        }
        Bundle {
            data,
            // Metadata nested too deeply is dropped: the value matters more.
            metadata: self
                .metadata
                .take()
                .and_then(|metadata| serde_json::from_str(metadata.get()).ok())
                .unwrap_or_default(),
        }
    }
}

/// Decodes frames from a stream of bytes.
#[derive(Debug, Default)]
pub(super) struct FrameDecoder {
    bytes: Vec<u8>,
    /// The offset of the next frame.
    start: usize,
    /// The offset up to which there is no line end.
    searched: usize,
    /// A frame whose payloads have not all arrived.
    pending_frame: Option<Frame>,
    /// Its large payload that is arriving.
    pending_payload: Option<Payload>,
    /// Holds large payloads.
    scratch: Scratch,
    trace: Trace,
}

impl FrameDecoder {
    pub(super) fn new(trace: Trace) -> Self {
        Self {
            trace,
            ..Self::default()
        }
    }

    /// The buffer to read into, with capacity for the expected bytes.
    pub(super) fn read_buffer(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            // The rest is the beginning of one frame: it moves once per frame.
            self.bytes.drain(..self.start);
            self.searched = self.searched.saturating_sub(self.start);
            self.start = 0;
        }
        if self.bytes.is_empty() && self.bytes.capacity() > 1 << 20 {
            self.bytes = Vec::new();
        }
        let expected = self
            .pending_frame
            .as_ref()
            .and_then(|head| head.bin.get(head.payloads.len()));
        let expected = match expected {
            Some(&size) if size >= LARGE_PAYLOAD_SIZE => PAYLOAD_READ_SIZE,
            Some(size) => size.saturating_sub(self.bytes.len()),
            None => 0,
        };
        self.bytes.reserve(expected.max(16 * 1024));
        &mut self.bytes
    }

    /// The next complete frame.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, String> {
        if self.pending_frame.is_none() {
            let Some(line) = self.next_line()? else {
                return Ok(None);
            };
            let text = &self.bytes[line];
            self.trace.received(text);
            let frame: Frame = serde_json::from_slice(text)
                .map_err(|error| format!("{error} in {}", sample(text)))?;
            let mut total = 0_usize;
            for size in &frame.bin {
                total = total.saturating_add(*size);
            }
            if total > FRAME_SIZE_MAX {
                return Err(format!("a frame announces {total} bytes"));
            }
            self.pending_frame = Some(frame);
        }
        let Some(mut frame) = self.pending_frame.take() else {
            return Ok(None);
        };
        while let Some(&size) = frame.bin.get(frame.payloads.len()) {
            let available = &self.bytes[self.start..];
            let payload = if size >= LARGE_PAYLOAD_SIZE {
                let begin = || Payload::with_capacity(size, &self.scratch);
                let mut payload = self.pending_payload.take().unwrap_or_else(begin);
                let count = available.len().min(size - payload.len());
                payload.push(&available[..count])?;
                self.start += count;
                if payload.len() < size {
                    self.pending_payload = Some(payload);
                    self.pending_frame = Some(frame);
                    return Ok(None);
                }
                payload
            } else {
                let Some(payload) = available.get(..size) else {
                    self.pending_frame = Some(frame);
                    return Ok(None);
                };
                self.start += size;
                Payload::InMemory(payload.to_vec())
            };
            frame.payloads.push_back(Some(payload));
        }
        self.searched = self.start;
        Ok(Some(frame))
    }

    /// The range of the next line, which counts as read.
    fn next_line(&mut self) -> Result<Option<std::ops::Range<usize>>, String> {
        let Some(found) = memchr::memchr(b'\n', &self.bytes[self.searched..]) else {
            self.searched = self.bytes.len();
            if self.bytes.len() - self.start > FRAME_SIZE_MAX {
                return Err(format!("a frame is longer than {FRAME_SIZE_MAX} bytes"));
            }
            return Ok(None);
        };
        let line = self.start..self.searched + found;
        self.start = line.end + 1;
        self.searched = self.start;
        Ok(Some(line))
    }
}

/// The first bytes of an invalid frame, for an error message.
fn sample(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(80)];
    format!("`{}`", String::from_utf8_lossy(shown).escape_debug())
}

/// Encodes a request to run code.
pub(super) fn encode_execute(id: u64, request: &Request) -> Result<Vec<u8>, String> {
    #[derive(Serialize)]
    struct Execute<'a> {
        op: &'static str,
        id: u64,
        code: &'a str,
        cwd: Option<&'a std::path::Path>,
        /// Device and inode of the directory, which may have been replaced.
        cwd_identity: Option<(u64, u64)>,
        env: Map<String, Value>,
        path: &'a [std::path::PathBuf],
        silent: bool,
        history: bool,
        stdin: &'static str,
        file: Option<&'a std::path::Path>,
        module: Option<&'a std::path::Path>,
    }
    let env = request
        .env
        .iter()
        .map(|(name, value)| {
            (
                name.clone(),
                value.clone().map_or(Value::Null, Value::String),
            )
        })
        .collect();
    let identity = request.cwd.as_ref().and_then(Directory::identity);
    encode_line(&Execute {
        op: "execute",
        id,
        code: &request.code,
        cwd: request.cwd.as_ref().map(Directory::path),
        cwd_identity: identity.map(|identity| (identity.device, identity.inode)),
        env,
        path: &request.search_path,
        silent: request.history == HistoryMode::Silent,
        history: request.history == HistoryMode::Store,
        stdin: match request.stdin {
            Stdin::Refuse => "refuse",
            Stdin::Answers(_) => "ask",
        },
        file: request.script.as_deref(),
        module: request.module.as_deref(),
    })
}

/// Encodes the answer to an input request; `None` refuses it.
pub(super) fn encode_answer(id: u64, text: Option<&str>) -> Vec<u8> {
    let value = match text {
        Some(text) => serde_json::json!({"op": "answer", "id": id, "text": text}),
        None => serde_json::json!({"op": "answer", "id": id, "refuse": true}),
    };
    format!("{value}\n").into_bytes()
}

/// Encodes a query.
pub(super) fn encode_query(id: u64, query: &KernelQuery) -> Vec<u8> {
    let value = match query {
        KernelQuery::Complete { code, cursor } => {
            serde_json::json!({"op": "complete", "id": id, "code": code, "cursor": cursor})
        }
        KernelQuery::Inspect {
            code,
            cursor,
            include_source: source,
        } => serde_json::json!({
            "op": "inspect", "id": id, "code": code, "cursor": cursor, "detail": u8::from(*source)
        }),
        KernelQuery::IsComplete { code } => {
            serde_json::json!({"op": "is_complete", "id": id, "code": code})
        }
        KernelQuery::Helpers => serde_json::json!({"op": "helpers", "id": id}),
        KernelQuery::Variables { limit } => {
            serde_json::json!({"op": "variables", "id": id, "limit": limit})
        }
        KernelQuery::History { last } => {
            serde_json::json!({"op": "history", "id": id, "last": last})
        }
    };
    format!("{value}\n").into_bytes()
}

/// The frame that makes the runner exit.
pub(super) const EXIT_FRAME: &[u8] = b"{\"op\":\"exit\"}\n";

fn encode_line(value: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut bytes = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(pieces: &[&[u8]]) -> Vec<Frame> {
        let mut frames = FrameDecoder::default();
        let mut found = Vec::new();
        for piece in pieces {
            frames.read_buffer().extend_from_slice(piece);
            while let Some(frame) = frames.next().unwrap() {
                found.push(frame);
            }
        }
        found
    }

    #[test]
    fn frames_are_decoded_however_they_are_split() {
        let stream = b"{\"t\":\"display\",\"id\":1,\"bin\":[3,2],\"data\":[[\"image/png\",\"bin\",1],\
            [\"text/plain\",\"text\",\"a\\nb\"],[\"a/b\",\"bin\",0]]}\nxyz\n!{\"t\":\"done\",\"id\":1}\n";
        for size in 1..stream.len() {
            let pieces: Vec<&[u8]> = stream.chunks(size).collect();
            let mut frames = feed(&pieces);
            assert_eq!(frames.len(), 2, "in pieces of {size}");
            let bundle = frames[0].take_bundle();
            assert_eq!(
                bundle.data,
                [
                    ("image/png".into(), Data::Bytes(b"\n!".to_vec())),
                    ("text/plain".into(), Data::Text("a\nb".into())),
                    ("a/b".into(), Data::Bytes(b"xyz".to_vec())),
                ]
            );
            assert_eq!(frames[1].frame_type, "done");
        }
    }

    #[test]
    fn a_large_payload_is_written_to_disk_while_it_arrives() {
        let sizes = [
            LARGE_PAYLOAD_SIZE + 7,
            5,
            LARGE_PAYLOAD_SIZE,
            LARGE_PAYLOAD_SIZE - 1,
        ];
        let line = format!(
            "{{\"t\":\"display\",\"bin\":{sizes:?},\"data\":[[\"a\",\"bin\",0],[\"b\",\"utf8\",1],\
             [\"c\",\"utf8\",2],[\"d\",\"bin\",3]]}}\n"
        );
        let mut stream = line.into_bytes();
        for (at, size) in sizes.into_iter().enumerate() {
            stream.extend(vec![b'0' + u8::try_from(at).unwrap(); size]);
        }
        stream.extend(b"{\"t\":\"done\"}\n");
        let mut frames = FrameDecoder::default();
        let mut found = Vec::new();
        for piece in stream.chunks(100_003) {
            frames.read_buffer().extend_from_slice(piece);
            while let Some(frame) = frames.next().unwrap() {
                found.push(frame);
            }
            let capacity = frames.bytes.capacity();
            assert!(
                capacity < 2 * LARGE_PAYLOAD_SIZE,
                "a large payload is in memory"
            );
        }
        assert_eq!(found.len(), 2);
        let bundle = found[0].take_bundle();
        for ((mime, data), (at, size)) in bundle.data.iter().zip(sizes.into_iter().enumerate()) {
            let expected = vec![b'0' + u8::try_from(at).unwrap(); size];
            let (bytes, stored) = match data {
                Data::Bytes(bytes) => (bytes.clone(), false),
                Data::Text(text) => (text.clone().into_bytes(), false),
                Data::Stored(stored) => (stored.head(usize::MAX).unwrap(), true),
                Data::Json(value) => panic!("{value}"),
            };
            assert!(bytes == expected, "{mime}");
            assert_eq!(stored, size >= LARGE_PAYLOAD_SIZE, "{mime}");
        }
    }

    #[test]
    fn json_nested_too_deeply_becomes_text() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let line =
            format!("{{\"t\":\"display\",\"data\":[[\"application/json\",\"json\",{deep}]]}}\n");
        let mut frames = feed(&[line.as_bytes()]);
        assert_eq!(
            frames[0].take_bundle().data,
            [("application/json".into(), Data::Text(deep))]
        );
    }

    #[test]
    fn metadata_nested_too_deeply_is_dropped() {
        let deep = format!("{}1{}", "{\"a\":".repeat(500), "}".repeat(500));
        let line = format!(
            "{{\"t\":\"display\",\"data\":[[\"text/plain\",\"text\",\"x\"]],\"metadata\":{deep}}}\n"
        );
        let bundle = feed(&[line.as_bytes()])[0].take_bundle();
        assert_eq!(bundle.data.len(), 1);
        assert!(bundle.metadata.is_empty());
    }

    #[test]
    fn a_missing_or_repeated_payload_is_dropped() {
        let line = b"{\"t\":\"display\",\"bin\":[1],\"data\":[[\"a\",\"bin\",0],[\"b\",\"bin\",0],[\"c\",\"bin\",7]]}\nx";
        let mut frames = feed(&[line]);
        assert_eq!(
            frames[0].take_bundle().data,
            [("a".into(), Data::Bytes(b"x".to_vec()))]
        );
    }

    #[test]
    fn invalid_lines_are_errors() {
        for line in [
            &b"hello\n"[..],
            b"\n",
            b"{\"t\":1}\n",
            b"{\"bin\":[99999999999999]}\n",
            b"{\"bin\":[18446744073709551615,18446744073709551615]}\n",
            b"\xff\xfe\n",
        ] {
            let mut frames = FrameDecoder::default();
            frames.read_buffer().extend_from_slice(line);
            assert!(frames.next().is_err(), "{line:?}");
        }
    }
}
